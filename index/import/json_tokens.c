/* SPDX-License-Identifier: Apache-2.0 */
#include "index/import/json_tokens.h"

#include "journal/base/alloc.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"

#include <string.h>

/* maximum number of tokens of a text that are listed; SQLite handles a text with more */
#define TOKENS_MAX 65536

/* Return whether a string contains an escape and is the name of a member. end: end of the complete
 * text. */
static bool is_odd_name(annal_slice raw, const char *end)
{
    const char *at = raw.ptr + raw.len;
    if (!annal__json_is_escaped(raw))
        return false;
    while (at < end && annal__json_is_space(*at))
        at++;
    return at < end && *at == ':';
}

/* List all tokens. A closing bracket is not a token; it only ends the token of its opening bracket.
 * Returns false if there are too many, or memory ran out. */
static bool list_all(struct json_tokens *text)
{
    uint32_t open[JSON_DEPTH_MAX];
    size_t depth = 0;
    struct json_walk walk = {text->json.ptr, text->json.ptr + text->json.len};
    const char *before = walk.at;
    annal_slice raw;
    while (annal__json_token(&walk, &raw)) {
        size_t gap = (size_t)(raw.ptr - before);
        text->spaced = text->spaced || gap > 1 || (gap == 1 && *before <= ' ');
        before = walk.at;
        if (*raw.ptr == '}' || *raw.ptr == ']') {
            struct json_token *opened = &text->tokens[open[--depth]];
            opened->len = (uint32_t)(walk.at - text->json.ptr) - opened->at;
            opened->next = (uint32_t)text->count;
            continue;
        }
        if (text->count == TOKENS_MAX)
            return false;
        struct json_token *token = annal__array_add(&text->tokens, &text->count, sizeof *token);
        if (token == NULL)
            return false;
        *token = (struct json_token){(uint32_t)(raw.ptr - text->json.ptr), (uint32_t)raw.len,
                                     (uint32_t)text->count};
        text->odd_names = text->odd_names || (*raw.ptr == '"' && is_odd_name(raw, walk.end));
        if (*raw.ptr == '{' || *raw.ptr == '[')
            open[depth++] = (uint32_t)text->count - 1;
    }
    return true;
}

struct json_tokens annal__json_tokens(annal_slice json)
{
    struct json_tokens text = {.json = json};
    text.whole = list_all(&text);
    return text;
}

void annal__json_tokens_done(struct json_tokens *text)
{
    annal__free(text->tokens);
    *text = (struct json_tokens){0};
}

/* ---- Paths ---- */

/*
 * Remove the next step, ".name", '."name"' or "[1]", from a path. Returns false if the path
 * continues in another way.
 */
static bool next_step(annal_slice *path, annal_slice *out_name, size_t *out_index)
{
    const char *at = path->ptr + 1, *end = path->ptr + path->len;
    *out_name = (annal_slice){NULL, 0};
    *out_index = 0;
    if (*path->ptr == '[') {
        const char *begin = at;
        for (; at < end && at - begin < 9 && *at >= '0' && *at <= '9'; at++)
            *out_index = *out_index * 10 + (size_t)(*at - '0');
        if (at == begin || at == end || *at != ']')
            return false;
        at++;
    } else if (*path->ptr == '.' && at < end && *at == '"') {
        const char *close = memchr(at + 1, '"', (size_t)(end - at - 1));
        if (close == NULL)
            return false;
        *out_name = (annal_slice){at + 1, (size_t)(close - at - 1)};
        at = close + 1;
    } else {
        const char *begin = at;
        while (at < end && *at != '.' && *at != '[')
            at++;
        *out_name = (annal_slice){begin, (size_t)(at - begin)};
        if (*path->ptr != '.' || at == begin)
            return false;
    }
    *path = (annal_slice){at, (size_t)(end - at)};
    return out_name->ptr == NULL || !annal__json_is_escaped(*out_name);
}

static enum json_found find_member(const struct json_tokens *text, annal_slice name,
                                   uint32_t *inout)
{
    const struct json_token *tokens = text->tokens;
    if (text->json.ptr[tokens[*inout].at] != '{')
        return JSON_MISSING;
    for (uint32_t i = *inout + 1; i < tokens[*inout].next; i = tokens[i + 1].next) {
        annal_slice key = {text->json.ptr + tokens[i].at + 1, tokens[i].len - 2};
        if (key.len == name.len && (key.len == 0 || *key.ptr == *name.ptr) &&
            memcmp(key.ptr, name.ptr, name.len) == 0) {
            *inout = i + 1;
            return JSON_FOUND;
        }
        if (text->odd_names && annal__json_is_escaped(key))
            return JSON_ASK;
    }
    return JSON_MISSING;
}

static enum json_found find_item(const struct json_tokens *text, size_t index, uint32_t *inout)
{
    const struct json_token *tokens = text->tokens;
    if (text->json.ptr[tokens[*inout].at] != '[')
        return JSON_MISSING;
    for (uint32_t i = *inout + 1; i < tokens[*inout].next; i = tokens[i].next)
        if (index-- == 0) {
            *inout = i;
            return JSON_FOUND;
        }
    return JSON_MISSING;
}

enum json_found annal__json_tokens_find(const struct json_tokens *text, annal_slice path,
                                        uint32_t *out_around, uint32_t *out_token)
{
    enum json_found found = JSON_FOUND;
    *out_around = *out_token;
    if (!text->whole || path.len == 0 || path.ptr[0] != '$')
        return JSON_ASK;
    path = (annal_slice){path.ptr + 1, path.len - 1};
    while (path.len > 0) {
        annal_slice name;
        size_t index;
        if (!next_step(&path, &name, &index))
            return JSON_ASK;
        if (found == JSON_MISSING)
            continue;
        *out_around = *out_token;
        found = name.ptr != NULL ? find_member(text, name, out_token)
                                 : find_item(text, index, out_token);
        if (found == JSON_ASK)
            return JSON_ASK;
    }
    return found;
}
