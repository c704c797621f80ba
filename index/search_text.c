#include "index/search_text.h"

#include "journal/base/json_walk.h"

#include <annal/artifact.h>

#include <string.h>

#define ENCODED_BYTES_MIN 512 /* a shorter one may be a word */

static bool is_text(annal_slice slice, const char *text)
{
    return slice.len == strlen(text) && memcmp(slice.ptr, text, slice.len) == 0;
}

/* Base64, also as a data URL: nobody looks for that, and an index of it is large. */
static bool is_encoded(annal_slice raw)
{
    if (raw.len < ENCODED_BYTES_MIN)
        return false;
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && strchr("+/=-_:;,\\", c) == NULL)
            return false;
    }
    return true;
}

static annal_status add_line(struct buf *out, annal_slice text)
{
    annal_status status = ANNAL_OK;
    if (out->len > 0)
        status = annal__buf_append(out, "\n", 1);
    return status < 0 ? status : annal__buf_append_slice(out, text);
}

/* raw with its quotes. */
static annal_status add_string(struct buf *out, annal_slice raw, struct buf *scratch)
{
    annal_slice text;
    if (is_encoded((annal_slice){raw.ptr + 1, raw.len - 2}))
        return ANNAL_OK;
    scratch->len = 0;
    annal_status status = annal__json_text(raw, scratch, &text);
    if (status == ANNAL_ERR_INVALID) { /* half a character in it: the rest is text all the same */
        text = (annal_slice){raw.ptr + 1, raw.len - 2};
        status = ANNAL_OK;
    }
    if (status >= 0 && text.len > SEARCH_TEXT_MAX)
        text.len = SEARCH_TEXT_MAX;
    return status < 0 || text.len == 0 ? status : add_line(out, text);
}

/* The quote that ends the string at at[0] == '"'. */
static const char *string_end(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\';
    return at;
}

/* Members that name or classify, and say nothing: "type", "id", "call_id". */
static bool is_label(annal_slice name)
{
    return is_text(name, "\"type\"") || is_text(name, "\"id\"") ||
           (name.len > 5 && memcmp(name.ptr + name.len - 4, "_id\"", 4) == 0);
}

/* Every string in value that is said, in one pass however deep it is nested. */
static annal_status add_strings(struct buf *out, annal_slice value, struct buf *scratch)
{
    const char *at = value.ptr, *end = value.ptr + value.len;
    annal_status status = ANNAL_OK;
    bool labels = false; /* the name before it does */
    while (status >= 0 && out->len < SEARCH_TEXT_MAX &&
           (at = memchr(at, '"', (size_t)(end - at))) != NULL) {
        const char *begin = at;
        at = string_end(at, end) + 1;
        const char *next = at;
        while (next < end && strchr(" \t\r\n", *next) != NULL)
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
    return taking->status < 0 || taking->room == 0; /* 1 stops */
}

/* One that is gone or damaged says nothing. */
static annal_status add_artifact(annal_store *store, annal_slice session, annal_slice reference,
                                 struct buf *out, struct buf *scratch)
{
    annal_slice sha256;
    annal_slice raw = annal__json_member(reference, "sha256");
    if (raw.len < 2 || raw.ptr[0] != '"' || out->len >= SEARCH_TEXT_MAX)
        return ANNAL_OK;
    scratch->len = 0;
    annal_status status = annal__json_text(raw, scratch, &sha256);
    if (status < 0)
        return status == ANNAL_ERR_INVALID ? ANNAL_OK : status;
    size_t before = out->len;
    struct taking taking = {.out = out, .room = SEARCH_TEXT_MAX - out->len};
    if (before > 0)
        taking.status = annal__buf_append(out, "\n", 1);
    if (taking.status >= 0 &&
        annal_artifact_read(store, session, sha256, take_piece, &taking, NULL, NULL) < 0)
        out->len = before;
    return taking.status;
}

/* What is no text of the event: who said it, what it belongs to, how it was imported. */
static bool is_left_out(annal_slice name, annal_slice value, annal_slice type)
{
    if (value.ptr[0] == '{')
        return is_text(name, "\"source\"") ||
               (is_text(name, "\"extra\"") && !is_text(type, "import.record"));
    return is_text(name, "\"role\"") || is_label(name);
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
    struct buf scratch = {0};
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
    annal__buf_done(&scratch);
    return status;
}
