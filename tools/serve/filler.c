/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/serve/filler.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/base/thread.h"

#include <annal/tail.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#define FIRST_MS 300u
#define ROUND_MS 1000u
/* time that a request waits for the index while the index is filled, and for its own session */
#define HASTY_MS 1u
#define NAMED_MS 1000u
/* limits of a round for sessions that are written in the meantime */
#define ACTIVE_MS     100u
#define ACTIVE_EVENTS 1000
/* What is left is counted at most once in this time, and for at most a tenth of the time. */
#define COUNT_US    INT64_C(1000000)
#define COUNT_SHARE 10

struct filler {
    annal_store *store;
    annal_index *index, *hasty;
    pthread_t thread;
    bool has_thread;
    int64_t count_us; /* time before which what is left is not counted again */
    atomic_bool behind, stops;

    pthread_mutex_t lock;
    pthread_cond_t cond;
    struct filler_left left;
    bool woken;
};

/* ---- One round ---- */

static int count_session(void *arg, const annal_index_lag *lag)
{
    struct filler_left *left = arg;
    left->of++;
    if (lag->journal_seq > lag->indexed_seq) {
        left->sessions++;
        left->bytes += lag->journal_bytes - lag->indexed_bytes;
    }
    return 0;
}

static void count_left(struct filler *filler)
{
    struct filler_left left = {0};
    annal_error err = {0};
    int64_t begun_us = annal__clock_monotonic_us();
    if (begun_us < filler->count_us)
        return;
    annal_status status =
        annal_index_lag_each(filler->hasty, (annal_slice){0}, count_session, &left, &err);
    int64_t now_us = annal__clock_monotonic_us(), took_us = now_us - begun_us;
    filler->count_us =
        now_us + (took_us * COUNT_SHARE > COUNT_US ? took_us * COUNT_SHARE : COUNT_US);
    if (status < 0)
        return;
    if (left.sessions == 0)
        left.sessions = 1; /* appended since the round, or the lock was busy */
    pthread_mutex_lock(&filler->lock);
    filler->left = left;
    pthread_mutex_unlock(&filler->lock);
}

static int has_ended(void *arg, const annal_index_progress *progress)
{
    struct filler *filler = arg;
    (void)progress;
    return atomic_load(&filler->stops);
}

static annal_status index_for(struct filler *filler, annal_slice session, uint32_t ms)
{
    const annal_catch_up_options options = {.timeout_ms = ms, .progress = has_ended, .arg = filler};
    annal_error err = {0};
    return annal_index_catch_up(filler->index, session, &options, &err);
}

/* Index for one round. Returns whether the index is whole, as far as its journals can be read. */
static bool run_round(struct filler *filler, uint32_t ms)
{
    bool behind = index_for(filler, (annal_slice){0}, ms) == ANNAL_ERR_BUSY;
    if (behind) {
        count_left(filler);
    } else {
        pthread_mutex_lock(&filler->lock);
        filler->left = (struct filler_left){0};
        pthread_mutex_unlock(&filler->lock);
    }
    atomic_store(&filler->behind, behind);
    return !behind;
}

/* Index the sessions that were written since the last round. */
static void index_active(struct filler *filler, annal_tail *tail)
{
    char before[ANNAL_SESSION_ID_BYTES_MAX + 1] = "";
    annal_event event;
    annal_error err = {0};
    for (int i = 0; i < ACTIVE_EVENTS && !atomic_load(&filler->stops); i++) {
        if (annal_tail_next(tail, 0, &event, &err) != ANNAL_OK)
            return;
        annal_slice session = annal_tail_session(tail);
        if (annal__slice_is(session, before))
            continue;
        snprintf(before, sizeof before, "%.*s", ANNAL_FMT(session));
        (void)index_for(filler, session, ACTIVE_MS);
    }
}

/* ---- The thread ---- */

static void fill(struct filler *filler)
{
    annal_tail *tail = NULL;
    annal_error err = {0};
    const annal_tail_options now = {.from_now = true};
    if (annal_tail_open(filler->store, &now, &tail, &err) < 0)
        tail = NULL; /* then these sessions wait for their turn */
    while (!atomic_load(&filler->stops) && !run_round(filler, ROUND_MS)) {
        if (tail != NULL)
            index_active(filler, tail);
    }
    annal_tail_close(tail);
}

static void *run(void *arg)
{
    struct filler *filler = arg;
    while (!atomic_load(&filler->stops)) {
        if (atomic_load(&filler->behind))
            fill(filler);
        pthread_mutex_lock(&filler->lock);
        while (!filler->woken && !atomic_load(&filler->stops))
            pthread_cond_wait(&filler->cond, &filler->lock);
        filler->woken = false;
        pthread_mutex_unlock(&filler->lock);
        if (!atomic_load(&filler->stops))
            (void)run_round(filler, ROUND_MS);
    }
    return NULL;
}

annal_status filler_new(annal_store *store, annal_index *index, struct filler **out,
                        annal_error *err)
{
    const annal_index_options hasty = {.wait_ms = HASTY_MS, .no_snapshots = true};
    struct filler *filler = annal__zalloc(sizeof *filler);
    if (filler == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "serve: out of memory");
    *out = filler;
    filler->store = store;
    filler->index = index;
    pthread_mutex_init(&filler->lock, NULL);
    pthread_cond_init(&filler->cond, NULL);
    annal_status status = annal_index_open(store, &hasty, &filler->hasty, err);
    if (status < 0)
        return status;
    (void)run_round(filler, FIRST_MS);
    /* a second round begins to watch the journals, before the first request */
    filler->woken = true;
    filler->has_thread = annal__thread_start(&filler->thread, run, filler) == 0;
    return filler->has_thread ? ANNAL_OK
                              : annal__fail(err, ANNAL_ERR_NOMEM, "serve: cannot start threads");
}

void filler_free(struct filler *filler)
{
    if (filler == NULL)
        return;
    atomic_store(&filler->stops, true);
    pthread_mutex_lock(&filler->lock);
    pthread_cond_broadcast(&filler->cond);
    pthread_mutex_unlock(&filler->lock);
    if (filler->has_thread)
        pthread_join(filler->thread, NULL);
    annal_index_close(filler->hasty);
    pthread_cond_destroy(&filler->cond);
    pthread_mutex_destroy(&filler->lock);
    annal__free(filler);
}

/* ---- For requests ---- */

annal_index *filler_index(struct filler *filler, annal_slice session)
{
    if (!atomic_load(&filler->behind))
        return filler->index;
    if (session.len > 0)
        (void)index_for(filler, session, NAMED_MS);
    return filler->hasty;
}

struct filler_left filler_left(struct filler *filler)
{
    pthread_mutex_lock(&filler->lock);
    struct filler_left left = filler->left;
    pthread_mutex_unlock(&filler->lock);
    return left;
}

annal_status filler_json(struct filler *filler, struct buf *out)
{
    struct filler_left left = filler_left(filler);
    if (left.sessions == 0)
        return annal__buf_append(out, "null", 4);
    return annal__buf_printf(out,
                             "{\"sessions\":%" PRIu64 ",\"of\":%" PRIu64 ",\"bytes\":%" PRIu64 "}",
                             left.sessions, left.of, left.bytes);
}

void filler_wake(struct filler *filler, const struct filler_left *left)
{
    pthread_mutex_lock(&filler->lock);
    filler->woken = true;
    if (filler->left.sessions == 0)
        filler->left = *left;
    pthread_cond_signal(&filler->cond);
    pthread_mutex_unlock(&filler->lock);
}
