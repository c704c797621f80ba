/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a stream: create, fork, append, close, delete. */
#include "journal/base/alloc.h"
#include "journal/base/base64.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "tools/cli/args.h"
#include "tools/serve/durable.h"

#include <annal/delete.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_TYPE "application/octet-stream"
#define TTL_MAX      UINT64_C(3153600000) /* 100 years, in s */
#define NUMBER_MAX   ((UINT64_C(1) << 53) - 1)
#define TRIES_MAX    5

/* ---- Headers ---- */

/* What a request says about a stream. */
struct wish {
    const char *type; /* NULL: no Content-Type */
    bool closes, has_ttl, has_expires, has_producer, has_offset;
    uint64_t ttl_s, from_offset, from_sub;
    const char *expires, *stream_seq;
    char from[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* source of a fork, or "" */
    struct durable_producer producer;
};

/* What a new fork has from its source. */
struct source {
    char type[DURABLE_TEXT_BYTES + 1], expires[40];
    int64_t ttl_s;
    uint64_t offset, tail, at; /* at: the last event that the two share */
    struct buf part;           /* the beginning of the next message, for a sub-offset into bytes */
};

/* Read a number without signs and leading zeros. Returns false after an answer. */
static bool read_number(struct request *request, const char *name, uint64_t most, bool *out_given,
                        uint64_t *out)
{
    const char *text = http_header(request, name);
    *out_given = text != NULL;
    if (text == NULL ||
        (text[strspn(text, "0123456789")] == '\0' && text[0] != '\0' &&
         (text[0] != '0' || text[1] == '\0') && fields_parse_number(text, out) && *out <= most))
        return true;
    return answer_error(request, 400, "invalid", "%s must be a whole number up to %" PRIu64, name,
                        most);
}

/* Read a header that is kept as text. Returns false after an answer. */
static bool read_text(struct request *request, const char *name, const char **out)
{
    const char *text = http_header(request, name);
    *out = text;
    for (const char *at = text; at != NULL && *at != '\0'; at++) {
        if (*at < ' ' || *at > '~' || at - text >= DURABLE_TEXT_BYTES)
            return answer_error(request, 400, "invalid",
                                "%s must be at most %d bytes of printable ASCII", name,
                                DURABLE_TEXT_BYTES);
    }
    return true;
}

static bool read_producer(struct request *request, struct wish *wish)
{
    const char *id;
    bool has_epoch, has_seq;
    if (!read_text(request, "Producer-Id", &id) ||
        !read_number(request, "Producer-Epoch", NUMBER_MAX, &has_epoch, &wish->producer.epoch) ||
        !read_number(request, "Producer-Seq", NUMBER_MAX, &has_seq, &wish->producer.seq))
        return false;
    wish->has_producer = id != NULL;
    if (wish->has_producer != has_epoch || has_epoch != has_seq || (id != NULL && *id == '\0'))
        return answer_error(request, 400, "invalid",
                            "Producer-Id, Producer-Epoch and Producer-Seq belong together");
    if (id != NULL)
        memcpy(wish->producer.id, id, strlen(id) + 1);
    return true;
}

static bool read_times(struct request *request, struct wish *wish)
{
    int64_t time_us;
    if (!read_number(request, "Stream-TTL", TTL_MAX, &wish->has_ttl, &wish->ttl_s) ||
        !read_text(request, "Stream-Expires-At", &wish->expires))
        return false;
    wish->has_expires = wish->expires != NULL;
    if (wish->has_ttl && wish->has_expires)
        answer_error(request, 400, "invalid",
                     "Stream-TTL and Stream-Expires-At exclude each other");
    else if (wish->has_expires &&
             (strlen(wish->expires) >= sizeof((struct durable_state *)0)->expires ||
              strchr(wish->expires, 'T') == NULL ||
              annal_time_parse(annal_slice_of(wish->expires), &time_us, NULL) < 0))
        answer_error(request, 400, "invalid",
                     "Stream-Expires-At must be a time such as 2026-01-06T07:24:00Z");
    return request->status == 0;
}

static bool read_fork(struct request *request, struct wish *wish)
{
    bool has_sub;
    char path[2 * ANNAL_SESSION_ID_BYTES_MAX];
    const char *from = http_header(request, "Stream-Forked-From");
    const char *offset = http_header(request, "Stream-Fork-Offset");
    if (!read_number(request, "Stream-Fork-Sub-Offset", NUMBER_MAX, &has_sub, &wish->from_sub))
        return false;
    wish->has_offset = offset != NULL;
    if ((from == NULL && (has_sub || offset != NULL)) || (offset == NULL && wish->from_sub > 0) ||
        (offset != NULL && !durable_read_parse(offset, &wish->from_offset)))
        return answer_error(
            request, 400, "invalid",
            "a fork needs Stream-Forked-From, an offset that this server returned, and a "
            "sub-offset only with an offset");
    if (from == NULL)
        return true;
    snprintf(path, sizeof path, "%s", from);
    (void)http_unescape(path);
    if (strlen(from) >= sizeof path || strncmp(path, DURABLE_PATH, sizeof DURABLE_PATH - 1) != 0)
        return answer_error(request, 404, "not_found",
                            "Stream-Forked-From is not the path of a stream");
    return durable_state_name(request, annal_slice_of(path + sizeof DURABLE_PATH - 1), wish->from);
}

static bool read_wish(struct request *request, struct wish *wish)
{
    const char *closed = http_header(request, "Stream-Closed");
    wish->closes = closed != NULL && strcasecmp(closed, "true") == 0;
    if (!read_text(request, "Content-Type", &wish->type))
        return false;
    if (wish->type != NULL && wish->type[0] == '\0')
        wish->type = NULL;
    return read_text(request, "Stream-Seq", &wish->stream_seq) && read_producer(request, wish);
}

/* ---- Events to append ---- */

/* A request that changes a stream. */
struct change {
    struct serve *serve;
    struct request *request;
    struct wish wish;
    struct source source;        /* of a new fork */
    const char *type;            /* content type of a new stream */
    struct durable_state *state; /* while it is locked */
    annal_draft *drafts;         /* the events to append */
    size_t count;
    struct buf created, part, body, control; /* memory of their data */
    annal_writer *writer;
    annal_error err;
};

/* Add an event. After a failure, the request has an answer, here and below. */
static void add(struct change *change, annal_slice type, annal_slice data)
{
    annal_draft *draft = annal__array_add(&change->drafts, &change->count, sizeof *draft);
    if (draft != NULL)
        *draft = (annal_draft){.type = type, .data = data};
    else
        answer_no_memory(change->request);
}

/* Add an event with the members in text, each with a comma before it. */
static void add_members(struct change *change, annal_slice type, struct buf *text, bool good)
{
    if (good && annal__buf_append(text, "}", 1) >= 0) {
        text->ptr[0] = '{';
        add(change, type, annal__buf_slice(text));
    } else {
        answer_no_memory(change->request);
    }
}

static void forget_events(struct change *change)
{
    annal__free(change->drafts);
    change->drafts = NULL;
    change->count = 0;
    annal__buf_done(&change->created);
    annal__buf_done(&change->part);
    annal__buf_done(&change->body);
    annal__buf_done(&change->control);
}

/* Add a message for each item of the array in the body, or one for another JSON value. */
static void add_json(struct change *change, bool may_be_empty)
{
    struct request *request = change->request;
    annal_slice body = annal__buf_slice(&request->body), item;
    struct json_walk walk;
    size_t before = change->count;
    if (annal__json_check(body, ANNAL_DATA_DEPTH_MAX, NULL) != JSON_VALID) {
        answer_error(request, 400, "invalid", "the body is not JSON");
        return;
    }
    /* a line break between two tokens; a string contains none */
    for (size_t i = 0; i < body.len; i++) {
        if (request->body.ptr[i] == '\n' || request->body.ptr[i] == '\r')
            request->body.ptr[i] = ' ';
    }
    if (!annal__json_walk_array(&walk, body)) {
        add(change, DURABLE_JSON, annal__json_trim(body));
        return;
    }
    while (request->status == 0 && annal__json_walk_item(&walk, &item)) {
        if (change->count == ANNAL_APPEND_EVENTS_MAX - 2)
            answer_error(request, 413, "limit", "the body has more than %d messages",
                         ANNAL_APPEND_EVENTS_MAX - 3);
        else
            add(change, DURABLE_JSON, annal__json_trim(item));
    }
    if (request->status == 0 && change->count == before && !may_be_empty)
        answer_error(request, 400, "invalid", "the body is an empty array");
}

/* Add bytes as a text, if they are one, so that they can be read and searched in the session. */
static void add_bytes(struct change *change, annal_slice bytes, struct buf *out)
{
    SCOPED_BUF coded = {0};
    bool text = annal__json_is_utf8(bytes);
    bool good = (text || annal__base64_put(&coded, bytes) >= 0) &&
                annal__json_put(out, text ? ",\"text\":?" : ",\"base64\":?",
                                text ? bytes : annal__buf_slice(&coded)) >= 0;
    add_members(change, DURABLE_BYTES, out, good);
}

/* Add the messages of the body, and stream.appended if the request has a producer or a sequence or
 * closes the stream. */
static void add_body(struct change *change, const char *type, bool may_be_empty)
{
    const struct wish *wish = &change->wish;
    struct request *request = change->request;
    struct buf *out = &change->control;
    if (request->body.len > 0 && durable_state_is_json(type))
        add_json(change, may_be_empty);
    else if (request->body.len > 0)
        add_bytes(change, annal__buf_slice(&request->body), &change->body);
    if (request->status != 0 || (!wish->has_producer && !wish->closes && wish->stream_seq == NULL))
        return;
    bool good = !wish->has_producer ||
                annal__json_put(out, ",\"producer\":{\"id\":?,\"epoch\":#,\"seq\":#}",
                                annal_slice_of(wish->producer.id), JSON_U64(wish->producer.epoch),
                                JSON_U64(wish->producer.seq)) >= 0;
    if (good && wish->stream_seq != NULL)
        good = annal__json_put(out, ",\"stream_seq\":?", annal_slice_of(wish->stream_seq)) >= 0;
    if (good && wish->closes)
        good = annal__buf_printf(out, ",\"closed\":true") >= 0;
    add_members(change, DURABLE_CONTROL, out, good);
}

/* Append the events after state->seq, and apply them to the state. They are durable after a sync.
 * Call with the lock of the state. */
static annal_status put(struct change *change)
{
    struct durable_state *state = change->state;
    const annal_append_options how = {.level = ANNAL_LEVEL_BATCH,
                                      .expect =
                                          state->seq == 0 ? ANNAL_EXPECT_NONE : ANNAL_EXPECT_SEQ,
                                      .expected_seq = state->seq};
    uint64_t seq = 0;
    annal_status status = annal_writer_open(change->serve->store, change->request->id, NULL,
                                            &change->writer, &change->err);
    if (status >= 0)
        status = annal_writer_append(change->writer, change->drafts, change->count, &how, &seq,
                                     &change->err);
    for (size_t i = 0; status >= 0 && i < change->count; i++)
        status = durable_state_apply(state, change->drafts[i].type, change->drafts[i].data, seq + i,
                                     annal__system_clock.wall_us(NULL), &change->err);
    return status;
}

/* Wait until the appended events are durable, without the lock of the state. A change
 * without a writer repeats a request whose events may not be durable yet. */
static void finish(struct change *change)
{
    annal_status status = change->writer != NULL
                              ? annal_writer_sync(change->writer, NULL, &change->err)
                              : annal_store_sync(change->serve->store, &change->err);
    if (status >= 0)
        return;
    struct durable_state *state = durable_state_take(change->serve, change->request->id, NULL);
    if (state != NULL)
        durable_state_forget(state);
    durable_state_give(change->serve, state);
    answer_failure(change->request, &change->err);
}

/* Call fn with the lock of the state: it checks the request, appends and answers. Call it again if
 * it returns ANNAL_ERR_CONFLICT, because another process has appended since the state was read. */
static void try_change(struct change *change, annal_status (*fn)(struct change *change))
{
    struct serve *serve = change->serve;
    struct request *request = change->request;
    annal_status status = ANNAL_ERR_CONFLICT;
    for (int i = 0; i < TRIES_MAX && status == ANNAL_ERR_CONFLICT; i++) {
        /* after a sync, what this process has appended is in the journal */
        status = i > 0 ? annal_store_sync(serve->store, &change->err) : ANNAL_OK;
        if (status < 0)
            break;
        forget_events(change);
        annal_writer_close(change->writer);
        change->writer = NULL;
        change->state = durable_state_take(serve, request->id, &change->err);
        status = change->state == NULL ? change->err.status : fn(change);
        if (status < 0 && change->state != NULL)
            durable_state_forget(change->state);
        durable_state_give(serve, change->state);
    }
    if (status < 0 && request->status == 0)
        answer_failure(request, &change->err);
    else if (status >= 0 && request->status < 300)
        finish(change);
    annal_writer_close(change->writer);
    forget_events(change);
}

/* ---- Append ---- */

static void put_answer(struct request *request, unsigned status, const struct durable_state *state)
{
    request->status = status;
    durable_read_offset(request, state->tail);
    if (state->is_closed)
        (void)annal__buf_printf(&request->headers, "Stream-Closed: true\n");
}

static void put_number(struct request *request, const char *name, uint64_t number)
{
    (void)annal__buf_printf(&request->headers, "%s: %" PRIu64 "\n", name, number);
}

/* Refuse an append to a stream in this state. */
static void refuse(struct request *request, const struct durable_state *state, const char *why)
{
    answer_error(request, 409, "conflict", "%s", why);
    put_answer(request, 409, state);
}

static bool is_producer(const struct durable_producer *a, const struct durable_producer *b)
{
    return strcmp(a->id, b->id) == 0 && a->epoch == b->epoch && a->seq == b->seq;
}

/* Check the epoch and seq of a producer. Answers and returns false if nothing is to be appended. */
static bool check_producer(struct request *request, struct durable_state *state,
                           const struct wish *wish)
{
    const struct durable_producer *known = durable_state_producer(state, wish->producer.id);
    const struct durable_producer *given = &wish->producer;
    bool new_epoch = known == NULL || given->epoch > known->epoch;
    if (!new_epoch && given->epoch < known->epoch) {
        answer_error(request, 403, "fenced", "a later epoch of this producer has written");
        put_number(request, "Producer-Epoch", known->epoch);
        return false;
    }
    if (!new_epoch && given->seq <= known->seq) {
        if (state->is_closed && !is_producer(&state->closed_by, given)) {
            refuse(request, state, "the stream is closed");
            return false;
        }
        put_answer(request, 204, state);
        put_number(request, "Producer-Epoch", known->epoch);
        put_number(request, "Producer-Seq", known->seq);
        return false;
    }
    if (state->is_closed) {
        refuse(request, state, "the stream is closed");
        return false;
    }
    if (known == NULL && state->producer_count == DURABLE_PRODUCERS_MAX)
        return answer_error(request, 429, "limit", "the stream has %u producers, its maximum",
                            DURABLE_PRODUCERS_MAX);
    uint64_t expected = new_epoch ? 0 : known->seq + 1;
    if (given->seq == expected)
        return true;
    if (known != NULL && new_epoch)
        return answer_error(request, 400, "invalid", "a new epoch begins with Producer-Seq 0");
    answer_error(request, 409, "conflict", "a Producer-Seq is missing before this one");
    put_number(request, "Producer-Expected-Seq", expected);
    put_number(request, "Producer-Received-Seq", given->seq);
    return false;
}

/* Check whether the messages may be appended now. Answers and returns false if nothing is to be
 * appended. */
static bool check_append(struct request *request, struct durable_state *state,
                         const struct wish *wish)
{
    bool empty = request->body.len == 0;
    if (!durable_state_exists(request, state))
        return false;
    if (state->is_closed && !wish->has_producer) {
        if (empty && wish->closes)
            put_answer(request, 204, state);
        else
            refuse(request, state, "the stream is closed");
        return false;
    }
    if (wish->has_producer && !check_producer(request, state, wish))
        return false;
    if (!empty && wish->type == NULL)
        answer_error(request, 400, "invalid", "an append needs the Content-Type of the stream");
    else if (!empty && !durable_state_same_type(wish->type, state->type))
        answer_error(request, 409, "conflict", "the stream has the content type %s", state->type);
    else if (wish->stream_seq != NULL && strcmp(wish->stream_seq, state->stream_seq) <= 0)
        answer_error(request, 409, "conflict", "Stream-Seq must be greater than %s",
                     state->stream_seq);
    return request->status == 0;
}

static annal_status append(struct change *change)
{
    struct request *request = change->request;
    const struct wish *wish = &change->wish;
    annal_status status = ANNAL_OK;
    if (check_append(request, change->state, wish))
        add_body(change, change->state->type, false);
    if (request->status != 0 || (status = put(change)) < 0)
        return status;
    put_answer(request, wish->has_producer && request->body.len > 0 ? 200 : 204, change->state);
    if (wish->has_producer) {
        put_number(request, "Producer-Epoch", wish->producer.epoch);
        put_number(request, "Producer-Seq", wish->producer.seq);
    }
    return status;
}

void durable_write_post(struct serve *serve, struct request *request)
{
    struct change change = {.serve = serve, .request = request};
    if (!read_wish(request, &change.wish))
        return;
    if (request->body.len == 0 && !change.wish.closes)
        answer_error(request, 400, "invalid", "the body is empty");
    else
        try_change(&change, append);
}

/* ---- Delete ---- */

/* Delete the session of a stream; if streams are forked from it, mark it as deleted instead. Call
 * with the lock of the state. */
static annal_status delete (struct serve *serve, annal_slice session, struct durable_state *state,
                            annal_error *err)
{
    struct request named = {.id = session};
    annal_draft mark = {.type = ANNAL_SLICE("stream.deleted"), .data = ANNAL_SLICE("{}")};
    struct change change = {
        .serve = serve, .request = &named, .state = state, .drafts = &mark, .count = 1};
    annal_status status = annal_session_delete(serve->index, &session, 1, NULL, NULL, err);
    if (status >= 0)
        durable_state_forget(state);
    if (status != ANNAL_ERR_CONFLICT || state->is_deleted)
        return status;
    status = put(&change);
    if (status >= 0)
        status = annal_writer_sync(change.writer, NULL, &change.err);
    annal_writer_close(change.writer);
    if (status < 0 && err != NULL)
        *err = change.err;
    return status;
}

/* Delete the deleted streams from which a deleted stream was forked, if nothing needs them now. */
static void delete_sources(struct serve *serve, char *source)
{
    annal_status status = ANNAL_OK;
    while (status >= 0 && source[0] != '\0') {
        char next[ANNAL_SESSION_ID_BYTES_MAX + 1];
        annal_slice session = annal_slice_of(source);
        struct durable_state *state = durable_state_take(serve, session, NULL);
        if (state == NULL)
            return;
        memcpy(next, state->fork_session, sizeof next);
        status = state->is_stream && state->is_deleted ? delete (serve, session, state, NULL)
                                                       : ANNAL_ERR_CONFLICT;
        durable_state_give(serve, state);
        memcpy(source, next, sizeof next);
    }
}

void durable_write_delete(struct serve *serve, struct request *request)
{
    annal_error err = {0};
    char source[ANNAL_SESSION_ID_BYTES_MAX + 1] = "";
    struct durable_state *state = durable_state_take(serve, request->id, &err);
    if (state == NULL) {
        answer_failure(request, &err);
        return;
    }
    if (durable_state_exists(request, state)) {
        memcpy(source, state->fork_session, sizeof source);
        if (delete (serve, request->id, state, &err) < 0)
            answer_failure(request, &err);
        else
            request->status = 204;
    }
    durable_state_give(serve, state);
    if (request->status == 204)
        delete_sources(serve, source);
}

/* ---- Create ---- */

/* Move source->tail over sub messages after the offset, or, of bytes, read sub bytes of the next
 * message. */
static void read_sub(struct change *change)
{
    struct source *source = &change->source;
    annal_slice session = annal_slice_of(change->wish.from);
    uint64_t left = change->wish.from_sub, seen;
    annal_status status = ANNAL_OK;
    bool json = durable_state_is_json(source->type);
    while (left > 0 && status == ANNAL_OK) {
        uint64_t at = source->tail;
        annal__buf_clear(&source->part);
        status = durable_read_messages(change->serve, session, at, 1, &source->part, &at, &seen,
                                       &change->err);
        if (at == source->tail || (!json && source->part.len < left))
            break;
        if (json || source->part.len == left) {
            source->tail = at;
            left -= json ? 1 : left;
            annal__buf_clear(&source->part);
        } else {
            source->part.len = (size_t)left;
            left = 0;
        }
    }
    if (status < 0)
        answer_failure(change->request, &change->err);
    else if (left > 0)
        answer_error(change->request, 400, "invalid",
                     "Stream-Fork-Sub-Offset is after the end of the next message");
}

static void read_source(struct change *change)
{
    struct request *request = change->request;
    struct source *source = &change->source;
    const struct wish *wish = &change->wish;
    struct durable_state *state =
        durable_state_take(change->serve, annal_slice_of(wish->from), &change->err);
    if (state == NULL) {
        answer_failure(request, &change->err);
        return;
    }
    uint64_t first = state->first_seq, begin = state->begin_tail;
    memcpy(source->type, state->type, sizeof source->type);
    memcpy(source->expires, state->expires, sizeof source->expires);
    source->ttl_s = state->ttl_s;
    source->offset = source->tail = wish->has_offset ? wish->from_offset : state->tail;
    if (state->is_deleted)
        answer_error(request, 409, "conflict", "the source of the fork was deleted");
    else if (durable_state_exists(request, state) && source->offset > state->tail)
        answer_error(request, 400, "invalid", "Stream-Fork-Offset is after the end of the source");
    else if (request->status == 0 && wish->type != NULL &&
             !durable_state_same_type(wish->type, state->type))
        answer_error(request, 409, "conflict", "the source has the content type %s", state->type);
    durable_state_give(change->serve, state);
    if (request->status == 0)
        read_sub(change);
    /* events of the source that are not messages belong to the fork as well: so the fork needs the
     * source, and not only the source's source */
    source->at = source->tail >= begin && source->tail < first ? first
                 : source->tail == 0                           ? 1
                                                               : source->tail;
}

/* Return whether an existing stream is what the request asks for. */
static bool is_same(const struct durable_state *state, const struct wish *wish, const char *type)
{
    bool fork = wish->from[0] != '\0';
    bool times = (fork && !wish->has_ttl && !wish->has_expires) ||
                 (state->ttl_s == (wish->has_ttl ? (int64_t)wish->ttl_s : -1) &&
                  strcmp(state->expires, wish->has_expires ? wish->expires : "") == 0);
    return times && durable_state_same_type(state->type, type) &&
           state->is_closed == wish->closes && strcmp(state->from, wish->from) == 0 &&
           (!fork || (state->from_sub == wish->from_sub &&
                      (!wish->has_offset || state->from_offset == wish->from_offset)));
}

/* Add stream.created, and the part of a message with which a fork begins. */
static void add_created(struct change *change)
{
    struct buf *out = &change->created;
    const struct wish *wish = &change->wish;
    const struct source *source = &change->source;
    bool own = wish->has_ttl || wish->has_expires, fork = wish->from[0] != '\0';
    int64_t ttl_s = wish->has_ttl ? (int64_t)wish->ttl_s : own || !fork ? -1 : source->ttl_s;
    const char *expires = wish->has_expires ? wish->expires : own || !fork ? "" : source->expires;
    bool good = annal__json_put(out, ",\"content_type\":?", annal_slice_of(change->type)) >= 0;
    if (good && ttl_s >= 0)
        good = annal__buf_printf(out, ",\"ttl\":%" PRId64, ttl_s) >= 0;
    if (good && expires[0] != '\0')
        good = annal__json_put(out, ",\"expires_at\":?", annal_slice_of(expires)) >= 0;
    if (good && fork)
        good =
            annal__json_put(out, ",\"fork\":{\"from\":?,\"offset\":#,\"sub_offset\":#,\"tail\":#}",
                            annal_slice_of(wish->from), JSON_U64(source->offset),
                            JSON_U64(wish->from_sub), JSON_U64(source->tail)) >= 0;
    add_members(change, DURABLE_CREATED, out, good);
    if (source->part.len > 0)
        add_bytes(change, annal__buf_slice(&source->part), &change->part);
}

/* Create the journal of a fork. A fork without own events was left by a crash between the two
 * steps, and is continued. */
static annal_status fork_session(struct change *change)
{
    annal_session_info info;
    struct durable_state *state = change->state;
    annal_slice session = change->request->id;
    if (state->file[0] != '\0')
        return strcmp(state->fork_session, change->wish.from) == 0 &&
                       state->seq == change->source.at
                   ? ANNAL_OK
                   : annal__fail(&change->err, ANNAL_ERR_CONFLICT, "session '%.*s' exists",
                                 ANNAL_FMT(session));
    annal_status status =
        annal_session_fork(change->serve->store, annal_slice_of(change->wish.from),
                           change->source.at, session, NULL, &info, &change->err);
    if (status >= 0)
        durable_state_begin(state, &info);
    return status;
}

/* Create the stream of a session that does not exist. */
static annal_status create(struct change *change)
{
    annal_status status = ANNAL_OK;
    add_created(change);
    if (change->request->status == 0)
        add_body(change, change->type, true);
    if (change->request->status != 0)
        return ANNAL_OK;
    if (change->wish.from[0] != '\0')
        status = fork_session(change);
    else
        change->state->first_seq = 1;
    return status < 0 ? status : put(change);
}

static void put_location(struct request *request)
{
    const char *host = http_header(request, "Host");
    struct buf *out = &request->headers;
    (void)annal__buf_printf(out, "Location: %s://%s", http_scheme(request),
                            host == NULL ? "localhost" : host);
    for (const char *at = request->path; *at != '\0'; at++) {
        bool plain = (*at >= '-' && *at <= '9') || (*at >= 'A' && *at <= 'Z') ||
                     (*at >= 'a' && *at <= 'z') || *at == '_' || *at == '~';
        (void)annal__buf_printf(out, plain ? "%c" : "%%%02X", (unsigned char)*at);
    }
    (void)annal__buf_append(out, "\n", 1);
}

static annal_status put_stream(struct change *change)
{
    struct request *request = change->request;
    struct durable_state *state = change->state;
    annal_status status = ANNAL_OK;
    unsigned answer = 200;
    if (durable_state_is_expired(state))
        status = delete (change->serve, request->id, state, &change->err);
    if (status < 0)
        return status;
    /* a journal without events is a stream that another process is creating now */
    bool other = state->file[0] != '\0' && !state->is_stream &&
                 (state->seq >= state->first_seq ||
                  (state->fork_session[0] != '\0' && change->wish.from[0] == '\0'));
    if (state->is_deleted || other)
        answer_error(request, 409, "conflict", "%s",
                     state->is_deleted ? "the stream was deleted; streams forked from it remain"
                                       : "the session of this name is not a stream");
    else if (state->is_stream && !is_same(state, &change->wish, change->type))
        answer_error(request, 409, "conflict",
                     "the stream exists, with another content type, time or source");
    else if (!state->is_stream) {
        status = create(change);
        answer = 201;
    }
    if (status < 0 || request->status != 0)
        return status;
    put_answer(request, answer, state);
    (void)annal__buf_printf(&request->headers, "Content-Type: %s\n", state->type);
    if (answer == 201)
        put_location(request);
    return status;
}

void durable_write_put(struct serve *serve, struct request *request)
{
    struct change change = {.serve = serve, .request = request, .source = {.ttl_s = -1}};
    struct wish *wish = &change.wish;
    if (!read_wish(request, wish) || !read_times(request, wish) || !read_fork(request, wish))
        return;
    bool fork = wish->from[0] != '\0';
    if (fork)
        read_source(&change);
    change.type = wish->type != NULL ? wish->type : fork ? change.source.type : DEFAULT_TYPE;
    if (request->status == 0)
        try_change(&change, put_stream);
    annal__buf_done(&change.source.part);
}
