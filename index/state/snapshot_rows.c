/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing rows of the table snapshots. The content of their column state is defined in
 * snapshot/. */
#include "index/sys/snapshot_rows.h"
#include "index/db/db.h"
#include "index/index.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <string.h>

static annal_status begin_change(annal_index *index, uint32_t wait_ms, const char *sql,
                                 sqlite3_stmt **out_stmt, annal_error *err)
{
    int64_t deadline_us = wait_ms == 0 ? 0 : annal__deadline_after(wait_ms);
    annal_status status = annal__derived_begin(&index->derived, deadline_us, err);
    if (status < 0)
        return status;
    status = annal__db_prepare(index->derived.db, sql, out_stmt, err);
    if (status < 0)
        (void)annal__derived_end(&index->derived, false, NULL);
    return status;
}

static annal_status end_change(annal_index *index, sqlite3_stmt *stmt, annal_status status,
                               annal_error *err)
{
    sqlite3_finalize(stmt);
    annal_status ended = annal__derived_end(&index->derived, status >= 0, status >= 0 ? err : NULL);
    return status < 0 ? status : ended;
}

annal_status annal__snapshot_rows_put(annal_index *index, annal_slice session, uint64_t seq,
                                      annal_slice state, int64_t created_us, uint64_t base_seq,
                                      annal_slice base_begins, uint32_t wait_ms, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    char created_at[ANNAL_TIME_BYTES];
    annal_time_format(created_us, created_at);
    annal_status status =
        begin_change(index, wait_ms,
                     "INSERT OR REPLACE INTO snapshots (session_id, seq, state, created_at) "
                     "SELECT ?1, ?2, ?3, ?4 WHERE ?5 = 0 OR EXISTS (SELECT 1 FROM snapshots WHERE "
                     "session_id = ?1 AND seq = ?5 AND substr(state, 1, length(?6)) = ?6)",
                     &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, session);
    sqlite3_bind_int64(stmt, 2, (sqlite3_int64)seq);
    sqlite3_bind_blob64(stmt, 3, state.len == 0 ? "" : state.ptr, state.len, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 4, created_at, -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 5, (sqlite3_int64)base_seq);
    sqlite3_bind_blob64(stmt, 6, base_begins.len == 0 ? "" : base_begins.ptr, base_begins.len,
                        SQLITE_STATIC);
    status = annal__db_run(stmt, err);
    if (status >= 0 && sqlite3_changes(index->derived.db) == 0)
        status = annal__fail(
            err, ANNAL_ERR_CONFLICT,
            "the snapshot of session '%.*s' at event %llu was deleted or replaced in the meantime",
            ANNAL_FMT(session), (unsigned long long)base_seq);
    return end_change(index, stmt, status, err);
}

annal_status annal__snapshot_rows_delete(annal_index *index, annal_slice session,
                                         const uint64_t *seqs, size_t count, uint32_t wait_ms,
                                         annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = begin_change(
        index, wait_ms, "DELETE FROM snapshots WHERE session_id = ?1 AND seq = ?2", &stmt, err);
    if (status < 0)
        return status;
    for (size_t i = 0; status >= 0 && i < count; i++) {
        annal__db_bind_text(stmt, 1, session);
        sqlite3_bind_int64(stmt, 2, (sqlite3_int64)seqs[i]);
        status = annal__db_run(stmt, err);
        sqlite3_reset(stmt);
    }
    return end_change(index, stmt, status, err);
}

annal_status annal__snapshot_rows_newest(annal_index *index, annal_slice session, uint64_t at_most,
                                         uint64_t *out_seq, annal_slice *out_state,
                                         annal_error *err)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__fallback_borrow(index, &db, err);
    if (status >= 0)
        status = annal__readers_prepare(db,
                                        "SELECT seq, state FROM snapshots WHERE session_id = ?1 "
                                        "AND seq <= ?2 ORDER BY seq DESC LIMIT 1",
                                        &stmt, err);
    if (status < 0)
        goto done;
    annal__db_bind_text(stmt, 1, session);
    sqlite3_bind_int64(stmt, 2, at_most > INT64_MAX ? INT64_MAX : (sqlite3_int64)at_most);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_DONE) {
        status =
            annal__fail(err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no snapshot up to event %llu",
                        ANNAL_FMT(session), (unsigned long long)at_most);
        goto done;
    }
    if (rc != SQLITE_ROW) {
        status = annal__db_fail(err, db, rc, "cannot read the snapshots of session '%.*s'",
                                ANNAL_FMT(session));
        goto done;
    }
    annal_slice state = annal__db_column(stmt, 1);
    char *copy = annal__zalloc(state.len + 1);
    if (copy == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "read a snapshot of %zu bytes: out of memory",
                             state.len);
        goto done;
    }
    if (state.len > 0)
        memcpy(copy, state.ptr, state.len);
    *out_state = (annal_slice){copy, state.len};
    *out_seq = (uint64_t)sqlite3_column_int64(stmt, 0);

done:
    annal__derived_give(&index->derived, db, true);
    return status;
}
