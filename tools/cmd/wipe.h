/* SPDX-License-Identifier: Apache-2.0 */
/* Report what remains of deleted sessions, for the verbs that delete. */
#ifndef TOOLS_CMD_WIPE_H
#define TOOLS_CMD_WIPE_H

#include <annal/delete.h>

/* Report a part that may remain. */
void wipe_say_what_remains(const annal_delete_note *note);

#endif
