/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream: one session that a tail reads.
 *
 * (1) It is read up to `upto`, which the hub announced; later events are read in their turn. A tail
 *     of a single session reads to the end.
 * (2) next_seq moves when an event is returned, or skipped because it has another type: whatever
 *     else happens to the stream, event next_seq is returned next.
 * (3) Only some streams of a tail have their journal open. A closed stream keeps its place; events
 *     that it had read ahead are read again.
 * (4) The events from next_seq on must be in the same journal as the events before it: it has the
 *     same file id, and the hash of the last returned event. A journal that was converted keeps its
 *     events, and names the journal from which it was forked. Any other journal is a session that
 *     starts over: it is read from its first event.
 */
#ifndef REPLAY_TAIL_STREAM_H
#define REPLAY_TAIL_STREAM_H

#include "replay/hub.h"

#include <annal/journal.h>

#define TYPE_PATTERN_BYTES 128

struct stream {
    struct named named;     /* in the table of its tail */
    char file[33];          /* file id; "": no journal was seen yet */
    uint64_t own_first_seq; /* first seq in its own journal, which is greater than 1 for a fork */
    uint64_t first_seq;     /* first seq that it returns */
    uint64_t next_seq;
    uint64_t upto;
    uint64_t h; /* hash of the event before next_seq, if has_h */
    bool has_h;
    /* whether next_seq and h are from a named cursor and not checked yet: see rule (4) */
    bool must_prove;

    annal_cursor *cursor; /* NULL: closed */
    /* in the list of open streams, in the order of their last use */
    struct stream *open_before, *open_behind;
    annal_position place; /* place at which to open it again, if has_place */
    bool has_place;

    struct hub_session latest; /* last announcement of the hub */
    bool is_known;             /* whether the named cursor knows it */

    annal_event head; /* event that was read ahead, if has_head; valid as long as the cursor */
    bool has_head;
    int64_t key_us; /* key of head for merging, if has_key */
    bool has_key;
};

/* The state that the streams of a tail share. */
struct streams {
    annal_store *store;
    bool own_only; /* whether only a fork's own events are returned: all sessions are read */
    char (*types)[TYPE_PATTERN_BYTES];
    size_t type_count;
    struct names names;
    struct stream *open_first, *open_last;
    size_t open_count;
    size_t open_max;
    annal_damage damage; /* valid after ANNAL_DAMAGE */
};

/* Find or add the stream of a session. NULL: no memory. */
struct stream *annal__tail_stream_of(struct streams *streams, annal_slice session);

/* Remove a stream. */
void annal__tail_stream_drop(struct streams *streams, struct stream *stream);
void annal__tail_streams_done(struct streams *streams);

/*
 * Read ahead to the next wanted event. ANNAL_END: none up to `upto`. ANNAL_DAMAGE: see
 * streams->damage.
 */
annal_status annal__tail_stream_peek(struct streams *streams, struct stream *stream,
                                     annal_error *err);

/* Advance when the event that was read ahead is returned. */
void annal__tail_stream_advance(struct stream *stream);

/* Close its journal, or keep it open without memory. Drops events that were read ahead. */
void annal__tail_stream_close(struct streams *streams, struct stream *stream);
void annal__tail_stream_rest(struct stream *stream);

/*
 * Compare the current journal with the journal that was read: rule (4). *out_restarted: they
 * differ, and the stream is at its first event.
 */
annal_status annal__tail_stream_identify(struct streams *streams, struct stream *stream,
                                         bool *out_restarted, annal_error *err);

/* Restart from the first event: the file is the same, but lacks the events of the named cursor. */
void annal__tail_stream_restart(const struct streams *streams, struct stream *stream);

/* ---- Where to begin ---- */

/* Find the seq after the last event up to last_seq that is older than from_us. */
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

/* Add the events of the stream, up to last_seq, that are among the last `want` of all streams. */
annal_status annal__tail_stream_seek_last(struct streams *streams, struct stream *stream,
                                          uint64_t last_seq, struct lasts *lasts, annal_error *err);

#endif
