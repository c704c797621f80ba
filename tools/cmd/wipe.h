/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the parts of deleted sessions that remain, for the verbs that delete. */
#ifndef TOOLS_CMD_WIPE_H
#define TOOLS_CMD_WIPE_H

#include <annal/delete.h>

/* Print a message about a part that may remain, and how it is removed. */
void wipe_say_what_remains(const annal_delete_note *note);

#endif
