/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of the charts, from the tables. sessions.db answers, as it is after catching up; all
 * SELECTs of one picture see the same.
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
 * and are in no picture. So are events of the future, unless a range names it.
 */
#define DAY_US            (24 * 3600 * 1000000LL)
#define UNTIMED_BEFORE_US DAY_US

struct gathered {
    struct points events; /* per hour */
    struct points usage;  /* per hour */
    int64_t latest_us;    /* later ones are not in the pictures; 0: a range says which are */
    int64_t untimed;      /* events, if there is no bound */
    int64_t tokens, costed_tokens;
    int64_t computed_microusd; /* of the cost, from prices */
};

annal_status gather_charts(annal__view *view, const struct time_range *range, struct gathered *out,
                           annal_error *err);
void gathered_done(struct gathered *gathered);

#endif
