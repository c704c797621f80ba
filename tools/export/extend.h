/* SPDX-License-Identifier: Apache-2.0 */
/* A session that exists here, and continues in another store. */
#ifndef TOOLS_EXPORT_EXTEND_H
#define TOOLS_EXPORT_EXTEND_H

#include <annal/journal.h>

/*
 * Append what the session has in `from` after its end here, if what is here is the beginning of it:
 * journals have one spelling, so the bytes are the same. All of it is durable, or nothing, if it is
 * at most ANNAL_APPEND_EVENTS_MAX events and ANNAL_APPEND_BYTES_MAX bytes; more is appended in
 * pieces of that size, and an interrupted import is finished by the next.
 */
annal_status session_extend(annal_store *store, annal_store *from, annal_slice session,
                            annal_error *err);

/* The same with the events of this cursor, in the session of this writer, which ends with event
 * after_seq. */
annal_status session_append(annal_cursor *cursor, annal_writer *writer, uint64_t after_seq,
                            annal_error *err);

#endif
