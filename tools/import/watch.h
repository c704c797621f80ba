/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications of files that change: inotify on directories. They only make it faster. Where there
 * are none (another machine's filesystem, no watches left), the caller must look by itself.
 */
#ifndef TOOLS_IMPORT_WATCH_H
#define TOOLS_IMPORT_WATCH_H

#include <stdbool.h>
#include <stddef.h>

struct watch {
    int fd; /* readable if there are notifications; -1: there will be none */
    struct watched {
        int wd;
        char *path;
    } * all;
    size_t count;
    size_t capacity;
    int refused; /* errno: a directory is not watched */
};

void watch_init(struct watch *watch);
void watch_done(struct watch *watch);

/* Watch a directory, or a file. Watching it twice does no harm. */
void watch_add(struct watch *watch, const char *path);

/*
 * Take the pending notifications. path is of a file that changed; NULL: any may have. appeared: it
 * did not exist under this name before.
 */
typedef void (*watch_fn)(void *arg, const char *path, bool appeared);
void watch_read(struct watch *watch, watch_fn fn, void *arg);

#endif
