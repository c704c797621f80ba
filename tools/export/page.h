/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes Markdown that shows text literally.
 *
 * The text is from events, that is, from models, tools and files. Nothing in it may end or begin a
 * block, or become a heading, a link, an image or HTML by itself, in any reader of CommonMark:
 *
 * (1) Code is in a fence longer than any run of its character inside, or in a span with more
 *     backticks than any run inside.
 * (2) A message keeps its lists, its emphasis and its code: it is in a quote, and each line begins
 *     with the mark of the quote. A fence in a message is replaced by a longer one (rule 1). A code
 *     span ends on its line; a backtick without a partner on that line is escaped, so spans are
 *     where they seem to be. Outside of spans '<', '&', '[', ']' and backslashes are escaped. A
 *     heading becomes bold text, and other marks of headings are escaped.
 * (3) Names and other short texts are on one line, with every special character escaped.
 * (4) Control characters are '?'.
 */
#pragma once

#include "journal/base/buf.h"

#include <stdint.h>

/* Values are raw JSON: of a string its text is used, other values are used unchanged. */

/*
 * Return the value with a note in the place of each text in base64, which no reader of a page can
 * read: raw itself if it contains none, or a copy in hold. A text in base64 follows ";base64,", or
 * has 512 characters or more in a row.
 */
annal_slice page_without_base64(annal_slice raw, struct buf *hold);

/* Append a value on one line, escaped, and cut after this many characters. */
void page_inline(struct buf *out, annal_slice raw, size_t chars);

/* As page_inline(), but as a code span. */
void page_code(struct buf *out, annal_slice raw, size_t chars);

/* Append the members of an object as a fenced block of "name: value"; a text of several lines is
 * indented below its name. */
void page_members(struct buf *out, annal_slice raw);

/* Append the blocks of a message: texts and thoughts as quotes, a note for each picture. */
void page_content(struct buf *out, annal_slice content);

/* Append a result: a text, an array of blocks, or a value in the form of the tool. Its first
 * lines_max lines (0: all), each cut after PAGE_LINE_BYTES; a note after what was cut ends with the
 * hint. */
#define PAGE_LINE_BYTES 2000
void page_output(struct buf *out, annal_slice output, int lines_max, annal_slice hint);
