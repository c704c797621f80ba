/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a timeline for a terminal. */
#ifndef TOOLS_PLOT_TIMELINE_TEXT_H
#define TOOLS_PLOT_TIMELINE_TEXT_H

#include "tools/plot/timeline.h"

/* Return the number of slots in a picture of this many columns; the other columns are for names and
 * sums. */
int timeline_text_slots(const struct session *session, int columns);

void timeline_text(const struct timeline *timeline, int columns, struct drawing *out);

#endif
