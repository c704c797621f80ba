/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing: appending events to a session, and forking.
 *
 * The body of an append consists of lines; the answer has one line for each, in the form that
 * `annal append` prints. The status is 200 if every line has a seq. Otherwise it is the status of
 * the failed line, which is the last line of the answer; the lines before it were appended.
 */
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/number.h"
#include "journal/base/slice.h"
#include "tools/append/appender.h"
#include "tools/cli/args.h"
#include "tools/cli/subject.h"
#include "tools/serve/serve.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool read_options(struct request *request, struct appender *appender, annal_format *format)
{
    static const char *const levels[] = {"sync", "batch", "os", NULL};
    static const char *const formats[] = {"jsonl", "msgpack", NULL};
    int level = 0, journal = 0;
    char number[24];
    const char *match = http_header(request, "If-Match");
    if (!answer_choice(request, "level", levels, &level) ||
        !answer_choice(request, "format", formats, &journal))
        return false;
    appender->level = (annal_level)(ANNAL_LEVEL_SYNC + level);
    *format = journal == 1 ? ANNAL_FORMAT_MSGPACK : ANNAL_FORMAT_DEFAULT;
    appender->type = annal_slice_of(http_query(request, "type"));
    if (match == NULL)
        return true;
    size_t len = strspn(match, "\"") > 0 ? strcspn(match + 1, "\"") : strlen(match);
    snprintf(number, sizeof number, "%.*s", (int)(len < 23 ? len : 23), match + (*match == '"'));
    appender->expects = fields_parse_number(number, &appender->expected_seq);
    if (!appender->expects)
        answer_error(
            request, 400, "invalid",
            "If-Match must be the seq of the last event of the session, or 0 if it is empty");
    return appender->expects;
}

static annal_status append_line(struct appender *appender, annal_slice line, struct buf *answers,
                                annal_error *err)
{
    annal_draft draft;
    annal_status status = appender_read(appender, line, &draft, err);
    if (status >= 0)
        status = appender_put(appender, &draft, line.len, err);
    if (status < 0)
        appender_fail(appender, err);
    else if (appender_is_full(appender))
        status = appender_acknowledge(appender, answers, err);
    return status;
}

/* Append the lines of the body, and their answers. The last line need not end with a line break. */
static annal_status append_lines(struct appender *appender, annal_slice body, struct buf *answers,
                                 annal_error *err)
{
    annal_error unsynced = {0};
    annal_status status = ANNAL_OK;
    for (size_t at = 0; status >= 0 && at < body.len;) {
        const char *begin = body.ptr + at;
        const char *newline = memchr(begin, '\n', body.len - at);
        size_t len = newline == NULL ? body.len - at : (size_t)(newline - begin);
        status = append_line(appender, (annal_slice){begin, len}, answers, err);
        at += len + 1;
    }
    annal_status synced = appender_acknowledge(appender, answers, &unsynced);
    if (synced < 0 && status >= 0) {
        *err = unsynced;
        status = synced;
    }
    (void)annal__buf_append_slice(answers, annal__buf_slice(&appender->last_answer));
    return status;
}

void serve_append_events(struct serve *serve, struct request *request)
{
    struct appender appender = {
        .session = request->id, .store = serve->store, .index = serve->index};
    annal_writer_options how = {0};
    annal_error err = {0};
    if (!read_options(request, &appender, &how.format))
        return;
    if ((annal__slice_begins(request->id, SUBJECT_PREFIX) &&
         subject_enable(serve->store, serve->index, &err) < 0) ||
        annal_writer_open(serve->store, request->id, &how, &appender.writer, &err) < 0) {
        answer_failure(request, &err);
        return;
    }
    bool expects = appender.expects;
    annal_status status =
        append_lines(&appender, annal__buf_slice(&request->body), &request->answer, &err);
    request->status = status >= 0 ? 200 : answer_failure_status(&err);
    if (expects && status == ANNAL_ERR_CONFLICT && appender.expects)
        request->status = 412;
    request->type = NDJSON_TYPE;
    annal_writer_close(appender.writer);
    appender_done(&appender);
}

/* Fork the session, at the event and with the name in the body {"at":SEQ,"name":ID}. */
void serve_append_fork(struct serve *serve, struct request *request)
{
    annal_slice body = annal__buf_slice(&request->body), child = {0};
    SCOPED_BUF text = {0};
    annal_error err = {0};
    annal_session_info info;
    uint64_t at = ANNAL_FORK_LAST;
    bool good = annal__json_check(body, 16, NULL) == JSON_VALID;
    annal_slice name = good ? annal__json_member(body, "name") : (annal_slice){0};
    annal_slice seq = good ? annal__json_member(body, "at") : (annal_slice){0};
    good = good && name.len > 0 && name.ptr[0] == '"' && annal__json_text(name, &text, &child) >= 0;
    if (good && seq.len > 0) {
        struct number number = annal__number_read(seq);
        good = number.kind == NUMBER_UINT && number.uint > 0;
        at = number.uint;
    }
    if (!good)
        answer_error(request, 400, "invalid",
                     "the body must be {\"name\":\"the new session\",\"at\":SEQ}");
    else if (annal_session_fork(serve->store, request->id, at, child, NULL, &info, &err) < 0)
        answer_failure(request, &err);
    else {
        annal_status status = annal__buf_printf(
            &request->answer,
            "{\"session_id\":\"%s\",\"parent_session_id\":\"%s\",\"forked_at_seq\":%" PRIu64 "}",
            info.session, info.fork_session, info.fork_seq);
        answer_json(request, status, NULL);
        request->status = 201;
    }
}
