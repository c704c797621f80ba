/* SPDX-License-Identifier: Apache-2.0 */
/* Prints an event as a line of JSON. */
#pragma once

#include "journal/base/buf.h"

#include <annal/journal.h>

/*
 * Print {"seq":1,"ts":"…","type":"…"[,"id":"…"][,"cause":"…"],"data":…} and a line break on stdout.
 * If session is not empty, it is the first member, "session_id".
 */
void event_print(const annal_event *event, annal_slice session);

/*
 * Choose whether to print data with the bytes of the journal (--raw). Otherwise half a surrogate
 * pair becomes U+FFFD, because strict readers of JSON refuse it.
 */
void event_keep_bytes(bool keep);

/* Convert data to the form that event_keep_bytes() chose: event_put_data() appends it;
 * event_strict() returns it, in room if it was changed. */
annal_status event_put_data(struct buf *out, annal_slice data);
annal_slice event_strict(annal_slice data, struct buf *room);

/* Convert the data of an event to the form that event_keep_bytes() chose; *data contains the data,
 * or receives a copy if it must be changed. */
annal_status event_mend(annal_event *event, struct buf *data, annal_error *err);

/* Write the event up to its data to text, as event_print() prints it, and return the length. After
 * the data, only a brace follows. */
#define EVENT_HEAD_BYTES 1024
size_t event_head(const annal_event *event, annal_slice session, char text[EVENT_HEAD_BYTES]);

/*
 * Print the last event that a cursor returned. If its data is not in memory, it is read and printed
 * in pieces. Returns false if it could not be read.
 */
bool event_print_head(annal_cursor *cursor, const annal_event *event, annal_slice session,
                      uint64_t data_bytes, annal_error *err);

/* As event_print_head(), but print only the data. */
bool event_print_data(annal_cursor *cursor, const annal_event *event, uint64_t data_bytes,
                      annal_error *err);

/*
 * Read the data of the last event that a cursor returned into memory. data receives the bytes, and
 * event->data points to them. Data longer than LONG_DATA_BYTES is not read; event->data is then
 * empty.
 */
#define LONG_DATA_BYTES (1u << 20)
annal_status event_read_data(annal_cursor *cursor, annal_event *event, uint64_t data_bytes,
                             struct buf *data, annal_error *err);

/* As event_read_data(), but without a maximum length. */
annal_status event_read_whole(annal_cursor *cursor, annal_event *event, uint64_t data_bytes,
                              struct buf *data, annal_error *err);

/* Print one line about the damage on stderr. */
void event_say_damage(annal_slice session, const annal_damage *damage);

/*
 * Check the end of a journal that was read up to `here`. Bytes after the last valid line may belong
 * to an event that is being written, so wait a moment for it. If they remain, report them on
 * stderr, and return EXIT_REFUSED. *waits is 0 at first and shared by the sessions of one answer:
 * for later sessions the wait is shorter.
 */
int event_check_end(annal_store *store, annal_slice session, annal_position here, int *waits);
