/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs each SQL statement of a user in a process of its own.
 *
 * SQLite checks limits between the steps of a statement. But a single call of a function, such as
 * LIKE with many %, may run for hours and cannot be interrupted. Its process exits (overdue.h) or
 * is killed, without effect on the server. The memory limit also applies to a process. The process
 * runs this command again and reads QUESTION from its environment, so that other users of the host
 * cannot read the statement in the list of processes.
 */
#include "tools/serve/question.h"
#include "index/sys/open.h"
#include "journal/base/clock.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/number.h"
#include "journal/sys/say.h"
#include "tools/cli/child.h"
#include "tools/cli/out.h"
#include "tools/cli/overdue.h"
#include "tools/cli/store_open.h"
#include "tools/serve/serve.h"
#include "tools/show/rows_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define QUESTION "ANNAL_SERVE_QUESTION"
/* time in ms that the process gets to open the store and the index, in addition to the
 * statement's */
#define BEGIN_MS         10000u
#define SQL_ROWS_USUAL   1000u
#define SQL_ROWS_MAX     100000u
#define SQL_MS_USUAL     10000u
#define SQL_MS_MAX       60000u
#define SQL_MEMORY_BYTES ((uint64_t)256 << 20)
#define SQL_TEMP_BYTES   ((uint64_t)1 << 30)
#define PARAMS_MAX       100u

struct question {
    annal_slice sql;
    annal_value params[PARAMS_MAX];
    size_t param_count;
    uint64_t limit, timeout_ms;
    struct buf texts; /* memory for the texts of sql and params */
};

static bool read_param(struct question *question, annal_slice raw)
{
    annal_value *param = &question->params[question->param_count++];
    *param = (annal_value){.kind = ANNAL_VALUE_NULL};
    if (raw.ptr[0] == '"') {
        param->kind = ANNAL_VALUE_TEXT;
        return annal__json_text(raw, &question->texts, &param->bytes) >= 0;
    }
    if (raw.ptr[0] == 't' || raw.ptr[0] == 'f') {
        *param = (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = raw.ptr[0] == 't'};
        return true;
    }
    if (raw.ptr[0] == 'n')
        return true;
    if (raw.ptr[0] == '[' || raw.ptr[0] == '{')
        return false;
    struct number number = annal__number_read(raw);
    if (number.kind == NUMBER_INT)
        *param = (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = number.sint};
    else if (number.kind == NUMBER_UINT && number.uint <= INT64_MAX)
        *param = (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = (int64_t)number.uint};
    else if (number.kind == NUMBER_DOUBLE)
        *param = (annal_value){.kind = ANNAL_VALUE_REAL, .real = number.real};
    else
        return false;
    return true;
}

static bool read_params(struct question *question, annal_slice array)
{
    struct json_walk walk;
    annal_slice item;
    if (array.len == 0)
        return true;
    if (!annal__json_walk_array(&walk, array))
        return false;
    while (annal__json_walk_item(&walk, &item)) {
        if (question->param_count == PARAMS_MAX || !read_param(question, item))
            return false;
    }
    return true;
}

static bool read_count(annal_slice object, const char *name, uint64_t most, uint64_t *out)
{
    annal_slice raw = annal__json_member(object, name);
    if (raw.len == 0)
        return true;
    struct number number = annal__number_read(raw);
    if (number.kind != NUMBER_UINT || number.uint == 0)
        return false;
    *out = number.uint < most ? number.uint : most;
    return true;
}

/* Read a question from the body {"sql":"SELECT …","params":[…],"limit":N,"timeout_ms":N}. Returns
 * false after answering a request with an invalid body. */
static bool read_question(struct request *request, struct question *question)
{
    annal_slice body = annal__buf_slice(&request->body);
    annal_slice sql = {0};
    bool good = annal__json_check(body, 16, NULL) == JSON_VALID;
    *question = (struct question){.limit = SQL_ROWS_USUAL, .timeout_ms = SQL_MS_USUAL};
    good = good && annal__buf_reserve(&question->texts, body.len) >= 0;
    if (good)
        sql = annal__json_member(body, "sql");
    good = good && sql.len > 0 && sql.ptr[0] == '"' &&
           annal__json_text(sql, &question->texts, &question->sql) >= 0 &&
           read_params(question, annal__json_member(body, "params")) &&
           read_count(body, "limit", SQL_ROWS_MAX, &question->limit) &&
           read_count(body, "timeout_ms", SQL_MS_MAX, &question->timeout_ms);
    if (!good)
        answer_error(request, 400, "invalid",
                     "the body must be {\"sql\":\"SELECT …\"}, with optional members params (a "
                     "list of texts, numbers, true, false and null), limit and timeout_ms");
    return good;
}

/* ---- In the process that runs a statement ---- */

static void answer(annal_index *index, struct request *request)
{
    struct question question;
    annal_error err = {0};
    int64_t begun_us = annal__clock_monotonic_us();
    if (!read_question(request, &question)) {
        annal__buf_done(&question.texts);
        return;
    }
    struct rows_json rows = {.out = &request->answer, .limit = question.limit};
    annal_sql_options options = {.damages = true,
                                 .params = question.params,
                                 .param_count = question.param_count,
                                 .columns = rows_json_columns,
                                 .limits = {.run_ms = (uint32_t)question.timeout_ms,
                                            .memory_bytes = SQL_MEMORY_BYTES,
                                            .temp_bytes = SQL_TEMP_BYTES}};
    overdue_watch(&options.limits);
    annal_status status =
        annal_index_sql(index, question.sql, &options, rows_json_row, &rows, &err);
    if (status >= 0)
        status = rows_json_end(&rows);
    if (status >= 0)
        status = annal__buf_printf(
            &request->answer,
            ",\"truncated\":%s,\"damaged_events\":%" PRIu64 ",\"elapsed_ms\":%.3f}",
            rows.truncated ? "true" : "false", annal__store_damages_said(annal__index_store(index)),
            (double)(annal__clock_monotonic_us() - begun_us) / 1000);
    annal__buf_done(&question.texts);
    answer_json(request, status, &err);
}

static bool read_input(struct buf *body)
{
    ssize_t got = 1;
    while (got > 0 && annal__buf_reserve(body, 65536) >= 0) {
        got = read(STDIN_FILENO, body->ptr + body->len, 65536);
        body->len += got > 0 ? (size_t)got : 0;
    }
    return got == 0;
}

bool question_is_asked(void)
{
    return getenv(QUESTION) != NULL;
}

/* Run the statement of the standard input. Prints the HTTP status on a line, then the answer.
 * Returns an exit status. */
int question_run(const struct args *args)
{
    struct request request = {.fd = -1, .body_fd = -1};
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_error err = {0};
    if (!read_input(&request.body))
        return fail_storage("serve: cannot read the SQL request");
    int exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == 0 && annal_index_open(store, NULL, &index, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0) {
        answer(index, &request);
        printf("%u\n", request.status);
        out_slice(request.constant.ptr != NULL ? request.constant
                                               : annal__buf_slice(&request.answer));
        exit_status = out_finish(exit_status);
    }
    annal__buf_done(&request.body);
    annal__buf_done(&request.answer);
    annal_index_close(index);
    return store_close(store, exit_status);
}

/* ---- In the server ---- */

void question_ask(struct serve *serve, struct request *request, annal_slice body,
                  uint32_t timeout_ms)
{
    const char *zone = http_query(request, "zone");
    const char *const words[] = {"serve", zone == NULL ? NULL : "--zone", zone, NULL};
    struct buf out = {0};
    annal_error err = {0};
    if (zone != NULL && !args_zone_is_known(zone)) {
        answer_error(request, 400, "zone",
                     "zone must be a time zone of the system, such as Europe/Berlin, or an offset "
                     "such as +05:30");
        return;
    }
    annal_status status = child_run(annal_store_path(serve->store), words,
                                    &(struct child_options){.variable = QUESTION "=1",
                                                            .input = body,
                                                            .most_ms = timeout_ms + BEGIN_MS,
                                                            .socket = http_socket(request)},
                                    &out, &err);
    char *end = NULL;
    const char *text = status < 0 ? NULL : annal__buf_cstr(&out);
    request->status = text == NULL ? 0 : (unsigned)strtoul(text, &end, 10);
    if (text != NULL && *end == '\n') {
        request->type = JSON_TYPE;
        annal__buf_consume(&out, (size_t)(end - text) + 1);
        request->answer = out;
        return;
    }
    annal__buf_done(&out);
    request->status = 0;
    if (status == ANNAL_ERR_REFUSED || status == ANNAL_ERR_LIMIT)
        answer_error(request, 413, "limit",
                     "SQL: stopped after %.1f seconds, during one call of a function",
                     (double)timeout_ms / 1000);
    else
        answer_error(request, 503, "busy", "%s", err.message);
}

void question_post(struct serve *serve, struct request *request)
{
    struct question question;
    bool good = read_question(request, &question);
    annal__buf_done(&question.texts);
    if (good)
        question_ask(serve, request, annal__buf_slice(&request->body),
                     (uint32_t)question.timeout_ms);
}
