/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the SQL of a pack may do.
 *
 * (1) A pack can use the tables and views that its file creates, and no others: not the tables of
 *     another pack in the same database, not ours (_name), not SQLite's. json_each and json_tree
 *     are allowed.
 * (2) The part that creates tables creates tables, indexes, views and triggers, and inserts rows
 *     into them. Sections read and write rows. Nothing may attach, drop, alter, set a pragma, begin
 *     or end a transaction, or create something temporary. Only the functions of allowed.c may be
 *     used.
 * (3) A pack uses no clock and no random numbers, because a rebuild must yield the same rows. If a
 *     name in its SQL shows such a use (random(), CURRENT_TIMESTAMP, changes(), which depends on
 *     the event before, the literal 'now', a date function without a time), the pack is refused. If
 *     a date function finds 'now' in a payload, or a column's DEFAULT uses the time, the event
 *     becomes a finding; if this happens while its tables are created, the pack is refused. The
 *     same applies to the modifiers 'localtime' and 'utc', which depend on the time zone of the
 *     machine.
 * (4) For rule 3, the date functions of a connection on which handlers run are replaced by ours.
 *     They check their arguments and then call SQLite's own, on a helper connection.
 * (5) The work of a section for one event, or of one statement that creates tables, is bounded:
 *     after 100 million instructions of SQLite, or with 256 MiB that it holds or has written, it is
 *     stopped. A value may take 128 MiB.
 */
#include "index/pack/permit.h"

#include "index/db/connect.h"
#include "index/db/db.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <stdio.h>
#include <string.h>

#define VALUE_BYTES_MAX (128 << 20)

/* ---- Compiling ---- */

static const char only_rows[] = "a section can only read and write rows";
static const char only_making[] =
    "only CREATE TABLE, INDEX, VIEW and TRIGGER, and INSERT are allowed before the first section";

static int deny(struct permit *permit, const char *what, const char *name)
{
    if (permit->why[0] == '\0')
        snprintf(permit->why, sizeof permit->why, "%s%s%.100s%s", what, name == NULL ? "" : " '",
                 name == NULL ? "" : name, name == NULL ? "" : "'");
    return SQLITE_DENY;
}

static bool is_own(const annal_pack *pack, const char *table)
{
    for (const char *at = pack->own; *at != '\0'; at += strlen(at) + 1)
        if (sqlite3_stricmp(at, table) == 0)
            return true;
    return false;
}

/*
 * Return whether the table is one that SQLite itself protects against writes of a user: its schema,
 * which is written by creating a table and by json_each. SQLite does not protect sqlite_sequence
 * and sqlite_stat1.
 */
static bool is_guarded_by_sqlite(const struct permit *permit, const char *table)
{
    return permit->makes_tables ? strncmp(table, "sqlite_", 7) == 0
                                : strcmp(table, "sqlite_master") == 0;
}

static int permit_table(struct permit *permit, const char *what, const char *table)
{
    if (table[0] == '_')
        return deny(permit, "names that begin with _ are reserved:", table);
    if (is_own(permit->pack, table) || is_guarded_by_sqlite(permit, table))
        return SQLITE_OK;
    return deny(permit, what, table);
}

static int permit_read(struct permit *permit, const char *table, const char *column)
{
    if (sqlite3_stricmp(table, "json_each") == 0 || sqlite3_stricmp(table, "json_tree") == 0)
        return SQLITE_OK;
    /* allow sqlite_sequence: the last value of AUTOINCREMENT follows from the rows that were
     * inserted and deleted */
    if (sqlite3_stricmp(table, "sqlite_sequence") == 0)
        return SQLITE_OK;
    bool is_schema = strncmp(table, "sqlite_", 7) == 0;
    /* allowed, because json_each reads this column to declare itself */
    if (is_schema && sqlite3_stricmp(column, "rowid") == 0)
        return SQLITE_OK;
    if (is_schema && !permit->makes_tables)
        return deny(permit, "a pack can only read its own tables, not", table);
    return permit_table(permit, "a pack can only read its own tables, not", table);
}

static int permit_function(struct permit *permit, const char *function)
{
    static const char *const moving[] = {"random",       "randomblob",    "current_timestamp",
                                         "current_time", "current_date",  "last_insert_rowid",
                                         "changes",      "total_changes", "sqlite_version",
                                         "annal_period", "annal_instant", "annal_period_begin"};
    for (size_t i = 0; i < sizeof moving / sizeof *moving; i++) {
        if (sqlite3_stricmp(function, moving[i]) != 0)
            continue;
        return permit->makes_tables && !permit->inserts
                   ? SQLITE_OK
                   : deny(permit, "packs must be deterministic, so this is not allowed:", function);
    }
    return annal__allowed_function(function)
               ? SQLITE_OK
               : deny(permit, "a pack may not use the function", function);
}

/* Decide whether a statement before the first section may create this object, or insert this row
 * (rule 2). */
static int permit_making(struct permit *permit, int action, const char *first, const char *second)
{
    switch (action) {
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_VIEW:
        return permit_table(permit, "the file does not contain this name:", first);
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TRIGGER:
        if (first[0] == '_')
            return deny(permit, "names that begin with _ are reserved:", first);
        return permit_table(
            permit, "a pack can create indexes and triggers only for its own tables, not for",
            second);
    case SQLITE_REINDEX:
        return SQLITE_OK;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
        /* allow the tables sqlite_…: SQLite itself writes its schema when a table is created */
        if (strncmp(first, "sqlite_", 7) == 0)
            return SQLITE_OK;
        permit->inserts = action == SQLITE_INSERT;
        return action == SQLITE_INSERT
                   ? permit_table(permit, "a pack can only write its own tables, not", first)
                   : deny(permit,
                          "only INSERT is allowed here; UPDATE and DELETE belong in a section",
                          NULL);
    default:
        return deny(permit, only_making, NULL);
    }
}

int annal__permit(void *arg, int action, const char *first, const char *second,
                  const char *database, const char *trigger)
{
    struct permit *permit = arg;
    permit->saw_rows = true;
    /*
     * the statement belongs to a trigger that annal itself created on the pack's tables: allow it
     */
    if (trigger != NULL && trigger[0] == '_')
        return SQLITE_OK;
    if (database != NULL && strcmp(database, "main") != 0)
        return deny(permit, "a pack can only use its own database, not", database);
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_READ:
        return permit_read(permit, first, second);
    case SQLITE_FUNCTION:
        return permit_function(permit, second);
    default:
        break;
    }
    if (permit->makes_tables)
        return permit_making(permit, action, first, second);
    if (action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE)
        return permit_table(permit, "a pack can only write its own tables, not", first);
    return deny(permit, only_rows, NULL);
}

bool annal__permit_statement(struct permit *permit, sqlite3_stmt *stmt)
{
    if (permit->saw_rows && sqlite3_stmt_isexplain(stmt) == 0)
        return true;
    (void)deny(permit, permit->makes_tables ? only_making : only_rows, NULL);
    return false;
}

/* ---- Running ---- */

/*
 * A function of SQLite that may depend on the current time. time_at: index of its argument that is
 * the time.
 */
static const struct moment {
    const char *name;
    int time_at;
} moments[] = {
    {"date", 0},         {"time", 0},     {"datetime", 0},          {"julianday", 0},
    {"unixepoch", 0},    {"strftime", 1}, {"current_timestamp", 0}, {"current_time", 0},
    {"current_date", 0},
};

#define MOMENTS (sizeof moments / sizeof *moments)

/* arguments with which a date function reads the clock, and modifiers that read the time zone */
static const char *const clocks[] = {"now", "subsec", "subsecond", NULL};
static const char *const zones[] = {"localtime", "utc", NULL};

/* Return whether a literal in quotes is one of the words. */
static bool is_literal(const struct token *token, const char *const *words)
{
    annal_slice text = annal__token_name(token);
    for (; token->kind == TOKEN_STRING && *words != NULL; words++)
        if (text.len == strlen(*words) && sqlite3_strnicmp(text.ptr, *words, (int)text.len) == 0)
            return true;
    return false;
}

bool annal__permit_reads_clock(const struct token *function, const char *at)
{
    const struct moment *moment = moments, *end = moments + MOMENTS;
    int depth = 0, count = 0;
    annal_slice name = annal__token_name(function);
    while (moment < end && (strlen(moment->name) != name.len ||
                            sqlite3_strnicmp(moment->name, name.ptr, (int)name.len) != 0))
        moment++;
    if (moment == end)
        return false;
    do {
        struct token token = annal__token_next(&at);
        char sign = token.kind == TOKEN_OTHER ? token.text.ptr[0] : 'a';
        if (token.kind == TOKEN_END || (depth == 0 && sign != '('))
            return false;
        if (depth == 1 && (sign == ',' || (count == 0 && sign != ')')))
            count++;
        /* the literal 'now' is refused wherever it is: pack_sql.c */
        if (depth == 1 && ((count == moment->time_at + 1 && is_literal(&token, clocks + 1)) ||
                           (count > moment->time_at + 1 && is_literal(&token, zones))))
            return true;
        depth += sign == '(' ? 1 : sign == ')' ? -1 : 0;
    } while (depth > 0);
    return count <= moment->time_at;
}

/* The date functions of one connection that are replaced by ours. */
struct chance {
    /* connection on which SQLite's own date functions run; NULL until it is needed */
    sqlite3 *helper;
    unsigned refs; /* number of SQL functions of the connection that use this struct */
    struct call {
        struct chance *chance;
        const struct moment *moment;
    } calls[MOMENTS];
};

static void chance_release(struct chance *chance)
{
    if (--chance->refs > 0)
        return;
    sqlite3_close_v2(chance->helper);
    annal__free(chance);
}

static void call_done(void *call)
{
    chance_release(((struct call *)call)->chance);
}

static bool is_word(sqlite3_value *value, const char *word)
{
    int type = sqlite3_value_type(value);
    /* a blob counts, too: SQLite reads its bytes as a time */
    if (type != SQLITE_TEXT && type != SQLITE_BLOB)
        return false;
    const char *text = (const char *)sqlite3_value_text(value);
    return text != NULL && sqlite3_stricmp(text, word) == 0;
}

/* Return whether the arguments request the current time, or the time zone (rule 3). */
static bool asks_for_now(const struct moment *moment, int count, sqlite3_value **values)
{
    if (count <= moment->time_at)
        return true;
    for (int i = moment->time_at; i < count; i++)
        for (const char *const *word = i == moment->time_at ? clocks : zones; *word != NULL; word++)
            if (is_word(values[i], *word))
                return true;
    return false;
}

/* Compose SELECT name(?,?,…), or SELECT name for CURRENT_…; NULL if memory ran out. */
static char *question(const char *name, int count)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql, "SELECT %s", name);
    for (int i = 0; i < count; i++)
        sqlite3_str_appendf(sql, "%s?", i == 0 ? "(" : ",");
    if (strncmp(name, "current_", 8) != 0)
        sqlite3_str_appendf(sql, "%s", count == 0 ? "()" : ")");
    return sqlite3_str_finish(sql);
}

/* Call SQLite's own function on the helper connection (rule 4). Returns a result code of SQLite. */
static int ask_helper(const struct call *call, sqlite3_context *context, int count,
                      sqlite3_value **values)
{
    struct chance *chance = call->chance;
    sqlite3_stmt *stmt = NULL;
    int rc = SQLITE_OK;
    if (chance->helper == NULL)
        rc = annal__connect_open(NULL, ":memory:", SQLITE_OPEN_READWRITE, &chance->helper);
    char *sql = rc == SQLITE_OK ? question(call->moment->name, count) : NULL;
    if (sql == NULL)
        return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
    rc = sqlite3_prepare_v2(chance->helper, sql, -1, &stmt, NULL);
    sqlite3_free(sql);
    for (int i = 0; rc == SQLITE_OK && i < count; i++)
        rc = sqlite3_bind_value(stmt, i + 1, values[i]);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        sqlite3_result_value(context, sqlite3_column_value(stmt, 0));
        rc = SQLITE_OK;
    }
    sqlite3_finalize(stmt);
    return rc;
}

static bool in_transaction(sqlite3_context *context)
{
    return sqlite3_get_autocommit(sqlite3_context_db_handle(context)) == 0;
}

static void sql_moment(sqlite3_context *context, int count, sqlite3_value **values)
{
    const struct call *call = sqlite3_user_data(context);
    if (in_transaction(context) && asks_for_now(call->moment, count, values)) {
        sqlite3_result_error(
            context, "handlers must be deterministic: 'now', 'localtime' and 'utc' are not allowed",
            -1);
        return;
    }
    int rc = ask_helper(call, context, count, values);
    if ((rc & 0xff) == SQLITE_NOMEM)
        sqlite3_result_error_nomem(context);
    else if (rc != SQLITE_OK)
        sqlite3_result_error(context, sqlite3_errmsg(call->chance->helper), -1);
}

static void sql_random(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    (void)values;
    sqlite3_int64 number;
    sqlite3_randomness((int)sizeof number, &number);
    if (in_transaction(context))
        sqlite3_result_error(context, "handlers must be deterministic: random() is not allowed",
                             -1);
    else
        sqlite3_result_int64(context, number);
}

static void sql_randomblob(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    sqlite3_int64 asked = sqlite3_value_int64(values[0]);
    size_t size = asked < 1 ? 1 : (size_t)asked;
    if (in_transaction(context)) {
        sqlite3_result_error(context, "handlers must be deterministic: randomblob() is not allowed",
                             -1);
        return;
    }
    sqlite3 *db = sqlite3_context_db_handle(context);
    if (size > (size_t)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1)) {
        sqlite3_result_error_toobig(context);
        return;
    }
    void *bytes = sqlite3_malloc64(size);
    if (bytes == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    sqlite3_randomness((int)size, bytes);
    sqlite3_result_blob64(context, bytes, size, sqlite3_free);
}

annal_status annal__permit_no_chance(sqlite3 *db, annal_error *err)
{
    /* declared as deterministic, like SQLite's own functions, because a CHECK or an index of a pack
     * may use them */
    const int constant = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    const int moving = SQLITE_UTF8 | SQLITE_INNOCUOUS;
    struct chance *chance = annal__zalloc(sizeof *chance);
    if (chance == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "add the functions of a database: out of memory");
    chance->refs = 1;
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
    int rc =
        sqlite3_create_function_v2(db, "random", 0, moving, NULL, sql_random, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(db, "randomblob", 1, moving, NULL, sql_randomblob, NULL,
                                        NULL, NULL);
    for (size_t i = 0; rc == SQLITE_OK && i < MOMENTS; i++) {
        chance->calls[i] = (struct call){chance, &moments[i]};
        chance->refs++;
        int arguments = strncmp(moments[i].name, "current_", 8) == 0 ? 0 : -1;
        rc = sqlite3_create_function_v2(db, moments[i].name, arguments, constant, &chance->calls[i],
                                        sql_moment, NULL, NULL, call_done);
    }
    chance_release(chance);
    return rc == SQLITE_OK
               ? ANNAL_OK
               : annal__db_fail(err, db, rc, "cannot add the SQL functions that packs call");
}

#define STEPS_AT_ONCE   100
#define STEPS_MAX       100000000
#define PAGE_BYTES      4096
#define EVENT_BYTES_MAX ((sqlite3_int64)256 << 20)

static int pages_written(sqlite3 *db)
{
    int count = 0, unused = 0;
    (void)sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_WRITE, &count, &unused, 0);
    return count;
}

/* Stop a statement at its limits: a progress handler. Most events are applied in fewer than
 * STEPS_AT_ONCE instructions, and do not call it. */
static int look(void *arg)
{
    struct spending *spending = arg;
    if (!spending->looked) {
        spending->looked = true;
        spending->memory = sqlite3_memory_used();
        spending->written = pages_written(spending->db);
    }
    sqlite3_int64 bytes =
        sqlite3_memory_used() - spending->memory +
        (sqlite3_int64)(pages_written(spending->db) - spending->written) * PAGE_BYTES;
    if (bytes > EVENT_BYTES_MAX)
        spending->why =
            "the statement was stopped, because it holds or writes more than 256 MiB for one event";
    else if (--spending->left == 0)
        spending->why = "the statement was stopped, because it takes more than 100 million "
                        "instructions of SQLite";
    return spending->why != NULL;
}

void annal__permit_steps(sqlite3 *db, struct spending *spending)
{
    if (spending != NULL)
        *spending = (struct spending){.db = db, .left = STEPS_MAX / STEPS_AT_ONCE};
    sqlite3_progress_handler(db, spending == NULL ? 0 : STEPS_AT_ONCE, look, spending);
}
