/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a timeline as a part of an SVG. */
#ifndef TOOLS_PLOT_TIMELINE_SVG_H
#define TOOLS_PLOT_TIMELINE_SVG_H

#include "tools/plot/timeline.h"

enum { TIMELINE_SVG_SLOTS = 330, TIMELINE_SVG_CUT_SLOTS = 5 };

/* Draw the timeline below y, and return the y of its lower end, in pixels. */
int timeline_svg(const struct timeline *timeline, int y, struct drawing *out);

#endif
