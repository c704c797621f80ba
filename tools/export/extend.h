/* SPDX-License-Identifier: Apache-2.0 */
/* Extend a session of this store with its events from another store. */
#ifndef TOOLS_EXPORT_EXTEND_H
#define TOOLS_EXPORT_EXTEND_H

#include <annal/journal.h>

/*
 * Append the events of the session in `from` after its end here, if the session here is the
 * beginning of it: journals have one spelling, so the bytes are the same. If they are at most
 * ANNAL_APPEND_EVENTS_MAX events and ANNAL_APPEND_BYTES_MAX bytes, all are durable or none;
 * otherwise they are appended in pieces of that size, and the next import completes an interrupted
 * import.
 */
annal_status extend_session(annal_store *store, annal_store *from, annal_slice session,
                            annal_error *err);

/* Do the same with the events of this cursor, in the session of this writer, which ends with event
 * after_seq. */
annal_status extend_append(annal_cursor *cursor, annal_writer *writer, uint64_t after_seq,
                           annal_error *err);

#endif
