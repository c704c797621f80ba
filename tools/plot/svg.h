/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes SVG as text: one file without references, in which no text of an event becomes markup.
 *
 * (1) Colours are classes. The style at the beginning has two sets of colours, for light and for
 *     dark surroundings.
 * (2) Text is escaped; what XML cannot contain (control characters and bytes that are not UTF-8)
 *     becomes '?'.
 * (3) A shape has a <title>, which browsers show as a tooltip.
 */
#pragma once

#include "tools/plot/text.h"

enum align { ALIGN_LEFT, ALIGN_MIDDLE, ALIGN_RIGHT };

void svg_begin(struct buf *out, int width, int height, annal_slice title);
void svg_end(struct buf *out);

/* Append a text; y is its baseline. class is "title", "name", "axis", or "" for plain text. */
void svg_text(struct buf *out, double x, double y, enum align align, const char *class,
              annal_slice text);

/* Append a rectangle. tooltip is empty for none. class is "bar", "part", "share", "failed", "open"
 * or "frame". */
void svg_rect(struct buf *out, double x, double y, double width, double height, const char *class,
              annal_slice tooltip);

/* Return the height of a bar for value, if a bar for most is `full` high. A value above 0 is at
 * least 1 high, so that it is visible; a negative value, which corrects an earlier one, is not
 * drawn. */
double svg_height(int64_t value, int64_t most, double full);

/* Append a line. class is "grid", "base" or "cut"; tooltip is empty for none. */
void svg_line(struct buf *out, double x1, double y1, double x2, double y2, const char *class,
              annal_slice tooltip);
