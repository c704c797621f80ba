/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of event_index that a SELECT returns, and their events. Rows are taken some way ahead of the
 * caller, so that the events of many rows are read from their journals together: few at first, for
 * a caller that needs only one, then more each time.
 */
#ifndef INDEX_QUERY_EVENT_ROWS_H
#define INDEX_QUERY_EVENT_ROWS_H

#include "index/db/db.h"
#include "journal/base/buf.h"
#include "journal/sys/event_at.h"

#include <annal/journal.h>

/* Columns that the SELECT returns, in this order. */
#define FOUND_COLUMNS "session_id, seq, type, timestamp, offset, length, journal"

struct event_row;

struct event_rows {
    annal_store *store;
    sqlite3_stmt *stmt;
    int rc; /* result of its last step */
    struct event_row *rows;
    struct buf text; /* text to which they point */
    size_t count, next, room;
    size_t ahead; /* index of the first row whose event is not read yet */
    annal__event_buffer *buffer;
    annal__event_place *places;
};

/*
 * Take the first rows. The caller keeps the statement. Returns ANNAL_OK also if there are no rows.
 */
annal_status annal__event_rows_begin(struct event_rows *found, annal_store *store,
                                     sqlite3_stmt *stmt, annal_error *err);

/*
 * Return the next row: what the index knows of the event. Slices are valid until the next call.
 * ANNAL_END, ANNAL_OK, or a failure.
 */
annal_status annal__event_rows_next(struct event_rows *found, annal_slice *out_session,
                                    annal_event *out_event, annal_error *err);

/* Read the event of the last row from its journal: annal__event_read_at(). */
annal_status annal__event_rows_read(struct event_rows *found, annal_event *out_event,
                                    annal_error *err);

/* Return what the index knows of the event in such a row; the slices belong to SQLite. */
annal_event annal__event_rows_event(sqlite3_stmt *stmt);

void annal__event_rows_done(struct event_rows *found);

#endif
