/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the rows of a log that is a SQLite database, as lines for an importer.
 *
 * (1) The database is only read, in one transaction, which ends before anything is imported: its
 *     writers wait only while its rows are copied.
 * (2) The SELECTs of the sections "-- rows" may read tables and call functions, and nothing else. A
 *     SELECT that names a table or column that this database lacks is skipped.
 * (3) Every row is returned: the rows of tables that no SELECT reads follow after the SELECTs,
 *     except that the tables in the section "-- tables" come before all SELECTs.
 */
#include "index/db/bound.h"
#include "index/db/db.h"
#include "index/import/foreign.h"
#include "index/import/import.h"
#include "index/sys/import.h"
#include "journal/base/alloc.h"
#include "journal/base/base64.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/slice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* maximum size of a line in bytes; a value of SQLite may have a gigabyte, and its JSON several
 * times as much */
#define ROW_BYTES_MAX ((size_t)4 << 30)

struct rows {
    struct foreign foreign;
    sqlite3 *db; /* of foreign */
    struct bound bound;
    uint64_t bytes;     /* total size of the lines that were returned */
    uint64_t bytes_max; /* limit for bytes; 0: no limit */
    struct buf line;
    struct name {
        struct name *next;
        char name[]; /* name of a table that a SELECT reads */
    } * read;
    annal__import_row_fn fn;
    void *arg;
};

/* ---- The SELECTs ---- */

static bool was_read(const struct rows *rows, annal_slice table)
{
    for (const struct name *name = rows->read; name != NULL; name = name->next)
        if (annal__slice_is(table, name->name))
            return true;
    return false;
}

static bool note_read(struct rows *rows, annal_slice table)
{
    if (was_read(rows, table))
        return true;
    struct name *name = annal__zalloc(sizeof *name + table.len + 1);
    if (name == NULL)
        return false;
    memcpy(name->name, table.ptr, table.len);
    name->next = rows->read;
    rows->read = name;
    return true;
}

static int allow_reading(void *arg, int action, const char *table, const char *column,
                         const char *database, const char *trigger)
{
    struct rows *rows = arg;
    (void)database;
    (void)trigger;
    if (action == SQLITE_SELECT || action == SQLITE_RECURSIVE ||
        (action == SQLITE_FUNCTION &&
         (annal__allowed_function(column) || annal__import_function_exists(column))))
        return SQLITE_OK;
    if (action != SQLITE_READ)
        return SQLITE_DENY;
    return note_read(rows, annal_slice_of(table)) ? SQLITE_OK : SQLITE_DENY;
}

static annal_status give_line(struct rows *rows, annal_slice line, annal_error *err)
{
    rows->bytes += line.len;
    if (rows->bytes_max != 0 && rows->bytes > rows->bytes_max)
        return annal__fail(err, ANNAL_ERR_LIMIT,
                           "this SQLite database contains more than %llu MB of rows",
                           (unsigned long long)(rows->bytes_max >> 20));
    return rows->fn(rows->arg, line, err);
}

static annal_status fail_reading(const struct rows *rows, int rc, const char *what,
                                 annal_error *err)
{
    annal_status status = annal__bound_fail(&rows->bound, rc, what, err);
    return status < 0 ? status : annal__db_fail(err, rows->db, rc, "%s", what);
}

static annal_status give_rows(struct rows *rows, sqlite3_stmt *statement, annal_error *err)
{
    annal_status status = ANNAL_OK;
    int rc = annal__bound_step(&rows->bound, statement);
    while (rc == SQLITE_ROW && status == ANNAL_OK) {
        if (sqlite3_column_type(statement, 0) != SQLITE_NULL)
            status = give_line(rows, annal__db_column(statement, 0), err);
        rc = status == ANNAL_OK ? annal__bound_step(&rows->bound, statement) : rc;
    }
    if (status == ANNAL_OK && rc != SQLITE_DONE)
        status = fail_reading(rows, rc, "read this SQLite database", err);
    return status;
}

/* Return whether a SELECT failed because the database lacks one of its tables or columns (rule
 * 2). */
static bool lacks_something(sqlite3 *db)
{
    const char *why = sqlite3_errmsg(db);
    return strncmp(why, "no such table", 13) == 0 || strncmp(why, "no such column", 14) == 0;
}

static annal_status run_section(struct rows *rows, annal_slice section, annal_error *err)
{
    annal_status status = ANNAL_OK;
    while (section.len > 0 && status == ANNAL_OK) {
        sqlite3_stmt *statement = NULL;
        const char *rest = NULL;
        struct name *before = rows->read;
        int rc = sqlite3_prepare_v2(rows->db, section.ptr, (int)section.len, &statement, &rest);
        if (rc != SQLITE_OK && lacks_something(rows->db)) {
            /* forget the tables that the failed SELECT would have read */
            while (rows->read != before) {
                struct name *gone = rows->read;
                rows->read = gone->next;
                annal__free(gone);
            }
            return ANNAL_OK;
        }
        if (rc != SQLITE_OK)
            return annal__db_fail(err, rows->db, rc, "importer, section rows");
        section = (annal_slice){rest, section.len - (size_t)(rest - section.ptr)};
        if (statement != NULL && sqlite3_column_count(statement) != 1)
            status = annal__fail(err, ANNAL_ERR_SQL,
                                 "importer, section rows: a SELECT returns %d columns, not one",
                                 sqlite3_column_count(statement));
        else if (statement != NULL)
            status = give_rows(rows, statement, err);
        sqlite3_finalize(statement);
    }
    return status;
}

/* ---- The other tables ---- */

static annal_status put_bytes(struct buf *line, annal_slice bytes)
{
    annal__buf_printf(line, "{\"$base64\":\"");
    annal__base64_put(line, bytes);
    return annal__buf_append(line, "\"}", 2);
}

static annal_status put_value(struct buf *line, sqlite3_stmt *statement, int column)
{
    annal_slice bytes;
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        return annal__buf_printf(line, "%lld", (long long)sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
        return isfinite(sqlite3_column_double(statement, column))
                   ? annal__buf_printf(line, "%.17g", sqlite3_column_double(statement, column))
                   : annal__buf_printf(line, "\"%g\"", sqlite3_column_double(statement, column));
    case SQLITE_TEXT:
        bytes = annal__db_column(statement, column);
        return annal__json_is_utf8(bytes) ? annal__json_quote(line, bytes) : put_bytes(line, bytes);
    case SQLITE_BLOB:
        bytes.ptr = sqlite3_column_blob(statement, column);
        bytes.len = (size_t)sqlite3_column_bytes(statement, column);
        return put_bytes(line, bytes);
    default:
        return annal__buf_printf(line, "null");
    }
}

static annal_status put_row(struct buf *line, annal_slice table, sqlite3_stmt *statement)
{
    annal__buf_clear(line);
    annal_status status = annal__json_put(line, "{\"table\":?", table);
    for (int i = 0; status >= 0 && i < sqlite3_column_count(statement); i++) {
        annal__buf_printf(line, i == 0 ? ",\"row\":{" : ",");
        status = annal__json_put(line, "?:", annal_slice_of(sqlite3_column_name(statement, i)));
        if (status >= 0)
            status = put_value(line, statement, i);
    }
    return status < 0 ? status : annal__buf_printf(line, "}}");
}

static annal_status give_table(struct rows *rows, annal_slice table, annal_error *err)
{
    sqlite3_stmt *statement = NULL;
    annal_status status = ANNAL_OK;
    char *sql = sqlite3_mprintf("SELECT * FROM \"%.*w\"", ANNAL_FMT(table));
    int rc = sql == NULL ? SQLITE_NOMEM : sqlite3_prepare_v2(rows->db, sql, -1, &statement, NULL);
    sqlite3_free(sql);
    while (rc == SQLITE_OK && status == ANNAL_OK &&
           (rc = annal__bound_step(&rows->bound, statement)) == SQLITE_ROW) {
        rc = SQLITE_OK;
        status = put_row(&rows->line, table, statement);
        if (status < 0)
            status = annal__fail(err, status, "a row of table '%.*s' %s", ANNAL_FMT(table),
                                 status == ANNAL_ERR_LIMIT ? "is larger than 4 GiB as JSON"
                                                           : "does not fit into memory");
        else
            status = give_line(rows, annal__buf_slice(&rows->line), err);
    }
    if (status == ANNAL_OK && rc != SQLITE_DONE) {
        char what[300];
        snprintf(what, sizeof what, "read table '%.*s'", ANNAL_FMT(table));
        status = fail_reading(rows, rc, what, err);
    }
    sqlite3_finalize(statement);
    return status;
}

static bool has_table(sqlite3 *db, annal_slice table)
{
    sqlite3_stmt *statement = NULL;
    bool found = false;
    if (annal__db_prepare(db, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1",
                          &statement, NULL) >= 0) {
        annal__db_bind_text(statement, 1, table);
        found = sqlite3_step(statement) == SQLITE_ROW;
    }
    sqlite3_finalize(statement);
    return found;
}

/* Return the rows of the tables that the section "-- tables" lists, in its order (rule 3). */
static annal_status give_first_tables(struct rows *rows, annal_slice names, annal_error *err)
{
    annal_status status = ANNAL_OK;
    size_t at = 0;
    while (status == ANNAL_OK && at < names.len) {
        size_t begin = at;
        while (at < names.len && strchr(" \t\r\n", names.ptr[at]) == NULL)
            at++;
        annal_slice table = {names.ptr + begin, at - begin};
        at++;
        if (table.len == 0 || !has_table(rows->db, table) || was_read(rows, table))
            continue;
        status = note_read(rows, table)
                     ? give_table(rows, table, err)
                     : annal__fail(err, ANNAL_ERR_NOMEM, "read a database: out of memory");
    }
    return status;
}

/*
 * Return the rows of all tables that were not read (rule 3). Virtual tables are left out, because
 * their content is in shadow tables.
 */
static annal_status give_other_tables(struct rows *rows, annal_error *err)
{
    sqlite3_stmt *names = NULL;
    annal_status status = annal__db_prepare(
        rows->db,
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow') "
        "AND name NOT GLOB 'sqlite_*' ORDER BY name",
        &names, err);
    int rc = SQLITE_DONE;
    while (status == ANNAL_OK && (rc = sqlite3_step(names)) == SQLITE_ROW)
        if (!was_read(rows, annal__db_column(names, 0)))
            status = give_table(rows, annal__db_column(names, 0), err);
    if (status == ANNAL_OK && rc != SQLITE_DONE)
        status = annal__db_fail(err, rows->db, rc, "cannot read this SQLite database");
    sqlite3_finalize(names);
    return status;
}

/* Return the limit for the total size of the lines: temp_bytes, or four times the size of the
 * database, which no sound database exceeds; 0: no limit. */
static uint64_t lines_max(const char *path, const annal_limits *limits)
{
    struct stat info;
    uint64_t bytes = stat(path, &info) == 0 ? 4 * (uint64_t)info.st_size : 0;
    return limits->temp_bytes == 0 || bytes < limits->temp_bytes ? limits->temp_bytes : bytes;
}

annal_status annal__import_rows(annal_slice sql, const char *path, const annal_limits *limits,
                                annal__import_row_fn fn, void *arg, annal_error *err)
{
    static const annal_limits none;
    struct rows rows = {.fn = fn, .arg = arg, .line = {.limit = ROW_BYTES_MAX}};
    size_t at = 0;
    if (limits == NULL)
        limits = &none;
    annal_status status = annal__foreign_open(&rows.foreign, path, limits->wait_ms, err);
    rows.db = rows.foreign.db;
    if (status >= 0) {
        annal__bound_begin(&rows.bound, rows.db, limits);
        rows.bound.each_row = true;
        rows.bytes_max = lines_max(path, limits);
    }
    if (status >= 0)
        status =
            give_first_tables(&rows, annal__import_section(sql, "-- tables", &(size_t){0}), err);
    /* SQLite creates the table json_each at its first use, which the restrictions below would deny:
     * use it once before them */
    if (status >= 0) {
        (void)sqlite3_exec(rows.db, "SELECT 1 FROM json_each('[]')", NULL, NULL, NULL);
        sqlite3_set_authorizer(rows.db, allow_reading, &rows);
    }
    for (annal_slice section;
         status == ANNAL_OK && (section = annal__import_section(sql, "-- rows", &at)).ptr != NULL;)
        status = run_section(&rows, section, err);
    if (rows.db != NULL)
        sqlite3_set_authorizer(rows.db, NULL, NULL);
    if (status == ANNAL_OK)
        status = give_other_tables(&rows, err);
    if (status == ANNAL_OK && rows.foreign.damaged)
        status = annal__fail(err, ANNAL_ERR_CORRUPT, "this SQLite database is cut short");
    annal__bound_end(&rows.bound);
    annal__foreign_close(&rows.foreign);
    annal__buf_done(&rows.line);
    for (struct name *name = rows.read; name != NULL;) {
        struct name *next = name->next;
        annal__free(name);
        name = next;
    }
    return status;
}
