/* SPDX-License-Identifier: Apache-2.0 */
/* What the tools need of tails beyond <annal/tail.h>. */
#ifndef REPLAY_SYS_TAIL_H
#define REPLAY_SYS_TAIL_H

#include <annal/tail.h>

/*
 * Free the memory that reading needs, of which the last event is a part: for a caller that will not
 * ask for the next one soon.
 */
void annal__tail_rest(annal_tail *tail);

#endif
