/* SPDX-License-Identifier: Apache-2.0 */
/* The lock files of a store: locks/claim, locks/recovery and locks/structure. */
#pragma once

#include "journal/context.h"

#include <pthread.h>
#include <stdbool.h>

/* A lock file, locked between processes by flock. Only one thread of this process at a time calls
 * flock. */
struct file_lock {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    /* whether a thread of this process has locked it or is trying to, and alone uses fd */
    bool taken;
    int fd; /* descriptor of the lock file; -1: not open */
    char name[16];
};

annal_status annal__filelock_init(struct file_lock *lock, const char *name);

/* Open the lock file without locking it. Fails if the store cannot be written. */
annal_status annal__filelock_reach(struct context *context, struct file_lock *lock,
                                   annal_error *err);

/*
 * Wait for the lock until the deadline (monotonic, microseconds), as far as the store may wait at
 * all (seam.h), but in any case for least_us. ANNAL_ERR_BUSY names the holder, which may be a
 * stopped process, so no wait is without a limit.
 */
annal_status annal__filelock_take(struct context *context, struct file_lock *lock,
                                  int64_t deadline_us, int64_t least_us, annal_error *err);

/* Lock the file without waiting; ANNAL_ERR_BUSY if it is locked. */
annal_status annal__filelock_try(struct context *context, struct file_lock *lock, annal_error *err);
void annal__filelock_drop(struct context *context, struct file_lock *lock);
void annal__filelock_done(struct context *context, struct file_lock *lock);
