/* SPDX-License-Identifier: Apache-2.0 */
/* A timeline as a part of an SVG. */
#ifndef TOOLS_PLOT_TIMELINE_SVG_H
#define TOOLS_PLOT_TIMELINE_SVG_H

#include "tools/plot/timeline.h"

enum { TIMELINE_SVG_SLOTS = 330, TIMELINE_SVG_CUT_SLOTS = 5 };

/* Draw it below y; returns its lower end. */
int timeline_svg(const struct timeline *timeline, int y, struct drawing *out);

#endif
