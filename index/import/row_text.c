/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/row_text.h"

#include "index/db/bound.h"
#include "index/db/connect.h"
#include "index/db/db.h"
#include "index/import/foreign.h"
#include "index/import/import.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"

#include <stdlib.h>
#include <string.h>

extern const char annal__sql_row_text[], annal__sql_row_text_head[];

struct annal__row_text {
    struct foreign foreign;
    struct bound bound;
    annal_slice section;
    sqlite3_stmt **tables; /* the SELECT of each table that has rows of sessions */
    size_t table_count;
    int64_t schema; /* version of the schema that these are for */
};

/* ---- Tables ---- */

/* Prepare the statement of row_text.sql for a table, and step it to its row. */
static annal_status shape_read(sqlite3 *db, annal_slice table, sqlite3_stmt **out, annal_error *err)
{
    annal_status status = annal__db_prepare(db, annal__sql_row_text, out, err);
    if (status < 0)
        return status;
    annal__db_bind_text(*out, 1, table);
    int rc = sqlite3_step(*out);
    if (rc == SQLITE_ROW && sqlite3_column_type(*out, 0) != SQLITE_NULL &&
        sqlite3_column_type(*out, 1) != SQLITE_NULL)
        return ANNAL_OK;
    return rc == SQLITE_ROW || rc == SQLITE_DONE
               ? annal__fail(err, ANNAL_ERR_CORRUPT, "the columns of table '%.*s' cannot be read",
                             ANNAL_FMT(table))
               : annal__db_fail(err, db, rc, "read the columns of table '%.*s'", ANNAL_FMT(table));
}

/* ---- The section ---- */

static annal_status fail_reading(const struct annal__row_text *text, int rc, annal_error *err)
{
    static const char what[] = "copy the rows of a session";
    annal_status status = annal__bound_fail(&text->bound, rc, what, err);
    return status < 0 ? status : annal__db_fail(err, text->foreign.db, rc, "%s", what);
}

static int allow_reading(void *arg, int action, const char *table, const char *column,
                         const char *database, const char *trigger)
{
    (void)arg;
    (void)table;
    (void)trigger;
    if (action == SQLITE_SELECT || action == SQLITE_RECURSIVE || action == SQLITE_READ)
        return SQLITE_OK;
    if (action == SQLITE_FUNCTION)
        return annal__allowed_function(column) || annal__import_function_exists(column)
                   ? SQLITE_OK
                   : SQLITE_DENY;
    return action == SQLITE_INSERT && database != NULL && strcmp(database, "temp") == 0
               ? SQLITE_OK
               : SQLITE_DENY;
}

/* Prepare SQL with a part from an importer. */
static int prepare(struct annal__row_text *text, const struct buf *sql, sqlite3_stmt **out)
{
    const char *rest = NULL;
    sqlite3_set_authorizer(text->foreign.db, allow_reading, NULL);
    int rc = sqlite3_prepare_v2(text->foreign.db, sql->ptr, (int)sql->len, out, &rest);
    sqlite3_set_authorizer(text->foreign.db, NULL, NULL);
    if (rc == SQLITE_OK && rest < sql->ptr + sql->len) {
        sqlite3_finalize(*out);
        *out = NULL;
        rc = SQLITE_ERROR;
    }
    return rc;
}

/* Whether a table or column is missing, of which the importer knows that it may be. */
static bool lacks_something(sqlite3 *db)
{
    const char *why = sqlite3_errmsg(db);
    return strncmp(why, "no such table", 13) == 0 || strncmp(why, "no such column", 14) == 0;
}

/* Read the next line NAME: VALUE of the section. */
static bool next_rule(const struct annal__row_text *text, size_t *at, annal_slice *out_name,
                      annal_slice *out_value)
{
    while (*at < text->section.len) {
        const char *line = text->section.ptr + *at;
        const char *end = memchr(line, '\n', text->section.len - *at);
        size_t len = end != NULL ? (size_t)(end - line) : text->section.len - *at;
        const char *colon = memchr(line, ':', len);
        *at += len + (end != NULL);
        if (colon == NULL || line[0] == '-')
            continue;
        *out_name = (annal_slice){line, (size_t)(colon - line)};
        *out_value = (annal_slice){colon + 1, (size_t)(line + len - colon) - 1};
        return true;
    }
    return false;
}

static annal_status add_ids(struct annal__row_text *text, annal_slice select, annal_error *err)
{
    SCOPED_BUF sql = {0};
    sqlite3_stmt *statement = NULL;
    annal_status status =
        annal__buf_printf(&sql, "INSERT INTO temp.known SELECT * FROM (%.*s)", ANNAL_FMT(select));
    int rc = status < 0 ? SQLITE_NOMEM : prepare(text, &sql, &statement);
    if (rc != SQLITE_OK && lacks_something(text->foreign.db))
        return ANNAL_OK;
    if (rc == SQLITE_OK)
        rc = annal__bound_step(&text->bound, statement);
    status = rc == SQLITE_DONE ? ANNAL_OK : fail_reading(text, rc, err);
    sqlite3_finalize(statement);
    return status;
}

static annal_status find_ids(struct annal__row_text *text, annal_error *err)
{
    size_t at = 0;
    annal_slice name, value;
    annal_status status = annal__db_exec(text->foreign.db,
                                         "CREATE TEMP TABLE known (session TEXT, id);"
                                         "CREATE TEMP TABLE ids (id)",
                                         err);
    while (status == ANNAL_OK && next_rule(text, &at, &name, &value))
        if (annal__slice_is(name, "ids"))
            status = add_ids(text, value, err);
    if (status == ANNAL_OK)
        status =
            annal__db_exec(text->foreign.db, "CREATE INDEX temp.session ON known (session)", err);
    return status;
}

/* Prepare the SELECT of the rows of a table with the first rule whose columns exist. *out NULL: no
 * rule is for this table. */
static annal_status choose_rule(struct annal__row_text *text, annal_slice table,
                                sqlite3_stmt *shape, sqlite3_stmt **out, annal_error *err)
{
    SCOPED_BUF sql = {0};
    annal_slice name, condition;
    annal_status status = ANNAL_OK;
    int rc = SQLITE_OK;
    for (size_t at = 0; status >= 0 && *out == NULL && next_rule(text, &at, &name, &condition);) {
        bool named = annal__slice_same(name, table);
        if (!named && (!annal__slice_is(name, "*") || rc != SQLITE_OK))
            continue;
        annal__buf_clear(&sql);
        status = annal__buf_printf(
            &sql, "%s WHERE (%.*s) ORDER BY %s", (const char *)sqlite3_column_text(shape, 0),
            ANNAL_FMT(condition), (const char *)sqlite3_column_text(shape, 2));
        int prepared = status < 0 ? SQLITE_NOMEM : prepare(text, &sql, out);
        rc = named ? prepared : rc;
        if (prepared != SQLITE_OK && !lacks_something(text->foreign.db))
            status = fail_reading(text, prepared, err);
    }
    if (status >= 0 && *out == NULL && rc != SQLITE_OK)
        status = fail_reading(text, rc, err);
    return status;
}

static annal_status add_table(struct annal__row_text *text, annal_slice table, annal_error *err)
{
    sqlite3_stmt *shape = NULL, *select = NULL, **added = NULL;
    annal_status status = shape_read(text->foreign.db, table, &shape, err);
    if (status == ANNAL_OK)
        status = choose_rule(text, table, shape, &select, err);
    if (status == ANNAL_OK && select != NULL) {
        added = annal__array_add(&text->tables, &text->table_count, sizeof *added);
        if (added == NULL)
            status = annal__fail(err, ANNAL_ERR_NOMEM, "copy rows: out of memory");
        else
            *added = select;
    }
    if (added == NULL)
        sqlite3_finalize(select);
    sqlite3_finalize(shape);
    return status;
}

static annal_status find_tables(struct annal__row_text *text, annal_error *err)
{
    sqlite3_stmt *names = NULL;
    int rc = SQLITE_DONE;
    annal_status status =
        annal__db_integer(text->foreign.db, "PRAGMA schema_version", &text->schema, err);
    if (status == ANNAL_OK)
        status = annal__db_prepare(
            text->foreign.db,
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
            "AND name NOT GLOB 'sqlite_*' ORDER BY name",
            &names, err);
    while (status == ANNAL_OK && (rc = sqlite3_step(names)) == SQLITE_ROW)
        status = add_table(text, annal__db_column(names, 0), err);
    if (status == ANNAL_OK && rc != SQLITE_DONE)
        status = annal__db_fail(err, text->foreign.db, rc, "cannot read this SQLite database");
    sqlite3_finalize(names);
    return status;
}

annal_status annal__row_text_open(annal_slice sql, const char *path, const annal_limits *limits,
                                  annal__row_text **out, annal_error *err)
{
    static const annal_limits none;
    annal_slice section = annal__import_section(sql, "-- copies", &(size_t){0});
    if (section.ptr == NULL)
        return ANNAL_END;
    limits = limits != NULL ? limits : &none;
    struct annal__row_text *text = annal__zalloc(sizeof *text);
    if (text == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "copy rows: out of memory");
    text->section = section;
    annal_status status = annal__foreign_open(&text->foreign, path, limits->wait_ms, err);
    if (status == ANNAL_OK && text->foreign.damaged)
        status = annal__fail(err, ANNAL_ERR_CORRUPT, "this SQLite database is cut short");
    if (status == ANNAL_OK) {
        annal__bound_begin(&text->bound, text->foreign.db, limits);
        text->bound.each_row = true;
        status = find_ids(text, err);
        if (status == ANNAL_OK)
            status = find_tables(text, err);
        if (status == ANNAL_OK)
            status = annal__db_exec(text->foreign.db, "COMMIT", err);
    }
    if (status == ANNAL_OK)
        *out = text;
    else
        annal__row_text_close(text);
    return status;
}

void annal__row_text_close(annal__row_text *text)
{
    if (text == NULL)
        return;
    for (size_t i = 0; i < text->table_count; i++)
        sqlite3_finalize(text->tables[i]);
    annal__free(text->tables);
    if (text->bound.db != NULL)
        annal__bound_end(&text->bound);
    annal__foreign_close(&text->foreign);
    annal__free(text);
}

/* ---- Reading a session ---- */

static annal_status choose_ids(struct annal__row_text *text, annal_slice session, annal_error *err)
{
    sqlite3_stmt *statement = NULL;
    annal_status status = annal__db_exec(text->foreign.db, "DELETE FROM temp.ids", err);
    if (status == ANNAL_OK)
        status = annal__db_prepare(
            text->foreign.db,
            "INSERT INTO temp.ids SELECT DISTINCT id FROM temp.known WHERE session = ?1",
            &statement, err);
    if (status == ANNAL_OK) {
        annal__db_bind_text(statement, 1, session);
        status = annal__db_run(statement, err);
    }
    sqlite3_finalize(statement);
    return status < 0 ? status : (sqlite3_changes(text->foreign.db) > 0 ? ANNAL_OK : ANNAL_END);
}

static annal_status give_head(struct annal__row_text *text, annal__import_row_fn fn, void *arg,
                              annal_error *err)
{
    sqlite3_stmt *statement = NULL;
    annal_status status =
        annal__db_prepare(text->foreign.db, annal__sql_row_text_head, &statement, err);
    if (status < 0)
        return status;
    int rc = annal__bound_step(&text->bound, statement);
    status = rc == SQLITE_ROW ? fn(arg, annal__db_column(statement, 0), err)
                              : fail_reading(text, rc, err);
    sqlite3_finalize(statement);
    return status;
}

static annal_status give_rows(struct annal__row_text *text, sqlite3_stmt *select,
                              annal__import_row_fn fn, void *arg, annal_error *err)
{
    annal_status status = ANNAL_OK;
    int rc = SQLITE_ROW;
    while (status == ANNAL_OK && (rc = annal__bound_step(&text->bound, select)) == SQLITE_ROW)
        status = fn(arg, annal__db_column(select, 0), err);
    if (status == ANNAL_OK && rc != SQLITE_DONE)
        status = fail_reading(text, rc, err);
    sqlite3_reset(select);
    return status;
}

/* The SELECTs are for the schema that the database had when it was opened. */
static annal_status check_schema(struct annal__row_text *text, annal_error *err)
{
    int64_t now = 0;
    annal_status status = annal__db_integer(text->foreign.db, "PRAGMA schema_version", &now, err);
    return status == ANNAL_OK && now != text->schema
               ? annal__fail(err, ANNAL_ERR_BUSY, "the schema of this database changed")
               : status;
}

annal_status annal__row_text_read(annal__row_text *text, annal_slice session,
                                  annal__import_row_fn fn, void *arg, annal_error *err)
{
    annal_status status = annal__db_exec(text->foreign.db, "BEGIN", err);
    if (status < 0)
        return status;
    status = choose_ids(text, session, err);
    if (status == ANNAL_OK)
        status = give_head(text, fn, arg, err);
    if (status == ANNAL_OK)
        status = check_schema(text, err);
    for (size_t i = 0; i < text->table_count && status == ANNAL_OK; i++)
        status = give_rows(text, text->tables[i], fn, arg, err);
    (void)sqlite3_exec(text->foreign.db, "COMMIT", NULL, NULL, NULL);
    return status;
}

/* ---- Building a database ---- */

struct building {
    sqlite3 *db;
    struct buf table; /* of the last row */
    struct buf sql;   /* its INSERT */
    size_t insert;    /* bytes of sql before the values */
    bool is_trusted;  /* whether the SQL that runs now is ours, or of fts5 */
    struct buf scratch;
};

static int allow_building(void *arg, int action, const char *name, const char *other,
                          const char *database, const char *trigger)
{
    const struct building *building = arg;
    (void)trigger;
    switch (action) {
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_VIEW:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_REINDEX:
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_READ:
    case SQLITE_TRANSACTION:
        return database == NULL || strcmp(database, "main") == 0 ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_SELECT:
    case SQLITE_DELETE:
        return building->is_trusted ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_CREATE_VTABLE:
        return strcmp(other, "fts5") == 0 ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_FUNCTION:
        return annal__allowed_function(other) ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_PRAGMA: /* what fts5 and shape_sql read */
        return other == NULL || strncmp(name, "table_", 6) == 0 || strncmp(name, "index_", 6) == 0
                   ? SQLITE_OK
                   : SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

static annal_status fail_text(struct building *building, const char *what, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT, "the copy is not valid: %s: %s", what,
                       sqlite3_errmsg(building->db));
}

/* Run one statement; return a result code of SQLite. */
static int run(struct building *building, annal_slice sql)
{
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    int rc = sqlite3_prepare_v2(building->db, sql.ptr, (int)sql.len, &statement, &rest);
    if (rc == SQLITE_OK)
        rc = rest == sql.ptr + sql.len ? sqlite3_step(statement) : SQLITE_MISUSE;
    sqlite3_finalize(statement);
    return rc;
}

/* Run one statement that creates something. */
static annal_status create(struct building *building, annal_slice raw, annal_error *err)
{
    annal_slice sql = {0};
    annal__buf_clear(&building->scratch);
    if (raw.ptr[0] != '"' || annal__json_text(raw, &building->scratch, &sql) < 0 ||
        !annal__slice_begins(sql, "CREATE "))
        return fail_text(building, "its schema", err);
    building->is_trusted = annal__slice_begins(sql, "CREATE VIRTUAL TABLE ");
    int rc = run(building, sql);
    building->is_trusted = false;
    return rc == SQLITE_DONE ? ANNAL_OK : fail_text(building, "its schema", err);
}

static annal_status create_all(struct building *building, annal_slice head, const char *member,
                               annal_error *err)
{
    struct json_walk walk;
    annal_slice sql;
    annal_status status = ANNAL_OK;
    if (!annal__json_walk_array(&walk, annal__json_member(head, member)))
        return fail_text(building, "its first line", err);
    while (status == ANNAL_OK && annal__json_walk_item(&walk, &sql))
        status = create(building, sql, err);
    return status;
}

/* Set what a program may read from the header of its database. */
static annal_status set_header(struct building *building, annal_slice head, annal_error *err)
{
    static const char *const encodings[] = {"\"UTF-8\"", "\"UTF-16le\"", "\"UTF-16be\""};
    annal_slice encoding = annal__json_member(head, "encoding");
    annal_slice version = annal__json_member(head, "user_version");
    annal_slice id = annal__json_member(head, "application_id");
    SCOPED_BUF sql = {0};
    annal_status status = ANNAL_OK;
    if (version.len == 0 || id.len == 0)
        return fail_text(building, "its first line", err);
    for (size_t i = 0; i < 3 && status >= 0; i++)
        if (annal__slice_is(encoding, encodings[i]))
            status = annal__buf_printf(&sql, "PRAGMA encoding = %s;", encodings[i]);
    status = annal__buf_printf(&sql,
                               "PRAGMA ignore_check_constraints = ON; PRAGMA user_version = %ld;"
                               "PRAGMA application_id = %ld; BEGIN",
                               strtol(version.ptr, NULL, 10), strtol(id.ptr, NULL, 10));
    return status < 0 ? annal__fail(err, status, "build a database: out of memory")
                      : annal__db_exec(building->db, annal__buf_cstr(&sql), err);
}

/* Compose the beginning of a row's INSERT, unless the row before was of the same table. table: a
 * JSON string. */
static annal_status begin_insert(struct building *building, annal_slice table, annal_error *err)
{
    sqlite3_stmt *shape = NULL;
    annal_slice name = {0};
    if (building->insert > 0 && annal__slice_same(table, annal__buf_slice(&building->table))) {
        annal__buf_cut(&building->sql, building->insert);
        return ANNAL_OK;
    }
    annal__buf_clear(&building->table);
    annal__buf_clear(&building->sql);
    annal__buf_clear(&building->scratch);
    if (annal__json_text(table, &building->scratch, &name) < 0 ||
        annal__buf_append_slice(&building->table, table) < 0)
        return fail_text(building, "a row", err);
    building->is_trusted = true;
    annal_status status = shape_read(building->db, name, &shape, err);
    building->is_trusted = false;
    if (status >= 0)
        status = annal__buf_append_slice(&building->sql, annal__db_column(shape, 1));
    building->insert = building->sql.len;
    sqlite3_finalize(shape);
    return status;
}

static annal_status add_row(struct building *building, annal_slice line, annal_error *err)
{
    const char *tab = memchr(line.ptr, '\t', line.len), *end = line.ptr + line.len;
    struct json_walk walk = {line.ptr, end};
    annal_slice table;
    bool half = false;
    if (tab == NULL || !annal__json_token(&walk, &table) || table.ptr[0] != '"' || end - tab < 3 ||
        tab[1] != '"' || annal__json_string_end(tab + 1, end) != end)
        return fail_text(building, "a row", err);
    annal_status status = begin_insert(building, table, err);
    if (status < 0)
        return status;
    return annal__json_decode((annal_slice){tab + 1, (size_t)(end - tab) - 1}, &building->sql,
                              &half) >= 0 &&
                   annal__buf_append(&building->sql, ")", 1) >= 0 &&
                   run(building, annal__buf_slice(&building->sql)) == SQLITE_DONE
               ? ANNAL_OK
               : fail_text(building, "a row", err);
}

static annal_status add_rows(struct building *building, FILE *text, annal_error *err)
{
    char *line = NULL;
    size_t room = 0;
    annal_status status = ANNAL_OK;
    for (ssize_t len; status == ANNAL_OK && (len = getline(&line, &room, text)) > 0;)
        status = line[len - 1] == '\n'
                     ? add_row(building, (annal_slice){line, (size_t)len - 1}, err)
                     : fail_text(building, "its last line", err);
    free(line);
    return status == ANNAL_OK && ferror(text) ? annal__fail_errno(err, "read a copy") : status;
}

/* Fill the indexes of fts5 again. A table that has its content in itself fails, and stays empty. */
static annal_status fill_indexes(struct building *building, annal_error *err)
{
    sqlite3_stmt *names = NULL;
    annal_status status = annal__db_prepare(
        building->db, "SELECT name FROM pragma_table_list WHERE type = 'virtual'", &names, err);
    while (status == ANNAL_OK && sqlite3_step(names) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(names, 0);
        char *sql = sqlite3_mprintf("INSERT INTO \"%w\" (\"%w\") VALUES ('rebuild')", name, name);
        (void)sqlite3_exec(building->db, sql, NULL, NULL, NULL);
        sqlite3_free(sql);
    }
    sqlite3_finalize(names);
    return status;
}

static annal_status build(struct building *building, FILE *text, annal_error *err)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len = getline(&line, &room, text);
    annal_slice head = {line, len > 0 ? (size_t)len : 0};
    bool valid = annal__json_check(head, 2, NULL) == JSON_VALID &&
                 annal__slice_is(annal__json_member(head, "annal_rows"), "1");
    annal_status status =
        valid ? set_header(building, head, err) : fail_text(building, "its first line", err);
    sqlite3_set_authorizer(building->db, allow_building, building);
    if (status == ANNAL_OK)
        status = create_all(building, head, "tables", err);
    if (status == ANNAL_OK)
        status = add_rows(building, text, err);
    if (status == ANNAL_OK)
        status = create_all(building, head, "others", err);
    building->is_trusted = true;
    if (status == ANNAL_OK)
        status = fill_indexes(building, err);
    sqlite3_set_authorizer(building->db, NULL, NULL);
    if (status == ANNAL_OK)
        status = annal__db_exec(building->db, "COMMIT", err);
    free(line);
    return status;
}

annal_status annal__row_text_build(FILE *text, const char *path, annal_error *err)
{
    struct building building = {0};
    int rc = annal__connect_open(NULL, path, SQLITE_OPEN_READWRITE, &building.db);
    annal_status status =
        rc == SQLITE_OK ? ANNAL_OK : annal__db_fail(err, building.db, rc, "build a database");
    if (status == ANNAL_OK) {
        sqlite3_db_config(building.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        sqlite3_db_config(building.db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
        sqlite3_db_config(building.db, SQLITE_DBCONFIG_ENABLE_FKEY, 0, NULL);
        status = build(&building, text, err);
    }
    sqlite3_close(building.db);
    annal__buf_done(&building.table);
    annal__buf_done(&building.sql);
    annal__buf_done(&building.scratch);
    return status;
}
