/* SPDX-License-Identifier: Apache-2.0 */
/* Processes, in three states: alive, proven dead, not known. */
#ifndef JOURNAL_SYS_PROCESS_H
#define JOURNAL_SYS_PROCESS_H

#include <annal/process.h>

typedef enum annal__process_life {
    ANNAL_PROCESS_UNKNOWN = 0, /* facts are missing, or it ran where we cannot look */
    ANNAL_PROCESS_ALIVE = 1,   /* exactly this process exists */
    ANNAL_PROCESS_DEAD = 2     /* proven: see annal_process_is_dead() */
} annal__process_life;

/* What is known of a process at this moment. Any thread. */
annal__process_life annal__process_look(const annal_process *process);

#endif
