/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/importers.h"

#include "journal/base/slice.h"

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

static bool has_line(annal_slice sql, const char *text)
{
    while (sql.len > 0)
        if (annal__slice_is(next_line(&sql), text))
            return true;
    return false;
}

bool importer_detects(const struct importer *importer)
{
    return has_line(importer->sql, "-- detect");
}

bool importer_reads_text(annal_slice sql)
{
    return has_line(sql, "-- text");
}

/* Return the position of the first word in the directive's next line after `from`; 0: no further
 * line. */
static size_t find_directive(annal_slice sql, const char *directive, size_t from)
{
    char mark[64];
    int len = snprintf(mark, sizeof mark, "-- %s: ", directive);
    annal_slice rest = {sql.ptr + from, sql.len - from};
    while (rest.len > 0) {
        annal_slice line = next_line(&rest);
        if (is_section(line))
            break;
        if (begins(line, mark))
            return (size_t)(line.ptr - sql.ptr) + (size_t)len;
    }
    return 0;
}

annal_slice importer_word(const struct importer *importer, const char *directive, size_t *at)
{
    annal_slice sql = importer->sql;
    if (*at == 0)
        *at = find_directive(sql, directive, 0);
    while (*at > 0 && *at < sql.len && strchr(" \n", sql.ptr[*at]) != NULL)
        *at = sql.ptr[*at] == ' ' ? *at + 1 : find_directive(sql, directive, *at + 1);
    size_t begin = *at;
    while (*at > 0 && *at < sql.len && strchr(" \n", sql.ptr[*at]) == NULL)
        (*at)++;
    return (annal_slice){sql.ptr + begin, *at - begin};
}

/* Return whether a name matches a pattern of the directive, with or without .zst at the end. */
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

/* Return the last `parts` names of a path, such as "logs/a.jsonl" for 2. */
static const char *last_parts(const char *path, int parts)
{
    const char *from = path + strlen(path);
    while (from > path && (from[-1] != '/' || --parts > 0))
        from--;
    return from;
}

bool importer_keeps_beside(const struct importer *importer, const char *path)
{
    return fits(importer, "beside", last_parts(path, 1));
}

bool importer_wants_text(const struct importer *importer, const char *path)
{
    return fits(importer, "texts", last_parts(path, 2));
}

bool importer_wants_file(const struct importer *importer, const char *path)
{
    size_t at = 0;
    const char *name = last_parts(path, 1);
    if (importer_keeps_beside(importer, path))
        return false;
    if (importer_wants_text(importer, path))
        return true;
    if (importer_word(importer, "files", &at).len > 0)
        return fits(importer, "files", name);
    return fnmatch("*.jsonl", name, FNM_PERIOD) == 0 ||
           fnmatch("*.jsonl.zst", name, FNM_PERIOD) == 0;
}
