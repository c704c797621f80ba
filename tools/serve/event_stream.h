/* SPDX-License-Identifier: Apache-2.0 */
/* One stream: its parameters, its tails and its output. Used by streams.c; streams.h has the
 * rules. */
#ifndef TOOLS_SERVE_EVENT_STREAM_H
#define TOOLS_SERVE_EVENT_STREAM_H

#include "tools/serve/streams.h"

#include <stdatomic.h>

#define STREAMS_MAX 8192u
/* The maximum data of an event; a larger event is only announced, and can be fetched. */
#define EVENT_BYTES_MAX ((size_t)1 << 20)

/* A tail of one named session, or of all sessions. */
struct stream_part {
    annal_slice session; /* empty for all sessions */
    annal_tail *tail;
    uint64_t seq; /* position: the last sent event, */
    uint64_t h;   /* hash of this event; 0 before the first event */
};

/* Position of a stream over all sessions. All `count` events older than base_us were sent. For
 * newer events, `seen` contains the last sent seq of each session, by the hash of its name. The
 * position is exact as long as seen is not full and no older event arrives while the client is
 * disconnected, which `count` detects. */
#define SEEN_MAX 100

struct seen {
    uint64_t session; /* hash of its name, 48 bits */
    uint64_t seq;     /* seq of its last sent event */
};

struct place_of_all {
    int64_t base_us;
    uint64_t count;
    struct seen seen[SEEN_MAX];
    size_t seen_count;
    bool lost; /* seen was full: a client that reconnects receives a resync */
};

struct stream {
    struct serve *serve;
    struct streams *streams;
    struct flow *flow;
    struct stream_part *parts;
    size_t part_count;
    struct place_of_all *all; /* NULL if sessions are named */
    bool resumes;
    char *names; /* texts that parts and types point to */
    annal_slice *types;
    size_t type_count;
    uint64_t from_seq;
    int64_t from_us;
    bool from_now;
    bool resync; /* the next output is a resync */
    bool begun;

    /* Used by the thread of the streams. */
    struct stream *previous, *next;
    int epoll; /* epoll that watches its tails, or 0 */
    bool is_added;
    int64_t sent_us;
    _Atomic bool has_more; /* more events may be available */

    /* Guarded by the lock of the streams. */
    struct stream *next_called;
    bool is_called, is_closed;
};

/* Read the parameters of a request. Returns false after answering an invalid request. */
bool event_stream_read(struct serve *serve, struct request *request, struct stream **out_stream);

/* Open the tails. */
annal_status event_stream_begin(struct stream *stream, annal_error *err);

void event_stream_watch(struct stream *stream, size_t part, int epoll);

/* Append output, about FLOW_BYTES at most. Returns false at the end of the stream. */
bool event_stream_fill(struct stream *stream, struct buf *text, int epoll);

/* Free the memory for reading while the stream is idle. */
void event_stream_trim(struct stream *stream);

/* Close the tails; then free the rest. Accepts NULL. */
void event_stream_end(struct stream *stream);
void event_stream_free(struct stream *stream);

#endif
