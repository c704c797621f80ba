/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable Streams: the protocol of durable-streams/durable-streams under /v1/stream/.
 * docs/streams.md describes what a client sees.
 *
 * (1) A stream is a session whose own first event is stream.created. No other session is a stream:
 *     it cannot be read, appended to or deleted here.
 * (2) An offset is a seq: the seq of the last message before the position, or 0. Events that are
 *     not messages have seqs, too, but no offset points at them, so they do not move the tail.
 * (3) Everything that a stream is, is in its events: content type and times in stream.created; the
 *     sequence of a producer, Stream-Seq and the closing in stream.appended, which is appended in
 *     one piece with the messages that it is about. The memory contains a copy of it.
 * (4) An append names the seq of the last event that the copy knows (ANNAL_EXPECT_SEQ). If another
 *     process has appended since, the append is refused, the copy is read again, and the request
 *     is checked again. So two servers of a store agree.
 * (5) An append is answered when it is durable. The lock of a stream is not held during the sync,
 *     and the appends of a stream share it.
 * (6) A request that waits holds no thread (waits.h).
 */
#pragma once

#include "tools/serve/serve.h"

#include <pthread.h>

#define DURABLE_PATH       "/v1/stream/"
#define DURABLE_BODY_BYTES ((size_t)16 << 20)
/* maximum length of a content type, a producer's id, and a Stream-Seq */
#define DURABLE_TEXT_BYTES    200
#define DURABLE_PRODUCERS_MAX 4096u /* of a stream */
#define DURABLE_OFFSET_MAX    UINT64_C(9999999999999998)

#define DURABLE_JSON    ANNAL_SLICE("stream.message")
#define DURABLE_BYTES   ANNAL_SLICE("stream.data")
#define DURABLE_CREATED ANNAL_SLICE("stream.created")
#define DURABLE_CONTROL ANNAL_SLICE("stream.appended")

struct durable_producer {
    char id[DURABLE_TEXT_BYTES + 1];
    uint64_t epoch, seq;
};

/* What the events of a session say about its stream. */
struct durable_state {
    char file[33]; /* file id of the journal; "": no such session */
    uint64_t seq;  /* last event that was read; for a fork without own events, its fork point */
    uint64_t first_seq; /* seq of the first event in the session's own journal */
    char fork_session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    bool is_stream, is_closed, is_deleted;
    char type[DURABLE_TEXT_BYTES + 1]; /* content type */
    uint64_t tail, begin_tail;         /* offset of the end; at the time of stream.created */
    int64_t ttl_s;                     /* -1: none */
    int64_t expires_us;                /* 0: none */
    char expires[40];                  /* expires_us as the client wrote it */
    int64_t used_us;                   /* time of the last event, or of the last read */
    int64_t touched_us;                /* time of the last event */
    char from[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* source of a fork, or "" */
    uint64_t from_offset, from_sub;
    char stream_seq[DURABLE_TEXT_BYTES + 1];
    struct durable_producer closed_by; /* id "": closed without a producer */
    struct durable_producer *producers;
    size_t producer_count;
};

/* ---- State (durable_state.c) ---- */

struct durable;

struct durable *durable_state_new(void);
void durable_state_free(struct durable *durable); /* accepts NULL */

/* Return the state of a session, up to date and locked, until durable_state_give(). Returns NULL
 * after a failure. */
struct durable_state *durable_state_take(struct serve *serve, annal_slice session,
                                         annal_error *err);
void durable_state_give(struct serve *serve, struct durable_state *state);

/* Begin with the journal of a session. Call it with the lock. */
void durable_state_begin(struct durable_state *state, const annal_session_info *info);

/* Forget what is known, so that the next use reads the journal. Call it with the lock. */
void durable_state_forget(struct durable_state *state);

/* Apply an event to the state: an event of the journal, or a draft that was appended as seq. */
annal_status durable_state_apply(struct durable_state *state, annal_slice type, annal_slice data,
                                 uint64_t seq, int64_t ts_us, annal_error *err);

/* As annal_cursor_next(), but the loss of an event is ANNAL_ERR_CORRUPT. Bytes that are damaged and
 * are no event are still ANNAL_DAMAGE. */
annal_status durable_state_next(annal_cursor *cursor, annal_slice session, annal_event *out,
                                annal_error *err);

/* Return the producer with this id, or NULL. */
struct durable_producer *durable_state_producer(struct durable_state *state, const char *id);

/* Answer 404 or 410 and return false if the state is of a stream that cannot be used, or of no
 * stream. */
bool durable_state_exists(struct request *request, const struct durable_state *state);
bool durable_state_is_expired(const struct durable_state *state);

bool durable_state_is_json(const char *type);
bool durable_state_same_type(const char *a, const char *b);

/* Compute the session id of a stream from the part of an address after DURABLE_PATH, decoded.
 * Answers with an error and returns false if it is not the name of a stream. */
bool durable_state_name(struct request *request, annal_slice name,
                        char out[ANNAL_SESSION_ID_BYTES_MAX + 1]);

/* Admit a request: compute its session id from the name of the stream. */
void durable_state_admit(struct request *request);

/* ---- Routes ---- */

void durable_read_get(struct serve *serve, struct request *request); /* also HEAD */
void durable_read_options(struct serve *serve, struct request *request);
void durable_write_put(struct serve *serve, struct request *request);
void durable_write_post(struct serve *serve, struct request *request);
void durable_write_delete(struct serve *serve, struct request *request);

/* Append a header with an offset. */
void durable_read_offset(struct request *request, uint64_t offset);

/* Read an offset: "-1" is 0. Returns false if the text is not an offset. */
bool durable_read_parse(const char *text, uint64_t *out);

/* Read messages of a session after an offset into out: JSON values with commas between them, or
 * bytes; at least one message, and no more than `most` bytes before the last. *out_next is the
 * offset after them, *out_seen the seq of the last event that was read. ANNAL_END: the end of the
 * stream is reached. */
annal_status durable_read_messages(struct serve *serve, annal_slice session, uint64_t from,
                                   size_t most, struct buf *out, uint64_t *out_next,
                                   uint64_t *out_seen, annal_error *err);
