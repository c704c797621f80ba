/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Crash a workload after each of its operations, in the requested number of ways.
 *
 * A workload is a function that drives a store on a simulated disk and records each promise in the
 * model. Before each operation that changes the disk (so after the previous operation and all
 * promises since) the explorer
 *
 *   - cuts the power: every outcome if there are at most `subsets`, else as many drawn from the
 *     seed
 *   - lets the processes die, also in the middle of a write
 *
 * and checks each resulting disk (power_check.h). On some of them it crashes recovery in the same
 * way. A case is named <workload>:<operation>.<state>, with a further .<operation>.<state> when the
 * recovery was crashed too; the same seed and case repeat it. States that leave the same disk under
 * the same promises are checked once.
 */
#pragma once

#include "tests/crash/power_check.h"

struct power_run {
    struct sim_disk *disk;
    struct model model;
    /* The next operation of this kind on a file whose name ends so fails; NULL: none does. */
    const char *fail_name;
    enum sim_op_kind fail_kind;
    int fail_errno;
};

struct power_workload {
    const char *name;
    void (*run)(struct power_run *run);
};

struct power_settings {
    uint64_t seed;
    uint64_t subsets;          /* for each operation */
    uint64_t recovery_every;   /* of how many states the recovery is crashed; 0: of none */
    uint64_t recovery_subsets; /* for each operation of a recovery */
    uint64_t index_every;      /* on how many states the index is checked; 0: on none */
    const char *only;          /* a case to repeat; NULL: all */
    bool progress;             /* on standard error */
};

struct power_counts {
    uint64_t operations;
    uint64_t states; /* crash states, and how many of them were others than before */
    uint64_t distinct;
    uint64_t kills;
    uint64_t
        recoveries_crashed; /* recoveries that were crashed at each operation, their operations, */
    uint64_t recovery_operations;
    uint64_t recovery_states; /* and states */
    uint64_t recoveries;      /* stores opened on what was left */
    uint64_t index_checks;
};

/* A failure fails the test, with the case and the command that repeats it. */
void power_explore(const struct power_workload *workload, const struct power_settings *settings,
                   struct power_counts *counts);
