/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write SVG as text: one file without references, and nothing from an event is markup in it.
 *
 * (1) Colours are classes; the style in the head has two sets: for light and for dark surroundings.
 * (2) Text is escaped; what XML cannot contain (control characters and bytes that are not UTF-8)
 *     becomes '?'.
 * (3) A shape has a <title>, which browsers show as a tooltip.
 */
#ifndef TOOLS_PLOT_SVG_H
#define TOOLS_PLOT_SVG_H

#include "tools/plot/text.h"

enum align { ALIGN_LEFT, ALIGN_MIDDLE, ALIGN_RIGHT };

void svg_begin(struct drawing *out, int width, int height, annal_slice title);
void svg_end(struct drawing *out);

/* Write a text. y is the baseline. class: "title", "name", "axis", or "" for plain. */
void svg_text(struct drawing *out, double x, double y, enum align align, const char *class,
              annal_slice text);

/* Write a rectangle. tooltip: a text, or empty for none. class: "bar", "part", "share", "failed",
 * "open", "frame". */
void svg_rect(struct drawing *out, double x, double y, double width, double height,
              const char *class, annal_slice tooltip);

/* Compute the height of a bar for value, if most has the height full: a value above 0 is always
 * visible. Values below 0, which take back earlier counts, are not drawn. */
double svg_height(int64_t value, int64_t most, double full);

/* Write a line. class: "grid", "base", "cut". */
void svg_line(struct drawing *out, double x1, double y1, double x2, double y2, const char *class,
              annal_slice tooltip);

#endif
