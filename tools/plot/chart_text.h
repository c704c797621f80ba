/* SPDX-License-Identifier: Apache-2.0 */
/* A chart for a terminal, of Unicode blocks. */
#ifndef TOOLS_PLOT_CHART_TEXT_H
#define TOOLS_PLOT_CHART_TEXT_H

#include "tools/plot/chart.h"

/* How many buckets a picture of this many columns has room for. */
size_t chart_text_buckets(int columns);

void chart_text(const struct chart *chart, int columns, struct drawing *out);

#endif
