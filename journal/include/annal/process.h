/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes: identify a process, and prove that it is dead.
 *
 * A session whose process crashed stays "running" until a program records its end. A process id
 * alone proves nothing, because the system reuses it for other processes. So a session records,
 * when it is opened, everything that distinguishes its process from all others (as the field
 * "process" of session.created or session.opened), so that its death can be proven later, unless
 * the facts do not suffice.
 */
#ifndef ANNAL_PROCESS_H
#define ANNAL_PROCESS_H

#include <annal/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annal_process {
    uint32_t pid;     /* process id; 0: unknown */
    uint64_t start;   /* start time in clock ticks since the boot: field 22 of /proc/PID/stat */
    uint64_t pid_ns;  /* inode of the process's namespace of process ids; 0: unknown */
    char boot_id[37]; /* id of the boot, /proc/sys/kernel/random/boot_id; "": unknown */
} annal_process;

/* Identify the calling process. Any thread. ANNAL_ERR_IO: /proc is missing, or does not show the
 * process. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_process_self(annal_process *out_process,
                                                           annal_error *err);

/* Identify a living process by its id in the caller's namespace: for a command that acts for the
 * agent that started it. Any thread. ANNAL_ERR_NOTFOUND: no process has this id. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_process_get(uint32_t pid, annal_process *out_process,
                                                          annal_error *err);

/*
 * Return whether the process is proven dead: the system was restarted since; or, in the caller's
 * namespace, no process has the id, another process has it now, or the process has ended and only
 * waits for its parent. In all other cases the result is false: it is alive; it ran in another
 * namespace (a container), whose processes the caller cannot see; facts are missing. *out_why
 * (out_why may be NULL) is a static phrase that says which. A dead process stays dead, but a
 * process that is alive may end at any moment. Any thread.
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
