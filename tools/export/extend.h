/* SPDX-License-Identifier: Apache-2.0 */
/* Extends a session of this store with its further events from another store. */
#pragma once

#include <annal/journal.h>

/*
 * Append the events that the session has in `from`, but not here. The session here must be the
 * beginning of that one; a journal can be written in only one way, so the bytes are then the same.
 * If at most ANNAL_APPEND_EVENTS_MAX events and ANNAL_APPEND_BYTES_MAX bytes are missing, all
 * become durable or none; otherwise they are appended in pieces of that size, and the next import
 * completes an interrupted one.
 */
annal_status extend_session(annal_store *store, annal_store *from, annal_slice session,
                            annal_error *err);

/* As extend_session(), with the events of a cursor and the writer of a session that ends with event
 * after_seq. */
annal_status extend_append(annal_cursor *cursor, annal_writer *writer, uint64_t after_seq,
                           annal_error *err);
