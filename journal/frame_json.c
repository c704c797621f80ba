/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal as JSON lines.
 *
 *   {"annal":1,"session":"sess_1","file":"<32 hex>","created":"<time>","fork":null,"h":"<16 hex>"}
 *   {"seq":1,"ts":"<time>","type":"tool.called","id":"…","cause":"sess_0:16","data":{…},"h":"<16
 *   hex>"}
 *
 * (1) One event is one line. No byte of it is a newline except the last.
 * (2) The members have this order; id and cause may be missing. Only data needs a JSON parser: the
 *     others contain no escapes, and data is between its key and the trailer.
 * (3) The trailer has a fixed width: ,"h":"<16 hex>"} and a newline, 25 bytes.
 * (4) h is XXH3-64 of the line's bytes before the trailer, seeded with the h of the line before it;
 *     the header's seed is 0. So a line is verified with the h of the line before it, and every
 *     flipped bit and every missing, doubled, swapped or foreign line is noticed.
 * (5) A header may have more members between fork and the trailer: "replaces":"<32 hex>" in a
 *     journal that was converted or repaired from another journal of this session and replaced it.
 *     Its events keep their seq and ts.
 * (6) The header of a fork says "fork":{"session":"<id>","seq":<number>,"h":"<16 hex>"}: its first
 *     event follows that seq.
 */
#include "journal/base/hash.h"
#include "journal/base/hex.h"
#include "journal/base/number.h"
#include "journal/envelope.h"

#include <endian.h>
#include <string.h>

#define TRAILER_BYTES ((size_t)25)

static const char hex_digits[] = "0123456789abcdef";

/* ---- Encoding ---- */

static void put_hex(char *at, uint64_t value)
{
    for (int i = 0; i < 16; i++)
        at[i] = hex_digits[value >> (60 - 4 * i) & 15];
}

static annal_status append_trailer(struct buf *out, size_t line_start, uint64_t h_before,
                                   uint64_t *out_h)
{
    uint64_t h = annal__hash(out->ptr + line_start, out->len - line_start, h_before);
    char trailer[] = ",\"h\":\"0000000000000000\"}\n";
    put_hex(trailer + 6, h);
    annal_status status = annal__buf_append(out, trailer, TRAILER_BYTES);
    if (status == ANNAL_OK)
        *out_h = h;
    return status;
}

static annal_status append_fork(struct buf *out, const struct frame_header *header)
{
    char h[17] = "";
    if (header->fork.len == 0)
        return annal__buf_printf(out, ",\"fork\":null");
    put_hex(h, header->fork_h);
    return annal__buf_printf(out, ",\"fork\":{\"session\":\"%.*s\",\"seq\":%llu,\"h\":\"%s\"}",
                             ANNAL_FMT(header->fork), (unsigned long long)header->fork_seq, h);
}

static annal_status encode_header(struct buf *out, const struct frame_header *header,
                                  uint64_t *out_h)
{
    char file[33];
    char created[ANNAL_TIME_BYTES];
    annal__hex_text(header->file, FRAME_FILE_ID_BYTES, file);
    annal_time_format(header->created_us, created);
    size_t start = out->len;
    annal__buf_printf(out, "{\"annal\":1,\"session\":\"%.*s\",\"file\":\"%s\",\"created\":\"%s\"",
                      ANNAL_FMT(header->session), file, created);
    annal_status status = append_fork(out, header);
    if (status == ANNAL_OK && header->is_replacement) {
        annal__hex_text(header->replaces, FRAME_FILE_ID_BYTES, file);
        status = annal__buf_printf(out, ",\"replaces\":\"%s\"", file);
    }
    return status < 0 ? status : append_trailer(out, start, 0, out_h);
}

static char *put(char *at, annal_slice bytes)
{
    memcpy(at, bytes.ptr, bytes.len);
    return at + bytes.len;
}

static annal_status encode_event(struct buf *out, const annal_draft *draft,
                                 const struct frame_place *place, uint64_t *out_h)
{
    annal_status status = annal__buf_reserve(out, draft->data.len + FRAME_ENVELOPE_BYTES);
    if (status < 0)
        return status;

    size_t start = out->len;
    char ts[ANNAL_TIME_BYTES];
    annal_time_format(place->ts_us, ts);
    char *at = put(out->ptr + start, ANNAL_SLICE("{\"seq\":"));
    at = annal__number_put(at, place->seq);
    at = put(at, ANNAL_SLICE(",\"ts\":\""));
    at = put(at, (annal_slice){ts, ANNAL_TIME_BYTES - 1});
    at = put(at, ANNAL_SLICE("\",\"type\":\""));
    at = put(at, draft->type);
    if (draft->id.len > 0) {
        at = put(at, ANNAL_SLICE("\",\"id\":\""));
        at = put(at, draft->id);
    }
    if (draft->cause.len > 0) {
        at = put(at, ANNAL_SLICE("\",\"cause\":\""));
        at = put(at, draft->cause);
    }
    at = put(at, ANNAL_SLICE("\",\"data\":"));
    at = put(at, draft->data);
    out->len = (size_t)(at - out->ptr);
    return append_trailer(out, start, place->h_before, out_h);
}

/* ---- Reading ---- */

/* Read eight digits, each of them in a byte of one word; false if another character is among them.
 */
static bool read_eight(const char *at, uint64_t *out_value)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    uint64_t text;
    memcpy(&text, at, sizeof text);
    text = le64toh(text);
    uint64_t letters = text >> 6 & each; /* 1 in the byte of a letter */
    uint64_t digits = (text & 15 * each) + 9 * letters;
    uint64_t written = digits + '0' * each + ('a' - '0' - 10) * letters;
    bool fits = written == text && (digits & 16 * each) == 0 &&
                ((digits + 6 * each) >> 4 & each) == letters; /* those from 10 on are letters */
    digits = (digits << 4 | digits >> 8) & UINT64_C(0x00ff00ff00ff00ff);
    digits = (digits << 8 | digits >> 16) & UINT64_C(0x0000ffff0000ffff);
    *out_value = (digits << 16 | digits >> 32) & UINT32_MAX;
    return fits;
}

static bool read_hex(const char *at, uint64_t *out_value)
{
    uint64_t high, low;
    if (!read_eight(at, &high) || !read_eight(at + 8, &low))
        return false;
    *out_value = high << 32 | low;
    return true;
}

static bool read_trailer(annal_slice line, uint64_t *out_h)
{
    if (line.len < TRAILER_BYTES)
        return false;
    const char *at = line.ptr + line.len - TRAILER_BYTES;
    return memcmp(at, ",\"h\":\"", 6) == 0 && memcmp(at + 22, "\"}", 2) == 0 &&
           read_hex(at + 6, out_h);
}

static uint64_t hash_line(annal_slice line, uint64_t offset, uint64_t h_before)
{
    (void)offset;
    return annal__hash(line.ptr, line.len - TRAILER_BYTES, h_before);
}

/* The functions below are inline, because each event that is read calls them: with constants of
 * known lengths they are a few instructions. */

/* A position in a line whose fixed parts are read one after the other; after one part that does not
 * fit, `fits` stays false. */
struct walk {
    const char *at;
    const char *end;
    bool fits;
};

static inline bool skip(struct walk *walk, annal_slice expected)
{
    if ((size_t)(walk->end - walk->at) < expected.len ||
        memcmp(walk->at, expected.ptr, expected.len) != 0)
        return false;
    walk->at += expected.len;
    return true;
}

static inline void need(struct walk *walk, annal_slice expected)
{
    walk->fits = walk->fits && skip(walk, expected);
}

static inline uint64_t take_number(struct walk *walk)
{
    uint64_t value = 0;
    const char *start = walk->at;
    while (walk->at < walk->end && *walk->at >= '0' && *walk->at <= '9' && walk->at - start < 19)
        value = value * 10 + (uint64_t)(*walk->at++ - '0');
    walk->fits = walk->fits && walk->at > start;
    return value;
}

/* Return the bytes up to the next quote, and move after that quote. */
static inline annal_slice take_string(struct walk *walk)
{
    const char *start = walk->at;
    const char *quote = walk->fits ? memchr(start, '"', (size_t)(walk->end - start)) : NULL;
    if (quote == NULL) {
        walk->fits = false;
        return (annal_slice){NULL, 0};
    }
    walk->at = quote + 1;
    return (annal_slice){start, (size_t)(quote - start)};
}

static inline int64_t take_time(struct walk *walk)
{
    const annal_slice text = {walk->at, ANNAL_TIME_BYTES - 1};
    int64_t time_us = 0;
    walk->fits = walk->fits && (size_t)(walk->end - walk->at) > text.len &&
                 text.ptr[text.len] == '"' && annal_time_parse(text, &time_us, NULL) == ANNAL_OK;
    if (walk->fits)
        walk->at += ANNAL_TIME_BYTES;
    return time_us;
}

/* Read everything before the data of an event. */
static inline bool take_envelope(struct walk *walk, annal_event *out_event)
{
    annal_slice id = {NULL, 0}, cause = {NULL, 0};
    need(walk, ANNAL_SLICE("{\"seq\":"));
    uint64_t seq = take_number(walk);
    need(walk, ANNAL_SLICE(",\"ts\":\""));
    int64_t ts_us = take_time(walk);
    need(walk, ANNAL_SLICE(",\"type\":\""));
    annal_slice type = take_string(walk);
    if (walk->fits && skip(walk, ANNAL_SLICE(",\"id\":\"")))
        id = take_string(walk);
    if (walk->fits && skip(walk, ANNAL_SLICE(",\"cause\":\"")))
        cause = take_string(walk);
    need(walk, ANNAL_SLICE(",\"data\":"));
    if (!walk->fits || seq == 0 || walk->at == walk->end)
        return false;
    *out_event = (annal_event){.seq = seq,
                               .ts_us = ts_us,
                               .type = type,
                               .id = id,
                               .cause = cause,
                               .format = ANNAL_FORMAT_JSON};
    return true;
}

static bool parse_event(annal_slice line, annal_event *out_event)
{
    if (line.len < TRAILER_BYTES)
        return false;
    struct walk walk = {line.ptr, line.ptr + line.len - TRAILER_BYTES, true};
    if (!take_envelope(&walk, out_event))
        return false;
    out_event->data = (annal_slice){walk.at, (size_t)(walk.end - walk.at)};
    return true;
}

static bool parse_head(annal_slice head, annal_event *out_event, size_t *out_data_at)
{
    struct walk walk = {head.ptr, head.ptr + head.len, true};
    if (!take_envelope(&walk, out_event))
        return false;
    *out_data_at = (size_t)(walk.at - head.ptr);
    return true;
}

static void take_file_id(struct walk *walk, uint8_t out[FRAME_FILE_ID_BYTES])
{
    annal_slice text = take_string(walk);
    walk->fits = walk->fits && text.len == 2 * FRAME_FILE_ID_BYTES &&
                 annal__hex_read(text.ptr, FRAME_FILE_ID_BYTES, out);
}

/* Read the value of the header's member "fork": null, or the session and event after which the fork
 * begins. */
static void take_fork(struct walk *walk, struct frame_header *header)
{
    if (!walk->fits || !skip(walk, ANNAL_SLICE("{\"session\":\""))) {
        need(walk, ANNAL_SLICE("null"));
        return;
    }
    header->fork = take_string(walk);
    need(walk, ANNAL_SLICE(",\"seq\":"));
    header->fork_seq = take_number(walk);
    need(walk, ANNAL_SLICE(",\"h\":\""));
    annal_slice h = take_string(walk);
    walk->fits =
        walk->fits && header->fork.len > 0 && h.len == 16 && read_hex(h.ptr, &header->fork_h);
    need(walk, ANNAL_SLICE("}"));
}

static bool parse_header(annal_slice line, struct frame_header *out_header)
{
    if (line.len < TRAILER_BYTES)
        return false;
    struct walk walk = {line.ptr, line.ptr + line.len - TRAILER_BYTES, true};
    struct frame_header header = {0};
    need(&walk, ANNAL_SLICE("{\"annal\":"));
    uint64_t version = take_number(&walk);
    if (!walk.fits || version == 0 || version > UINT32_MAX)
        return false;
    header.version = (uint32_t)version;
    need(&walk, ANNAL_SLICE(",\"session\":\""));
    header.session = take_string(&walk);
    need(&walk, ANNAL_SLICE(",\"file\":\""));
    take_file_id(&walk, header.file);
    need(&walk, ANNAL_SLICE(",\"created\":\""));
    header.created_us = take_time(&walk);
    need(&walk, ANNAL_SLICE(",\"fork\":"));
    take_fork(&walk, &header);
    if (walk.fits && skip(&walk, ANNAL_SLICE(",\"replaces\":\""))) {
        header.is_replacement = true;
        take_file_id(&walk, header.replaces);
    }
    bool fits = walk.fits && walk.at == walk.end && annal__envelope_header_fits(&header);
    if (version > FRAME_VERSION && !fits)
        header = (struct frame_header){.version = header.version};
    if (fits || version > FRAME_VERSION)
        *out_header = header;
    return fits || version > FRAME_VERSION;
}

/* ---- Finding lines ---- */

static size_t measure(annal_slice bytes, size_t searched, bool all)
{
    (void)all;
    const char *newline = memchr(bytes.ptr + searched, '\n', bytes.len - searched);
    return newline == NULL ? 0 : (size_t)(newline - bytes.ptr) + 1;
}

static bool ends(annal_slice bytes)
{
    return bytes.len > 0 && bytes.ptr[bytes.len - 1] == '\n';
}

/* Find the end of a line whose newline was lost. */
static bool split(annal_slice bytes, uint64_t h_before, size_t *out_length, uint64_t *out_h)
{
    for (size_t end = TRAILER_BYTES; end < bytes.len; end++) {
        uint64_t h;
        annal_slice prefix = {bytes.ptr, end};
        if (bytes.ptr[end - 2] == '}' && read_trailer(prefix, &h) &&
            hash_line(prefix, 0, h_before) == h) {
            *out_length = end;
            *out_h = h;
            return true;
        }
    }
    return false;
}

static bool find_last(annal_slice bytes, size_t *out_start, size_t *out_end)
{
    const char *newline = bytes.len == 0 ? NULL : memrchr(bytes.ptr, '\n', bytes.len);
    if (newline == NULL)
        return false;
    const char *before = memrchr(bytes.ptr, '\n', (size_t)(newline - bytes.ptr));
    *out_start = before == NULL ? 0 : (size_t)(before - bytes.ptr) + 1;
    *out_end = (size_t)(newline - bytes.ptr) + 1;
    return true;
}

/* Return whether the bytes contain a newline, or a complete trailer. An interrupted write leaves
 * neither a newline nor, in most cases, a complete line. */
static bool was_whole(annal_slice bytes)
{
    uint64_t h;
    return memchr(bytes.ptr, '\n', bytes.len) != NULL || read_trailer(bytes, &h);
}

const struct codec annal__codec_json = {
    .format = ANNAL_FORMAT_JSON,
    .suffix = ".jsonl",
    .trailer_bytes = TRAILER_BYTES,
    .event_bytes_min = 88, /* {"seq":1,"ts":…,"type":"a","data":0,"h":…} */
    .encode_header = encode_header,
    .encode_event = encode_event,
    .measure = measure,
    .trailer = read_trailer,
    .ends = ends,
    .hash = hash_line,
    .split = split,
    .parse_event = parse_event,
    .parse_head = parse_head,
    .parse_header = parse_header,
    .find_last = find_last,
    .was_whole = was_whole,
};
