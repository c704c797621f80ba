/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Print Markdown on stdout that shows text literally.
 *
 * The text is taken from events, so from models, tools and files. Nothing in it may end a block,
 * open one, or become a heading, a link, an image or HTML by itself, in any reader of CommonMark:
 *
 * (1) Code is in a fence longer than any run of its character inside, or in a span with more
 *     backticks than any run inside.
 * (2) A message keeps its lists, its emphasis and its code: it is in a quote, each line with its
 *     own mark. A fence in it is fenced again by (1). A code span ends on its line; a backtick
 *     without a partner on that line is escaped, so spans are where they seem to be. Outside of
 *     them '<', '&', '[', ']' and backslashes are escaped. A heading becomes bold text, and other
 *     marks of headings are escaped.
 * (3) Names and other short texts are on one line, with every special character escaped.
 * (4) Control characters are '?'.
 */
#ifndef TOOLS_EXPORT_PAGE_H
#define TOOLS_EXPORT_PAGE_H

#include <annal/base.h>

#include <stdint.h>

/* Values are raw JSON: a string is printed as its text, other values unchanged. */

/* Print a value on one line, escaped, at most this many characters. */
void page_inline(annal_slice raw, size_t chars);

/* Do the same, as a code span. */
void page_code(annal_slice raw, size_t chars);

/* Print a quote. */
void page_quote(annal_slice raw);

/*
 * Print a fenced block: its first lines_max lines (0: all), each at most PAGE_LINE_BYTES long.
 * Returns how many lines are missing or cut.
 */
#define PAGE_LINE_BYTES 2000
uint64_t page_fence(annal_slice raw, int lines_max);

/* Print the members of an object as "name: value", with a text of several lines indented below its
 * name. */
void page_members(annal_slice raw);

#endif
