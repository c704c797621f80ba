/* SPDX-License-Identifier: Apache-2.0 */
/* annal doctor --transition-stale: end sessions whose process died without recording the end. */
#pragma once

#include "tools/cli/args.h"

#include <annal/index.h>

int stale_transition(const struct args *args);

/* number of running sessions, and of running sessions with each health */
struct run_counts {
    uint64_t running, unresponsive, stale, orphaned;
};

/* Count the running sessions. ANNAL_ERR_NOTFOUND: not all packs that record processes are
 * enabled. */
annal_status stale_count(annal_index *index, struct run_counts *out, annal_error *err);
