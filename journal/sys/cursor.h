/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a cursor for the other folders and the command, besides the public functions. */
#pragma once

#include <annal/journal.h>

/*
 * As annal_cursor_next(), but report an event as damage if its data is not one JSON value of UTF-8
 * on a line, or is nested deeper than an append accepts. The check costs twice as much as reading,
 * so it is for callers that print data or build tables from it.
 */
ANNAL_MUST_CHECK annal_status annal__cursor_next_json(annal_cursor *cursor, annal_event *out_event,
                                                      annal_error *err);

/*
 * As annal__cursor_next_json(), but leave the data of an event of more than 256 KiB in a journal of
 * JSON lines empty: the data was read and checked in pieces, so that little memory is needed.
 * *out_data_bytes is the length of the data; annal__cursor_data() reads it.
 */
ANNAL_MUST_CHECK annal_status annal__cursor_next_head(annal_cursor *cursor, annal_event *out_event,
                                                      uint64_t *out_data_bytes, annal_error *err);

/*
 * Read up to len bytes of the data of the last event of this cursor, from offset on. *out_len is
 * the number of bytes read; fewer than len only at the end of data, and 0 after it. Data that is
 * read from the disk again is not checked again. ANNAL_ERR_CORRUPT: the journal was cut in the
 * meantime.
 */
ANNAL_MUST_CHECK annal_status annal__cursor_data(annal_cursor *cursor, uint64_t offset, void *bytes,
                                                 size_t len, size_t *out_len, annal_error *err);

/*
 * Open a cursor at event seq of a session, for a fork also an ancestor's event, and read it. It is
 * valid until *out_cursor is closed, which the caller does, also after a failure. ANNAL_END: the
 * session has no such event. ANNAL_DAMAGE: it is damaged.
 */
ANNAL_MUST_CHECK annal_status annal__cursor_open_event(annal_store *store, annal_slice session,
                                                       uint64_t seq, annal_cursor **out_cursor,
                                                       annal_event *out_event, annal_error *err);

/* Free the memory of a cursor that will not be used for a while. It keeps its position; its slices
 * are not valid any more. */
void annal__cursor_rest(annal_cursor *cursor);

/*
 * Return what the header of the session's own journal states, which was read when the cursor was
 * opened. Only these members are set: session, file ("": the header is damaged), replaces,
 * created_us, fork_session, fork_seq, fork_h and first_seq. Any thread.
 */
annal_session_info annal__cursor_header(const annal_cursor *cursor);

/*
 * Return the session whose journal the cursor is reading: its last event, last damage and position
 * refer to that journal. For a fork it may be an ancestor. Valid until the next call on this
 * cursor.
 */
annal_slice annal__cursor_journal(const annal_cursor *cursor);
