/* SPDX-License-Identifier: Apache-2.0 */
/* Runs annal stats --plot: pictures of a store, or of one session. */
#pragma once

#include "tools/cli/args.h"

/* Run annal stats with --plot. Returns an exit status. */
int plot_run(const struct args *args);
