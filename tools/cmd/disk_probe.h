/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of a sync in a directory, and whether the disk really syncs.
 *
 * Only a power cut can prove that a disk keeps data that it reported as synced. The measurements
 * here can make it implausible: if a sync costs no more than a write into memory, or takes less
 * time than a disk of this kind needs. The files of the probe are unlinked as soon as they are
 * open, so that a crash leaves no files.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct probe_cost {
    uint64_t rounds; /* number of measured writes; 0: not measured, see error */
    int error;
    double p50_us;
    double p99_us;
};

struct disk_probe {
    char filesystem[24]; /* name, such as "ext4", or the number from statfs(2) */
    bool in_memory;      /* whether the file system is tmpfs or ramfs */
    bool is_layered; /* whether the file system is an overlay, which hides the file system below */
    char device[64]; /* name, such as "vda", or "" if unknown */
    char write_cache[24]; /* "write back" or "write through", from the kernel; "" if unknown */
    int rotational;       /* 1: rotates; 0: does not; -1: unknown */
    /* whether the disk is virtual, so that its description is chosen by the host */
    bool is_virtual;

    struct probe_cost plain;     /* write 4 KiB over old bytes, without a sync */
    struct probe_cost overwrite; /* write 4 KiB over old bytes and fdatasync, as in a commit log */
    struct probe_cost growing;   /* append 4 KiB and fdatasync */
    struct probe_cost direct;    /* write 4 KiB over old bytes with O_DIRECT, and fdatasync */

    bool suspicious;
    char conclusion[400]; /* conclusion and its reasons, for people */
};

/* Measure for about `seconds`. Return 0, or an errno. */
int disk_probe_run(const char *directory, double seconds, struct disk_probe *out_probe);

/* Return the name of a file system by its number in statfs(2); NULL if unknown. */
const char *disk_probe_filesystem(uint64_t type);

/* Judge the measurements: set suspicious and conclusion. It is a separate function for tests. */
void disk_probe_judge(struct disk_probe *probe);
