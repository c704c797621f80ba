/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of tails for the tools, beyond <annal/tail.h>. */
#pragma once

#include <annal/tail.h>

/* Free the memory in which events are read, including the last event, for a caller that will not
 * ask for the next event soon. */
void annal__tail_rest(annal_tail *tail);
