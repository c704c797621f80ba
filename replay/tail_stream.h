/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream: one session as a tail reads it.
 *
 * (1) It is read up to `upto`, which the hub announced; what comes after that is read in its turn.
 *     A tail of one session reads to the end.
 * (2) next_seq moves when an event is returned, or skipped because it has another type: whatever
 *     else happens to the stream, the next event returned is the one after that.
 * (3) Only some streams of a tail have their journal open. One that is closed keeps its place; what
 *     it had read ahead is read again.
 * (4) The events from next_seq on must be of the same journal as those before it: with its file id,
 *     and the hash of the last event returned. A journal that was converted keeps its events, and
 *     says which one it was made from. Any other is a session that starts over: it is read from its
 *     first event.
 */
#ifndef REPLAY_TAIL_STREAM_H
#define REPLAY_TAIL_STREAM_H

#include "replay/hub.h"

#include <annal/journal.h>

#define TYPE_PATTERN_BYTES 128

struct stream {
    struct named named;     /* in the table of its tail */
    char file[33];          /* "": no journal was seen yet */
    uint64_t own_first_seq; /* of the events in its own journal: that of a fork begins later */
    uint64_t first_seq;     /* of the events that it returns */
    uint64_t next_seq;
    uint64_t upto;
    uint64_t h; /* of the event before next_seq, if has_h */
    bool has_h;
    bool must_prove; /* next_seq and h are from another time (a named cursor): see rule (4) */

    annal_cursor *cursor; /* NULL: closed */
    /* of those that are open, in the order of their last use */
    struct stream *open_before, *open_behind;
    annal_position place; /* where to open it again, if has_place */
    bool has_place;

    struct hub_session told; /* the last that the hub said about it */
    bool is_known;           /* to the named cursor */

    annal_event head; /* read ahead, if has_head; valid as long as the cursor */
    bool has_head;
    int64_t key_us; /* of head, if has_key: what the streams are merged by */
    bool has_key;
};

/* What the streams of a tail share. */
struct streams {
    annal_store *store;
    bool own_only; /* of a fork, only its own events: all sessions are read */
    char (*types)[TYPE_PATTERN_BYTES];
    size_t type_count;
    struct names names;
    struct stream *open_first, *open_last;
    size_t open_count;
    size_t open_max;
    annal_damage damage; /* after ANNAL_DAMAGE */
};

/* NULL: no memory. */
struct stream *annal__tail_stream_of(struct streams *streams, annal_slice session);

/* Remove it. */
void annal__tail_stream_drop(struct streams *streams, struct stream *stream);
void annal__tail_streams_done(struct streams *streams);

/*
 * Read ahead to the next event that is wanted. ANNAL_END: there is none up to `upto`. ANNAL_DAMAGE:
 * see streams->damage.
 */
annal_status annal__tail_stream_peek(struct streams *streams, struct stream *stream,
                                     annal_error *err);

/* Call it when the event that was read ahead is returned. */
void annal__tail_stream_advance(struct stream *stream);

/* Close its journal, or keep it open without memory; what was read ahead is dropped. */
void annal__tail_stream_close(struct streams *streams, struct stream *stream);
void annal__tail_stream_rest(struct stream *stream);

/*
 * Compare the journal that is there with the one that was read: rule (4). *out_anew: it is another
 * one, and the stream is at its first event.
 */
annal_status annal__tail_stream_identify(struct streams *streams, struct stream *stream,
                                         bool *out_anew, annal_error *err);

/* It is the same file, but without the events that the named cursor says: read it from the first
 * one. */
void annal__tail_stream_restart(const struct streams *streams, struct stream *stream);

/* ---- Where to begin ---- */

/* The seq after the last event up to last_seq that is older than from_us. */
annal_status annal__tail_stream_seek_time(struct streams *streams, struct stream *stream,
                                          uint64_t last_seq, int64_t from_us, annal_error *err);

/* The last events of all streams: a heap, the oldest first. */
struct lasts {
    struct last {
        int64_t ts_us;
        uint64_t seq;
        struct stream *stream;
    } * heap;
    size_t count;
    size_t want;
};

/* Add those of the stream, up to last_seq, that are among the last `want` of all. */
annal_status annal__tail_stream_seek_last(struct streams *streams, struct stream *stream,
                                          uint64_t last_seq, struct lasts *lasts, annal_error *err);

#endif
