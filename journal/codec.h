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
 * (3) Only the data of an event needs a parser: type, id and cause are slices of the frame.
 * (4) The format of a journal can be seen from the name of its file, and from the toc of a commit
 *     log.
 * (5) A header of a newer version has a hash like any other. Only its version number is used;
 *     events are read if they have the shape of version 1, and nothing is appended to such a
 *     journal.
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/event.h>

#define FRAME_TRAILER_BYTES_MAX ((size_t)25)
#define FRAME_FILE_ID_BYTES     16
/* maximum size of a frame without its data; no frame needs that much */
#define FRAME_ENVELOPE_BYTES ((size_t)1024)
#define FRAME_BYTES_MAX      (ANNAL_DATA_BYTES_MAX + FRAME_ENVELOPE_BYTES)

#define FRAME_VERSION 1

/* Maximum seq: SQLite can store it, and the seq after it, as a signed integer. */
#define FRAME_SEQ_MAX ((uint64_t)INT64_MAX - 1)

struct frame_header {
    /* FRAME_VERSION or a newer version; of a newer version, the other members may be empty */
    uint32_t version;
    annal_slice session; /* session of the journal; points into the frame */
    uint8_t file[FRAME_FILE_ID_BYTES];
    int64_t created_us;
    /* Parent session of a fork, empty if the session is not a fork; points into the frame. */
    annal_slice fork;
    uint64_t fork_seq; /* seq of the last event that the fork shares with its parent */
    uint64_t fork_h;   /* hash of event fork_seq */
    bool is_replacement;
    uint8_t replaces[FRAME_FILE_ID_BYTES]; /* the file id of the journal that this journal
                                            * replaced */
};

/* The values other than the draft that determine the frame of an event. */
struct frame_place {
    uint64_t seq;
    int64_t ts_us;
    uint64_t offset; /* offset of the frame in the journal */
    uint64_t h_before;
};

struct codec {
    annal_format format; /* format of the journal, as recorded in groups of a commit log */
    const char *suffix;  /* suffix of the journal's file name, such as ".jsonl" */
    size_t trailer_bytes;
    size_t event_bytes_min;

    /* Append the frame of a new journal's header to out. Fails with ANNAL_ERR_NOMEM only. */
    annal_status (*encode_header)(struct buf *out, const struct frame_header *header,
                                  uint64_t *out_h);

    /* Append the frame of an event to out. The caller has checked the draft, whose data is in the
     * format of this codec. */
    annal_status (*encode_event)(struct buf *out, const annal_draft *draft,
                                 const struct frame_place *place, uint64_t *out_h);

    /*
     * Return the length of the frame that these bytes begin with; if no frame begins there, the
     * number of bytes before the next frame. Return 0 if the frame is longer than these bytes or,
     * with `all` (no bytes follow these), if no frame ends in them. The first `searched` bytes were
     * searched before, without success.
     */
    size_t (*measure)(annal_slice bytes, size_t searched, bool all);

    /* Read the h from the trailer at the end of these bytes; false if they end in no trailer. Does
     * not check where the frame begins. */
    bool (*trailer)(annal_slice bytes, uint64_t *out_h);

    /* Return whether the last bytes can be the end of a frame. */
    bool (*ends)(annal_slice bytes);

    /* Compute the h that a frame at this offset should have. The frame is at least as long as a
     * trailer. */
    uint64_t (*hash)(annal_slice frame, uint64_t offset, uint64_t h_before);

    /* Find the end of a frame whose last bytes were lost, so that the next frame follows directly:
     * the length at which its h is right. NULL in a format whose frames state their length. */
    bool (*split)(annal_slice bytes, uint64_t h_before, size_t *out_length, uint64_t *out_h);

    /* Parse the envelope of an event, without checking h or data. The caller fills in offset,
     * length and h. */
    bool (*parse_event)(annal_slice frame, annal_event *out_event);
    bool (*parse_header)(annal_slice frame, struct frame_header *out_header);

    /*
     * Parse the envelope of a frame from its first bytes, and find where its data begins. NULL if
     * frames of this format are always read into memory completely. A format with this function
     * hashes a frame from its first byte to the trailer, seeded with h_before.
     */
    bool (*parse_head)(annal_slice head, annal_event *out_event, size_t *out_data_at);

    /* Find the last bytes that look like a complete frame: from *out_start to *out_end. */
    bool (*find_last)(annal_slice bytes, size_t *out_start, size_t *out_end);

    /* Return whether the bytes after the last valid frame were once a complete frame, so that they
     * are damage and not the rest of an interrupted write. */
    bool (*was_whole)(annal_slice bytes);
};

extern const struct codec annal__codec_json;
extern const struct codec annal__codec_msgpack;

/* annal__codecs contains all codecs (formats of journals); the first is the default. */
#define CODEC_COUNT 2
extern const struct codec *const annal__codecs[CODEC_COUNT];

/* Return the codec with this number, or NULL. */
const struct codec *annal__codec_of(unsigned format);

/* Return whether a frame is valid: it ends as a frame, and its h follows from the h of the previous
 * frame. */
bool annal__codec_proves(const struct codec *codec, annal_slice frame, uint64_t offset,
                         uint64_t h_before, uint64_t *out_h);

/*
 * Parse an event, and check its envelope (envelope.h). Return false if the frame is not an event;
 * *out_fault (out_fault may be NULL) then names the invalid part, or is NULL if the frame does not
 * even have the shape of an event.
 */
bool annal__codec_event(const struct codec *codec, annal_slice frame, annal_event *out_event,
                        const char **out_fault);

/* Read the header at the front of these bytes; false if they do not begin with a valid header. */
bool annal__codec_first(const struct codec *codec, annal_slice bytes,
                        struct frame_header *out_header, uint64_t *out_h);

/* Return ANNAL_ERR_CORRUPT unless the header belongs to this session's journal. */
annal_status annal__codec_check_owner(const struct frame_header *header, annal_slice session,
                                      annal_error *err);

void annal__codec_file_id_text(const uint8_t file[FRAME_FILE_ID_BYTES], char out[33]);
