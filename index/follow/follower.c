/* SPDX-License-Identifier: Apache-2.0 */
#include "index/follow/follower.h"

#include "index/db/db.h"

#include <stdio.h>

#define SELECT_BYTES 512

/* Compose a SELECT of cursors, with the pack's condition if the follower is a pack: before, when,
 * condition, after. A pack's name needs no quoting in SQL. */
static const char *put_select(const struct follower *follower, const char *before, const char *when,
                              const char *after, char out[SELECT_BYTES])
{
    if (follower->pack == NULL)
        snprintf(out, SELECT_BYTES, "%s%s", before, after);
    else
        snprintf(out, SELECT_BYTES, "%s%s pack = '%.100s'%s", before, when, follower->pack, after);
    return out;
}

static const char *select_cursor(const struct follower *follower, char out[SELECT_BYTES])
{
    return put_select(follower, "SELECT seq, offset, h FROM _cursor WHERE session_id = ?1", " AND",
                      "", out);
}

annal_status annal__follower_get_cursor(const struct follower *follower, sqlite3 *db,
                                        sqlite3_stmt **out_stmt, annal_error *err)
{
    char sql[SELECT_BYTES];
    return annal__db_prepare(db, select_cursor(follower, sql), out_stmt, err);
}

annal_status annal__follower_kept_cursor(const struct follower *follower, sqlite3 *db,
                                         sqlite3_stmt **out_stmt, annal_error *err)
{
    char sql[SELECT_BYTES];
    return annal__readers_prepare(db, select_cursor(follower, sql), out_stmt, err);
}

annal_status annal__follower_all_cursors(const struct follower *follower, sqlite3 *db,
                                         sqlite3_stmt **out_stmt, annal_error *err)
{
    char sql[SELECT_BYTES];
    put_select(follower, "SELECT seq, offset, h, session_id FROM _cursor", " WHERE",
               " ORDER BY session_id", sql);
    return annal__db_prepare(db, sql, out_stmt, err);
}

annal_status annal__follower_note_settled(struct follower *follower, annal_error *err)
{
    char put[300], drop[300];
    snprintf(put, sizeof put,
             "INSERT INTO _cursor (pack, session_id, seq, offset, h) "
             "VALUES ('%.100s settled', ?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
             follower->pack);
    snprintf(drop, sizeof drop,
             "DELETE FROM _cursor WHERE pack = '%.100s settled' AND session_id = ?1",
             follower->pack);
    annal_status status =
        annal__db_prepare(follower->derived->db, put, &follower->put_settled, err);
    return status < 0
               ? status
               : annal__db_prepare(follower->derived->db, drop, &follower->drop_settled, err);
}

annal_status annal__follower_open(struct follower *follower, annal_error *err)
{
    sqlite3 *db = follower->derived->db;
    const char *put_cursor =
        "INSERT INTO _cursor (session_id, seq, offset, h) VALUES (?1, ?2, ?3, ?4) "
        "ON CONFLICT (session_id) DO UPDATE SET seq = excluded.seq, offset = excluded.offset, "
        "h = excluded.h";
    const char *insert_finding =
        "INSERT INTO _findings (session_id, seq, offset, length, kind, what) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
    char pack_cursor[400], pack_finding[400];
    if (follower->pack != NULL) {
        snprintf(pack_cursor, sizeof pack_cursor,
                 "INSERT INTO _cursor (pack, session_id, seq, offset, h) "
                 "VALUES ('%.100s', ?1, ?2, ?3, ?4) ON CONFLICT (pack, session_id) DO UPDATE SET "
                 "seq = excluded.seq, offset = excluded.offset, h = excluded.h",
                 follower->pack);
        snprintf(pack_finding, sizeof pack_finding,
                 "INSERT INTO _findings (pack, session_id, seq, offset, length, kind, what) "
                 "VALUES ('%.100s', ?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
                 follower->pack);
        put_cursor = pack_cursor;
        insert_finding = pack_finding;
    }
    annal_status status = annal__follower_get_cursor(follower, db, &follower->get_cursor, err);
    if (status >= 0)
        status = annal__db_prepare(db, put_cursor, &follower->put_cursor, err);
    return status < 0 ? status
                      : annal__db_prepare(db, insert_finding, &follower->insert_finding, err);
}

void annal__follower_close(struct follower *follower)
{
    sqlite3_finalize(follower->get_cursor);
    sqlite3_finalize(follower->put_cursor);
    sqlite3_finalize(follower->insert_finding);
    sqlite3_finalize(follower->put_settled);
    sqlite3_finalize(follower->drop_settled);
    follower->get_cursor = follower->put_cursor = follower->insert_finding = NULL;
    follower->put_settled = follower->drop_settled = NULL;
}

annal_status annal__follower_put(sqlite3_stmt *stmt, annal_slice session, annal_position position,
                                 annal_error *err)
{
    annal__db_bind_text(stmt, 1, session);
    sqlite3_bind_int64(stmt, 2, (sqlite3_int64)position.seq);
    sqlite3_bind_int64(stmt, 3, (sqlite3_int64)position.offset);
    sqlite3_bind_int64(stmt, 4, (sqlite3_int64)position.h_before);
    return annal__db_run(stmt, err);
}

annal_status annal__follower_finding(struct follower *follower, const annal_index_finding *finding,
                                     annal_error *err)
{
    sqlite3_stmt *stmt = follower->insert_finding;
    annal__db_bind_text(stmt, 1, finding->session);
    sqlite3_bind_int64(stmt, 2, (sqlite3_int64)finding->seq);
    sqlite3_bind_int64(stmt, 3, (sqlite3_int64)finding->offset);
    sqlite3_bind_int64(stmt, 4, (sqlite3_int64)finding->length);
    annal__db_bind_text(stmt, 5, finding->kind);
    annal__db_bind_text(stmt, 6, finding->what);
    return annal__db_run(stmt, err);
}

annal_index_finding annal__follower_read_finding(sqlite3_stmt *stmt)
{
    return (annal_index_finding){.session = annal__db_column(stmt, 0),
                                 .seq = (uint64_t)sqlite3_column_int64(stmt, 1),
                                 .offset = (uint64_t)sqlite3_column_int64(stmt, 2),
                                 .length = (uint64_t)sqlite3_column_int64(stmt, 3),
                                 .kind = annal__db_column(stmt, 4),
                                 .what = annal__db_column(stmt, 5)};
}

annal_status annal__follower_settle(struct follower *follower, annal_slice session, uint64_t next,
                                    annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (follower->ops->settle != NULL)
        status = follower->ops->settle(follower, session, next - 1, err);
    if (status >= 0 && follower->drop_settled != NULL) {
        annal__db_bind_text(follower->drop_settled, 1, session);
        status = annal__db_run(follower->drop_settled, err);
    }
    return status;
}

annal_status annal__follower_put_off(struct follower *follower, annal_slice session,
                                     annal_position settled, annal_error *err)
{
    sqlite3_stmt *stmt = follower->put_settled;
    return stmt == NULL ? ANNAL_OK : annal__follower_put(stmt, session, settled, err);
}

bool annal__follower_feeds(const struct follower *follower, annal_slice session)
{
    return follower->ops->feeds == NULL || follower->ops->feeds(follower, session);
}
