/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that imports the logs of agents while they are written: annal watch. A store has one
 * at a time, which holds a flock(2) on STORE/locks/watch; the time of the file is its start.
 */
#ifndef TOOLS_IMPORT_WATCHER_H
#define TOOLS_IMPORT_WATCHER_H

#include <annal/base.h>

#include <stdbool.h>

struct watcher {
    uint32_t pid; /* 0: unknown */
    int64_t since_us;
};

/* Become the watcher of a store; the descriptor holds the lock. ANNAL_ERR_BUSY: another process
 * is the watcher. */
annal_status watcher_begin(const char *store, int *out_fd, annal_error *err);

/* Find the watcher of a store; false: none runs. */
bool watcher_find(const char *store, struct watcher *out);

#endif
