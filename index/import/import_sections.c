/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of an importer's text; annal/import.h describes them. */
#include "index/import/import.h"
#include "journal/base/slice.h"

#include <string.h>

static const char *const marks[] = {"-- detect", "-- tables", "-- rows",  "-- copies", "-- repeats",
                                    "-- text",   "-- once",   "-- batch", "-- end"};

static bool is_mark(annal_slice line, const char *mark)
{
    while (line.len > 0 && (line.ptr[line.len - 1] == ' ' || line.ptr[line.len - 1] == '\r'))
        line.len--;
    return annal__slice_is(line, mark);
}

static bool is_any_mark(annal_slice line)
{
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (is_mark(line, marks[i]))
            return true;
    return false;
}

annal_slice annal__import_section(annal_slice sql, const char *mark, size_t *at)
{
    annal_slice section = {NULL, 0};
    while (*at < sql.len) {
        const char *line = sql.ptr + *at;
        const char *newline = memchr(line, '\n', sql.len - *at);
        size_t len = newline != NULL ? (size_t)(newline - line) : sql.len - *at;
        annal_slice text = {line, len};
        if (section.ptr != NULL && is_any_mark(text))
            break;
        *at += newline != NULL ? len + 1 : len;
        if (section.ptr == NULL && is_mark(text, mark))
            section.ptr = sql.ptr + *at;
    }
    if (section.ptr != NULL)
        section.len = (size_t)(sql.ptr + *at - section.ptr);
    return section;
}
