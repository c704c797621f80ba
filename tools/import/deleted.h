/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that were deleted, so that an import does not bring them back: STORE/deleted.txt has the
 * hash of each id, which does not tell the id. The file may be deleted: then all are imported.
 */
#ifndef TOOLS_IMPORT_DELETED_H
#define TOOLS_IMPORT_DELETED_H

#include <annal/store.h>

#include <stdbool.h>

struct deleted;

/* Note that it was deleted. If that fails, it is said. */
void deleted_note(const annal_store *store, annal_slice session);

/* NULL: none was deleted, or there is no memory. */
struct deleted *deleted_open(const annal_store *store);
bool deleted_has(const struct deleted *deleted, annal_slice session); /* NULL is accepted */
void deleted_close(struct deleted *deleted);                          /* NULL is accepted */

#endif
