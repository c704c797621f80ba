/* SPDX-License-Identifier: Apache-2.0 */
/* What our layers and the command need of a cursor besides reading the next event. */
#ifndef JOURNAL_SYS_CURSOR_H
#define JOURNAL_SYS_CURSOR_H

#include <annal/journal.h>

/*
 * As annal_cursor_next(), but an event whose data is not one JSON value of UTF-8 on a line, or is
 * nested deeper than an append accepts, is damage. The check costs twice as much as reading, so it
 * is for those who print data or make tables of it.
 */
ANNAL_MUST_CHECK annal_status annal__cursor_next_json(annal_cursor *cursor, annal_event *out_event,
                                                      annal_error *err);

/*
 * As annal__cursor_next_json(), but for an event of more than 256 KiB in a journal of JSON lines
 * data is empty: it was read and checked in pieces, so that memory does not grow with it.
 * *out_data_bytes is the length of data; annal__cursor_data() reads it.
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
 * Free the memory that reading took, for a cursor that will not be needed for a while. It keeps its
 * position; its slices are not valid any more.
 */
void annal__cursor_rest(annal_cursor *cursor);

/*
 * What the header of the session's own journal says, which was read when the cursor was opened: of
 * an annal_session_info, session, file ("": the header is damaged), replaces, created_us,
 * fork_session, fork_seq, fork_h and first_seq. Any thread.
 */
annal_session_info annal__cursor_header(const annal_cursor *cursor);

/*
 * The session in whose journal the cursor is: the last event, the last damage and the position
 * refer to that journal. It is an ancestor's while the history of a fork is read from there. Valid
 * until the next call on this cursor.
 */
annal_slice annal__cursor_journal(const annal_cursor *cursor);

#endif
