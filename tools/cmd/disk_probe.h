/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measure what a sync costs in a directory, and whether the disk really syncs.
 *
 * Only a power cut can prove that a disk keeps data that it reported as synced. The measurements
 * here can make it implausible: a sync that costs no more than a write into memory, or less than a
 * disk of that kind can do. Files of the probe have no name while they are used, so that nothing is
 * left behind after a crash.
 */
#ifndef TOOLS_CMD_DISK_PROBE_H
#define TOOLS_CMD_DISK_PROBE_H

#include <stdbool.h>
#include <stdint.h>

struct probe_cost {
    uint64_t rounds; /* 0: not measured, see error */
    int error;
    double p50_us;
    double p99_us;
};

struct disk_probe {
    char filesystem[24];  /* name, such as "ext4", or the number from statfs(2) */
    bool in_memory;       /* tmpfs or ramfs */
    bool is_layered;      /* overlay: the filesystem below it is not visible */
    char device[64];      /* name, such as "vda", or "" if unknown */
    char write_cache[24]; /* as the kernel reports it: "write back", "write through", or "" */
    int rotational;       /* -1: unknown */
    bool is_virtual;      /* virtual disk: the host made up its description */

    struct probe_cost plain;     /* 4 KiB over old bytes, no sync */
    struct probe_cost overwrite; /* the same with fdatasync: as in a commit log */
    struct probe_cost growing;   /* 4 KiB at the end and fdatasync */
    struct probe_cost direct;    /* overwrite through O_DIRECT and fdatasync */

    bool suspicious;
    char conclusion[400]; /* the conclusion and its reasons */
};

/* Measure for about `seconds`. 0, or errno. */
int disk_probe_run(const char *directory, double seconds, struct disk_probe *out_probe);

/* Find the name of a filesystem by its number in statfs(2); NULL if unknown. */
const char *disk_probe_filesystem(uint64_t type);

/* Judge the numbers: sets suspicious and conclusion. Separate for tests. */
void disk_probe_judge(struct disk_probe *probe);

#endif
