/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints excerpts from an event's data, for people.
 *
 * Values are raw JSON from the journal, known to be valid. They are never decoded as a whole, so a
 * text of megabytes costs no memory.
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/base.h>

/* The rest of the characters of a raw value; a string is read without its quotes and with its
 * escapes decoded. */
struct letters {
    const char *at;
    const char *end;
    bool escaped; /* whether the value is a string, in which \n stands for a line break */
};

/* A character in UTF-8. A tab or a carriage return is replaced by a space. */
struct letter {
    char bytes[5];
    size_t len; /* number of bytes; 0 after the last character */
};

struct letters excerpt_letters_of(annal_slice raw);
struct letter excerpt_letter_next(struct letters *letters);

/* Return how many of the next bytes, at most `most`, are ASCII characters without an escape. */
size_t excerpt_letters_plain(const struct letters *letters, size_t most);

/*
 * The form of a block of text on stdout. Every line is indented, except the first, which begins at
 * the cursor.
 */
struct excerpt {
    int indent;
    int lines_max;  /* maximum number of lines; 0 for no limit */
    int line_chars; /* length after which a line is cut; 0: lines are not cut */
    /* width at which lines are wrapped between words, in place of line_chars; 0: not wrapped */
    int columns;
    int used; /* number of columns used on the first line */
};

/*
 * Print the text of a raw string, or another raw value unchanged, and a line break. Returns the
 * number of lines that were left out; lines that were cut count as one in total.
 */
uint64_t excerpt_print(const struct excerpt *excerpt, annal_slice raw);

/*
 * Append a raw value on one line: a string without its quotes, an object as "name: value, …"
 * without its braces, other values unchanged; line breaks become spaces. A value of more than
 * `chars` characters is cut, with "…" at its end. If memory runs out, the result is shorter.
 */
void excerpt_line(struct buf *out, annal_slice raw, size_t chars);

/* As excerpt_line(), but print on stdout. */
void excerpt_print_line(annal_slice raw, size_t chars);

/* Return the number of lines of a raw string. */
uint64_t excerpt_lines(annal_slice raw);

/* Return whether raw is a string that is not empty. */
bool excerpt_is_text(annal_slice raw);
