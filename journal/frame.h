/*
 * How an event lies in a JSON-lines journal.
 *
 *   {"annal":1,"session":"sess_1","file":"<32 hex>","created":"<time>","fork":null,"h":"<16 hex>"}
 *   {"seq":1,"ts":"<time>","type":"tool.called","id":"…","cause":"sess_0:16","data":{…},"h":"<16 hex>"}
 *
 * (1) One event is one line. No byte of it is a newline but the last.
 * (2) The members stand in this order; id and cause may be missing. Nothing but data needs a JSON
 *     parser: the others hold no escapes, and data stands between its key and the trailer.
 * (3) The trailer has a fixed width: ,"h":"<16 hex>"} and a newline, 25 bytes.
 * (4) h is XXH3-64 of the line's bytes before the trailer, seeded with the h of the line before it;
 *     the header's seed is 0. So a line proves itself by the line before it, and every flipped bit
 *     and every dropped, doubled, swapped or foreign line shows.
 * (5) seq rises by one from line to line.
 * (6) A header may say more between fork and the trailer: "replaces":"<32 hex>" in a journal that was
 *     made from another one of this session, and took its place. Its events keep their seq and ts.
 */
#ifndef JOURNAL_FRAME_H
#define JOURNAL_FRAME_H

#include "journal/base/buf.h"

#include <annal/event.h>

#define FRAME_TRAILER_BYTES   ((size_t)25)
#define FRAME_EVENT_BYTES_MIN ((size_t)88) /* {"seq":1,"ts":…,"type":"a","data":0,"h":…} */
#define FRAME_FILE_ID_BYTES   16
#define FRAME_ENVELOPE_BYTES  ((size_t)1024) /* more than any envelope needs */
#define FRAME_LINE_BYTES_MAX  (ANNAL_DATA_BYTES_MAX + FRAME_ENVELOPE_BYTES)

struct frame_header {
    annal_slice session; /* points into the line */
    uint8_t file[FRAME_FILE_ID_BYTES];
    int64_t created_us;
    annal_slice
        fork; /* the session that this one is a fork of; points into the line; empty: none */
    bool is_replacement;
    uint8_t replaces[FRAME_FILE_ID_BYTES]; /* the file id of the journal that stood here before */
};

/* Append the header line of a new journal to out. ANNAL_ERR_NOMEM only. */
annal_status annal__frame_encode_header(struct buf *out, const struct frame_header *header,
                                        uint64_t *out_h);

/* Append the line of an event to out. The draft was checked with annal_draft_check(). */
annal_status annal__frame_encode_event(struct buf *out, const annal_draft *draft, uint64_t seq,
                                       int64_t ts_us, uint64_t h_before, uint64_t *out_h);

/* The h in a line's trailer. The last byte, which should be a newline, is not looked at. */
bool annal__frame_trailer(annal_slice line, uint64_t *out_h);

/* The h that a line should have, given that of the line before it. At least a trailer long. */
uint64_t annal__frame_hash(annal_slice line, uint64_t h_before);

/* The envelope of a line, without looking at h. offset and length are the caller's to fill. */
bool annal__frame_parse_event(annal_slice line, annal_event *out_event);
bool annal__frame_parse_header(annal_slice line, struct frame_header *out_header);

void annal__frame_file_id_text(const uint8_t file[FRAME_FILE_ID_BYTES], char out[33]);

#endif
