/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes text safe for a terminal.
 *
 * Events, names of files and messages contain what agents and strangers wrote: for example escape
 * sequences that set the title of the window or type for the user, or marks that reverse the
 * direction of text. None of these reaches a terminal. Text is changed by these rules only:
 *
 * (1) A control character, of ASCII or C1 (U+0000 to U+001F, U+007F to U+009F), a mark for the
 *     direction of text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), and a line
 *     break that does not look like one (U+2028, U+2029) is shown as \u and four hex digits. Most
 *     text is printed as a string of JSON, where these digits mean the same character.
 * (2) A line break, a tab, and a carriage return before a line break are unchanged.
 * (3) A byte that is not part of a character in UTF-8 is shown as \x and two hex digits.
 * (4) If stdout, or stderr, is a terminal, the stream itself applies these rules to all output
 *     (out_open()), so that no verb can forget them. Files and pipes receive the bytes unchanged.
 *     The command's own sequences, for colours and for the last line of the screen, bypass the
 *     rules (out_control()).
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/base.h>

/* State of a text that is converted in pieces, which may be cut anywhere. Begin with {0}. */
struct visible {
    unsigned char held[4]; /* first bytes of a character whose other bytes are in the next piece */
    size_t held_len;
};

/* Convert the next piece and append it to out, except an incomplete character at its end. Fails
 * only with ANNAL_ERR_NOMEM. */
annal_status visible_add(struct visible *visible, struct buf *out, annal_slice piece);

/* End the text: bytes of an incomplete character are shown as \x. */
annal_status visible_end(struct visible *visible, struct buf *out);

/* Convert a complete text and append it to out. */
annal_status visible_append(struct buf *out, annal_slice text);
