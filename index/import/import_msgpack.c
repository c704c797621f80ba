/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQL function msgpack_json(): convert msgpack of other programs to JSON without loss. Values
 * that JSON cannot express are wrapped: bytes, and strings that are not UTF-8, are {"$base64":"…"};
 * an ext is {"$ext":type,"data":…}, in which data is decoded if it is msgpack itself; a key that is
 * not a string becomes its JSON text; NaN and infinities are strings.
 */
#include "index/import/import.h"
#include "journal/base/base64.h"
#include "journal/base/json.h"
#include "journal/base/msgpack.h"

#include <inttypes.h>
#include <math.h>

/* deepest nesting; deeper nested data could not be an event's data */
#define DEPTH_MAX 400

static annal_status put_value(struct buf *out, annal_slice *rest, int depth);

static annal_status put_bytes(struct buf *out, annal_slice bytes)
{
    annal__buf_printf(out, "{\"$base64\":\"");
    annal__base64_put(out, bytes);
    return annal__buf_append(out, "\"}", 2);
}

static annal_status put_ext(struct buf *out, const struct msgpack_value *ext, int depth)
{
    annal_status status = annal__buf_printf(out, "{\"$ext\":%d,\"data\":", ext->ext_type);
    size_t begin = out->len;
    annal_slice rest = ext->bytes;
    if (status >= 0)
        status = put_value(out, &rest, depth + 1);
    if (status == ANNAL_ERR_INVALID || (status >= 0 && rest.len > 0)) {
        annal__buf_cut(out, begin);
        status = put_bytes(out, ext->bytes);
    }
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}

static annal_status put_array(struct buf *out, uint32_t count, annal_slice *rest, int depth)
{
    annal_status status = annal__buf_append(out, "[", 1);
    for (uint32_t i = 0; status >= 0 && i < count; i++) {
        if (i > 0)
            status = annal__buf_append(out, ",", 1);
        if (status >= 0)
            status = put_value(out, rest, depth + 1);
    }
    return status < 0 ? status : annal__buf_append(out, "]", 1);
}

static annal_status put_key(struct buf *out, annal_slice *rest, int depth)
{
    SCOPED_BUF key = {.limit = out->limit};
    annal_slice ahead = *rest;
    struct msgpack_value head;
    if (annal__msgpack_next(&ahead, &head) && head.kind == UNPACKED_STR &&
        annal__json_is_utf8(head.bytes))
        return put_value(out, rest, depth);
    annal_status status = put_value(&key, rest, depth);
    return status < 0 ? status : annal__json_quote(out, annal__buf_slice(&key));
}

static annal_status put_map(struct buf *out, uint32_t count, annal_slice *rest, int depth)
{
    annal_status status = annal__buf_append(out, "{", 1);
    for (uint32_t i = 0; status >= 0 && i < count; i++) {
        if (i > 0)
            status = annal__buf_append(out, ",", 1);
        if (status >= 0)
            status = put_key(out, rest, depth + 1);
        if (status >= 0)
            status = annal__buf_append(out, ":", 1);
        if (status >= 0)
            status = put_value(out, rest, depth + 1);
    }
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}

/* Append the next value in rest as JSON. ANNAL_ERR_INVALID: no valid value follows, or it is nested
 * too deep. */
static annal_status put_value(struct buf *out, annal_slice *rest, int depth)
{
    struct msgpack_value value;
    if (depth > DEPTH_MAX || !annal__msgpack_next(rest, &value))
        return ANNAL_ERR_INVALID;
    switch (value.kind) {
    case UNPACKED_NIL:
        return annal__buf_printf(out, "null");
    case UNPACKED_BOOL:
        return annal__buf_printf(out, value.boolean ? "true" : "false");
    case UNPACKED_UINT:
        return annal__buf_printf(out, "%" PRIu64, value.uint);
    case UNPACKED_INT:
        return annal__buf_printf(out, "%" PRId64, value.sint);
    case UNPACKED_DOUBLE:
        return annal__buf_printf(out, isfinite(value.real) ? "%.17g" : "\"%g\"", value.real);
    case UNPACKED_STR:
        return annal__json_is_utf8(value.bytes) ? annal__json_quote(out, value.bytes)
                                                : put_bytes(out, value.bytes);
    case UNPACKED_BIN:
        return put_bytes(out, value.bytes);
    case UNPACKED_EXT:
        return put_ext(out, &value, depth);
    case UNPACKED_ARRAY:
        return put_array(out, value.count, rest, depth);
    case UNPACKED_MAP:
        return put_map(out, value.count, rest, depth);
    }
    return ANNAL_ERR_INVALID;
}

annal_status annal__import_msgpack(struct buf *out, annal_slice msgpack)
{
    annal_status status = put_value(out, &msgpack, 0);
    return status >= 0 && msgpack.len > 0 ? ANNAL_ERR_INVALID : status;
}
