/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Halves of surrogate pairs in JSON text.
 *
 * Agents cut texts in the middle of a pair: "\ud83d" without its second half. The grammar of JSON
 * allows such an escape, so journals keep it; but it is not a character, and strict readers refuse
 * it. Annal prints U+FFFD in its place, whose escape has the same length.
 */
#pragma once

#include <annal/base.h>

/* Return whether a text contains the escape of half a pair, alone or in a pair. In most texts this
 * takes only a search for three bytes. */
bool annal__json_has_halves(annal_slice json);

/*
 * Replace halves that stand alone by "\ufffd". text is JSON, or a piece of JSON that begins at a
 * character; if last is false, more text follows. Returns the number of bytes that are final: all
 * bytes except an incomplete escape or pair at the end.
 */
size_t annal__json_mend_halves(char *text, size_t len, bool last);

/* Replace halves that a decoder such as SQLite's ->> has turned into three bytes, which are not
 * UTF-8. */
void annal__json_text_mend_halves(char *text, size_t len);
