/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Halves of surrogate pairs in JSON text.
 *
 * Agents cut texts in the middle of a pair: "\ud83d" without its second half. It is valid JSON by
 * its grammar, journals keep it, and strict readers refuse it, because it is not a character.
 * Printed text has U+FFFD in its place, which as an escape has the same length.
 */
#ifndef JOURNAL_BASE_JSON_HALVES_H
#define JOURNAL_BASE_JSON_HALVES_H

#include <annal/base.h>

/* Whether a text has the escape of a half, in a pair or alone. Most have no half, at the speed of a
 * search for three bytes. */
bool annal__json_has_halves(annal_slice json);

/*
 * Replace the halves that stand alone by "\ufffd". text is JSON, or a piece that begins at a
 * character; if last is false, more text follows. Returns how much is done: all but an escape, or a
 * pair, at the end that is not complete.
 */
size_t annal__json_mend_halves(char *text, size_t len, bool last);

/* Replace halves that were decoded into three bytes, which is not UTF-8, as SQLite's ->> does. */
void annal__json_text_mend_halves(char *text, size_t len);

#endif
