/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deleted sessions, which an import must not restore: STORE/deleted.txt has the hash of each id,
 * which does not reveal the id. The file may be deleted: then all sessions are imported.
 */
#ifndef TOOLS_IMPORT_DELETED_H
#define TOOLS_IMPORT_DELETED_H

#include <annal/store.h>

#include <stdbool.h>

struct deleted;

/* Note that a session was deleted. A failure is reported. */
void deleted_note(const annal_store *store, annal_slice session);

/* Read the deleted sessions. NULL: there are none, or no memory. */
struct deleted *deleted_open(const annal_store *store);

/* Return a number that changes when a session is deleted. */
uint64_t deleted_stamp(const annal_store *store);
bool deleted_has(const struct deleted *deleted, annal_slice session); /* accepts NULL */
void deleted_close(struct deleted *deleted);                          /* accepts NULL */

#endif
