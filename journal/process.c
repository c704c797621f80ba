/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find out whether a process that an event or a file names is certainly dead.
 *
 * A process id alone is not enough, because the kernel reuses it. Therefore a process is identified
 * by its id, its start time (field 22 of /proc/PID/stat), the boot, and the namespace of process
 * ids. It is dead if the system was booted again, if no process has the id, or if another process
 * has the id now. If that cannot be found out, the process is "unknown", never dead.
 */
#include <annal/process.h>

#include "journal/base/error.h"
#include "journal/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Fields of /proc/PID/stat that follow the process's name. */
struct proc_stat {
    char state;
    long threads;   /* number of threads, field 20 */
    uint64_t start; /* start time in clock ticks since the boot, field 22 */
};

/* Read a file as a string and return its length; on failure return -1 and set errno. */
static ssize_t read_small(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
    int code = errno;
    if (fd >= 0)
        close(fd);
    errno = code;
    text[got < 0 ? 0 : got] = '\0';
    return got;
}

/* Read the fields of a process. Returns false and sets errno on failure: ENOENT and ESRCH mean that
 * /proc does not show this id. */
static bool read_stat(uint32_t pid, struct proc_stat *out)
{
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    if (read_small(path, text, sizeof text) < 0)
        return false;
    /* The process's name is in brackets and may contain brackets, so the last one ends it. */
    const char *rest = strrchr(text, ')');
    if (rest != NULL &&
        sscanf(rest + 1,
               " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld "
               "%*s %" SCNu64,
               &out->state, &out->threads, &out->start) == 3)
        return true;
    errno = EINVAL;
    return false;
}

static bool read_boot_id(char out[37])
{
    char text[64];
    if (read_small("/proc/sys/kernel/random/boot_id", text, sizeof text) < 36)
        return false;
    memcpy(out, text, 36);
    out[36] = '\0';
    return true;
}

/* Return the namespace of process ids of the caller, or 0 if it is unknown. */
static uint64_t own_pid_ns(void)
{
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 ? (uint64_t)info.st_ino : 0;
}

annal_status annal_process_get(uint32_t pid, annal_process *out_process, annal_error *err)
{
    struct proc_stat stat;
    annal_process process = {.pid = pid};
    if (!read_stat(pid, &stat)) {
        if (errno == ENOENT || errno == ESRCH)
            return annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no process %" PRIu32, pid);
        return annal__fail_errno(err, "cannot read /proc/%" PRIu32 "/stat", pid);
    }
    process.start = stat.start;
    if (!read_boot_id(process.boot_id))
        return annal__fail_errno(err, "cannot read the boot id of the system");
    process.pid_ns = own_pid_ns();
    *out_process = process;
    return ANNAL_OK;
}

annal_status annal_process_self(annal_process *out_process, annal_error *err)
{
    return annal_process_get((uint32_t)getpid(), out_process, err);
}

/* Find out whether the process with this id and start time has ended. It was started in this boot,
 * and in the namespace of the caller. */
static annal__process_life look_at_id(const annal_process *process, const char **out_why)
{
    struct proc_stat stat;
    if (!read_stat(process->pid, &stat)) {
        /* /proc may hide the processes of other users (hidepid), but kill() still finds them. */
        bool gone = kill((pid_t)process->pid, 0) != 0 && errno == ESRCH;
        *out_why = gone ? "no process has its id now" : "its process cannot be looked at";
        return gone ? ANNAL_PROCESS_DEAD : ANNAL_PROCESS_UNKNOWN;
    }
    if (stat.start != process->start) {
        *out_why = "another process has its id now";
        return ANNAL_PROCESS_DEAD;
    }
    /* If the main thread has ended, the process is shown as a zombie even while other threads
     * run. */
    if ((stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1) {
        *out_why = "its process has ended and waits for its parent";
        return ANNAL_PROCESS_DEAD;
    }
    *out_why = "its process is alive";
    return ANNAL_PROCESS_ALIVE;
}

static annal__process_life look(const annal_process *process, const char **out_why)
{
    char boot_id[37];
    *out_why = "nothing is known of its process";
    if (strlen(process->boot_id) != sizeof process->boot_id - 1)
        return ANNAL_PROCESS_UNKNOWN;
    if (!read_boot_id(boot_id)) {
        *out_why = "this system does not tell its boot id";
        return ANNAL_PROCESS_UNKNOWN;
    }
    if (strcmp(boot_id, process->boot_id) != 0) {
        *out_why = "the system was restarted since";
        return ANNAL_PROCESS_DEAD;
    }
    if (process->pid == 0 || process->pid > INT32_MAX || process->start == 0)
        return ANNAL_PROCESS_UNKNOWN;
    if (process->pid_ns != own_pid_ns() || process->pid_ns == 0) {
        *out_why = "it ran in another namespace of process ids";
        return ANNAL_PROCESS_UNKNOWN;
    }
    return look_at_id(process, out_why);
}

annal__process_life annal__process_look(const annal_process *process)
{
    const char *ignored;
    return look(process, &ignored);
}

bool annal_process_is_dead(const annal_process *process, const char **out_why)
{
    const char *ignored;
    return look(process, out_why == NULL ? &ignored : out_why) == ANNAL_PROCESS_DEAD;
}

const char *annal_process_json(const annal_process *process, char text[ANNAL_PROCESS_JSON_BYTES])
{
    snprintf(text, ANNAL_PROCESS_JSON_BYTES,
             "{\"pid\":%" PRIu32 ",\"start\":%" PRIu64 ",\"pid_ns\":%" PRIu64
             ",\"boot_id\":\"%.36s\"}",
             process->pid, process->start, process->pid_ns, process->boot_id);
    return text;
}
