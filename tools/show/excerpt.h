/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Print excerpts from an event's data, for people.
 *
 * Values are raw JSON from the journal, known to be valid; they are never decoded as a whole, so a
 * text of megabytes costs no memory.
 */
#ifndef TOOLS_SHOW_EXCERPT_H
#define TOOLS_SHOW_EXCERPT_H

#include "journal/base/buf.h"

#include <annal/base.h>

/* The characters of a raw value: those of a string are read without quotes and escapes. */
struct letters {
    const char *at;
    const char *end;
    bool escaped; /* a string: \n is a line break */
};

/* A character in UTF-8; a tab or a carriage return becomes a space. */
struct letter {
    char bytes[5];
    size_t len; /* 0: the end */
};

struct letters excerpt_letters_of(annal_slice raw);
struct letter excerpt_letter_next(struct letters *letters);

/* Count how many of the next bytes, at most this many, are unescaped ASCII characters. */
size_t excerpt_letters_plain(const struct letters *letters, size_t most);

/*
 * A block of text on stdout: every line indented, except the first if the cursor is already there.
 */
struct excerpt {
    int indent;
    int lines_max;  /* 0: all lines */
    int line_chars; /* longer lines are cut; 0: no line is cut */
    int columns; /* lines are wrapped at words to this width, without line_chars; 0: not wrapped */
    int used;    /* columns already taken on the first line */
};

/*
 * Print the text of a raw string, or another raw value unchanged, and a line break. Returns how
 * many lines were left out; all cut lines count as one.
 */
uint64_t excerpt_print(const struct excerpt *excerpt, annal_slice raw);

/*
 * Append a raw value on one line: a string without its quotes, an object as "name: value, …"
 * without its braces, others unchanged; line breaks become spaces. At most chars characters, and a
 * "…" if there are more. Without memory it is shorter.
 */
void excerpt_line(struct buf *out, annal_slice raw, size_t chars);

/* Do the same, on stdout. */
void excerpt_print_line(annal_slice raw, size_t chars);

/* Count the lines of a raw text. */
uint64_t excerpt_lines(annal_slice raw);

/* Return whether raw is a string that is not empty. */
bool excerpt_is_text(annal_slice raw);

#endif
