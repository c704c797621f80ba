/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/acp/acp.h"

#include "journal/base/base64.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/slice.h"
#include "tools/show/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEPTH 400 /* an event's data contains the message at a depth of 2 */

extern const char annal__sql_acp_import[], annal__sql_acp_answer[]; /* acp.sql, answer.sql */

/* ---- Events ---- */

struct taking {
    struct acp_record *record;
    struct acp_out *out; /* NULL: nothing is passed on */
};

static annal_status append(struct acp_record *record, const annal_import_event *event,
                           annal_error *err)
{
    const annal_append_options options = {.level = ANNAL_LEVEL_BATCH};
    annal_status status = ANNAL_OK;
    uint64_t seq;
    if (record->writer == NULL || !annal__slice_is(event->session, record->session)) {
        annal_writer_close(record->writer);
        record->writer = NULL;
        snprintf(record->session, sizeof record->session, "%.*s", ANNAL_FMT(event->session));
        status = annal_writer_open(record->store, event->session, NULL, &record->writer, err);
    }
    return status < 0 ? status
                      : annal_writer_append(record->writer, &event->draft, 1, &options, &seq, err);
}

static int take_answer(void *arg, const annal_row *row)
{
    const struct acp_out *out = arg;
    struct buf *to = row->values[1].integer != 0 ? out->onward : out->back;
    return annal__buf_append_slice(to, row->values[0].bytes) < 0 ||
           annal__buf_append(to, "\n", 1) < 0;
}

/* Answer a request in place of the agent, from what is durable. */
static annal_status answer(struct acp_record *record, annal_slice request, struct acp_out *out,
                           annal_error *err)
{
    const annal_value param = text_value(request);
    annal_status status = annal_store_sync(record->store, err);
    if (status >= 0 && record->index == NULL)
        status = annal_index_open(record->store, NULL, &record->index, err);
    if (status >= 0)
        status = annal_index_sql(record->index, annal_slice_of(annal__sql_acp_answer),
                                 &(annal_sql_options){.params = &param, .param_count = 1},
                                 take_answer, out, err);
    return status > 0 ? annal__fail(err, ANNAL_ERR_NOMEM, "out of memory") : status;
}

static annal_status take_event(void *arg, const annal_import_event *event, annal_error *err)
{
    struct taking *taking = arg;
    struct acp_out *out = taking->out;
    annal_slice data = event->draft.data;
    bool passes = annal__slice_is(event->draft.type, "acp.pass");
    if (!passes && !annal__slice_is(event->draft.type, "acp.answer"))
        return append(taking->record, event, err);
    out->instead = true;
    if (!passes)
        return answer(taking->record, data, out, err);
    return annal__buf_append_slice(out->onward, data) < 0 ||
                   annal__buf_append(out->onward, "\n", 1) < 0
               ? annal__fail(err, ANNAL_ERR_NOMEM, "out of memory")
               : ANNAL_OK;
}

/* ---- Lines ---- */

/* Return a session that the store has, for record_owner(NAME, NULL). */
static annal_slice find_session(void *arg, annal_slice name, annal_slice session)
{
    struct acp_record *record = arg;
    annal_session_info info;
    snprintf(record->owner, sizeof record->owner, "%.*s",
             ANNAL_FMT(session.len > 0 ? session : name));
    bool exists = annal_session_info_get(record->store, name, &info, NULL) >= 0;
    return session.len > 0 || exists ? annal_slice_of(record->owner) : (annal_slice){0};
}

static annal_status open_import(struct acp_record *record, annal_error *err)
{
    const annal_import_option agent = {ANNAL_SLICE("agent"), annal_slice_of(record->agent)};
    const annal_import_source source = {.kind = "acp",
                                        .file = record->file,
                                        .container = "stream",
                                        .options = &agent,
                                        .option_count = 1,
                                        .owner = find_session,
                                        .owner_arg = record};
    return annal_import_open(annal_slice_of(annal__sql_acp_import), &source, &record->import, err);
}

/* Give record->line to the importer. */
static annal_status feed(struct acp_record *record, struct acp_out *out, annal_error *err)
{
    struct taking taking = {record, out};
    annal_status status = record->import == NULL ? open_import(record, err) : ANNAL_OK;
    const annal_import_line line = {.number = ++record->lines,
                                    .bytes = annal__buf_slice(&record->line)};
    return status < 0 ? status
                      : annal_import_feed(record->import, &line, 1, take_event, &taking, err);
}

/* Begin record->line with where a line is from, and when it arrived. */
static annal_status begin(struct acp_record *record, const char *from)
{
    annal__buf_clear(&record->line);
    return annal__buf_printf(&record->line, "{\"from\":\"%s\",\"at\":%" PRId64 ",", from,
                             annal__system_clock.wall_us(annal__system_clock.arg));
}

/* Record bytes that are no message. */
static annal_status put_bytes(struct acp_record *record, const char *from, annal_slice bytes,
                              const char *reason, annal_error *err)
{
    SCOPED_BUF text = {0};
    struct acp_out out = {0};
    bool is_text = annal__json_is_utf8(bytes);
    annal_status status = begin(record, from);
    if (status >= 0 && !is_text)
        status = annal__base64_put(&text, bytes);
    if (status >= 0)
        status = annal__json_put(
            &record->line, is_text ? "\"reason\":?,\"text\":?}" : "\"reason\":?,\"base64\":?}",
            annal_slice_of(reason), is_text ? bytes : annal__buf_slice(&text));
    return status < 0 ? annal__fail(err, ANNAL_ERR_NOMEM, "out of memory")
                      : feed(record, &out, err);
}

/* Record a message. If the importer cannot read it, record it as bytes with a new importer. */
static annal_status put_message(struct acp_record *record, const char *from, annal_slice message,
                                struct acp_out *out, annal_error *err)
{
    char reason[300];
    size_t onward = out->onward->len;
    annal_status status = begin(record, from);
    if (status >= 0)
        status = annal__json_put(&record->line, "\"message\":#}", message);
    if (status < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "out of memory");
    status = feed(record, out, err);
    if (status != ANNAL_ERR_SQL && status != ANNAL_ERR_INVALID && status != ANNAL_ERR_LIMIT)
        return status;
    annal_import_close(record->import);
    record->import = NULL;
    out->instead = false;
    annal__buf_cut(out->onward, onward);
    snprintf(reason, sizeof reason, "the importer failed on this message: %.200s", err->message);
    return put_bytes(record, from, message, reason, err);
}

annal_status acp_record_line(struct acp_record *record, const char *from, annal_slice line,
                             struct acp_out *out, annal_error *err)
{
    annal_slice message = annal__json_trim(line);
    annal_status status = ANNAL_OK;
    json_fault fault = annal__json_check(message, DEPTH, NULL);
    out->instead = false;
    pthread_mutex_lock(&record->lock);
    if (record->ended)
        status = annal__fail(err, ANNAL_ERR_CLOSED, "recording has ended");
    else if (fault == JSON_VALID)
        status = put_message(record, from, message, out, err);
    else if (message.len > 0)
        status = put_bytes(record, from, message, "not a JSON value of at most 400 levels", err);
    pthread_mutex_unlock(&record->lock);
    if (status >= 0 && !out->instead && annal__buf_append_slice(out->onward, line) < 0)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "out of memory");
    return status;
}

annal_status acp_record_head(struct acp_record *record, const char *from, annal_slice head,
                             annal_error *err)
{
    pthread_mutex_lock(&record->lock);
    annal_status status =
        record->ended ? annal__fail(err, ANNAL_ERR_CLOSED, "recording has ended")
                      : put_bytes(record, from, head,
                                  "a line of more than 8 MiB: only its beginning is recorded", err);
    pthread_mutex_unlock(&record->lock);
    return status;
}

annal_status acp_record_end(struct acp_record *record, int exit_status, annal_error *err)
{
    struct acp_out out = {0};
    char text[40];
    snprintf(text, sizeof text, "\"message\":{\"exit_status\":%d}}", exit_status);
    annal_status status = begin(record, "annal");
    if (status >= 0)
        status = annal__buf_append_slice(&record->line, annal_slice_of(text));
    return status < 0 ? annal__fail(err, ANNAL_ERR_NOMEM, "out of memory")
                      : feed(record, &out, err);
}

void acp_record_done(struct acp_record *record)
{
    annal_import_close(record->import);
    annal_writer_close(record->writer);
    annal_index_close(record->index);
    annal__buf_done(&record->line);
    pthread_mutex_destroy(&record->lock);
}
