/* SPDX-License-Identifier: Apache-2.0 */
/* Which session has a record of another log: what record_owner() of an importer asks. */
#ifndef TOOLS_IMPORT_OWNERS_H
#define TOOLS_IMPORT_OWNERS_H

#include <annal/import.h>
#include <annal/index.h>

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
