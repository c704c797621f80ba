/* SPDX-License-Identifier: Apache-2.0 */
/* Runs annal serve, from the command line to the signal that ends the server. */
#ifndef TOOLS_SERVE_SERVER_H
#define TOOLS_SERVE_SERVER_H

#include "tools/cli/args.h"

int server_run(const struct args *args);

#endif
