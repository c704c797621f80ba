/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/importers.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define PATTERN_BYTES 256

bool importer_find(const char *kind, struct importer *out_importer)
{
    for (const struct importer_text *text = importer_texts; text->kind != NULL; text++) {
        if (strcmp(text->kind, kind) == 0) {
            *out_importer = (struct importer){text->kind, annal_slice_of(text->sql)};
            return true;
        }
    }
    return false;
}

/* ---- Directives ---- */

static bool begins(annal_slice line, const char *word)
{
    size_t len = strlen(word);
    return line.len >= len && memcmp(line.ptr, word, len) == 0;
}

static annal_slice next_line(annal_slice *rest)
{
    const char *end = rest->len > 0 ? memchr(rest->ptr, '\n', rest->len) : NULL;
    size_t len = end != NULL ? (size_t)(end - rest->ptr) : rest->len;
    annal_slice line = {rest->ptr, len};
    size_t taken = end != NULL ? len + 1 : len;
    *rest = (annal_slice){rest->ptr + taken, rest->len - taken};
    return line;
}

static bool is_section(annal_slice line)
{
    static const char *const sections[] = {"-- detect", "-- tables", "-- rows", "-- once",
                                           "-- batch"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (begins(line, sections[i]) && line.len == strlen(sections[i]))
            return true;
    return false;
}

/* What follows the directive; empty if the file does not have it. */
static annal_slice find_directive(annal_slice sql, const char *directive)
{
    char mark[64];
    int len = snprintf(mark, sizeof mark, "-- %s: ", directive);
    while (sql.len > 0) {
        annal_slice line = next_line(&sql);
        if (is_section(line))
            break;
        if (begins(line, mark))
            return (annal_slice){line.ptr + len, line.len - (size_t)len};
    }
    return (annal_slice){NULL, 0};
}

annal_slice importer_word(const struct importer *importer, const char *directive, size_t *at)
{
    annal_slice words = find_directive(importer->sql, directive);
    while (*at < words.len && words.ptr[*at] == ' ')
        (*at)++;
    size_t begin = *at;
    while (*at < words.len && words.ptr[*at] != ' ')
        (*at)++;
    return (annal_slice){words.ptr + begin, *at - begin};
}

/* Whether a name matches one of the directive's patterns, or name.zst does. */
static bool fits(const struct importer *importer, const char *directive, const char *name)
{
    size_t at = 0;
    for (annal_slice word; (word = importer_word(importer, directive, &at)).len > 0;) {
        char pattern[PATTERN_BYTES];
        snprintf(pattern, sizeof pattern, "%.*s", ANNAL_FMT(word));
        if (fnmatch(pattern, name, FNM_PATHNAME | FNM_PERIOD) == 0)
            return true;
        snprintf(pattern, sizeof pattern, "%.*s.zst", ANNAL_FMT(word));
        if (fnmatch(pattern, name, FNM_PATHNAME | FNM_PERIOD) == 0)
            return true;
    }
    return false;
}

bool importer_wants_file(const struct importer *importer, const char *name)
{
    size_t at = 0;
    if (importer_word(importer, "files", &at).len > 0)
        return fits(importer, "files", name);
    return fnmatch("*.jsonl", name, FNM_PERIOD) == 0 ||
           fnmatch("*.jsonl.zst", name, FNM_PERIOD) == 0;
}
