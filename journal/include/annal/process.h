/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes: identifying one, and proving that it is dead.
 *
 * A session whose process crashed stays "running" until a program records its end. A process id
 * alone proves nothing: it is given to another process later. So a session records, when it is
 * opened, everything that distinguishes its process from all others (as the field "process" of
 * session.created or session.opened), and later the death of that process can be proven, or it
 * turns out that it cannot.
 */
#ifndef ANNAL_PROCESS_H
#define ANNAL_PROCESS_H

#include <annal/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annal_process {
    uint32_t pid;     /* 0: not known */
    uint64_t start;   /* when it began, in clock ticks since the boot: field 22 of /proc/PID/stat */
    uint64_t pid_ns;  /* inode of its namespace of process ids; 0: not known */
    char boot_id[37]; /* /proc/sys/kernel/random/boot_id; "": not known */
} annal_process;

/* The calling process. Any thread. ANNAL_ERR_IO: /proc is missing, or does not say. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_process_self(annal_process *out_process,
                                                           annal_error *err);

/*
 * A living process, by its id in the caller's namespace: for a command that acts for the agent that
 * started it. Any thread. ANNAL_ERR_NOTFOUND: no process has this id.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_process_get(uint32_t pid, annal_process *out_process,
                                                          annal_error *err);

/*
 * Whether the process is proven dead. True if the system was restarted since; if in its namespace
 * no process has the id, or another process has it now; or if it has ended and only waits to be
 * reaped. Everything else is false: it is alive; it ran in another namespace (a container) that
 * cannot be looked into; facts are missing. *out_why (may be NULL) is a static phrase that says
 * which. It is about this moment: a dead process stays dead, but an answer "alive" may be outdated
 * when it is read. Any thread.
 */
ANNAL_API bool annal_process_is_dead(const annal_process *process, const char **out_why);

#define ANNAL_PROCESS_JSON_BYTES 160

/*
 * Write a process as the field "process" of an event: {"pid":N,"start":N,"pid_ns":N,"boot_id":"…"}.
 * Returns text.
 */
ANNAL_API const char *annal_process_json(const annal_process *process,
                                         char text[ANNAL_PROCESS_JSON_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
