/* SPDX-License-Identifier: Apache-2.0 */
/* The directory events/: its descriptor, whether its names are synced, the space of its disk. */
#pragma once

#include "journal/metrics.h"

#include <pthread.h>
#include <stdatomic.h>

/* number of bytes of the disk that are kept free by default */
#define FREE_RESERVE_BYTES ((uint64_t)16 << 20)
/* on a small disk, at most the disk's size divided by this number is kept free */
#define FREE_RESERVE_PART 16u

struct commit;

struct events_dir {
    const struct context *context;
    struct metrics *metrics;
    struct commit *commit; /* what stops if the directory cannot be synced (checkpoint.h) */
    int fd;                /* descriptor of events/, to sync it and to find the free space */
    /* number of bytes of the disk that are kept free; 0 before the size of the disk is known */
    uint64_t keep_free_bytes;
    _Atomic int64_t space_checked_us;
    _Atomic uint64_t space_free;

    /* Held while events/ is synced, so that a thread that then finds dirty false can rely on it. */
    pthread_mutex_t lock;
    _Atomic bool dirty; /* whether names in events/ are not synced */
};

/* Sync the directory if it has new names, and count the sync. Return 0, or -1 and set errno. */
int annal__events_dir_sync(struct events_dir *events);
