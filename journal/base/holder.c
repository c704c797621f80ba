#include "journal/base/holder.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* "7: FLOCK  ADVISORY  WRITE 123 fd:01:456 0 EOF". Who waits has "->" there, and no number fits. */
static uint32_t holder_in(const char *line, const struct stat *file)
{
    long pid;
    unsigned long inode;
    unsigned major_number, minor_number;
    if (sscanf(line, "%*s %*s %*s %*s %ld %x:%x:%lu", &pid, &major_number, &minor_number, &inode) !=
            4 ||
        pid <= 0 || inode != (unsigned long)file->st_ino ||
        makedev(major_number, minor_number) != file->st_dev)
        return 0;
    return (uint32_t)pid;
}

uint32_t annal__holder_of(const struct stat *file)
{
    char line[256];
    uint32_t pid = 0;
    FILE *locks = fopen("/proc/locks", "re");
    while (locks != NULL && pid == 0 && fgets(line, sizeof line, locks) != NULL)
        pid = holder_in(line, file);
    if (locks != NULL)
        fclose(locks);
    return pid;
}

/* "123 (name) T …": by a signal, or by a debugger. A name may have any characters in it. */
static bool is_stopped(uint32_t pid)
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

const char *annal__holder_name(uint32_t pid, char out[HOLDER_BYTES])
{
    if (pid == 0)
        snprintf(out, HOLDER_BYTES, "another process");
    else
        snprintf(out, HOLDER_BYTES, "process %" PRIu32 "%s", pid,
                 is_stopped(pid) ? ", which is stopped" : "");
    return out;
}
