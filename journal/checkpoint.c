/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/checkpoint.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/thread.h"
#include "journal/failure_late.h"

#include <errno.h>

/*
 * Maximum number of threads that sync journals. Several files that are synced at once share one
 * flush of the device and one commit of the filesystem: syncing 1,000 journals on ext4 took 4 s one
 * after the other, 180 ms with 4 threads, 75 ms with 16.
 */
#define SYNCERS_MAX 16
/* least number of journals for each thread: with fewer, a thread costs more than it saves */
#define JOURNALS_PER_SYNCER 4

/* A journal that is being synced. */
struct dirty {
    struct session *session;
    int failed; /* errno of the failed sync, or 0 */
};

struct work {
    struct commit *commit;
    struct dirty *dirty;
    size_t count;
    _Atomic size_t next;
};

/* Add the session to work->dirty if its journal has unsynced bytes; its descriptor stays open until
 * put_back(). */
static annal_status collect_dirty(void *arg, struct session *session, annal_error *err)
{
    struct work *work = arg;
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&session->lock);
    /* the mark of level os is lost: the checkpoint releases its group (level_os.h, rule 3) */
    session->marked = false;
    if (session->dirty && session->fd >= 0 && session->late == LATE_NOT) {
        struct dirty *dirty = annal__array_add(&work->dirty, &work->count, sizeof *dirty);
        if (dirty == NULL) {
            status = annal__fail(err, ANNAL_ERR_NOMEM, "checkpoint the store: out of memory");
        } else {
            *dirty = (struct dirty){.session = session};
            /* clear before the sync: bytes that are written from now on belong to a later
             * checkpoint */
            session->dirty = false;
            session->in_use = true;
        }
    }
    pthread_mutex_unlock(&session->lock);
    return status;
}

/*
 * Record that journal i could not be synced: its events must be written to it again, because a
 * second sync would succeed although they are lost (failure.h, rule 4). Return the failure. The
 * caller holds the session's lock.
 */
static annal_status set_unsynced(const struct work *work, size_t i, annal_error *err)
{
    annal_error failure;
    struct session *session = work->dirty[i].session;
    errno = work->dirty[i].failed;
    annal__fail_errno(&failure, "cannot sync the journal of session '%s'", session->id);
    annal__failure_set_late(work->commit->sessions, session, LATE_SYNC, &failure);
    if (err != NULL)
        *err = failure;
    return failure.status;
}

static annal_status put_back(const struct work *work, bool tried, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < work->count; i++) {
        struct session *session = work->dirty[i].session;
        int failed = work->dirty[i].failed;
        pthread_mutex_lock(&session->lock);
        session->in_use = false;
        session->dirty = session->dirty || !tried || failed != 0;
        if (failed != 0)
            status = set_unsynced(work, i, err);
        pthread_cond_broadcast(&session->moved);
        pthread_mutex_unlock(&session->lock);
    }
    return status;
}

static void *sync_some(void *arg)
{
    struct work *work = arg;
    for (;;) {
        size_t i = atomic_fetch_add(&work->next, 1);
        if (i >= work->count)
            return NULL;
        struct dirty *dirty = &work->dirty[i];
        if (dirty->failed == 0 &&
            annal__metrics_fdatasync(work->commit->metrics, dirty->session->fd) < 0)
            dirty->failed = errno;
    }
}

static void sync_all(struct work *work)
{
    pthread_t helpers[SYNCERS_MAX - 1];
    size_t started = 0;
    size_t wanted = work->count / JOURNALS_PER_SYNCER;
    if (wanted > SYNCERS_MAX)
        wanted = SYNCERS_MAX;
    while (started + 1 < wanted && annal__thread_start(&helpers[started], sync_some, work) == 0)
        started++;
    sync_some(work);
    while (started > 0)
        pthread_join(helpers[--started], NULL);
}

annal_status annal__checkpoint_journals(struct commit *commit, struct session **sessions,
                                        size_t count, annal_error *err)
{
    struct work work = {.commit = commit, .count = count};
    if (count == 0)
        return ANNAL_OK;
    work.dirty = annal__zalloc(count * sizeof *work.dirty);
    if (work.dirty == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "sync the journals: out of memory");
    for (size_t i = 0; i < count; i++)
        work.dirty[i].session = sessions[i];
    sync_all(&work);
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < count; i++) {
        pthread_mutex_lock(&sessions[i]->lock);
        if (work.dirty[i].failed != 0)
            status = set_unsynced(&work, i, err);
        pthread_mutex_unlock(&sessions[i]->lock);
    }
    annal__free(work.dirty);
    return status;
}

/* Wait until every durable group is in its journals: a sync of the journals makes durable only what
 * they contain. */
static annal_status wait_until_applied(struct commit *commit, annal_error *err)
{
    pthread_mutex_lock(&commit->lock);
    uint64_t target = commit->durable;
    while (commit->applied < target)
        pthread_cond_wait(&commit->turn, &commit->lock);
    bool failed = commit->failed;
    pthread_mutex_unlock(&commit->lock);
    return failed ? annal__commit_check(commit, err) : ANNAL_OK;
}

annal_status annal__checkpoint_events(struct events_dir *events, annal_error *err)
{
    if (annal__events_dir_sync(events) == 0)
        return ANNAL_OK;
    annal_error failure;
    annal__fail_errno(&failure, "cannot sync directory %s/events", events->context->path);
    annal__commit_fail(events->commit, &failure);
    if (err != NULL)
        *err = failure;
    return failure.status;
}

annal_status annal__checkpoint_epoch(struct commit *commit, uint64_t epoch, annal_error *err)
{
    struct work work = {.commit = commit};
    annal_status status = wait_until_applied(commit, err);
    if (status < 0)
        return status;
    pthread_mutex_lock(&commit->checkpoint_lock);
    int64_t begun_us = annal__context_now_us(commit->context);
    status = annal__session_each(commit->sessions, collect_dirty, &work, err);
    bool tried = status == ANNAL_OK;
    if (tried)
        sync_all(&work);
    annal_status synced = put_back(&work, tried, tried ? err : NULL);
    if (tried)
        status = synced;
    if (status == ANNAL_OK && atomic_load(&commit->sessions->late) > 0)
        status = annal__failure_refuse_late(commit->sessions, err);
    if (status == ANNAL_OK)
        status = annal__checkpoint_events(commit->sessions->events, err);
    if (status == ANNAL_OK) {
        pthread_mutex_lock(&commit->lock);
        if (commit->released < epoch)
            commit->released = epoch;
        int64_t epoch_us = commit->epoch_us[epoch % LOG_REGIONS];
        pthread_mutex_unlock(&commit->lock);
        int64_t now_us = annal__context_now_us(commit->context);
        annal__metrics_add(commit->metrics, METRIC_CHECKPOINTS, 1);
        annal__metrics_record(commit->metrics, HISTOGRAM_CHECKPOINT_US,
                              (uint64_t)(now_us - begun_us));
        annal__metrics_record(commit->metrics, HISTOGRAM_CHECKPOINT_LAG_US,
                              (uint64_t)(now_us - epoch_us));
    }
    pthread_mutex_unlock(&commit->checkpoint_lock);
    annal__free(work.dirty);
    return status;
}
