/* SPDX-License-Identifier: Apache-2.0 */
/* What is needed to continue a session whose process is gone. */
#ifndef TOOLS_SHOW_RECOVERY_H
#define TOOLS_SHOW_RECOVERY_H

#include "tools/cli/args.h"

#include <annal/index.h>

/* How long to wait for what a living process has not written to its journals yet. */
enum { RECOVERY_WAIT_MS = 300 };

/* Print it, for people or (args->json) as one object; 0 or an exit status. */
int recovery_print(const struct args *args, annal_index *index, annal_slice session);

#endif
