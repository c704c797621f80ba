/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and locks the watcher of a store: the process that imports the logs of agents while they
 * are written (annal watch). A store has at most one watcher, which holds a flock(2) on
 * STORE/locks/watch; the time of the file is the watcher's start.
 */
#pragma once

#include <annal/base.h>

#include <stdbool.h>

struct watcher {
    uint32_t pid; /* process id; 0: unknown */
    int64_t since_us;
};

/* Become the watcher of a store. The lock is held while *out_fd is open. ANNAL_ERR_BUSY: another
 * process is the watcher. */
annal_status watcher_begin(const char *store, int *out_fd, annal_error *err);

/* Find the watcher of a store. Return false if the store has no watcher. */
bool watcher_find(const char *store, struct watcher *out);
