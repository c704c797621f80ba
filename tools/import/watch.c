/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/watch.h"

#include "journal/base/alloc.h"
#include "journal/base/io.h"
#include "tools/cli/must.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PATH_BYTES 4608

void watch_init(struct watch *watch)
{
    *watch = (struct watch){.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
    if (watch->fd < 0)
        watch->refused = errno;
}

void watch_done(struct watch *watch)
{
    if (watch->fd >= 0)
        close(watch->fd);
    for (size_t i = 0; i < watch->count; i++)
        annal__free(watch->all[i].path);
    annal__free(watch->all);
    *watch = (struct watch){.fd = -1};
}

/* Return the position of wd, or of the next larger wd. */
static size_t place_of(const struct watch *watch, int wd)
{
    size_t low = 0, high = watch->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (watch->all[middle].wd < wd)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct watched *find(const struct watch *watch, int wd)
{
    size_t place = place_of(watch, wd);
    return place < watch->count && watch->all[place].wd == wd ? &watch->all[place] : NULL;
}

static void forget(struct watch *watch, int wd)
{
    struct watched *gone = find(watch, wd);
    if (gone == NULL)
        return;
    annal__free(gone->path);
    watch->count--;
    memmove(gone, gone + 1, (size_t)(watch->all + watch->count - gone) * sizeof *gone);
}

static void remember(struct watch *watch, int wd, const char *path)
{
    struct watched *known = find(watch, wd);
    if (known != NULL && strcmp(known->path, path) == 0)
        return;
    char *copy = must_strndup(path, strlen(path));
    if (known != NULL) { /* the file was renamed */
        annal__free(known->path);
        known->path = copy;
        return;
    }
    size_t place = place_of(watch, wd), behind = watch->count - place;
    (void)must_array_add(&watch->all, &watch->count, sizeof *watch->all);
    memmove(watch->all + place + 1, watch->all + place, behind * sizeof *watch->all);
    watch->all[place] = (struct watched){wd, copy};
}

/* Return whether path is on a file system that other machines may write, because inotify reports
 * only changes by this machine. */
static bool is_remote(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 && annal__io_shared_filesystem((uint64_t)fs.f_type) != NULL;
}

bool watch_is_sure(const struct watch *watch)
{
    return watch->fd >= 0 && watch->refused == 0 && !watch->is_remote;
}

void watch_add(struct watch *watch, const char *path)
{
    static const uint32_t wanted = IN_MODIFY | IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO |
                                   IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF;
    if (watch->fd < 0)
        return;
    int wd = inotify_add_watch(watch->fd, path, wanted);
    if (wd >= 0) {
        remember(watch, wd, path);
        watch->is_remote = watch->is_remote || is_remote(path);
    } else if (errno != ENOENT) {
        watch->refused = errno;
    }
}

static void tell(struct watch *watch, const struct inotify_event *event, watch_fn fn, void *arg)
{
    static const uint32_t appears = IN_CREATE | IN_MOVED_TO;
    char path[PATH_BYTES];
    if (event->mask & IN_Q_OVERFLOW) {
        fn(arg, NULL, true);
        return;
    }
    const struct watched *watched = find(watch, event->wd);
    if (watched != NULL) {
        snprintf(path, sizeof path, "%s%s%s", watched->path, event->len > 0 ? "/" : "",
                 event->len > 0 ? event->name : "");
        fn(arg, path, (event->mask & appears) != 0);
    }
    if (event->mask & IN_IGNORED)
        forget(watch, event->wd);
}

void watch_read(struct watch *watch, watch_fn fn, void *arg)
{
    _Alignas(struct inotify_event) char bytes[16384];
    for (ssize_t got; watch->fd >= 0 && (got = read(watch->fd, bytes, sizeof bytes)) > 0;) {
        for (ssize_t at = 0; at < got;) {
            const struct inotify_event *event = (const struct inotify_event *)(bytes + at);
            tell(watch, event, fn, arg);
            at += (ssize_t)(sizeof *event + event->len);
        }
    }
}
