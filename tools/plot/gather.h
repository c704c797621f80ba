/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the data of the charts from the tables of sessions.db, after a catch-up. All SELECTs of one
 * picture see the same state.
 */
#ifndef TOOLS_PLOT_GATHER_H
#define TOOLS_PLOT_GATHER_H

#include "index/sys/view.h"
#include "tools/cli/args.h"
#include "tools/plot/chart.h"

#include <annal/query.h>

/* Indexes in point.values: EVENTS for the points in `events`, the others for the points in
 * `usage`. */
enum { EVENTS };
enum { INPUT_TOKENS, OUTPUT_TOKENS, CACHED_INPUT_TOKENS, CACHE_WRITE_TOKENS, COST_MICROUSD };

/*
 * Events that were imported from logs without times have a time at the beginning of 1970. They are
 * counted, but not drawn. Neither are events in the future, unless the user gave a range.
 */
#define DAY_US            (24 * 3600 * 1000000LL)
#define UNTIMED_BEFORE_US DAY_US

struct gathered {
    struct points events; /* number of events: one point for each hour */
    struct points usage;  /* tokens and cost: one point for each hour */
    /* time after which events are not drawn, in us; 0 if the user gave a range */
    int64_t latest_us;
    /* number of events that are not drawn because of their time; 0 if the user gave a range */
    int64_t untimed;
    int64_t tokens, costed_tokens;
    int64_t computed_microusd; /* part of the cost that was computed from prices */
};

annal_status gather_charts(annal__view *view, const struct time_range *range, struct gathered *out,
                           annal_error *err);
void gather_done(struct gathered *gathered);

#endif
