/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/width.h"

size_t width_decode(const char *text, wchar_t *out)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t len = c[0] < 0x80 ? 1 : c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : c[0] >= 0xc0 ? 2 : 1;
    wchar_t value = (wchar_t)(len == 1 ? c[0] : c[0] & (0x7f >> len));
    for (size_t i = 1; i < len; i++) {
        if ((c[i] & 0xc0) != 0x80) {
            *out = L'?';
            return i;
        }
        value = (value << 6) | (wchar_t)(c[i] & 0x3f);
    }
    *out = value;
    return len;
}

int width_of(wchar_t c)
{
    if (c >= ' ' && c <= '~')
        return 1; /* most characters: wcwidth() costs more */
    int width = wcwidth(c);
    return width < 0 ? 1 : width;
}

int width_of_text(const char *text)
{
    int width = 0;
    while (*text != '\0') {
        wchar_t c;
        text += width_decode(text, &c);
        width += width_of(c);
    }
    return width;
}

size_t width_fitting(const char *text, int columns)
{
    const char *at = text;
    while (*at != '\0') {
        wchar_t c;
        size_t len = width_decode(at, &c);
        columns -= width_of(c);
        if (columns < 0)
            break;
        at += len;
    }
    return (size_t)(at - text);
}
