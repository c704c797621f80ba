/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/row_maker.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum {
    MIN_AGE_MS =
        /* minimum age in ms of the oldest batch without rows, so that rows of several batches are
         * built together */
    300,
    PAUSE_MS = 400, /* minimum pause before rows are built, in ms */
    PACE_MS = 1000, /* maximum pause, and the pause while another process builds rows, in ms */
    BACKOFF_MS_MAX = 30000,
    LATE_S = 60
};
/* pause after rows were built, as a multiple of the time that building them took */
#define PAUSES 3

struct row_maker {
    const struct ship_options *options;
    /* connection to the target that only this thread uses; NULL while disconnected */
    struct ship_target *target;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool wanted, over;
    uint64_t calls;
    struct ship_rows rows;
    annal_error failure; /* failure to print; status 0 if all were printed */
};

static struct timespec in_ms(uint32_t ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000 + (at.tv_nsec + (long)(ms % 1000) * 1000000) / 1000000000;
    at.tv_nsec = (at.tv_nsec + (long)(ms % 1000) * 1000000) % 1000000000;
    return at;
}

/* Pause for ms milliseconds. Returns false if the thread must end. */
static bool pause_for(struct row_maker *maker, uint32_t ms)
{
    const struct timespec until = in_ms(ms);
    pthread_mutex_lock(&maker->lock);
    while (!maker->over && pthread_cond_timedwait(&maker->changed, &maker->lock, &until) == 0)
        ;
    bool goes_on = !maker->over;
    pthread_mutex_unlock(&maker->lock);
    return goes_on;
}

/* Wait until a batch is committed, for at most most_ms milliseconds; 0: without a limit. Returns
 * false if the thread must end. */
static bool wait_for_batch(struct row_maker *maker, uint32_t most_ms)
{
    const struct timespec until = in_ms(most_ms);
    int late = 0;
    pthread_mutex_lock(&maker->lock);
    while (!maker->wanted && !maker->over && late == 0)
        late = most_ms == 0 ? pthread_cond_wait(&maker->changed, &maker->lock)
                            : pthread_cond_timedwait(&maker->changed, &maker->lock, &until);
    maker->wanted = false;
    bool goes_on = !maker->over;
    pthread_mutex_unlock(&maker->lock);
    return goes_on;
}

/* Build the rows of some batches with one call, and note which batches remain. */
static annal_status make_some(struct row_maker *maker, struct ship_rows *out, annal_error *err)
{
    const struct ship_options *options = maker->options;
    annal_status status = ANNAL_OK;
    if (maker->target == NULL)
        status = options->kind->open(&options->target, true, &maker->target, err);
    if (status >= 0)
        status = options->kind->database->make_rows(maker->target, MIN_AGE_MS, out, err);
    pthread_mutex_lock(&maker->lock);
    maker->calls++;
    if (status >= 0)
        maker->rows = *out;
    pthread_cond_broadcast(&maker->changed);
    pthread_mutex_unlock(&maker->lock);
    return status;
}

/* Build the rows of all batches that exist now (row_maker.h, rule 1). */
static annal_status make_all(struct row_maker *maker, annal_error *err)
{
    struct ship_rows left = {0};
    annal_status status = make_some(maker, &left, err);
    const uint64_t last = left.last;
    while (status >= 0 && left.first != 0 && left.first <= last) {
        const uint64_t first = left.first;
        status = make_some(maker, &left, err);
        if (status >= 0 && !pause_for(maker, left.first == first ? PACE_MS : 0))
            break;
    }
    return status;
}

/* Disconnect, and note a failure for row_maker_look(), if it is the first since the last success.
 * The thread retries after a pause or with the next batch. An unreachable target is not noted,
 * because the shipping thread reports it. */
static void note_failure(struct row_maker *maker, const annal_error *err, bool is_first)
{
    maker->options->kind->close(maker->target);
    maker->target = NULL;
    pthread_mutex_lock(&maker->lock);
    if (is_first && err->status != ANNAL_ERR_BUSY)
        maker->failure = *err;
    pthread_mutex_unlock(&maker->lock);
}

static void *make_on(void *arg)
{
    struct row_maker *maker = arg;
    uint32_t retry_ms = 0;
    int64_t pause_ms = PAUSE_MS;
    while (wait_for_batch(maker, retry_ms) && pause_for(maker, (uint32_t)pause_ms)) {
        annal_error err = {0};
        int64_t begun_us = annal__clock_monotonic_us();
        if (make_all(maker, &err) >= 0) {
            retry_ms = 0;
        } else {
            note_failure(maker, &err, retry_ms == 0);
            retry_ms = retry_ms == 0 ? PACE_MS : retry_ms * 2;
            retry_ms = retry_ms < BACKOFF_MS_MAX ? retry_ms : BACKOFF_MS_MAX;
        }
        pause_ms = (annal__clock_monotonic_us() - begun_us) * PAUSES / 1000;
        pause_ms = pause_ms < PAUSE_MS ? PAUSE_MS : pause_ms < PACE_MS ? pause_ms : PACE_MS;
    }
    maker->options->kind->close(maker->target);
    return NULL;
}

annal_status row_maker_start(const struct ship_options *options, struct row_maker **out,
                             annal_error *err)
{
    /* signals are blocked in the new thread, so that the shipping thread handles them */
    sigset_t all, before;
    pthread_condattr_t attr;
    *out = NULL;
    if (options->kind->database == NULL)
        return ANNAL_OK;
    struct row_maker *maker = must_zalloc(sizeof *maker);
    maker->options = options;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&maker->lock, NULL);
    pthread_cond_init(&maker->changed, &attr);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&maker->thread, NULL, make_on, maker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        annal__free(maker);
        return annal__fail(err, ANNAL_ERR_IO, "ship: cannot start a thread: %s", strerror(failed));
    }
    *out = maker;
    return ANNAL_OK;
}

void row_maker_stop(struct row_maker *maker)
{
    if (maker == NULL)
        return;
    pthread_mutex_lock(&maker->lock);
    maker->over = true;
    pthread_cond_broadcast(&maker->changed);
    pthread_mutex_unlock(&maker->lock);
    pthread_join(maker->thread, NULL);
    pthread_cond_destroy(&maker->changed);
    pthread_mutex_destroy(&maker->lock);
    annal__free(maker);
}

void row_maker_wake(struct row_maker *maker)
{
    if (maker == NULL)
        return;
    const struct timespec until = in_ms(PACE_MS);
    pthread_mutex_lock(&maker->lock);
    const uint64_t calls = maker->calls;
    maker->wanted = true;
    pthread_cond_broadcast(&maker->changed);
    while (maker->rows.seconds > LATE_S && maker->calls == calls &&
           pthread_cond_timedwait(&maker->changed, &maker->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&maker->lock);
}

struct ship_rows row_maker_look(struct row_maker *maker)
{
    annal_error failure = {0};
    if (maker == NULL)
        return (struct ship_rows){0};
    pthread_mutex_lock(&maker->lock);
    const struct ship_rows rows = maker->rows;
    failure = maker->failure;
    maker->failure.status = ANNAL_OK;
    pthread_mutex_unlock(&maker->lock);
    if (failure.status < 0)
        say("%s; the rows of sessions and turns are delayed, retrying", failure.message);
    return rows;
}
