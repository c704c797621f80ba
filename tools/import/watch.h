/*
 * Word of files that change: inotify on directories. It only makes haste. Where it says nothing
 * (another machine's filesystem, no watches left), who waits has to look by himself.
 */
#ifndef TOOLS_IMPORT_WATCH_H
#define TOOLS_IMPORT_WATCH_H

#include <stdbool.h>
#include <stddef.h>

struct watch {
    int fd; /* readable when there is word; -1: none will come */
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

/* Watch a directory, or a file. Again does no harm. */
void watch_add(struct watch *watch, const char *path);

/*
 * Take the word there is. path is of a file that changed; NULL: any may have. appeared: it was not
 * there under this name before.
 */
typedef void (*watch_fn)(void *arg, const char *path, bool appeared);
void watch_read(struct watch *watch, watch_fn fn, void *arg);

#endif
