/* SPDX-License-Identifier: Apache-2.0 */
/* Print what an agent needs to continue a session whose process is gone. */
#ifndef TOOLS_SHOW_RECOVERY_H
#define TOOLS_SHOW_RECOVERY_H

#include "tools/cli/args.h"

#include <annal/index.h>

/* How long to wait until a running process has written its events to the journals. */
enum { RECOVERY_WAIT_MS = 300 };

/* Print it, for people or (args->json) as one object; 0 or an exit status. */
int recovery_print(const struct args *args, annal_index *index, annal_slice session);

#endif
