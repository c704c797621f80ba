/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/shape.h"

#include "index/db/db.h"
#include "journal/base/hash.h"

/* A file of an older version does not have this table. */
static const char make_sql[] = "CREATE TABLE IF NOT EXISTS _shape (owner TEXT NOT NULL, type TEXT "
                               "NOT NULL, name TEXT NOT NULL,"
                               " sql TEXT, PRIMARY KEY(owner, type, name)) WITHOUT ROWID";

static annal_status run_for(sqlite3 *db, const char *sql, const char *owner, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(db, sql, &stmt, err);
    if (status >= 0) {
        annal__db_bind_text(stmt, 1, annal_slice_of(owner));
        status = annal__db_run(stmt, err);
    }
    sqlite3_finalize(stmt);
    return status;
}

annal_status annal__shape_note_own(sqlite3 *db, annal_error *err)
{
    return run_for(db,
                   "INSERT INTO _shape SELECT ?1, type, name, sql FROM sqlite_schema "
                   "WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
                   "", err);
}

annal_status annal__shape_note_pack(sqlite3 *db, const char *pack, annal_error *err)
{
    annal_status status = annal__db_exec(db, make_sql, err);
    if (status >= 0)
        status = run_for(db, "DELETE FROM _shape WHERE owner = ?1", pack, err);
    if (status >= 0)
        status =
            run_for(db,
                    "INSERT INTO _shape SELECT o.pack, s.type, s.name, s.sql FROM _object AS o "
                    "JOIN sqlite_schema AS s ON s.type = o.type AND s.name = o.name "
                    "WHERE o.pack = ?1",
                    pack, err);
    return status;
}

/*
 * Compute a key for the database and its schema; 0, which is never remembered, if they cannot be
 * read.
 */
static uint64_t key_of(sqlite3 *db)
{
    int64_t parts[2] = {0, 0};
    if (annal__db_integer(db, "SELECT id FROM main._stamp", &parts[0], NULL) < 0 ||
        annal__db_integer(db, "PRAGMA main.schema_version", &parts[1], NULL) < 0)
        return 0;
    return annal__hash(parts, sizeof parts, 0);
}

/* If a table of ours is missing, this statement cannot even be prepared. */
static annal_status compare(sqlite3 *db, const char *owner, bool *out_holds, annal_error *err)
{
    static const char select[] =
        "SELECT EXISTS (SELECT 1 FROM main._shape WHERE owner = ?1) AND NOT EXISTS ("
        " SELECT 1 FROM main._shape AS made LEFT JOIN main.sqlite_schema AS now"
        " ON now.type = made.type AND now.name = made.name"
        " WHERE made.owner = ?1 AND now.sql IS NOT made.sql)";
    sqlite3_stmt *stmt = NULL;
    annal_error why = {0};
    annal_status status = annal__db_prepare(db, select, &stmt, &why);
    *out_holds = false;
    if (status == ANNAL_ERR_SQL)
        return ANNAL_OK;
    if (status < 0) {
        if (err != NULL)
            *err = why;
        return status;
    }
    annal__db_bind_text(stmt, 1, annal_slice_of(owner));
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *out_holds = sqlite3_column_int(stmt, 0) != 0;
    else
        status = annal__db_fail(err, db, rc, "what the tables were made as");
    sqlite3_finalize(stmt);
    return status;
}

annal_status annal__shape_holds(sqlite3 *db, const char *pack, struct shape_seen *seen,
                                bool *out_holds, annal_error *err)
{
    uint64_t key = seen == NULL ? 0 : key_of(db);
    *out_holds = key != 0 && atomic_load(&seen->key) == key;
    if (*out_holds)
        return ANNAL_OK;
    annal_status status = compare(db, pack == NULL ? "" : pack, out_holds, err);
    if (status >= 0 && *out_holds && key != 0)
        atomic_store(&seen->key, key);
    return status;
}
