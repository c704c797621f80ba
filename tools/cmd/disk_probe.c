/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cmd/disk_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK_BYTES = 4096, FILE_BLOCKS = 256, ROUNDS_MAX = 20000, ROUNDS_MIN = 3 };

/*
 * Minimum time of a sync to a rotating disk, in us: about half a turn. A faster sync was
 * acknowledged by a cache, which may lose the data without power.
 */
static const double turning_us = 2000;
/* A sync that takes less than this many us more than a write did not reach the disk. */
static const double nothing_us = 8;

/* ---- The device ---- */

static const struct {
    uint64_t type;
    const char *name;
} filesystems[] = {
    {0xef53, "ext4"},         {0x58465342, "XFS"},  {0x9123683e, "Btrfs"},    {0x2fc12fc1, "ZFS"},
    {0xca451a4e, "bcachefs"}, {0xf2f52010, "F2FS"}, {0x01021994, "tmpfs"},    {0x858458f6, "ramfs"},
    {0x794c7630, "overlay"},  {0x3153464a, "JFS"},  {0x52654973, "ReiserFS"}, {0x4d44, "FAT"},
    {0x2011bab0, "exFAT"},    {0x7366746e, "NTFS"},
};

const char *disk_probe_filesystem(uint64_t type)
{
    for (size_t i = 0; i < sizeof filesystems / sizeof filesystems[0]; i++) {
        if (filesystems[i].type == type)
            return filesystems[i].name;
    }
    return NULL;
}

/* Read the first line of a file of the kernel, such as one in /sys; "" if it cannot be read. */
static void read_line(const char *path, char *out, size_t room)
{
    FILE *file = fopen(path, "re");
    out[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(out, (int)room, file) == NULL)
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    fclose(file);
}

/* Find the properties of the device. A partition has no directory queue; its disk, the directory
 * above, has it. */
static void look_at_device(dev_t id, struct disk_probe *probe)
{
    char link[64], path[PATH_MAX], file[PATH_MAX + 40], turns[8];
    probe->rotational = -1;
    snprintf(link, sizeof link, "/sys/dev/block/%u:%u", major(id), minor(id));
    if (realpath(link, path) == NULL)
        return;
    snprintf(file, sizeof file, "%s/queue", path);
    if (access(file, F_OK) != 0)
        *strrchr(path, '/') = '\0';
    snprintf(probe->device, sizeof probe->device, "%.60s", strrchr(path, '/') + 1);
    probe->is_virtual =
        strncmp(probe->device, "vd", 2) == 0 || strncmp(probe->device, "xvd", 3) == 0;
    snprintf(file, sizeof file, "%s/queue/write_cache", path);
    read_line(file, probe->write_cache, sizeof probe->write_cache);
    snprintf(file, sizeof file, "%s/queue/rotational", path);
    read_line(file, turns, sizeof turns);
    if (turns[0] != '\0')
        probe->rotational = turns[0] == '1';
}

static void look_at_filesystem(uint64_t type, struct disk_probe *probe)
{
    const char *name = disk_probe_filesystem(type);
    if (name != NULL)
        snprintf(probe->filesystem, sizeof probe->filesystem, "%s", name);
    else
        snprintf(probe->filesystem, sizeof probe->filesystem, "0x%" PRIx64, type);
    probe->in_memory = name != NULL && (strcmp(name, "tmpfs") == 0 || strcmp(name, "ramfs") == 0);
    probe->is_layered = name != NULL && strcmp(name, "overlay") == 0;
}

/* ---- Measuring ---- */

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Open a new file and unlink it. Return the descriptor, or -1 with errno. */
static int open_nameless(const char *directory, int flags)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/.probe-%ld", directory, (long)getpid()) >=
        (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    int why = errno;
    /* EINVAL: the file system refuses O_DIRECT, but some create the file all the same */
    if (fd >= 0 || why == EINVAL)
        unlink(path);
    errno = why;
    return fd;
}

enum way { WAY_PLAIN, WAY_OVERWRITE, WAY_GROWING, WAY_DIRECT };

static int write_blocks(int fd, const void *block)
{
    for (off_t i = 0; i < FILE_BLOCKS; i++) {
        errno = EIO;
        if (pwrite(fd, block, BLOCK_BYTES, i * BLOCK_BYTES) != BLOCK_BYTES)
            return -1;
    }
    return fsync(fd);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static int time_rounds(int fd, const void *block, enum way way, double seconds,
                       struct probe_cost *cost)
{
    double *took = malloc(ROUNDS_MAX * sizeof *took);
    double end = now_us() + seconds * 1e6;
    size_t count = 0;
    int failed = took == NULL;
    errno = ENOMEM;
    while (!failed && count < ROUNDS_MAX && (count < ROUNDS_MIN || now_us() < end)) {
        off_t at = way == WAY_GROWING ? (off_t)count : (off_t)(count % FILE_BLOCKS);
        double begun = now_us();
        errno = EIO;
        failed = pwrite(fd, block, BLOCK_BYTES, at * BLOCK_BYTES) != BLOCK_BYTES ||
                 (way != WAY_PLAIN && fdatasync(fd) != 0);
        if (!failed)
            took[count++] = now_us() - begun;
    }
    if (!failed) {
        qsort(took, count, sizeof *took, compare);
        *cost = (struct probe_cost){
            .rounds = count, .p50_us = took[count / 2], .p99_us = took[count - 1 - count / 100]};
    }
    int why = errno;
    free(took);
    errno = why;
    return failed ? -1 : 0;
}

static void measure(const char *directory, enum way way, double seconds, struct probe_cost *cost)
{
    void *block = NULL;
    int fd = -1;
    *cost = (struct probe_cost){0};
    if (posix_memalign(&block, BLOCK_BYTES, BLOCK_BYTES) != 0) {
        cost->error = ENOMEM;
        return;
    }
    memset(block, 'a', BLOCK_BYTES);
    fd = open_nameless(directory, way == WAY_DIRECT ? O_DIRECT : 0);
    if (fd < 0 || (way != WAY_GROWING && write_blocks(fd, block) != 0) ||
        time_rounds(fd, block, way, seconds, cost) != 0)
        cost->error = errno;
    if (fd >= 0)
        close(fd);
    free(block);
}

/* ---- Judging ---- */

void disk_probe_judge(struct disk_probe *probe)
{
    char *out = probe->conclusion;
    size_t room = sizeof probe->conclusion;
    double sync = probe->overwrite.p50_us;
    double more = sync - probe->plain.p50_us;
    probe->suspicious = true;
    if (probe->in_memory)
        snprintf(out, room, "%s is in memory: nothing in it survives a power cut",
                 probe->filesystem);
    else if (probe->overwrite.rounds == 0)
        snprintf(out, room, "cannot measure a sync: %s", strerror(probe->overwrite.error));
    else if (more < nothing_us)
        snprintf(
            out, room,
            "a sync takes %.0f us, only %.0f us more than a write that is not synced: the disk "
            "seems to ignore it (a disk image or a mount that drops syncs, or a disk that lies)",
            sync, more > 0 ? more : 0);
    else if (probe->rotational == 1 && !probe->is_virtual && sync < turning_us)
        snprintf(out, room,
                 "%s is a rotating disk, but a sync takes only %.0f us, less than half a turn: a "
                 "write cache answers, which is safe only with a battery",
                 probe->device, sync);
    else {
        probe->suspicious = false;
        snprintf(out, room,
                 "a sync takes %.0f us, %.0f us more than a write that is not synced%s%s%s; this "
                 "is plausible, but only a power cut can prove it",
                 sync, more,
                 probe->write_cache[0] == '\0' ? ""
                                               : ", the kernel reports the cache of the disk as ",
                 probe->write_cache,
                 probe->is_virtual   ? ", the host of this virtual disk may hide a cache"
                 : probe->is_layered ? ", the file system below the overlay is not visible"
                                     : "");
    }
}

int disk_probe_run(const char *directory, double seconds, struct disk_probe *out_probe)
{
    struct disk_probe probe = {.rotational = -1};
    struct statfs fs;
    struct stat info;
    if (statfs(directory, &fs) != 0 || stat(directory, &info) != 0)
        return errno;
    look_at_filesystem((uint64_t)(uint32_t)fs.f_type, &probe);
    look_at_device(info.st_dev, &probe);
    measure(directory, WAY_PLAIN, seconds / 8, &probe.plain);
    measure(directory, WAY_OVERWRITE, seconds * 3 / 8, &probe.overwrite);
    measure(directory, WAY_GROWING, seconds / 4, &probe.growing);
    measure(directory, WAY_DIRECT, seconds / 4, &probe.direct);
    disk_probe_judge(&probe);
    *out_probe = probe;
    return 0;
}
