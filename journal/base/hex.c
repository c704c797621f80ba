/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/hex.h"

#include <string.h>

bool annal__hex_fits(const char *text, size_t len)
{
    size_t digits = 0;
    while (annal__is_hex(text[digits]))
        digits++;
    return digits == len && text[digits] == '\0';
}

static char *put_digits(char *out, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    return out;
}

void annal__hex_text(const uint8_t *bytes, size_t len, char *out)
{
    *put_digits(out, bytes, len) = '\0';
}

static uint8_t value_of(char digit)
{
    return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

bool annal__hex_read(const char *digits, size_t len, uint8_t *out)
{
    for (size_t i = 0; i < len; i++, digits += 2) {
        if (!annal__is_hex(digits[0]) || !annal__is_hex(digits[1]))
            return false;
        out[i] = (uint8_t)(value_of(digits[0]) << 4 | value_of(digits[1]));
    }
    return true;
}

annal_status annal__hex_append(struct buf *buf, annal_slice bytes)
{
    char *to;
    annal_status status = annal__buf_extend(buf, 2 * bytes.len, &to);
    if (status >= 0 && bytes.len > 0)
        put_digits(to, (const uint8_t *)bytes.ptr, bytes.len);
    return status;
}

annal_status annal__hex_quote(struct buf *buf, annal_slice bytes)
{
    annal__buf_append(buf, "\"", 1);
    annal__hex_append(buf, bytes);
    return annal__buf_append(buf, "\"", 1);
}
