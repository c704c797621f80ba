#include "journal/checkpoint.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <errno.h>

#define HELPERS            4
#define HELP_FROM_JOURNALS 8 /* below this a thread costs more than it saves */

struct work {
    annal_store *store;
    struct session **sessions;
    size_t count;
    size_t room;
    _Atomic size_t next;
    _Atomic int os_errno; /* of the first sync that failed */
    _Atomic size_t failed;
};

/* Take the dirty ones; their descriptors stay open until put_back(). */
static annal_status collect_dirty(void *arg, struct session *session, annal_error *err)
{
    struct work *work = arg;
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&session->lock);
    session->marked = false; /* loose.h rule (3) */
    if (session->dirty && session->fd >= 0) {
        if (work->count == work->room) {
            size_t room = work->room == 0 ? 64 : work->room * 2;
            struct session **bigger = annal__realloc_array(work->sessions, room, sizeof *bigger);
            if (bigger == NULL)
                status = annal__fail(err, ANNAL_ERR_NOMEM, "checkpoint: no memory");
            else {
                work->sessions = bigger;
                work->room = room;
            }
        }
        if (status == ANNAL_OK) {
            session->dirty = false; /* bytes that come now are of a later checkpoint */
            session->in_use = true;
            work->sessions[work->count++] = session;
        }
    }
    pthread_mutex_unlock(&session->lock);
    return status;
}

static void put_back(const struct work *work, bool synced)
{
    for (size_t i = 0; i < work->count; i++) {
        struct session *session = work->sessions[i];
        pthread_mutex_lock(&session->lock);
        session->in_use = false;
        session->dirty = session->dirty || !synced;
        pthread_cond_broadcast(&session->moved);
        pthread_mutex_unlock(&session->lock);
    }
}

static void *sync_some(void *arg)
{
    struct work *work = arg;
    for (;;) {
        size_t i = atomic_fetch_add(&work->next, 1);
        if (i >= work->count)
            return NULL;
        if (annal__store_fdatasync(work->store, work->sessions[i]->fd) < 0) {
            int none = 0;
            if (atomic_compare_exchange_strong(&work->os_errno, &none, errno))
                atomic_store(&work->failed, i);
        }
    }
}

static annal_status sync_all(struct work *work, annal_error *err)
{
    pthread_t helpers[HELPERS - 1];
    size_t started = 0;
    if (work->count >= HELP_FROM_JOURNALS) {
        while (started < HELPERS - 1 &&
               pthread_create(&helpers[started], NULL, sync_some, work) == 0)
            started++;
    }
    sync_some(work);
    while (started > 0)
        pthread_join(helpers[--started], NULL);
    if (atomic_load(&work->os_errno) != 0) {
        /* Never tried again here: the log keeps these bytes, and the next open writes them again. */
        annal_error failure;
        errno = atomic_load(&work->os_errno);
        annal__fail_errno(&failure, "sync the journal of session '%s'",
                          work->sessions[atomic_load(&work->failed)]->id);
        annal__commit_fail(work->store, &failure);
        if (err != NULL)
            *err = failure;
        return failure.status;
    }
    return ANNAL_OK;
}

annal_status annal__checkpoint_journals(annal_store *store, struct session **sessions, size_t count,
                                        annal_error *err)
{
    struct work work = {.store = store, .sessions = sessions, .count = count};
    return sync_all(&work, err);
}

/* Every group that is durable now must be in its journal before the journals are synced. */
static annal_status wait_until_applied(annal_store *store, annal_error *err)
{
    struct commit *commit = &store->commit;
    pthread_mutex_lock(&commit->lock);
    uint64_t target = commit->durable;
    while (commit->applied < target)
        pthread_cond_wait(&commit->turn, &commit->lock);
    bool failed = commit->failed;
    pthread_mutex_unlock(&commit->lock);
    return failed ? annal__commit_check(store, err) : ANNAL_OK;
}

annal_status annal__checkpoint_events(annal_store *store, annal_error *err)
{
    if (annal__store_sync_events(store) == 0)
        return ANNAL_OK;
    annal_error failure;
    annal__fail_errno(&failure, "sync directory %s/events", store->path);
    annal__commit_fail(store, &failure);
    if (err != NULL)
        *err = failure;
    return failure.status;
}

annal_status annal__checkpoint_epoch(annal_store *store, uint64_t epoch, annal_error *err)
{
    struct work work = {.store = store};
    annal_status status = wait_until_applied(store, err);
    if (status < 0)
        return status;
    pthread_mutex_lock(&store->checkpoint_lock);
    int64_t begun_us = annal__now_us(store);
    status = annal__session_each(store, collect_dirty, &work, err);
    if (status == ANNAL_OK)
        status = sync_all(&work, err);
    put_back(&work, status == ANNAL_OK);
    if (status == ANNAL_OK)
        status = annal__checkpoint_events(store, err);
    if (status == ANNAL_OK) {
        pthread_mutex_lock(&store->commit.lock);
        if (store->commit.released < epoch)
            store->commit.released = epoch;
        int64_t epoch_us = store->commit.epoch_us[epoch % LOG_REGIONS];
        pthread_mutex_unlock(&store->commit.lock);
        int64_t now_us = annal__now_us(store);
        annal__metrics_add(store, METRIC_CHECKPOINTS, 1);
        annal__metrics_record(store, HISTOGRAM_CHECKPOINT_US, (uint64_t)(now_us - begun_us));
        annal__metrics_record(store, HISTOGRAM_CHECKPOINT_LAG_US, (uint64_t)(now_us - epoch_us));
    }
    pthread_mutex_unlock(&store->checkpoint_lock);
    annal__free(work.sessions);
    return status;
}
