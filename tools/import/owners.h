/* SPDX-License-Identifier: Apache-2.0 */
/* Find the session that owns a record of another log: record_owner() of an importer calls it. */
#ifndef TOOLS_IMPORT_OWNERS_H
#define TOOLS_IMPORT_OWNERS_H

#include <annal/import.h>
#include <annal/index.h>

#include <stdbool.h>

struct owners;

/*
 * Begin for one run of imports; both must stay open for the run. store NULL: other processes may
 * import at the same time, as in a follow, so the index is always queried. NULL: out of memory.
 */
struct owners *owners_new(annal_store *store, annal_index *index);

/*
 * Find the session that owns this record, in the store or since the run began, as an
 * annal_import_owner_fn; if none does, `session` owns it from now on. Valid until the next call.
 */
annal_slice owners_find(void *owners, annal_slice origin, annal_slice session);

/*
 * Read the ids of the session's events, for owners_has(): for the session that was read last only
 * the new events. *out_last_us is the time of its last event, 0 if it has none.
 */
annal_status owners_read(struct owners *owners, annal_store *store, annal_slice session,
                         int64_t *out_last_us, annal_error *err);
bool owners_has(const struct owners *owners, annal_slice id);

/* Release the index until the next call of owners_find(). Call it when all events are durable.
 * Accepts NULL. */
void owners_pause(struct owners *owners);

/*
 * Return why the store could not be queried, or NULL. In that case a record of another session may
 * have been imported twice.
 */
const annal_error *owners_failure(const struct owners *owners);

/* Accepts NULL. */
void owners_free(struct owners *owners);

#endif
