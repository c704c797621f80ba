/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How events are stored in a journal: one table of functions for each format.
 *
 * A journal is a sequence of frames: the header first, then one frame for each event. Walking,
 * proving, and finding a way through damage are the same in every format (scan.h); only these
 * functions know its bytes. For all formats:
 *
 * (1) A frame ends in a trailer of fixed width, which contains its h: a hash of the bytes before
 *     it, seeded with the h of the frame before. The header is seeded with 0.
 * (2) seq rises by one from frame to frame.
 * (3) Only data needs a parser: type, id and cause are slices of the frame.
 * (4) The format of a journal can be seen from the name of its file, and from the toc of a commit
 *     log.
 * (5) A header of a newer version proves itself like any other. Only its version is relied on;
 *     events are read if they have the shape that is known, and nothing is appended.
 */
#ifndef JOURNAL_CODEC_H
#define JOURNAL_CODEC_H

#include "journal/base/buf.h"

#include <annal/event.h>

#define FRAME_TRAILER_BYTES_MAX ((size_t)25)
#define FRAME_FILE_ID_BYTES     16
#define FRAME_ENVELOPE_BYTES    ((size_t)1024) /* more than any envelope needs */
#define FRAME_BYTES_MAX         (ANNAL_DATA_BYTES_MAX + FRAME_ENVELOPE_BYTES)

#define FRAME_VERSION 1

/* SQLite can store it, and the next seq. */
#define FRAME_SEQ_MAX ((uint64_t)INT64_MAX - 1)

struct frame_header {
    uint32_t version;    /* FRAME_VERSION, or a newer one: then the rest may be missing */
    annal_slice session; /* points into the frame */
    uint8_t file[FRAME_FILE_ID_BYTES];
    int64_t created_us;
    /* The parent of a fork; points into the frame; empty if the session is not a fork. */
    annal_slice fork;
    uint64_t fork_seq; /* the last shared event of its history */
    uint64_t fork_h;   /* hash of that event */
    bool is_replacement;
    uint8_t replaces[FRAME_FILE_ID_BYTES]; /* the file id of the journal that this journal
                                            * replaced */
};

/* The place of an event. */
struct frame_place {
    uint64_t seq;
    int64_t ts_us;
    uint64_t offset; /* in the journal */
    uint64_t h_before;
};

struct codec {
    annal_format format; /* number of the format in the list of a commit log's group */
    const char *suffix;  /* suffix of the journal's file name: ".jsonl" */
    size_t trailer_bytes;
    size_t event_bytes_min;

    /* Append the frame of a new journal's header to out. Fails with ANNAL_ERR_NOMEM only. */
    annal_status (*encode_header)(struct buf *out, const struct frame_header *header,
                                  uint64_t *out_h);

    /*
     * Append the frame of an event to out. The draft was checked, and its data is in this format.
     */
    annal_status (*encode_event)(struct buf *out, const annal_draft *draft,
                                 const struct frame_place *place, uint64_t *out_h);

    /*
     * The length of the frame that these bytes begin with; if none begins there, the number of
     * bytes before the next frame. 0: the frame is longer than these bytes, or, if `all` (these are
     * the last bytes), no frame ends in them. The first `searched` bytes were searched before,
     * without success.
     */
    size_t (*measure)(annal_slice bytes, size_t searched, bool all);

    /* The h in the trailer that these bytes end with. Looks only at the end of the frame. */
    bool (*trailer)(annal_slice bytes, uint64_t *out_h);

    /* Whether the bytes end as a frame does. */
    bool (*ends)(annal_slice bytes);

    /* The h that a frame at offset should have. The frame is at least as long as a trailer. */
    uint64_t (*hash)(annal_slice frame, uint64_t offset, uint64_t h_before);

    /*
     * A frame that lost its end runs into what follows it: find its end by its proof. NULL in a
     * format in which lengths say what belongs to a frame.
     */
    bool (*split)(annal_slice bytes, uint64_t h_before, size_t *out_length, uint64_t *out_h);

    /* Parse the envelope, without checking h; data is not checked. The caller fills in offset,
     * length and h. */
    bool (*parse_event)(annal_slice frame, annal_event *out_event);
    bool (*parse_header)(annal_slice frame, struct frame_header *out_header);

    /*
     * Parse the envelope of a frame of which only the first bytes are given, without data, and find
     * where data begins. NULL: frames are always in memory as a whole. A format that has this
     * function hashes a frame from its first byte to the trailer, seeded with h_before.
     */
    bool (*parse_head)(annal_slice head, annal_event *out_event, size_t *out_data_at);

    /* What may be the last whole frame in these bytes: it begins at *out_start and ends at
     * *out_end. */
    bool (*find_last)(annal_slice bytes, size_t *out_start, size_t *out_end);

    /* Whether bytes after the last frame that proves itself were once a whole frame. */
    bool (*was_whole)(annal_slice bytes);
};

extern const struct codec annal__codec_json;
extern const struct codec annal__codec_msgpack;

/* Every codec; the first is the default. */
#define CODEC_COUNT 2
extern const struct codec *const annal__codecs[CODEC_COUNT];

/* The codec with this number, or NULL. */
const struct codec *annal__codec_of(unsigned format);

/* Whether a frame proves itself: it ends as a frame, and its h follows from the h of the previous
 * frame. */
bool annal__codec_proves(const struct codec *codec, annal_slice frame, uint64_t offset,
                         uint64_t h_before, uint64_t *out_h);

/*
 * Parse an event, and check its envelope (envelope.h). False: it is not an event; *out_fault, which
 * may be NULL, names the invalid part, or is NULL if the frame does not even have the shape of an
 * event.
 */
bool annal__codec_event(const struct codec *codec, annal_slice frame, annal_event *out_event,
                        const char **out_fault);

/* Read the header at the front of these bytes; false if none proves itself there. */
bool annal__codec_first(const struct codec *codec, annal_slice bytes,
                        struct frame_header *out_header, uint64_t *out_h);

/* ANNAL_ERR_CORRUPT unless the header belongs to this session's journal. */
annal_status annal__codec_check_owner(const struct frame_header *header, annal_slice session,
                                      annal_error *err);

void annal__codec_file_id_text(const uint8_t file[FRAME_FILE_ID_BYTES], char out[33]);

#endif
