/* SPDX-License-Identifier: Apache-2.0 */
/* The triggers that copy what users write into the outbox, and writing into it ourselves: outbox.c,
 * rules 1 to 3. */
#include "index/pack/outbox.h"

#include "index/db/db.h"
#include "journal/base/error.h"

/* Append SQL that is formatted as by sqlite3_mprintf(): %w and %Q quote names and texts. */
static bool add_sql(sqlite3_str *sql, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sqlite3_str_vappendf(sql, format, args);
    va_end(args);
    return sqlite3_str_errcode(sql) == SQLITE_OK;
}

/* Append an SQL expression for the total bytes of the values of a row. */
static void add_bytes(sqlite3_str *sql, const struct outbox_table *table, const char *row)
{
    for (size_t i = 0; i < table->count; i++)
        add_sql(sql, "%sIFNULL(length(CAST(%s.\"%w\" AS BLOB)), 0)", i == 0 ? "" : " + ", row,
                table->columns[i].name);
}

/* Append an SQL condition: the old row has no primary key, or NULL in its key. */
static void add_keyless(sqlite3_str *sql, const struct outbox_table *table)
{
    add_sql(sql, table->has_key ? "(0" : "(1");
    for (size_t i = 0; i < table->count; i++)
        if (table->columns[i].key && !table->columns[i].not_null)
            add_sql(sql, " OR OLD.\"%w\" IS NULL", table->columns[i].name);
    add_sql(sql, ")");
}

static void add_limit(sqlite3_str *sql, const char *name, const struct outbox_table *table,
                      bool updates)
{
    add_sql(sql, "  SELECT RAISE(ABORT, 'a row of ");
    for (const char *c = name; *c != '\0'; c++) /* a quote is doubled within the SQL literal */
        add_sql(sql, *c == '\'' ? "''" : "%c", *c);
    add_sql(
        sql,
        " may contain %u MiB: put large values into a file and its path into the row')\n  WHERE ",
        OUTBOX_ROW_BYTES_MAX >> 20);
    add_bytes(sql, table, "NEW");
    if (updates) { /* an update without a key also stores the complete old row */
        add_sql(sql, " + CASE WHEN ");
        add_keyless(sql, table);
        add_sql(sql, " THEN ");
        add_bytes(sql, table, "OLD");
        add_sql(sql, " ELSE 0 END");
    }
    add_sql(sql, " > %u;\n", OUTBOX_ROW_BYTES_MAX);
}

static void add_change(sqlite3_str *sql, const char *name, const char *op)
{
    add_sql(sql,
            "  INSERT INTO _outbox (tbl, op, at) VALUES (%Q, %Q, "
            "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now'));\n",
            name, op);
}

/* Append SQL that stores the current values of the row in the table, after a user's triggers have
 * run. */
static void add_row(sqlite3_str *sql, const char *name, const struct outbox_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const char *column = table->columns[i].name;
        add_sql(sql,
                "  INSERT INTO _outbox_values SELECT (SELECT MAX(n) FROM _outbox), 'row', %Q, "
                "\"%w\" FROM \"%w\" WHERE ",
                column, column, name);
        if (table->rowid != NULL)
            add_sql(sql, "%s = NEW.%s", table->rowid, table->rowid);
        bool first = true;
        for (size_t j = 0; table->rowid == NULL && j < table->count; j++) {
            if (!table->columns[j].key)
                continue;
            add_sql(sql, "%s\"%w\" IS NEW.\"%w\"", first ? "" : " AND ", table->columns[j].name,
                    table->columns[j].name);
            first = false;
        }
        add_sql(sql, ";\n");
    }
}

/* Append SQL that stores the old row: its key, or all values if `all` or if the row has no key. */
static void add_was(sqlite3_str *sql, const struct outbox_table *table, bool all)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct outbox_column *column = &table->columns[i];
        add_sql(sql,
                "  INSERT INTO _outbox_values SELECT (SELECT MAX(n) FROM _outbox), 'was', %Q, "
                "OLD.\"%w\"",
                column->name, column->name);
        if (!all && !column->key) {
            add_sql(sql, " WHERE ");
            add_keyless(sql, table);
        }
        add_sql(sql, ";\n");
    }
}

annal_status annal__outbox_capture(sqlite3 *db, const char *name, const struct outbox_table *table,
                                   annal_error *err)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    static const char *const ops[] = {"insert", "update", "delete"};
    for (int i = 0; i < 3; i++) {
        add_sql(sql, "DROP TRIGGER IF EXISTS main.\"_outbox_%s_%w\";\n", ops[i], name);
        add_sql(sql, "CREATE TRIGGER main.\"_outbox_%s_%w\" AFTER %s ON \"%w\" BEGIN\n", ops[i],
                name, ops[i], name);
        if (i < 2)
            add_limit(sql, name, table, i == 1);
        add_change(sql, name, ops[i]);
        if (i > 0)
            add_was(sql, table, i == 2);
        if (i < 2)
            add_row(sql, name, table);
        add_sql(sql, "END;\n");
    }
    char *text = sqlite3_str_finish(sql);
    if (text == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "create the triggers of table '%s': out of memory",
                           name);
    annal_status status = annal__db_exec(db, text, err);
    sqlite3_free(text);
    return status;
}

/* Compose a DROP for the first object that select returns; *out_sql is NULL if it returns none. */
static annal_status next_drop(sqlite3 *db, const char *select, char **out_sql, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(db, select, &stmt, err);
    if (status < 0)
        return status;
    *out_sql = NULL;
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        *out_sql = sqlite3_mprintf("DROP %s main.\"%w\"", sqlite3_column_text(stmt, 0),
                                   sqlite3_column_text(stmt, 1));
        if (*out_sql == NULL)
            status = annal__fail(err, ANNAL_ERR_NOMEM, "prepare the outbox: out of memory");
    } else if (rc != SQLITE_DONE) {
        status = annal__db_fail(err, db, rc, "cannot read the outbox, the rows that users wrote");
    }
    sqlite3_finalize(stmt);
    return status;
}

annal_status annal__outbox_drop_each(sqlite3 *db, const char *select, annal_error *err)
{
    annal_status status = ANNAL_OK;
    bool more = true;
    while (status >= 0 && more) {
        char *sql = NULL;
        status = next_drop(db, select, &sql, err);
        more = sql != NULL;
        if (status >= 0 && more)
            status = annal__db_exec(db, sql, err);
        sqlite3_free(sql);
    }
    return status;
}

annal_status annal__outbox_uncapture(sqlite3 *db, annal_error *err)
{
    return annal__outbox_drop_each(
        db,
        "SELECT type, name FROM sqlite_schema WHERE type = 'trigger' AND "
        "(name GLOB '_outbox_insert_*' OR name GLOB '_outbox_update_*' "
        "OR name GLOB '_outbox_delete_*') LIMIT 1",
        err);
}

annal_status annal__outbox_put(sqlite3 *db, const char *table, const char *op, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status =
        annal__db_prepare(db, "INSERT INTO _outbox (tbl, op) VALUES (?1, ?2)", &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(table));
    annal__db_bind_text(stmt, 2, annal_slice_of(op));
    status = annal__db_run(stmt, err);
    sqlite3_finalize(stmt);
    return status;
}

annal_status annal__outbox_put_value(sqlite3 *db, const char *part, const char *name,
                                     sqlite3_value *value, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(
        db, "INSERT INTO _outbox_values SELECT MAX(n), ?1, ?2, ?3 FROM _outbox", &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(part));
    annal__db_bind_text(stmt, 2, annal_slice_of(name));
    sqlite3_bind_value(stmt, 3, value);
    status = annal__db_run(stmt, err);
    sqlite3_finalize(stmt);
    return status;
}
