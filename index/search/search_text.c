/* SPDX-License-Identifier: Apache-2.0 */
#include "index/search/search_text.h"

#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"

#include <annal/artifact.h>

#include <ctype.h>
#include <string.h>

/* shortest text that counts as base64; a shorter text may be a word */
#define ENCODED_BYTES_MIN 512
/* shortest and longest line that encoders of base64 write; a hash in hex has at most 64 digits on
 * its own line */
#define ENCODED_LINE_MIN 60
#define ENCODED_LINE_MAX 76

static bool is_base64(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("+/=-_", c) != NULL);
}

/* Return the text after "data:image/png;base64," or a similar beginning, or text if it has no such
 * beginning. */
static annal_slice skip_data_url(annal_slice text)
{
    static const char mark[] = ";base64,";
    size_t head = text.len < 100 ? text.len : 100;
    const char *at = head > 5 && memcmp(text.ptr, "data:", 5) == 0
                         ? memmem(text.ptr, head, mark, sizeof mark - 1)
                         : NULL;
    if (at == NULL)
        return text;
    at += sizeof mark - 1;
    return (annal_slice){at, text.len - (size_t)(at - text.ptr)};
}

/*
 * Return whether a text is base64 in one line, or in lines of one length, as encoders write it.
 * Such a text is not indexed, because no user searches for it, and its index would be large. A list
 * of words or of hashes is not base64.
 */
static bool is_encoded(annal_slice text)
{
    size_t line = 0, width = 0;
    bool more_than_hex = false;
    text = skip_data_url(text);
    if (text.len < ENCODED_BYTES_MIN)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (is_base64(c)) {
            more_than_hex = more_than_hex || !isxdigit((unsigned char)c);
            line++;
        } else if (c == '\n') {
            if (width == 0)
                width = line;
            if (line != width || width < ENCODED_LINE_MIN || width > ENCODED_LINE_MAX)
                return false;
            line = 0;
        } else if (c != '\r') {
            return false;
        }
    }
    return more_than_hex && (width == 0 || line <= width);
}

static annal_status add_line(struct buf *out, annal_slice text)
{
    if (out->len > 0)
        annal__buf_append(out, "\n", 1);
    return annal__buf_append_slice(out, text);
}

/* Replace halves of surrogate pairs, which annal__json_decode() encodes in three bytes, by
 * U+FFFD. */
static void replace_halves(struct buf *text)
{
    for (size_t i = 0; i + 2 < text->len; i++)
        if ((unsigned char)text->ptr[i] == 0xed && (unsigned char)text->ptr[i + 1] >= 0xa0)
            memcpy(text->ptr + i, "\xef\xbf\xbd", 3);
}

/* Append a string on a line of its own, unless it is base64; raw includes its quotes. */
static annal_status add_string(struct buf *out, annal_slice raw, struct buf *scratch)
{
    annal_slice text = annal__json_inside(raw);
    annal_status status = ANNAL_OK;
    if (annal__json_is_escaped(raw)) {
        bool has_half = false;
        annal__buf_clear(scratch);
        status = annal__json_decode(raw, scratch, &has_half);
        if (has_half)
            replace_halves(scratch);
        text = annal__buf_slice(scratch);
    }
    if (status < 0 || text.len == 0 || is_encoded(text))
        return status;
    if (text.len > SEARCH_TEXT_MAX)
        text.len = SEARCH_TEXT_MAX;
    return add_line(out, text);
}

/* Return whether the name of a member says that its string is a type or an id: "type", "id",
 * "call_id". */
static bool is_label(annal_slice name)
{
    return annal__slice_is(name, "\"type\"") || annal__slice_is(name, "\"id\"") ||
           (name.len > 5 && memcmp(name.ptr + name.len - 4, "_id\"", 4) == 0);
}

/* Append every string in value, at any depth, except types and ids, in one pass. */
static annal_status add_strings(struct buf *out, annal_slice value, struct buf *scratch)
{
    const char *at = value.ptr, *end = value.ptr + value.len;
    annal_status status = ANNAL_OK;
    bool labels = false; /* whether the last name says that its string is a type or an id */
    while (status >= 0 && out->len < SEARCH_TEXT_MAX &&
           (at = memchr(at, '"', (size_t)(end - at))) != NULL) {
        const char *begin = at;
        at = annal__json_string_end(at, end);
        const char *next = at;
        while (next < end && annal__json_is_space(*next))
            next++;
        const annal_slice raw = {begin, (size_t)(at - begin)};
        bool is_name = next < end && *next == ':';
        if (!is_name && !labels)
            status = add_string(out, raw, scratch);
        labels = is_name && is_label(raw);
        if (at >= end)
            break;
    }
    return status;
}

/* ---- Artifacts ---- */

struct taking {
    struct buf *out;
    size_t room;
    annal_status status;
};

static int take_piece(void *arg, annal_slice piece)
{
    struct taking *taking = arg;
    size_t len = piece.len < taking->room ? piece.len : taking->room;
    taking->status = annal__buf_append(taking->out, piece.ptr, len);
    taking->room -= len;
    return taking->status < 0 || taking->room == 0; /* 1 ends the reading of the artifact */
}

/* Append the text of an artifact, unless it is missing or damaged. */
static annal_status add_artifact(annal_store *store, annal_slice session, annal_slice reference,
                                 struct buf *out, struct buf *scratch)
{
    annal_slice sha256;
    annal_slice raw = annal__json_member(reference, "sha256");
    if (raw.len < 2 || raw.ptr[0] != '"' || out->len >= SEARCH_TEXT_MAX)
        return ANNAL_OK;
    annal__buf_clear(scratch);
    annal_status status = annal__json_text(raw, scratch, &sha256);
    if (status < 0)
        return status == ANNAL_ERR_INVALID ? ANNAL_OK : status;
    size_t before = out->len;
    struct taking taking = {.out = out, .room = SEARCH_TEXT_MAX - out->len};
    if (before > 0)
        taking.status = annal__buf_append(out, "\n", 1);
    if (taking.status >= 0 &&
        annal_artifact_read(store, session, sha256, take_piece, &taking, NULL, NULL) < 0)
        annal__buf_cut(out, before);
    return taking.status;
}

/*
 * Return whether a member of data is left out: the role, types and ids, and what an import adds.
 */
static bool is_left_out(annal_slice name, annal_slice value, annal_slice type)
{
    if (value.ptr[0] == '{')
        return annal__slice_is(name, "\"source\"") ||
               (annal__slice_is(name, "\"extra\"") && !annal__slice_is(type, "import.record"));
    return annal__slice_is(name, "\"role\"") || is_label(name);
}

static bool ends_with_ref(annal_slice name)
{
    return name.len > 6 && memcmp(name.ptr + name.len - 5, "_ref\"", 5) == 0;
}

annal_status annal__search_text(annal_store *store, annal_slice session, const annal_event *event,
                                struct buf *out)
{
    struct json_walk walk;
    annal_slice name, value;
    SCOPED_BUF scratch = {0};
    annal_status status = ANNAL_OK;
    if (!annal__json_walk_object(&walk, event->data)) {
        status = add_strings(out, event->data, &scratch);
        walk = (struct json_walk){0};
    }
    while (status >= 0 && walk.at != NULL && annal__json_walk_next(&walk, &name, &value)) {
        if (value.ptr[0] == '{' && ends_with_ref(name))
            status = add_artifact(store, session, value, out, &scratch);
        else if (!is_left_out(name, value, event->type))
            status = add_strings(out, value, &scratch);
    }
    return status;
}
