#include "journal/base/json_walk.h"

#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(struct json_walk *walk)
{
    while (walk->at < walk->end && is_space(*walk->at))
        walk->at++;
}

/* Skip to the first quote that has an even number of backslashes before it. */
static void skip_string(struct json_walk *walk)
{
    const char *begin = ++walk->at, *quote;
    do {
        quote = memchr(walk->at, '"', (size_t)(walk->end - walk->at));
        walk->at = quote + 1;
        while (quote > begin && quote[-1] == '\\')
            quote--;
    } while ((walk->at - 1 - quote) % 2 != 0);
}

/* Skip an array or an object; brackets in strings do not count. */
static void skip_nested(struct json_walk *walk)
{
    size_t depth = 0;
    do {
        char c = *walk->at;
        if (c == '"') {
            skip_string(walk);
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        else if (c == '}' || c == ']')
            depth--;
        walk->at++;
    } while (depth > 0);
}

static annal_slice take_value(struct json_walk *walk)
{
    const char *begin = walk->at;
    if (*begin == '"') {
        skip_string(walk);
    } else if (*begin == '{' || *begin == '[') {
        skip_nested(walk);
    } else {
        while (walk->at < walk->end && strchr(",}] \t\r\n", *walk->at) == NULL)
            walk->at++;
    }
    return (annal_slice){begin, (size_t)(walk->at - begin)};
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

static annal_status put_utf8(struct buf *out, unsigned c)
{
    char bytes[4];
    size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len; i-- > 1; c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(first[len] | c);
    return annal__buf_append(out, bytes, len);
}

/* The escape at at[0] == '\\'; *out_used is its length. A lone surrogate is not a character. */
static annal_status unescape(const char *at, const char *end, struct buf *out, size_t *out_used)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    *out_used = 2;
    if (at[1] != 'u')
        return annal__buf_append(out, meanings + (strchr(letters, at[1]) - letters), 1);
    unsigned c = hex4(at + 2);
    *out_used = 6;
    if (c >= 0xd800 && c < 0xdc00 && end - at >= 12 && at[6] == '\\' && at[7] == 'u') {
        unsigned low = hex4(at + 8);
        if (low >= 0xdc00 && low < 0xe000) {
            *out_used = 12;
            return put_utf8(out, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
        }
    }
    if (c >= 0xd800 && c < 0xe000)
        return ANNAL_ERR_INVALID;
    return put_utf8(out, c);
}

annal_status annal__json_text(annal_slice raw, struct buf *scratch, annal_slice *out)
{
    const char *at = raw.ptr + 1, *end = raw.ptr + raw.len - 1;
    size_t begin = scratch->len;
    if (memchr(at, '\\', (size_t)(end - at)) == NULL) {
        *out = (annal_slice){at, (size_t)(end - at)};
        return ANNAL_OK;
    }
    while (at < end) {
        size_t used = 1;
        annal_status status =
            *at == '\\' ? unescape(at, end, scratch, &used) : annal__buf_append(scratch, at, 1);
        if (status < 0)
            return status;
        at += used;
    }
    *out = (annal_slice){scratch->ptr + begin, scratch->len - begin};
    return ANNAL_OK;
}

/* ---- Members ---- */

static bool begin(struct json_walk *walk, annal_slice value, char bracket)
{
    *walk = (struct json_walk){value.ptr, value.ptr + value.len};
    skip_space(walk);
    if (walk->at == walk->end || *walk->at != bracket)
        return false;
    walk->at++;
    return true;
}

/* Move to the next name or item; false at the closing bracket. */
static bool go_on(struct json_walk *walk)
{
    skip_space(walk);
    if (*walk->at == ',') {
        walk->at++;
        skip_space(walk);
    }
    return *walk->at != '}' && *walk->at != ']';
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
    skip_space(walk);
    walk->at++; /* the colon */
    skip_space(walk);
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
