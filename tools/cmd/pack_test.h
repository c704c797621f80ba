/* SPDX-License-Identifier: Apache-2.0 */
/* annal pack test: runs the cases of a test file of packs. */
#pragma once

#include "tools/cli/args.h"

/* Run the cases of the operand FILE. Returns an exit status: EXIT_REFUSED if a case failed. */
int pack_test(const struct args *args);
