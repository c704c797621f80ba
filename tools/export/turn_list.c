/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/turn_list.h"

#include "journal/base/alloc.h"
#include "tools/cli/must.h"

#include <stdlib.h>

void turn_list_add(struct turn_list *turns, uint64_t seq, int64_t ts_us)
{
    struct turn_span *turn = must_array_add(&turns->all, &turns->count, sizeof *turn);
    *turn = (struct turn_span){.seq = seq, .start_us = ts_us, .end_us = ts_us};
}

static int compare(const void *seq, const void *turn)
{
    uint64_t a = *(const uint64_t *)seq, b = ((const struct turn_span *)turn)->seq;
    return a < b ? -1 : a > b;
}

struct turn_span *turn_list_find(const struct turn_list *turns, uint64_t seq)
{
    return turns->count == 0 ? NULL
                             : bsearch(&seq, turns->all, turns->count, sizeof *turns->all, compare);
}

void turn_list_widen(const struct turn_list *turns, uint64_t seq, int64_t start_us, int64_t end_us)
{
    struct turn_span *turn = turn_list_find(turns, seq);
    if (turn != NULL && start_us < turn->start_us)
        turn->start_us = start_us;
    if (turn != NULL && end_us > turn->end_us)
        turn->end_us = end_us;
}

void turn_list_done(struct turn_list *turns)
{
    annal__free(turns->all);
    *turns = (struct turn_list){0};
}
