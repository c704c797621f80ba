/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Excerpts from an event's data, for people.
 *
 * Values are raw JSON, as they are in the journal and known to be valid; nothing is built from
 * them, so a text of megabytes costs no memory.
 */
#ifndef TOOLS_SHOW_EXCERPT_H
#define TOOLS_SHOW_EXCERPT_H

#include "journal/base/buf.h"

#include <annal/base.h>

/* The characters of a raw value: those of a string without its quotes and escapes. */
struct letters {
    const char *at;
    const char *end;
    bool escaped; /* a string: \n is a line break */
};

/* One character as UTF-8; a tab or a carriage return is a space. */
struct letter {
    char bytes[5];
    size_t len; /* 0: there are no more */
};

struct letters letters_of(annal_slice raw);
struct letter letter_next(struct letters *letters);

/* How many of the next bytes, at most this many, are unescaped ASCII characters. */
size_t letters_plain(const struct letters *letters, size_t most);

/*
 * A block of text on stdout: every line indented, except the first if the cursor is there already.
 */
struct excerpt {
    int indent;
    int lines_max;  /* 0: all of it */
    int line_chars; /* a longer line is cut; 0: no line is cut */
    int columns; /* lines are wrapped at words to so many, and line_chars is not used; 0: they are
                       not */
    int used;    /* columns that are taken on the first line already */
};

/*
 * Print the text of a raw string, or another raw value as it is, and a line break. Returns how many
 * lines were left out; those that were cut count as one together.
 */
uint64_t excerpt_print(const struct excerpt *excerpt, annal_slice raw);

/*
 * Append a raw value on one line: a string without its quotes, an object as "name: value, …"
 * without its braces, others as they are; line breaks are spaces. At most chars characters, and a
 * "…" if there are more. Without memory it is shorter still.
 */
void excerpt_line(struct buf *out, annal_slice raw, size_t chars);

/* As above, on stdout. */
void excerpt_print_line(annal_slice raw, size_t chars);

/* How many lines a raw text has. */
uint64_t excerpt_lines(annal_slice raw);

/* Whether raw is a string that is not empty. */
bool excerpt_is_text(annal_slice raw);

#endif
