/* SPDX-License-Identifier: Apache-2.0 */
/* annal doctor --transition-stale: end sessions whose process died without recording the end. */
#ifndef TOOLS_CMD_STALE_H
#define TOOLS_CMD_STALE_H

#include "tools/cli/args.h"

#include <annal/index.h>

int stale_transition(const struct args *args);

/* The number of running sessions, and how many of them have which health. */
struct run_counts {
    uint64_t running, unresponsive, stale, orphaned;
};

/* Count the sessions. ANNAL_ERR_NOTFOUND: the packs that record processes are not both enabled. */
annal_status stale_count(annal_index *index, struct run_counts *out, annal_error *err);

#endif
