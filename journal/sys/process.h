/* SPDX-License-Identifier: Apache-2.0 */
/* Find out whether a process is alive, proven dead, or in an unknown state. */
#pragma once

#include <annal/process.h>

typedef enum annal__process_life {
    /* facts about the process are missing, or it ran in a namespace that this process cannot see */
    ANNAL_PROCESS_UNKNOWN = 0,
    ANNAL_PROCESS_ALIVE = 1, /* this very process exists */
    ANNAL_PROCESS_DEAD = 2   /* proven: see annal_process_is_dead() */
} annal__process_life;

/* Return whether a process is alive at this moment. Any thread. */
annal__process_life annal__process_look(const annal_process *process);
