/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/lock_holder.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TRIES 4

struct holder {
    uint32_t pid;
    bool is_writer;
};

/* Parse a line of /proc/locks: "7: FLOCK ADVISORY WRITE 123 fd:01:456 0 EOF". The line of a waiting
 * process contains "->", and does not match. Return pid 0 if it is not a lock on this file. */
static struct holder holder_in(const char *line, const struct stat *file)
{
    long pid;
    unsigned long inode;
    unsigned major_number, minor_number;
    char what[8];
    if (sscanf(line, "%*s %*s %*s %7s %ld %x:%x:%lu", what, &pid, &major_number, &minor_number,
               &inode) != 5 ||
        pid <= 0 || inode != (unsigned long)file->st_ino ||
        makedev(major_number, minor_number) != file->st_dev)
        return (struct holder){0};
    return (struct holder){(uint32_t)pid, strcmp(what, "WRITE") == 0};
}

/* Return how well a holder explains why this process waits: a writer is better than a reader, which
 * blocks only writers, and this process is the last choice. */
static int rank(struct holder holder)
{
    if (holder.pid == 0 || holder.pid == (uint32_t)getpid())
        return holder.pid == 0 ? 0 : 1;
    return holder.is_writer ? 3 : 2;
}

static uint32_t look_for_holder(const struct stat *file, bool writes)
{
    char line[256];
    struct holder best = {0};
    FILE *locks = fopen("/proc/locks", "re");
    while (locks != NULL && fgets(line, sizeof line, locks) != NULL) {
        struct holder holder = holder_in(line, file);
        if (rank(holder) > rank(best) && (holder.is_writer || !writes))
            best = holder;
    }
    if (locks != NULL)
        fclose(locks);
    return best.pid;
}

/* /proc/locks is read up to TRIES times, because the kernel returns it a page at a time, and skips
 * a line if locks before it are released in the meantime. */
uint32_t annal__lock_holder_of(const struct stat *file, bool writes)
{
    uint32_t pid = 0;
    for (int tries = 0; tries < TRIES && pid == 0; tries++)
        pid = look_for_holder(file, writes);
    return pid;
}

/* /proc/PID/stat begins "123 (name) T …"; the name may contain any characters. */
bool annal__lock_holder_is_stopped(uint32_t pid)
{
    char path[40], text[128] = "";
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    const char *state = got <= 0 ? NULL : strrchr(text, ')');
    return state != NULL && (strncmp(state, ") T", 3) == 0 || strncmp(state, ") t", 3) == 0);
}

const char *annal__lock_holder_name(uint32_t pid, char out[HOLDER_BYTES])
{
    if (pid == 0)
        snprintf(out, HOLDER_BYTES, "another process");
    else
        snprintf(out, HOLDER_BYTES, "process %" PRIu32 "%s", pid,
                 annal__lock_holder_is_stopped(pid) ? " (stopped)" : "");
    return out;
}
