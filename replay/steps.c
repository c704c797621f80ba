/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: docs/steps.md has the rules, to which the numbers below refer. */
#include "index/sys/open.h"
#include "replay/name_table.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/hex.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/sha256.h"
#include "journal/base/slice.h"
#include "journal/sys/cursor.h"

#include <annal/artifact.h>
#include <annal/step.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { INLINE_BYTES = 48 << 20, OWNER_BYTES = 16 };
#define RESULT_BYTES_MAX (UINT64_C(1) << 30)
#define PREFIX           "step:"

struct step {
    struct named named; /* the key; of a long one, its hash after a byte that UTF-8 does not have */
    uint64_t called_seq, ended_seq; /* 0: not yet */
    int64_t began_us;
    bool is_begun; /* by this object */
};

struct annal_steps {
    annal_index *index;
    annal_writer *writer;
    uint64_t seq, h;    /* the last event that was read, and its hash */
    struct names steps; /* steps that began */
    bool is_owner;      /* whether the last event that names an owner names this object */
    char owner[2 * OWNER_BYTES + 1];
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct buf data;   /* of the event to append */
    struct buf text;   /* strings without their escapes */
    struct buf answer; /* the bytes of the last annal_step_answer, beside text */
};

/* ---- Reading ---- */

/* Return the step with this key; add it if it is unknown. NULL: out of memory. */
static struct step *find(annal_steps *steps, annal_slice key)
{
    char hashed[1 + SHA256_BYTES] = {'\xff'};
    if (key.len > ANNAL_SESSION_ID_BYTES_MAX) {
        annal__sha256_of(key.ptr, key.len, (uint8_t *)hashed + 1);
        key = (annal_slice){hashed, sizeof hashed};
    }
    struct named *found = annal__name_table_find(&steps->steps, key);
    if (found == NULL)
        found = annal__name_table_add(&steps->steps, key, sizeof(struct step));
    return (struct step *)found;
}

/* Note an event of a call. Calls that are not steps are left out. */
static annal_status note_call(annal_steps *steps, const annal_event *event, bool is_end)
{
    annal_slice raw = annal__json_member(event->data, "call_id"), id = {0};
    annal__buf_clear(&steps->text);
    if (raw.len == 0 || raw.ptr[0] != '"' || annal__json_text(raw, &steps->text, &id) < 0 ||
        !annal__slice_begins(id, PREFIX))
        return ANNAL_OK;
    size_t skip = strlen(PREFIX);
    struct step *step = find(steps, (annal_slice){id.ptr + skip, id.len - skip});
    if (step == NULL)
        return ANNAL_ERR_NOMEM;
    uint64_t *seq = is_end ? &step->ended_seq : &step->called_seq;
    if (*seq == 0)
        *seq = event->seq;
    return ANNAL_OK;
}

static annal_status note(annal_steps *steps, const annal_event *event)
{
    annal_status status = ANNAL_OK;
    bool is_end = annal__slice_is(event->type, "tool.returned") ||
                  annal__slice_is(event->type, "tool.failed");
    if (is_end || annal__slice_is(event->type, "tool.called"))
        status = note_call(steps, event, is_end);
    else if (annal__slice_is(event->type, "session.created") ||
             annal__slice_is(event->type, "session.resumed"))
        steps->is_owner = annal__slice_is(
            annal__json_inside(annal__json_member(event->data, "owner")), steps->owner);
    if (status >= 0) {
        steps->seq = event->seq;
        steps->h = event->h;
    }
    return status;
}

/* Read the events after steps->seq. The journal is opened each time, so that another journal of
 * this name is noticed: it has another event steps->seq. */
static annal_status read_on(annal_steps *steps, annal_error *err)
{
    annal_event event;
    annal_cursor *cursor = NULL;
    uint64_t before = steps->seq;
    annal_status status = annal_cursor_open(
        annal__index_store(steps->index), annal_slice_of(steps->session), steps->seq, &cursor, err);
    if (status == ANNAL_ERR_NOTFOUND && steps->seq == 0)
        return ANNAL_OK;
    if (status >= 0 && before > 0)
        status = annal_cursor_next(cursor, &event, err);
    if (status == ANNAL_END || (status == ANNAL_OK && before > 0 && event.h != steps->h))
        status = annal__fail(err, ANNAL_ERR_CLOSED, "session '%s' was replaced", steps->session);
    while (status == ANNAL_OK) {
        status = annal_cursor_next(cursor, &event, err);
        if (status == ANNAL_OK)
            status = note(steps, &event);
    }
    annal_cursor_close(cursor);
    if (status == ANNAL_DAMAGE)
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "event %" PRIu64 " of session '%s' is damaged, so it is not known "
                           "which steps ended",
                           steps->seq + 1, steps->session);
    if (status == ANNAL_ERR_NOMEM)
        return annal__fail(err, status, "steps of session '%s'", steps->session);
    return status < 0 ? status : ANNAL_OK;
}

/* Return the content of an artifact that an event names, as JSON. */
static annal_status read_artifact(annal_steps *steps, annal_slice ref, annal_error *err)
{
    annal_slice sha256 = annal__json_inside(annal__json_member(ref, "sha256"));
    annal_slice path = annal__json_inside(annal__json_member(ref, "path")), content = {0};
    annal_slice session = annal_slice_of(steps->session);
    const char *folder = "artifacts/", *end;
    if (annal__slice_begins(path, folder)) { /* a fork names the artifacts of its parent */
        session.ptr = path.ptr + strlen(folder);
        end = memchr(session.ptr, '/', path.len - strlen(folder));
        session.len = end == NULL ? 0 : (size_t)(end - session.ptr);
    }
    annal_status status = annal_artifact_get(annal__index_store(steps->index), session, sha256,
                                             RESULT_BYTES_MAX, &content, err);
    if (status < 0)
        return status;
    bool is_text = annal__slice_is(annal__json_member(ref, "media_type"), "\"text/plain\"");
    annal__buf_clear(&steps->answer);
    status = is_text ? annal__json_quote(&steps->answer, content)
                     : annal__buf_append_slice(&steps->answer, content);
    annal_free(content.ptr);
    return status;
}

/* Return the text of a value; return any other value unchanged. Room in steps->text is
 * reserved. */
static annal_slice text_of(annal_steps *steps, annal_slice raw)
{
    annal_slice text = raw;
    if (raw.len == 0 || raw.ptr[0] != '"' || annal__json_text(raw, &steps->text, &text) < 0)
        return raw;
    return text;
}

static annal_status answer_of(annal_steps *steps, const annal_event *event, annal_step_answer *out,
                              annal_error *err)
{
    annal__buf_clear(&steps->answer);
    annal__buf_clear(&steps->text);
    *out = (annal_step_answer){.is_failed = annal__slice_is(event->type, "tool.failed"),
                               .seq = event->seq};
    annal_slice ref = annal__json_member(event->data, "output_ref");
    annal_slice output = annal__json_member(event->data, "output");
    annal_status status = ANNAL_OK;
    if (!out->is_failed && output.len == 0 && ref.len > 0) {
        status = read_artifact(steps, ref, err);
        out->result = annal__buf_slice(&steps->answer);
        return status;
    }
    status = annal__buf_append_slice(&steps->answer, event->data);
    if (status >= 0)
        status = annal__buf_reserve(&steps->text, event->data.len);
    if (status < 0)
        return status;
    annal_slice data = annal__buf_slice(&steps->answer);
    output = annal__json_member(data, "output");
    if (!out->is_failed) {
        out->result = output.len > 0 ? output : ANNAL_SLICE("null");
        return ANNAL_OK;
    }
    annal_slice message = annal__json_member(data, "error.message");
    out->error_type = text_of(steps, annal__json_member(data, "error.type"));
    out->error_message = text_of(steps, message.len > 0 ? message : output);
    return ANNAL_OK;
}

/* Read the recorded end of a step, rules 2 and 3. */
static annal_status read_answer(annal_steps *steps, const struct step *step, annal_step_answer *out,
                                annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_step_answer answer = {0};
    annal_status status =
        annal__cursor_open_event(annal__index_store(steps->index), annal_slice_of(steps->session),
                                 step->ended_seq, &cursor, &event, err);
    if (status == ANNAL_OK)
        status = answer_of(steps, &event, &answer, err);
    else if (status >= 0)
        status = annal__fail(err, ANNAL_ERR_CORRUPT,
                             "event %" PRIu64 " of session '%s', the end of a step, is damaged",
                             step->ended_seq, steps->session);
    annal_cursor_close(cursor);
    if (status == ANNAL_ERR_NOMEM)
        return annal__fail(err, status, "end of a step of session '%s'", steps->session);
    if (status >= 0 && out != NULL)
        *out = answer;
    return status;
}

/* ---- Appending ---- */

/* Append steps->data after event steps->seq. */
static annal_status append(annal_steps *steps, const char *type, annal_slice cause,
                           annal_error *err)
{
    const annal_draft draft = {
        .type = annal_slice_of(type), .data = annal__buf_slice(&steps->data), .cause = cause};
    const annal_append_options options = {
        .level = ANNAL_LEVEL_SYNC, .expect = ANNAL_EXPECT_SEQ, .expected_seq = steps->seq};
    return annal_pack_append(steps->index, steps->writer, &draft, 1, &options, NULL, err);
}

/* Append steps->data as an event of a step, unless the step has ended, rule 8. `built`: whether the
 * data could be written. */
static annal_status append_for(annal_steps *steps, const struct step *step, const char *type,
                               annal_status built, annal_error *err)
{
    char cause[ANNAL_CAUSE_BYTES_MAX + 1];
    annal_status status = ANNAL_ERR_CONFLICT;
    if (built < 0)
        return annal__fail(err, built, "event %s of session '%s': %s", type, steps->session,
                           annal_status_name(built));
    while (status == ANNAL_ERR_CONFLICT) {
        status = read_on(steps, err);
        if (status < 0)
            return status;
        if (!steps->is_owner)
            return annal__fail(
                err, ANNAL_ERR_CONFLICT,
                "session '%s' was resumed by another process: this run cannot continue",
                steps->session);
        if (step->ended_seq > 0)
            return ANNAL_OK;
        snprintf(cause, sizeof cause, "%s:%" PRIu64, steps->session, step->called_seq);
        status = append(steps, type,
                        step->called_seq > 0 ? annal_slice_of(cause) : (annal_slice){0}, err);
    }
    return status;
}

/* Begin the data of an event of a step. */
static annal_status put_id(annal_steps *steps, annal_slice key)
{
    annal__buf_clear(&steps->data);
    annal__buf_clear(&steps->text);
    annal_status status = annal__json_quote(&steps->text, key);
    if (status < 0)
        return status;
    const annal_slice rest = {steps->text.ptr + 1, steps->text.len - 1};
    return annal__json_put(&steps->data, "{\"call_id\":\"" PREFIX "#", rest);
}

static annal_status claim(annal_steps *steps, annal_slice name, annal_error *err)
{
    annal_slice owner = annal_slice_of(steps->owner);
    annal_status status = ANNAL_ERR_CONFLICT;
    while (status == ANNAL_ERR_CONFLICT) {
        status = read_on(steps, err);
        if (status < 0)
            return status;
        bool is_new = steps->seq == 0;
        annal__buf_clear(&steps->data);
        if (is_new && name.len > 0)
            status = annal__json_put(
                &steps->data, "{\"agent_id\":?,\"title\":?,\"status\":\"running\",\"owner\":?}",
                name, name, owner);
        else
            status = annal__json_put(&steps->data, "{\"status\":\"running\",\"owner\":?}", owner);
        if (status < 0)
            return annal__fail(err, status, "claim session '%s': %s", steps->session,
                               annal_status_name(status));
        status =
            append(steps, is_new ? "session.created" : "session.resumed", (annal_slice){0}, err);
    }
    return status;
}

/* ---- The calls ---- */

annal_status annal_steps_open(annal_index *index, annal_slice session, annal_slice name,
                              annal_steps **out_steps, annal_error *err)
{
    uint8_t owner[OWNER_BYTES];
    annal_steps *steps = annal__zalloc(sizeof *steps);
    if (steps == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "steps of session '%.*s'", ANNAL_FMT(session));
    steps->index = index;
    annal_status status = annal_writer_open(annal__index_store(index), session, NULL,
                                            &steps->writer, err); /* checks the id */
    if (status >= 0) {
        memcpy(steps->session, session.ptr, session.len);
        if (getrandom(owner, sizeof owner, 0) != (ssize_t)sizeof owner)
            status = annal__fail_errno(err, "owner of session '%s'", steps->session);
    }
    if (status >= 0) {
        annal__hex_text(owner, sizeof owner, steps->owner);
        status = claim(steps, name, err);
    }
    if (status >= 0)
        status = read_on(steps, err);
    if (status < 0)
        annal_steps_close(steps);
    else
        *out_steps = steps;
    return status < 0 ? status : ANNAL_OK;
}

void annal_steps_close(annal_steps *steps)
{
    if (steps == NULL)
        return;
    annal_writer_close(steps->writer);
    annal__name_table_done(&steps->steps);
    annal__buf_done(&steps->data);
    annal__buf_done(&steps->text);
    annal__buf_done(&steps->answer);
    annal__free(steps);
}

annal_status annal_step_begin(annal_steps *steps, annal_slice key, annal_step_answer *out_answer,
                              annal_error *err)
{
    if (key.len == 0 || !annal__json_is_utf8(key))
        return annal__fail(err, ANNAL_ERR_INVALID, "the key of a step is text that is not empty");
    annal_status status = read_on(steps, err);
    struct step *step = status < 0 ? NULL : find(steps, key);
    if (status >= 0 && step == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "step '%.*s'", ANNAL_FMT(key));
    if (status >= 0 && step->ended_seq == 0) {
        bool again = step->called_seq > 0;
        if (step->is_begun)
            return annal__fail(err, ANNAL_ERR_CONFLICT, "step '%.*s' runs already in this process",
                               ANNAL_FMT(key));
        status = put_id(steps, key);
        if (status >= 0)
            status =
                again ? annal__json_put(&steps->data, ",\"reason\":?}", ANNAL_SLICE("interrupted"))
                      : annal__json_put(&steps->data, ",\"tool\":?}", key);
        status = append_for(steps, step, again ? "step.retried" : "tool.called", status, err);
    }
    if (status < 0)
        return status;
    if (step->ended_seq > 0) {
        status = read_answer(steps, step, out_answer, err);
        return status < 0 ? status : ANNAL_END;
    }
    step->is_begun = true;
    step->began_us = annal__clock_monotonic_us();
    return ANNAL_OK;
}

/* Find a step that was begun. */
static annal_status find_begun(annal_steps *steps, annal_slice key, struct step **out,
                               annal_error *err)
{
    *out = key.len == 0 ? NULL : find(steps, key);
    if (*out != NULL && (*out)->is_begun)
        return ANNAL_OK;
    return annal__fail(err, ANNAL_ERR_INVALID, "step '%.*s' was not begun by this object",
                       ANNAL_FMT(key));
}

static annal_status put_duration(annal_steps *steps, const struct step *step)
{
    int64_t took_us = annal__clock_monotonic_us() - step->began_us;
    return annal__json_put(&steps->data, ",\"duration_ms\":#}", JSON_I64((took_us + 500) / 1000));
}

/* Append the end of a step, and read what is recorded then. */
static annal_status end_step(annal_steps *steps, struct step *step, const char *type,
                             annal_status built, annal_step_answer *out, annal_error *err)
{
    if (built >= 0)
        built = put_duration(steps, step);
    annal_status status = append_for(steps, step, type, built, err);
    if (status >= 0)
        status = read_on(steps, err);
    if (status >= 0)
        status = read_answer(steps, step, out, err);
    if (status >= 0)
        step->is_begun = false;
    return status < 0 ? status : ANNAL_OK;
}

/* Store a long result, and put its reference into steps->data. */
static annal_status put_artifact(annal_steps *steps, annal_slice result, annal_error *err)
{
    annal_artifact_info info;
    annal_slice session = annal_slice_of(steps->session);
    annal_status status =
        annal_artifact_put(annal__index_store(steps->index), session, result, &info, err);
    if (status < 0)
        return status;
    annal_slice sha256 = annal_slice_of(info.sha256);
    return annal__json_put(&steps->data,
                           ",\"output_ref\":{\"sha256\":\"#\",\"bytes\":#,\"media_type\":"
                           "\"application/json\",\"path\":\"artifacts/#/#.zst\"}",
                           sha256, JSON_U64(info.bytes), session, sha256);
}

annal_status annal_step_complete(annal_steps *steps, annal_slice key, annal_slice result,
                                 annal_step_answer *out_answer, annal_error *err)
{
    struct step *step;
    annal_status status = find_begun(steps, key, &step, err);
    if (status < 0)
        return status;
    result = annal__json_trim(result);
    json_fault fault = annal__json_check(result, ANNAL_DATA_DEPTH_MAX - 1, NULL);
    if (fault != JSON_VALID)
        return annal__fail(err, ANNAL_ERR_INVALID, "the result of step '%.*s' is %s",
                           ANNAL_FMT(key), annal__json_fault_text(fault));
    status = put_id(steps, key);
    if (status >= 0)
        status = annal__json_put(&steps->data, ",\"success\":#", ANNAL_SLICE("true"));
    if (status >= 0 && result.len > INLINE_BYTES) {
        status = put_artifact(steps, result, err);
        if (status < 0)
            return status;
    } else if (status >= 0) {
        status = annal__json_put(&steps->data, ",\"output\":#", result);
    }
    return end_step(steps, step, "tool.returned", status, out_answer, err);
}

annal_status annal_step_fail(annal_steps *steps, annal_slice key, const annal_step_error *error,
                             annal_error *err)
{
    struct step *step;
    annal_slice type = error->type.len > 0 ? error->type : ANNAL_SLICE("Error");
    annal_status status = find_begun(steps, key, &step, err);
    if (status < 0)
        return status;
    status = put_id(steps, key);
    if (status >= 0 && error->attempt > 0) {
        status = annal__json_put(
            &steps->data,
            ",\"reason\":\"error\",\"attempt\":#,\"error\":{\"type\":?,\"message\":?}}",
            JSON_U64(error->attempt), type, error->message);
        return append_for(steps, step, "step.retried", status, err);
    }
    annal__buf_clear(&steps->text);
    if (status >= 0)
        status = annal__buf_printf(&steps->text, "%.*s: %.*s", ANNAL_FMT(type),
                                   ANNAL_FMT(error->message));
    if (status >= 0)
        status = annal__json_put(
            &steps->data, ",\"success\":false,\"output\":?,\"error\":{\"type\":?,\"message\":?}",
            annal__buf_slice(&steps->text), type, error->message);
    return end_step(steps, step, "tool.failed", status, NULL, err);
}
