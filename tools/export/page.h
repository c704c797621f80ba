/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Markdown on stdout that shows text as it is, and nothing else.
 *
 * Text comes from events, so from models, tools and files. Nothing in it may end a block, open one,
 * or become a heading, a link, an image or HTML by itself, whatever reads the page as CommonMark:
 *
 * (1) Code is in a fence longer than any run of its character inside, or in a span with more
 *     backticks than any run inside.
 * (2) What somebody said keeps its lists, its emphasis and its code: it is in a quote, each line
 *     with its own mark. What it fences is fenced again by (1). A span of code ends on its line; a
 *     backtick that has no partner there is escaped, so spans are where they seem to be. Outside of
 *     them '<', '&', '[', ']' and backslashes are escaped. A heading is bold text instead, and what
 *     else would make one is escaped.
 * (3) Names and other short texts are on one line, every sign escaped that means something there.
 * (4) Control characters are '?'.
 */
#ifndef TOOLS_EXPORT_PAGE_H
#define TOOLS_EXPORT_PAGE_H

#include <annal/base.h>

#include <stdint.h>

/* Values are raw JSON: the text of a string, others as they are written. */

/* On one line, escaped, at most this many characters. */
void page_inline(annal_slice raw, size_t chars);

/* As above, as a span of code. */
void page_code(annal_slice raw, size_t chars);

/* A quote. */
void page_quote(annal_slice raw);

/*
 * A fenced block: its first lines_max lines (0: all of it), each at most PAGE_LINE_BYTES long.
 * Returns how many lines are missing or cut.
 */
#define PAGE_LINE_BYTES 2000
uint64_t page_fence(annal_slice raw, int lines_max);

/* The members of an object as "name: value", a text of several lines indented below its name. */
void page_members(annal_slice raw);

#endif
