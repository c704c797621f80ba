/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/json_halves.h"

#include <string.h>

enum { ESCAPE = 6, PAIR = 2 * ESCAPE };

bool annal__json_has_halves(annal_slice json)
{
    const char *at = json.ptr, *end = json.len == 0 ? at : at + json.len;
    while (end - at >= ESCAPE && (at = memchr(at, '\\', (size_t)(end - at) - ESCAPE + 1)) != NULL) {
        if (at[1] == 'u' && (at[2] | 0x20) == 'd')
            return true;
        at += 2;
    }
    return false;
}

static int nibble(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* Return whether the bytes are "\ud" and a hex digit from low to high; bytes after len are not
 * compared. */
static bool is_half(const char *at, size_t len, int low, int high)
{
    return (len < 1 || at[0] == '\\') && (len < 2 || at[1] == 'u') &&
           (len < 3 || nibble(at[2]) == 0xd) &&
           (len < 4 || (nibble(at[3]) >= low && nibble(at[3]) <= high));
}

size_t annal__json_mend_halves(char *text, size_t len, bool last)
{
    char *slash;
    size_t at = 0;
    while (at < len && (slash = memchr(text + at, '\\', len - at)) != NULL) {
        at = (size_t)(slash - text);
        size_t left = len - at;
        if (left < 2 || (slash[1] == 'u' && left < ESCAPE))
            return last ? len : at;
        bool first = is_half(slash, left, 0x8, 0xb);
        bool pair = first && is_half(slash + ESCAPE, left - ESCAPE, 0xc, 0xf);
        if (pair && left < PAIR && !last)
            return at;
        pair = pair && left >= PAIR;
        if (!pair && (first || is_half(slash, left, 0xc, 0xf)))
            memcpy(slash + 2, "fffd", 4);
        at += slash[1] != 'u' ? 2 : pair ? PAIR : ESCAPE;
    }
    return len;
}

void annal__json_text_mend_halves(char *text, size_t len)
{
    char *at = text, *end = len == 0 ? text : text + len;
    while (end - at >= 3 && (at = memchr(at, 0xED, (size_t)(end - at) - 2)) != NULL) {
        if (((unsigned char)at[1] & 0xE0) == 0xA0 && ((unsigned char)at[2] & 0xC0) == 0x80)
            memcpy(at, "\xEF\xBF\xBD", 3);
        at++;
    }
}
