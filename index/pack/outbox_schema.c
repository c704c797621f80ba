/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What users create in a writable database: tables (x_ by convention), columns, indexes, views,
 * triggers. _outbox_schema contains each object as it was when the schema was last compared.
 * Differences are put into the outbox as SQL that makes the same change again, with the rows that
 * no trigger captured.
 *
 * (1) Names that begin with _ are ours, names that begin with sqlite_ are SQLite's. Virtual tables
 *     and their shadow tables are ignored, because they cannot have triggers.
 * (2) SQLite inserts the definition of a column that ALTER TABLE added into the text of the table,
 *     after the existing columns: the difference from the old text is its definition.
 * (3) A user's table that changed in any other way is dropped and created again, with all its rows.
 *     If a table of the pack, or one of its original columns, is missing, the pack is rebuilt.
 */
#include "index/pack/outbox.h"

#include "index/db/db.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Current tables ---- */

static char *column_text(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    return text == NULL ? NULL : annal__strndup(text, strlen(text));
}

static bool has_column(const struct outbox_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (sqlite3_stricmp(table->columns[i].name, name) == 0)
            return true;
    return false;
}

static annal_status add_column(struct outbox_table *table, sqlite3_stmt *stmt, bool without_rowid,
                               annal_error *err)
{
    struct outbox_column *column = annal__array_add(&table->columns, &table->count, sizeof *column);
    if (column == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "list the columns of a table: out of memory");
    *column = (struct outbox_column){.name = column_text(stmt, 0),
                                     .type = column_text(stmt, 1),
                                     .preset = column_text(stmt, 3),
                                     .key = sqlite3_column_int(stmt, 4) > 0};
    if (column->name == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "list the columns of a table: out of memory");
    bool is_integer = column->type != NULL && sqlite3_stricmp(column->type, "INTEGER") == 0;
    column->not_null = sqlite3_column_int(stmt, 2) != 0 || (column->key && without_rowid) ||
                       (column->key && is_integer && sqlite3_column_int(stmt, 5) == 1);
    table->has_key |= column->key;
    return ANNAL_OK;
}

annal_status annal__outbox_table(sqlite3 *db, const char *name, struct outbox_table *out,
                                 annal_error *err)
{
    static const char select[] =
        "SELECT c.name, c.type, c.\"notnull\", c.dflt_value, c.pk,"
        " (SELECT MAX(pk) FROM pragma_table_xinfo(t.name)), t.wr"
        " FROM pragma_table_list AS t, pragma_table_xinfo(t.name) AS c"
        " WHERE t.schema = 'main' AND t.type = 'table' AND t.name = ?1 COLLATE NOCASE"
        " AND c.hidden = 0 AND substr(t.name, 1, 7) <> 'sqlite_'"
        " AND substr(t.name, 1, 1) <> '_'";
    static const char *const rowids[] = {"rowid", "_rowid_", "oid"};
    sqlite3_stmt *stmt = NULL;
    struct outbox_table table = {0};
    bool without_rowid = false;
    annal_status status = annal__db_prepare(db, select, &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(name));
    int rc = SQLITE_DONE;
    while (status >= 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        without_rowid = sqlite3_column_int(stmt, 6) != 0;
        status = add_column(&table, stmt, without_rowid, err);
    }
    if (status >= 0 && rc != SQLITE_DONE)
        status = annal__db_fail(
            err, db, rc, "cannot add to table '%s' the triggers that note users' rows", name);
    for (int i = 0; i < 3 && !without_rowid && table.rowid == NULL; i++)
        if (!has_column(&table, rowids[i]))
            table.rowid = rowids[i];
    if (status >= 0 && (table.count == 0 || (table.rowid == NULL && !table.has_key)))
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "table '%s' does not exist", name);
    sqlite3_finalize(stmt);
    if (status < 0)
        annal__outbox_table_done(&table);
    else
        *out = table;
    return status;
}

void annal__outbox_table_done(struct outbox_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        annal__free(table->columns[i].name);
        annal__free(table->columns[i].preset);
        annal__free(table->columns[i].type);
    }
    annal__free(table->columns);
    *table = (struct outbox_table){0};
}

/* ---- Running SQL over differences ---- */

/* SELECT of all objects of the user and of the pack (rule 1). */
#define OBJECTS                                                                                    \
    "(SELECT s.type, s.name, s.tbl_name, s.sql, s.rowid AS place FROM sqlite_schema AS s"          \
    " LEFT JOIN pragma_table_list AS l ON l.schema = 'main' AND l.name = s.tbl_name"               \
    " WHERE s.sql IS NOT NULL AND substr(s.name, 1, 1) <> '_'"                                     \
    " AND substr(s.name, 1, 7) <> 'sqlite_' AND substr(s.tbl_name, 1, 1) <> '_'"                   \
    " AND IFNULL(l.type, '') NOT IN ('virtual', 'shadow'))"

/* SQL expression: the names of a table's columns, as a JSON array. */
#define COLUMNS(name)                                                                              \
    "(SELECT json_group_array(name) FROM pragma_table_xinfo(" name ") WHERE hidden = 0)"

typedef annal_status (*object_fn)(sqlite3 *db, sqlite3_stmt *object, uint64_t *left_out,
                                  annal_error *err);

/*
 * Call fn for each row of select. The rows are collected first, because fn changes the schema,
 * which aborts a running statement.
 */
static annal_status for_each(sqlite3 *db, const char *select, object_fn fn, uint64_t *left_out,
                             annal_error *err)
{
    char sql[2048];
    sqlite3_stmt *stmt = NULL;
    snprintf(sql, sizeof sql,
             "DROP TABLE IF EXISTS temp.outbox_work; CREATE TEMP TABLE outbox_work AS %s", select);
    annal_status status = annal__db_exec(db, sql, err);
    for (int64_t i = 1; status >= 0; i++) {
        status =
            annal__db_prepare(db, "SELECT * FROM temp.outbox_work WHERE rowid = ?1", &stmt, err);
        if (status < 0)
            break;
        sqlite3_bind_int64(stmt, 1, i);
        int rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW)
            status = fn(db, stmt, left_out, err);
        else if (rc != SQLITE_DONE)
            status = annal__db_fail(
                err, db, rc,
                "cannot compare the schema of a writable database with its tables for users' rows");
        sqlite3_finalize(stmt);
        if (rc != SQLITE_ROW)
            break;
    }
    (void)annal__db_exec(db, "DROP TABLE IF EXISTS temp.outbox_work", NULL);
    return status;
}

static const char *text_of(sqlite3_stmt *object, int column)
{
    const char *text = (const char *)sqlite3_column_text(object, column);
    return text == NULL ? "" : text;
}

/* Put SQL into the outbox, which becomes a schema.extended event. */
static annal_status put_ddl(sqlite3 *db, const char *kind, const char *name, const char *ddl,
                            annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__outbox_put(db, name, "schema", err);
    if (status >= 0)
        status = annal__db_prepare(db, "SELECT ?1, ?2", &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(kind));
    annal__db_bind_text(stmt, 2, annal_slice_of(ddl));
    int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW)
        status = annal__db_fail(
            err, db, rc,
            "cannot compare the schema of a writable database with its tables for users' rows");
    if (status >= 0)
        status = annal__outbox_put_value(db, "ddl", "kind", sqlite3_column_value(stmt, 0), err);
    if (status >= 0)
        status = annal__outbox_put_value(db, "ddl", "ddl", sqlite3_column_value(stmt, 1), err);
    sqlite3_finalize(stmt);
    return status;
}

/* ---- Rows that no trigger captured ---- */

static annal_status put_row(sqlite3 *db, const char *name, const struct outbox_table *table,
                            sqlite3_stmt *row, const bool *is_new, uint64_t *left_out,
                            annal_error *err)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < table->count; i++) {
        /* for an existing column count the value twice: an update also stores the old row */
        uint64_t times = is_new != NULL && !is_new[i] ? 2 : 1;
        int type = sqlite3_column_type(row, (int)i);
        if (type == SQLITE_TEXT || type == SQLITE_BLOB)
            bytes += times * (uint64_t)sqlite3_column_bytes(row, (int)i);
    }
    if (bytes > OUTBOX_ROW_BYTES_MAX) {
        ++*left_out;
        return ANNAL_OK;
    }
    annal_status status = annal__outbox_put(db, name, is_new == NULL ? "insert" : "update", err);
    for (size_t i = 0; status >= 0 && i < table->count; i++)
        status = annal__outbox_put_value(db, "row", table->columns[i].name,
                                         sqlite3_column_value(row, (int)i), err);
    for (size_t i = 0; is_new != NULL && status >= 0 && i < table->count; i++)
        if (!is_new[i])
            status = annal__outbox_put_value(db, "was", table->columns[i].name,
                                             sqlite3_column_value(row, (int)i), err);
    return status;
}

/* Compose a SELECT of the rows of a table: all, or, with is_new, the rows in which a new column
 * differs from its default. */
static char *select_rows(const char *name, const struct outbox_table *table, const bool *is_new)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    for (size_t i = 0; i < table->count; i++)
        sqlite3_str_appendf(sql, "%s\"%w\"", i == 0 ? "SELECT " : ", ", table->columns[i].name);
    sqlite3_str_appendf(sql, " FROM main.\"%w\"", name);
    const char *word = " WHERE ";
    for (size_t i = 0; is_new != NULL && i < table->count; i++) {
        if (!is_new[i])
            continue;
        const struct outbox_column *column = &table->columns[i];
        sqlite3_str_appendf(sql, "%s\"%w\" IS NOT (%s)", word, column->name,
                            column->preset == NULL ? "NULL" : column->preset);
        word = " OR ";
    }
    return sqlite3_str_finish(sql);
}

static annal_status put_rows(sqlite3 *db, const char *name, const struct outbox_table *table,
                             const bool *is_new, uint64_t *left_out, annal_error *err)
{
    sqlite3_stmt *row = NULL;
    char *sql = select_rows(name, table, is_new);
    annal_status status =
        sql == NULL ? annal__fail(err, ANNAL_ERR_NOMEM, "describe table '%s': out of memory", name)
                    : annal__db_prepare(db, sql, &row, err);
    int rc = SQLITE_DONE;
    while (status >= 0 && (rc = sqlite3_step(row)) == SQLITE_ROW)
        status = put_row(db, name, table, row, is_new, left_out, err);
    if (status >= 0 && rc != SQLITE_DONE)
        status = annal__db_fail(
            err, db, rc, "cannot add to table '%s' the triggers that note users' rows", name);
    sqlite3_finalize(row);
    sqlite3_free(sql);
    return status;
}

/* ---- Columns ---- */

/*
 * Return the beginning, with its comma, of the text that was inserted into old to give new (rule
 * 2); NULL if new is not old with an insertion. Text before it may end with the same characters, so
 * the search runs from right to left.
 */
static const char *find_insertion(const char *old, const char *new, size_t *out_len)
{
    size_t old_len = strlen(old), new_len = strlen(new), front = 0;
    if (new_len <= old_len)
        return NULL;
    size_t more = new_len - old_len;
    while (front < old_len && old[front] == new[front])
        front++;
    for (;; front--) {
        if (strncmp(new + front, ", ", 2) == 0 && strcmp(new + front + more, old + front) == 0) {
            *out_len = more;
            return new + front;
        }
        if (front == 0)
            return NULL;
    }
}

/* Return the end of one definition: the next comma outside of quotes and parentheses, or end. */
static const char *end_of_definition(const char *at, const char *end)
{
    int depth = 0;
    for (; at < end; at++) {
        if (*at == '\'' || *at == '"' || *at == '`' || *at == '[') {
            const char *close = memchr(at + 1, *at == '[' ? ']' : *at, (size_t)(end - at - 1));
            if (close == NULL)
                return end;
            /* a doubled quote is read as the begin of another literal, which ends at the same
             * place */
            at = close;
        } else if (*at == '(') {
            depth++;
        } else if (*at == ')') {
            depth--;
        } else if (*at == ',' && depth == 0) {
            return at;
        }
    }
    return end;
}

/*
 * Return the definition of new column number `which`: as the user wrote it, or else composed from
 * the properties of the column.
 */
static char *definition(const char *old, const char *new, size_t which, size_t count,
                        const struct outbox_column *column)
{
    size_t len = 0;
    const char *at = find_insertion(old, new, &len);
    const char *end = at == NULL ? NULL : at + len;
    size_t seen = 0;
    char *found = NULL;
    while (at != NULL && at < end) {
        const char *stop = end_of_definition(at + 1, end);
        at += 1 + strspn(at + 1, " \t\r\n");
        if (seen++ == which && at < stop)
            found = sqlite3_mprintf("%.*s", (int)(stop - at), at);
        at = stop;
    }
    if (seen == count && found != NULL)
        return found;
    sqlite3_free(found);
    return sqlite3_mprintf(
        "\"%w\" %s%s%s%s%s", column->name, column->type == NULL ? "" : column->type,
        column->not_null ? " NOT NULL" : "", column->preset == NULL ? "" : " DEFAULT (",
        column->preset == NULL ? "" : column->preset, column->preset == NULL ? "" : ")");
}

static annal_status put_columns(sqlite3 *db, sqlite3_stmt *object, const struct outbox_table *table,
                                const bool *is_new, size_t count, annal_error *err)
{
    const char *name = text_of(object, 1);
    annal_status status = ANNAL_OK;
    size_t which = 0;
    for (size_t i = 0; status >= 0 && i < table->count; i++) {
        if (!is_new[i])
            continue;
        char *column =
            definition(text_of(object, 3), text_of(object, 2), which++, count, &table->columns[i]);
        char *ddl = column == NULL
                        ? NULL
                        : sqlite3_mprintf("ALTER TABLE \"%w\" ADD COLUMN %s", name, column);
        status = ddl == NULL
                     ? annal__fail(err, ANNAL_ERR_NOMEM, "describe table '%s': out of memory", name)
                     : put_ddl(db, "column", name, ddl, err);
        sqlite3_free(ddl);
        sqlite3_free(column);
    }
    return status;
}

/* Return whether name is in a JSON array of names. */
static bool is_listed(sqlite3 *db, const char *names, const char *name)
{
    sqlite3_stmt *stmt = NULL;
    bool found = false;
    if (annal__db_prepare(db, "SELECT 1 FROM json_each(?1) WHERE value = ?2", &stmt, NULL) < 0)
        return false;
    annal__db_bind_text(stmt, 1, annal_slice_of(names));
    annal__db_bind_text(stmt, 2, annal_slice_of(name));
    found = sqlite3_step(stmt) == SQLITE_ROW;
    sqlite3_finalize(stmt);
    return found;
}

/* ---- Differences, one object after the other ---- */

static annal_status dropped_object(sqlite3 *db, sqlite3_stmt *object, uint64_t *left_out,
                                   annal_error *err)
{
    (void)left_out;
    char *ddl = sqlite3_mprintf("DROP %s IF EXISTS \"%w\"", text_of(object, 0), text_of(object, 1));
    if (ddl == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compare the schema: out of memory");
    annal_status status = put_ddl(db, text_of(object, 0), text_of(object, 1), ddl, err);
    sqlite3_free(ddl);
    return status;
}

static annal_status dropped_column(sqlite3 *db, sqlite3_stmt *object, uint64_t *left_out,
                                   annal_error *err)
{
    (void)left_out;
    char *ddl = sqlite3_mprintf("ALTER TABLE \"%w\" DROP COLUMN \"%w\"", text_of(object, 1),
                                text_of(object, 2));
    if (ddl == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compare the schema: out of memory");
    annal_status status = put_ddl(db, "column", text_of(object, 1), ddl, err);
    sqlite3_free(ddl);
    return status;
}

/* Put a table that is new, or that was replaced, into the outbox with all its rows. */
static annal_status new_table(sqlite3 *db, sqlite3_stmt *object, uint64_t *left_out,
                              annal_error *err)
{
    const char *name = text_of(object, 1);
    struct outbox_table table = {0};
    annal_status status = annal__outbox_table(db, name, &table, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK; /* skip a table whose changes cannot be captured */
    if (status >= 0)
        status = put_ddl(db, "table", name, text_of(object, 2), err);
    if (status >= 0)
        status = put_rows(db, name, &table, NULL, left_out, err);
    annal__outbox_table_done(&table);
    return status;
}

static annal_status grown_table(sqlite3 *db, sqlite3_stmt *object, uint64_t *left_out,
                                annal_error *err)
{
    const char *name = text_of(object, 1);
    struct outbox_table table = {0};
    bool *is_new = NULL;
    size_t count = 0;
    annal_status status = annal__outbox_table(db, name, &table, err);
    if (status < 0)
        return status;
    is_new = annal__zalloc((table.count + 1) * sizeof *is_new);
    if (is_new == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "describe table '%s': out of memory", name);
    for (size_t i = 0; status >= 0 && i < table.count; i++) {
        is_new[i] = !is_listed(db, text_of(object, 4), table.columns[i].name);
        count += is_new[i];
    }
    if (status >= 0 && count > 0)
        status = put_columns(db, object, &table, is_new, count, err);
    if (status >= 0 && count > 0)
        status = put_rows(db, name, &table, is_new, left_out, err);
    annal__free(is_new);
    annal__outbox_table_done(&table);
    return status;
}

static annal_status new_object(sqlite3 *db, sqlite3_stmt *object, uint64_t *left_out,
                               annal_error *err)
{
    (void)left_out;
    return put_ddl(db, text_of(object, 0), text_of(object, 1), text_of(object, 2), err);
}

/* Condition: a user's table whose text changed in any other way than by new columns (rule 3). */
#define BECAME_ANOTHER                                                                             \
    " o.type = 'table' AND o.pack = 0 AND s.sql <> o.sql AND EXISTS (SELECT 1 FROM"                \
    " json_each(o.columns) WHERE value NOT IN (SELECT name FROM pragma_table_xinfo(o.name)))"

static annal_status put_changes(sqlite3 *db, uint64_t *left_out, annal_error *err)
{
    static const struct {
        const char *select;
        object_fn fn;
    } steps[] = {
        {"SELECT o.type, o.name FROM _outbox_schema AS o LEFT JOIN " OBJECTS
         " AS s ON s.type = o.type AND s.name = o.name WHERE o.pack = 0 AND (s.name IS NULL OR"
         " (o.type <> 'table' AND s.sql <> o.sql) OR (" BECAME_ANOTHER "))"
         " ORDER BY o.type = 'trigger' DESC, o.type = 'view' DESC, o.type = 'index' DESC",
         dropped_object},
        {"SELECT s.type, s.name, s.sql FROM " OBJECTS " AS s LEFT JOIN _outbox_schema AS o"
         " ON s.type = o.type AND s.name = o.name WHERE s.type = 'table'"
         " AND (o.name IS NULL OR (" BECAME_ANOTHER ")) ORDER BY s.place",
         new_table},
        {"SELECT o.type, o.name, c.value FROM _outbox_schema AS o, json_each(o.columns) AS c"
         " WHERE o.pack = 1 AND c.value NOT IN (SELECT value FROM json_each(o.made))"
         " AND c.value NOT IN (SELECT name FROM pragma_table_xinfo(o.name))",
         dropped_column},
        {"SELECT s.type, s.name, s.sql, o.sql, o.columns FROM " OBJECTS
         " AS s JOIN _outbox_schema AS o ON s.type = o.type AND s.name = o.name"
         " WHERE s.type = 'table' AND s.sql <> o.sql AND NOT (" BECAME_ANOTHER ")",
         grown_table},
        {"SELECT s.type, s.name, s.sql FROM " OBJECTS " AS s LEFT JOIN _outbox_schema AS o"
         " ON s.type = o.type AND s.name = o.name WHERE s.type <> 'table'"
         " AND (o.name IS NULL OR (o.pack = 0 AND s.sql <> o.sql))"
         " ORDER BY s.type = 'index' DESC, s.type = 'view' DESC, s.place",
         new_object},
    };
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < sizeof steps / sizeof *steps; i++)
        status = for_each(db, steps[i].select, steps[i].fn, left_out, err);
    return status;
}

/*
 * SELECT that tells whether an object of the pack, or a column that the pack created, is missing.
 */
static const char broken_sql[] =
    "SELECT EXISTS (SELECT 1 FROM _outbox_schema AS o WHERE o.pack = 1 AND NOT EXISTS"
    " (SELECT 1 FROM sqlite_schema AS s WHERE s.type = o.type AND s.name = o.name))"
    " OR EXISTS (SELECT 1 FROM _outbox_schema AS o, json_each(o.made) AS c WHERE o.pack = 1"
    " AND c.value NOT IN (SELECT name FROM pragma_table_xinfo(o.name)))";

/*
 * Capture a table, even if a user dropped our triggers, or the table has columns that the triggers
 * do not copy.
 */
static annal_status capture_table(sqlite3 *db, sqlite3_stmt *object, uint64_t *left_out,
                                  annal_error *err)
{
    (void)left_out;
    struct outbox_table table = {0};
    annal_status status = annal__outbox_table(db, text_of(object, 1), &table, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    if (status >= 0)
        status = annal__outbox_capture(db, text_of(object, 1), &table, err);
    annal__outbox_table_done(&table);
    return status;
}

annal_status annal__outbox_baseline(sqlite3 *db, bool pack, annal_error *err)
{
    char sql[2048];
    snprintf(sql, sizeof sql,
             "DELETE FROM _outbox_schema WHERE (type, name) NOT IN (SELECT type, name FROM " OBJECTS
             ");"
             "INSERT INTO _outbox_schema SELECT type, name, sql,"
             " CASE type WHEN 'table' THEN " COLUMNS(
                 "o.name") " END,"
                           " CASE WHEN type = 'table' AND %d THEN " COLUMNS(
                               "o.name") " END, %d FROM " OBJECTS
                                         " AS o WHERE true ON CONFLICT (type, name) DO UPDATE SET "
                                         "sql = excluded.sql,"
                                         " columns = excluded.columns",
             pack, pack);
    annal_status status = annal__db_exec(db, sql, err);
    if (status >= 0)
        status = for_each(db, "SELECT type, name FROM " OBJECTS " WHERE type = 'table'",
                          capture_table, NULL, err);
    int64_t version = 0;
    if (status >= 0)
        status = annal__db_integer(db, "PRAGMA main.schema_version", &version, err);
    snprintf(sql, sizeof sql, "UPDATE _outbox_state SET schema = %lld", (long long)version);
    return status < 0 ? status : annal__db_exec(db, sql, err);
}

annal_status annal__outbox_adopt(sqlite3 *db, bool *out_broken, uint64_t *left_out,
                                 annal_error *err)
{
    int64_t now = 0, before = 0, broken = 0;
    annal_status status = annal__db_integer(db, "PRAGMA main.schema_version", &now, err);
    if (status >= 0)
        status = annal__db_integer(db, "SELECT schema FROM _outbox_state", &before, err);
    if (status < 0 || now == before)
        return status;
    status = annal__db_integer(db, broken_sql, &broken, err);
    if (status >= 0)
        status = put_changes(db, left_out, err);
    if (status >= 0)
        status = annal__outbox_baseline(db, false, err);
    if (status >= 0)
        *out_broken = broken != 0;
    return status;
}
