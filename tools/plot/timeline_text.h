/* SPDX-License-Identifier: Apache-2.0 */
/* Draw a timeline for a terminal. */
#ifndef TOOLS_PLOT_TIMELINE_TEXT_H
#define TOOLS_PLOT_TIMELINE_TEXT_H

#include "tools/plot/timeline.h"

/* Count the slots of a picture of this many columns: the rest is for names and sums. */
int timeline_text_slots(const struct session *session, int columns);

void timeline_text(const struct timeline *timeline, int columns, struct drawing *out);

#endif
