/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/shape.h"

#include "index/db/db.h"
#include "index/db/token.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"

#include <string.h>

static const struct {
    const char *head, *type;
} heads[] = {
    {"CREATE TABLE ", "table"}, {"CREATE INDEX ", "index"},     {"CREATE UNIQUE INDEX ", "index"},
    {"CREATE VIEW ", "view"},   {"CREATE TRIGGER ", "trigger"}, {"CREATE VIRTUAL TABLE ", "table"},
};

/* Split a CREATE statement, which ends at a NUL, into type, head and rest; the name is not set.
 * Returns false for any other statement. */
static bool split(const char *text, struct shape_object *out)
{
    static const char unless[] = "IF NOT EXISTS ";
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        size_t len = strlen(heads[i].head);
        if (strncmp(text, heads[i].head, len) != 0)
            continue;
        const char *rest = text + len;
        if (strncmp(rest, unless, sizeof unless - 1) == 0)
            rest += sizeof unless - 1;
        *out = (struct shape_object){
            .type = heads[i].type, .head = {text, len}, .sql = annal_slice_of(rest)};
        return true;
    }
    return false;
}

static bool is_run(const struct shape_object *object)
{
    return strcmp(object->type, "table") != 0;
}

static annal_status add_object(struct shape *shape, const struct shape_object *object,
                               annal_error *err)
{
    struct shape_object *added =
        annal__array_add(&shape->objects, &shape->count, sizeof *shape->objects);
    if (added == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compare the tables of a database: out of memory");
    *added = *object;
    return ANNAL_OK;
}

/* ---- The expected objects, rule 1 ---- */

/* Set the name of an object, and the name of its table, from its SQL. */
static void find_names(struct shape_object *object)
{
    const char *at = object->sql.ptr;
    struct token token = annal__token_next(&at);
    object->name = object->table = annal__token_name(&token);
    if (strcmp(object->type, "index") != 0 && strcmp(object->type, "trigger") != 0)
        return;
    while (token.kind != TOKEN_END && !annal__token_is(&token, "on"))
        token = annal__token_next(&at);
    token = annal__token_next(&at);
    object->table = annal__token_name(&token);
}

annal_status annal__shape_of_text(struct shape *shape, const char *text, annal_error *err)
{
    annal_status status = ANNAL_OK;
    struct shape_object object;
    for (const char *line = text; status >= 0 && line != NULL;) {
        if (*line == 'C' && split(line, &object)) {
            const char *sql = object.sql.ptr, *end_word = "\nEND;";
            bool has_end = strcmp(object.type, "trigger") == 0;
            const char *end = strstr(sql, has_end ? end_word : ";\n");
            if (end != NULL)
                object.sql.len = (size_t)(end - sql) + (has_end ? strlen("\nEND") : 0);
            find_names(&object);
            status = add_object(shape, &object, err);
            line = end;
        }
        line = line == NULL ? NULL : strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return status;
}

annal_status annal__shape_of_database(struct shape *shape, sqlite3 *db, annal_error *err)
{
    static const char select[] =
        "SELECT name, tbl_name, sql FROM main.sqlite_schema WHERE sql <> '' AND name <> '_state' "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    struct buf text = {0};
    struct shape_object object;
    sqlite3_stmt *stmt = NULL;
    int rc = SQLITE_DONE;
    annal_status status = annal__db_prepare(db, select, &stmt, err);
    while (status >= 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        for (int i = 0; status >= 0 && i < 3; i++) {
            annal_slice value = annal__db_column(stmt, i);
            annal__buf_append_slice(&text, value);
            status = annal__buf_append(&text, "", 1);
        }
    if (status >= 0 && rc != SQLITE_DONE)
        status = annal__db_fail(
            err, db, rc, "cannot compare the tables of a database of the index with the packs");
    sqlite3_finalize(stmt);
    const char *end = text.ptr + text.len;
    for (const char *at = text.ptr; status >= 0 && at < end;) {
        const char *table = at + strlen(at) + 1, *sql = table + strlen(table) + 1;
        if (split(sql, &object)) {
            object.name = annal_slice_of(at);
            object.table = annal_slice_of(table);
            status = add_object(shape, &object, err);
        }
        at = sql + strlen(sql) + 1;
    }
    if (status == ANNAL_ERR_NOMEM)
        annal__fail(err, status,
                    "cannot compare the tables of a database of the index with the packs");
    shape->copy = text.ptr;
    if (status < 0)
        annal__shape_done(shape); /* free the objects with the text, to which they point */
    return status < 0 ? status : ANNAL_OK;
}

void annal__shape_done(struct shape *shape)
{
    annal__free(shape->objects);
    annal__free(shape->copy);
    *shape = (struct shape){0};
}

/* ---- The objects in a file ---- */

/* A row of sqlite_schema. */
struct row {
    const char *type, *name, *table, *sql;
    bool whole; /* whether each of type, name, table and sql is a text without a NUL inside */
};

static annal_status prepare_rows(sqlite3 *db, const char *schema, sqlite3_stmt **out_stmt,
                                 annal_error *err)
{
    char *sql = sqlite3_mprintf(
        "SELECT type, name, tbl_name, sql FROM \"%w\".sqlite_schema WHERE sql <> ''", schema);
    annal_status status =
        sql == NULL
            ? annal__fail(err, ANNAL_ERR_NOMEM, "compare the tables of a database: out of memory")
            : annal__db_prepare(db, sql, out_stmt, err);
    sqlite3_free(sql);
    return status;
}

static struct row read_row(sqlite3_stmt *stmt)
{
    const char *text[4];
    bool whole = true;
    for (int i = 0; i < 4; i++) {
        text[i] = (const char *)sqlite3_column_text(stmt, i);
        if (text[i] == NULL || strlen(text[i]) != (size_t)sqlite3_column_bytes(stmt, i)) {
            text[i] = "?";
            whole = false;
        }
    }
    return (struct row){text[0], text[1], text[2], text[3], whole};
}

static bool is_sqlite_s(const struct row *row)
{
    static const char *const own[][2] = {
        {"sqlite_sequence", "CREATE TABLE sqlite_sequence(name,seq)"},
        {"sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"},
        {"sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"},
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(row->name, own[i][0]) == 0)
            return strcmp(row->sql, own[i][1]) == 0 && strcmp(row->type, "table") == 0;
    return false;
}

/* Return the object with the name of the row and, unless any_type, with its type; NULL if there is
 * none. */
static const struct shape_object *find(const struct shape *shape, const struct row *row,
                                       bool any_type)
{
    size_t len = strlen(row->name);
    for (size_t i = 0; i < shape->count; i++) {
        const struct shape_object *object = &shape->objects[i];
        if (object->name.len == len && (any_type || strcmp(object->type, row->type) == 0) &&
            sqlite3_strnicmp(object->name.ptr, row->name, (int)len) == 0)
            return object;
    }
    return NULL;
}

/* Return whether a row has the type, name, table and SQL of this object (rule 3). */
static bool is_same(const struct shape_object *object, const struct row *row)
{
    struct shape_object found;
    return row->whole && split(row->sql, &found) && strcmp(row->type, object->type) == 0 &&
           annal__slice_is(object->name, row->name) && annal__slice_is(object->table, row->table) &&
           annal__slice_same(found.head, object->head) &&
           (annal__slice_same(found.sql, object->sql) || annal__token_same(found.sql, object->sql));
}

static bool is_known(const struct row *row, struct shape_part *parts, size_t count)
{
    bool known = is_sqlite_s(row);
    for (size_t i = 0; i < count; i++) {
        const struct shape_object *object = find(parts[i].shape, row, false);
        if (object != NULL && is_same(object, row)) {
            parts[i].found++;
            known = true;
        }
    }
    return known;
}

static annal_status fail_row(sqlite3 *db, const char *schema, const struct row *row,
                             const char *what, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "the database '%s' has an unexpected schema: %.10s '%.100s' %s",
                       sqlite3_db_filename(db, schema), row->type, row->name, what);
}

/* Set `differs` in each part that has another object with the name of this row. Fails if such a
 * part must be unchanged, or if no part has such an object and open is not set. */
static annal_status note_unknown(sqlite3 *db, const char *schema, const struct row *row,
                                 struct shape_part *parts, size_t count, bool open,
                                 annal_error *err)
{
    struct shape_object found;
    bool noted = false;
    for (size_t i = 0; i < count; i++) {
        const bool fixed = parts[i].ours || open;
        const struct shape_object *object = find(parts[i].shape, row, fixed);
        if (object == NULL)
            continue;
        /* refuse a row whose type is not the type in its SQL: annal__shape_drop_moves() could not
         * drop the object */
        if (fixed || !row->whole || !split(row->sql, &found) || strcmp(found.type, row->type) != 0)
            return fail_row(db, schema, row, "is not what annal created", err);
        parts[i].differs = noted = true;
        parts[i].moves |= is_run(&found);
    }
    if (noted || open)
        return ANNAL_OK;
    return fail_row(
        db, schema, row,
        parts[count - 1].ours ? "was not created by annal" : "belongs to no enabled pack", err);
}

annal_status annal__shape_compare(sqlite3 *db, const char *schema, struct shape_part *parts,
                                  size_t count, bool open, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = SQLITE_DONE;
    annal_status status = prepare_rows(db, schema, &stmt, err);
    while (status >= 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const struct row row = read_row(stmt);
        if (!is_known(&row, parts, count))
            status = note_unknown(db, schema, &row, parts, count, open, err);
    }
    if (status >= 0 && rc != SQLITE_DONE)
        status = annal__db_fail(err, db, rc,
                                "cannot compare the tables of the database '%s' with the packs",
                                sqlite3_db_filename(db, schema));
    sqlite3_finalize(stmt);
    for (size_t i = 0; status >= 0 && i < count; i++)
        if (parts[i].ours && parts[i].found != parts[i].shape->count)
            status = annal__fail(
                err, ANNAL_ERR_CORRUPT,
                "the database '%s' has an unexpected schema: a table that annal created is missing",
                sqlite3_db_filename(db, schema));
    return status;
}

/* Find the first index, view or trigger in the database that equals no expected object, and compose
 * a statement that drops this object; *out_sql is NULL if every object is expected. */
static annal_status next_drop(sqlite3 *db, struct shape_part *parts, size_t count, char **out_sql,
                              annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = SQLITE_DONE;
    annal_status status = prepare_rows(db, "main", &stmt, err);
    *out_sql = NULL;
    while (status >= 0 && *out_sql == NULL && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const struct row row = read_row(stmt);
        struct shape_object object;
        if (is_known(&row, parts, count) || !split(row.sql, &object) || !is_run(&object))
            continue;
        *out_sql = sqlite3_mprintf("DROP %s main.\"%w\"", object.type, row.name);
        if (*out_sql == NULL)
            status = annal__fail(err, ANNAL_ERR_NOMEM,
                                 "compare the tables of a database: out of memory");
    }
    if (status >= 0 && *out_sql == NULL && rc != SQLITE_DONE)
        status = annal__db_fail(
            err, db, rc, "cannot compare the tables of a database of the index with the packs");
    sqlite3_finalize(stmt);
    return status;
}

annal_status annal__shape_drop_moves(sqlite3 *db, struct shape_part *parts, size_t count,
                                     annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (bool more = true; status >= 0 && more;) {
        char *sql = NULL;
        status = next_drop(db, parts, count, &sql, err);
        more = sql != NULL;
        if (status >= 0 && more)
            status = annal__db_exec(db, sql, err);
        sqlite3_free(sql);
    }
    return status;
}
