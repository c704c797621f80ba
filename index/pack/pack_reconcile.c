/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mending: changing the tables of a pack in place after its text changed, instead of rebuilding
 * them.
 *
 * (1) The tables of the current text are created in memory and compared with the
 *     existing tables, object by object.
 * (2) Mending is enough for new tables, new columns after the old ones (ALTER TABLE ... ADD
 *     COLUMN), and new or changed indexes and views. The handlers are unchanged in these cases, so
 *     no existing row would differ after a rebuild, and a new column contains its default in every
 *     row.
 * (3) For any other difference mending is not enough, and nothing is changed: a column that is
 *     missing or differs, another constraint, other rows that the pack itself inserts, other
 *     triggers (they might have written other rows).
 */
#include "index/pack/pack_reconcile.h"

#include "index/db/db.h"
#include "index/db/token.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"

#include <string.h>

/* ---- The tables of the current text, rule 1 ---- */

static annal_status hash_rows(sqlite3 *db, sqlite3_stmt *names, uint64_t *hash, annal_error *err)
{
    sqlite3_stmt *rows = NULL;
    char *sql = sqlite3_mprintf("SELECT * FROM main.\"%w\"", sqlite3_column_text(names, 0));
    if (sql == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compare the tables of a pack: out of memory");
    annal_status status = annal__db_prepare(db, sql, &rows, err);
    int rc = SQLITE_DONE;
    while (status >= 0 && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        *hash = annal__hash(sql, strlen(sql), *hash);
        for (int i = 0; i < sqlite3_column_count(rows); i++) {
            int type = sqlite3_column_type(rows, i);
            annal_slice value = annal__db_column(rows, i);
            *hash = annal__hash(&type, sizeof type, *hash);
            *hash = annal__hash(value.ptr == NULL ? "" : value.ptr, value.len, *hash);
        }
    }
    if (status >= 0 && rc != SQLITE_DONE)
        status = annal__db_fail(err, db, rc, "run the SQL statement '%.100s'", sql);
    sqlite3_finalize(rows);
    sqlite3_free(sql);
    return status;
}

/* Hash the parts of a pack's schema whose change requires a rebuild: its triggers, and the rows
 * that the pack inserts when it creates its tables. */
static annal_status hash_rest(sqlite3 *db, uint64_t *out, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(
        db,
        "SELECT name, sql, type = 'table' FROM sqlite_schema WHERE type IN ('table', 'trigger') "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, name",
        &stmt, err);
    int rc = SQLITE_DONE;
    *out = 0;
    while (status >= 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        annal_slice sql = annal__db_column(stmt, 1);
        if (sqlite3_column_int(stmt, 2))
            status = hash_rows(db, stmt, out, err);
        else
            *out = annal__hash(sql.ptr, sql.len, *out);
    }
    if (status >= 0 && rc != SQLITE_DONE)
        status = annal__db_fail(err, db, rc,
                                "cannot compare the tables of a pack with the SQL of the pack");
    sqlite3_finalize(stmt);
    return status;
}

annal_status annal__pack_fresh(const annal_pack *pack, sqlite3 **out_db, uint64_t *out_rest,
                               annal_error *err)
{
    sqlite3 *db = NULL;
    annal_status status =
        annal__db_open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, err);
    if (status >= 0)
        status = annal__pack_make_tables(pack, db, err);
    if (status >= 0)
        status = hash_rest(db, out_rest, err);
    if (status < 0)
        annal__db_close(db);
    else
        *out_db = db;
    return status;
}

/* ---- The parts of a table's definition ---- */

#define DEFINITIONS_MAX 200

/* A statement CREATE TABLE name (items[0], items[1], …) tail. */
struct definitions {
    annal_slice items[DEFINITIONS_MAX];
    size_t count;
    annal_slice tail;
};

static bool token_is_char(const struct token *token, char c)
{
    return token->kind == TOKEN_OTHER && token->text.ptr[0] == c;
}

static bool split(const char *sql, struct definitions *out)
{
    const char *at = sql;
    struct token token = annal__token_next(&at);
    while (token.kind != TOKEN_END && !token_is_char(&token, '(') && !annal__token_is(&token, "as"))
        token = annal__token_next(&at);
    if (!token_is_char(&token, '('))
        return false;
    const char *begin = at;
    out->count = 0;
    for (int depth = 1; depth > 0;) {
        token = annal__token_next(&at);
        if (token.kind == TOKEN_END || out->count == DEFINITIONS_MAX)
            return false;
        depth += token_is_char(&token, '(') - token_is_char(&token, ')');
        if (depth == 0 || (depth == 1 && token_is_char(&token, ','))) {
            out->items[out->count++] = (annal_slice){begin, (size_t)(token.text.ptr - begin)};
            begin = at;
        }
    }
    out->tail = annal_slice_of(at);
    return true;
}

static bool is_column(annal_slice definition)
{
    static const char *const constraints[] = {"constraint", "primary", "unique", "check",
                                              "foreign"};
    const char *at = definition.ptr;
    struct token token = annal__token_next(&at);
    for (size_t i = 0; i < sizeof constraints / sizeof *constraints; i++)
        if (annal__token_is(&token, constraints[i]))
            return false;
    return token.kind == TOKEN_WORD || token.kind == TOKEN_NAME;
}

/* Set extra to the definitions in fresh that old lacks. Returns false if the tables differ in any
 * other way. */
static bool take_extra(const struct definitions *old, const struct definitions *fresh,
                       struct definitions *extra)
{
    size_t same = 0;
    extra->count = 0;
    for (size_t i = 0; i < fresh->count; i++) {
        if (same < old->count && annal__token_same(old->items[same], fresh->items[i]))
            same++;
        else if (is_column(fresh->items[i]) && (same == old->count || !is_column(old->items[same])))
            extra->items[extra->count++] = fresh->items[i];
        else
            return false;
    }
    return same == old->count && annal__token_same(old->tail, fresh->tail);
}

/* ---- Object by object, rule 2 ---- */

struct reconcile {
    sqlite3 *db;
    const annal_pack *pack;
    bool enough;
    struct definitions old, fresh, extra;
};

/* Run a statement that we composed. If SQLite does not accept it, changing the existing tables is
 * not enough: work->enough becomes false, and the result is ANNAL_OK. */
static annal_status try_exec(struct reconcile *work, char *sql, annal_error *err)
{
    if (sql == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "update the tables of pack '%s': out of memory",
                           work->pack->name);
    annal_error why = {0};
    annal_status status = annal__db_exec(work->db, sql, &why);
    sqlite3_free(sql);
    if (status == ANNAL_ERR_SQL) {
        work->enough = false;
        return ANNAL_OK;
    }
    return annal__error_pass(err, status, &why);
}

static annal_status add_columns(struct reconcile *work, const char *name, const char *old,
                                const char *fresh, annal_error *err)
{
    annal_status status = ANNAL_OK;
    work->enough = split(old, &work->old) && split(fresh, &work->fresh) &&
                   take_extra(&work->old, &work->fresh, &work->extra);
    for (size_t i = 0; status >= 0 && work->enough && i < work->extra.count; i++)
        status = try_exec(work,
                          sqlite3_mprintf("ALTER TABLE main.\"%w\" ADD COLUMN %.*s", name,
                                          ANNAL_FMT(work->extra.items[i])),
                          err);
    return status;
}

/* Change the existing object to one row of the schema in memory (type, name, sql). old: SQL of the
 * existing object, or NULL. */
static annal_status reconcile_object(struct reconcile *work, sqlite3_stmt *object, const char *old,
                                     annal_error *err)
{
    const char *type = (const char *)sqlite3_column_text(object, 0);
    const char *name = (const char *)sqlite3_column_text(object, 1);
    const char *sql = (const char *)sqlite3_column_text(object, 2);
    annal_status status = ANNAL_OK;
    if (type == NULL || name == NULL || sql == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "update the tables of pack '%s': out of memory",
                           work->pack->name);
    if (old != NULL && annal__token_same(annal_slice_of(old), annal_slice_of(sql)))
        return ANNAL_OK;
    if (old != NULL && strcmp(type, "table") == 0)
        return add_columns(work, name, old, sql, err);
    if (old != NULL && strcmp(type, "trigger") == 0) {
        work->enough = false;
        return ANNAL_OK;
    }
    if (old != NULL)
        status = try_exec(work, sqlite3_mprintf("DROP %s main.\"%w\"", type, name), err);
    return status < 0 ? status : try_exec(work, sqlite3_mprintf("%s", sql), err);
}

static annal_status each_object(struct reconcile *work, sqlite3 *fresh, annal_error *err)
{
    sqlite3_stmt *objects = NULL, *find = NULL;
    annal_status status = annal__db_prepare(
        fresh,
        "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type = 'table' DESC, rowid",
        &objects, err);
    if (status >= 0)
        status = annal__db_prepare(
            work->db, "SELECT sql FROM main.sqlite_schema WHERE type = ?1 AND name = ?2", &find,
            err);
    int rc = SQLITE_DONE;
    while (status >= 0 && work->enough && (rc = sqlite3_step(objects)) == SQLITE_ROW) {
        annal__db_bind_text(find, 1, annal__db_column(objects, 0));
        annal__db_bind_text(find, 2, annal__db_column(objects, 1));
        char *old = sqlite3_step(find) == SQLITE_ROW
                        ? sqlite3_mprintf("%s", sqlite3_column_text(find, 0))
                        : NULL;
        sqlite3_reset(find); /* end this SELECT first, because the schema is altered now */
        status = reconcile_object(work, objects, old, err);
        sqlite3_free(old);
    }
    if (status >= 0 && work->enough && rc != SQLITE_DONE)
        status = annal__db_fail(err, fresh, rc, "cannot update the tables of pack '%s'",
                                work->pack->name);
    sqlite3_finalize(objects);
    sqlite3_finalize(find);
    return status;
}

/* Check that the current text still creates every object that the pack created earlier. If not, the
 * existing tables cannot be changed in place: work->enough becomes false. */
static annal_status nothing_is_gone(struct reconcile *work, sqlite3 *fresh, annal_error *err)
{
    sqlite3_stmt *made = NULL, *find = NULL;
    annal_status status =
        annal__db_prepare(work->db, "SELECT type, name FROM _object WHERE pack = ?1", &made, err);
    if (status >= 0)
        status = annal__db_prepare(
            fresh, "SELECT 1 FROM sqlite_schema WHERE type = ?1 AND name = ?2", &find, err);
    if (status >= 0)
        annal__db_bind_text(made, 1, annal_slice_of(work->pack->name));
    while (status >= 0 && work->enough && sqlite3_step(made) == SQLITE_ROW) {
        annal__db_bind_text(find, 1, annal__db_column(made, 0));
        annal__db_bind_text(find, 2, annal__db_column(made, 1));
        work->enough = sqlite3_step(find) == SQLITE_ROW;
        sqlite3_reset(find);
    }
    sqlite3_finalize(made);
    sqlite3_finalize(find);
    return status;
}

annal_status annal__pack_reconcile(sqlite3 *db, const annal_pack *pack, sqlite3 *fresh,
                                   bool *out_enough, annal_error *err)
{
    struct reconcile *work = annal__zalloc(sizeof *work);
    if (work == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "update the tables of pack '%s': out of memory",
                           pack->name);
    work->db = db;
    work->pack = pack;
    work->enough = true;
    annal_status status = annal__db_exec(db, "SAVEPOINT reconcile", err);
    if (status >= 0)
        status = nothing_is_gone(work, fresh, err);
    if (status >= 0 && work->enough)
        status = each_object(work, fresh, err);
    if (status >= 0 && !work->enough)
        status = annal__db_exec(db, "ROLLBACK TO reconcile", err);
    if (status >= 0)
        status = annal__db_exec(db, "RELEASE reconcile", err);
    if (status >= 0)
        *out_enough = work->enough;
    annal__free(work);
    return status;
}
