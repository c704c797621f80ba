/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/db.h"

#include "index/db/bound.h"
#include "index/db/connect.h"
#include "index/db/functions.h"
#include "index/db/readers.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static annal_status status_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: /* another program holds a lock: patience.h, rule (2) */
        return ANNAL_ERR_BUSY;
    case SQLITE_NOMEM:
        return ANNAL_ERR_NOMEM;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ANNAL_ERR_CORRUPT;
    case SQLITE_FULL:
        return ANNAL_ERR_FULL;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
        return ANNAL_ERR_IO;
    case SQLITE_TOOBIG:
        return ANNAL_ERR_LIMIT;
    default:
        return ANNAL_ERR_SQL;
    }
}

/* Return the errno for which a file could not be used; 0 if unknown, or if the file was deleted. */
static int errno_of(sqlite3 *db, int rc)
{
    switch (rc) {
    case SQLITE_FULL:
    case SQLITE_IOERR_SHMSIZE:
        return ENOSPC;
    case SQLITE_READONLY_DBMOVED:
        return 0;
    default:
        break;
    }
    if ((rc & 0xff) == SQLITE_READONLY || (rc & 0xff) == SQLITE_PERM)
        return EACCES;
    return db == NULL ? 0 : sqlite3_system_errno(db);
}

annal_status annal__db_fail(annal_error *err, sqlite3 *db, int rc, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);

    annal_status status = status_of(rc);
    if ((rc & 0xff) == SQLITE_IOERR && errno_of(db, rc) != 0)
        status = annal__error_of_errno(errno_of(db, rc));
    if (status == ANNAL_ERR_BUSY)
        return annal__fail(err, status, "%s: the database is locked by another program", what);
    annal__fail(err, status, "%s: %s%s", what, db == NULL ? sqlite3_errstr(rc) : sqlite3_errmsg(db),
                status == ANNAL_ERR_CORRUPT
                    ? "; try again: the database will be rebuilt from the journals"
                    : "");
    if (err != NULL && annal__error_is_io(status))
        err->os_errno = errno_of(db, rc);
    return status;
}

void annal__db_reason(sqlite3 *db, int rc, char *out, size_t room)
{
    const char *said = sqlite3_errmsg(db);
    const char *colon = strrchr(said, ':');
    const char *column = colon != NULL && colon[1] == ' ' ? colon + 2 : "value";
    switch (rc) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
        snprintf(out, room, "a row with this %.150s already exists", column);
        return;
    case SQLITE_CONSTRAINT_NOTNULL:
        snprintf(out, room, "%.150s is missing", column);
        return;
    case SQLITE_CONSTRAINT_FOREIGNKEY:
        snprintf(out, room, "the row that it refers to does not exist");
        return;
    case SQLITE_CONSTRAINT_TRIGGER:
        snprintf(out, room, "%.300s", said);
        return;
    default:
        break;
    }
    switch (rc & 0xff) {
    case SQLITE_CONSTRAINT:
        snprintf(out, room, "a value is not allowed there");
        break;
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
        snprintf(out, room, "a value is of the wrong type");
        break;
    case SQLITE_TOOBIG:
        snprintf(out, room, "a value is larger than %d MiB",
                 sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1) >> 20);
        break;
    default:
        snprintf(out, room, "the pack cannot read this data");
        break;
    }
}

annal_status annal__db_open(const char *name, int flags, sqlite3 **out_db, annal_error *err)
{
    return annal__db_open_on(NULL, name, flags, out_db, err);
}

annal_status annal__db_open_on(const char *vfs, const char *name, int flags, sqlite3 **out_db,
                               annal_error *err)
{
    sqlite3 *db = NULL;
    annal_status status = ANNAL_OK;
    int rc = annal__connect_open(vfs, name, flags | SQLITE_OPEN_EXRESCODE, &db);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_wal_autocheckpoint(db, 0);
    if (rc == SQLITE_OK)
        rc = annal__functions_add(db);
    if (rc != SQLITE_OK) {
        status = annal__db_fail(err, db, rc, "cannot open '%s'", name);
        goto done;
    }
    *out_db = db;
    db = NULL;

done:
    annal__db_close(db);
    return status;
}

/*
 * Run a query whose rows are names of SQL functions of db, or one list of them, and append its
 * first column to out. known: value of the query's parameter; each row is then followed by \0 in
 * out. NULL: the query has no parameter.
 */
static annal_status ask_functions(sqlite3 *db, const char *sql, const struct buf *known,
                                  struct buf *out, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(db, sql, &stmt, err);
    if (status >= 0 && known != NULL)
        annal__db_bind_text(stmt, 1, annal__buf_slice(known));
    int rc = SQLITE_DONE;
    while (status >= 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        annal_slice text = annal__db_column(stmt, 0);
        status = annal__buf_append(out, text.ptr, text.len);
        if (status >= 0 && known != NULL)
            status = annal__buf_append(out, "", 1);
        if (status < 0)
            annal__fail(err, status, "cannot add the SQL functions of the store's extensions");
    }
    sqlite3_finalize(stmt);
    return status >= 0 && rc != SQLITE_DONE
               ? annal__db_fail(err, db, rc,
                                "cannot add the SQL functions of the store's extensions")
               : status;
}

annal_status annal__db_load(sqlite3 *db, const char *path, struct buf *out_functions,
                            annal_error *err)
{
    char *why = NULL;
    SCOPED_BUF known = {0};
    annal_status status = ask_functions(
        db, "SELECT json_group_array(DISTINCT name) FROM pragma_function_list", NULL, &known, err);
    if (status < 0)
        goto done;
    /* allow sqlite3_load_extension() in C, but not load_extension() in SQL */
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
    int rc = sqlite3_load_extension(db, path, NULL, &why);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    if (rc != SQLITE_OK) {
        status = annal__fail(err, ANNAL_ERR_SQL, "extension '%s': %s", path,
                             why == NULL ? sqlite3_errstr(rc) : why);
        goto done;
    }
    status = ask_functions(db,
                           "SELECT DISTINCT name FROM pragma_function_list "
                           "WHERE name NOT IN (SELECT value FROM json_each(?1))",
                           &known, out_functions, err);
    if (status >= 0 && annal__buf_append(out_functions, "", 1) < 0)
        status =
            annal__fail(err, ANNAL_ERR_NOMEM, "add the functions of an extension: out of memory");

done:
    sqlite3_free(why);
    return status;
}

void annal__db_close(sqlite3 *db)
{
    sqlite3_close_v2(db);
}

void annal__db_finalize(sqlite3 *db)
{
    sqlite3_stmt *stmt;
    while ((stmt = sqlite3_next_stmt(db, NULL)) != NULL)
        sqlite3_finalize(stmt);
}

annal_status annal__db_exec(sqlite3 *db, const char *sql, annal_error *err)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return annal__db_fail(err, db, rc, "run the SQL statement '%.60s'", sql);
    return ANNAL_OK;
}

annal_status annal__db_begin(sqlite3 *db, annal_error *err)
{
    return sqlite3_get_autocommit(db) == 0 ? ANNAL_OK : annal__db_exec(db, "BEGIN", err);
}

void annal__db_rollback(sqlite3 *db)
{
    if (sqlite3_get_autocommit(db) == 0)
        (void)annal__db_exec(db, "ROLLBACK", NULL);
}

annal_status annal__db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out_stmt,
                               annal_error *err)
{
    int rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, out_stmt, NULL);
    if (rc != SQLITE_OK)
        return annal__db_fail(err, db, rc, "run the SQL statement '%.60s'", sql);
    return ANNAL_OK;
}

annal_status annal__db_run(sqlite3_stmt *stmt, annal_error *err)
{
    int rc;
    do
        rc = sqlite3_step(stmt);
    while (rc == SQLITE_ROW);
    annal_status status = ANNAL_OK;
    if (rc != SQLITE_DONE)
        status = annal__db_fail(err, sqlite3_db_handle(stmt), rc, "run the SQL statement '%.60s'",
                                sqlite3_sql(stmt));
    sqlite3_reset(stmt);
    return status;
}

annal_status annal__db_integer(sqlite3 *db, const char *sql, int64_t *out, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(db, sql, &stmt, err);
    if (status < 0)
        return status;
    int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = annal__db_fail(err, db, rc, "run the SQL statement '%.60s'", sql);
    else
        *out = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_finalize(stmt);
    return status;
}

void annal__db_bind_text(sqlite3_stmt *stmt, int column, annal_slice text)
{
    sqlite3_bind_text64(stmt, column, text.ptr == NULL ? "" : text.ptr, text.len, SQLITE_STATIC,
                        SQLITE_UTF8);
}

annal_slice annal__db_column(sqlite3_stmt *stmt, int column)
{
    const void *bytes = sqlite3_column_type(stmt, column) == SQLITE_BLOB
                            ? sqlite3_column_blob(stmt, column)
                            : (const void *)sqlite3_column_text(stmt, column);
    return (annal_slice){bytes, (size_t)sqlite3_column_bytes(stmt, column)};
}

/* ---- SELECT ---- */

static bool only_space(const char *text, const char *end)
{
    while (text < end &&
           (*text == ' ' || *text == '\t' || *text == '\n' || *text == '\r' || *text == ';'))
        text++;
    return text == end;
}

static annal_status refuse(const struct allowed *allowed, annal_error *err)
{
    if (allowed->what[0] != '\0')
        return annal__fail(err, ANNAL_ERR_SQL, "%s is not allowed in a statement that only reads",
                           allowed->what);
    return annal__fail(
        err, ANNAL_ERR_SQL,
        "only statements that read (SELECT, WITH, VALUES, EXPLAIN QUERY PLAN) are allowed, because "
        "the tables are built from the journals: append an event instead");
}

/* Return whether the statement only reads, and is not a plain EXPLAIN: see allowed.c, rule 5. */
static bool is_reading(sqlite3_stmt *stmt)
{
    return stmt == NULL || (sqlite3_stmt_readonly(stmt) && sqlite3_stmt_isexplain(stmt) != 1);
}

annal_status annal__db_prepare_select(sqlite3 *db, annal_slice sql, struct allowed *allowed,
                                      sqlite3_stmt **out_stmt, annal_error *err)
{
    if (sql.len > INT32_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT, "the SQL text is too long: %zu bytes", sql.len);
    const char *tail = NULL;
    sqlite3_stmt *stmt = NULL;
    sqlite3_set_authorizer(db, annal__allowed_select, allowed);
    int rc = sqlite3_prepare_v2(db, sql.ptr == NULL ? "" : sql.ptr, (int)sql.len, &stmt, &tail);

    annal_status status = ANNAL_OK;
    if (allowed->refused || (rc == SQLITE_OK && !is_reading(stmt)))
        status = refuse(allowed, err);
    else if (rc != SQLITE_OK)
        status = annal__db_fail(err, db, rc, "SQL");
    else if (stmt == NULL)
        status = annal__fail(err, ANNAL_ERR_SQL, "the text contains no SQL statement");
    else if (!only_space(tail, sql.ptr + sql.len))
        status = annal__fail(
            err, ANNAL_ERR_SQL,
            "the text contains more than one SQL statement: run the statements one by one");
    if (status < 0) {
        annal__db_end_select(db);
        sqlite3_finalize(stmt);
        return status;
    }
    *out_stmt = stmt;
    return ANNAL_OK;
}

void annal__db_end_select(sqlite3 *db)
{
    sqlite3_set_authorizer(db, NULL, NULL);
}

static annal_status bind_params(sqlite3_stmt *stmt, const annal_sql_options *options,
                                annal_error *err)
{
    for (size_t i = 0; i < options->param_count; i++) {
        const annal_value *value = &options->params[i];
        int at = (int)i + 1, rc = SQLITE_OK;
        switch (value->kind) {
        case ANNAL_VALUE_NULL:
            rc = sqlite3_bind_null(stmt, at);
            break;
        case ANNAL_VALUE_INTEGER:
            rc = sqlite3_bind_int64(stmt, at, value->integer);
            break;
        case ANNAL_VALUE_REAL:
            rc = sqlite3_bind_double(stmt, at, value->real);
            break;
        case ANNAL_VALUE_TEXT:
            rc = sqlite3_bind_text64(stmt, at, value->bytes.ptr == NULL ? "" : value->bytes.ptr,
                                     value->bytes.len, SQLITE_STATIC, SQLITE_UTF8);
            break;
        case ANNAL_VALUE_BLOB:
            rc = sqlite3_bind_blob64(stmt, at, value->bytes.ptr == NULL ? "" : value->bytes.ptr,
                                     value->bytes.len, SQLITE_STATIC);
            break;
        }
        if (rc != SQLITE_OK)
            return annal__db_fail(err, sqlite3_db_handle(stmt), rc,
                                  "cannot bind a value to parameter ?%d", at);
    }
    return ANNAL_OK;
}

annal_value annal__db_value(sqlite3_stmt *stmt, int column)
{
    annal_value value = {.kind = ANNAL_VALUE_NULL};
    switch (sqlite3_column_type(stmt, column)) {
    case SQLITE_INTEGER:
        value.kind = ANNAL_VALUE_INTEGER;
        value.integer = sqlite3_column_int64(stmt, column);
        break;
    case SQLITE_FLOAT:
        value.kind = ANNAL_VALUE_REAL;
        value.real = sqlite3_column_double(stmt, column);
        break;
    case SQLITE_TEXT:
        value.kind = ANNAL_VALUE_TEXT;
        value.bytes = annal__db_column(stmt, column);
        break;
    case SQLITE_BLOB:
        value.kind = ANNAL_VALUE_BLOB;
        value.bytes = annal__db_column(stmt, column);
        break;
    default:
        break;
    }
    return value;
}

static annal_status hand_out_rows(struct bound *bound, sqlite3_stmt *stmt, annal_row *row,
                                  annal_value *values, annal_row_fn fn, void *arg, annal_error *err)
{
    for (;;) {
        int rc = annal__bound_step(bound, stmt);
        if (rc == SQLITE_DONE)
            return ANNAL_OK;
        annal_status status =
            rc == SQLITE_ROW ? ANNAL_OK : annal__bound_fail(bound, rc, "SQL", err);
        if (status < 0)
            return status;
        if (rc != SQLITE_ROW)
            return annal__db_fail(err, sqlite3_db_handle(stmt), rc, "SQL");
        for (size_t i = 0; i < row->count; i++)
            values[i] = annal__db_value(stmt, (int)i);
        row->values = values;
        int verdict = fn(arg, row);
        if (verdict != 0)
            return (annal_status)verdict;
    }
}

annal_status annal__db_select(sqlite3 *db, annal_slice sql, const annal_sql_options *options,
                              annal_row_fn fn, void *arg, annal_error *err)
{
    static const annal_sql_options defaults;
    struct allowed allowed = {0};
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare_select(db, sql, &allowed, &stmt, err);
    return status < 0
               ? status
               : annal__db_select_with(stmt, options == NULL ? &defaults : options, fn, arg, err);
}

/* Run a statement, and pass its rows to fn. */
static annal_status select_rows(sqlite3_stmt *stmt, const annal_sql_options *options,
                                annal_row_fn fn, void *arg, annal_error *err)
{
    const char **names = NULL;
    annal_value *values = NULL;
    struct bound bound = {0};
    annal_status status = bind_params(stmt, options, err);
    if (status < 0)
        return status;

    annal_row row = {.count = (size_t)sqlite3_column_count(stmt)};
    names = annal__zalloc((row.count + 1) * sizeof *names);
    values = annal__zalloc((row.count + 1) * sizeof *values);
    if (names == NULL || values == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "read a row of %zu columns: out of memory",
                             row.count);
        goto done;
    }
    for (size_t i = 0; i < row.count; i++)
        names[i] = sqlite3_column_name(stmt, (int)i);
    row.names = names;
    int verdict = options->columns == NULL ? 0 : options->columns(arg, &row);
    annal__bound_begin(&bound, sqlite3_db_handle(stmt), &options->limits);
    status = verdict != 0 ? (annal_status)verdict
                          : hand_out_rows(&bound, stmt, &row, values, fn, arg, err);

done:
    annal__bound_end(&bound);
    annal__free(values);
    annal__free(names);
    return status;
}

annal_status annal__db_select_with(sqlite3_stmt *stmt, const annal_sql_options *options,
                                   annal_row_fn fn, void *arg, annal_error *err)
{
    annal_status status = select_rows(stmt, options, fn, arg, err);
    annal__db_end_select(sqlite3_db_handle(stmt));
    sqlite3_finalize(stmt);
    return status;
}

annal_status annal__db_ask(sqlite3 *db, const char *sql, const annal_sql_options *options,
                           annal_row_fn fn, void *arg, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__readers_prepare(db, sql, &stmt, err);
    if (status < 0)
        return status;
    status = select_rows(stmt, options, fn, arg, err);
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return status;
}
