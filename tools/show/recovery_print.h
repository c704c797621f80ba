/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what an agent needs to continue a session whose process has ended. */
#pragma once

#include "tools/cli/args.h"

#include <annal/index.h>

/* Time in ms to wait until a running process has written its events to the journals. */
enum { RECOVERY_WAIT_MS = 300 };

/* Print what an agent needs to continue the session, for people, or as one JSON object if
 * args->json. Returns 0 or an exit status. */
int recovery_print(const struct args *args, annal_index *index, annal_slice session);
