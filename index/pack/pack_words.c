/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a pack's text: globs, paths, fields, numbers. */
#include "index/pack/pack.h"

#include <ctype.h>
#include <string.h>

bool annal__pack_is_space(char c)
{
    return c == ' ' || c == '\t';
}

annal_slice annal__pack_take_word(annal_slice *rest)
{
    while (rest->len > 0 && annal__pack_is_space(*rest->ptr)) {
        rest->ptr++;
        rest->len--;
    }
    annal_slice word = {rest->ptr, 0};
    if (rest->len > 0 && *rest->ptr == '"') {
        const char *close = memchr(rest->ptr + 1, '"', rest->len - 1);
        word.len = close == NULL ? rest->len : (size_t)(close - rest->ptr) + 1;
    } else if (rest->len > 0 && *rest->ptr == ',') {
        word.len = 1;
    } else {
        while (word.len < rest->len && !annal__pack_is_space(rest->ptr[word.len]) &&
               rest->ptr[word.len] != ',')
            word.len++;
    }
    rest->ptr += word.len;
    rest->len -= word.len;
    return word;
}

bool annal__pack_is_field(annal_slice word)
{
    bool begins = true;
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];
        if (c == ':' && i + 1 < word.len && word.ptr[i + 1] == ':' && !begins) {
            begins = true;
            i++;
        } else if (isalpha((unsigned char)c) || c == '_' ||
                   (isdigit((unsigned char)c) && !begins)) {
            begins = false;
        } else {
            return false;
        }
    }
    return !begins;
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

bool annal__pack_is_path(annal_slice word, unsigned stars)
{
    if (word.len == 0 || word.len > 200)
        return false;
    char before = '/';
    for (size_t i = 0; i < word.len; before = word.ptr[i++]) {
        char c = word.ptr[i];
        bool first = before == '/';
        if (c == '*' && stars > 0)
            stars--;
        else if (c == '/' ? first : !is_name_char(c) || (first && !isalnum((unsigned char)c)))
            return false;
    }
    return before != '/';
}

/*
 * First parts of relative paths that belong to the store itself, and may not be databases or
 * folders of a pack (rule 1 of pack.c).
 */
static const char *const kept[] = {"events",    "commit",      "packs",     "locks",
                                   "snapshots", "artifacts",   "cursors",   "leases",
                                   "cluster",   "sessions.db", "search.db", "search.off"};

bool annal__pack_path_is_kept(annal_slice path, annal_slice star)
{
    const char *slash = memchr(path.ptr, '/', path.len);
    size_t len = slash == NULL ? path.len : (size_t)(slash - path.ptr);
    const char *at = memchr(path.ptr, '*', len);
    size_t before = at == NULL ? len : (size_t)(at - path.ptr);
    size_t after = at == NULL ? 0 : len - before - 1;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strlen(kept[i]) == before + after + (at == NULL ? 0 : star.len) &&
            memcmp(kept[i], path.ptr, before) == 0 &&
            (at == NULL || ((star.len == 0 || memcmp(kept[i] + before, star.ptr, star.len) == 0) &&
                            memcmp(kept[i] + before + star.len, at + 1, after) == 0)))
            return true;
    return false;
}

bool annal__pack_is_glob(annal_slice word)
{
    const char *star = memchr(word.ptr, '*', word.len);
    if (word.len == 0 || word.len > ANNAL_SESSION_ID_BYTES_MAX)
        return false;
    for (size_t i = 0; i < word.len; i++)
        if (!is_name_char(word.ptr[i]) && word.ptr + i != star)
            return false;
    return true;
}

bool annal__pack_parse_number(annal_slice word, uint32_t *out)
{
    *out = 0;
    for (size_t i = 0; i < word.len; i++) {
        if (!isdigit((unsigned char)word.ptr[i]))
            return false;
        *out = *out * 10 + (uint32_t)(word.ptr[i] - '0');
    }
    return word.len > 0 && word.len < 9;
}
