/* SPDX-License-Identifier: Apache-2.0 */
/* Runs annal serve, from the command line to the signal that ends the server. */
#pragma once

#include "tools/cli/args.h"

int server_run(const struct args *args);
