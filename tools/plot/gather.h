/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of the charts, from the tables. sessions.db answers, as it is after catching up; all
 * SELECTs of one picture see the same.
 */
#ifndef TOOLS_PLOT_GATHER_H
#define TOOLS_PLOT_GATHER_H

#include "index/sys/view.h"
#include "tools/plot/chart.h"

#include <annal/query.h>

/* A range of times; 0: no bound. from <= time < to. */
struct range {
    int64_t since_us;
    int64_t until_us;
};

/* The values of a point. */
enum { EVENTS };
enum { INPUT_TOKENS, OUTPUT_TOKENS, CACHED_INPUT_TOKENS, CACHE_WRITE_TOKENS, COST_MICROUSD };

/*
 * Events that were imported from logs without times are at the beginning of 1970: they are counted,
 * and are in no picture.
 */
#define UNTIMED_BEFORE_US (24 * 3600 * 1000000LL)

struct gathered {
    struct points events; /* per hour */
    struct points usage;  /* per day */
    int64_t untimed;      /* events, if there is no lower bound */
    int64_t tokens, costed_tokens;
    int64_t computed_microusd; /* of the cost, from prices */
};

annal_status gather_charts(annal__view *view, const struct range *range, struct gathered *out,
                           annal_error *err);
void gathered_done(struct gathered *gathered);

#endif
