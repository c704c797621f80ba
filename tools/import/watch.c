/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/watch.h"

#include "journal/base/alloc.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
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

static struct watched *find(const struct watch *watch, int wd)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->all[i].wd == wd)
            return &watch->all[i];
    return NULL;
}

static void forget(struct watch *watch, int wd)
{
    struct watched *gone = find(watch, wd);
    if (gone == NULL)
        return;
    annal__free(gone->path);
    *gone = watch->all[--watch->count];
}

static void remember(struct watch *watch, int wd, const char *path)
{
    struct watched *known = find(watch, wd);
    if (known != NULL && strcmp(known->path, path) == 0)
        return;
    char *copy = annal__strndup(path, strlen(path));
    if (known != NULL && copy != NULL) { /* it was renamed */
        annal__free(known->path);
        known->path = copy;
        return;
    }
    struct watched *added =
        copy == NULL ? NULL : annal__array_add(&watch->all, &watch->count, sizeof *added);
    if (added == NULL) {
        annal__free(copy);
        watch->refused = ENOMEM;
        return;
    }
    *added = (struct watched){wd, copy};
}

void watch_add(struct watch *watch, const char *path)
{
    static const uint32_t wanted = IN_MODIFY | IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO |
                                   IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF;
    if (watch->fd < 0)
        return;
    int wd = inotify_add_watch(watch->fd, path, wanted);
    if (wd >= 0)
        remember(watch, wd, path);
    else if (errno != ENOENT)
        watch->refused = errno;
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
