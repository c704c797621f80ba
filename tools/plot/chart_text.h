/* SPDX-License-Identifier: Apache-2.0 */
/* Draw a chart for a terminal, with Unicode blocks. */
#ifndef TOOLS_PLOT_CHART_TEXT_H
#define TOOLS_PLOT_CHART_TEXT_H

#include "tools/plot/chart.h"

/* Count the buckets that fit in a picture of this many columns. */
size_t chart_text_buckets(int columns);

void chart_text(const struct chart *chart, int columns, struct drawing *out);

#endif
