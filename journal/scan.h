/*
 * Walking through a journal, frame by frame, with proof.
 *
 * (1) A frame is proven when its trailer matches its hash, seeded with the h of the frame before
 *     it.
 * (2) When a frame does not match, what follows it decides what happened. If the next frame matches
 *     with the h that this frame should have had, only the trailer is damaged: the event is sound.
 *     If it matches with the h in the trailer, this frame is damaged and nothing else is. Otherwise
 *     the walk goes on until two neighbours prove each other; what lies between is reported frame
 *     by frame.
 * (3) Two JSON lines that lost the newline between them are told apart by the trailer of the first.
 * (4) Bytes at the end that nothing proves are "not yet", never damage: somebody may be writing
 *     them. The position does not move past them. Only who owns the session, or a verification of a
 *     session that nobody owns, may call them torn or damaged.
 */
#ifndef JOURNAL_SCAN_H
#define JOURNAL_SCAN_H

#include "journal/base/buf.h"
#include "journal/base/io.h"
#include "journal/codec.h"

#include <annal/journal.h>

struct scan_marks;

struct scan {
    const struct io *io;
    int fd; /* the scan's own; closed by annal__scan_done() */
    const struct codec *codec;
    struct buf window; /* bytes of the file from window_offset on */
    uint64_t window_offset;
    uint64_t read;      /* bytes since it was told where to stand */
    uint64_t first_seq; /* of the journal: of a fork it is not 1 */
    size_t hold;        /* a frame that is not whole in so many bytes is not read on; 0: no limit */
    uint64_t data_at;   /* after annal__scan_next_head(): data that was not held stands there, */
    uint64_t data_bytes; /* so long; 0: it was held */
    bool sought;
    struct scan_marks *marks; /* of a scan that seeks again and again: seek.c */

    uint64_t offset; /* of the next frame */
    uint64_t h;      /* of the frame before it; see (1) */
    uint64_t next_seq;
    annal_damage damage; /* after ANNAL_DAMAGE */

    /* Between ANNAL_DAMAGE and what comes after it. */
    uint64_t resume; /* damaged frames end here, and a proven frame begins; 0: none */
    uint64_t resume_h;
    uint64_t resume_seq;   /* of that frame; 0: it is no event */
    uint64_t sound_length; /* of the frame at offset, damaged though its event is sound; 0: none */
    uint64_t sound_h;
};

/* Begin at the first byte of the file; the header comes first and is checked on the way. Takes
 * fd. */
void annal__scan_init(struct scan *scan, const struct io *io, int fd, const struct codec *codec);

/* Free memory and close fd. */
void annal__scan_done(struct scan *scan);

/* Free memory; the walk goes on as before. */
void annal__scan_rest(struct scan *scan);

/* Stand at a frame that begins at offset, behind a frame with hash h. */
void annal__scan_set(struct scan *scan, uint64_t seq, uint64_t offset, uint64_t h);

/* ANNAL_OK with an event, ANNAL_END, ANNAL_DAMAGE, or a failure. Slices live until the next
 * call. */
annal_status annal__scan_next(struct scan *scan, annal_event *out_event, annal_error *err);

/*
 * The same, but a long event comes without its data, whose place is scan->data_at, and takes no
 * more memory than a short one: long.c.
 */
annal_status annal__scan_next_head(struct scan *scan, annal_event *out_event, annal_error *err);

/* The event that begins at offset behind a frame with that trailer, if it proves itself; else
 * ANNAL_END. Long ones are not held. */
annal_status annal__scan_look(struct scan *scan, uint64_t offset, annal_event *out_event,
                              annal_error *err);

/* Where the long line ends that stands at offset, which is in no window; ANNAL_END: nowhere. */
annal_status annal__scan_line_end(const struct scan *scan, uint64_t offset, uint64_t *out_end,
                                  annal_error *err);

#define SCAN_HOLD_BYTES ((size_t)256 << 10) /* of a frame; longer ones are long */

/* Move to event seq; without proof there, to the first event. */
annal_status annal__scan_seek(struct scan *scan, uint64_t seq, annal_error *err);

/* For seek.c: as annal__scan_set(), but what was read stays; the frame at offset, of which bytes
 * from keep on stay in memory; remember where an event begins. */
void annal__scan_stand(struct scan *scan, uint64_t seq, uint64_t offset, uint64_t h);
annal_status annal__scan_frame(struct scan *scan, uint64_t offset, uint64_t keep,
                               annal_slice *out_frame, annal_error *err);
void annal__scan_mark(struct scan *scan, uint64_t seq, uint64_t offset);

/* The h in the trailer of the frame that ends at offset. ANNAL_END: no frame ends there. */
annal_status annal__scan_h_before(const struct scan *scan, uint64_t offset, uint64_t *out_h,
                                  annal_error *err);

enum tail_state {
    TAIL_WHOLE,  /* the last byte ends a proven frame */
    TAIL_TORN,   /* behind the last proven frame stands a piece of a frame: the trace of a crash */
    TAIL_DAMAGED /* behind it stands what was a whole frame once, and does not prove itself */
};

/* The end of a journal, found by reading backwards. */
struct journal_tail {
    bool has_header;
    struct frame_header header;                   /* its slices point nowhere: */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* which session it names */
    char fork[ANNAL_SESSION_ID_BYTES_MAX + 1];    /* and of which it is a fork; "": of none */
    /* Of the last proven event; of a fork without events of its own, where it forked; 0: none. */
    uint64_t seq;
    int64_t ts_us;   /* 0 when it stands in another journal */
    uint64_t h;      /* of the last proven frame */
    uint64_t offset; /* where that frame begins */
    uint64_t end;    /* where it ends */
    uint64_t size;   /* of the file */
    enum tail_state state;
};

annal_status annal__scan_tail(const struct io *io, int fd, const struct codec *codec,
                              struct journal_tail *out_tail, annal_error *err);

#endif
