/* SPDX-License-Identifier: Apache-2.0 */
/* annal mcp install CLIENT: prints what to add to the client's file, or adds it. Returns an exit
 * status. */
#pragma once

#include "tools/cli/args.h"

int mcp_install(const struct args *args);
