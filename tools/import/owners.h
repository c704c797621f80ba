/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the session that owns a record of another log, for record_owner() in importers. */
#pragma once

#include <annal/import.h>
#include <annal/index.h>

#include <stdbool.h>

struct owners;

/*
 * Begin a run of imports. store and index must be open during the run. store NULL: other processes
 * may import at the same time, so the index is always queried. Return NULL if out of memory.
 */
struct owners *owners_new(annal_store *store, annal_index *index);

/*
 * Return the session that owns a record, from the store or from this run. If no session owns it,
 * `session` owns it from now on. The result is valid until the next call.
 */
annal_slice owners_find(void *owners, annal_slice origin, annal_slice session);

/*
 * Return what owners_find() will probably return, without a change of owners, for a log that is
 * read before the logs before it are imported. own, NULL at first, keeps the records of this log;
 * free it with owners_free(). The result is valid as long as *own. Any thread.
 */
annal_slice owners_guess(struct owners *owners, struct owners **own, annal_slice origin,
                         annal_slice session);

/*
 * Read the ids of the session's events, for owners_has(). If the same session was read last, only
 * its new events are read. *out_last_us is the time of its last event in us, or 0.
 */
annal_status owners_read(struct owners *owners, annal_store *store, annal_slice session,
                         int64_t *out_last_us, annal_error *err);
bool owners_has(const struct owners *owners, annal_slice id);

/* Release the index until the next call of owners_find(), after a log. If owners_new() got no
 * store, call it after all events were synced. owners may be NULL. */
void owners_pause(struct owners *owners);

/*
 * Return why the store could not be queried, or NULL. After such a failure a record of another
 * session may have been imported twice.
 */
const annal_error *owners_failure(const struct owners *owners);

/* owners may be NULL */
void owners_free(struct owners *owners);
