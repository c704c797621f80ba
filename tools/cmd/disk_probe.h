/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sync costs in a directory, and whether the disk really does it.
 *
 * Whether a disk keeps what it said it synced can be proved only by cutting its power. What is
 * measured here can make it implausible: a sync that costs no more than a write into memory, or
 * less than a disk of that kind can do. Files of the probe have no name while they are used, so
 * that nothing is left whatever happens.
 */
#ifndef TOOLS_CMD_DISK_PROBE_H
#define TOOLS_CMD_DISK_PROBE_H

#include <stdbool.h>
#include <stdint.h>

struct probe_cost {
    uint64_t rounds; /* 0: could not be measured, error says why */
    int error;
    double p50_us;
    double p99_us;
};

struct disk_probe {
    char filesystem[24];  /* "ext4"; else the number from statfs(2) */
    bool in_memory;       /* tmpfs or ramfs */
    bool is_layered;      /* overlay: the filesystem below it is not visible */
    char device[64];      /* "vda"; "" if none can be seen */
    char write_cache[24]; /* what the kernel takes it for: "write back", "write through", or "" */
    int rotational;       /* -1: not known */
    bool is_virtual;      /* a virtual disk: its description is the host's invention */

    struct probe_cost plain;     /* 4 KiB over old bytes, no sync */
    struct probe_cost overwrite; /* and fdatasync: what a commit log does */
    struct probe_cost growing;   /* 4 KiB at the end and fdatasync */
    struct probe_cost direct;    /* overwrite through O_DIRECT and fdatasync */

    bool suspicious;
    char conclusion[400]; /* the conclusion and its reasons */
};

/* 0, or errno. Takes about `seconds`. */
int disk_probe_run(const char *directory, double seconds, struct disk_probe *out_probe);

/* The name of a filesystem by its number in statfs(2); NULL if it is not known. */
const char *filesystem_name(uint64_t type);

/* What the numbers mean; separate for tests. Fills suspicious and conclusion. */
void disk_probe_judge(struct disk_probe *probe);

#endif
