/* SPDX-License-Identifier: Apache-2.0 */
/* The command annal. */
#include "tools/cli/command.h"

int main(int argc, char **argv)
{
    return command_main(argc, argv);
}
