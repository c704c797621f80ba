/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream: one session that a tail reads.
 *
 * (1) A stream is read up to `upto`, the seq that the hub announced, because later events may come
 *     after events of other sessions. A tail of a single session reads to the end.
 * (2) next_seq changes only when an event is returned, or skipped because its type is not wanted.
 *     So if the stream is closed or fails in between, event next_seq is still returned next.
 * (3) Only some streams of a tail have their journal open. A closed stream keeps its position; an
 *     event that was read ahead is read again.
 * (4) The events from next_seq on must be in the same journal as the events before next_seq: the
 *     journal must have the same file id, and contain the last returned event with the same hash. A
 *     converted journal has the same events, and names the file id of the journal that it replaces.
 *     With any other journal the session starts over, and is read from its first event.
 */
#pragma once

#include "replay/hub.h"

#include <annal/journal.h>

#define TYPE_PATTERN_BYTES 128

struct stream {
    struct named named; /* entry of the table streams.names */
    char file[33];      /* file id of the journal; "": no journal was seen yet */
    /* first seq in the session's own journal, which is greater than 1 for a fork */
    uint64_t own_first_seq;
    uint64_t first_seq; /* first seq that the tail returns of the session */
    uint64_t next_seq;
    uint64_t upto;
    uint64_t h; /* hash of the event before next_seq, if has_h */
    bool has_h;
    /* whether next_seq and h were read from a named cursor, and were not compared with the journal
     * yet, rule (4) */
    bool must_prove;

    annal_cursor *cursor; /* NULL: the stream is closed */
    /* neighbours in the list of open streams, which is in order of last use */
    struct stream *open_before, *open_behind;
    /* position at which to open the journal again after the stream was closed, if has_place */
    annal_position place;
    bool has_place;

    struct hub_session latest; /* the hub's last announcement of the session */
    bool is_known;             /* whether the named cursor has an entry for the session */

    annal_event head; /* event that was read ahead, if has_head; valid as long as the cursor */
    bool has_head;
    int64_t key_us; /* time of `head`, by which streams are merged, if has_key */
    bool has_key;
};

/* The state that the streams of a tail share. */
struct streams {
    annal_store *store;
    /* whether only a fork's own events are returned, because all sessions are followed */
    bool own_only;
    char (*types)[TYPE_PATTERN_BYTES];
    size_t type_count;
    struct names names;
    struct stream *open_first, *open_last;
    size_t open_count;
    size_t open_max;
    annal_damage damage; /* damaged bytes that were skipped, after ANNAL_DAMAGE */
};

/* Return the stream of a session, which is added if necessary. NULL: out of memory. */
struct stream *annal__tail_stream_of(struct streams *streams, annal_slice session);

/* Close a stream and free it. */
void annal__tail_stream_drop(struct streams *streams, struct stream *stream);
void annal__tail_streams_done(struct streams *streams);

/* Read ahead to the next event of a wanted type. ANNAL_END: no such event up to `upto`.
 * ANNAL_DAMAGE: streams->damage describes the bytes that were skipped. */
annal_status annal__tail_stream_peek(struct streams *streams, struct stream *stream,
                                     annal_error *err);

/* Move the stream after `head`, the event that was read ahead, when it was returned or skipped. */
void annal__tail_stream_advance(struct stream *stream);

/* annal__tail_stream_close() closes the journal of a stream, and drops `head`, the event that was
 * read ahead and is read again later. annal__tail_stream_rest() keeps the journal open, and frees
 * only the memory for reading. */
void annal__tail_stream_close(struct streams *streams, struct stream *stream);
void annal__tail_stream_rest(struct stream *stream);

/* Compare the current journal with the journal that was read, rule (4). *out_restarted says whether
 * the session starts over: then the stream is at its first event. */
annal_status annal__tail_stream_identify(struct streams *streams, struct stream *stream,
                                         bool *out_restarted, annal_error *err);

/* Return to the first event, because the journal has the same file id but lacks the events of the
 * named cursor. */
void annal__tail_stream_restart(const struct streams *streams, struct stream *stream);

/* ---- Where to begin ---- */

/* Set next_seq after the last event up to last_seq that is older than from_us (microseconds
 * UTC). */
annal_status annal__tail_stream_seek_time(struct streams *streams, struct stream *stream,
                                          uint64_t last_seq, int64_t from_us, annal_error *err);

/* The last events of all streams: a heap with the oldest event first. */
struct lasts {
    struct last {
        int64_t ts_us;
        uint64_t seq;
        struct stream *stream;
    } * heap;
    size_t count;
    size_t want;
};

/* Add those events of the stream, up to last_seq, that are among the last `want` events of all
 * streams. */
annal_status annal__tail_stream_seek_last(struct streams *streams, struct stream *stream,
                                          uint64_t last_seq, struct lasts *lasts, annal_error *err);
