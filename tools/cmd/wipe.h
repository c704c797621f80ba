/* SPDX-License-Identifier: Apache-2.0 */
/* What remains of deleted sessions is told by the verbs that delete. */
#ifndef TOOLS_CMD_WIPE_H
#define TOOLS_CMD_WIPE_H

#include <annal/delete.h>

/* A remark about a part that may remain. */
void say_what_remains(const annal_delete_note *note);

#endif
