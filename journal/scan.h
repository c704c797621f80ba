/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking through a journal, frame by frame, with proof.
 *
 * (1) A frame is proven if its trailer matches its hash, seeded with the h of the frame before it.
 * (2) If a frame does not match, what follows it shows what happened. If the next frame matches
 *     with the h that this frame should have had, only the trailer is damaged: the event is sound.
 *     If it matches with the h in the trailer, this frame is damaged and nothing else is. Otherwise
 *     the walk continues until two neighbours prove each other; what lies between is reported frame
 *     by frame.
 * (3) Two JSON lines that lost the newline between them are separated by the trailer of the first.
 * (4) A program that can write the file can also compute hashes. So an event that proves itself
 *     must have a valid envelope (envelope.h), and a seq that follows the previous seq; otherwise
 *     this line is damaged, and no other. If a line has a later seq and the next line continues
 *     from it, events are missing between them: that is reported, and both are read.
 * (5) Bytes at the end that nothing proves are "not yet", never damage: a writer may be writing
 *     them. The position does not move past them. Only the owner of the session, or a verification
 *     of a session without owner, may call them torn or damaged.
 */
#ifndef JOURNAL_SCAN_H
#define JOURNAL_SCAN_H

#include "journal/base/buf.h"
#include "journal/base/io.h"
#include "journal/codec.h"

#include <annal/journal.h>

struct seek_table;
struct seek_tables;

struct scan {
    const struct io *io;
    int fd; /* owned by the scan; closed by annal__scan_done() */
    const struct codec *codec;
    struct buf window; /* bytes of the file from window_offset on */
    uint64_t window_offset;
    uint64_t read;      /* bytes since its position was last set */
    uint64_t first_seq; /* seq of the journal's first event: above 1 for a fork */
    /* longest frame that is read; 0: no limit */
    size_t hold;
    uint64_t data_at;    /* after annal__scan_next_head(): where data is that was not read, */
    uint64_t data_bytes; /* and its length; 0: data was read */
    struct seek_tables *tables; /* source and destination of its table; may be NULL */
    struct seek_table *table;   /* NULL: it did not seek yet */

    uint64_t offset;     /* offset of the next frame */
    uint64_t h;          /* hash of the frame before it; see (1) */
    uint64_t next_seq;   /* 0: not known */
    bool loose;          /* events before it are lost, and their number is a guess */
    annal_damage damage; /* after ANNAL_DAMAGE */

    /* Between ANNAL_DAMAGE and the event after it. */
    uint64_t resume; /* damaged frames end here, and a proven frame begins; 0: nowhere */
    uint64_t resume_h;
    uint64_t resume_seq; /* seq of that frame; 0: it is not an event */
    /* length of a damaged frame at offset whose event is intact; 0: none */
    uint64_t sound_length;
    uint64_t sound_h;
};

/* Begin at the first byte of the file; the header is checked first. Takes ownership of fd. */
void annal__scan_init(struct scan *scan, const struct io *io, int fd, const struct codec *codec);

/* Free memory and close fd. */
void annal__scan_done(struct scan *scan);

/* Free memory; the walk can continue. */
void annal__scan_rest(struct scan *scan);

/* Move to the frame that begins at offset, after a frame with hash h. */
void annal__scan_set(struct scan *scan, uint64_t seq, uint64_t offset, uint64_t h);

/* ANNAL_OK with an event, ANNAL_END, ANNAL_DAMAGE, or a failure. Slices are valid until the next
 * call. */
annal_status annal__scan_next(struct scan *scan, annal_event *out_event, annal_error *err);

/*
 * As above, but a long event is returned without its data, whose place is scan->data_at, and needs
 * no more memory than a short one: scan_long.c.
 */
annal_status annal__scan_next_head(struct scan *scan, annal_event *out_event, annal_error *err);

/* The event that begins at offset, after a frame with that trailer, if it proves itself; else
 * ANNAL_END. Data of long events is not read. */
annal_status annal__scan_look(struct scan *scan, uint64_t offset, annal_event *out_event,
                              annal_error *err);

/* Where the long line at offset ends, which is in no window; ANNAL_END: nowhere. */
annal_status annal__scan_line_end(const struct scan *scan, uint64_t offset, uint64_t *out_end,
                                  annal_error *err);

/* maximum of a frame that is held in memory; longer frames are long */
#define SCAN_HOLD_BYTES ((size_t)256 << 10)

/* Move to event seq; without proof there, to the first event. */
annal_status annal__seek(struct scan *scan, uint64_t seq, annal_error *err);

/* For seek.c: set the position as annal__scan_set() does, but keep what was read; read the frame at
 * offset, keeping bytes from `keep` on in memory. */
void annal__scan_stand(struct scan *scan, uint64_t seq, uint64_t offset, uint64_t h);
annal_status annal__scan_frame(struct scan *scan, uint64_t offset, uint64_t keep,
                               annal_slice *out_frame, annal_error *err);

/* The h in the trailer of the frame that ends at offset. ANNAL_END: no frame ends there. */
annal_status annal__scan_h_before(const struct scan *scan, uint64_t offset, uint64_t *out_h,
                                  annal_error *err);

enum tail_state {
    TAIL_WHOLE,  /* the last byte ends a proven frame */
    TAIL_TORN,   /* a piece of a frame follows the last proven one: the trace of a crash */
    TAIL_DAMAGED /* damaged: a frame that was once complete follows */
};

/* The end of a journal, found by reading backwards. */
struct journal_tail {
    bool has_header;
    struct frame_header header;                   /* its slices are not valid: */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* the session that it names */
    /* and its parent; "": not a fork */
    char fork[ANNAL_SESSION_ID_BYTES_MAX + 1];
    /* Of the last proven event; of a fork without events of its own, the fork point; 0: none. */
    uint64_t seq;
    int64_t ts_us;   /* 0 if that event is in another journal */
    uint64_t h;      /* hash of the last proven frame */
    uint64_t offset; /* where that frame begins */
    uint64_t end;    /* where it ends */
    uint64_t size;   /* size of the file */
    enum tail_state state;
};

annal_status annal__scan_tail(const struct io *io, int fd, const struct codec *codec,
                              struct journal_tail *out_tail, annal_error *err);

#endif
