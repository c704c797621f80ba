/* SPDX-License-Identifier: Apache-2.0 */
/* Print an event as a line of JSON. */
#ifndef TOOLS_SHOW_EVENT_OUT_H
#define TOOLS_SHOW_EVENT_OUT_H

#include "journal/base/buf.h"

#include <annal/journal.h>

/*
 * Print {"seq":1,"ts":"…","type":"…"[,"id":"…"][,"cause":"…"],"data":…} and a line break, on
 * stdout. A session that is not empty is the first member, "session_id".
 */
void event_print(const annal_event *event, annal_slice session);

/*
 * The output is text for strict readers of JSON: half a surrogate pair becomes U+FFFD. With --raw
 * it keeps the bytes of the journal.
 */
void event_keep_bytes(bool keep);

/* Append data in this form; or return it, in room if it had to be changed. */
annal_status event_put_data(struct buf *out, annal_slice data);
annal_slice event_strict(annal_slice data, struct buf *room);

/* Do the same for an event, whose data is in data, or is copied there. */
annal_status event_mend(annal_event *event, struct buf *data, annal_error *err);

/* Write all of the event up to its data to text; a brace follows the data. Returns its length. */
#define EVENT_HEAD_BYTES 1024
size_t event_head(const annal_event *event, annal_slice session, char text[EVENT_HEAD_BYTES]);

/*
 * Print the last event of a cursor; its data is printed in pieces if it is not in memory. False: it
 * could not be read.
 */
bool event_print_head(annal_cursor *cursor, const annal_event *event, annal_slice session,
                      uint64_t data_bytes, annal_error *err);

/* Print only the data of such an event, in the same way. */
bool event_print_data(annal_cursor *cursor, const annal_event *event, uint64_t data_bytes,
                      annal_error *err);

/*
 * Read the data of such an event into memory (data, which it then points into), unless it is longer
 * than LONG_DATA_BYTES: then it stays empty.
 */
#define LONG_DATA_BYTES (1u << 20)
annal_status event_read_data(annal_cursor *cursor, annal_event *event, uint64_t data_bytes,
                             struct buf *data, annal_error *err);

/* Do the same, whatever its length. */
annal_status event_read_whole(annal_cursor *cursor, annal_event *event, uint64_t data_bytes,
                              struct buf *data, annal_error *err);

/* Print one line on stderr. */
void event_say_damage(annal_slice session, const annal_damage *damage);

/*
 * Finish a plain read at this position: bytes after the last sound line, which may be an event that
 * is being written, may become an event within a moment. If they do not, they are reported on
 * stderr: EXIT_REFUSED. *waits, 0 at first, is shared by the sessions of one answer: later damaged
 * sessions get less time.
 */
int event_check_end(annal_store *store, annal_slice session, annal_position here, int *waits);

#endif
