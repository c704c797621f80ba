/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/visible.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN_BYTES = 8 };

/* Return the number of bytes of the first character; 0 if the text ends within it; -1 if its bytes
 * are invalid. */
static int decode(const unsigned char *at, size_t len, unsigned *out_code)
{
    unsigned char c = at[0];
    size_t bytes = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    if (bytes == 0)
        return -1;
    unsigned code = bytes == 1 ? c : c & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if (i == len)
            return 0;
        /*
         * The range of the second byte excludes overlong forms, surrogates, and values beyond the
         * last character.
         */
        unsigned least = i > 1 ? 0x80 : c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        unsigned most = i > 1 ? 0xbf : c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (at[i] < least || at[i] > most)
            return -1;
        code = code << 6 | (at[i] & 0x3fu);
    }
    *out_code = code;
    return (int)bytes;
}

static bool is_harmless(unsigned code)
{
    if (code < 0xa0)
        return (code >= 0x20 && code < 0x7f) || code == '\n' || code == '\t';
    return code != 0x61c && code != 0x200e && code != 0x200f && (code < 0x2028 || code > 0x202e) &&
           (code < 0x2066 || code > 0x2069);
}

/* Convert the beginning of these bytes: plain bytes, or one character. *out_len is the number of
 * bytes converted; 0 if the character is incomplete. */
static annal_status add_next(struct buf *out, const unsigned char *at, size_t len, size_t *out_len)
{
    char shown[SHOWN_BYTES];
    unsigned code = 0;
    size_t plain = 0;
    while (plain < len && ((at[plain] >= 0x20 && at[plain] < 0x7f) || at[plain] == '\n'))
        plain++;
    *out_len = plain;
    if (plain > 0)
        return annal__buf_append(out, (const char *)at, plain);
    int bytes = decode(at, len, &code);
    if (bytes == 0 || (code == '\r' && bytes == 1 && len == 1))
        return ANNAL_OK;
    *out_len = bytes < 0 ? 1 : (size_t)bytes;
    if (bytes > 0 && (is_harmless(code) || (code == '\r' && at[1] == '\n')))
        return annal__buf_append(out, (const char *)at, *out_len);
    int shown_len = bytes < 0 ? snprintf(shown, sizeof shown, "\\x%02x", at[0])
                              : snprintf(shown, sizeof shown, "\\u%04x", code);
    return annal__buf_append(out, shown, (size_t)shown_len);
}

annal_status visible_add(struct visible *visible, struct buf *out, annal_slice piece)
{
    annal_status status = ANNAL_OK;
    size_t used = 0, len = 0;
    /* First complete the incomplete character with bytes of the piece. */
    while (status == ANNAL_OK && visible->held_len > 0 && used < piece.len) {
        visible->held[visible->held_len++] = (unsigned char)piece.ptr[used++];
        status = add_next(out, visible->held, visible->held_len, &len);
        while (status == ANNAL_OK && len > 0 && visible->held_len > 0) {
            visible->held_len -= len;
            memmove(visible->held, visible->held + len, visible->held_len);
            len = 0;
            if (visible->held_len > 0)
                status = add_next(out, visible->held, visible->held_len, &len);
        }
    }
    while (status == ANNAL_OK && used < piece.len) {
        status = add_next(out, (const unsigned char *)piece.ptr + used, piece.len - used, &len);
        if (len == 0)
            break;
        used += len;
    }
    if (status == ANNAL_OK && used < piece.len) {
        visible->held_len = piece.len - used;
        memcpy(visible->held, piece.ptr + used, visible->held_len);
    }
    return status;
}

annal_status visible_end(struct visible *visible, struct buf *out)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < visible->held_len && status == ANNAL_OK; i++) {
        unsigned char c = visible->held[i];
        status = annal__buf_printf(out, c == '\r' ? "\\u%04x" : "\\x%02x", c);
    }
    visible->held_len = 0;
    return status;
}

annal_status visible_append(struct buf *out, annal_slice text)
{
    struct visible visible = {0};
    annal_status status = visible_add(&visible, out, text);
    return status == ANNAL_OK ? visible_end(&visible, out) : status;
}
