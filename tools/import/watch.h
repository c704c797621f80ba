/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports changes of files with inotify. Notifications only save time: if they are not available
 * (network file system, no watches left), the caller must poll.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct watch {
    int fd; /* descriptor that is readable if notifications are pending; -1: not available */
    struct watched {
        int wd;
        char *path;
    } * all;
    size_t count;   /* number of entries, sorted by wd */
    int refused;    /* errno if a directory could not be watched; 0: all are watched */
    bool is_remote; /* whether a directory is on a file system that other machines may write */
};

void watch_init(struct watch *watch);
void watch_done(struct watch *watch);

/* Watch a directory or a file. Calling it twice for a path is harmless. */
void watch_add(struct watch *watch, const char *path);

/* Return whether all changes of the watched files are reported. */
bool watch_is_sure(const struct watch *watch);

/*
 * Read the pending notifications and call fn for each. path is the file that changed; NULL: any
 * file may have changed. appeared: whether the file is new under this name.
 */
typedef void (*watch_fn)(void *arg, const char *path, bool appeared);
void watch_read(struct watch *watch, watch_fn fn, void *arg);
