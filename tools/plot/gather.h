/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read the data of the charts from the tables of sessions.db, after catching up; all SELECTs of one
 * picture see the same state.
 */
#ifndef TOOLS_PLOT_GATHER_H
#define TOOLS_PLOT_GATHER_H

#include "index/sys/view.h"
#include "tools/cli/args.h"
#include "tools/plot/chart.h"

#include <annal/query.h>

/* The values of a point. */
enum { EVENTS };
enum { INPUT_TOKENS, OUTPUT_TOKENS, CACHED_INPUT_TOKENS, CACHE_WRITE_TOKENS, COST_MICROUSD };

/*
 * Events that were imported from logs without times are at the beginning of 1970: they are counted,
 * but not drawn. So are events in the future, unless a range names it.
 */
#define DAY_US            (24 * 3600 * 1000000LL)
#define UNTIMED_BEFORE_US DAY_US

struct gathered {
    struct points events; /* by hour */
    struct points usage;  /* by hour */
    int64_t latest_us;    /* later events are not drawn; 0: a range decides */
    int64_t untimed;      /* number of such events, without a bound */
    int64_t tokens, costed_tokens;
    int64_t computed_microusd; /* part of the cost, from prices */
};

annal_status gather_charts(annal__view *view, const struct time_range *range, struct gathered *out,
                           annal_error *err);
void gather_done(struct gathered *gathered);

#endif
