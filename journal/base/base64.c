/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int value_of(char c)
{
    const char *found = c == '\0' ? NULL : strchr(digits, c);
    return found == NULL ? -1 : (int)(found - digits);
}

annal_status annal__base64_put(struct buf *out, annal_slice bytes)
{
    char *to;
    annal_status status = annal__buf_extend(out, (bytes.len + 2) / 3 * 4, &to);
    if (status < 0)
        return status;
    const unsigned char *from = (const unsigned char *)bytes.ptr;
    for (size_t i = 0; i < bytes.len; i += 3, to += 4) {
        size_t left = bytes.len - i;
        unsigned bits = (unsigned)from[i] << 16 | (left > 1 ? (unsigned)from[i + 1] << 8 : 0) |
                        (left > 2 ? from[i + 2] : 0u);
        to[0] = digits[bits >> 18];
        to[1] = digits[bits >> 12 & 63];
        to[2] = left > 1 ? digits[bits >> 6 & 63] : '=';
        to[3] = left > 2 ? digits[bits & 63] : '=';
    }
    return ANNAL_OK;
}

static size_t padding_of(annal_slice text)
{
    size_t padding = 0;
    while (padding < 2 && padding < text.len && text.ptr[text.len - 1 - padding] == '=')
        padding++;
    return padding;
}

bool annal__base64_check(annal_slice text)
{
    if (text.len % 4 != 0)
        return false;
    size_t padding = padding_of(text);
    int last = 0;
    for (size_t i = 0; i < text.len - padding; i++) {
        last = value_of(text.ptr[i]);
        if (last < 0)
            return false;
    }
    /* The bits of the last digit that encode no byte must be zero. */
    return padding == 0 || (last & (padding == 1 ? 3 : 15)) == 0;
}

annal_status annal__base64_take(struct buf *out, annal_slice text)
{
    size_t bytes = text.len / 4 * 3;
    char *to;
    annal_status status = annal__buf_extend(out, bytes, &to);
    if (status < 0 || bytes == 0)
        return status;
    for (size_t i = 0; i < text.len; i += 4, to += 3) {
        unsigned bits = 0;
        for (size_t j = 0; j < 4; j++) {
            int value = value_of(text.ptr[i + j]);
            /* a padding character counts as 0 */
            bits = bits << 6 | (value < 0 ? 0u : (unsigned)value);
        }
        to[0] = (char)(bits >> 16);
        to[1] = (char)(bits >> 8);
        to[2] = (char)bits;
    }
    out->len -= padding_of(text);
    return ANNAL_OK;
}
