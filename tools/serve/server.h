/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the server: from the command line to the signal that ends it. */
#ifndef TOOLS_SERVE_SERVER_H
#define TOOLS_SERVE_SERVER_H

#include "tools/cli/args.h"

int server_run(const struct args *args);

#endif
