/* Lines that are not JSON, held in JSON. */
#include "index/import.h"

#include "journal/base/json.h"

#include <inttypes.h>

static annal_status append_base64(struct buf *out, annal_slice bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    annal_status status = annal__buf_reserve(out, bytes.len / 3 * 4 + 4);
    for (size_t i = 0; i < bytes.len && status >= 0; i += 3) {
        size_t left = bytes.len - i;
        uint32_t bits = (uint32_t)(unsigned char)bytes.ptr[i] << 16;
        if (left > 1)
            bits |= (uint32_t)(unsigned char)bytes.ptr[i + 1] << 8;
        if (left > 2)
            bits |= (unsigned char)bytes.ptr[i + 2];
        char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                        left > 1 ? digits[bits >> 6 & 63] : '=',
                        left > 2 ? digits[bits & 63] : '='};
        status = annal__buf_append(out, four, sizeof four);
    }
    return status;
}

static annal_status append_text(struct buf *out, annal_slice bytes)
{
    annal_status status = annal__buf_printf(out, ",\"text\":");
    return status < 0 ? status : annal__json_quote(out, bytes);
}

static annal_status append_bytes(struct buf *out, annal_slice bytes)
{
    annal_status status = annal__buf_printf(out, ",\"base64\":\"");
    if (status >= 0)
        status = append_base64(out, bytes);
    return status < 0 ? status : annal__buf_append(out, "\"", 1);
}

annal_status annal__import_hold(struct buf *out, const annal_import_line *line, const char *reason)
{
    annal_status status = annal__buf_printf(out, "{\"reason\":\"%s\"", reason);
    if (status >= 0 && line->part > 0)
        status = annal__buf_printf(out, ",\"part\":%" PRIu32, line->part);
    if (status >= 0)
        status = annal__is_utf8(line->bytes) ? append_text(out, line->bytes)
                                             : append_bytes(out, line->bytes);
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}
