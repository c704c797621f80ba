/* SPDX-License-Identifier: Apache-2.0 */
/* Writers that are killed with SIGKILL, repeatedly, in one store: see kill.c. */
#pragma once

#include "tests/support/random.h"

#include <annal/store.h>

struct kill_counts {
    uint64_t stores;
    uint64_t rounds;
    uint64_t kills;
    uint64_t acknowledged; /* events, each of them looked for after every round */
};

/* Run the rounds in a new store, with all proofs; adds to counts. A broken promise fails the
 * test. */
void kill_play(annal_level level, annal_format format, bool with_ids, int rounds,
               struct random *random, struct kill_counts *counts);
