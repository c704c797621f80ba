/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion of data between msgpack and JSON. The first byte says what the other bytes are.
 *
 * (1) msgpack that can be converted gives JSON on one line, and msgpack-c reads it too (up to 32
 *     levels). The JSON converts to the same value again, perhaps in other bytes: 1e040 in an ext
 *     of ours.
 * (2) JSON that the check accepts converts to msgpack, unless it is too deep or too large.
 *     msgpack-c reads the result; it converts to JSON of the same value, which converts to the same
 *     bytes of msgpack.
 * (3) A refusal leaves the buffer unchanged.
 * (4) A comparison of two values does not depend on their order.
 */
#include "journal/base/json.h"
#include "journal/json_msgpack.h"
#include "tests/fuzz/fuzz.h"

#include <msgpack.h>
#include <string.h>

#define MSGPACK_C_DEPTH 30

static size_t depth_of(annal_slice json)
{
    size_t depth = 0, deepest = 0;
    bool in_string = false;
    for (size_t i = 0; i < json.len; i++) {
        char c = json.ptr[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '[' || c == '{'))
            deepest = ++depth > deepest ? depth : deepest;
        else if (!in_string && (c == ']' || c == '}'))
            depth--;
    }
    return deepest;
}

static void ask_msgpack_c(annal_slice msgpack, annal_slice json)
{
    msgpack_unpacked unpacked;
    size_t offset = 0;
    if (depth_of(json) > MSGPACK_C_DEPTH)
        return;
    msgpack_unpacked_init(&unpacked);
    MUST(msgpack_unpack_next(&unpacked, msgpack.ptr, msgpack.len, &offset) ==
         MSGPACK_UNPACK_SUCCESS);
    MUST(offset == msgpack.len);
    msgpack_unpacked_destroy(&unpacked);
}

static bool equal(annal_format format_a, annal_slice a, annal_format format_b, annal_slice b)
{
    bool equal = false, other = false;
    MUST(annal__json_msgpack_equal(format_a, a, format_b, b, &equal, NULL) == ANNAL_OK);
    MUST(annal__json_msgpack_equal(format_b, b, format_a, a, &other, NULL) == ANNAL_OK);
    MUST(equal == other);
    return equal;
}

/* Refused, or turned into the other format and back into the same value. */
static void there_and_back(annal_format format, annal_slice input)
{
    annal_format to = format == ANNAL_FORMAT_JSON ? ANNAL_FORMAT_MSGPACK : ANNAL_FORMAT_JSON;
    annal_status (*forth)(annal_slice, struct buf *, annal_error *) =
        format == ANNAL_FORMAT_JSON ? annal__json_msgpack_from_json : annal__json_msgpack_to_json;
    annal_status (*back)(annal_slice, struct buf *, annal_error *) =
        format == ANNAL_FORMAT_JSON ? annal__json_msgpack_to_json : annal__json_msgpack_from_json;
    struct buf there = {0}, again = {0}, third = {0};
    annal_error err = {0};
    annal_status status = forth(input, &there, &err);
    if (status < 0) {
        MUST(there.len == 0 && err.message[0] != '\0');
        MUST(format == ANNAL_FORMAT_MSGPACK || status == ANNAL_ERR_LIMIT ||
             annal__json_check(input, ANNAL_DATA_DEPTH_MAX, NULL) != JSON_VALID);
        goto done;
    }
    MUST(equal(format, input, to, annal__buf_slice(&there)));
    MUST(back(annal__buf_slice(&there), &again, &err) == ANNAL_OK);
    MUST(equal(format, input, format, annal__buf_slice(&again)));
    MUST(forth(annal__buf_slice(&again), &third, NULL) == ANNAL_OK);
    MUST(equal(to, annal__buf_slice(&there), to, annal__buf_slice(&third)));
    MUST(format == ANNAL_FORMAT_MSGPACK ||
         (third.len == there.len && memcmp(third.ptr, there.ptr, there.len) == 0));
    annal_slice json = annal__buf_slice(format == ANNAL_FORMAT_JSON ? &again : &there);
    MUST(annal__json_check(json, ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID);
    MUST(memchr(json.ptr, '\n', json.len) == NULL);
    ask_msgpack_c(format == ANNAL_FORMAT_JSON ? annal__buf_slice(&there) : input, json);

done:
    annal__buf_done(&there);
    annal__buf_done(&again);
    annal__buf_done(&third);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    annal_slice input = {(const char *)bytes, len};
    uint8_t how = take_byte(&input);
    there_and_back(how % 2 == 0 ? ANNAL_FORMAT_JSON : ANNAL_FORMAT_MSGPACK, input);
    /* Anything may be compared with anything. */
    annal_slice rest = {input.ptr + input.len / 2, input.len - input.len / 2};
    input.len /= 2;
    (void)equal(how & 2 ? ANNAL_FORMAT_JSON : ANNAL_FORMAT_MSGPACK, input,
                how & 4 ? ANNAL_FORMAT_JSON : ANNAL_FORMAT_MSGPACK, rest);
    return 0;
}
