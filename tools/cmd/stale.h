/* SPDX-License-Identifier: Apache-2.0 */
/* annal doctor --transition-stale: ending sessions whose process died without saying so. */
#ifndef TOOLS_CMD_STALE_H
#define TOOLS_CMD_STALE_H

#include "tools/cli/args.h"

#include <annal/index.h>

int stale_transition(const struct args *args);

/* How many sessions run, and how many of these have which health. */
struct run_counts {
    uint64_t running, unresponsive, stale, orphaned;
};

/* ANNAL_ERR_NOTFOUND: the packs that know this are not both on. */
annal_status stale_count(annal_index *index, struct run_counts *out, annal_error *err);

#endif
