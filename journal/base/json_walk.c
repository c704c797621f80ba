/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/json_walk.h"

#include <string.h>

#define REPLACEMENT 0xfffd

/* Skip white space, commas and colons. In valid JSON no other bytes are at or below ' ' between
 * tokens. */
static void skip_between(struct json_walk *walk)
{
    while (walk->at < walk->end &&
           ((unsigned char)*walk->at <= ' ' || *walk->at == ',' || *walk->at == ':'))
        walk->at++;
}

/* Skip a string: move after the first quote that follows an even number of backslashes. */
static void skip_string(struct json_walk *walk)
{
    const char *begin = ++walk->at, *before;
    do {
        before = memchr(walk->at, '"', (size_t)(walk->end - walk->at));
        if (before == NULL) {
            walk->at = walk->end;
            return;
        }
        walk->at = before + 1;
        while (before > begin && before[-1] == '\\')
            before--;
    } while ((walk->at - 1 - before) % 2 != 0);
}

/* Skip an array or an object; brackets in strings are not counted. */
static void skip_nested(struct json_walk *walk)
{
    size_t depth = 0;
    do {
        char c = *walk->at;
        if (c == '"') {
            skip_string(walk);
            continue;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        walk->at++;
    } while (depth > 0 && walk->at < walk->end);
}

/* Skip a number, or true, false or null. */
static void skip_word(struct json_walk *walk)
{
    while (walk->at < walk->end && (unsigned char)*walk->at > ' ' && *walk->at != ',' &&
           *walk->at != ']' && *walk->at != '}')
        walk->at++;
}

/* Read the value that begins at walk->at. */
static annal_slice take_value(struct json_walk *walk)
{
    const char *begin = walk->at;
    if (*begin == '"')
        skip_string(walk);
    else if (*begin == '{' || *begin == '[')
        skip_nested(walk);
    else
        skip_word(walk);
    return (annal_slice){begin, (size_t)(walk->at - begin)};
}

bool annal__json_token(struct json_walk *walk, annal_slice *out_token)
{
    skip_between(walk);
    const char *begin = walk->at;
    if (begin == walk->end)
        return false;
    if (*begin == '"')
        skip_string(walk);
    else if (*begin == '{' || *begin == '[' || *begin == '}' || *begin == ']')
        walk->at++;
    else
        skip_word(walk);
    *out_token = (annal_slice){begin, (size_t)(walk->at - begin)};
    return true;
}

const char *annal__json_string_end(const char *at, const char *end)
{
    struct json_walk walk = {at, end};
    skip_string(&walk);
    return walk.at;
}

/* ---- Strings ---- */

static unsigned hex4(const char *digits)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = digits[i];
        unsigned digit = (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        value = value << 4 | digit;
    }
    return value;
}

size_t annal__json_utf8_put(unsigned code, char bytes[4])
{
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len; i-- > 1; code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(first[len] | code);
    return len;
}

unsigned annal__json_unescape(const char **at, const char *end)
{
    /* pairs of a letter and the character that its escape means */
    static const char letters[] = "b\bf\fn\nr\rt\t";
    char c = end - *at < 2 ? '\\' : (*at)[1];
    *at = end - *at < 2 ? end : *at + 2;
    if (c != 'u') {
        const char *pair = letters;
        while (*pair != '\0' && *pair != c)
            pair += 2;
        return (unsigned char)(*pair == '\0' ? c : pair[1]);
    }
    unsigned code = end - *at < 4 ? REPLACEMENT : hex4(*at);
    *at = end - *at < 4 ? end : *at + 4;
    if ((code & 0xfc00) != 0xd800 || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
        return code;
    unsigned low = hex4(*at + 2);
    if ((low & 0xfc00) != 0xdc00)
        return code;
    *at += 6;
    return 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
}

annal_status annal__json_decode(annal_slice raw, struct buf *out, bool *out_half)
{
    annal_slice text = annal__json_inside(raw);
    const char *at = text.ptr, *end = at + text.len;
    *out_half = false;
    for (;;) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        const char *stop = escape == NULL ? end : escape;
        annal_status status = annal__buf_append(out, at, (size_t)(stop - at));
        if (status < 0 || escape == NULL)
            return status;
        char bytes[4];
        unsigned code = annal__json_unescape(&stop, end);
        *out_half = *out_half || annal__is_half(code);
        status = annal__buf_append(out, bytes, annal__json_utf8_put(code, bytes));
        if (status < 0)
            return status;
        at = stop;
    }
}

annal_status annal__json_text(annal_slice raw, struct buf *scratch, annal_slice *out)
{
    size_t begin = scratch->len;
    bool half;
    annal_slice text = annal__json_inside(raw);
    if (annal__json_is_escaped(raw)) {
        annal_status status = annal__json_decode(raw, scratch, &half);
        if (status < 0 || half)
            return status < 0 ? status : ANNAL_ERR_INVALID;
        text = (annal_slice){scratch->ptr + begin, scratch->len - begin};
    }
    *out = text;
    return ANNAL_OK;
}

/* ---- Members ---- */

/* Begin to walk through an object or array; value may be empty (annal__json_member() found
 * nothing). Return false if value does not begin with this bracket. */
static bool begin(struct json_walk *walk, annal_slice value, char bracket)
{
    if (value.len == 0)
        value = ANNAL_SLICE("");
    *walk = (struct json_walk){.at = value.ptr, .end = value.ptr + value.len};
    skip_between(walk);
    bool good = walk->at < walk->end && *walk->at == bracket;
    walk->at = good ? walk->at + 1 : walk->end;
    return good;
}

/* Move to the next name or item; false at the closing bracket. */
static bool go_on(struct json_walk *walk)
{
    skip_between(walk);
    return walk->at < walk->end && *walk->at != '}' && *walk->at != ']';
}

bool annal__json_walk_object(struct json_walk *walk, annal_slice object)
{
    return begin(walk, object, '{');
}

bool annal__json_walk_next(struct json_walk *walk, annal_slice *out_name, annal_slice *out_value)
{
    if (!go_on(walk))
        return false;
    *out_name = take_value(walk);
    skip_between(walk);
    if (walk->at >= walk->end)
        return false;
    *out_value = take_value(walk);
    return true;
}

bool annal__json_walk_array(struct json_walk *walk, annal_slice array)
{
    return begin(walk, array, '[');
}

bool annal__json_walk_item(struct json_walk *walk, annal_slice *out_value)
{
    if (!go_on(walk))
        return false;
    *out_value = take_value(walk);
    return true;
}

annal_slice annal__json_member(annal_slice object, const char *path)
{
    struct json_walk walk;
    annal_slice name, value;
    size_t len = strcspn(path, ".");
    if (!annal__json_walk_object(&walk, object))
        return (annal_slice){0};
    while (annal__json_walk_next(&walk, &name, &value)) {
        if (name.len == len + 2 && memcmp(name.ptr + 1, path, len) == 0)
            return path[len] == '.' ? annal__json_member(value, path + len + 1) : value;
    }
    return (annal_slice){0};
}
