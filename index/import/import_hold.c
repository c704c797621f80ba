/* SPDX-License-Identifier: Apache-2.0 */
/* Wrapping lines that are not JSON in JSON. */
#include "index/import/import.h"

#include "journal/base/base64.h"
#include "journal/base/json.h"

#include <inttypes.h>
#include <string.h>

#define ZEROS_MIN 16

static annal_status append_text(struct buf *out, annal_slice bytes)
{
    return annal__json_put(out, ",\"text\":?", bytes);
}

static annal_status append_bytes(struct buf *out, annal_slice bytes)
{
    annal__buf_printf(out, ",\"base64\":\"");
    annal__base64_put(out, bytes);
    return annal__buf_append(out, "\"", 1);
}

/*
 * Return whether all bytes are zero, as after a power cut; only their number is then stored.
 */
static bool is_zeros(annal_slice bytes)
{
    return bytes.len >= ZEROS_MIN && bytes.ptr[0] == '\0' &&
           memcmp(bytes.ptr, bytes.ptr + 1, bytes.len - 1) == 0;
}

/*
 * Return whether bytes are stored as text: they are UTF-8, and have so few control characters,
 * which take six bytes each in JSON, that base64 would not be shorter.
 */
static bool is_text(annal_slice bytes)
{
    size_t escapes = 0;
    for (size_t i = 0; i < bytes.len; i++)
        escapes += (unsigned char)bytes.ptr[i] < 0x20;
    return escapes * 15 < bytes.len + 64 && annal__json_is_utf8(bytes);
}

annal_status annal__import_hold(struct buf *out, const annal_import_line *line, const char *reason)
{
    annal_status status = annal__buf_printf(out, "{\"reason\":\"%s\"", reason);
    if (status >= 0 && line->part > 0)
        status = annal__buf_printf(out, ",\"part\":%" PRIu32, line->part);
    if (status >= 0 && is_zeros(line->bytes))
        status = annal__buf_printf(out, ",\"zero_bytes\":%zu", line->bytes.len);
    else if (status >= 0)
        status =
            is_text(line->bytes) ? append_text(out, line->bytes) : append_bytes(out, line->bytes);
    return annal__buf_append(out, "}", 1);
}
