/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a chart as a part of an SVG. */
#ifndef TOOLS_PLOT_CHART_SVG_H
#define TOOLS_PLOT_CHART_SVG_H

#include "tools/plot/chart.h"

enum { PICTURE_WIDTH = 960, CHART_SVG_BUCKETS = 280 };

/* Draw the chart below y, and return the y of its lower end, in pixels. */
int chart_svg(const struct chart *chart, int y, struct drawing *out);

#endif
