/* SPDX-License-Identifier: Apache-2.0 */
/* What the explorer crashes. Ends with a workload without a name. */
#ifndef TESTS_CRASH_POWER_WORKLOADS_H
#define TESTS_CRASH_POWER_WORKLOADS_H

#include "tests/crash/power_explore.h"

extern const struct power_workload power_workloads[];

#endif
