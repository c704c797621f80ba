/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follow sessions.
 *
 * (1) A tail reads the journals. Except at level os, an event is in a journal only when it is
 *     durable, so no event that a tail returned is lost later. A last line with a wrong hash is
 *     still being written, and is not returned: its writer completes it, or a new owner removes it
 *     and writes another line.
 * (2) A tail joins the hub (hub.h) before it looks at a journal. Events that are committed from
 *     then on are announced, so no event is missed. Each session is read in order of seq, from
 *     next_seq to the announced seq, so no event is returned twice.
 * (3) First a tail of several sessions returns the history: the events of all streams up to their
 *     ends in the hub's table, merged by ts. Then it reads the hub's log: for each entry it returns
 *     the events of the session up to the entry's seq, and the events of the entries of one round
 *     merged by ts.
 * (4) Before a tail waits or returns ANNAL_END, it clears the listener's flag, and looks again if
 *     the flag was set. So a caller that waits after that is woken by any new event.
 * (5) A tail of a single session needs no order, and reads to the end of the journal without the
 *     log. Each second it looks without an announcement, and checks whether the session still has
 *     the same journal.
 */
#include "replay/sys/tail.h"
#include "journal/base/clock.h"
#include "replay/tail_file.h"
#include "replay/tail_stream.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <limits.h>
#include <string.h>

/* interval in us at which a tail examines the journals even without an announcement, rule (5) */
#define LOOK_US  1000000
#define OPEN_MAX 16 /* maximum number of journals that a tail keeps open */
/*
 * time in us within which the caller must ask for the next event not to count as busy with an event
 */
#define QUICK_US    200
#define QUICK_CALLS 3

struct annal_tail {
    annal_store *store;
    struct listener listener;
    struct streams streams;
    bool is_single;
    struct stream **heap; /* streams that may have an event, the smallest key first */
    size_t heap_count;
    size_t heap_room;
    /* stream whose event was returned last, which the next call advances; or NULL */
    struct stream *given;
    struct stream *current; /* stream of the last returned event or damage, or NULL */
    struct stream *single;
    int64_t looked_us; /* monotonic time when the journal of a single session was last checked */
    uint32_t misses;   /* result of annal__hub_misses() at the time looked_us */
    int64_t returned_us;
    unsigned quick_calls;
    char cursor[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* name of the named cursor, or "" */
    int cursor_lock;
    /* whether the position of the tail differs from the position in the file of its named cursor */
    bool is_dirty;
};

/* ---- Merging ---- */

static bool comes_before(const struct stream *a, const struct stream *b)
{
    if (a->has_key != b->has_key)
        /* the time of its next event is unknown until the stream is read, so it comes first */
        return !a->has_key;
    if (!a->has_key || a->key_us != b->key_us)
        return a->has_key && a->key_us < b->key_us;
    return strcmp(a->named.name, b->named.name) < 0;
}

static void sift_down(annal_tail *tail)
{
    struct stream **heap = tail->heap;
    for (size_t at = 0, child; (child = 2 * at + 1) < tail->heap_count; at = child) {
        if (child + 1 < tail->heap_count && comes_before(heap[child + 1], heap[child]))
            child++;
        if (!comes_before(heap[child], heap[at]))
            return;
        struct stream *stream = heap[at];
        heap[at] = heap[child];
        heap[child] = stream;
    }
}

/* Add a stream without a key to the heap. It goes to the top, because it must be read first. */
static annal_status push(annal_tail *tail, struct stream *stream, annal_error *err)
{
    if (tail->heap_count == tail->heap_room) {
        size_t room = tail->heap_room == 0 ? 16 : tail->heap_room * 2;
        struct stream **heap = annal__realloc_array(tail->heap, room, sizeof(struct stream *));
        if (heap == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "tail %zu sessions: out of memory", room);
        tail->heap = heap;
        tail->heap_room = room;
    }
    stream->has_key = false;
    size_t at = tail->heap_count++;
    for (; at > 0 && comes_before(stream, tail->heap[(at - 1) / 2]); at = (at - 1) / 2)
        tail->heap[at] = tail->heap[(at - 1) / 2];
    tail->heap[at] = stream;
    return ANNAL_OK;
}

static void pop(annal_tail *tail)
{
    tail->heap[0] = tail->heap[--tail->heap_count];
    sift_down(tail);
}

/* Return the next event of the streams in the heap; ANNAL_END if they have none. */
static annal_status give(annal_tail *tail, annal_event *out_event, annal_error *err)
{
    while (tail->heap_count > 0) {
        struct stream *top = tail->heap[0];
        bool had_key = top->has_key;
        annal_status status = annal__tail_stream_peek(&tail->streams, top, err);
        tail->current = top;
        if (status == ANNAL_OK && !had_key) {
            top->has_key = true;
            top->key_us = top->head.ts_us;
            sift_down(tail);
            continue;
        }
        if (status == ANNAL_OK) {
            *out_event = top->head;
            tail->given = top;
            tail->is_dirty = true;
        }
        if (status == ANNAL_OK || status == ANNAL_DAMAGE)
            return status;
        pop(tail);
        if (status < 0)
            /* the failed session is skipped until new events of it are announced; the other
             * sessions continue */
            return status;
    }
    return ANNAL_END;
}

/* ---- Several sessions, rule (3) ---- */

static annal_status note_latest(void *arg, const struct hub_session *session, annal_error *err)
{
    annal_tail *tail = arg;
    struct stream *stream = annal__tail_stream_of(&tail->streams, session->session);
    if (stream == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "tail session '%.*s': out of memory",
                           ANNAL_FMT(session->session));
    stream->latest = *session;
    return ANNAL_OK;
}

static void first_seen(const annal_tail *tail, struct stream *stream)
{
    memcpy(stream->file, stream->latest.file, sizeof stream->file);
    stream->own_first_seq = stream->latest.first_seq;
    stream->first_seq = tail->streams.own_only ? stream->latest.first_seq : 1;
    if (stream->next_seq < stream->first_seq)
        stream->next_seq = stream->first_seq;
}

/* Forget the position in a session whose journal was deleted. */
static void forget(annal_tail *tail, struct stream *stream)
{
    if (tail->current == stream)
        tail->current = NULL;
    if (tail->streams.own_only) {
        annal__tail_stream_drop(&tail->streams, stream);
        return;
    }
    annal__tail_stream_close(&tail->streams, stream);
    stream->file[0] = '\0';
    stream->own_first_seq = stream->first_seq = stream->next_seq = 1;
    stream->has_h = stream->has_place = stream->must_prove = false;
}

/* Add the stream of a session to the heap if the hub announced events of the session that were not
 * returned yet. */
static annal_status follow(annal_tail *tail, struct stream *stream, annal_error *err)
{
    bool is_restarted;
    annal_status status = ANNAL_OK;
    if (stream->latest.file[0] == '\0') {
        forget(tail, stream);
        return ANNAL_OK;
    }
    if (stream->file[0] == '\0')
        first_seen(tail, stream);
    else if (strcmp(stream->file, stream->latest.file) != 0)
        status = annal__tail_stream_identify(&tail->streams, stream, &is_restarted, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK; /* the session was removed in the meantime, which will be announced */
    if (status < 0)
        return status;
    stream->upto = stream->latest.end_seq;
    return stream->upto >= stream->next_seq ? push(tail, stream, err) : ANNAL_OK;
}

static annal_status follow_all(annal_tail *tail, annal_error *err)
{
    annal_status status = ANNAL_OK;
    struct named *at = annal__name_table_next(&tail->streams.names, NULL), *next;
    for (; at != NULL && status == ANNAL_OK; at = next) {
        next = annal__name_table_next(&tail->streams.names, at);
        status = follow(tail, (struct stream *)at, err);
    }
    return status;
}

/* Follow the hub's table: the tail needs an entry that the hub's log does not keep any more. */
static annal_status catch_up(annal_tail *tail, annal_error *err)
{
    for (struct named *at = annal__name_table_next(&tail->streams.names, NULL); at != NULL;
         at = annal__name_table_next(&tail->streams.names, at))
        ((struct stream *)at)->latest.file[0] = '\0';
    annal_status status = annal__hub_table(&tail->listener, note_latest, tail, err);
    return status == ANNAL_OK ? follow_all(tail, err) : status;
}

/* Read entries of the hub's log until a stream has events. ANNAL_END: no entry. */
static annal_status take_news(annal_tail *tail, annal_error *err)
{
    struct hub_session session;
    uint64_t round = 0;
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK) {
        enum hub_taken taken = annal__hub_take(&tail->listener, round, &session);
        if (taken == HUB_BEHIND && round == 0)
            return catch_up(tail, err);
        if (taken != HUB_ENTRY)
            break;
        status = note_latest(tail, &session, err);
        if (status == ANNAL_OK)
            status = follow(
                tail,
                (struct stream *)annal__name_table_find(&tail->streams.names, session.session),
                err);
        round = session.round;
        if (round == 0 && tail->heap_count > 0)
            return status;
    }
    return status == ANNAL_OK && tail->heap_count == 0 ? ANNAL_END : status;
}

static annal_status look_at_many(annal_tail *tail, annal_event *out_event, annal_error *err)
{
    for (;;) {
        annal_status status = give(tail, out_event, err);
        if (status != ANNAL_END)
            return status;
        status = take_news(tail, err);
        if (status == ANNAL_END) {
            annal__hub_read_news(&tail->listener);
            status = take_news(tail, err);
        }
        if (status != ANNAL_OK)
            return status;
    }
}

/* ---- One session, rule (5) ---- */

static annal_status check_journal(annal_tail *tail, annal_error *err)
{
    annal_session_info info;
    const struct stream *stream = tail->single;
    tail->looked_us = annal__clock_monotonic_us();
    tail->misses = annal__hub_misses(&tail->listener);
    annal_status status = annal_session_info_get(
        tail->store, (annal_slice){stream->named.name, stream->named.len}, &info, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return annal__fail(err, ANNAL_ERR_CONFLICT,
                           "tail of session '%s': the journal of the session was removed",
                           stream->named.name);
    if (status == ANNAL_OK && strcmp(info.file, stream->file) != 0)
        return annal__fail(err, ANNAL_ERR_CONFLICT,
                           "tail of session '%s': the journal of the session was replaced",
                           stream->named.name);
    return status;
}

static annal_status read_single(annal_tail *tail, annal_event *out_event, annal_error *err)
{
    if (tail->heap_count == 0) {
        annal_status status = push(tail, tail->single, err);
        if (status < 0)
            return status;
    }
    return give(tail, out_event, err);
}

static annal_status look_at_single(annal_tail *tail, annal_event *out_event, annal_error *err)
{
    struct stream *stream = tail->single;
    annal_status status;
    bool is_restarted;
    if (stream->file[0] == '\0') {
        uint64_t next_seq = stream->next_seq;
        status = annal__tail_stream_identify(&tail->streams, stream, &is_restarted, err);
        if (status < 0)
            return status == ANNAL_ERR_NOTFOUND ? ANNAL_END : status;
        stream->next_seq = next_seq;
        tail->looked_us = annal__clock_monotonic_us();
    }
    status = read_single(tail, out_event, err);
    if (status != ANNAL_END || (annal__clock_monotonic_us() - tail->looked_us < LOOK_US &&
                                tail->misses == annal__hub_misses(&tail->listener)))
        return status;
    annal_error gone = {0};
    annal_status still = check_journal(tail, &gone);
    if (still == ANNAL_OK) /* a copy may have replaced the file: open the journal by name again */
        annal__tail_stream_close(&tail->streams, stream);
    status = read_single(tail, out_event, err); /* events of the old file are returned first */
    if (status == ANNAL_END && still < 0 && err != NULL)
        *err = gone;
    return status == ANNAL_END && still < 0 ? still : status;
}

/* ---- Next ---- */

/* Drop the event that was returned, which is no longer valid. */
static void pass(annal_tail *tail)
{
    if (tail->given == NULL)
        return;
    annal__tail_stream_advance(tail->given);
    /* the stream stays at the top of the heap, and reads its next event first */
    tail->given->has_key = false;
    tail->given = NULL;
}

static annal_status look(annal_tail *tail, annal_event *out_event, annal_error *err)
{
    pass(tail);
    return tail->is_single ? look_at_single(tail, out_event, err)
                           : look_at_many(tail, out_event, err);
}

/* Free the memory for reading, and close all journals except one: many tails are open (a crowd),
 * and this tail has no event to read now. */
static void rest(annal_tail *tail)
{
    for (struct stream *at = tail->streams.open_first; at != NULL; at = at->open_behind)
        annal__tail_stream_rest(at);
    while (tail->streams.open_count > 1)
        annal__tail_stream_close(&tail->streams, tail->streams.open_last);
}

static bool takes_turn(annal_tail *tail, uint32_t timeout_ms, int64_t until_us)
{
    if (timeout_ms == 0 || !annal__hub_is_crowd(&tail->listener))
        return false;
    bool quick = annal__clock_monotonic_us() - tail->returned_us < QUICK_US;
    tail->quick_calls = quick ? tail->quick_calls + 1 : 0;
    annal__hub_turn_take(&tail->listener, until_us);
    return true;
}

annal_status annal_tail_next(annal_tail *tail, uint32_t timeout_ms, annal_event *out_event,
                             annal_error *err)
{
    int64_t until_us = timeout_ms == ANNAL_NO_TIMEOUT
                           ? INT64_MAX
                           : annal__clock_monotonic_us() + (int64_t)timeout_ms * 1000;
    if (!annal__hub_is_here(&tail->listener))
        return annal__fail(
            err, ANNAL_ERR_CLOSED,
            "this tail belongs to the parent of this process: open a new tail after fork()");
    for (;;) {
        bool turn = takes_turn(tail, timeout_ms, until_us);
        annal_status status = look(tail, out_event, err);
        if (status != ANNAL_END) {
            if (turn) {
                tail->returned_us = annal__clock_monotonic_us();
                annal__hub_turn_busy(&tail->listener, tail->quick_calls < QUICK_CALLS);
            }
            return status;
        }
        if (annal__hub_is_crowd(&tail->listener))
            rest(tail);
        if (turn)
            annal__hub_turn_give(&tail->listener);
        if (annal__hub_unflag(&tail->listener))
            continue; /* rule (4): look again */
        int64_t now = annal__clock_monotonic_us();
        if (now >= until_us)
            return ANNAL_END;
        annal__hub_wait(&tail->listener,
                        tail->is_single && until_us - now > LOOK_US ? now + LOOK_US : until_us);
    }
}

void annal__tail_rest(annal_tail *tail)
{
    struct stream *behind;
    pass(tail);
    for (struct stream *at = tail->streams.open_first; at != NULL; at = behind) {
        behind = at->open_behind;
        if (at->has_head)
            annal__tail_stream_close(&tail->streams, at);
        else
            annal__tail_stream_rest(at);
    }
}

annal_slice annal_tail_session(const annal_tail *tail)
{
    return tail->current == NULL
               ? (annal_slice){0}
               : (annal_slice){tail->current->named.name, tail->current->named.len};
}

annal_damage annal_tail_damage(const annal_tail *tail)
{
    return tail->streams.damage;
}

annal_status annal_tail_fd(annal_tail *tail, int *out_fd, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (!annal__hub_is_here(&tail->listener))
        return annal__fail(
            err, ANNAL_ERR_CLOSED,
            "this tail belongs to the parent of this process: open a new tail after fork()");
    if (tail->listener.fd < 0)
        status = annal__hub_fd(&tail->listener, err);
    if (status == ANNAL_OK)
        *out_fd = tail->listener.fd;
    return status;
}

/* ---- Named cursors ---- */

static annal_status load_entry(void *arg, const struct cursor_entry *entry, int64_t committed_us,
                               annal_error *err)
{
    annal_tail *tail = arg;
    struct stream *stream =
        (struct stream *)annal__name_table_find(&tail->streams.names, entry->session);
    (void)committed_us;
    (void)err;
    if (stream == NULL || stream->latest.file[0] == '\0')
        /* ignore an entry of the named cursor whose session was deleted, or is not followed by this
         * tail */
        return ANNAL_OK;
    first_seen(tail, stream);
    memcpy(stream->file, entry->file, sizeof stream->file);
    stream->next_seq = entry->seq + 1 > stream->first_seq ? entry->seq + 1 : stream->first_seq;
    stream->h = entry->h;
    stream->has_h = entry->has_h && stream->next_seq == entry->seq + 1;
    stream->must_prove = true;
    stream->is_known = true;
    const struct hub_session *now = &stream->latest;
    if (strcmp(entry->file, now->file) == 0 &&
        (entry->seq > now->end_seq ||
         (entry->seq == now->end_seq && entry->has_h && now->has_end_h && entry->h != now->end_h)))
        annal__tail_stream_restart(&tail->streams, stream);
    return ANNAL_OK;
}

annal_status annal_tail_commit(annal_tail *tail, annal_error *err)
{
    SCOPED_BUF text = {0};
    const struct clock *clock = annal__store_clock(tail->store);
    annal_slice name = annal_slice_of(tail->cursor);
    if (name.len == 0)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "commit a tail: the tail was opened without the name of a cursor");
    if (annal__session_list_is_read_only(tail->store))
        return annal__fail(err, ANNAL_ERR_IO,
                           "commit cursor '%s': store %s is open for reading only", tail->cursor,
                           annal_store_path(tail->store));
    if (!tail->is_dirty)
        return ANNAL_OK;
    annal_status status = annal__tail_file_begin(&text, name, clock->wall_us(clock->arg));
    for (struct named *at = annal__name_table_next(&tail->streams.names, NULL);
         at != NULL && status == ANNAL_OK; at = annal__name_table_next(&tail->streams.names, at)) {
        const struct stream *stream = (struct stream *)at;
        bool given = stream == tail->given;
        struct cursor_entry entry = {.session = {at->name, at->len},
                                     .seq = given ? stream->head.seq : stream->next_seq - 1,
                                     .h = given ? stream->head.h : stream->h,
                                     .has_h = given || stream->has_h};
        memcpy(entry.file, stream->file, sizeof entry.file);
        if (entry.file[0] != '\0')
            status = annal__tail_file_add(&text, &entry);
    }
    if (status < 0)
        status = annal__fail(err, status, "cannot commit cursor '%s'", tail->cursor);
    else
        status = annal__tail_file_publish(tail->store, name, &text, err);
    tail->is_dirty = status < 0;
    return status;
}

/* ---- Opening ---- */

static annal_status take_types(annal_tail *tail, const annal_tail_options *options,
                               annal_error *err)
{
    struct streams *streams = &tail->streams;
    if (options->type_count == 0)
        return ANNAL_OK;
    streams->types = annal__zalloc(options->type_count * sizeof *streams->types);
    if (streams->types == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open a tail: out of memory");
    for (size_t i = 0; i < options->type_count; i++) {
        annal_slice type = options->types[i];
        if (type.len == 0 || type.len >= sizeof streams->types[i] ||
            memchr(type.ptr, '\0', type.len) != NULL)
            return annal__fail(err, ANNAL_ERR_INVALID,
                               "open a tail: '%.*s' is not a valid event type", ANNAL_FMT(type));
        memcpy(streams->types[i], type.ptr, type.len);
    }
    streams->type_count = options->type_count;
    return ANNAL_OK;
}

static annal_status check_options(const annal_tail_options *options, annal_error *err)
{
    int beginnings =
        (options->from_seq > 0) + (options->from_us != 0) + (options->last > 0) + options->from_now;
    if (beginnings > 1)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "open a tail: more than one starting point was given");
    if (options->from_seq > 0 && options->session_count != 1)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "open a tail: to begin at a seq, name exactly one session");
    if (options->last > ANNAL_TAIL_LAST_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT,
                           "open a tail: a tail can begin with at most the last %llu events",
                           (unsigned long long)ANNAL_TAIL_LAST_MAX);
    for (size_t i = 0; i < options->session_count; i++) {
        annal_status status = annal_session_id_check(options->sessions[i], err);
        if (status < 0)
            return status;
    }
    return ANNAL_OK;
}

static void begin_at_end(struct stream *stream)
{
    stream->next_seq = stream->latest.end_seq + 1 > stream->first_seq ? stream->latest.end_seq + 1
                                                                      : stream->first_seq;
    stream->has_h = stream->latest.has_end_h && stream->next_seq == stream->latest.end_seq + 1;
    stream->h = stream->latest.end_h;
}

static annal_status begin_with_last(annal_tail *tail, uint64_t want, annal_error *err)
{
    struct lasts lasts = {.want = (size_t)want};
    annal_status status = ANNAL_OK;
    lasts.heap = annal__realloc_array(NULL, lasts.want, sizeof *lasts.heap);
    if (lasts.heap == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "tail the last %zu events: out of memory",
                           lasts.want);
    for (struct named *at = annal__name_table_next(&tail->streams.names, NULL);
         at != NULL && status == ANNAL_OK; at = annal__name_table_next(&tail->streams.names, at)) {
        struct stream *stream = (struct stream *)at;
        status = annal__tail_stream_seek_last(&tail->streams, stream, stream->latest.end_seq,
                                              &lasts, err);
        begin_at_end(stream);
    }
    for (size_t i = 0; i < lasts.count && status == ANNAL_OK; i++) {
        struct stream *stream = lasts.heap[i].stream;
        if (lasts.heap[i].seq < stream->next_seq) {
            stream->next_seq = lasts.heap[i].seq;
            stream->has_h = false;
        }
    }
    annal__free(lasts.heap);
    return status;
}

static annal_status begin_each(annal_tail *tail, const annal_tail_options *options,
                               annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (struct named *at = annal__name_table_next(&tail->streams.names, NULL);
         at != NULL && status == ANNAL_OK; at = annal__name_table_next(&tail->streams.names, at)) {
        struct stream *stream = (struct stream *)at;
        if (options->from_now)
            begin_at_end(stream);
        else if (options->from_us != 0)
            status = annal__tail_stream_seek_time(&tail->streams, stream, stream->latest.end_seq,
                                                  options->from_us, err);
        else if (options->from_seq > 0)
            stream->next_seq = options->from_seq;
    }
    return status;
}

/* Choose the event at which each stream begins. */
static annal_status begin(annal_tail *tail, const annal_tail_options *options, annal_error *err)
{
    annal_status status = ANNAL_ERR_NOTFOUND;
    for (struct named *at = annal__name_table_next(&tail->streams.names, NULL); at != NULL;
         at = annal__name_table_next(&tail->streams.names, at)) {
        struct stream *stream = (struct stream *)at;
        if (stream->latest.file[0] != '\0')
            first_seen(tail, stream);
    }
    tail->is_dirty = true;
    if (tail->cursor[0] != '\0')
        status = annal__tail_file_read(tail->store, annal_slice_of(tail->cursor), load_entry, tail,
                                       NULL, err);
    if (status != ANNAL_ERR_NOTFOUND) {
        tail->is_dirty = false;
        return status;
    }
    return options->last > 0 ? begin_with_last(tail, options->last, err)
                             : begin_each(tail, options, err);
}

static annal_status open_tail(annal_tail *tail, const annal_tail_options *options, annal_error *err)
{
    annal_status status = take_types(tail, options, err);
    if (status == ANNAL_OK && options->cursor.len > 0) {
        status = annal__tail_file_lock(tail->store, options->cursor, &tail->cursor_lock, err);
        if (status == ANNAL_OK)
            memcpy(tail->cursor, options->cursor.ptr, options->cursor.len);
    }
    if (status == ANNAL_OK)
        status = annal__hub_join(tail->store, &tail->listener, options->sessions,
                                 options->session_count, err);
    if (status == ANNAL_OK)
        status = annal__hub_table(&tail->listener, note_latest, tail, err);
    if (status == ANNAL_OK)
        status = begin(tail, options, err);
    if (status < 0)
        return status;
    if (!tail->is_single)
        return follow_all(tail, err);
    tail->single = (struct stream *)annal__name_table_next(&tail->streams.names, NULL);
    tail->single->upto = UINT64_MAX;
    tail->looked_us = annal__clock_monotonic_us();
    tail->misses = annal__hub_misses(&tail->listener);
    bool is_restarted;
    if (tail->single->is_known && strcmp(tail->single->file, tail->single->latest.file) != 0)
        status = annal__tail_stream_identify(&tail->streams, tail->single, &is_restarted, err);
    return status;
}

annal_status annal_tail_open(annal_store *store, const annal_tail_options *options,
                             annal_tail **out_tail, annal_error *err)
{
    static const annal_tail_options defaults = {0};
    if (options == NULL)
        options = &defaults;
    annal_status status = check_options(options, err);
    if (status < 0)
        return status;
    annal_tail *tail = annal__zalloc(sizeof *tail);
    if (tail == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "tail store %s: out of memory",
                           annal_store_path(store));
    tail->store = store;
    tail->cursor_lock = -1;
    tail->is_single = options->session_count == 1;
    tail->streams = (struct streams){
        .store = store, .own_only = options->session_count == 0, .open_max = OPEN_MAX};
    status = open_tail(tail, options, err);
    if (status < 0) {
        annal_tail_close(tail);
        return status;
    }
    *out_tail = tail;
    return ANNAL_OK;
}

void annal_tail_close(annal_tail *tail)
{
    if (tail == NULL)
        return;
    const struct io *io = annal__store_io(tail->store);
    annal__hub_leave(&tail->listener);
    annal__tail_streams_done(&tail->streams);
    if (tail->cursor_lock >= 0)
        io->close(io->arg, tail->cursor_lock);
    annal__free(tail->heap);
    annal__free(tail);
}
