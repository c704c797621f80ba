/* SPDX-License-Identifier: Apache-2.0 */
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
    uint64_t seq; /* after this event, */
    uint64_t h;   /* which has this hash; 0: before the first */
};

/*
 * Of a stream of all sessions: where it is. Every event that is older than base_us was said, and
 * there are `count` of them; of those that are not older, the ones that seen says, by the hash of
 * the session. That is exact as long as seen has room, and as long as nothing older comes while the
 * client is away, which `count` shows.
 */
#define SEEN_MAX 100

struct seen {
    uint64_t session; /* the hash of its name, 48 bits */
    uint64_t seq;     /* of its last event that was said */
};

struct place_of_all {
    int64_t base_us;
    uint64_t count;
    struct seen seen[SEEN_MAX];
    size_t seen_count;
    bool lost; /* seen had no room: a client that comes back gets a resync */
};

struct stream {
    struct serve *serve;
    struct streams *streams;
    struct flow *flow;
    struct leg *legs;
    size_t leg_count;
    struct place_of_all *all; /* NULL: sessions are named */
    bool resumes;
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
    int epoll; /* that watches its tails; 0: none does */
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

/* It is not filled for a while: keep no memory for reading. */
void stream_rest(struct stream *stream);

/* Close its tails; then free the rest. NULL is accepted. */
void stream_end(struct stream *stream);
void stream_free(struct stream *stream);

#endif
