/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a chart for a terminal, with Unicode blocks. */
#ifndef TOOLS_PLOT_CHART_TEXT_H
#define TOOLS_PLOT_CHART_TEXT_H

#include "tools/plot/chart.h"

/* Return the number of buckets that fit into a picture of this many columns. */
size_t chart_text_buckets(int columns);

void chart_text(const struct chart *chart, int columns, struct drawing *out);

#endif
