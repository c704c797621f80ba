/* SPDX-License-Identifier: Apache-2.0 */
/* One live stream of events: its parameters, its tails and its output. streams.c uses it; streams.h
 * has the rules. */
#ifndef TOOLS_SERVE_EVENT_STREAM_H
#define TOOLS_SERVE_EVENT_STREAM_H

#include "tools/serve/streams.h"

#include <stdatomic.h>

#define STREAMS_MAX 8192u
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
    struct streams *streams;
    struct flow *flow;
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

    /* Only the thread that fills all streams uses these: its list of streams, and the stream's
     * state. */
    struct stream *previous, *next;
    int epoll; /* epoll that watches the tails; 0: they are not watched */
    bool is_added;
    int64_t sent_us;
    _Atomic bool has_more; /* whether the tails may have more events */

    /* Guarded by the lock of struct streams. */
    struct stream *next_called;
    bool is_called, is_closed;
};

/* Read the parameters of a request into a new stream. If they are invalid, answers the request and
 * returns false. */
bool event_stream_read(struct serve *serve, struct request *request, struct stream **out_stream);

/* Open the tails at the positions that the client asks for. */
annal_status event_stream_begin(struct stream *stream, annal_error *err);

void event_stream_watch(struct stream *stream, size_t part, int epoll);

/* Append up to about FLOW_BYTES of output. Returns false at the end of the stream. */
bool event_stream_fill(struct stream *stream, struct buf *text, int epoll);

/* Free the read buffers of the stream's tails. Call it when the stream is idle. */
void event_stream_trim(struct stream *stream);

/* event_stream_end() closes the tails; event_stream_free() also frees the stream, and accepts
 * NULL. */
void event_stream_end(struct stream *stream);
void event_stream_free(struct stream *stream);

#endif
