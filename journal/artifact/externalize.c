/*
 * A large member of an event's data becomes an artifact.
 *
 * (1) Only members of the outermost object, and the first of those with that name, which is the one
 *     that SQLite's ->> finds.
 * (2) A string is stored as its text, so that the artifact is what the user wrote. A string that is
 *     not text, because it has half a surrogate pair, and any other value, is stored as its JSON,
 *     byte for byte. media_type says which.
 * (3) The rest of data is unchanged, byte for byte.
 * (4) Data that is not one JSON object is left alone: the append reports what is wrong with it.
 */
#include "journal/artifact/names.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/sys/artifact.h"

#include <annal/artifact.h>

#include <inttypes.h>
#include <string.h>

#define REFERENCE "_ref"

/* ---- Walking over JSON that was checked ---- */

static void skip_space(annal_slice *rest)
{
    while (rest->len > 0 && memchr(" \t\r\n,:", *rest->ptr, 6) != NULL) {
        rest->ptr++;
        rest->len--;
    }
}

static size_t string_length(annal_slice rest)
{
    size_t at = 1;
    while (rest.ptr[at] != '"')
        at += rest.ptr[at] == '\\' ? 2 : 1;
    return at + 1;
}

static size_t value_length(annal_slice rest)
{
    size_t at = 0, depth = 0;
    do {
        char c = rest.ptr[at];
        if (c == '"') {
            at += string_length((annal_slice){rest.ptr + at, rest.len - at});
            continue;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        at++;
    } while (depth > 0);
    if (memchr("\"{[", *rest.ptr, 3) == NULL) /* a number or a word */
        while (at < rest.len && memchr(" \t\r\n,}", rest.ptr[at], 6) == NULL)
            at++;
    return at;
}

static annal_slice take_value(annal_slice *rest)
{
    skip_space(rest);
    annal_slice value = {rest->ptr, value_length(*rest)};
    rest->ptr += value.len;
    rest->len -= value.len;
    return value;
}

static bool is_key(annal_slice key, const char *field, const char *suffix)
{
    size_t len = strlen(field), more = strlen(suffix);
    return key.len == len + more + 2 && memcmp(key.ptr + 1, field, len) == 0 &&
           memcmp(key.ptr + 1 + len, suffix, more) == 0;
}

/*
 * Rule (1): the member, from its key to the end of its value. False: there is nothing to move out.
 */
static bool find_member(annal_slice data, const char *field, annal_slice *out_member,
                        annal_slice *out_value)
{
    annal_slice rest = data;
    bool found = false;
    skip_space(&rest);
    if (rest.len == 0 || *rest.ptr != '{')
        return false;
    rest.ptr++;
    rest.len--;
    for (skip_space(&rest); rest.len > 0 && *rest.ptr != '}'; skip_space(&rest)) {
        annal_slice key = take_value(&rest);
        annal_slice value = take_value(&rest);
        if (is_key(key, field, REFERENCE))
            return false;
        if (!found && is_key(key, field, "")) {
            found = true;
            *out_value = value;
            *out_member = (annal_slice){key.ptr, (size_t)(value.ptr + value.len - key.ptr)};
        }
    }
    return found;
}

/* ---- Strings as text ---- */

static uint32_t hex4(const char *at)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        value = value << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return value;
}

static annal_status put_utf8(struct buf *out, uint32_t code)
{
    char bytes[4];
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(marks[len] | code);
    return annal__buf_append(out, bytes, len);
}

/* Decode one escape, at the character after the backslash. ANNAL_END: half a surrogate pair. */
static annal_status put_escape(struct buf *out, const char **at)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = *(*at)++;
    if (c != 'u')
        return annal__buf_append(out, &values[strchr(names, c) - names], 1);
    uint32_t code = hex4(*at);
    *at += 4;
    if (code >= 0xd800 && code < 0xe000) {
        if (code >= 0xdc00 || (*at)[0] != '\\' || (*at)[1] != 'u')
            return ANNAL_END;
        uint32_t low = hex4(*at + 2);
        if (low < 0xdc00 || low >= 0xe000)
            return ANNAL_END;
        *at += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    return put_utf8(out, code);
}

/* Rule (2). ANNAL_END if it is not text. */
static annal_status decode(annal_slice string, struct buf *out)
{
    const char *at = string.ptr + 1, *end = string.ptr + string.len - 1;
    annal_status status = annal__buf_reserve(out, string.len);
    while (at < end && status == ANNAL_OK) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        const char *stop = escape == NULL ? end : escape;
        status = annal__buf_append(out, at, (size_t)(stop - at));
        at = stop;
        if (escape != NULL && status == ANNAL_OK) {
            at++;
            status = put_escape(out, &at);
        }
    }
    return status;
}

/* ---- Putting it together ---- */

/* Rule (3). */
static annal_status put_reference(struct buf *out, annal_slice data, annal_slice member,
                                  const char *field, const char *media_type,
                                  const annal_artifact_info *info)
{
    const char *behind = member.ptr + member.len;
    annal_status status = annal__buf_append(out, data.ptr, (size_t)(member.ptr - data.ptr));
    if (status >= 0)
        status = annal__buf_printf(
            out,
            "\"%s" REFERENCE "\":{\"sha256\":\"%s\",\"bytes\":%" PRIu64
            ",\"media_type\":\"%s\",\"path\":\"artifacts/%s/%s" ARTIFACT_SUFFIX "\"}",
            field, info->sha256, info->bytes, media_type, info->session, info->sha256);
    if (status >= 0)
        status = annal__buf_append(out, behind, (size_t)(data.ptr + data.len - behind));
    return status;
}

annal_status annal__artifact_externalize(annal_store *store, annal_slice session, const char *field,
                                         uint64_t over_bytes, annal_slice data,
                                         annal_slice *out_data, annal_error *err)
{
    struct buf text = {0}, out = {0};
    annal_slice member, value, content;
    annal_artifact_info info;
    const char *media_type = "application/json";
    annal_status status = ANNAL_OK;
    bool wanted = data.len > over_bytes &&
                  annal__json_check(data, ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID &&
                  find_member(data, field, &member, &value) && value.len > over_bytes;
    if (!wanted)
        goto nothing;
    content = value;
    if (*value.ptr == '"') {
        status = decode(value, &text);
        if (status == ANNAL_OK) {
            content = annal__buf_slice(&text);
            media_type = "text/plain";
        }
    }
    if (status < 0) {
        status = annal__fail(err, status, "store '%s' of an event of session '%.*s'", field,
                             ANNAL_FMT(session));
        goto done;
    }
    if (content.len <= over_bytes)
        goto nothing;
    status = annal_artifact_put(store, session, content, &info, err);
    if (status < 0)
        goto done;
    status = put_reference(&out, data, member, field, media_type, &info);
    if (status < 0) {
        status = annal__fail(err, status, "an event of session '%.*s'", ANNAL_FMT(session));
        goto done;
    }
    *out_data = annal__buf_slice(&out);
    out = (struct buf){0}; /* now the caller's */
    goto done;

nothing:
    *out_data = (annal_slice){NULL, 0};
    status = ANNAL_OK;

done:
    annal__buf_done(&text);
    annal__buf_done(&out);
    return status;
}
