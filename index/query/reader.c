/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the index for readers after catching up, reading the events that are not indexed, and
 * reporting how far the index is behind the journals.
 */
#include "index/db/db.h"
#include "index/follow/follower.h"
#include "index/index.h"
#include "index/sys/databases.h"
#include "index/sys/findings.h"
#include "index/sys/snapshot_rows.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/sys/cursor.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <stdio.h>

/* ---- Sessions that are not fully indexed ---- */

/* A function that is called for each requested session whose journal is longer than the indexed
 * part. bytes: size of the journal. */
typedef annal_status (*lagging_fn)(void *arg, annal_slice session, const annal_position *from,
                                   uint64_t bytes);

struct lagging {
    annal_store *store;
    sqlite3_stmt *get_cursor;
    const annal_slice *sessions;
    size_t count;
    lagging_fn fn;
    void *arg;
    annal_error *err;
};

static bool is_asked_for(const struct lagging *lagging, annal_slice session)
{
    if (lagging->count == 0)
        return true;
    for (size_t i = 0; i < lagging->count; i++)
        if (annal__slice_same(lagging->sessions[i], session))
            return true;
    return false;
}

static int report_lagging(void *arg, annal_slice session, uint64_t bytes)
{
    struct lagging *lagging = arg;
    annal_position from;
    bool known;
    if (!is_asked_for(lagging, session))
        return 0;
    annal_status status =
        annal__plan_cursor(lagging->get_cursor, session, &from, &known, lagging->err);
    if (status < 0)
        return status;
    return bytes > from.offset && !annal__stray_is(lagging->store, session)
               ? lagging->fn(lagging->arg, session, &from, bytes)
               : 0;
}

static annal_status each_lagging(annal_index *index, sqlite3 *db, const annal_slice *sessions,
                                 size_t count, lagging_fn fn, void *arg, annal_error *err)
{
    struct lagging lagging = {.store = index->store,
                              .sessions = sessions,
                              .count = count,
                              .fn = fn,
                              .arg = arg,
                              .err = err};
    annal_status status =
        annal__follower_get_cursor(&index->follower, db, &lagging.get_cursor, err);
    if (status >= 0)
        status = annal_session_each(index->store, report_lagging, &lagging, err);
    sqlite3_finalize(lagging.get_cursor);
    return status;
}

static annal_status add_lag(void *arg, annal_slice session, const annal_position *from,
                            uint64_t bytes)
{
    (void)session;
    annal_lag *lag = arg;
    lag->sessions++;
    lag->bytes += bytes - from->offset;
    return ANNAL_OK;
}

/* ---- Events that are not indexed ---- */

#define REST_BYTES_MAX (64u << 20)

struct rest {
    annal_store *store;
    sqlite3_stmt *insert;
    annal_lag left; /* sessions and bytes that could not be read */
    annal_error *err;
};

static annal_status add_rest_event(struct rest *rest, annal_slice session, const annal_event *event)
{
    char ts[ANNAL_TIME_BYTES];
    annal_time_format(event->ts_us, ts);
    annal__db_bind_text(rest->insert, 1, session);
    sqlite3_bind_int64(rest->insert, 2, (sqlite3_int64)event->seq);
    annal__db_bind_text(rest->insert, 3, event->type);
    sqlite3_bind_text(rest->insert, 4, ts, ANNAL_TIME_BYTES - 1, SQLITE_STATIC);
    sqlite3_bind_int64(rest->insert, 5, (sqlite3_int64)event->offset);
    sqlite3_bind_int64(rest->insert, 6, (sqlite3_int64)event->length);
    return annal__db_run(rest->insert, rest->err);
}

/* Insert the events of a journal that are not indexed into temp.rest. A journal that cannot be
 * read, or was replaced, is skipped. */
static annal_status add_rest(void *arg, annal_slice session, const annal_position *from,
                             uint64_t bytes)
{
    struct rest *rest = arg;
    annal_cursor *cursor = NULL;
    annal_status added = ANNAL_OK;
    annal_status status = annal_cursor_open_at(rest->store, session, from->seq, from->offset,
                                               from->h_before, &cursor, NULL);
    while (status >= 0 && status != ANNAL_END && added >= 0 &&
           annal_cursor_position(cursor).offset < bytes) {
        annal_event event;
        status = annal__cursor_next_json(cursor, &event, NULL);
        if (status == ANNAL_OK)
            added = add_rest_event(rest, session, &event);
    }
    annal_cursor_close(cursor);
    if (status < 0)
        (void)add_lag(&rest->left, session, from, bytes);
    return added;
}

annal_status annal__reader_add_rest(annal_index *index, sqlite3 *db, const annal_slice *sessions,
                                    size_t count, annal_lag *lag, bool *out_added, annal_error *err)
{
    struct rest rest = {.store = index->store, .err = err};
    *out_added = false;
    if (lag->bytes == 0 || lag->bytes > REST_BYTES_MAX)
        return ANNAL_OK;
    annal_status status = annal__db_exec(db,
                                         "CREATE TEMP TABLE rest AS SELECT session_id, seq, type, "
                                         "timestamp, offset, length FROM event_index LIMIT 0",
                                         err);
    if (status >= 0)
        status = annal__db_begin(db, err);
    if (status >= 0)
        status = annal__db_prepare(db, "INSERT INTO temp.rest VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                                   &rest.insert, err);
    if (status >= 0)
        status = each_lagging(index, db, sessions, count, add_rest, &rest, err);
    sqlite3_finalize(rest.insert);
    if (status < 0)
        return status;
    lag->sessions = rest.left.sessions;
    lag->bytes = rest.left.bytes;
    if (lag->bytes == 0)
        lag->message[0] = '\0';
    *out_added = true;
    return ANNAL_OK;
}

#define ATTEMPTS_MAX 5

/* A function that opens the database: annal__derived_take() or annal__derived_borrow(). */
typedef annal_status (*open_fn)(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                struct stamp *out_stamp, annal_error *err);

/* Catch up and open the database once. *out_db stays NULL if sessions.db was deleted between the
 * two steps. */
static annal_status catch_up_once(annal_index *index, const annal_slice *sessions, size_t count,
                                  const annal_catch_up_options *options, open_fn open,
                                  sqlite3 **out_db, annal_error *out_why, annal_error *err)
{
    struct stamp caught_up = {0}, opened = {0};
    annal_index *used = index;
    sqlite3 *db = NULL;
    *out_why = (annal_error){0};
    annal_status lagging =
        annal__fallback_catch_up(index, sessions, count, options, &used, &caught_up, out_why);
    annal_status status = open(&used->derived, index->derived.wait_ms, &db, &opened, err);
    if (status < 0)
        return status;
    if (lagging >= 0 && !annal__derived_stamp_holds(opened, caught_up))
        annal__derived_give(&used->derived, db, false);
    else
        *out_db = db;
    return ANNAL_OK;
}

static annal_status catch_up_and_open(annal_index *index, const annal_slice *sessions, size_t count,
                                      uint32_t timeout_ms, open_fn open, sqlite3 **out_db,
                                      annal_error *out_why, annal_error *err)
{
    const annal_catch_up_options options = {.timeout_ms = timeout_ms};
    annal_error why = {0};
    for (unsigned attempt = 1;; attempt++) {
        annal_status status =
            catch_up_once(index, sessions, count, &options, open, out_db, out_why, &why);
        bool failed = annal__fallback_helps(index, status);
        if ((status >= 0 && *out_db != NULL) || (status < 0 && !failed) ||
            attempt > 2 * ATTEMPTS_MAX)
            return annal__error_pass(err, status, &why);
        if (attempt >= ATTEMPTS_MAX || annal__derived_is_hopeless(&why))
            status = annal__fallback_begin(index, &why, err);
        if (attempt >= ATTEMPTS_MAX && status < 0)
            return status;
    }
}

/*
 * Open the index without catching up. If it was rebuilt since this process last caught up, so that
 * it may lack events, it is not used: *out_db stays NULL.
 */
static annal_status open_as_indexed(annal_index *index, open_fn open, sqlite3 **out_db,
                                    annal_error *err)
{
    sqlite3 *db = NULL;
    struct stamp opened, caught_up;
    annal_index *used = annal__fallback_or_self(index, &caught_up);
    annal_status status = open(&used->derived, index->derived.wait_ms, &db, &opened, err);
    if (used == index && annal__fallback_helps(index, status))
        return ANNAL_OK;
    if (status < 0)
        return status;
    if (caught_up.id != 0 && !annal__derived_stamp_holds(opened, caught_up))
        annal__derived_give(&used->derived, db, false);
    else
        *out_db = db;
    return ANNAL_OK;
}

static annal_status read_by(open_fn open, annal_index *index, const annal_slice *sessions,
                            size_t count, bool as_indexed, uint32_t timeout_ms, sqlite3 **out_db,
                            annal_lag *out_lag, annal_error *err)
{
    annal_error why = {0};
    annal_lag lag = {0};
    sqlite3 *db = NULL;
    annal_status status = as_indexed ? open_as_indexed(index, open, &db, err) : ANNAL_OK;
    if (status >= 0 && db == NULL)
        status = catch_up_and_open(index, sessions, count, timeout_ms, open, &db, &why, err);
    if (status >= 0 && (as_indexed ? out_lag != NULL : why.status < 0))
        status = each_lagging(index, db, sessions, count, add_lag, &lag, err);
    if (status < 0) {
        annal__derived_give(&index->derived, db, false);
        return status;
    }
    if (lag.bytes > 0)
        snprintf(lag.message, sizeof lag.message, "%.255s",
                 as_indexed ? "no catch-up was requested" : why.message);
    if (out_lag != NULL)
        *out_lag = lag;
    *out_db = db;
    return ANNAL_OK;
}

annal_status annal__reader_read(annal_index *index, const annal_slice *sessions, size_t count,
                                bool as_indexed, uint32_t timeout_ms, sqlite3 **out_db,
                                annal_lag *out_lag, annal_error *err)
{
    return read_by(annal__derived_take, index, sessions, count, as_indexed, timeout_ms, out_db,
                   out_lag, err);
}

annal_status annal__reader_borrow(annal_index *index, const annal_slice *sessions, size_t count,
                                  bool as_indexed, uint32_t timeout_ms, sqlite3 **out_db,
                                  annal_lag *out_lag, annal_error *err)
{
    return read_by(annal__derived_borrow, index, sessions, count, as_indexed, timeout_ms, out_db,
                   out_lag, err);
}

/* ---- Lag, session by session ---- */

struct each_lag {
    annal_index *index;
    sqlite3_stmt *get_cursor;
    annal_index_lag_fn fn;
    void *arg;
    annal_error *err;
};

static int report_lag(void *arg, annal_slice session, uint64_t bytes)
{
    struct each_lag *each = arg;
    annal_session_info info;
    annal_status status = annal_session_info_get(each->index->store, session, &info, each->err);
    if (status == ANNAL_ERR_NOTFOUND ||
        (annal__may_be_stray(status) && annal__stray_is(each->index->store, session)))
        return 0;
    if (status < 0)
        return status;
    annal_position from;
    bool known;
    status = annal__plan_cursor(each->get_cursor, session, &from, &known, each->err);
    if (status < 0)
        return status;
    const annal_index_lag lag = {.session = session,
                                 .journal_seq = info.last_seq,
                                 .indexed_seq = from.seq - 1,
                                 .journal_bytes = bytes,
                                 .indexed_bytes = from.offset};
    return each->fn(each->arg, &lag);
}

annal_status annal_index_lag_each(annal_index *index, annal_slice session, annal_index_lag_fn fn,
                                  void *arg, annal_error *err)
{
    struct each_lag each = {.index = index, .fn = fn, .arg = arg, .err = err};
    sqlite3 *db = NULL;
    annal_session_info info;
    annal_status status = annal__fallback_borrow(index, &db, err);
    if (status >= 0)
        status = annal__follower_kept_cursor(&index->follower, db, &each.get_cursor, err);
    if (status >= 0 && session.len == 0)
        status = annal_session_each(index->store, report_lag, &each, err);
    else if (status >= 0)
        status = annal_session_info_get(index->store, session, &info, err);
    if (status >= 0 && session.len > 0)
        status = (annal_status)report_lag(&each, session, info.bytes);
    annal__derived_give(&index->derived, db, true);
    return status;
}

/* ---- Rows of private tables ---- */

typedef int (*step_fn)(void *arg, sqlite3_stmt *stmt);

static annal_status each_row_once(annal_index *index, annal_slice session, const char *sql,
                                  step_fn fn, void *arg, bool *out_begun, annal_error *err)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    annal_status status =
        annal__reader_borrow(index, &session, session.len > 0, true, 0, &db, NULL, err);
    if (status >= 0)
        status = annal__readers_prepare(db, sql, &stmt, err);
    if (status >= 0 && session.len > 0)
        annal__db_bind_text(stmt, 1, session);
    while (status == ANNAL_OK) {
        int rc = sqlite3_step(stmt);
        if (rc == SQLITE_DONE)
            break;
        *out_begun = *out_begun || rc == SQLITE_ROW;
        status = rc == SQLITE_ROW ? (annal_status)fn(arg, stmt)
                                  : annal__db_fail(err, db, rc, "cannot read the database '%s'",
                                                   index->derived.path);
    }
    annal__derived_give(&index->derived, db, true);
    return status;
}

/* Run sql, in which ?1 is the session (not used if session is empty), and call fn for each row. */
static annal_status each_row(annal_index *index, annal_slice session, const char *sql, step_fn fn,
                             void *arg, annal_error *err)
{
    bool begun = false;
    annal_status status = each_row_once(index, session, sql, fn, arg, &begun, err);
    if (status == ANNAL_ERR_CORRUPT && !begun && annal__derived_heal(&index->derived))
        status = each_row_once(index, session, sql, fn, arg, &begun, err);
    return status;
}

struct count_call {
    annal__index_count_fn fn;
    void *arg;
};

static int report_count(void *arg, sqlite3_stmt *stmt)
{
    struct count_call *call = arg;
    return call->fn(call->arg, annal__db_column(stmt, 0), (uint64_t)sqlite3_column_int64(stmt, 1));
}

annal_status annal__reader_counts(annal_index *index, annal_slice session, annal__index_count_fn fn,
                                  void *arg, annal_error *err)
{
    struct count_call call = {fn, arg};
    const char *sql = session.len > 0
                          ? "SELECT type, n FROM _counts WHERE session_id = ?1 ORDER BY type"
                          : "SELECT type, SUM(n) FROM _counts GROUP BY type ORDER BY type";
    return each_row(index, session, sql, report_count, &call, err);
}

struct finding_call {
    annal_index_finding_fn fn;
    void *arg;
};

static int report_finding(void *arg, sqlite3_stmt *stmt)
{
    struct finding_call *call = arg;
    const annal_index_finding finding = annal__follower_read_finding(stmt);
    return call->fn(call->arg, &finding);
}

static annal_status core_findings(annal_index *index, annal_slice session,
                                  annal_index_finding_fn fn, void *arg, annal_error *err)
{
    struct finding_call call = {fn, arg};
    const char *sql = session.len > 0
                          ? "SELECT * FROM _findings WHERE session_id = ?1 ORDER BY offset, kind"
                          : "SELECT * FROM _findings ORDER BY session_id, offset, kind";
    return each_row(index, session, sql, report_finding, &call, err);
}

annal_status annal__reader_core_findings(annal_index *index, annal_index_finding_fn fn, void *arg,
                                         annal_error *err)
{
    return core_findings(index, (annal_slice){0}, fn, arg, err);
}

annal_status annal_index_finding_each(annal_index *index, annal_slice session,
                                      annal_index_finding_fn fn, void *arg, annal_error *err)
{
    annal_status status = core_findings(index, session, fn, arg, err);
    return status != ANNAL_OK ? status : annal__packs_findings(index, session, fn, arg, err);
}

annal_status annal__reader_health(annal_index *index, annal_slice session,
                                  const annal_catch_up_options *options, annal_index_finding_fn fn,
                                  void *arg, annal_error *err)
{
    struct stamp unused;
    annal_error why = {0};
    annal_index *used = annal__fallback_or_self(index, &unused);
    annal_status status =
        annal__packs_catch_up(used, options->every_database ? PACK_EVERYONE : PACK_SHARED, &session,
                              session.len > 0, options, &why);
    if (status < 0)
        annal__say(index->store, ANNAL_LOG_WARNING,
                   "findings of packs may be missing in the answer: %s", why.message);
    return annal_index_finding_each(index, session, fn, arg, err);
}

#define HEAD_BYTES 256

struct snapshot_call {
    annal__snapshot_row_fn fn;
    void *arg;
};

/*
 * Read the first bytes of the state in a row, at most HEAD_BYTES; for substr() SQLite would read
 * the complete state. Empty if they cannot be read, because the row is damaged.
 */
static annal_slice read_head(sqlite3 *db, sqlite3_int64 rowid, char *head)
{
    sqlite3_blob *blob = NULL;
    annal_slice slice = {0};
    if (sqlite3_blob_open(db, "main", "snapshots", "state", rowid, 0, &blob) == SQLITE_OK) {
        int bytes = sqlite3_blob_bytes(blob);
        bytes = bytes < HEAD_BYTES ? bytes : HEAD_BYTES;
        if (sqlite3_blob_read(blob, head, bytes, 0) == SQLITE_OK)
            slice = (annal_slice){head, (size_t)bytes};
    }
    (void)sqlite3_blob_close(blob);
    return slice;
}

static int report_snapshot(void *arg, sqlite3_stmt *stmt)
{
    struct snapshot_call *call = arg;
    char head[HEAD_BYTES];
    annal__snapshot_row row = {.session = annal__db_column(stmt, 0),
                               .seq = (uint64_t)sqlite3_column_int64(stmt, 1),
                               .bytes = (uint64_t)sqlite3_column_int64(stmt, 2)};
    if (annal_time_parse(annal__db_column(stmt, 3), &row.created_us, NULL) < 0)
        row.created_us = 0;
    row.head = read_head(sqlite3_db_handle(stmt), sqlite3_column_int64(stmt, 4), head);
    return call->fn(call->arg, &row);
}

#define CHORE_WAIT_MS 1

annal_status annal__reader_snapshot_last(annal_index *index, annal_slice session,
                                         annal__snapshot_row_fn fn, void *arg, annal_error *err)
{
    struct snapshot_call call = {.fn = fn, .arg = arg};
    struct stamp stamp;
    struct patience_limit limit;
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    if (!annal__derived_exists(&index->derived))
        return ANNAL_OK;
    annal__patience_limit(&index->derived.patience, &limit, annal__deadline_after(CHORE_WAIT_MS));
    annal_status status = annal__derived_borrow(&index->derived, CHORE_WAIT_MS, &db, &stamp, err);
    if (status >= 0)
        status =
            annal__readers_prepare(db,
                                   "SELECT session_id, seq, LENGTH(state), created_at, rowid "
                                   "FROM snapshots WHERE session_id = ?1 ORDER BY seq DESC LIMIT 1",
                                   &stmt, err);
    if (status >= 0) {
        annal__db_bind_text(stmt, 1, session);
        int rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW)
            status = (annal_status)report_snapshot(&call, stmt);
        else if (rc != SQLITE_DONE)
            status =
                annal__db_fail(err, db, rc, "cannot read the database '%s'", index->derived.path);
    }
    annal__derived_give(&index->derived, db, true);
    annal__patience_unlimit(&index->derived.patience, &limit);
    return status;
}

annal_status annal__reader_snapshot_each(annal_index *index, annal_slice session,
                                         annal__snapshot_row_fn fn, void *arg, annal_error *err)
{
    struct snapshot_call call = {.fn = fn, .arg = arg};
    const char *sql = session.len > 0 ? "SELECT session_id, seq, LENGTH(state), created_at, rowid "
                                        "FROM snapshots WHERE session_id = ?1 ORDER BY seq"
                                      : "SELECT session_id, seq, LENGTH(state), created_at, rowid "
                                        "FROM snapshots ORDER BY session_id, seq";
    return each_row(index, session, sql, report_snapshot, &call, err);
}
