/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores of this process. Workers that open the same directory in the same way share one: what they
 * append at the same moment is then synced once.
 */
#include "native.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct base {
    annal_store *store;
    annal_store_options options;
    bool follow;
    dev_t dev;
    ino_t ino;
    unsigned users;       /* under `all_lock` */
    struct base *next;    /* the same */
    pthread_mutex_t lock; /* the members below: each is created when it is first needed */
    annal_index *index;
    struct appender *appender;
    struct waiters *waiters;
};

/* Held while a store is opened or closed: a second one waits until it knows whether to share it. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct base *all;

static bool same_options(const struct base *base, const annal_store_options *options, bool follow)
{
    return base->options.read_only == options->read_only &&
           base->options.format == options->format && base->options.batch_ms == options->batch_ms &&
           base->options.wait_ms == options->wait_ms &&
           base->options.unsafe_filesystem == options->unsafe_filesystem && base->follow == follow;
}

static struct base *find_shared(const char *path, const annal_store_options *options, bool follow)
{
    struct stat file;
    if (stat(path, &file) < 0)
        return NULL;
    struct base *base = all;
    while (base != NULL && (base->dev != file.st_dev || base->ino != file.st_ino ||
                            !same_options(base, options, follow)))
        base = base->next;
    return base;
}

static annal_status open_new(const char *path, const annal_store_options *options, bool follow,
                             struct base **out, annal_error *err)
{
    struct base *base = calloc(1, sizeof *base);
    if (base == NULL)
        return ANNAL_ERR_NOMEM;
    annal_status status = annal_store_open(path, options, &base->store, err);
    if (status < 0) {
        free(base);
        return status;
    }
    base->options = *options;
    base->follow = follow;
    struct stat file;
    if (stat(annal_store_path(base->store), &file) == 0) {
        base->dev = file.st_dev;
        base->ino = file.st_ino;
    }
    pthread_mutex_init(&base->lock, NULL);
    base->next = all;
    all = base;
    *out = base;
    return ANNAL_OK;
}

annal_status base_open(const char *path, const annal_store_options *options, bool follow,
                       struct base **out, annal_error *err)
{
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&all_lock);
    struct base *base = find_shared(path, options, follow);
    if (base == NULL)
        status = open_new(path, options, follow, &base, err);
    if (status >= 0) {
        base->users++;
        *out = base;
    }
    pthread_mutex_unlock(&all_lock);
    return status;
}

annal_status base_close(struct base *base, annal_error *err)
{
    pthread_mutex_lock(&all_lock);
    if (base->users > 1) {
        annal_status synced =
            base->options.read_only ? ANNAL_OK : annal_store_sync(base->store, err);
        base->users--;
        pthread_mutex_unlock(&all_lock);
        return synced;
    }
    struct base **at = &all;
    while (*at != base)
        at = &(*at)->next;
    *at = base->next;
    waiters_close(base->waiters);
    appender_close(base->appender);
    annal_index_close(base->index);
    annal_status status = annal_store_close(base->store, err);
    pthread_mutex_unlock(&all_lock);
    pthread_mutex_destroy(&base->lock);
    free(base);
    return status;
}

annal_store *base_store(struct base *base)
{
    return base->store;
}

annal_status base_index(struct base *base, annal_index **out, annal_error *err)
{
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&base->lock);
    if (base->index == NULL)
        status = annal_index_open(base->store, &(annal_index_options){.follow = base->follow},
                                  &base->index, err);
    *out = base->index;
    pthread_mutex_unlock(&base->lock);
    return status;
}

struct appender *base_appender(struct base *base)
{
    pthread_mutex_lock(&base->lock);
    if (base->appender == NULL)
        base->appender = appender_open(base->store, base);
    struct appender *appender = base->appender;
    pthread_mutex_unlock(&base->lock);
    return appender;
}

struct waiters *base_waiters(struct base *base, bool begin)
{
    pthread_mutex_lock(&base->lock);
    if (base->waiters == NULL && begin)
        base->waiters = waiters_open();
    struct waiters *waiters = base->waiters;
    pthread_mutex_unlock(&base->lock);
    return waiters;
}
