/* SPDX-License-Identifier: Apache-2.0 */
#include "index/query/event_rows.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/sys/event_at.h"

#define ROWS_FIRST 8
#define ROWS_MAX   1024

/* A row; its texts are at these offsets of found->text, which may move. */
struct event_row {
    annal_event event; /* members of the event, without its type */
    size_t session_at, session_bytes, journal_at, journal_bytes, type_at, type_bytes;
};

enum { SESSION, SEQ, TYPE, TIMESTAMP, OFFSET, LENGTH, JOURNAL };

static annal_slice text_at(const struct event_rows *found, size_t at, size_t bytes)
{
    return (annal_slice){found->text.ptr + at, bytes};
}

annal_event annal__event_rows_event(sqlite3_stmt *stmt)
{
    annal_event event = {.seq = (uint64_t)sqlite3_column_int64(stmt, SEQ),
                         .type = annal__db_column(stmt, TYPE),
                         .offset = (uint64_t)sqlite3_column_int64(stmt, OFFSET),
                         .length = (uint64_t)sqlite3_column_int64(stmt, LENGTH)};
    if (annal_time_parse(annal__db_column(stmt, TIMESTAMP), &event.ts_us, NULL) < 0)
        event.ts_us = 0;
    return event;
}

/* Append a text to found->text, unless it equals `like`, a text in it: neighbouring rows often have
 * the same session or type. */
static annal_status keep_text(struct event_rows *found, annal_slice text, annal_slice like,
                              size_t *out_at, size_t *out_bytes)
{
    *out_bytes = text.len;
    if (like.len > 0 && annal__slice_same(text, like)) {
        *out_at = (size_t)(like.ptr - found->text.ptr);
        return ANNAL_OK;
    }
    *out_at = found->text.len;
    return annal__buf_append_slice(&found->text, text);
}

static annal_status keep_row(struct event_rows *found)
{
    const struct event_row *before = found->count > 0 ? &found->rows[found->count - 1] : NULL;
    struct event_row *row = &found->rows[found->count];
    annal_slice session = {0}, type = {0};
    if (before != NULL) {
        session = text_at(found, before->session_at, before->session_bytes);
        type = text_at(found, before->type_at, before->type_bytes);
    }
    row->event = annal__event_rows_event(found->stmt);
    annal_status status = keep_text(found, row->event.type, type, &row->type_at, &row->type_bytes);
    if (before != NULL) /* read it again: appending the type may have moved found->text */
        session = text_at(found, before->session_at, before->session_bytes);
    if (status >= 0)
        status = keep_text(found, annal__db_column(found->stmt, SESSION), session, &row->session_at,
                           &row->session_bytes);
    if (status >= 0)
        status = keep_text(found, annal__db_column(found->stmt, JOURNAL),
                           text_at(found, row->session_at, row->session_bytes), &row->journal_at,
                           &row->journal_bytes);
    found->count += status >= 0;
    return status;
}

static annal_status make_room(struct event_rows *found)
{
    size_t room = found->room == 0 ? ROWS_FIRST : found->room * 4;
    if (found->room == ROWS_MAX)
        return ANNAL_OK;
    room = room < ROWS_MAX ? room : ROWS_MAX;
    annal__free(found->rows);
    annal__free(found->places);
    found->room = 0;
    /* not zeroed, because zeroing would take longer than filling the rows that are used */
    found->rows = annal__realloc_array(NULL, room, sizeof *found->rows);
    found->places = annal__realloc_array(NULL, room, sizeof *found->places);
    if (found->rows == NULL || found->places == NULL)
        return ANNAL_ERR_NOMEM;
    found->room = room;
    return ANNAL_OK;
}

/* Read the next group of rows. If a step fails, its failure is returned only after the rows before
 * it. */
static annal_status take_rows(struct event_rows *found, annal_error *err)
{
    found->count = found->next = found->ahead = 0;
    annal__buf_clear(&found->text);
    annal_status status = make_room(found);
    while (status >= 0 && found->count < found->room &&
           (found->rc = sqlite3_step(found->stmt)) == SQLITE_ROW)
        status = keep_row(found);
    return status < 0 ? annal__fail(err, status, "cannot run a query over events") : ANNAL_OK;
}

static annal_status fail_step(const struct event_rows *found, annal_error *err)
{
    return annal__db_fail(err, sqlite3_db_handle(found->stmt), found->rc,
                          "cannot query the table of events");
}

annal_status annal__event_rows_begin(struct event_rows *found, annal_store *store,
                                     sqlite3_stmt *stmt, annal_error *err)
{
    found->store = store;
    found->stmt = stmt;
    annal_status status = take_rows(found, err);
    if (status >= 0 && found->count == 0 && found->rc != SQLITE_DONE)
        status = fail_step(found, err);
    return status;
}

static annal_slice journal_of(const struct event_rows *found, const struct event_row *row)
{
    return text_at(found, row->journal_at, row->journal_bytes);
}

annal_status annal__event_rows_next(struct event_rows *found, annal_slice *out_session,
                                    annal_event *out_event, annal_error *err)
{
    if (found->next == found->count && found->rc == SQLITE_ROW) {
        annal_status status = take_rows(found, err);
        if (status < 0)
            return status;
    }
    if (found->next == found->count)
        return found->rc == SQLITE_DONE ? ANNAL_END : fail_step(found, err);
    const struct event_row *row = &found->rows[found->next++];
    *out_event = row->event;
    out_event->type = text_at(found, row->type_at, row->type_bytes);
    *out_session = text_at(found, row->session_at, row->session_bytes);
    return ANNAL_OK;
}

/* Read the events of this group from the row `from` on, together, as far as
 * annal__event_read_ahead() does. A single row is left to annal__event_read_at(). */
static void read_ahead(struct event_rows *found, size_t from)
{
    size_t count = found->count - from;
    for (size_t i = 0; i < count; i++) {
        const struct event_row *row = &found->rows[from + i];
        found->places[i] =
            (annal__event_place){journal_of(found, row), row->event.offset, row->event.length};
    }
    size_t taken =
        count > 1 ? annal__event_read_ahead(found->store, found->places, count, &found->buffer) : 0;
    found->ahead = from + (taken > 0 ? taken : 1);
}

annal_status annal__event_rows_read(struct event_rows *found, annal_event *out_event,
                                    annal_error *err)
{
    size_t at = found->next - 1;
    const struct event_row *row = &found->rows[at];
    if (at >= found->ahead)
        read_ahead(found, at);
    return annal__event_read_at(found->store, journal_of(found, row), row->event.seq,
                                row->event.offset, row->event.length, &found->buffer, out_event,
                                err);
}

void annal__event_rows_done(struct event_rows *found)
{
    annal__event_buffer_free(found->buffer);
    annal__free(found->rows);
    annal__free(found->places);
    annal__buf_done(&found->text);
    *found = (struct event_rows){0};
}
