/* SPDX-License-Identifier: Apache-2.0 */
/* What the explorer crashes. Ends with a workload without a name. */
#pragma once

#include "tests/crash/power_explore.h"

extern const struct power_workload power_workloads[];
