/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQL functions for packs and for SELECTs. All except session_id() always return the same result
 * for the same arguments.
 *
 *     annal_time(x)          an ISO 8601 time in our fixed width; NULL if x is not a time
 *     annal_unix(x)          an ISO 8601 time, or a number of seconds, as REAL seconds since 1970;
 *                            NULL if x is neither
 *     annal_count(x, ...)    the first argument that is a number of at least 0, as an integer;
 *                            else 0
 *     annal_increment(x, ...) the first argument that is a number, as an integer; else 0
 *     annal_prompt_over(prompt, input) the largest of 0, 32000, 128000, 200000, 256000 and 272000
 *                            that prompt (or input, if prompt is missing) exceeds. If prompt is -1,
 *                            input is the sum of several prompts, and the result is negative
 *     annal_cost(micro, usd) millionths of a dollar: micro, or usd converted; else 0
 *                            annal_count, annal_increment and annal_cost ignore a number beyond
 *                            10^15: it is a mistake, and sums of thousands of them would not fit
 *                            into an integer.
 *     session_id(x)          the id of the session whose id is x or begins with x; NULL if there
 *                            is none, an error if there are several (sub-agents of the session do
 *                            not count). It reads the table sessions, so packs cannot call it
 *     annal_blob(x)          the bytes that base64 text encodes, as a BLOB; NULL if x is not base64
 *     annal_title(x)         text on one line, cut if it is long; NULL if it is empty
 *     annal_said(data)       annal_title() of what the user said, if data belongs to a message
 *                            of the user; else NULL
 *
 * Further functions are in periods.c (times in the reader's zone), message.c (errors), vectors.c
 * (vectors) and statistics.c (aggregates).
 */
#include "index/db/functions.h"

#include "index/db/title.h"
#include "journal/base/base64.h"

#include <annal/base.h>

#include <math.h>

#define COUNT_MAX 1e15

static bool time_of(sqlite3_value *value, int64_t *out_us)
{
    if (sqlite3_value_type(value) != SQLITE_TEXT)
        return false;
    const char *text = (const char *)sqlite3_value_text(value);
    annal_slice slice = {text, (size_t)sqlite3_value_bytes(value)};
    return text != NULL && annal_time_parse(slice, out_us, NULL) >= 0;
}

static void sql_time(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    int64_t time_us;
    if (!time_of(values[0], &time_us))
        return;
    char out[ANNAL_TIME_BYTES];
    annal_time_format(time_us, out);
    sqlite3_result_text(context, out, ANNAL_TIME_BYTES - 1, SQLITE_TRANSIENT);
}

static void sql_unix(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    int type = sqlite3_value_type(values[0]);
    int64_t time_us;
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT)
        sqlite3_result_double(context, sqlite3_value_double(values[0]));
    else if (time_of(values[0], &time_us))
        sqlite3_result_double(context, (double)time_us / 1e6);
}

static bool is_number(sqlite3_value *value)
{
    int type = sqlite3_value_type(value);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static bool is_countable(sqlite3_value *value)
{
    return is_number(value) && fabs(sqlite3_value_double(value)) <= COUNT_MAX;
}

static void sql_count(sqlite3_context *context, int count, sqlite3_value **values)
{
    int i = 0;
    while (i < count && (!is_countable(values[i]) || sqlite3_value_double(values[i]) < 0))
        i++;
    sqlite3_result_int64(context, i < count ? sqlite3_value_int64(values[i]) : 0);
}

static void sql_increment(sqlite3_context *context, int count, sqlite3_value **values)
{
    int i = 0;
    while (i < count && !is_countable(values[i]))
        i++;
    sqlite3_result_int64(context, i < count ? sqlite3_value_int64(values[i]) : 0);
}

/* annal_prompt_over(): compare a prompt with the lengths above which models cost more per token. */
static void sql_prompt_over(sqlite3_context *context, int count, sqlite3_value **values)
{
    static const int lengths[] = {0, 32000, 128000, 200000, 256000, 272000};
    (void)count;
    bool sum = is_number(values[0]) && sqlite3_value_double(values[0]) == -1;
    bool said = is_countable(values[0]) && sqlite3_value_double(values[0]) >= 0;
    sqlite3_value *tokens = values[said ? 0 : 1];
    size_t i = sizeof lengths / sizeof *lengths - 1;
    while (i > 0 && !(is_countable(tokens) && sqlite3_value_double(tokens) > lengths[i]))
        i--;
    sqlite3_result_int(context, sum ? -lengths[i] : lengths[i]);
}

static void sql_cost(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    double micro = 0;
    if (is_countable(values[0])) {
        sqlite3_result_int64(context, sqlite3_value_int64(values[0]));
        return;
    }
    if (is_number(values[1]))
        micro = sqlite3_value_double(values[1]) * 1e6;
    sqlite3_result_int64(context, fabs(micro) <= COUNT_MAX ? llround(micro) : 0);
}

static void sql_blob(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    SCOPED_BUF bytes = {0};
    if (sqlite3_value_type(values[0]) != SQLITE_TEXT)
        return;
    const char *text = (const char *)sqlite3_value_text(values[0]);
    annal_slice base64 = {text, (size_t)sqlite3_value_bytes(values[0])};
    if (text == NULL || !annal__base64_check(base64))
        return;
    if (annal__base64_take(&bytes, base64) < 0)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_blob64(context, bytes.ptr == NULL ? "" : bytes.ptr, bytes.len,
                              SQLITE_TRANSIENT);
}

static void sql_session_id(sqlite3_context *context, int count, sqlite3_value **values)
{
    /*
     * The first id that begins with ?1, and whether it is unique: it equals ?1, or all other ids
     * that begin with ?1 are its sub-agents. A parent sorts before its sub-agents, whose ids are
     * the parent's id, a dot, and more.
     */
    static const char select[] =
        "WITH found AS (SELECT id FROM sessions WHERE id >= ?1 AND id < ?1 || char(0x10ffff)) "
        "SELECT id, id = ?1 OR NOT EXISTS (SELECT 1 FROM found WHERE id <> least AND "
        "substr(id, 1, length(least) + 1) <> least || '.') "
        "FROM (SELECT min(id) AS id, min(id) AS least FROM found) WHERE id IS NOT NULL";
    sqlite3_stmt *stmt = NULL;
    (void)count;
    int rc = sqlite3_prepare_v2(sqlite3_context_db_handle(context), select, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_value(stmt, 1, values[0]);
    if (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
        sqlite3_result_value(context, sqlite3_column_value(stmt, 0));
        if (sqlite3_column_int(stmt, 1) == 0)
            sqlite3_result_error(context, "session_id(): the beginning of the id is ambiguous", -1);
    }
    if (sqlite3_finalize(stmt) != SQLITE_OK || rc != SQLITE_OK)
        sqlite3_result_error_code(context, rc != SQLITE_OK ? rc : SQLITE_ERROR);
}

int annal__functions_add(sqlite3 *db)
{
    static const struct {
        const char *name;
        int arguments;
        void (*function)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"annal_time", 1, sql_time},
        {"annal_unix", 1, sql_unix},
        {"annal_count", -1, sql_count},
        {"annal_increment", -1, sql_increment},
        {"annal_cost", 2, sql_cost},
        {"annal_blob", 1, sql_blob},
        {"annal_prompt_over", 2, sql_prompt_over},
        {"annal_title", 1, annal__title},
        {"annal_said", 1, annal__title_said},
        {"annal_message", 1, annal__message_group},
        {"annal_pattern", 1, annal__message_pattern},
        {"annal_f32", 1, annal__vectors_f32},
        {"vec_distance_l2", 2, annal__vectors_l2},
        {"vec_distance_cosine", 2, annal__vectors_cosine},
    };
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof functions / sizeof *functions; i++)
        rc = sqlite3_create_function_v2(db, functions[i].name, functions[i].arguments, flags, NULL,
                                        functions[i].function, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(db, "session_id", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL,
                                        sql_session_id, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = annal__periods_add(db);
    return rc == SQLITE_OK ? annal__statistics_add(db) : rc;
}
