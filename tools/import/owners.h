/* SPDX-License-Identifier: Apache-2.0 */
/* Which session has a record of another log: what record_owner() of an importer asks. */
#ifndef TOOLS_IMPORT_OWNERS_H
#define TOOLS_IMPORT_OWNERS_H

#include <annal/import.h>
#include <annal/index.h>

#include <stdbool.h>

struct owners;

/*
 * For one run of imports; both must be open as long as it. store NULL: other processes may import
 * while it lasts, as in a follow, so the index is always asked. NULL: out of memory.
 */
struct owners *owners_new(annal_store *store, annal_index *index);

/*
 * An annal_import_owner_fn: the session that has this record, in the store or since the run began;
 * if none has, session has it from now on. Valid until the next call.
 */
annal_slice owners_find(void *owners, annal_slice origin, annal_slice session);

/*
 * Read the ids of the events that a session has, for owners_has(): of the session that was read
 * last only those that are new since. *out_last_us is the time of its last event, 0 if it has none.
 */
annal_status owners_read(struct owners *owners, annal_store *store, annal_slice session,
                         int64_t *out_last_us, annal_error *err);
bool owners_has(const struct owners *owners, annal_slice id);

/* Release the index until the next call of owners_find(). NULL is accepted. */
void owners_pause(struct owners *owners);

/*
 * Why the store could not be asked; NULL if it could. Then a record that another session has may
 * have been imported twice.
 */
const annal_error *owners_failure(const struct owners *owners);

/* NULL is accepted. */
void owners_free(struct owners *owners);

#endif
