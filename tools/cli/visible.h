/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Make text safe for a terminal.
 *
 * Events, names of files and messages contain what agents and strangers wrote: escape sequences
 * that set the title of the window or type for the user, marks that turn right-to-left into
 * left-to-right. None of them reaches a terminal. Only these rules change text:
 *
 * (1) A control character, of ASCII or C1 (U+0000 to U+001F, U+007F to U+009F), a mark for the
 *     direction of text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), and a line
 *     break that does not look like one (U+2028, U+2029) is shown as \u and four hex digits. In a
 *     string of JSON, where most of it is printed, that is the same character.
 * (2) A line break, a tab, and a carriage return before a line break are unchanged.
 * (3) A byte that is not part of a character in UTF-8 is shown as \x and two hex digits.
 * (4) The streams apply these rules to all output if stdout, or stderr, is a terminal (out_open()),
 *     so that no verb can forget it. Files and pipes receive the bytes. The command's own
 *     sequences, for colours and for the last line of the screen, bypass the rules: out_control().
 */
#ifndef TOOLS_CLI_VISIBLE_H
#define TOOLS_CLI_VISIBLE_H

#include "journal/base/buf.h"

#include <annal/base.h>

/* A text in pieces, cut anywhere. Empty at first. */
struct visible {
    unsigned char held[4]; /* first bytes of an incomplete character */
    size_t held_len;
};

/* Append the next piece, except an unfinished character at its end. ANNAL_ERR_NOMEM only. */
annal_status visible_add(struct visible *visible, struct buf *out, annal_slice piece);

/* End the text: held bytes are not a character. */
annal_status visible_end(struct visible *visible, struct buf *out);

/* Convert a whole text. */
annal_status visible_append(struct buf *out, annal_slice text);

#endif
