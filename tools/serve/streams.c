/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/serve/streams.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/thread.h"
#include "tools/serve/event_stream.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ROUND_MS  1000 /* interval of the checks whether streams need a heartbeat, in ms */
#define READY_MAX 256
/* size in bytes above which the thread's text buffer is freed after use */
#define TEXT_BYTES ((size_t)1 << 20)
/* size of output after which the stream's own buffers are freed */
#define LARGE_BYTES (2 * FLOW_BYTES)

struct streams {
    struct serve *serve;
    pthread_t thread;
    int epoll, wakeup;
    struct buf text;      /* output buffer of the thread */
    struct stream *first; /* list of all streams; used by the thread only */
    _Atomic unsigned count;

    pthread_mutex_t lock;
    /* streams that the thread must look at: new ones, and ones that need bytes */
    struct stream *called;
    bool stops;
};

/* ---- Between the threads ---- */

static void wake(struct streams *streams)
{
    const uint64_t one = 1;
    (void)!write(streams->wakeup, &one, sizeof one);
}

/* Add a stream to the list `called`, which the thread handles next. Returns false if the thread has
 * ended. */
static bool call(struct stream *stream)
{
    struct streams *streams = stream->streams;
    pthread_mutex_lock(&streams->lock);
    bool first = streams->called == NULL;
    bool goes_on = !streams->stops;
    if (goes_on && !stream->is_called && !stream->is_closed) {
        stream->is_called = true;
        stream->next_called = streams->called;
        streams->called = stream;
    }
    pthread_mutex_unlock(&streams->lock);
    if (first)
        wake(streams);
    return goes_on;
}

static void want(void *arg)
{
    struct stream *stream = arg;
    if (atomic_load(&stream->has_more) || http_flow_is_gone(stream->flow))
        (void)call(stream);
}

static void free_stream(void *arg)
{
    event_stream_free(arg);
}

void streams_open(struct serve *serve, struct request *request)
{
    struct stream *stream = NULL;
    annal_error err = {0};
    if (!event_stream_read(serve, request, &stream))
        return;
    if (atomic_load(&serve->streams->count) >= STREAMS_MAX) {
        answer_error(request, 503, "busy", "the server already has %u streams, its maximum",
                     STREAMS_MAX);
        event_stream_free(stream);
        return;
    }
    if (event_stream_begin(stream, &err) < 0) {
        answer_failure(request, &err);
        event_stream_free(stream);
        return;
    }
    stream->streams = serve->streams;
    stream->flow = http_flow_new(
        request, &(struct flow_source){.arg = stream, .want = want, .free = free_stream});
    if (stream->flow == NULL) {
        event_stream_free(stream);
        answer_no_memory(request);
        return;
    }
    request->status = 200;
    request->most_s = 0;
    request->type = "text/event-stream";
    (void)annal__buf_printf(&request->headers, "X-Accel-Buffering: no\n");
    atomic_store(&stream->has_more, true);
    if (call(stream))
        return;
    http_flow_end(stream->flow, false);
    http_flow_drop(stream->flow);
}

/* ---- In the thread ---- */

static void add(struct streams *streams, struct stream *stream)
{
    stream->is_added = true;
    stream->next = streams->first;
    if (streams->first != NULL)
        streams->first->previous = stream;
    streams->first = stream;
    atomic_fetch_add(&streams->count, 1);
    for (size_t i = 0; i < stream->part_count; i++)
        event_stream_watch(stream, i, streams->epoll);
}

/* Remove a stream, and end its flow. If the stream is in the list `called`, the thread drops its
 * reference to the flow when it handles that list. */
static void drop(struct streams *streams, struct stream *stream)
{
    if (stream->previous != NULL)
        stream->previous->next = stream->next;
    else
        streams->first = stream->next;
    if (stream->next != NULL)
        stream->next->previous = stream->previous;
    atomic_fetch_sub(&streams->count, 1);
    event_stream_end(stream);
    pthread_mutex_lock(&streams->lock);
    stream->is_closed = true;
    bool called = stream->is_called;
    pthread_mutex_unlock(&streams->lock);
    http_flow_end(stream->flow, false);
    if (!called)
        http_flow_drop(stream->flow);
}

/* Send the available events of one stream, unless its client has not received the earlier ones
 * (streams.h, rule 1). */
static void fill(struct streams *streams, struct stream *stream)
{
    bool goes_on = !http_flow_is_gone(stream->flow);
    annal__buf_clear(&streams->text);
    if (goes_on && !http_flow_is_full(stream->flow)) {
        atomic_store(&stream->has_more, false);
        goes_on = event_stream_fill(stream, &streams->text, streams->epoll);
        if (streams->text.len > 0) {
            stream->sent_us = annal__clock_monotonic_us();
            goes_on = http_flow_put(stream->flow, annal__buf_slice(&streams->text)) && goes_on;
        }
    } else {
        atomic_store(&stream->has_more, true);
    }
    if (streams->text.len > LARGE_BYTES)
        event_stream_trim(stream);
    if (streams->text.cap > TEXT_BYTES)
        annal__buf_done(&streams->text);
    if (!goes_on)
        drop(streams, stream);
}

static void answer_calls(struct streams *streams)
{
    uint64_t rings;
    (void)!read(streams->wakeup, &rings, sizeof rings);
    pthread_mutex_lock(&streams->lock);
    struct stream *stream = streams->called;
    streams->called = NULL;
    pthread_mutex_unlock(&streams->lock);
    while (stream != NULL) {
        struct stream *next = stream->next_called;
        pthread_mutex_lock(&streams->lock);
        stream->is_called = false;
        bool closed = stream->is_closed;
        pthread_mutex_unlock(&streams->lock);
        if (closed) {
            http_flow_drop(stream->flow);
        } else {
            if (!stream->is_added)
                add(streams, stream);
            fill(streams, stream);
        }
        stream = next;
    }
}

/* Send a heartbeat to each idle stream (streams.h, rule 3). Free the read buffers of a stream that
 * is full: its client is slow. */
static void put_heartbeat(struct streams *streams)
{
    int64_t now_us = annal__clock_monotonic_us();
    struct stream *next;
    for (struct stream *stream = streams->first; stream != NULL; stream = next) {
        next = stream->next;
        if (http_flow_is_full(stream->flow)) {
            event_stream_trim(stream);
            continue;
        }
        if (now_us - stream->sent_us < INT64_C(1000000) * HEARTBEAT_S)
            continue;
        stream->sent_us = now_us;
        if (!http_flow_put(stream->flow, ANNAL_SLICE(": heartbeat\n\n")))
            drop(streams, stream);
    }
}

static void *run(void *arg)
{
    struct streams *streams = arg;
    struct epoll_event ready[READY_MAX];
    int64_t beat_us = annal__clock_monotonic_us();
    bool stops = false;
    while (!stops) {
        int count = epoll_wait(streams->epoll, ready, READY_MAX, ROUND_MS);
        /* Only add the streams to the list `called`: answer_calls() below may remove streams, and
         * then `ready` is not used any more. */
        for (int i = 0; i < count; i++) {
            struct stream *stream = ready[i].data.ptr;
            if (stream != NULL)
                (void)call(stream);
        }
        answer_calls(streams);
        if (annal__clock_monotonic_us() - beat_us > ROUND_MS * INT64_C(1000)) {
            beat_us = annal__clock_monotonic_us();
            put_heartbeat(streams);
        }
        pthread_mutex_lock(&streams->lock);
        stops = streams->stops;
        pthread_mutex_unlock(&streams->lock);
    }
    answer_calls(streams);
    while (streams->first != NULL)
        drop(streams, streams->first);
    answer_calls(streams);
    return NULL;
}

/* ---- Start and end ---- */

annal_status streams_new(struct serve *serve, struct streams **out_streams, annal_error *err)
{
    struct streams *streams = annal__zalloc(sizeof *streams);
    if (streams == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "serve: out of memory");
    streams->serve = serve;
    streams->epoll = epoll_create1(EPOLL_CLOEXEC);
    streams->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&streams->lock, NULL);
    struct epoll_event event = {.events = EPOLLIN};
    if (streams->epoll < 0 || streams->wakeup < 0 ||
        epoll_ctl(streams->epoll, EPOLL_CTL_ADD, streams->wakeup, &event) != 0 ||
        (errno = annal__thread_start(&streams->thread, run, streams)) != 0) {
        annal__fail_errno(err, "serve: cannot start the thread of the streams");
        streams->thread = 0;
        streams_free(streams);
        return ANNAL_ERR_IO;
    }
    *out_streams = streams;
    return ANNAL_OK;
}

unsigned streams_count(struct streams *streams)
{
    return atomic_load(&streams->count);
}

void streams_stop(struct streams *streams)
{
    if (streams == NULL || streams->thread == 0)
        return;
    pthread_mutex_lock(&streams->lock);
    streams->stops = true;
    pthread_mutex_unlock(&streams->lock);
    wake(streams);
    pthread_join(streams->thread, NULL);
    streams->thread = 0;
}

void streams_free(struct streams *streams)
{
    if (streams == NULL)
        return;
    streams_stop(streams);
    if (streams->epoll >= 0)
        close(streams->epoll);
    if (streams->wakeup >= 0)
        close(streams->wakeup);
    pthread_mutex_destroy(&streams->lock);
    annal__buf_done(&streams->text);
    annal__free(streams);
}
