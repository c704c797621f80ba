/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers deleted sessions, which an import must not restore. STORE/deleted.txt contains a hash
 * of each id, which does not reveal the id. If a user deletes the file, all sessions are imported.
 */
#pragma once

#include <annal/store.h>

#include <stdbool.h>

struct deleted;

/* Record in STORE/deleted.txt that a session was deleted. If that fails, print a message. */
void deleted_note(const annal_store *store, annal_slice session);

/* Read the deleted sessions. NULL: no session was deleted, or out of memory. */
struct deleted *deleted_open(const annal_store *store);

/* Return a number that changes when a session is deleted. */
uint64_t deleted_stamp(const annal_store *store);
bool deleted_has(const struct deleted *deleted, annal_slice session); /* deleted may be NULL */
void deleted_close(struct deleted *deleted);                          /* deleted may be NULL */
