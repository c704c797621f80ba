/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, latencies, and what the kernel knows: processor, memory and disk. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

uint64_t now_ns(void);

/* How often which time was seen, to 1.6 %. Zero is an empty one. */
#define TIMES_SUB     64
#define TIMES_BUCKETS (TIMES_SUB * 42)

struct times {
    uint64_t count, sum_ns, max_ns;
    uint32_t buckets[TIMES_BUCKETS];
};

void times_add(struct times *times, uint64_t ns);
void times_merge(struct times *into, const struct times *from);
uint64_t times_quantile_ns(const struct times *times, double share); /* 0: none was seen */

/* Middle of the values, which are sorted by it. */
double median(double *values, size_t count);

uint64_t cpu_self_us(void);

/* A process and all below it, also those that ended, in steps of 10 ms. 0: none. */
uint64_t cpu_tree_us(pid_t pid);

/* Memory of a process and of all below it: anonymous, that is not file nor shared. */
uint64_t memory_tree_bytes(pid_t pid);

/* Written to the device that holds dir, by everybody; false: not known. */
bool device_written_bytes(const char *dir, uint64_t *out_bytes);

/* What the files of a directory take on the disk. */
uint64_t disk_bytes(const char *dir);

void remove_tree(const char *dir);

/*
 * Fill all free memory with clean page cache, by reading holes of a file in dir: a machine that
 * returns free memory to its host pays again for each page that is used first, and that would slow
 * the first run. Gives up after seconds_most, or when *stop is set. Returns the free memory then.
 */
uint64_t fill_page_cache(const char *dir, double seconds_most, const volatile sig_atomic_t *stop);

struct machine {
    char kernel[128], processor[128], filesystem[32], device[64];
    unsigned cores;
    uint64_t memory_bytes;
};

void machine_look(const char *dir, struct machine *out);
