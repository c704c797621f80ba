/* SPDX-License-Identifier: Apache-2.0 */
/* annal pack test: runs the cases of a test file of packs. */
#ifndef TOOLS_CMD_PACK_TEST_H
#define TOOLS_CMD_PACK_TEST_H

#include "tools/cli/args.h"

/* Run the cases of the operand FILE. Returns an exit status: EXIT_REFUSED if a case failed. */
int pack_test(const struct args *args);

#endif
