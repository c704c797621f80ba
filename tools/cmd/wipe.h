/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the parts of deleted sessions that remain, for the verbs that delete. */
#pragma once

#include <annal/delete.h>

/* Print a message about a part that may remain, and how it is removed. */
void wipe_say_what_remains(const annal_delete_note *note);
