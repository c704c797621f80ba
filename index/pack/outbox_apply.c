/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applying the events sql.applied and schema.extended to the tables. The data of these events is
 * described in outbox.c, rule (7).
 */
#include "index/pack/outbox.h"

#include "index/db/db.h"
#include "journal/base/alloc.h"
#include "journal/base/base64.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/number.h"
#include "journal/base/slice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct outbox_reader {
    sqlite3 *db;
    /* statement that reads the state of the outbox; NULL: not prepared, because there is no
     * outbox */
    sqlite3_stmt *state;
    sqlite3_stmt *head;    /* statement that reads the members table, op and ddl of data */
    sqlite3_stmt *members; /* statement that lists the members of an object in data */
    sqlite3_stmt *raw;     /* statement that reads a member as it is written in data */
    /* statement that reads a value that is wrapped in an object: blob, text or real */
    sqlite3_stmt *wrapped;
    struct buf sql; /* text of the prepared statement `change` */
    /* statement of the last change, kept because changes of one table are often adjacent */
    sqlite3_stmt *change;
    struct buf bytes;      /* buffer for the bytes of decoded base64 */
    sqlite3_stmt *version; /* statement that reads the version of the schema */
    int64_t learned;
    char *table_name;
    struct outbox_table table;
    char why[256];
};

annal_status annal__outbox_reader_new(sqlite3 *db, struct outbox_reader **out_reader,
                                      annal_error *err)
{
    struct outbox_reader *reader = annal__zalloc(sizeof *reader);
    if (reader == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read an outbox: out of memory");
    reader->db = db;
    annal_status status = annal__db_prepare(
        db, "SELECT ?1 ->> '$.table', ?1 ->> '$.op', ?1 ->> '$.ddl'", &reader->head, err);
    if (status >= 0)
        status = annal__db_prepare(db, "SELECT key, type, value, fullkey FROM json_each(?1, ?2)",
                                   &reader->members, err);
    if (status >= 0)
        status = annal__db_prepare(db, "SELECT ?1 -> ?2", &reader->raw, err);
    if (status >= 0)
        status = annal__db_prepare(db, "SELECT ?1 ->> '$.blob', ?1 ->> '$.text', ?1 ->> '$.real'",
                                   &reader->wrapped, err);
    if (status >= 0)
        status = annal__db_prepare(db, "PRAGMA main.schema_version", &reader->version, err);
    if (status >= 0)
        *out_reader = reader;
    else
        annal__outbox_reader_free(reader);
    return status;
}

void annal__outbox_reader_free(struct outbox_reader *reader)
{
    if (reader == NULL)
        return;
    sqlite3_finalize(reader->state);
    sqlite3_finalize(reader->head);
    sqlite3_finalize(reader->members);
    sqlite3_finalize(reader->raw);
    sqlite3_finalize(reader->wrapped);
    sqlite3_finalize(reader->change);
    annal__buf_done(&reader->sql);
    annal__buf_done(&reader->bytes);
    sqlite3_finalize(reader->version);
    annal__outbox_table_done(&reader->table);
    annal__free(reader->table_name);
    annal__free(reader);
}

bool annal__outbox_takes(annal_slice type)
{
    return annal__slice_is(type, "sql.applied") || annal__slice_is(type, "schema.extended");
}

static int refuse(struct outbox_reader *reader, const char *why, const char *what)
{
    snprintf(reader->why, sizeof reader->why, "%s%s", why, what);
    return SQLITE_ERROR;
}

/* ---- Changes that the tables contain already, rule 5 of outbox.c ---- */

bool annal__outbox_holds(struct outbox_reader *reader, const annal_event *event)
{
    if (reader->state == NULL &&
        annal__db_prepare(reader->db, "SELECT id, drained FROM _outbox_state", &reader->state,
                          NULL) < 0)
        return false;
    bool held = false;
    char number[24] = "";
    if (sqlite3_step(reader->state) == SQLITE_ROW) {
        annal_slice id = annal__db_column(reader->state, 0);
        if (event->id.len > id.len + 1 && memcmp(event->id.ptr, id.ptr, id.len) == 0 &&
            event->id.ptr[id.len] == ':') {
            size_t len = event->id.len - id.len - 1;
            memcpy(number, event->id.ptr + id.len + 1,
                   len < sizeof number ? len : sizeof number - 1);
            held = strtoll(number, NULL, 10) <= sqlite3_column_int64(reader->state, 1);
        }
    }
    sqlite3_reset(reader->state);
    return held;
}

/* ---- Values ---- */

/* Return the double of a member, read from its text in data, which json_each might round. If it
 * cannot be read, return instead. */
static double read_real(struct outbox_reader *reader, annal_slice data, annal_slice fullkey,
                        double instead)
{
    annal__db_bind_text(reader->raw, 1, data);
    annal__db_bind_text(reader->raw, 2, fullkey);
    if (sqlite3_step(reader->raw) == SQLITE_ROW) {
        annal_slice text = annal__db_column(reader->raw, 0);
        struct number number = {0};
        if (text.len > 0 && (text.ptr[0] == '-' || (text.ptr[0] >= '0' && text.ptr[0] <= '9')))
            number = annal__number_read(text);
        if (number.kind == NUMBER_DOUBLE)
            instead = number.real;
    }
    sqlite3_reset(reader->raw);
    return instead;
}

static int bind_bytes(struct outbox_reader *reader, int at, annal_slice base64, bool is_text)
{
    annal__buf_clear(&reader->bytes);
    if (!annal__base64_check(base64))
        return refuse(reader, "a value is not valid base64", "");
    if (annal__base64_take(&reader->bytes, base64) < 0)
        return SQLITE_NOMEM;
    const char *bytes = reader->bytes.ptr == NULL ? "" : reader->bytes.ptr;
    return is_text ? sqlite3_bind_text64(reader->change, at, bytes, reader->bytes.len,
                                         SQLITE_TRANSIENT, SQLITE_UTF8)
                   : sqlite3_bind_blob64(reader->change, at, bytes, reader->bytes.len,
                                         SQLITE_TRANSIENT);
}

static int bind_wrapped(struct outbox_reader *reader, int at, annal_slice object)
{
    sqlite3_stmt *stmt = reader->wrapped;
    annal__db_bind_text(stmt, 1, object);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW && sqlite3_column_type(stmt, 0) == SQLITE_TEXT)
        rc = bind_bytes(reader, at, annal__db_column(stmt, 0), false);
    else if (rc == SQLITE_ROW && sqlite3_column_type(stmt, 1) == SQLITE_TEXT)
        rc = bind_bytes(reader, at, annal__db_column(stmt, 1), true);
    else if (rc == SQLITE_ROW && sqlite3_column_type(stmt, 2) == SQLITE_TEXT)
        rc = sqlite3_bind_double(reader->change, at,
                                 sqlite3_column_text(stmt, 2)[0] == '-' ? -INFINITY : INFINITY);
    else
        rc = refuse(reader, "a value is an object without blob, text or real", "");
    sqlite3_reset(stmt);
    return rc;
}

/* Bind the members of an object in data to parameters, from *at on; *at is moved after them. */
static int bind_members(struct outbox_reader *reader, annal_slice data, const char *path, int *at)
{
    sqlite3_stmt *stmt = reader->members;
    annal__db_bind_text(stmt, 1, data);
    annal__db_bind_text(stmt, 2, annal_slice_of(path));
    int rc = SQLITE_OK, step;
    while (rc == SQLITE_OK && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(stmt, 1);
        if (strcmp(type, "real") == 0)
            rc = sqlite3_bind_double(
                reader->change, *at,
                read_real(reader, data, annal__db_column(stmt, 3), sqlite3_column_double(stmt, 2)));
        else if (strcmp(type, "object") == 0)
            rc = bind_wrapped(reader, *at, annal__db_column(stmt, 2));
        else
            rc = sqlite3_bind_value(reader->change, *at, sqlite3_column_value(stmt, 2));
        ++*at;
    }
    if (rc == SQLITE_OK && step != SQLITE_DONE)
        rc = step;
    sqlite3_reset(stmt);
    return rc;
}

/* ---- The statement of a change ---- */

/* Append format once for each member of the object at path in data, with @ replaced by the quoted
 * name, and word between them. */
static int add_members(struct outbox_reader *reader, sqlite3_str *sql, annal_slice data,
                       const char *path, const char *format, const char *word, size_t *out_count)
{
    sqlite3_stmt *stmt = reader->members;
    annal__db_bind_text(stmt, 1, data);
    annal__db_bind_text(stmt, 2, annal_slice_of(path));
    int rc;
    *out_count = 0;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (++*out_count > 1)
            sqlite3_str_appendall(sql, word);
        char *name = sqlite3_mprintf("\"%w\"", sqlite3_column_text(stmt, 0));
        for (const char *c = format; name != NULL && *c != '\0'; c++) {
            if (*c == '@')
                sqlite3_str_appendall(sql, name);
            else
                sqlite3_str_appendchar(sql, 1, *c);
        }
        sqlite3_free(name);
    }
    sqlite3_reset(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum op { INSERT, UPDATE, DELETE };

static int write_insert(struct outbox_reader *reader, sqlite3_str *sql, const char *table,
                        annal_slice data)
{
    size_t count = 0;
    sqlite3_str_appendf(sql, "INSERT OR REPLACE INTO main.\"%w\" (", table);
    int rc = add_members(reader, sql, data, "$.row", "@", ", ", &count);
    sqlite3_str_appendall(sql, ") VALUES (");
    for (size_t i = 0; i < count; i++)
        sqlite3_str_appendall(sql, i == 0 ? "?" : ", ?");
    sqlite3_str_appendall(sql, ")");
    return rc == SQLITE_OK && count == 0 ? refuse(reader, "no row", "") : rc;
}

/* Append the condition that selects one row with the old values. If several rows have these values,
 * any of them is selected. */
static int write_where(struct outbox_reader *reader, sqlite3_str *sql, const char *table,
                       const struct outbox_table *columns, annal_slice data)
{
    size_t count = 0;
    sqlite3_str_appendall(sql, " WHERE ");
    if (columns->rowid != NULL)
        sqlite3_str_appendf(sql, "%s = (SELECT %s FROM main.\"%w\" WHERE ", columns->rowid,
                            columns->rowid, table);
    int rc = add_members(reader, sql, data, "$.was", "@ IS ?", " AND ", &count);
    if (columns->rowid != NULL)
        sqlite3_str_appendall(sql, " LIMIT 1)");
    return rc == SQLITE_OK && count == 0 ? refuse(reader, "the event does not say which row", "")
                                         : rc;
}

/* Read the columns of this table into reader->table, unless it contains them already: changes of
 * one table are often adjacent. */
static int learn_table(struct outbox_reader *reader, const char *name)
{
    int64_t version = -1;
    if (sqlite3_step(reader->version) == SQLITE_ROW)
        version = sqlite3_column_int64(reader->version, 0);
    sqlite3_reset(reader->version);
    if (reader->table_name != NULL && strcmp(reader->table_name, name) == 0 &&
        reader->learned == version)
        return SQLITE_OK;
    annal__outbox_table_done(&reader->table);
    annal__free(reader->table_name);
    reader->table_name = NULL;
    if (annal__outbox_table(reader->db, name, &reader->table, NULL) < 0)
        return refuse(reader, "users cannot write a table with this name: ", name);
    reader->table_name = annal__strndup(name, strlen(name));
    reader->learned = version;
    return reader->table_name == NULL ? SQLITE_NOMEM : SQLITE_OK;
}

static int write_change(struct outbox_reader *reader, sqlite3_str *sql, const char *table,
                        enum op op, annal_slice data)
{
    size_t count = 0;
    int rc = learn_table(reader, table);
    if (rc != SQLITE_OK)
        return rc;
    if (op == INSERT) {
        rc = write_insert(reader, sql, table, data);
    } else if (op == UPDATE) {
        sqlite3_str_appendf(sql, "UPDATE OR REPLACE main.\"%w\" SET ", table);
        rc = add_members(reader, sql, data, "$.row", "@ = ?", ", ", &count);
        if (rc == SQLITE_OK && count == 0)
            rc = refuse(reader, "no row", "");
    } else {
        sqlite3_str_appendf(sql, "DELETE FROM main.\"%w\"", table);
    }
    if (rc == SQLITE_OK && op != INSERT)
        rc = write_where(reader, sql, table, &reader->table, data);
    return rc;
}

/* Prepare reader->change for this kind of change, unless its last statement has the same text. */
static int prepare_change(struct outbox_reader *reader, const char *table, enum op op,
                          annal_slice data)
{
    sqlite3_str *sql = sqlite3_str_new(reader->db);
    int rc = write_change(reader, sql, table, op, data);
    int length = sqlite3_str_length(sql);
    char *text = sqlite3_str_finish(sql);
    if (rc == SQLITE_OK && text == NULL)
        rc = SQLITE_NOMEM;
    bool same = rc == SQLITE_OK && reader->change != NULL && reader->sql.len == (size_t)length &&
                memcmp(reader->sql.ptr, text, (size_t)length) == 0;
    if (rc == SQLITE_OK && !same) {
        sqlite3_finalize(reader->change);
        reader->change = NULL;
        annal__buf_clear(&reader->sql);
        rc = sqlite3_prepare_v3(reader->db, text, -1, SQLITE_PREPARE_PERSISTENT, &reader->change,
                                NULL);
        if (rc == SQLITE_OK && annal__buf_append(&reader->sql, text, (size_t)length) < 0)
            rc = SQLITE_NOMEM;
    }
    sqlite3_free(text);
    return rc;
}

static int apply_change(struct outbox_reader *reader, const char *table, enum op op,
                        annal_slice data)
{
    int at = 1;
    int rc = prepare_change(reader, table, op, data);
    if (rc == SQLITE_OK && op != DELETE)
        rc = bind_members(reader, data, "$.row", &at);
    if (rc == SQLITE_OK && op != INSERT)
        rc = bind_members(reader, data, "$.was", &at);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(reader->change);
    if (reader->change != NULL) {
        sqlite3_reset(reader->change);
        sqlite3_clear_bindings(reader->change);
    }
    if (rc == SQLITE_DONE)
        rc = SQLITE_OK;
    /* no row has the old values any more: write the new values as a new row */
    if (rc == SQLITE_OK && op == UPDATE && sqlite3_changes(reader->db) == 0)
        rc = apply_change(reader, table, INSERT, data);
    return rc;
}

/* ---- schema.extended ---- */

static bool is_private(const char *name)
{
    return name != NULL && (name[0] == '_' || sqlite3_strnicmp(name, "sqlite_", 7) == 0);
}

/* Return whether the name is that of a function that SQLite uses internally for ALTER TABLE; a
 * user's SQL cannot call such a function. */
static bool is_of_alter(const char *function)
{
    return strncmp(function, "sqlite_rename_", 14) == 0 ||
           strncmp(function, "sqlite_drop_", 12) == 0;
}

/* Authorize the SQL of a schema.extended event: it may create, alter and drop objects that are not
 * ours, and do nothing else. */
static int allow_schema(void *arg, int action, const char *first, const char *second,
                        const char *database, const char *trigger)
{
    (void)arg;
    (void)trigger;
    bool in_main = database == NULL || strcmp(database, "main") == 0;
    switch (action) {
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_VIEW:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_VIEW:
        if (is_private(first) && strncmp(first, "sqlite_autoindex_", 17) != 0)
            return SQLITE_DENY;
        return in_main ? SQLITE_OK : SQLITE_DENY;
    /* refused only for our trigger on a table of ours: our triggers on other tables are dropped
     * together with these tables */
    case SQLITE_DROP_TRIGGER:
        return is_private(first) && is_private(second) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_ALTER_TABLE:
        return is_private(second) || strcmp(first, "main") != 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_INSERT:
        return sqlite3_strnicmp(first, "sqlite_", 7) == 0 ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_UPDATE:
    /* SQLite deletes rows of a dropped table, values of a dropped column, and rows of the schema */
    case SQLITE_DELETE:
    case SQLITE_REINDEX:
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    /* SQLite itself runs a PRAGMA to check the CHECK constraint of an added column */
    case SQLITE_PRAGMA:
        return sqlite3_stricmp(first, "quick_check") == 0 ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_FUNCTION:
        return annal__allowed_function(second) || is_of_alter(second) ? SQLITE_OK : SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

static bool begins(const char *sql, const char *word)
{
    return sqlite3_strnicmp(sql, word, (int)strlen(word)) == 0;
}

/* Return whether an error of SQLite says that the object or column exists already, so that nothing
 * is left to do. */
static bool is_there(sqlite3 *db)
{
    const char *message = sqlite3_errmsg(db);
    return strstr(message, "already exists") != NULL || strstr(message, "duplicate column") != NULL;
}

static int run_ddl(struct outbox_reader *reader, const char *ddl)
{
    sqlite3_stmt *stmt = NULL;
    const char *tail = NULL;
    if (!begins(ddl, "CREATE ") && !begins(ddl, "DROP ") && !begins(ddl, "ALTER TABLE "))
        return refuse(reader, "neither CREATE nor DROP nor ALTER TABLE: ", ddl);
    sqlite3_set_authorizer(reader->db, allow_schema, NULL);
    int rc = sqlite3_prepare_v2(reader->db, ddl, -1, &stmt, &tail);
    if (rc == SQLITE_OK && tail[strspn(tail, " \t\r\n;")] != '\0')
        rc = refuse(reader, "more than one statement: ", ddl);
    else if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    else if (rc == SQLITE_ERROR && is_there(reader->db))
        rc = SQLITE_DONE;
    if (rc == SQLITE_AUTH)
        rc = refuse(reader, "such an event may not do this: ", ddl);
    sqlite3_finalize(stmt);
    sqlite3_set_authorizer(reader->db, NULL, NULL);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int apply_schema(struct outbox_reader *reader, const char *ddl)
{
    int rc = ddl == NULL ? refuse(reader, "no ddl", "") : SQLITE_OK;
    if (rc == SQLITE_OK && reader->state != NULL && begins(ddl, "ALTER ") &&
        annal__outbox_uncapture(reader->db, NULL) < 0)
        rc = sqlite3_errcode(reader->db);
    if (rc == SQLITE_OK)
        rc = run_ddl(reader, ddl);
    /* Record and capture the new object, if there is an outbox. */
    if (rc == SQLITE_OK && reader->state != NULL &&
        annal__outbox_baseline(reader->db, false, NULL) < 0)
        rc = sqlite3_errcode(reader->db);
    return rc;
}

int annal__outbox_apply(struct outbox_reader *reader, const annal_event *event,
                        const char **out_why)
{
    reader->why[0] = '\0';
    *out_why = NULL;
    if (annal__outbox_holds(reader, event))
        return SQLITE_OK;
    annal__db_bind_text(reader->head, 1, event->data);
    int rc = sqlite3_step(reader->head);
    if (rc == SQLITE_ROW) {
        const char *table = (const char *)sqlite3_column_text(reader->head, 0);
        const char *op = (const char *)sqlite3_column_text(reader->head, 1);
        const char *ddl = (const char *)sqlite3_column_text(reader->head, 2);
        /* the second letter tells schema.extended from sql.applied */
        if (event->type.ptr[1] == 'c')
            rc = apply_schema(reader, ddl);
        else if (table == NULL || op == NULL)
            rc = refuse(reader, "no table or no op", "");
        else if (strcmp(op, "insert") == 0 || strcmp(op, "put") == 0)
            rc = apply_change(reader, table, INSERT, event->data);
        else if (strcmp(op, "update") == 0)
            rc = apply_change(reader, table, UPDATE, event->data);
        else if (strcmp(op, "delete") == 0)
            rc = apply_change(reader, table, DELETE, event->data);
        else
            rc = refuse(reader, "neither insert nor update nor delete: ", op);
    }
    sqlite3_reset(reader->head);
    sqlite3_clear_bindings(reader->head);
    if (reader->why[0] != '\0')
        *out_why = reader->why;
    return rc;
}
