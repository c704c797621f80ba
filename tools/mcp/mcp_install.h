/* SPDX-License-Identifier: Apache-2.0 */
/* annal mcp install CLIENT: prints what to add to the client's file, or adds it. Returns an exit
 * status. */
#ifndef TOOLS_MCP_MCP_INSTALL_H
#define TOOLS_MCP_MCP_INSTALL_H

#include "tools/cli/args.h"

int mcp_install(const struct args *args);

#endif
