/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a stream: the messages that it has, waiting for more (long-poll), and server-sent
 * events. */
#include "journal/base/alloc.h"
#include "journal/base/base64.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/serve/durable.h"
#include "tools/serve/produce.h"
#include "tools/serve/waits.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES  ((size_t)1 << 20) /* of an answer, before its last message */
#define LONG_POLL_US INT64_C(20000000)
#define LIVE_US      INT64_C(60000000) /* after which a live answer ends; its client asks again */
#define BEAT_US      INT64_C(15000000)
/* the cursor of a live answer counts intervals of 20 s since 2024-10-09 */
#define CURSOR_EPOCH_S INT64_C(1728432000)
#define CURSOR_S       20
#define PAUSES_MAX     8192u /* maximum number of requests that wait */

/* ---- Offsets and messages ---- */

#define OFFSET_FORMAT "%016" PRIu64 "_0000000000000000"

void durable_read_offset(struct request *request, uint64_t offset)
{
    (void)annal__buf_printf(&request->headers, "Stream-Next-Offset: " OFFSET_FORMAT "\n", offset);
}

bool durable_read_parse(const char *text, uint64_t *out)
{
    char again[40];
    *out = 0;
    if (strcmp(text, "-1") == 0)
        return true;
    *out = strtoull(text, NULL, 10);
    snprintf(again, sizeof again, OFFSET_FORMAT, *out);
    return strcmp(again, text) == 0 && *out <= DURABLE_OFFSET_MAX;
}

/* Append the bytes of an event of type stream.data. */
static annal_status append_bytes(annal_slice data, struct buf *out)
{
    bool half;
    annal_slice text = annal__json_member(data, "text");
    annal_slice coded = annal__json_inside(annal__json_member(data, "base64"));
    if (text.len > 1)
        return annal__json_decode(text, out, &half);
    return annal__base64_check(coded) ? annal__base64_take(out, coded) : ANNAL_ERR_CORRUPT;
}

/* Append an event, if it is a message. */
static annal_status put_message(const annal_event *event, struct buf *out, uint64_t *next)
{
    annal_status status = ANNAL_OK;
    if (annal__slice_same(event->type, DURABLE_JSON)) {
        if (out->len > 0)
            status = annal__buf_append(out, ",", 1);
        status = status < 0 ? status : annal__buf_append_slice(out, event->data);
    } else if (annal__slice_same(event->type, DURABLE_BYTES)) {
        status = append_bytes(event->data, out);
    } else {
        return ANNAL_OK;
    }
    *next = event->seq;
    return status;
}

annal_status durable_read_messages(struct serve *serve, annal_slice session, uint64_t from,
                                   size_t most, struct buf *out, uint64_t *out_next,
                                   uint64_t *out_seen, annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    *out_next = *out_seen = from;
    annal_status status = annal_cursor_open(serve->store, session, from + 1, &cursor, err);
    while (status >= 0 && out->len < most &&
           (status = durable_state_next(cursor, session, &event, err)) != ANNAL_END) {
        if (status != ANNAL_OK)
            continue;
        *out_seen = event.seq;
        if (put_message(&event, out, out_next) < 0)
            status = annal__fail(err, ANNAL_ERR_CORRUPT,
                                 "event %" PRIu64 " of session '%.*s': "
                                 "its data is not of a stream, or memory ran out",
                                 event.seq, ANNAL_FMT(session));
    }
    annal_cursor_close(cursor);
    return status;
}

/* ---- Parameters ---- */

struct reading {
    bool is_json, is_text, is_closed, is_live, is_poll, is_now;
    uint64_t offset, tail;
    char file[33];
    size_t headers; /* length of the headers before the answer's own */
};

static int count_value(void *arg, const char *value)
{
    (void)value;
    ++*(int *)arg;
    return 0;
}

static bool read_parameters(struct request *request, struct reading *reading)
{
    int offsets = 0;
    const char *offset = http_query(request, "offset"), *live = http_query(request, "live");
    (void)http_query_each(request, "offset", count_value, &offsets);
    reading->is_poll = live != NULL && strcmp(live, "long-poll") == 0;
    reading->is_live = live != NULL && strcmp(live, "sse") == 0;
    reading->is_now = offset != NULL && strcmp(offset, "now") == 0;
    if (offsets > 1 || (offsets == 1 && !reading->is_now &&
                        (offset == NULL || !durable_read_parse(offset, &reading->offset))))
        answer_error(request, 400, "invalid",
                     "offset must be -1, now, or an offset that this server returned");
    else if (live != NULL && !reading->is_poll && !reading->is_live)
        answer_error(request, 400, "invalid", "live must be long-poll or sse");
    else if (live != NULL && offsets == 0)
        answer_error(request, 400, "invalid", "a live read needs an offset");
    return request->status == 0;
}

/* Record that a stream with a time to live was read: in its events, so that other servers and the
 * next start know it, unless that was done a moment ago. */
static void touch(struct serve *serve, annal_slice session, struct durable_state *state)
{
    const annal_draft draft = {.type = ANNAL_SLICE("stream.read"), .data = ANNAL_SLICE("{}")};
    annal_writer *writer = NULL;
    int64_t now_us = annal__system_clock.wall_us(NULL);
    uint64_t seq;
    state->used_us = now_us > state->used_us ? now_us : state->used_us;
    if (serve->read_only || now_us - state->touched_us < state->ttl_s * INT64_C(1000000) / 8 ||
        annal_writer_open(serve->store, session,
                          &(annal_writer_options){.level = ANNAL_LEVEL_BATCH}, &writer, NULL) < 0)
        return;
    const annal_append_options how = {.expect = ANNAL_EXPECT_SEQ, .expected_seq = state->seq};
    if (annal_writer_append(writer, &draft, 1, &how, &seq, NULL) >= 0)
        (void)durable_state_apply(state, draft.type, draft.data, seq, now_us, NULL);
    annal_writer_close(writer);
}

static void put_state(struct request *request, const struct durable_state *state)
{
    if (state->ttl_s >= 0)
        (void)annal__buf_printf(&request->headers, "Stream-TTL: %" PRId64 "\n", state->ttl_s);
    if (state->expires[0] != '\0')
        (void)annal__buf_printf(&request->headers, "Stream-Expires-At: %s\n", state->expires);
}

/* Read what the answer needs of the state. If the stream does not exist, answers and returns
 * false. */
static bool read_state(struct serve *serve, struct request *request, struct reading *reading)
{
    annal_error err = {0};
    struct durable_state *state = durable_state_take(serve, request->id, &err);
    if (state == NULL)
        return answer_failure(request, &err);
    bool is_head = strcmp(request->method, "HEAD") == 0;
    if (durable_state_exists(request, state)) {
        reading->is_json = durable_state_is_json(state->type);
        reading->is_text = reading->is_json || strncasecmp(state->type, "text/", 5) == 0;
        reading->is_closed = state->is_closed;
        reading->tail = state->tail;
        memcpy(reading->file, state->file, sizeof reading->file);
        if (!reading->is_live)
            (void)annal__buf_printf(&request->headers, "Content-Type: %s\n", state->type);
        if (is_head)
            put_state(request, state);
        else if (state->ttl_s >= 0 && request->poll.until_us == 0)
            touch(serve, request->id, state);
    }
    durable_state_give(serve, state);
    return request->status == 0;
}

/* ---- Answers ---- */

/* Return the cursor of a live answer: the number of the present interval, or more than the cursor
 * that the client sent. */
static uint64_t cursor_of(uint64_t given)
{
    uint64_t now =
        (uint64_t)((annal__system_clock.wall_us(NULL) / 1000000 - CURSOR_EPOCH_S) / CURSOR_S);
    return given < now || given > now + INT64_C(1000000000)
               ? now
               : given + 1 + (uint64_t)annal__clock_monotonic_us() % (3600 / CURSOR_S);
}

static uint64_t given_cursor(const struct request *request)
{
    const char *cursor = http_query(request, "cursor");
    return cursor == NULL ? 0 : strtoull(cursor, NULL, 10);
}

static void put_position(struct request *request, const struct reading *reading, uint64_t next,
                         bool whole)
{
    bool ended = reading->is_closed && whole && next >= reading->tail;
    durable_read_offset(request, next);
    if (whole)
        (void)annal__buf_printf(&request->headers, "Stream-Up-To-Date: true\n");
    if (ended)
        (void)annal__buf_printf(&request->headers, "Stream-Closed: true\n");
    if (reading->is_poll && !ended)
        (void)annal__buf_printf(&request->headers, "Stream-Cursor: %" PRIu64 "\n",
                                cursor_of(given_cursor(request)));
}

/* Answer with the messages in request->answer, or 304 if the client knows them. */
static void answer_messages(struct request *request, const struct reading *reading, uint64_t next,
                            bool whole)
{
    char tag[120];
    const char *known = http_header(request, "If-None-Match");
    snprintf(tag, sizeof tag, "\"%s:%" PRIu64 ":%" PRIu64 "%s\"", reading->file, reading->offset,
             next, reading->is_closed && whole ? ":c" : "");
    put_position(request, reading, next, whole);
    request->status = 200;
    if (!reading->is_now)
        (void)annal__buf_printf(&request->headers, "ETag: %s\n", tag);
    if (known == NULL || strcmp(known, tag) != 0 || reading->is_now)
        return;
    annal__buf_clear(&request->answer);
    request->status = 304;
}

/* The wait of a request for the next event of a session. */
struct pause {
    struct wait wait;
    struct serve *serve;
    annal_tail *tail;
    bool failed;
    void (*fn)(void *arg, bool over);
    void *arg;
};

static void end_pause(void *arg, bool over)
{
    struct pause pause = *(struct pause *)arg;
    waits_unwatch(pause.serve->waits, pause.tail);
    annal_tail_close(pause.tail);
    annal__free(arg);
    atomic_fetch_sub(&pause.serve->pause_count, 1);
    pause.fn(pause.arg, over || pause.failed);
}

/* Call fn once, when the session has an event from seq on, or at until_us of the monotonic clock.
 * over: it is not possible to wait, because the server ends, or too many requests wait. fn must not
 * wait itself: it is called in the thread of waits.h, or at once. */
static void pause_until(struct serve *serve, annal_slice session, uint64_t seq, int64_t until_us,
                        void (*fn)(void *arg, bool over), void *arg)
{
    annal_event event;
    const annal_tail_options options = {.sessions = &session, .session_count = 1, .from_seq = seq};
    struct pause *pause = annal__zalloc(sizeof *pause);
    if (pause == NULL) {
        fn(arg, true);
        return;
    }
    *pause = (struct pause){.wait = {.fn = end_pause, .arg = pause, .until_us = until_us},
                            .serve = serve,
                            .fn = fn,
                            .arg = arg};
    annal_status status = atomic_fetch_add(&serve->pause_count, 1) < PAUSES_MAX
                              ? annal_tail_open(serve->store, &options, &pause->tail, NULL)
                              : ANNAL_ERR_LIMIT;
    if (status >= 0)
        status = waits_watch(serve->waits, &pause->wait, pause->tail, NULL);
    if (status >= 0)
        status = annal_tail_next(pause->tail, 0, &event, NULL);
    pause->failed = status < 0;
    if (!(status == ANNAL_END ? waits_for : waits_call)(serve->waits, &pause->wait))
        end_pause(pause, true);
}

static void resume(void *arg, bool over)
{
    struct request *request = arg;
    if (over)
        request->poll.until_us = 1;
    request->resume(request);
}

static void park(struct request *request)
{
    pause_until(request->program, request->id, request->poll.seen + 1, request->poll.until_us,
                resume, request);
}

/* Answer a long-poll that has no message: wait, unless its time is over. */
static void wait_or_end(struct request *request, const struct reading *reading)
{
    int64_t now_us = annal__clock_monotonic_us();
    if (request->poll.until_us == 0)
        request->poll.until_us = now_us + LONG_POLL_US;
    if (!reading->is_closed && now_us < request->poll.until_us) {
        request->poll.offset = reading->offset;
        annal__buf_cut(&request->headers, reading->headers);
        annal__buf_clear(&request->answer);
        request->park = park;
        return;
    }
    put_position(request, reading, reading->offset, true);
    request->status = 204;
}

static void read_once(struct serve *serve, struct request *request, struct reading *reading)
{
    struct buf *out = &request->answer;
    annal_error err = {0};
    uint64_t next = reading->tail;
    annal_status status = ANNAL_END;
    bool waited = request->poll.until_us != 0;
    if (waited)
        reading->offset = request->poll.offset;
    else if (reading->is_now)
        reading->offset = reading->tail;
    if (!reading->is_now || reading->is_poll)
        status = durable_read_messages(serve, request->id, reading->offset, CHUNK_BYTES, out, &next,
                                       &request->poll.seen, &err);
    if (status < 0) {
        answer_failure(request, &err);
    } else if (reading->is_poll && next == reading->offset && status == ANNAL_END) {
        wait_or_end(request, reading);
    } else {
        if (reading->is_json && (annal__buf_reserve(out, 2) < 0)) {
            answer_no_memory(request);
            return;
        }
        if (reading->is_json) {
            memmove(out->ptr + 1, out->ptr, out->len);
            out->ptr[0] = '[';
            out->ptr[++out->len] = ']';
            out->len++;
        }
        reading->is_now = reading->is_now && !reading->is_poll;
        answer_messages(request, reading, next, status == ANNAL_END);
    }
}

/* ---- Live: server-sent events ---- */

struct live {
    struct serve *serve;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    char file[33];
    uint64_t offset, seen, cursor;
    int64_t until_us, beat_us;
    bool is_json, is_text, begun;
};

/* Append bytes as lines of a data event: a line ends with CR LF, LF or CR. */
static annal_status put_lines(struct buf *out, annal_slice bytes)
{
    annal_status status = ANNAL_OK;
    for (size_t at = 0; status >= 0 && at <= bytes.len;) {
        size_t len = 0;
        while (at + len < bytes.len && bytes.ptr[at + len] != '\n' && bytes.ptr[at + len] != '\r')
            len++;
        /* the client removes one space after the colon */
        bool space = len > 0 && bytes.ptr[at] == ' ';
        annal__buf_printf(out, "data:%s", space ? " " : "");
        annal__buf_append(out, bytes.ptr + at, len);
        status = annal__buf_append(out, "\n", 1);
        at += len;
        at += at + 1 < bytes.len && bytes.ptr[at] == '\r' && bytes.ptr[at + 1] == '\n' ? 2 : 1;
    }
    return status;
}

static annal_status put_data(const struct live *live, annal_slice bytes, struct buf *out)
{
    annal_status status = annal__buf_printf(out, "event: data\n");
    if (status >= 0 && live->is_json)
        status = annal__buf_printf(out, "data:[%.*s]\n", ANNAL_FMT(bytes));
    else if (status >= 0 && live->is_text)
        status = put_lines(out, bytes);
    else if (status >= 0 && (status = annal__buf_append(out, "data:", 5)) >= 0 &&
             (status = annal__base64_put(out, bytes)) >= 0)
        status = annal__buf_append(out, "\n", 1);
    return annal__buf_append(out, "\n", 1);
}

static annal_status put_control(struct live *live, bool whole, bool ended, struct buf *out)
{
    live->cursor = cursor_of(live->cursor);
    annal_status status = annal__buf_printf(
        out, "event: control\ndata:{\"streamNextOffset\":\"" OFFSET_FORMAT "\"", live->offset);
    if (status >= 0 && !ended)
        status = annal__buf_printf(out, ",\"streamCursor\":\"%" PRIu64 "\"", live->cursor);
    if (status >= 0 && whole)
        status = annal__buf_printf(out, ",\"upToDate\":true");
    if (status >= 0 && ended)
        status = annal__buf_printf(out, ",\"streamClosed\":true");
    return annal__buf_printf(out, "}\n\n");
}

/* Read whether the stream is closed, and up to which offset. Returns false if it is gone. */
static bool look(struct live *live, bool *out_closed, uint64_t *out_tail)
{
    struct durable_state *state =
        durable_state_take(live->serve, annal_slice_of(live->session), NULL);
    if (state == NULL)
        return false;
    bool good = state->is_stream && !state->is_deleted && strcmp(state->file, live->file) == 0;
    *out_closed = state->is_closed;
    *out_tail = state->tail;
    durable_state_give(live->serve, state);
    return good;
}

static annal_status fill_live(void *arg, struct buf *out)
{
    struct live *live = arg;
    SCOPED_BUF bytes = {0};
    annal_error err = {0};
    bool closed = false;
    uint64_t tail = 0, next = 0;
    int64_t now_us = annal__clock_monotonic_us();
    if (!look(live, &closed, &tail) || now_us >= live->until_us)
        return ANNAL_END;
    annal_status status =
        durable_read_messages(live->serve, annal_slice_of(live->session), live->offset, FLOW_BYTES,
                              &bytes, &next, &live->seen, &err);
    bool whole = status == ANNAL_END, some = next > live->offset;
    bool ended = whole && closed && next >= tail;
    live->offset = next;
    if (status >= 0 && some)
        status = put_data(live, annal__buf_slice(&bytes), out);
    if (status >= 0 && (some || ended || !live->begun))
        status = put_control(live, whole, ended, out);
    else if (status >= 0 && now_us >= live->beat_us)
        status = annal__buf_printf(out, ": heartbeat\n\n");
    if (out->len > 0)
        live->beat_us = now_us + BEAT_US;
    live->begun = true;
    if (status < 0)
        return status;
    return ended ? ANNAL_END : whole ? PRODUCE_WAIT : ANNAL_OK;
}

static void wake_live(void *arg, bool over)
{
    produce_wake(arg, over);
}

static void wait_live(void *arg, struct production *production)
{
    struct live *live = arg;
    int64_t until_us = live->beat_us < live->until_us ? live->beat_us : live->until_us;
    pause_until(live->serve, annal_slice_of(live->session), live->seen + 1, until_us, wake_live,
                production);
}

static void read_live(struct serve *serve, struct request *request, const struct reading *reading)
{
    struct live *live = annal__zalloc(sizeof *live);
    int64_t now_us = annal__clock_monotonic_us();
    if (live == NULL) {
        answer_no_memory(request);
        return;
    }
    *live = (struct live){.serve = serve,
                          .offset = reading->is_now ? reading->tail : reading->offset,
                          .cursor = given_cursor(request),
                          .until_us = now_us + LIVE_US,
                          .beat_us = now_us + BEAT_US,
                          .is_json = reading->is_json,
                          .is_text = reading->is_text};
    memcpy(live->session, request->session, sizeof live->session);
    memcpy(live->file, reading->file, sizeof live->file);
    (void)annal__buf_printf(&request->headers, "Cache-Control: no-cache\nX-Accel-Buffering: no\n%s",
                            reading->is_text ? "" : "Stream-SSE-Data-Encoding: base64\n");
    produce(serve, request, "text/event-stream",
            &(struct producer){.queue = QUEUE_QUICK,
                               .arg = live,
                               .fill = fill_live,
                               .wait = wait_live,
                               .free = annal__free});
}

/* ---- Routes ---- */

void durable_read_get(struct serve *serve, struct request *request)
{
    struct reading reading = {.headers = request->headers.len};
    if (strcmp(request->method, "HEAD") == 0) {
        if (!read_state(serve, request, &reading))
            return;
        durable_read_offset(request, reading.tail);
        if (reading.is_closed)
            (void)annal__buf_printf(&request->headers, "Stream-Closed: true\n");
        request->status = 200;
        return;
    }
    if (!read_parameters(request, &reading) || !read_state(serve, request, &reading))
        return;
    if (!reading.is_now && reading.offset > reading.tail)
        answer_error(request, 400, "invalid", "the offset is after the end of the stream");
    else if (reading.is_live)
        read_live(serve, request, &reading);
    else
        read_once(serve, request, &reading);
}

/* Answer the question of a browser which requests it may send. Only origins that the server
 * accepts receive an answer. */
void durable_read_options(struct serve *serve, struct request *request)
{
    (void)serve;
    (void)annal__buf_printf(
        &request->headers,
        "Access-Control-Allow-Methods: GET, HEAD, PUT, POST, DELETE\n"
        "Access-Control-Allow-Headers: authorization, content-type, if-none-match, producer-epoch, "
        "producer-id, producer-seq, stream-closed, stream-expires-at, stream-fork-offset, "
        "stream-fork-sub-offset, stream-forked-from, stream-seq, stream-ttl\n");
    request->status = 204;
}
