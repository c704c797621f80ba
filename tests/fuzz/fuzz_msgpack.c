/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data from one format to the other, and the bytes of a msgpack journal. The first byte says which:
 * '0' msgpack, '1' JSON, '2' a journal.
 *
 * (1) Accepted msgpack converts to JSON on one line that the check accepts; that converts to
 *     msgpack with the same value, which gives the same JSON.
 * (2) JSON that the check accepts converts to msgpack of the same value, unless it is too large.
 * (3) In any bytes, a frame that is found lies inside them, and so do its parts.
 */
#include "journal/base/json.h"
#include "journal/codec.h"
#include "journal/json_msgpack.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static bool same(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->ptr, b->ptr, a->len) == 0);
}

/* Rule (1). */
static void try_msgpack(annal_slice bytes)
{
    struct buf json = {0}, msgpack = {0}, again = {0};
    bool equal = false;
    if (annal__json_msgpack_to_json(bytes, &json, NULL) == ANNAL_OK) {
        annal_slice text = annal__buf_slice(&json);
        MUST(annal__json_check(text, ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID);
        MUST(memchr(text.ptr, '\n', text.len) == NULL);
        MUST(annal__json_msgpack_from_json(text, &msgpack, NULL) == ANNAL_OK);
        MUST(annal__json_msgpack_to_json(annal__buf_slice(&msgpack), &again, NULL) == ANNAL_OK);
        MUST(annal__json_msgpack_equal(ANNAL_FORMAT_MSGPACK, bytes, ANNAL_FORMAT_MSGPACK,
                                       annal__buf_slice(&msgpack), &equal, NULL) == ANNAL_OK);
        MUST(equal);
    } else {
        MUST(json.len == 0);
    }
    annal__buf_done(&json);
    annal__buf_done(&msgpack);
    annal__buf_done(&again);
}

/* Rule (2). */
static void try_json(annal_slice text)
{
    struct buf msgpack = {0}, back = {0}, again = {0};
    bool equal = false;
    annal_status status = annal__json_msgpack_from_json(text, &msgpack, NULL);
    bool valid = annal__json_check(text, ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID;
    MUST((status == ANNAL_OK) == valid);
    if (valid) {
        MUST(annal__json_msgpack_equal(ANNAL_FORMAT_JSON, text, ANNAL_FORMAT_MSGPACK,
                                       annal__buf_slice(&msgpack), &equal, NULL) == ANNAL_OK);
        MUST(equal);
        MUST(annal__json_msgpack_to_json(annal__buf_slice(&msgpack), &back, NULL) == ANNAL_OK);
        MUST(annal__json_msgpack_from_json(annal__buf_slice(&back), &again, NULL) == ANNAL_OK);
        MUST(same(&again, &msgpack));
    }
    annal__buf_done(&msgpack);
    annal__buf_done(&back);
    annal__buf_done(&again);
}

static bool is_inside(annal_slice part, annal_slice whole)
{
    return part.len == 0 || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

/* Rule (3). */
static void try_frames(annal_slice bytes)
{
    const struct codec *codec = &annal__codec_msgpack;
    annal_event event;
    struct frame_header header;
    size_t start = 0, end = 0;
    if (bytes.len == 0)
        return;
    size_t some = codec->measure(bytes, 0, false);
    size_t length = codec->measure(bytes, 0, true);
    MUST(length <= bytes.len);
    MUST(some == 0 || some == length);
    annal_slice frame = {bytes.ptr, length};
    if (length > 0 && codec->parse_event(frame, &event))
        MUST(is_inside(event.type, frame) && is_inside(event.id, frame) &&
             is_inside(event.cause, frame) && is_inside(event.data, frame));
    if (length > 0 && codec->parse_header(frame, &header))
        MUST(is_inside(header.session, frame) && is_inside(header.fork, frame));
    if (codec->find_last(bytes, &start, &end))
        MUST(start < end && end <= bytes.len);
    if (bytes.len >= codec->event_bytes_min)
        (void)codec->was_whole(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    annal_slice input = {(const char *)bytes, len};
    switch (take_byte(&input)) {
    case '0':
        try_msgpack(input);
        break;
    case '1':
        try_json(input);
        break;
    default:
        try_frames(input);
    }
    return 0;
}
