/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal as msgpack: a stream of arrays that any msgpack library can iterate.
 *
 *   header  [length, "annal", 1, session, file, created, fork, replaces, length, h]
 *   event   [length, seq, ts, type, id, cause, data, length, h]
 *
 *   length    uint 32, always ce and 4 bytes: of the whole frame, first and last byte included
 *   seq, h    uint 64, always cf and 8 bytes
 *   ts        int 64, always d3 and 8 bytes: microseconds since 1970. created has this form, too
 *   file      bin of 16 bytes; replaces: bin of 16 bytes, or nil
 *   fork      [session, seq, h], or nil
 *   id, cause str, or nil; session, type: str
 *   data      one value
 *
 * (1) The length is at a fixed distance from either end: frames are found without decoding,
 *     forwards and backwards. Both must agree.
 * (2) h is in the last 9 bytes and covers all bytes before them. It is XXH3-64, seeded with the h
 *     of the frame before XOR the frame's offset in the file; both are 0 for the header.
 * (3) A newer version may have more values; the first four (in the header the first three) and the
 *     last two stay.
 * (4) The hash of a frame is right only at the frame's own offset in the file (rule 2). The reason:
 *     data may contain the bytes of a journal, even of this journal (an agent reads its own files),
 *     and no byte of msgpack distinguishes such bytes from frames, as a newline does in JSON lines.
 *     Without the offset in the hash, a reader that looks for the next frame after damage, in the
 *     middle of the file, or after half an event that is being written, would take such bytes for
 *     events.
 */
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/msgpack.h"
#include "journal/envelope.h"

#include <string.h>

#define ARRAY_OF(n) ((char)(0x90 + (n)))
#define MARK_UINT32 ((char)0xce)
#define MARK_UINT64 ((char)0xcf)
#define MARK_INT64  ((char)0xd3)
#define HASH_BYTES  ((size_t)9)
/* size in bytes of a trailer, the fields length and h at the end of a frame */
#define TRAILER_BYTES ((size_t)14)
#define HEADER_VALUES 10
#define EVENT_VALUES  9
/* size in bytes of the smallest event: its type and its data have one byte each */
#define EVENT_BYTES_MIN ((size_t)43)
/* size of the beginning of a frame, in bytes: the array's first byte, length, seq and ts */
#define HEAD_BYTES ((size_t)24)
#define SEQ_AT     6
#define TS_AT      15
#define HEADER_MAGIC                                                                               \
    "\xa5"                                                                                         \
    "annal"

/* ---- Encoding ---- */

/* Write the length at the front and at the end of the frame, and h after it. */
static annal_status close_frame(struct buf *out, size_t start, uint64_t offset, uint64_t h_before,
                                uint64_t *out_h)
{
    uint32_t length = (uint32_t)(out->len - start + TRAILER_BYTES);
    annal_status status = annal__msgpack_put_uint32(out, length);
    if (status < 0)
        return status;
    memcpy(out->ptr + start + 1, out->ptr + out->len - 5, 5);
    uint64_t h = annal__hash(out->ptr + start, out->len - start, h_before ^ offset);
    status = annal__msgpack_put_uint64(out, h);
    if (status == ANNAL_OK)
        *out_h = h;
    return status;
}

static annal_status pack_file_id(struct buf *out, const uint8_t file[FRAME_FILE_ID_BYTES])
{
    return annal__msgpack_bin(out, (annal_slice){(const char *)file, FRAME_FILE_ID_BYTES});
}

/* Append the value `fork` of a header. The caller has reserved room for it. */
static void pack_fork(struct buf *out, const struct frame_header *header)
{
    if (header->fork.len == 0) {
        (void)annal__msgpack_nil(out);
        return;
    }
    (void)annal__msgpack_array(out, 3);
    (void)annal__msgpack_str(out, header->fork);
    (void)annal__msgpack_uint(out, header->fork_seq);
    (void)annal__msgpack_uint(out, header->fork_h);
}

static annal_status encode_header(struct buf *out, const struct frame_header *header,
                                  uint64_t *out_h)
{
    annal_status status = annal__buf_reserve(out, FRAME_ENVELOPE_BYTES);
    if (status < 0)
        return status;
    size_t start = out->len;
    (void)annal__msgpack_array(out, HEADER_VALUES);
    (void)annal__msgpack_put_uint32(out, 0);
    (void)annal__msgpack_str(out, ANNAL_SLICE("annal"));
    (void)annal__msgpack_uint(out, FRAME_VERSION);
    (void)annal__msgpack_str(out, header->session);
    (void)pack_file_id(out, header->file);
    (void)annal__msgpack_put_int64(out, header->created_us);
    pack_fork(out, header);
    status = header->is_replacement ? pack_file_id(out, header->replaces) : annal__msgpack_nil(out);
    return status < 0 ? status : close_frame(out, start, 0, 0, out_h);
}

static annal_status pack_optional(struct buf *out, annal_slice text)
{
    return text.len > 0 ? annal__msgpack_str(out, text) : annal__msgpack_nil(out);
}

static annal_status encode_event(struct buf *out, const annal_draft *draft,
                                 const struct frame_place *place, uint64_t *out_h)
{
    ANNAL_ASSERT(draft->data_format == ANNAL_FORMAT_MSGPACK);
    annal_status status = annal__buf_reserve(out, draft->data.len + FRAME_ENVELOPE_BYTES);
    if (status < 0)
        return status;
    /* No call below can fail, because room for all bytes is reserved. */
    size_t start = out->len;
    (void)annal__msgpack_array(out, EVENT_VALUES);
    (void)annal__msgpack_put_uint32(out, 0);
    (void)annal__msgpack_put_uint64(out, place->seq);
    (void)annal__msgpack_put_int64(out, place->ts_us);
    (void)annal__msgpack_str(out, draft->type);
    (void)pack_optional(out, draft->id);
    (void)pack_optional(out, draft->cause);
    (void)annal__buf_append_slice(out, draft->data);
    return close_frame(out, start, place->offset, place->h_before, out_h);
}

/* ---- Reading ---- */

static bool read_trailer(annal_slice bytes, uint64_t *out_h)
{
    if (bytes.len < HASH_BYTES)
        return false;
    const char *at = bytes.ptr + bytes.len - HASH_BYTES;
    if (at[0] != MARK_UINT64)
        return false;
    *out_h = annal__msgpack_get_uint64(at + 1);
    return true;
}

/* Return true: any bytes may be the end of a frame, because its length, not a mark, shows where it
 * ends. */
static bool ends(annal_slice bytes)
{
    return bytes.len >= HASH_BYTES;
}

static uint64_t hash_frame(annal_slice frame, uint64_t offset, uint64_t h_before)
{
    return annal__hash(frame.ptr, frame.len - HASH_BYTES, h_before ^ offset);
}

static bool take_kind(annal_slice *rest, enum unpacked_kind kind, struct msgpack_value *out)
{
    return annal__msgpack_next(rest, out) && out->kind == kind;
}

static bool take_text(annal_slice *rest, annal_slice *out)
{
    struct msgpack_value value;
    if (!take_kind(rest, UNPACKED_STR, &value) || value.bytes.len == 0)
        return false;
    *out = value.bytes;
    return true;
}

static bool take_optional(annal_slice *rest, annal_slice *out)
{
    struct msgpack_value value;
    if (!annal__msgpack_next(rest, &value))
        return false;
    *out = value.bytes;
    return value.kind == UNPACKED_NIL || (value.kind == UNPACKED_STR && value.bytes.len > 0);
}

static bool take_file_id(annal_slice *rest, uint8_t out[FRAME_FILE_ID_BYTES], bool *out_given)
{
    struct msgpack_value value;
    if (!annal__msgpack_next(rest, &value))
        return false;
    *out_given = value.kind == UNPACKED_BIN && value.bytes.len == FRAME_FILE_ID_BYTES;
    if (*out_given)
        memcpy(out, value.bytes.ptr, FRAME_FILE_ID_BYTES);
    return *out_given || value.kind == UNPACKED_NIL;
}

static bool take_fork(annal_slice *rest, struct frame_header *header)
{
    struct msgpack_value value, seq, h;
    if (!annal__msgpack_next(rest, &value))
        return false;
    if (value.kind == UNPACKED_NIL)
        return true;
    if (value.kind != UNPACKED_ARRAY || value.count != 3 || !take_text(rest, &header->fork) ||
        !take_kind(rest, UNPACKED_UINT, &seq) || !take_kind(rest, UNPACKED_UINT, &h))
        return false;
    header->fork_seq = seq.uint;
    header->fork_h = h.uint;
    return true;
}

/* Return the length that the first bytes of a frame state, or 0 if these bytes do not begin a
 * frame. */
static size_t head_length(annal_slice bytes)
{
    if (bytes.len < HEAD_BYTES || (bytes.ptr[0] & ~15) != ARRAY_OF(0) ||
        bytes.ptr[1] != MARK_UINT32)
        return 0;
    bool is_event = bytes.ptr[SEQ_AT] == MARK_UINT64 && bytes.ptr[TS_AT] == MARK_INT64;
    bool is_header = memcmp(bytes.ptr + SEQ_AT, HEADER_MAGIC, sizeof HEADER_MAGIC - 1) == 0;
    size_t length = annal__msgpack_get_uint32(bytes.ptr + 2);
    return (is_event || is_header) && length >= EVENT_BYTES_MIN && length <= FRAME_BYTES_MAX
               ? length
               : 0;
}

static bool parse_event(annal_slice frame, annal_event *out_event)
{
    if (frame.len < EVENT_BYTES_MIN || frame.ptr[0] != ARRAY_OF(EVENT_VALUES) ||
        head_length(frame) != frame.len)
        return false;
    annal_slice rest = {frame.ptr + HEAD_BYTES, frame.len - HEAD_BYTES - TRAILER_BYTES};
    annal_event event = {.seq = annal__msgpack_get_uint64(frame.ptr + SEQ_AT + 1),
                         .ts_us = (int64_t)annal__msgpack_get_uint64(frame.ptr + TS_AT + 1),
                         .format = ANNAL_FORMAT_MSGPACK};
    if (event.seq == 0 || !take_text(&rest, &event.type) || !take_optional(&rest, &event.id) ||
        !take_optional(&rest, &event.cause) || rest.len == 0)
        return false;
    event.data = rest;
    *out_event = event;
    return true;
}

/* Parse the values after the version, up to the trailer. */
static bool parse_rest_of_header(annal_slice rest, struct frame_header *header)
{
    bool given = false;
    if (!take_text(&rest, &header->session) || !take_file_id(&rest, header->file, &given) ||
        !given || rest.len < 9 || rest.ptr[0] != MARK_INT64)
        return false;
    header->created_us = (int64_t)annal__msgpack_get_uint64(rest.ptr + 1);
    rest.ptr += 9;
    rest.len -= 9;
    return take_fork(&rest, header) &&
           take_file_id(&rest, header->replaces, &header->is_replacement) && rest.len == 0;
}

static bool parse_header(annal_slice frame, struct frame_header *out_header)
{
    struct frame_header header = {0};
    struct msgpack_value version;
    size_t magic = SEQ_AT + sizeof HEADER_MAGIC - 1;
    if (frame.len < EVENT_BYTES_MIN || head_length(frame) != frame.len ||
        memcmp(frame.ptr + SEQ_AT, HEADER_MAGIC, sizeof HEADER_MAGIC - 1) != 0)
        return false;
    annal_slice rest = {frame.ptr + magic, frame.len - magic - TRAILER_BYTES};
    if (!take_kind(&rest, UNPACKED_UINT, &version) || version.uint == 0 ||
        version.uint > UINT32_MAX)
        return false;
    bool fits = frame.ptr[0] == ARRAY_OF(HEADER_VALUES) && parse_rest_of_header(rest, &header) &&
                annal__envelope_header_fits(&header);
    if (!fits && version.uint <= FRAME_VERSION)
        return false;
    if (!fits)
        header = (struct frame_header){0};
    header.version = (uint32_t)version.uint;
    *out_header = header;
    return true;
}

/* ---- Finding frames ---- */

/* Return whether the bytes before `end` are a trailer (the last fields of a frame) that states this
 * length. */
static bool tail_agrees(const char *end, size_t length)
{
    return end[-14] == MARK_UINT32 && end[-9] == MARK_UINT64 &&
           annal__msgpack_get_uint32(end - 13) == length;
}

static annal_slice behind(annal_slice bytes, size_t count)
{
    return (annal_slice){bytes.ptr + count, bytes.len - count};
}

/* Return the offset, greater than 0, at which the next complete frame begins; 0 if no frame begins,
 * or if more bytes are needed to find out. */
static size_t find_next(annal_slice bytes, bool all)
{
    for (size_t at = 1; at + HEAD_BYTES <= bytes.len; at++) {
        const char *mark = memchr(bytes.ptr + at + 1, MARK_UINT32, bytes.len - at - 1);
        if (mark == NULL)
            break;
        at = (size_t)(mark - bytes.ptr) - 1;
        size_t length = head_length(behind(bytes, at));
        if (length == 0)
            continue;
        if (length <= bytes.len - at && tail_agrees(bytes.ptr + at + length, length))
            return at;
        if (length > bytes.len - at && !all)
            break;
    }
    return 0;
}

static size_t measure(annal_slice bytes, size_t searched, bool all)
{
    (void)searched;
    size_t length = head_length(bytes);
    if (length > bytes.len && !all)
        return 0;
    if (length > 0 && length <= bytes.len) {
        if (tail_agrees(bytes.ptr + length, length))
            return length;
        /* The trailer or the length of this frame is damaged: if a frame follows, the length is
         * right. */
        annal_slice next = behind(bytes, length);
        if (next.len < HEAD_BYTES && !all)
            return 0;
        if (head_length(next) > 0)
            return length;
    }
    return find_next(bytes, all);
}

static bool find_last(annal_slice bytes, size_t *out_start, size_t *out_end)
{
    size_t end = bytes.len;
    while (end >= EVENT_BYTES_MIN) {
        const char *mark = memrchr(bytes.ptr, MARK_UINT64, end - HASH_BYTES + 1);
        if (mark == NULL)
            return false;
        end = (size_t)(mark - bytes.ptr) + HASH_BYTES;
        if (end < EVENT_BYTES_MIN)
            return false;
        size_t length = annal__msgpack_get_uint32(bytes.ptr + end - 13);
        if (length >= EVENT_BYTES_MIN && length <= end && tail_agrees(bytes.ptr + end, length) &&
            head_length(behind(bytes, end - length)) == length) {
            *out_start = end - length;
            *out_end = end;
            return true;
        }
        end--;
    }
    return false;
}

/* Return whether at least two of three properties of a trailer are present. One damaged byte leaves
 * two, and data rarely has two by chance. */
static bool has_trailer(const char *end, size_t length)
{
    return (end[-14] == MARK_UINT32) + (end[-9] == MARK_UINT64) +
               (annal__msgpack_get_uint32(end - 13) == length) >=
           2;
}

static bool was_whole(annal_slice bytes)
{
    size_t length = head_length(bytes);
    return (length > 0 && length <= bytes.len && has_trailer(bytes.ptr + length, length)) ||
           has_trailer(bytes.ptr + bytes.len, bytes.len);
}

const struct codec annal__codec_msgpack = {
    .format = ANNAL_FORMAT_MSGPACK,
    .suffix = ".mpk",
    .trailer_bytes = HASH_BYTES,
    .event_bytes_min = EVENT_BYTES_MIN,
    .encode_header = encode_header,
    .encode_event = encode_event,
    .measure = measure,
    .trailer = read_trailer,
    .ends = ends,
    .hash = hash_frame,
    .parse_event = parse_event,
    .parse_header = parse_header,
    .find_last = find_last,
    .was_whole = was_whole,
};
