/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of event_index that a SELECT returns, and their events. The rows are read in groups, ahead
 * of the caller, so that the events of many rows are read from their journals together. The first
 * group is small, for a caller that needs only one event, and each further group is larger.
 */
#pragma once

#include "index/db/db.h"
#include "journal/base/buf.h"
#include "journal/sys/event_at.h"

#include <annal/journal.h>

/* columns that the SELECT must return, in this order */
#define FOUND_COLUMNS "session_id, seq, type, timestamp, offset, length, journal"

struct event_row;

struct event_rows {
    annal_store *store;
    sqlite3_stmt *stmt;
    int rc; /* result of the last sqlite3_step() of stmt */
    struct event_row *rows;
    struct buf text; /* texts of the rows */
    size_t count, next, room;
    size_t ahead; /* index of the first row whose event was not read from its journal yet */
    annal__event_buffer *buffer;
    annal__event_place *places;
};

/*
 * Read the first group of rows. The caller keeps the statement. Returns ANNAL_OK even if there are
 * no rows.
 */
annal_status annal__event_rows_begin(struct event_rows *found, annal_store *store,
                                     sqlite3_stmt *stmt, annal_error *err);

/*
 * Return the next row: the members of the event that the index contains. Slices are valid until the
 * next call. ANNAL_END after the last row.
 */
annal_status annal__event_rows_next(struct event_rows *found, annal_slice *out_session,
                                    annal_event *out_event, annal_error *err);

/* Read the complete event of the row that was returned last from its journal, as
 * annal__event_read_at() does. */
annal_status annal__event_rows_read(struct event_rows *found, annal_event *out_event,
                                    annal_error *err);

/* Return the members of the event in the current row of stmt; the slices belong to SQLite. */
annal_event annal__event_rows_event(sqlite3_stmt *stmt);

void annal__event_rows_done(struct event_rows *found);
