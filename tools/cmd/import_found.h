/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "tools/cli/command.h"

/*
 * Import the logs of the agents on this machine from their usual places. If watches is true,
 * continue to import as the watcher of the store (watcher.h). Return the exit status.
 */
int import_found(const struct args *args, bool watches);
