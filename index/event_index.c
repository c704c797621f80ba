/* SPDX-License-Identifier: Apache-2.0 */
/* The index itself as a follower: event_index, the counters, and the rows of the core pack. */
#include "index/db/db.h"
#include "index/index.h"
#include "index/pack/pack_follower.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"

#include <string.h>

/* ---- Counters by type: one UPDATE for each type in a transaction ---- */

static annal_status flush_counts(annal_index *index, annal_slice session, annal_error *err)
{
    struct core_rows *rows = &index->rows;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < rows->count_count; i++) {
        annal__db_bind_text(rows->add_count, 1, session);
        annal__db_bind_text(rows->add_count, 2, annal_slice_of(rows->counts[i].type));
        sqlite3_bind_int64(rows->add_count, 3, (sqlite3_int64)rows->counts[i].n);
        status = annal__db_run(rows->add_count, err);
    }
    rows->count_count = 0;
    return status;
}

static annal_status count_type(annal_index *index, annal_slice session, annal_slice type,
                               annal_error *err)
{
    struct core_rows *rows = &index->rows;
    for (size_t i = 0; i < rows->count_count; i++)
        if (annal__slice_is(type, rows->counts[i].type)) {
            rows->counts[i].n++;
            return ANNAL_OK;
        }
    if (rows->count_count == CORE_COUNTS_MAX) {
        annal_status status = flush_counts(index, session, err);
        if (status < 0)
            return status;
    }
    ANNAL_ASSERT(type.len <= ANNAL_TYPE_BYTES_MAX);
    struct core_count *count = &rows->counts[rows->count_count++];
    memcpy(count->type, type.ptr, type.len);
    count->type[type.len] = '\0';
    count->n = 1;
    return ANNAL_OK;
}

/* ---- The row of a fork ---- */

/* Add the row of a fork to the table forks, and its row in sessions, from the header of its
 * journal, before its first event. */
static annal_status begin(struct follower *follower, annal_slice session, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_session_info info;
    char created[ANNAL_TIME_BYTES];
    annal_status status = annal_session_info_get(follower->derived->store, session, &info, err);
    if (status == ANNAL_ERR_NOTFOUND || (status == ANNAL_OK && info.fork_session[0] == '\0'))
        return ANNAL_OK;
    if (status >= 0)
        status = annal__db_prepare(follower->derived->db,
                                   "INSERT INTO forks VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO "
                                   "UPDATE SET parent_session_id = excluded.parent_session_id, "
                                   "forked_at_seq = excluded.forked_at_seq, "
                                   "created_at = excluded.created_at",
                                   &stmt, err);
    if (status < 0)
        return status;
    annal_time_format(info.created_us, created);
    annal__db_bind_text(stmt, 1, session);
    annal__db_bind_text(stmt, 2, annal_slice_of(info.fork_session));
    sqlite3_bind_int64(stmt, 3, (sqlite3_int64)info.fork_seq);
    sqlite3_bind_text(stmt, 4, created, ANNAL_TIME_BYTES - 1, SQLITE_STATIC);
    status = annal__db_run(stmt, err);
    sqlite3_finalize(stmt);
    return status < 0 ? status
                      : annal__applier_begin(follower->applier, session, info.created_us, err);
}

/* ---- Rows of events: several in one INSERT, which costs about as much as one row ---- */

#define EVENT_COLUMNS 6

static annal_status prepare_insert(sqlite3 *db, size_t rows, sqlite3_stmt **out_stmt,
                                   annal_error *err)
{
    SCOPED_BUF sql = {0};
    annal_status status = annal__buf_printf(
        &sql, "INSERT INTO event_index (session_id, seq, type, timestamp, offset, length) VALUES");
    for (size_t i = 0; status >= 0 && i < rows; i++)
        status = annal__buf_printf(&sql, "%s (?,?,?,?,?,?)", i == 0 ? "" : ",");
    status = annal__buf_printf(&sql,
                               " ON CONFLICT (session_id, seq) DO UPDATE SET type = excluded.type, "
                               "timestamp = excluded.timestamp, offset = excluded.offset, "
                               "length = excluded.length");
    const char *text = status < 0 ? NULL : annal__buf_cstr(&sql);
    return text == NULL ? annal__fail(err, ANNAL_ERR_NOMEM, "prepare rows of events: out of memory")
                        : annal__db_prepare(db, text, out_stmt, err);
}

static void bind_event(sqlite3_stmt *stmt, size_t row, annal_slice session,
                       const struct core_event *event)
{
    int at = (int)row * EVENT_COLUMNS;
    annal__db_bind_text(stmt, at + 1, session);
    sqlite3_bind_int64(stmt, at + 2, (sqlite3_int64)event->seq);
    annal__db_bind_text(stmt, at + 3, (annal_slice){event->type, event->type_bytes});
    sqlite3_bind_text(stmt, at + 4, event->ts, ANNAL_TIME_BYTES - 1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, at + 5, (sqlite3_int64)event->offset);
    sqlite3_bind_int64(stmt, at + 6, (sqlite3_int64)event->length);
}

static annal_status flush_events(struct core_rows *rows, annal_slice session, annal_error *err)
{
    bool whole = rows->event_count == CORE_EVENTS_MAX;
    sqlite3_stmt *stmt = whole ? rows->insert_events : rows->insert_event;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < rows->event_count; i++) {
        bind_event(stmt, whole ? i : 0, session, &rows->events[i]);
        if (!whole || i + 1 == rows->event_count)
            status = annal__db_run(stmt, err);
    }
    rows->event_count = 0;
    return status;
}

static annal_status add_event(struct follower *follower, annal_slice session,
                              const annal_event *event, annal_error *err)
{
    annal_index *index = follower->own;
    struct core_rows *rows = &index->rows;
    annal_status status = ANNAL_OK;
    ANNAL_ASSERT(event->type.len <= ANNAL_TYPE_BYTES_MAX);
    struct core_event *row = &rows->events[rows->event_count++];
    row->seq = event->seq;
    row->offset = event->offset;
    row->length = event->length;
    row->type_bytes = event->type.len;
    memcpy(row->type, event->type.ptr, event->type.len);
    annal_time_format(event->ts_us, row->ts);
    if (rows->event_count == CORE_EVENTS_MAX)
        status = flush_events(rows, session, err);
    if (status >= 0)
        status = count_type(index, session, event->type, err);
    return status < 0 ? status : annal__pack_follower_event(follower, session, event, err);
}

static annal_status flush(struct follower *follower, annal_slice session, annal_error *err)
{
    annal_index *index = follower->own;
    annal_status status = flush_events(&index->rows, session, err);
    if (status >= 0)
        status = flush_counts(index, session, err);
    return status < 0 ? status : annal__applier_flush(follower->applier, session, err);
}

/* Delete the rows of one session from every table, including those of the core pack. */
static annal_status forget(struct follower *follower, annal_slice session, annal_error *err)
{
    static const char *const statements[] = {
        "DELETE FROM tool_calls WHERE session_id = ?1",
        "DELETE FROM session_directories WHERE session_id = ?1",
        "DELETE FROM session_sources WHERE session_id = ?1",
        "DELETE FROM source_events WHERE session_id = ?1",
        "DELETE FROM log_recoveries WHERE session_id = ?1",
        "DELETE FROM usage_events WHERE session_id = ?1",
        "DELETE FROM usage WHERE session_id = ?1",
        "DELETE FROM price_settings WHERE session_id = ?1",
        "DELETE FROM responses WHERE session_id = ?1",
        "DELETE FROM artifacts WHERE session_id = ?1",
        "DELETE FROM turns WHERE session_id = ?1",
        "DELETE FROM sessions WHERE id = ?1",
        "DELETE FROM event_index WHERE session_id = ?1",
        "DELETE FROM snapshots WHERE session_id = ?1",
        "DELETE FROM _reductions WHERE session_id = ?1",
        "DELETE FROM forks WHERE session_id = ?1",
        "DELETE FROM _counts WHERE session_id = ?1",
        "DELETE FROM _findings WHERE session_id = ?1",
        "DELETE FROM _cursor WHERE session_id = ?1",
    };
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < sizeof statements / sizeof *statements; i++) {
        sqlite3_stmt *stmt = NULL;
        status = annal__db_prepare(follower->derived->db, statements[i], &stmt, err);
        if (status < 0)
            break;
        annal__db_bind_text(stmt, 1, session);
        status = annal__db_run(stmt, err);
        sqlite3_finalize(stmt);
    }
    return status;
}

const struct follower_ops annal__core_follower = {.begin = begin,
                                                  .event = add_event,
                                                  .flush = flush,
                                                  .settle = annal__pack_follower_settle,
                                                  .forget = forget};

/* ---- sessions.db as a derived database ---- */

static annal_status check(void *arg, sqlite3 *db, const char *schema, annal_error *err)
{
    const annal_index *index = arg;
    struct shape_part parts[] = {{.shape = &index->shape, .ours = true},
                                 {.shape = &index->core->shape, .ours = true}};
    return annal__shape_compare(db, schema, parts, 2, false, err);
}

static annal_status make(void *arg, sqlite3 *db, annal_error *err)
{
    annal_index *index = arg;
    annal_status status = annal__pack_make_tables(index->core, db, err);
    return status < 0 ? status : annal__db_exec(db, annal__sql_schema, err);
}

static annal_status opened(void *arg, sqlite3 *db, annal_error *err)
{
    annal_index *index = arg;
    annal_status status = prepare_insert(db, 1, &index->rows.insert_event, err);
    if (status >= 0)
        status = prepare_insert(db, CORE_EVENTS_MAX, &index->rows.insert_events, err);
    if (status >= 0)
        status =
            annal__db_prepare(db,
                              "INSERT INTO _counts (session_id, type, n) VALUES (?1, ?2, ?3) "
                              "ON CONFLICT (session_id, type) DO UPDATE SET n = n + excluded.n",
                              &index->rows.add_count, err);
    if (status >= 0)
        status = annal__pack_follower_open(&index->follower,
                                           (const annal_pack *const[]){index->core}, 1, err);
    return status;
}

static void closing(void *arg)
{
    annal_index *index = arg;
    sqlite3_finalize(index->rows.insert_event);
    sqlite3_finalize(index->rows.insert_events);
    sqlite3_finalize(index->rows.add_count);
    index->rows = (struct core_rows){0};
    annal__pack_follower_close(&index->follower);
}

static void undone(void *arg)
{
    annal_index *index = arg;
    index->rows.event_count = index->rows.count_count = 0;
    annal__applier_forget(index->follower.applier);
}

const struct derived_ops annal__core_ops = {
    .check = check, .make = make, .opened = opened, .closing = closing, .undone = undone};
