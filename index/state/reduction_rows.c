/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing rows of the table _reductions. The content of their column state is defined
 * in snapshot/. */
#include "index/sys/reduction_rows.h"
#include "index/db/db.h"
#include "index/index.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <string.h>

/* Run a statement with the session of the row as ?1, its reducer as ?2, its version as ?3 and, if
 * used, its other members as ?4 to ?8. */
static annal_status run(sqlite3 *db, const char *sql, const annal__reduction_row *row,
                        annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(db, sql, &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, row->session);
    annal__db_bind_text(stmt, 2, row->reducer);
    sqlite3_bind_int64(stmt, 3, (sqlite3_int64)row->version);
    if (sqlite3_bind_parameter_count(stmt) > 3) {
        sqlite3_bind_int64(stmt, 4, (sqlite3_int64)row->seq);
        sqlite3_bind_int64(stmt, 5, (sqlite3_int64)row->every);
        sqlite3_bind_int64(stmt, 6, (sqlite3_int64)row->offset);
        sqlite3_bind_int64(stmt, 7, (sqlite3_int64)row->h);
        sqlite3_bind_blob64(stmt, 8, row->state.len == 0 ? "" : row->state.ptr, row->state.len,
                            SQLITE_STATIC);
    }
    status = annal__db_run(stmt, err);
    sqlite3_finalize(stmt);
    return status;
}

/* Measure the rows of this reducer and session: out is their number, the bytes of their states, the
 * number of events between two rows (every), and the newest seq. */
static annal_status measure(sqlite3 *db, const annal__reduction_row *row, uint64_t out[4],
                            annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(
        db,
        "SELECT count(*), sum(length(state)), max(every), max(seq) FROM _reductions"
        " WHERE session_id = ?1 AND reducer = ?2",
        &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, row->session);
    annal__db_bind_text(stmt, 2, row->reducer);
    int rc = sqlite3_step(stmt);
    for (int i = 0; i < 4 && rc == SQLITE_ROW; i++)
        out[i] = (uint64_t)sqlite3_column_int64(stmt, i);
    if (rc != SQLITE_ROW)
        status = annal__db_fail(err, db, rc, "cannot read the reductions of session '%.*s'",
                                ANNAL_FMT(row->session));
    sqlite3_finalize(stmt);
    return status;
}

/*
 * Delete rows until their states take at most bytes_max, one at a time: the row whose deletion
 * leaves the smallest gap, and never the newest. Then double `every` until as many rows as are left
 * cover all events up to the newest row.
 */
static annal_status thin_out(sqlite3 *db, const annal__reduction_row *row, uint64_t bytes_max,
                             uint64_t *out_every, annal_error *err)
{
    static const char least_missed[] =
        "DELETE FROM _reductions WHERE session_id = ?1 AND reducer = ?2 AND version = ?3"
        " AND seq = (SELECT seq FROM (SELECT seq, lead(seq) OVER w - lag(seq, 1, 0) OVER w AS gap"
        " FROM _reductions WHERE session_id = ?1 AND reducer = ?2 WINDOW w AS (ORDER BY seq))"
        " WHERE gap IS NOT NULL ORDER BY gap, seq LIMIT 1)";
    static const char doubled[] = "UPDATE _reductions SET every = every * 2"
                                  " WHERE session_id = ?1 AND reducer = ?2 AND version = ?3";
    uint64_t now[4] = {0};
    annal_status status = measure(db, row, now, err);
    bool thinned = status >= 0 && now[1] > bytes_max;
    while (status >= 0 && now[1] > bytes_max) {
        status = run(db, least_missed, row, err);
        if (status >= 0)
            status = measure(db, row, now, err);
    }
    while (status >= 0 && thinned && now[2] * now[0] < now[3]) {
        status = run(db, doubled, row, err);
        if (status >= 0)
            status = measure(db, row, now, err);
    }
    if (status >= 0)
        *out_every = now[2];
    return status;
}

annal_status annal__reduction_put(annal_index *index, const annal__reduction_row *row,
                                  uint64_t bytes_max, uint32_t wait_ms, uint64_t *out_every,
                                  annal_error *err)
{
    static const char others[] = "DELETE FROM _reductions WHERE session_id = ?1 AND reducer = ?2"
                                 " AND version <> ?3";
    static const char level[] = "UPDATE _reductions SET every = (SELECT max(every) FROM _reductions"
                                " WHERE session_id = ?1 AND reducer = ?2)"
                                " WHERE session_id = ?1 AND reducer = ?2 AND version = ?3";
    static const char insert[] = "INSERT OR REPLACE INTO _reductions"
                                 " (session_id, reducer, version, seq, every, offset, h, state)"
                                 " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    int64_t deadline_us = wait_ms == 0 ? 0 : annal__deadline_after(wait_ms);
    uint64_t every = 0;
    if (row->state.len > bytes_max)
        return annal__fail(
            err, ANNAL_ERR_LIMIT,
            "a reduction of %zu bytes is too large: all reductions together may take %llu bytes",
            row->state.len, (unsigned long long)bytes_max);
    annal_status status = annal__derived_begin(&index->derived, deadline_us, err);
    if (status < 0)
        return status;
    sqlite3 *db = index->derived.db;
    status = run(db, others, row, err);
    if (status >= 0)
        status = run(db, insert, row, err);
    if (status >= 0)
        status = run(db, level, row, err);
    if (status >= 0)
        status = thin_out(db, row, bytes_max, &every, err);
    annal_status ended = annal__derived_end(&index->derived, status >= 0, status >= 0 ? err : NULL);
    status = status < 0 ? status : ended;
    if (status >= 0)
        *out_every = every;
    return status;
}

static annal_status take_row(sqlite3_stmt *stmt, annal__reduction_row *row, annal_error *err)
{
    annal_slice state = annal__db_column(stmt, 4);
    char *copy = annal__zalloc(state.len + 1);
    if (copy == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read a reduction of %zu bytes: out of memory",
                           state.len);
    if (state.len > 0)
        memcpy(copy, state.ptr, state.len);
    row->seq = (uint64_t)sqlite3_column_int64(stmt, 0);
    row->every = (uint64_t)sqlite3_column_int64(stmt, 1);
    row->offset = (uint64_t)sqlite3_column_int64(stmt, 2);
    row->h = (uint64_t)sqlite3_column_int64(stmt, 3);
    row->state = (annal_slice){copy, state.len};
    return ANNAL_OK;
}

annal_status annal__reduction_newest(annal_index *index, annal_slice session, annal_slice reducer,
                                     uint32_t version, uint64_t at_most,
                                     annal__reduction_row *out_row, annal_error *err)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    annal__reduction_row row = {.session = session, .reducer = reducer, .version = version};
    annal_status status = ANNAL_OK;
    if (!annal__derived_exists(&index->derived))
        return annal__fail(err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no reduction '%.*s'",
                           ANNAL_FMT(session), ANNAL_FMT(reducer));
    status = annal__fallback_borrow(index, &db, err);
    if (status >= 0)
        status = annal__readers_prepare(db,
                                        "SELECT seq, every, offset, h, state FROM _reductions"
                                        " WHERE session_id = ?1 AND reducer = ?2 AND version = ?3"
                                        " AND seq <= ?4 ORDER BY seq DESC LIMIT 1",
                                        &stmt, err);
    if (status < 0)
        goto done;
    annal__db_bind_text(stmt, 1, session);
    annal__db_bind_text(stmt, 2, reducer);
    sqlite3_bind_int64(stmt, 3, (sqlite3_int64)version);
    sqlite3_bind_int64(stmt, 4, at_most > INT64_MAX ? INT64_MAX : (sqlite3_int64)at_most);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        status = take_row(stmt, &row, err);
    else if (rc == SQLITE_DONE)
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no reduction '%.*s'",
                             ANNAL_FMT(session), ANNAL_FMT(reducer));
    else
        status = annal__db_fail(err, db, rc, "cannot read the reductions of session '%.*s'",
                                ANNAL_FMT(session));
    if (status >= 0)
        *out_row = row;

done:
    annal__derived_give(&index->derived, db, true);
    return status;
}
