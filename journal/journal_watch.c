/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/journal_watch.h"

#include "journal/base/alloc.h"
#include "journal/base/hash.h"
#include "journal/store.h"
#include "journal/sys/seam.h"

#include <string.h>

struct journal_change {
    uint64_t number;
    uint64_t hash; /* of the session's id */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

annal_status annal__journal_watch_init(struct journal_watch *watch, const struct context *context)
{
    watch->context = context;
    return pthread_mutex_init(&watch->lock, NULL) == 0 ? ANNAL_OK : ANNAL_ERR_NOMEM;
}

static void stop(struct journal_watch *watch)
{
    if (watch->fd >= 0)
        watch->context->io->close(watch->context->io->arg, watch->fd);
    watch->fd = -1;
}

void annal__journal_watch_done(struct journal_watch *watch)
{
    stop(watch);
    annal__free(watch->changes);
    pthread_mutex_destroy(&watch->lock);
}

static void lose_all(struct journal_watch *watch)
{
    watch->lost = ++watch->number;
    watch->count = 0;
}

static int note_name(void *arg, const char *name)
{
    struct journal_watch *watch = arg;
    size_t length;
    if (annal__session_list_codec(name, &length) == NULL)
        return 0;
    uint64_t hash = annal__hash(name, length, 0);
    struct journal_change *change = NULL;
    for (size_t i = 0; change == NULL && i < watch->count; i++)
        if (watch->changes[i].hash == hash && strlen(watch->changes[i].session) == length &&
            memcmp(watch->changes[i].session, name, length) == 0)
            change = &watch->changes[i];
    if (change == NULL && watch->count < JOURNAL_WATCH_MAX)
        change = annal__array_add(&watch->changes, &watch->count, sizeof *change);
    if (change == NULL) {
        lose_all(watch);
        return 0;
    }
    *change = (struct journal_change){.number = ++watch->number, .hash = hash};
    memcpy(change->session, name, length);
    return 0;
}

/* Watch the directory that has the name events/ now. It is identified before it is watched: if it
 * is replaced between the two, the next call notices it. */
static void begin(struct journal_watch *watch, const char *path)
{
    const struct io *io = watch->context->io;
    dev_t device;
    ino_t inode;
    bool there = io->identify(io->arg, path, &device, &inode) == 0;
    if (there && watch->fd >= 0 && device == watch->device && inode == watch->inode)
        return;
    stop(watch);
    lose_all(watch);
    if (!there)
        return;
    watch->device = device;
    watch->inode = inode;
    watch->fd = io->watch(io->arg, path);
}

/* Read the changes since the last call. Returns whether they are all known since watch->lost. */
static bool read_changes(struct journal_watch *watch)
{
    const struct io *io = watch->context->io;
    SCOPED_BUF path = {0};
    if (io->watch == NULL || annal__context_check(watch->context, NULL) < 0)
        return false;
    if (annal__context_path(watch->context, &path, "events", "", NULL) == ANNAL_OK)
        begin(watch, path.ptr);
    if (watch->fd < 0)
        return false;
    if (io->changes(io->arg, watch->fd, note_name, watch) == 0)
        return true;
    lose_all(watch);
    stop(watch);
    return false;
}

bool annal__journal_watch_changed(annal_store *store, uint64_t since, struct buf *out_sessions,
                                  uint64_t *out_now)
{
    struct journal_watch *watch = &store->journal_watch;
    pthread_mutex_lock(&watch->lock);
    bool watched = read_changes(watch), known = watched && since >= watch->lost;
    for (size_t i = 0; known && i < watch->count; i++) {
        const char *session = watch->changes[i].session;
        if (watch->changes[i].number > since)
            known = annal__buf_append(out_sessions, session, strlen(session) + 1) >= 0;
    }
    *out_now = watched ? watch->number : 0;
    pthread_mutex_unlock(&watch->lock);
    return known;
}
