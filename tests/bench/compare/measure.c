/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/compare/measure.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define FREE_ENOUGH     ((uint64_t)256 << 20)
#define FILL_STEP_BYTES ((size_t)1 << 20)
#define FILL_STALLED    32 /* rounds of 64 MiB that leave as much free: it is kept so */

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Times ---- */

static size_t bucket_of(uint64_t ns)
{
    if (ns < TIMES_SUB)
        return (size_t)ns;
    unsigned power = 63u - (unsigned)__builtin_clzll(ns); /* >= 6 */
    size_t bucket = (size_t)(power - 5) * TIMES_SUB + (size_t)(ns >> (power - 6)) - TIMES_SUB;
    return bucket < TIMES_BUCKETS ? bucket : TIMES_BUCKETS - 1;
}

static uint64_t bound_of(size_t bucket)
{
    if (bucket < TIMES_SUB)
        return bucket;
    size_t power = bucket / TIMES_SUB + 5;
    return (bucket % TIMES_SUB + TIMES_SUB + 1) << (power - 6);
}

void times_add(struct times *times, uint64_t ns)
{
    times->count++;
    times->sum_ns += ns;
    times->buckets[bucket_of(ns)]++;
    if (ns > times->max_ns)
        times->max_ns = ns;
}

void times_merge(struct times *into, const struct times *from)
{
    into->count += from->count;
    into->sum_ns += from->sum_ns;
    if (from->max_ns > into->max_ns)
        into->max_ns = from->max_ns;
    for (size_t i = 0; i < TIMES_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

uint64_t times_quantile_ns(const struct times *times, double share)
{
    uint64_t seen = 0, wanted = (uint64_t)(share * (double)times->count);
    for (size_t i = 0; i < TIMES_BUCKETS; i++) {
        seen += times->buckets[i];
        if (seen > wanted || seen == times->count)
            return bound_of(i) < times->max_ns ? bound_of(i) : times->max_ns;
    }
    return times->max_ns;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

double median(double *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* ---- Processes ---- */

uint64_t cpu_self_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Sum fn over pid and its descendants. The children of a process are in the list of its first
 * thread. */
static uint64_t sum_tree(pid_t pid, uint64_t (*fn)(pid_t))
{
    char path[64];
    int child;
    if (pid <= 0)
        return 0;
    uint64_t sum = fn(pid);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fscanf(file, "%d", &child) == 1)
        sum += sum_tree(child, fn);
    if (file != NULL)
        fclose(file);
    return sum;
}

static uint64_t cpu_ticks(pid_t pid)
{
    char path[64], line[1024];
    unsigned long long user = 0, system = 0, user_below = 0, system_below = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    const char *rest =
        file != NULL && fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    if (rest != NULL)
        sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &user,
               &system, &user_below, &system_below);
    if (file != NULL)
        fclose(file);
    return user + system + user_below + system_below;
}

static uint64_t anonymous_kilobytes(pid_t pid)
{
    char path[64], line[256];
    unsigned long long kilobytes = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "RssAnon: %llu", &kilobytes) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kilobytes;
}

uint64_t cpu_tree_us(pid_t pid)
{
    return sum_tree(pid, cpu_ticks) * 1000000u / (uint64_t)sysconf(_SC_CLK_TCK);
}

uint64_t memory_tree_bytes(pid_t pid)
{
    return sum_tree(pid, anonymous_kilobytes) * 1024;
}

/* ---- Disk ---- */

bool device_written_bytes(const char *dir, uint64_t *out_bytes)
{
    struct stat about;
    char path[64];
    unsigned long long sectors;
    if (stat(dir, &about) < 0)
        return false;
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/stat", major(about.st_dev),
             minor(about.st_dev));
    FILE *file = fopen(path, "re");
    bool got = file != NULL && fscanf(file, "%*u %*u %*u %*u %*u %*u %llu", &sectors) == 1;
    if (file != NULL)
        fclose(file);
    if (got)
        *out_bytes = sectors * 512;
    return got;
}

static _Thread_local uint64_t walked_bytes;

static int add_size(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)path, (void)walk;
    if (kind == FTW_F)
        walked_bytes += (uint64_t)about->st_blocks * 512;
    return 0;
}

uint64_t disk_bytes(const char *dir)
{
    walked_bytes = 0;
    nftw(dir, add_size, 32, FTW_PHYS);
    return walked_bytes;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)about, (void)kind, (void)walk;
    remove(path);
    return 0;
}

void remove_tree(const char *dir)
{
    nftw(dir, remove_one, 32, FTW_PHYS | FTW_DEPTH);
}

static uint64_t memory_info(const char *name)
{
    char line[128];
    size_t len = strlen(name);
    uint64_t kilobytes = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file != NULL && kilobytes == 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, len) == 0 && line[len] == ':')
            kilobytes = strtoull(line + len + 1, NULL, 10);
    if (file != NULL)
        fclose(file);
    return kilobytes * 1024;
}

uint64_t fill_page_cache(const char *dir, double seconds_most, const volatile sig_atomic_t *stop)
{
    static char step[FILL_STEP_BYTES];
    static off_t at; /* continues after the last call, whose bytes are cached already */
    char path[4096];
    off_t size = (off_t)memory_info("MemTotal") * 2;
    snprintf(path, sizeof path, "%s/holes", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    uint64_t until = now_ns() + (uint64_t)(seconds_most * 1e9);
    if (fd < 0 || ftruncate(fd, size) < 0)
        until = 0;
    uint64_t before = UINT64_MAX;
    for (unsigned stalled = 0; !*stop && now_ns() < until && stalled < FILL_STALLED; stalled++) {
        uint64_t free_now = memory_info("MemFree");
        if (free_now <= FREE_ENOUGH)
            break;
        if (free_now + 32 * FILL_STEP_BYTES < before)
            stalled = 0;
        before = free_now;
        for (int i = 0; i < 64; i++, at += (off_t)sizeof step)
            if (pread(fd, step, sizeof step, at % size) < 0)
                until = 0;
    }
    if (fd >= 0)
        close(fd);
    return memory_info("MemFree");
}

static void processor_name(char out[128])
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "model name : %127[^\n]", out) == 1)
            break;
    if (file != NULL)
        fclose(file);
}

void machine_look(const char *dir, struct machine *out)
{
    struct utsname system;
    struct statfs about;
    struct stat place;
    *out = (struct machine){.cores = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
                            .memory_bytes = memory_info("MemTotal")};
    if (uname(&system) == 0)
        snprintf(out->kernel, sizeof out->kernel, "%.60s %.60s", system.sysname, system.release);
    processor_name(out->processor);
    if (statfs(dir, &about) == 0)
        snprintf(out->filesystem, sizeof out->filesystem, "%s",
                 about.f_type == 0xEF53       ? "ext4"
                 : about.f_type == 0x58465342 ? "xfs"
                 : about.f_type == 0x9123683E ? "btrfs"
                 : about.f_type == 0x01021994 ? "tmpfs"
                                              : "other");
    if (stat(dir, &place) == 0)
        snprintf(out->device, sizeof out->device, "%u:%u", major(place.st_dev),
                 minor(place.st_dev));
}
