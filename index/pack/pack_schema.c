/* SPDX-License-Identifier: Apache-2.0 */
#include "index/pack/pack_schema.h"

#include "index/db/db.h"
#include "index/index.h"
#include "index/pack/outbox.h"
#include "index/pack/pack_reconcile.h"
#include "journal/base/error.h"

#include <stdio.h>

/* ---- Dropping and creating ---- */

/* Run a statement on the pack's database; its parameter ?1 is the pack's name. */
static annal_status run_for_pack(struct pack_fill *fill, const char *sql, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(pack_fill_db(fill), sql, &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(fill->slot->name));
    status = annal__db_run(stmt, err);
    sqlite3_finalize(stmt);
    return status;
}

/* Compose a statement that drops an object of this pack; *out_sql is NULL if no object is left. */
static annal_status next_drop(struct pack_fill *fill, char **out_sql, annal_error *err)
{
    /* The statement that finds the next object to drop. Views and triggers come first, because they
     * refer to tables; indexes are dropped with their tables. */
    static const char select[] =
        "SELECT o.type, o.name FROM _object AS o JOIN sqlite_schema AS s ON s.type = o.type "
        "AND s.name = o.name WHERE o.pack = ?1 "
        "ORDER BY o.type = 'trigger' DESC, o.type = 'view' DESC, o.type = 'index' DESC LIMIT 1";
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(pack_fill_db(fill), select, &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(fill->slot->name));
    *out_sql = NULL;
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        *out_sql = sqlite3_mprintf("DROP %s main.\"%w\"", sqlite3_column_text(stmt, 0),
                                   sqlite3_column_text(stmt, 1));
        if (*out_sql == NULL)
            status =
                annal__fail(err, ANNAL_ERR_NOMEM, "compare the tables of a pack: out of memory");
    } else if (rc != SQLITE_DONE) {
        status = annal__db_fail(err, pack_fill_db(fill), rc,
                                "cannot update the tables of pack '%s'", fill->slot->name);
    }
    sqlite3_finalize(stmt);
    return status;
}

static annal_status drop_tables(struct pack_fill *fill, annal_error *err)
{
    annal_status status = ANNAL_OK;
    char *sql = NULL;
    do {
        sqlite3_free(sql);
        sql = NULL;
        status = next_drop(fill, &sql, err);
        if (status >= 0 && sql != NULL)
            status = annal__db_exec(pack_fill_db(fill), sql, err);
    } while (status >= 0 && sql != NULL);
    sqlite3_free(sql);
    return status < 0 ? status : run_for_pack(fill, "DELETE FROM _object WHERE pack = ?1", err);
}

/* Record the objects that were created after `before` (a rowid of sqlite_schema) in _object, so
 * that they can be dropped later. */
static annal_status note_objects(struct pack_fill *fill, int64_t before, annal_error *err)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "INSERT OR IGNORE INTO _object SELECT ?1, type, name FROM sqlite_schema "
             "WHERE rowid > %lld AND name NOT LIKE 'sqlite\\_%%' ESCAPE '\\'",
             (long long)before);
    return run_for_pack(fill, sql, err);
}

static annal_status last_object(struct pack_fill *fill, int64_t *out, annal_error *err)
{
    return annal__db_integer(pack_fill_db(fill), "SELECT IFNULL(MAX(rowid), 0) FROM sqlite_schema",
                             out, err);
}

static annal_status make_tables(struct pack_fill *fill, annal_error *err)
{
    int64_t before = 0;
    annal_status status = last_object(fill, &before, err);
    if (status >= 0)
        status = annal__pack_make_tables(fill->slot->pack, pack_fill_db(fill), err);
    return status < 0 ? status : note_objects(fill, before, err);
}

static annal_status note_made(struct pack_fill *fill, uint64_t rest_hash, annal_error *err)
{
    const annal_pack *pack = fill->slot->pack;
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(
        pack_fill_db(fill), "INSERT OR REPLACE INTO _pack VALUES (?1, ?2, ?3, ?4, ?5)", &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(pack->name));
    sqlite3_bind_int64(stmt, 2, pack->version);
    sqlite3_bind_int64(stmt, 3, (sqlite3_int64)pack->tables_hash);
    sqlite3_bind_int64(stmt, 4, (sqlite3_int64)rest_hash);
    sqlite3_bind_int64(stmt, 5, (sqlite3_int64)(pack->handlers_hash + INDEX_CODE_VERSION));
    status = annal__db_run(stmt, err);
    sqlite3_finalize(stmt);
    return status;
}

annal_status annal__pack_schema_remake(struct pack_fill *fill, annal_error *err)
{
    bool writable = fill->slot->pack->writable;
    sqlite3 *fresh = NULL;
    uint64_t rest_hash = 0;
    annal_status status = annal__pack_fresh(fill->slot->pack, &fresh, &rest_hash, err);
    annal__db_close(fresh);
    fill->follower.was_emptied = true;
    if (status >= 0)
        status = annal__derived_renew(fill->follower.derived, err);
    /* the note says up to where the tables are filled, and they are empty now: index_lock.h, rule
     * (5) */
    if (status >= 0)
        annal__index_lock_note_wipe(&fill->follower.derived->lock);
    if (status >= 0 && writable)
        status = annal__outbox_drop(pack_fill_db(fill), err);
    if (status >= 0)
        status = drop_tables(fill, err);
    if (status >= 0)
        status =
            run_for_pack(fill, "DELETE FROM _cursor WHERE pack IN (?1, ?1 || ' settled')", err);
    if (status >= 0)
        status = run_for_pack(fill, "DELETE FROM _findings WHERE pack = ?1", err);
    if (status >= 0)
        status = run_for_pack(fill, "DELETE FROM _pack WHERE name = ?1", err);
    if (status >= 0)
        status = make_tables(fill, err);
    if (status >= 0 && writable)
        status = annal__outbox_make(pack_fill_db(fill), err);
    return status < 0 ? status : note_made(fill, rest_hash, err);
}

/* ---- The text of the existing tables ---- */

static annal_status prepare_made(sqlite3 *db, const char *schema, sqlite3_stmt **out_stmt,
                                 annal_error *err)
{
    char *sql = sqlite3_mprintf("SELECT version, tables_hash, rest_hash, handlers_hash FROM "
                                "\"%w\"._pack WHERE name = ?1",
                                schema);
    annal_status status = sql == NULL
                              ? annal__fail(err, ANNAL_ERR_NOMEM,
                                            "list the tables that a pack created: out of memory")
                              : annal__db_prepare(db, sql, out_stmt, err);
    sqlite3_free(sql);
    return status;
}

static annal_status step_made(const struct pack_fill *fill, sqlite3_stmt *stmt, struct made *out,
                              annal_error *err)
{
    annal_status status = ANNAL_OK;
    annal__db_bind_text(stmt, 1, annal_slice_of(fill->slot->name));
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *out = (struct made){
            true, sqlite3_column_int64(stmt, 0), (uint64_t)sqlite3_column_int64(stmt, 1),
            (uint64_t)sqlite3_column_int64(stmt, 2), (uint64_t)sqlite3_column_int64(stmt, 3)};
    else if (rc != SQLITE_DONE)
        status = annal__db_fail(err, sqlite3_db_handle(stmt), rc,
                                "cannot list the tables that pack '%s' created", fill->slot->name);
    sqlite3_reset(stmt);
    return status;
}

annal_status annal__pack_schema_made_read(const struct pack_fill *fill, sqlite3 *db,
                                          const char *schema, struct made *out, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = prepare_made(db, schema, &stmt, err);
    if (status >= 0)
        status = step_made(fill, stmt, out, err);
    sqlite3_finalize(stmt);
    return status;
}

annal_status annal__pack_schema_made_read_own(struct pack_fill *fill, struct made *out,
                                              annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (fill->get_made == NULL)
        status = prepare_made(pack_fill_db(fill), "main", &fill->get_made, err);
    return status < 0 ? status : step_made(fill, fill->get_made, out, err);
}

bool annal__pack_schema_made_is_same(const struct made *made, const annal_pack *pack)
{
    return made->known && made->tables_hash == pack->tables_hash &&
           made->handlers_hash == pack->handlers_hash + INDEX_CODE_VERSION;
}

annal_status annal__pack_schema_mend(struct pack_fill *fill, const struct made *made,
                                     bool *out_mended, annal_error *err)
{
    const annal_pack *pack = fill->slot->pack;
    sqlite3 *fresh = NULL;
    uint64_t rest_hash = 0;
    int64_t before = 0;
    annal_status status = annal__pack_fresh(pack, &fresh, &rest_hash, err);
    if (status >= 0 && rest_hash == made->rest_hash)
        status = last_object(fill, &before, err);
    if (status >= 0 && rest_hash == made->rest_hash)
        status = annal__pack_reconcile(pack_fill_db(fill), pack, fresh, out_mended, err);
    if (status >= 0 && *out_mended)
        status = note_objects(fill, before, err);
    if (status >= 0 && *out_mended)
        status = note_made(fill, rest_hash, err);
    annal__db_close(fresh);
    return status;
}
