/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running importers: SQL that turns lines of a foreign log into events. annal/import.h describes
 * the format of an importer file and its tables.
 *
 * (1) The events do not depend on where a batch ends. Lines are inserted one by one and importers
 *     keep state between them in triggers, so a line is processed after all lines before it and
 *     before all lines after it.
 * (2) A line is skipped only in import_lines.c, and only if it is blank or its bytes were in the
 *     file before; the section "-- repeats" says that such a line is a record of its own, and
 *     its hash has a number. The bytes are remembered as 128 bits of hash in a table, which SQLite
 *     moves to disk when it grows: memory does not grow with the file.
 * (3) What the append would refuse never reaches an importer as JSON: a line that is not one JSON
 *     value, or so deep that wrapping it would exceed the depth limit, is passed as text.
 * (4) A line that yielded no event is an error: a corrected importer must not lose lines silently.
 *     A line of a text may be a part of an event that a later line completes.
 * (5) What was appended after a power cut follows the zero bytes that the power cut left, on the
 *     same line: the zeros are one row, and the value after them is another. A torn record is a row
 *     of its own, and so is a complete record that follows it on its line, and what follows a
 *     complete record. A line that is JSON but for bytes that are not UTF-8 is kept as it is, and
 *     passed with U+FFFD for these bytes.
 * (6) A value on which a trigger fails is inserted again as a line that cannot be read, under
 *     another hash, because changes that the trigger made before it failed may stay.
 * (7) Preparing an importer takes longer than a small log, so it is used for the next log too: its
 *     tables are emptied, and its section once is run again, except for statements that create
 *     something.
 */
#include "index/import/import.h"

#include "index/db/connect.h"
#include "index/db/db.h"
#include "index/import/import_lines.h"
#include "index/sys/import.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

/* ---- Sections ---- */

/* Return whether a statement is a CREATE, whose object remains for the next log. */
static bool creates(sqlite3_stmt *statement)
{
    const char *sql = sqlite3_sql(statement);
    for (;;) {
        sql += strspn(sql, " \t\r\n;");
        const char *end = strncmp(sql, "/*", 2) == 0   ? strstr(sql, "*/")
                          : strncmp(sql, "--", 2) == 0 ? strchr(sql, '\n')
                                                       : NULL;
        if (end == NULL)
            return sqlite3_strnicmp(sql, "CREATE", 6) == 0;
        sql = end + (*end == '*' ? 2 : 1);
    }
}

static annal_status step_to_end(annal_import *import, sqlite3_stmt *statement, annal_error *err)
{
    int code = sqlite3_step(statement);
    while (code == SQLITE_ROW)
        code = sqlite3_step(statement);
    sqlite3_reset(statement);
    return code == SQLITE_DONE ? ANNAL_OK
                               : annal__import_fail(import, err, "importer, section once");
}

static annal_status run_once(annal_import *import, annal_slice section, annal_error *err)
{
    while (section.len > 0) {
        sqlite3_stmt *statement = NULL;
        const char *rest = NULL;
        if (sqlite3_prepare_v2(import->db, section.ptr, (int)section.len, &statement, &rest) !=
            SQLITE_OK)
            return annal__import_fail(import, err, "importer, section once");
        section.len -= (size_t)(rest - section.ptr);
        section.ptr = rest;
        if (statement == NULL)
            continue;
        annal_status status = step_to_end(import, statement, err);
        bool kept = !creates(statement) && import->again_count < AGAIN_MAX;
        import->single = import->single || (!kept && !creates(statement));
        if (kept)
            import->again[import->again_count++] = statement;
        else
            sqlite3_finalize(statement);
        if (status < 0)
            return status;
    }
    return ANNAL_OK;
}

static annal_status prepare_events(annal_import *import, annal_slice section, annal_error *err)
{
    while (section.len > 0) {
        sqlite3_stmt *statement = NULL;
        const char *rest = NULL;
        if (sqlite3_prepare_v3(import->db, section.ptr, (int)section.len, SQLITE_PREPARE_PERSISTENT,
                               &statement, &rest) != SQLITE_OK)
            return annal__import_fail(import, err, "importer, section batch");
        section.len -= (size_t)(rest - section.ptr);
        section.ptr = rest;
        if (statement == NULL)
            continue;
        if (import->statement_count == STATEMENTS_MAX) {
            sqlite3_finalize(statement);
            return annal__fail(err, ANNAL_ERR_SQL,
                               "importer: more than %d statements in batch and end",
                               STATEMENTS_MAX);
        }
        import->statements[import->statement_count++] = statement;
        int columns = sqlite3_column_count(statement);
        if (columns != 0 && columns != 7 && columns != 8)
            return annal__fail(err, ANNAL_ERR_SQL,
                               "importer: a SELECT of events returns %d columns, not session, ts, "
                               "type, id, cause, data, line",
                               columns);
    }
    return ANNAL_OK;
}

static annal_status prepare_batch(annal_import *import, annal_slice section, annal_error *err)
{
    bool events = false;
    annal_status status = prepare_events(import, section, err);
    import->batch_count = import->statement_count;
    for (size_t i = 0; i < import->batch_count; i++)
        events = events || sqlite3_column_count(import->statements[i]) >= 7;
    if (status >= 0 && !events)
        return annal__fail(err, ANNAL_ERR_SQL,
                           "importer: the section '-- batch' has no SELECT of events");
    return status;
}

/* ---- Open and close ---- */

size_t annal__import_memory(const annal_import *import)
{
    static const int parts[] = {SQLITE_DBSTATUS_CACHE_USED, SQLITE_DBSTATUS_SCHEMA_USED,
                                SQLITE_DBSTATUS_STMT_USED};
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int used = 0, most;
        (void)sqlite3_db_status(import->db, parts[i], &used, &most, 0);
        bytes += (size_t)used;
    }
    return bytes;
}

extern const char annal__sql_turns[];

extern const char annal__sql_import_tables[];

static void sql_record_owner(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    annal_import *import = sqlite3_user_data(context);
    const char *origin = (const char *)sqlite3_value_text(argv[0]);
    const char *session = (const char *)sqlite3_value_text(argv[1]);
    (void)argc;
    if (origin == NULL)
        return;
    annal_slice owner = {session, session != NULL ? (size_t)sqlite3_value_bytes(argv[1]) : 0};
    if (import->owner != NULL)
        owner = import->owner(import->owner_arg,
                              (annal_slice){origin, (size_t)sqlite3_value_bytes(argv[0])}, owner);
    if (owner.len > 0)
        sqlite3_result_text64(context, owner.ptr, owner.len, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static annal_slice text_of(sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);
    return (annal_slice){text, text != NULL ? (size_t)sqlite3_value_bytes(value) : 0};
}

static void sql_log_session(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    const annal_import *import = sqlite3_user_data(context);
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_slice name = text_of(argv[0]);
    if (name.ptr == NULL)
        return;
    name = annal__import_session_id(name, id);
    if (import->session != NULL)
        name = import->session(import->session_arg, name,
                               argc > 1 ? text_of(argv[1]) : (annal_slice){0});
    sqlite3_result_text64(context, name.ptr, name.len, SQLITE_TRANSIENT, SQLITE_UTF8);
}

/* Create the functions that ask the caller. Return a result code of SQLite. */
static int create_functions(annal_import *import)
{
    const int flags = SQLITE_UTF8 | SQLITE_INNOCUOUS;
    int code = sqlite3_create_function(import->db, "record_owner", 2, flags, import,
                                       sql_record_owner, NULL, NULL);
    for (int count = 1; count <= 2 && code == SQLITE_OK; count++)
        code = sqlite3_create_function(import->db, "log_session", count, flags, import,
                                       sql_log_session, NULL, NULL);
    return code;
}

static void take_owner(annal_import *import, const annal_import_source *source)
{
    import->owner = source->owner;
    import->owner_arg = source->owner_arg;
    import->session = source->session;
    import->session_arg = source->session_arg;
}

static annal_status describe_source(annal_import *import, const annal_import_source *source,
                                    annal_error *err)
{
    sqlite3_stmt *insert = NULL;
    const char *dot = strrchr(source->file, '.');
    size_t stem =
        dot != NULL && dot != source->file ? (size_t)(dot - source->file) : strlen(source->file);
    int code =
        sqlite3_prepare_v2(import->db, "INSERT INTO source VALUES (?, ?, ?, ?)", -1, &insert, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_text(insert, 1, source->kind, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 2, source->file, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 3, source->file, (int)stem, SQLITE_STATIC);
        sqlite3_bind_text(insert, 4, source->container != NULL ? source->container : "lines", -1,
                          SQLITE_STATIC);
        code = sqlite3_step(insert);
        sqlite3_finalize(insert);
    }
    return code == SQLITE_DONE ? ANNAL_OK : annal__import_fail(import, err, "importer");
}

static annal_status insert_options(annal_import *import, const annal_import_source *source,
                                   annal_error *err)
{
    sqlite3_stmt *insert = NULL;
    annal_status status =
        annal__db_prepare(import->db, "INSERT OR REPLACE INTO options VALUES (?, ?)", &insert, err);
    for (size_t i = 0; status >= 0 && i < source->option_count; i++) {
        annal__db_bind_text(insert, 1, source->options[i].name);
        annal__db_bind_text(insert, 2, source->options[i].value);
        status = annal__db_run(insert, err);
    }
    sqlite3_finalize(insert);
    return status;
}

static annal_status prepare_ours(annal_import *import, annal_error *err)
{
    struct {
        sqlite3_stmt **out;
        const char *sql;
    } all[] = {
        {&import->insert, "INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?)"},
        {&import->clear, "DELETE FROM lines"},
        {&import->remember, "INSERT OR IGNORE INTO _seen (hash) VALUES (?)"},
        {&import->repeat, "UPDATE _seen SET times = times + 1 WHERE hash = ? RETURNING times"},
        {&import->knows, "SELECT 1 FROM _seen WHERE hash = ?"},
        {&import->recall, "INSERT OR IGNORE INTO recorded VALUES (?, ?, ?, ?, ?, ?)"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (sqlite3_prepare_v3(import->db, all[i].sql, -1, SQLITE_PREPARE_PERSISTENT, all[i].out,
                               NULL) != SQLITE_OK)
            return annal__import_fail(import, err, "importer");
    }
    return ANNAL_OK;
}

static bool may_repeat(const annal_import_source *source)
{
    return source->container != NULL && strcmp(source->container, "lines") != 0;
}

/* Open an import with our own tables, functions and statements, but without the importer's
 * sections. */
static annal_status open_ours(const annal_import_source *source, annal_import **out_import,
                              annal_error *err)
{
    annal_status status = ANNAL_ERR_NOMEM;
    annal_import *import = annal__zalloc(sizeof *import);
    if (import == NULL)
        return annal__fail(err, status, "import of '%s': out of memory", source->file);
    import->scratch.limit = ANNAL_APPEND_BYTES_MAX;
    import->may_repeat = may_repeat(source);
    take_owner(import, source);

    /* an empty name opens a private database, which SQLite writes to a temporary file when it
     * exceeds the cache */
    if (annal__connect_open(NULL, "", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &import->db) !=
            SQLITE_OK ||
        sqlite3_db_config(import->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL) != SQLITE_OK ||
        annal__import_functions(import->db) != SQLITE_OK ||
        annal__import_said(import->db) != SQLITE_OK || create_functions(import) != SQLITE_OK ||
        sqlite3_exec(import->db, annal__sql_import_tables, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(import->db, annal__sql_turns, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_db_config(import->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL) != SQLITE_OK) {
        status = annal__import_fail(import, err, "importer");
        goto done;
    }
    import->json = annal__import_json_new(import->db);
    if (import->json == NULL || annal__import_each_add(import->db, import->json) != SQLITE_OK) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "import of '%s': out of memory", source->file);
        goto done;
    }
    /* no ATTACH, because an importer must not use other files */
    sqlite3_limit(import->db, SQLITE_LIMIT_ATTACHED, 0);
    status = describe_source(import, source, err);
    if (status >= 0)
        status = insert_options(import, source, err);
    if (status >= 0)
        status = prepare_ours(import, err);
    if (status < 0)
        goto done;
    *out_import = import;
    import = NULL;

done:
    annal_import_close(import);
    return status;
}

annal_status annal_import_open(annal_slice sql, const annal_import_source *source,
                               annal_import **out_import, annal_error *err)
{
    annal_import *import = NULL;
    annal_status status = open_ours(source, &import, err);
    if (status >= 0) {
        annal_slice repeats = annal__import_section(sql, "-- repeats", &(size_t){0});
        import->repeats = repeats.ptr != NULL;
        import->text = annal__import_section(sql, "-- text", &(size_t){0}).ptr != NULL;
        status = annal__buf_append_slice(&import->repeated, annal__json_trim(repeats));
    }
    if (status >= 0) {
        status = run_once(import, annal__import_section(sql, "-- once", &(size_t){0}), err);
    }
    /* One transaction for the whole import, which is never committed: ending a transaction for each
     * batch would walk all pages. */
    if (status >= 0 && sqlite3_exec(import->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        status = annal__import_fail(import, err, "importer");
    if (status >= 0)
        status = prepare_batch(import, annal__import_section(sql, "-- batch", &(size_t){0}), err);
    if (status >= 0)
        status = prepare_events(import, annal__import_section(sql, "-- end", &(size_t){0}), err);
    if (status < 0) {
        annal_import_close(import);
        return status;
    }
    *out_import = import;
    return ANNAL_OK;
}

/* Return whether an EXPLAIN of a statement contains the program of a trigger. Finalizes explain. */
static bool has_triggers(sqlite3_stmt *explain)
{
    bool has = false;
    while (!has && sqlite3_step(explain) == SQLITE_ROW)
        has = strcmp((const char *)sqlite3_column_text(explain, 1), "Program") == 0;
    sqlite3_finalize(explain);
    return has;
}

/* Prepare a statement for each table, except lines, that empties it. ANNAL_END: emptying a table
 * would run triggers, so the importer cannot be reused. */
static annal_status prepare_emptying(annal_import *import, annal_error *err)
{
    static const char explain[] = "EXPLAIN ";
    sqlite3_stmt *names = NULL, *plan = NULL;
    annal_status status =
        annal__db_prepare(import->db,
                          "SELECT 'EXPLAIN DELETE FROM \"' || replace(name, '\"', '\"\"') || '\"' "
                          "FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('lines')",
                          &names, err);
    while (status == ANNAL_OK && sqlite3_step(names) == SQLITE_ROW) {
        const char *sql = (const char *)sqlite3_column_text(names, 0);
        sqlite3_stmt **empty =
            annal__array_add(&import->emptying, &import->emptying_count, sizeof *empty);
        if (empty == NULL)
            status = annal__fail(err, ANNAL_ERR_NOMEM, "importer: out of memory");
        if (status == ANNAL_OK)
            status = annal__db_prepare(import->db, sql, &plan, err);
        if (status == ANNAL_OK && has_triggers(plan))
            status = ANNAL_END;
        if (status == ANNAL_OK)
            status = annal__db_prepare(import->db, sql + strlen(explain), empty, err);
    }
    sqlite3_finalize(names);
    return status;
}

/* Empty the importer's tables for the next log (rule 7). */
static annal_status empty_tables(annal_import *import, annal_error *err)
{
    annal_status status = import->emptying == NULL ? prepare_emptying(import, err) : ANNAL_OK;
    for (size_t i = 0; status == ANNAL_OK && i < import->emptying_count; i++)
        status = step_to_end(import, import->emptying[i], err);
    return status;
}

annal_status annal__import_again(annal_import *import, const annal_import_source *source,
                                 annal_error *err)
{
    if (import->failed || import->single)
        return ANNAL_END;
    take_owner(import, source); /* the section "-- once" may ask for the session */
    annal_status status = empty_tables(import, err);
    if (status == ANNAL_OK)
        status = describe_source(import, source, err);
    if (status == ANNAL_OK)
        status = insert_options(import, source, err);
    for (size_t i = 0; status == ANNAL_OK && i < import->again_count; i++)
        status = step_to_end(import, import->again[i], err);
    import->counts = (annal_import_counts){0};
    import->last_counted = 0;
    memset(import->last_with, 0, sizeof import->last_with);
    import->refused = false;
    import->has_ids = false;
    import->recalled = 0;
    import->may_repeat = may_repeat(source);
    return status;
}

void annal_import_close(annal_import *import)
{
    if (import == NULL)
        return;
    for (size_t i = 0; i < import->statement_count; i++)
        sqlite3_finalize(import->statements[i]);
    for (size_t i = 0; i < import->again_count; i++)
        sqlite3_finalize(import->again[i]);
    for (size_t i = 0; i < import->emptying_count; i++)
        sqlite3_finalize(import->emptying[i]);
    annal__free(import->emptying);
    for (size_t i = 0; i < import->detect_count; i++)
        sqlite3_finalize(import->detects[i].statement);
    sqlite3_finalize(import->insert);
    sqlite3_finalize(import->clear);
    sqlite3_finalize(import->remember);
    sqlite3_finalize(import->knows);
    sqlite3_finalize(import->repeat);
    sqlite3_finalize(import->recall);
    sqlite3_close(import->db);
    annal__import_json_free(import->json);
    annal__buf_done(&import->repeated);
    annal__buf_done(&import->scratch);
    annal__free(import);
}

/* ---- Events ---- */

static void note_event(struct batch *batch, uint64_t number)
{
    size_t low = 0, high = batch->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (batch->rows[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < batch->count && batch->rows[low].number == number; low++)
        batch->rows[low].gave = true;
}

/* Return id, or its hash, in out, if an event cannot have this id. */
static annal_slice sound_id(annal_slice id, char out[HASH_TEXT_BYTES])
{
    bool sound = id.len <= ANNAL_ID_BYTES_MAX && annal__json_is_utf8(id);
    for (size_t i = 0; i < id.len && sound; i++)
        sound = (unsigned char)id.ptr[i] >= 0x20 && strchr("\"\\\x7f", id.ptr[i]) == NULL;
    if (sound)
        return id;
    annal__import_hash(id, 0, out);
    return annal_slice_of(out);
}

static annal_status give_events(annal_import *import, sqlite3_stmt *statement, struct batch *batch,
                                annal_import_fn fn, void *arg, annal_error *err)
{
    char id[HASH_TEXT_BYTES];
    int code = sqlite3_step(statement);
    while (code == SQLITE_ROW) {
        annal_import_event event = {
            .session = annal__db_column(statement, 0),
            .draft = {.ts_us = sqlite3_column_int64(statement, 1),
                      .type = annal__db_column(statement, 2),
                      .id = sound_id(annal__db_column(statement, 3), id),
                      .cause = annal__db_column(statement, 4),
                      .data = annal__db_column(statement, 5)},
            .line = (uint64_t)sqlite3_column_int64(statement, 6),
        };
        if (sqlite3_column_count(statement) > 7)
            event.formerly = annal__db_column(statement, 7);
        if (event.draft.ts_us == 0)
            /* a ts of 0 would become the time of the import, which differs each time */
            event.draft.ts_us = 1;
        annal_status status = fn(arg, &event, err);
        if (status < 0)
            return status;
        note_event(batch, event.line);
        code = sqlite3_step(statement);
    }
    return code == SQLITE_DONE ? ANNAL_OK
                               : annal__import_fail(import, err, "importer, section batch");
}

static annal_status check_every_line_gave(const struct batch *batch, annal_error *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (!batch->rows[i].gave)
            return annal__fail(err, ANNAL_ERR_SQL, "importer: line %" PRIu64 " yielded no event",
                               batch->rows[i].number);
    }
    return ANNAL_OK;
}

annal_status annal_import_feed(annal_import *import, const annal_import_line *lines, size_t count,
                               annal_import_fn fn, void *arg, annal_error *err)
{
    struct batch batch = {0};
    annal_status status = ANNAL_OK;
    if (import->failed)
        return annal__fail(err, ANNAL_ERR_CLOSED,
                           "import: an earlier call failed, so this import cannot continue");
    if (count == 0)
        return ANNAL_OK;
    annal__import_json_begin(import->json);
    if (sqlite3_step(import->clear) != SQLITE_DONE)
        status = annal__import_fail(import, err, "importer");
    sqlite3_reset(import->clear);
    for (size_t i = 0; i < count && status >= 0; i++)
        status = annal__import_insert(import, &batch, &lines[i], err);
    for (size_t i = 0; i < import->batch_count && batch.count > 0 && status >= 0; i++) {
        status = give_events(import, import->statements[i], &batch, fn, arg, err);
        sqlite3_reset(import->statements[i]);
    }
    if (status >= 0 && !import->text)
        status = check_every_line_gave(&batch, err);
    annal__import_batch_done(import, &batch);
    /* after a failure no line may be inserted again: it would count as a duplicate of itself */
    import->failed = status < 0;
    return status;
}

annal_status annal__import_end(annal_import *import, annal_import_fn fn, void *arg,
                               annal_error *err)
{
    struct batch none = {0};
    annal_status status = ANNAL_OK;
    if (import->failed)
        return annal__fail(err, ANNAL_ERR_CLOSED,
                           "import: an earlier call failed, so this import cannot continue");
    for (size_t i = import->batch_count; i < import->statement_count && status >= 0; i++) {
        status = give_events(import, import->statements[i], &none, fn, arg, err);
        sqlite3_reset(import->statements[i]);
    }
    import->failed = status < 0;
    return status;
}

/* ---- Detecting ---- */

/* Prepare the section detect of an importer, unless that was done. *out is NULL if the importer has
 * no such section. */
static annal_status prepare_detect(annal_import *import, annal_slice sql, sqlite3_stmt **out,
                                   annal_error *err)
{
    for (size_t i = 0; i < import->detect_count; i++)
        if (import->detects[i].sql == sql.ptr) {
            *out = import->detects[i].statement;
            return ANNAL_OK;
        }
    annal_slice section = annal__import_section(sql, "-- detect", &(size_t){0});
    if (import->detect_count == DETECTS_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT, "at most %d importers are possible", DETECTS_MAX);
    if (section.ptr != NULL &&
        sqlite3_prepare_v3(import->db, section.ptr, (int)section.len, SQLITE_PREPARE_PERSISTENT,
                           out, NULL) != SQLITE_OK)
        return annal__import_fail(import, err, "importer, section detect");
    import->detects[import->detect_count].sql = sql.ptr;
    import->detects[import->detect_count++].statement = *out;
    return ANNAL_OK;
}

static annal_status ask_how_sure(annal_import *import, annal_slice sql, int *out_sure,
                                 annal_error *err)
{
    sqlite3_stmt *statement = NULL;
    annal_status status = prepare_detect(import, sql, &statement, err);
    if (status < 0 || statement == NULL)
        return status;
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *out_sure = sqlite3_column_int(statement, 0);
    else if (code != SQLITE_DONE)
        status = annal__import_fail(import, err, "importer, section detect");
    sqlite3_reset(statement);
    return status;
}

/* Prepare to detect; with *inout_same the table lines has the lines already. */
static annal_status begin_detecting(annal_import **spare, annal_slice sql,
                                    const annal_import_source *source, bool *inout_same,
                                    annal_error *err)
{
    annal_status status = ANNAL_OK;
    bool text = annal__import_section(sql, "-- text", &(size_t){0}).ptr != NULL;
    bool repeat = may_repeat(source);
    *inout_same =
        *inout_same && *spare != NULL && (*spare)->text == text && (*spare)->may_repeat == repeat;
    const char *empty = *inout_same ? "DELETE FROM source"
                                    : "DELETE FROM source; DELETE FROM lines; DELETE FROM _seen";
    if (*spare == NULL)
        status = open_ours(source, spare, err);
    else if (sqlite3_exec((*spare)->db, empty, NULL, NULL, NULL) != SQLITE_OK)
        status = annal__import_fail(*spare, err, "importer");
    else
        status = describe_source(*spare, source, err);
    if (status >= 0 && !*inout_same) {
        annal__import_json_begin((*spare)->json);
        (*spare)->may_repeat = repeat;
        (*spare)->text = text;
    }
    return status;
}

annal_status annal__import_detect(annal_import **spare, annal_slice sql,
                                  const annal_import_source *source, const annal_import_line *lines,
                                  size_t count, bool same_lines, int *out_sure, annal_error *err)
{
    struct batch batch = {0};
    *out_sure = 0;
    if (count == 0)
        return ANNAL_OK;
    annal_status status = begin_detecting(spare, sql, source, &same_lines, err);
    for (size_t i = 0; i < count && status >= 0 && !same_lines; i++)
        status = annal__import_insert(*spare, &batch, &lines[i], err);
    if (status >= 0)
        status = ask_how_sure(*spare, sql, out_sure, err);
    annal__import_batch_done(*spare, &batch);
    return status;
}

annal_import_counts annal_import_counts_get(const annal_import *import)
{
    return import->counts;
}
