/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/serve/streams.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/hash.h"
#include "journal/base/json.h"
#include "journal/sys/cursor.h"
#include "replay/sys/tail.h"
#include "tools/cli/args.h"
#include "tools/serve/produce.h"
#include "tools/serve/waits.h"
#include "tools/show/values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS_MAX 8192u
#define TYPES_MAX   64u
#define RETRY       "retry: 1000\n\n"
#define BEAT_US     (INT64_C(1000000) * HEARTBEAT_S)
/* Maximum size of an event's data in a stream. A larger event is announced without its data, so
 * that the client can request it. */
#define EVENT_BYTES_MAX ((size_t)1 << 20)

/* A tail of one named session, or of all sessions. */
struct stream_part {
    annal_slice session; /* empty for all sessions */
    annal_tail *tail;
    uint64_t seq; /* seq of the last sent event; 0 before the first */
    uint64_t h;   /* hash of the last sent event; 0 before the first */
};

/* The position of a stream over all sessions. All events older than base_us were sent, `count`
 * events in total. For newer events, `seen` contains the seq of the last sent event of each
 * session. The position is exact unless `seen` was full, or an event older than base_us arrived
 * while the client was disconnected; in that case the number of older events differs from
 * `count`. */
#define SEEN_MAX 100

struct seen {
    uint64_t session; /* lowest 48 bits of the hash of the session's id */
    uint64_t seq;     /* seq of the last sent event of the session */
};

struct place_of_all {
    int64_t base_us;
    uint64_t count;
    struct seen seen[SEEN_MAX];
    size_t seen_count;
    /* whether seen was full, so that a client that reconnects is told to start again (event:
     * resync) */
    bool lost;
};

struct stream {
    struct serve *serve;
    struct production *production;
    struct wait wait;
    struct stream_part *parts;
    size_t part_count;
    /* position in a stream over all sessions; NULL if the stream names its sessions */
    struct place_of_all *all;
    bool resumes;
    char *names; /* memory for the texts that parts and types point to */
    annal_slice *types;
    size_t type_count;
    uint64_t from_seq;
    int64_t from_us;
    bool from_now;
    bool resync; /* whether the next output tells the client to start again (event: resync) */
    bool begun;
};

/* ---- Parameters ---- */

static annal_slice keep(char **at, annal_slice text)
{
    annal_slice kept = {*at, text.len};
    memcpy(*at, text.ptr, text.len);
    *at += text.len;
    return kept;
}

/* Copy the names of the sessions and types, because the stream may be used a little longer than the
 * texts of its request exist. Returns false if memory ran out. */
static bool keep_names(struct stream *stream, const annal_slice *sessions, size_t count)
{
    size_t bytes = 1;
    stream->part_count = count == 0 ? 1 : count;
    for (size_t i = 0; i < count; i++)
        bytes += sessions[i].len;
    for (size_t i = 0; i < stream->type_count; i++)
        bytes += stream->types[i].len;
    stream->parts = annal__zalloc(stream->part_count * sizeof *stream->parts);
    stream->names = annal__zalloc(bytes);
    if (count == 0)
        stream->all = annal__zalloc(sizeof *stream->all);
    if (stream->parts == NULL || stream->names == NULL || (count == 0 && stream->all == NULL))
        return false;
    char *at = stream->names;
    for (size_t i = 0; i < count; i++)
        stream->parts[i].session = keep(&at, sessions[i]);
    for (size_t i = 0; i < stream->type_count; i++)
        stream->types[i] = keep(&at, stream->types[i]);
    return true;
}

static bool read_from(struct stream *stream, struct request *request)
{
    const char *from = http_query(request, "from");
    /* by default, a stream over all sessions begins with new events: past ones are rarely wanted */
    if (from == NULL)
        stream->from_now = stream->parts[0].session.len == 0;
    if (from == NULL)
        return true;
    if (strcmp(from, "now") == 0)
        stream->from_now = true;
    else if (stream->part_count == 1 && stream->parts[0].session.len > 0 &&
             fields_parse_number(from, &stream->from_seq))
        return true;
    else if (!fields_parse_time(from, &stream->from_us))
        answer_error(request, 400, "invalid",
                     "from must be now, a time, an age such as 2h, or, for one session, a seq");
    return request->status == 0;
}

/* Read the position "@base-count:hash=seq,hash=seq". Returns false if it is invalid, or only "@",
 * which a stream sends whose position is not exact. */
static bool read_place_of_all(struct place_of_all *all, const char *text)
{
    char *end = NULL;
    if (*text != '@')
        return false;
    all->base_us = strtoll(text + 1, &end, 10);
    if (end == text + 1 || *end != '-')
        return false;
    all->count = strtoull(end + 1, &end, 10);
    for (const char *separator = ":"; *end == *separator; separator = ",") {
        if (all->seen_count == SEEN_MAX)
            return false;
        struct seen *seen = &all->seen[all->seen_count++];
        seen->session = strtoull(end + 1, &end, 16);
        if (*end != '=')
            return false;
        seen->seq = strtoull(end + 1, &end, 10);
    }
    return *end == '\0';
}

/* Read the position "12-90ab…,0-0": seq and hash of the last sent event of each session (streams.h,
 * rule 2). */
static bool read_place(struct stream *stream, const char *text)
{
    char *end = NULL;
    if (stream->all != NULL)
        return read_place_of_all(stream->all, text);
    for (size_t i = 0; i < stream->part_count; i++) {
        errno = 0;
        stream->parts[i].seq = strtoull(text, &end, 10);
        if (*end != '-')
            return false;
        stream->parts[i].h = strtoull(end + 1, &end, 16);
        if (errno != 0 || *end != (i + 1 < stream->part_count ? ',' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

static void forget_places(struct stream *stream)
{
    for (size_t i = 0; i < stream->part_count; i++)
        stream->parts[i].seq = stream->parts[i].h = 0;
    if (stream->all != NULL)
        *stream->all = (struct place_of_all){0};
    stream->resumes = false;
    stream->resync = true;
}

static bool check_sessions(struct request *request, const annal_slice *sessions, size_t count)
{
    annal_error err = {0};
    for (size_t i = 0; i < count; i++) {
        if (annal_session_id_check(sessions[i], &err) < 0)
            return answer_failure(request, &err);
    }
    return true;
}

/* Read the parameters of a request. If they are invalid, answers it and returns false. */
static bool read_parameters(struct stream *stream, struct request *request)
{
    annal_slice *sessions = NULL;
    size_t count = 0;
    const char *last = http_header(request, "Last-Event-ID");
    last = last == NULL ? http_query(request, "last_event_id") : last;
    bool good = answer_list(request, "session", STREAM_SESSIONS_MAX, &sessions, &count) &&
                check_sessions(request, sessions, count) &&
                answer_list(request, "type", TYPES_MAX, &stream->types, &stream->type_count);
    if (good && !keep_names(stream, sessions, count)) {
        answer_no_memory(request);
        good = false;
    }
    good = good && read_from(stream, request);
    annal__free(sessions);
    stream->resumes = last != NULL;
    if (good && last != NULL && !read_place(stream, last))
        forget_places(stream);
    return good;
}

/* ---- Tails ---- */

/* Find out whether the journal contains the event after which the client continues. */
static annal_status is_there(struct stream *stream, const struct stream_part *part, bool *out_there,
                             annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    *out_there = part->seq == 0;
    if (part->seq == 0)
        return ANNAL_OK;
    annal_status status = annal__cursor_open_event(stream->serve->store, part->session, part->seq,
                                                   &cursor, &event, err);
    *out_there = status == ANNAL_OK && event.h == part->h;
    annal_cursor_close(cursor);
    return status == ANNAL_ERR_NOTFOUND ? ANNAL_OK : status;
}

static annal_status open_part(struct stream *stream, struct stream_part *part, annal_error *err)
{
    annal_tail_options options = {.sessions = part->session.len > 0 ? &part->session : NULL,
                                  .session_count = part->session.len > 0 ? 1 : 0,
                                  .types = stream->types,
                                  .type_count = stream->type_count};
    if (part->seq > 0)
        options.from_seq = part->seq + 1;
    else if (stream->all != NULL)
        options.from_us = stream->all->base_us;
    else if (stream->from_now)
        options.from_now = true;
    else if (stream->from_seq > 0)
        options.from_seq = stream->from_seq;
    else
        options.from_us = stream->from_us;
    annal_status status = annal_tail_open(stream->serve->store, &options, &part->tail, err);
    return status < 0 ? status : waits_watch(stream->serve->waits, &stream->wait, part->tail, err);
}

static int note_count(void *arg, const annal_row *row)
{
    *(uint64_t *)arg = (uint64_t)row->values[0].integer;
    return 0;
}

/* Count the events before a time, of all sessions. *out is the number. */
static annal_status count_older(struct stream *stream, int64_t time_us, uint64_t *out,
                                annal_error *err)
{
    char time[ANNAL_TIME_BYTES];
    annal_time_format(time_us, time);
    const annal_value param = string_value(time);
    return annal_index_sql(
        stream->serve->index,
        ANNAL_SLICE("SELECT coalesce((SELECT sum(events) FROM event_counts), 0)"
                    " - (SELECT count(*) FROM event_index WHERE timestamp >= ?1)"),
        &(annal_sql_options){.params = &param, .param_count = 1}, note_count, out, err);
}

/* Set the position of a stream over all sessions. If the client continues, but events older than
 * base_us have arrived in the meantime, it must start again (event: resync). */
static annal_status begin_all(struct stream *stream, annal_error *err)
{
    struct place_of_all *all = stream->all;
    uint64_t count = 0;
    if (stream->resumes) {
        annal_status status = count_older(stream, all->base_us, &count, err);
        if (status < 0 || count == all->count)
            return status;
        forget_places(stream);
    }
    all->base_us = stream->from_now ? annal__system_clock.wall_us(NULL) : stream->from_us;
    return count_older(stream, all->base_us, &all->count, err);
}

/* Open the tails at the positions that the client asks for. */
static annal_status begin(struct stream *stream, annal_error *err)
{
    annal_status status = stream->all != NULL ? begin_all(stream, err) : ANNAL_OK;
    bool there = true;
    for (size_t i = 0; status >= 0 && there && i < stream->part_count && stream->all == NULL; i++)
        status = is_there(stream, &stream->parts[i], &there, err);
    if (status >= 0 && !there)
        forget_places(stream);
    for (size_t i = 0; status >= 0 && i < stream->part_count; i++)
        status = open_part(stream, &stream->parts[i], err);
    return status;
}

static void close_tails(struct stream *stream)
{
    for (size_t i = 0; stream->parts != NULL && i < stream->part_count; i++) {
        waits_unwatch(stream->serve->waits, stream->parts[i].tail);
        annal_tail_close(stream->parts[i].tail);
        stream->parts[i].tail = NULL;
    }
}

/* ---- Output ---- */

static annal_status put_place_of_all(const struct place_of_all *all, struct buf *text)
{
    if (all->lost)
        return annal__buf_append(text, "@", 1);
    annal_status status =
        annal__buf_printf(text, "@%" PRId64 "-%" PRIu64, all->base_us, all->count);
    for (size_t i = 0; status >= 0 && i < all->seen_count; i++)
        status = annal__buf_printf(text, "%c%" PRIx64 "=%" PRIu64, i == 0 ? ':' : ',',
                                   all->seen[i].session, all->seen[i].seq);
    return status;
}

static annal_status put_id(struct stream *stream, struct buf *text)
{
    annal_status status = annal__buf_append(text, "id: ", 4);
    if (status >= 0 && stream->all != NULL)
        status = put_place_of_all(stream->all, text);
    for (size_t i = 0; status >= 0 && stream->all == NULL && i < stream->part_count; i++)
        status = annal__buf_printf(text, "%s%" PRIu64 "-%" PRIx64, i > 0 ? "," : "",
                                   stream->parts[i].seq, stream->parts[i].h);
    return status < 0 ? status : annal__buf_append(text, "\n", 1);
}

/* Record in the client's position that this event of the session is sent. Returns false if the
 * client has received the event before. */
static bool note_event(struct place_of_all *all, annal_slice session, const annal_event *event)
{
    uint64_t hash = annal__hash(session.ptr, session.len, 0) >> 16;
    size_t i = 0;
    while (i < all->seen_count && all->seen[i].session != hash)
        i++;
    if (i < all->seen_count && event->seq <= all->seen[i].seq)
        return false;
    if (event->ts_us < all->base_us)
        all->count++;
    else if (i == SEEN_MAX)
        all->lost = true;
    else if (i == all->seen_count)
        all->seen[all->seen_count++].session = hash;
    if (i < all->seen_count)
        all->seen[i].seq = event->seq;
    return true;
}

/* Send an event. One that is too large for a stream is announced without its data, so that the
 * client can request it. */
static annal_status put_event(struct stream *stream, struct stream_part *part,
                              const annal_event *event, struct buf *text)
{
    annal_slice session = annal_tail_session(part->tail);
    if (stream->all != NULL && !note_event(stream->all, session, event))
        return ANNAL_OK;
    annal_event sent = *event;
    bool is_large = event->data.len > EVENT_BYTES_MAX;
    if (is_large)
        sent.data = ANNAL_SLICE("null");
    part->seq = event->seq;
    part->h = event->h;
    annal_status status = put_id(stream, text);
    if (status >= 0)
        status = annal__buf_printf(text, "event: %s\ndata: ", is_large ? "large" : "append");
    if (status >= 0)
        status = answer_event_json(text, session, &sent);
    return status < 0 ? status : annal__buf_append(text, "\n\n", 2);
}

static annal_status put_damage(struct stream_part *part, struct buf *text)
{
    annal_damage damage = annal_tail_damage(part->tail);
    annal_status status = annal__buf_printf(text, "event: damage\ndata: ");
    if (status >= 0)
        status = answer_damage_json(text, annal_tail_session(part->tail), &damage);
    return status < 0 ? status : annal__buf_append(text, "\n\n", 2);
}

static annal_status put_resync(struct stream *stream, struct buf *text)
{
    stream->resync = false;
    return annal__buf_printf(text,
                             "event: resync\n"
                             "data: {\"why\":\"the journals do not continue what you have\"}\n"
                             "\n");
}

/* Tell the client to start again, and open new tails, because a journal was replaced or deleted. */
static annal_status begin_again(struct stream *stream, struct buf *text)
{
    close_tails(stream);
    forget_places(stream);
    annal_status status = put_resync(stream, text);
    for (size_t i = 0; status >= 0 && i < stream->part_count; i++)
        status = open_part(stream, &stream->parts[i], NULL);
    return status < 0 ? status : ANNAL_DAMAGE;
}

/* Append the next event of a tail. Returns ANNAL_END if no event is available. */
static annal_status put_next(struct stream *stream, struct stream_part *part, struct buf *text)
{
    annal_event event;
    annal_error err = {0};
    annal_status status = annal_tail_next(part->tail, 0, &event, &err);
    if (status == ANNAL_OK)
        return put_event(stream, part, &event, text);
    if (status == ANNAL_DAMAGE)
        return put_damage(part, text);
    if (status == ANNAL_ERR_CONFLICT)
        return begin_again(stream, text);
    return status;
}

/* Append up to about FLOW_BYTES of output, or a heartbeat (streams.h, rule 3). */
static annal_status fill(void *arg, struct buf *text)
{
    struct stream *stream = arg;
    annal_status status = ANNAL_OK;
    int64_t now_us = annal__clock_monotonic_us();
    if (!stream->begun)
        status = annal__buf_printf(text, RETRY);
    stream->begun = true;
    if (status >= 0 && stream->resync)
        status = put_resync(stream, text);
    for (size_t i = 0; status >= 0 && i < stream->part_count; i++) {
        while (status >= 0 && status != ANNAL_END && text->len < FLOW_BYTES)
            status = put_next(stream, &stream->parts[i], text);
        status = status == ANNAL_END ? ANNAL_OK : status;
    }
    if (status >= 0 && text->len == 0 && now_us >= stream->wait.until_us)
        status = annal__buf_printf(text, ": heartbeat\n\n");
    if (text->len > 0)
        stream->wait.until_us = now_us + BEAT_US;
    /* the client may be slow: then this stream uses no memory until it has received the bytes */
    for (size_t i = 0; status >= 0 && text->len >= FLOW_BYTES && i < stream->part_count; i++)
        annal__tail_rest(stream->parts[i].tail);
    return status < 0 ? ANNAL_END : text->len >= FLOW_BYTES ? ANNAL_OK : PRODUCE_WAIT;
}

/* ---- The thread of waits.h ---- */

static void wake(void *arg, bool over)
{
    produce_wake(((struct stream *)arg)->production, over);
}

static bool soon(void *arg, struct production *production)
{
    struct stream *stream = arg;
    stream->production = production;
    return waits_call(stream->serve->waits, &stream->wait);
}

static void wait_more(void *arg, struct production *production)
{
    struct stream *stream = arg;
    if (!waits_for(stream->serve->waits, &stream->wait))
        produce_wake(production, true);
}

static void free_now(void *arg, bool over)
{
    struct stream *stream = arg;
    (void)over;
    close_tails(stream);
    atomic_fetch_sub(&stream->serve->stream_count, 1);
    annal__free(stream->parts);
    annal__free(stream->all);
    annal__free(stream->types);
    annal__free(stream->names);
    annal__free(stream);
}

static void free_stream(void *arg)
{
    struct stream *stream = arg;
    stream->wait.fn = free_now;
    if (!waits_call(stream->serve->waits, &stream->wait))
        free_now(stream, true);
}

void streams_open(struct serve *serve, struct request *request)
{
    annal_error err = {0};
    struct stream *stream = annal__zalloc(sizeof *stream);
    if (stream == NULL) {
        answer_no_memory(request);
        return;
    }
    *stream = (struct stream){.serve = serve, .wait = {.fn = wake, .arg = stream}};
    if (atomic_fetch_add(&serve->stream_count, 1) >= STREAMS_MAX)
        answer_error(request, 503, "busy", "the server already has %u streams, its maximum",
                     STREAMS_MAX);
    else if (read_parameters(stream, request) && begin(stream, &err) < 0)
        answer_failure(request, &err);
    if (request->status != 0) {
        free_stream(stream);
        return;
    }
    produce(serve, request, "text/event-stream",
            &(struct producer){
                .arg = stream, .fill = fill, .soon = soon, .wait = wait_more, .free = free_stream});
    request->most_s = 0;
    (void)annal__buf_printf(&request->headers, "X-Accel-Buffering: no\n");
}
