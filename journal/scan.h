/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walk through a journal, frame by frame, checking each hash.
 *
 * (1) A frame is proven if its trailer matches its hash, seeded with the h of the frame before it.
 * (2) If the hash of a frame is wrong, the next frame shows what is damaged. If the next frame is
 *     proven with the h that the wrong frame should have had, only the trailer is damaged, and the
 *     event is read. If the next frame is proven with the h in the trailer, only the wrong frame is
 *     damaged. Otherwise the walk continues until one frame proves the next, and everything before
 *     them is reported as damage, frame by frame.
 * (3) Two JSON lines that lost the newline between them are separated by the trailer of the first.
 * (4) A program that can write the file can also compute hashes. So a proven event must also have a
 *     valid envelope (envelope.h), and a seq that follows the previous seq; otherwise only this
 *     line is damaged. If a line has a later seq and the next line continues from it,
 *     events are missing between them: that is reported, and both are read.
 * (5) Bytes at the end that are not a proven frame are never damage: a writer may be writing them,
 *     so the walk returns ANNAL_END. The position does not move past them. Only the owner of the
 *     session, or a verification of a session without owner, may call them torn or damaged.
 */
#pragma once

#include "journal/base/buf.h"
#include "journal/base/io.h"
#include "journal/codec.h"

#include <annal/journal.h>

struct seek_table;
struct seek_tables;

struct scan {
    const struct io *io;
    int fd; /* descriptor of the journal; closed by annal__scan_done() */
    const struct codec *codec;
    struct buf window; /* part of the file in memory, from offset window_offset on */
    uint64_t window_offset;
    uint64_t read; /* number of bytes read since the position was last set */
    /* seq of the journal's first event: 1, or for a fork the seq after the fork point */
    uint64_t first_seq;
    /* number of bytes after which a frame counts as long and is not read; 0: no limit */
    size_t hold;
    uint64_t data_at;    /* after annal__scan_next_head(): offset of the data that was not read */
    uint64_t data_bytes; /* number of bytes of the data that was not read; 0: the data was read */
    /* tables of the store, for annal__seek_table_take() and _give(); or NULL */
    struct seek_tables *tables;
    struct seek_table *table; /* table of this journal's events; NULL before the first seek */

    uint64_t offset;   /* offset of the next frame */
    uint64_t h;        /* hash of the previous frame (rule 1) */
    uint64_t next_seq; /* seq of the next event; 0: unknown */
    /* whether events before the next one are lost, so that next_seq is a guess */
    bool loose;
    annal_damage damage; /* the damage that a function has reported by returning ANNAL_DAMAGE */

    /* State between ANNAL_DAMAGE and the next event. */
    /* offset at which the damaged frames end and a proven frame begins; 0: no damage is being
     * reported */
    uint64_t resume;
    uint64_t resume_h;
    uint64_t resume_seq; /* seq of the event at offset resume; 0: the frame there is not an event */
    /* length of a damaged frame at offset whose event is intact, or 0 */
    uint64_t sound_length;
    uint64_t sound_h;
};

/* Set the scan to the first byte of the file, where it checks the header first. Takes ownership of
 * fd. */
void annal__scan_init(struct scan *scan, const struct io *io, int fd, const struct codec *codec);

/* Free the memory of the scan and close fd. */
void annal__scan_done(struct scan *scan);

/* Free the memory of a scan that will pause; it can continue afterwards. */
void annal__scan_rest(struct scan *scan);

/* Move to the frame that begins at offset, after a frame with hash h. */
void annal__scan_set(struct scan *scan, uint64_t seq, uint64_t offset, uint64_t h);

/* Read the next event: ANNAL_OK; ANNAL_END after the last; ANNAL_DAMAGE, with scan->damage; or a
 * failure. Slices are valid until the next call. */
annal_status annal__scan_next(struct scan *scan, annal_event *out_event, annal_error *err);

/* As annal__scan_next(), but return a long event without its data, of which scan->data_at and
 * data_bytes give the place. Needs no more memory than for a short event (scan_long.c). */
annal_status annal__scan_next_head(struct scan *scan, annal_event *out_event, annal_error *err);

/* Read the event that begins at offset if its hash follows from the trailer before offset; else
 * ANNAL_END. The data of a long event is not read. */
annal_status annal__scan_look(struct scan *scan, uint64_t offset, annal_event *out_event,
                              annal_error *err);

/* Find the end of the line at offset, reading it in pieces; ANNAL_END if the file has no newline
 * after offset. */
annal_status annal__scan_line_end(const struct scan *scan, uint64_t offset, uint64_t *out_end,
                                  annal_error *err);

/* maximum size of a frame that annal__scan_next_head() reads into memory; longer frames are long */
#define SCAN_HOLD_BYTES ((size_t)256 << 10)

/* Move the scan to event seq, or to the position where this event would follow. If the position
 * cannot be found by searching, read from the first event. */
annal_status annal__seek(struct scan *scan, uint64_t seq, annal_error *err);

/*
 * For seek.c. annal__scan_stand() sets the position as annal__scan_set() does, but keeps the bytes
 * that were read. annal__scan_frame() reads the frame at offset, and keeps bytes from `keep` on in
 * memory.
 */
void annal__scan_stand(struct scan *scan, uint64_t seq, uint64_t offset, uint64_t h);
annal_status annal__scan_frame(struct scan *scan, uint64_t offset, uint64_t keep,
                               annal_slice *out_frame, annal_error *err);

/* Read the h from the trailer that ends at offset; ANNAL_END if no frame ends there. */
annal_status annal__scan_h_before(const struct scan *scan, uint64_t offset, uint64_t *out_h,
                                  annal_error *err);

enum tail_state {
    TAIL_WHOLE,  /* the file ends with a proven frame */
    TAIL_TORN,   /* a piece of a frame follows the last proven frame: the trace of a crash */
    TAIL_DAMAGED /* a frame that was once complete, and is damaged, follows the last proven frame */
};

/* The end of a journal, found by reading backwards. */
struct journal_tail {
    bool has_header;
    /* header of the journal; its slices session and fork are empty, because the arrays below have
     * the names */
    struct frame_header header;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* session that the header names */
    /* parent session that the header names; "": the session is not a fork */
    char fork[ANNAL_SESSION_ID_BYTES_MAX + 1];
    /* seq of the last proven event; for a fork without events of its own, the fork point; else
     * 0. */
    uint64_t seq;
    /* time of the last proven event, in us; 0 if this event is in an ancestor's journal */
    int64_t ts_us;
    uint64_t h;      /* h of the last proven frame (journal line or msgpack array) */
    uint64_t offset; /* offset of the last proven frame */
    uint64_t end;    /* offset of the end of that frame */
    uint64_t size;   /* size of the file */
    enum tail_state state;
};

annal_status annal__scan_tail(const struct io *io, int fd, const struct codec *codec,
                              struct journal_tail *out_tail, annal_error *err);
