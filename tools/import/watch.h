/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications of files that change: inotify on directories. They only make it faster. If
 * notifications are unavailable (a network filesystem, no watches left), the caller must poll.
 */
#ifndef TOOLS_IMPORT_WATCH_H
#define TOOLS_IMPORT_WATCH_H

#include <stdbool.h>
#include <stddef.h>

struct watch {
    int fd; /* readable if notifications are pending; -1: unavailable */
    struct watched {
        int wd;
        char *path;
    } * all;
    size_t count;   /* sorted by wd */
    int refused;    /* errno, if a directory is not watched */
    bool is_remote; /* a directory is on a filesystem that other machines may write */
};

void watch_init(struct watch *watch);
void watch_done(struct watch *watch);

/* Watch a directory, or a file. Watching it twice is harmless. */
void watch_add(struct watch *watch, const char *path);

/* Return whether every change of what is watched is reported. */
bool watch_is_sure(const struct watch *watch);

/*
 * Read the pending notifications. path names a file that changed; NULL: any file may have.
 * appeared: it did not exist under this name before.
 */
typedef void (*watch_fn)(void *arg, const char *path, bool appeared);
void watch_read(struct watch *watch, watch_fn fn, void *arg);

#endif
