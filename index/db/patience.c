/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/patience.h"

#include "index/db/page_proof.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <stddef.h>
#include <stdio.h>

#define PAUSE_MS_MOST 20

/* Return the earliest deadline of this thread's limits, or INT64_MAX (rule 3). */
static int64_t deadline_of(struct patience *patience)
{
    int64_t deadline_us = INT64_MAX;
    pthread_mutex_lock(&patience->mutex);
    for (const struct patience_limit *l = patience->limits; l != NULL; l = l->next)
        if (pthread_equal(l->thread, pthread_self()) && l->deadline_us < deadline_us)
            deadline_us = l->deadline_us;
    pthread_mutex_unlock(&patience->mutex);
    return deadline_us;
}

/* Return how long to sleep, in microseconds: at most us, and not past any limit of a wait that
 * began at begun_us; 0 if its time is up. */
static int64_t left_of(struct patience *patience, int64_t begun_us, int64_t us)
{
    int64_t until_us = begun_us + (int64_t)*patience->wait_ms * 1000;
    int64_t deadline_us = deadline_of(patience);
    int64_t left_us =
        (deadline_us < until_us ? deadline_us : until_us) - annal__clock_monotonic_us();
    if (patience->store != NULL)
        left_us = annal__store_may_wait(patience->store, left_us);
    return left_us <= 0 ? 0 : left_us < us ? left_us : us;
}

static void pause_for(struct patience *patience, int64_t us)
{
    if (patience->store != NULL)
        annal__store_wait_begin(patience->store);
    (void)patience->sleep(&patience->vfs, (int)us);
    if (patience->store != NULL)
        annal__store_wait_end(patience->store);
}

static struct patience *patience_of(sqlite3_vfs *vfs)
{
    return (struct patience *)(void *)((char *)vfs - offsetof(struct patience, vfs));
}

static int open_proven(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                       int *out_flags)
{
    struct patience *patience = patience_of(vfs);
    int rc = patience->open(vfs, name, file, flags, out_flags);
    if (rc == SQLITE_OK && patience->proves && (flags & SQLITE_OPEN_MAIN_DB) != 0)
        annal__page_proof_begin(vfs, file, name);
    return rc;
}

/*
 * Sleep as SQLite requests, but not past the deadline (rule 2). A sleep of one microsecond marks
 * the beginning of a series of attempts.
 */
static int sleep_within(sqlite3_vfs *vfs, int us)
{
    struct patience *patience = patience_of(vfs);
    if (us <= 1)
        atomic_store(&patience->begun_us, annal__clock_monotonic_us());
    int64_t least_us = left_of(patience, atomic_load(&patience->begun_us), us);
    if (least_us > 0)
        pause_for(patience, least_us);
    return us;
}

/* Sleep before the next attempt, or return 0 if the time is up: the busy handler of rule (1). The
 * duration of this wait follows from the number of attempts. */
static int wait_for_others(void *arg, int tries)
{
    struct patience *patience = arg;
    int64_t most = tries < PAUSE_MS_MOST ? tries : PAUSE_MS_MOST;
    int64_t waited_ms = most * (most + 1) / 2 + (int64_t)(tries - most) * PAUSE_MS_MOST;
    int64_t pause_ms = tries < PAUSE_MS_MOST ? tries + 1 : PAUSE_MS_MOST;
    int64_t pause_us =
        left_of(patience, annal__clock_monotonic_us() - waited_ms * 1000, pause_ms * 1000);
    if (pause_us == 0)
        return 0;
    pause_for(patience, pause_us);
    return 1;
}

annal_status annal__patience_init(struct patience *patience, annal_store *store,
                                  const uint32_t *wait_ms, annal_error *err)
{
    *patience = (struct patience){.store = store};
    /* sqlite3_vfs_find() initializes SQLite, if necessary */
    const sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
    if (usual == NULL || pthread_mutex_init(&patience->mutex, NULL) != 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "start SQLite: out of memory");
    patience->wait_ms = wait_ms;
    if (usual != sqlite3_vfs_find("unix")) /* another default VFS is used unchanged: rule (2) */
        return ANNAL_OK;
    snprintf(patience->name, sizeof patience->name, "annal-wait-%p", (void *)patience);
    patience->vfs = *usual;
    patience->vfs.pNext = NULL;
    patience->vfs.zName = patience->name;
    patience->sleep = patience->vfs.xSleep;
    patience->vfs.xSleep = sleep_within;
    patience->open = patience->vfs.xOpen;
    patience->vfs.xOpen = open_proven;
    annal__page_proof_init(&patience->vfs);
    sqlite3_vfs_register(&patience->vfs, 0);
    return ANNAL_OK;
}

void annal__patience_done(struct patience *patience)
{
    if (patience->wait_ms == NULL)
        return;
    if (patience->sleep != NULL)
        sqlite3_vfs_unregister(&patience->vfs);
    pthread_mutex_destroy(&patience->mutex);
    patience->sleep = NULL;
    patience->wait_ms = NULL;
}

const char *annal__patience_vfs(const struct patience *patience)
{
    return patience->sleep == NULL ? NULL : patience->name;
}

void annal__patience_on(struct patience *patience, sqlite3 *db)
{
    sqlite3_busy_handler(db, wait_for_others, patience);
}

void annal__patience_limit(struct patience *patience, struct patience_limit *limit,
                           int64_t deadline_us)
{
    limit->thread = pthread_self();
    limit->deadline_us = deadline_us;
    pthread_mutex_lock(&patience->mutex);
    limit->next = patience->limits;
    patience->limits = limit;
    pthread_mutex_unlock(&patience->mutex);
}

void annal__patience_unlimit(struct patience *patience, struct patience_limit *limit)
{
    pthread_mutex_lock(&patience->mutex);
    struct patience_limit **link = &patience->limits;
    while (*link != limit)
        link = &(*link)->next;
    *link = limit->next;
    pthread_mutex_unlock(&patience->mutex);
}
