/* One stream: what was asked for, its tails, and what it says. Of streams.c; its rules are in
 * streams.h. */
#ifndef TOOLS_SERVE_STREAM_H
#define TOOLS_SERVE_STREAM_H

#include "tools/serve/streams.h"

#include <stdatomic.h>

#define STREAMS_MAX     8192u
#define EVENT_BYTES_MAX ((size_t)1 << 20) /* of data; a longer event is named, and can be fetched */

/* A tail of one session that was named, or of all. */
struct leg {
    annal_slice session; /* empty: all */
    annal_tail *tail;
    uint64_t seq;    /* after this event, */
    uint64_t h;      /* which has this hash; 0: before the first */
    int64_t time_us; /* of all: after the events that are older */
};

struct stream {
    struct serve *serve;
    struct streams *streams;
    struct flow *flow;
    struct leg *legs;
    size_t leg_count;
    char *names; /* the texts that legs and types borrow from */
    annal_slice *types;
    size_t type_count;
    uint64_t from_seq;
    int64_t from_us;
    bool from_now;
    bool resync; /* the next that it says */
    bool begun;

    /* Of the thread of the streams. */
    struct stream *previous, *next;
    bool is_added;
    int64_t said_us;
    _Atomic bool behind; /* there may be more than was read */

    /* Guarded by the lock of the streams. */
    struct stream *next_called;
    bool is_called, is_closed;
};

/* What a request asks for. False: it is wrong, and answered. */
bool stream_read(struct serve *serve, struct request *request, struct stream **out_stream);

/* Open its tails. */
annal_status stream_begin(struct stream *stream, annal_error *err);

void stream_watch(struct stream *stream, size_t leg, int epoll);

/* Append what it has to say, about FLOW_BYTES at most. False: it has ended. */
bool stream_fill(struct stream *stream, struct buf *text, int epoll);

/* Close its tails; then free the rest. NULL is accepted. */
void stream_end(struct stream *stream);
void stream_free(struct stream *stream);

#endif
