/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/search_fill.h"

#include "index/sys/search_fill.h"
#include "journal/base/alloc.h"
#include "journal/base/thread.h"
#include "tools/cli/progress.h"

#include <pthread.h>

#define EVENTS  20000 /* number of events for which search.db is filled before the import ends */
#define DRAW_MS 100

struct search_fill {
    annal_index *index;
    pthread_t thread;
    bool is_started;
    pthread_mutex_t lock;
    pthread_cond_t moved; /* signalled when a member below changes */
    /* guarded by lock */
    uint64_t events; /* number of events that the import appended */
    uint64_t filled; /* number of events when the thread last began to fill search.db */
    bool is_last;    /* whether the import has ended */
    bool is_done;    /* whether the thread has ended */
    annal_index_progress progress;
};

struct search_fill *search_fill_new(annal_index *index)
{
    struct search_fill *fill = annal__zalloc(sizeof *fill);
    if (fill == NULL)
        return NULL;
    fill->index = index;
    if (pthread_mutex_init(&fill->lock, NULL) == 0) {
        if (annal__thread_cond_init(&fill->moved) == 0)
            return fill;
        pthread_mutex_destroy(&fill->lock);
    }
    annal__free(fill);
    return NULL;
}

static int note_progress(void *arg, const annal_index_progress *progress)
{
    struct search_fill *fill = arg;
    pthread_mutex_lock(&fill->lock);
    fill->progress = *progress;
    pthread_mutex_unlock(&fill->lock);
    return 0;
}

static void *work(void *arg)
{
    struct search_fill *fill = arg;
    const annal_catch_up_options options = {
        .timeout_ms = ANNAL_NO_TIMEOUT, .progress = note_progress, .arg = fill};
    bool is_last = false;
    while (!is_last) {
        annal_error ignored = {0}; /* what is missing, the next search adds or reports */
        pthread_mutex_lock(&fill->lock);
        while (!fill->is_last && fill->events - fill->filled < EVENTS)
            pthread_cond_wait(&fill->moved, &fill->lock);
        fill->filled = fill->events;
        is_last = fill->is_last;
        pthread_mutex_unlock(&fill->lock);
        (void)!annal__search_fill(fill->index, &options, &ignored);
    }
    pthread_mutex_lock(&fill->lock);
    fill->is_done = true;
    pthread_cond_broadcast(&fill->moved);
    pthread_mutex_unlock(&fill->lock);
    return NULL;
}

static void start(struct search_fill *fill)
{
    if (!fill->is_started)
        fill->is_started = annal__thread_start(&fill->thread, work, fill) == 0;
}

void search_fill_note(struct search_fill *fill, uint64_t events)
{
    if (fill == NULL)
        return;
    pthread_mutex_lock(&fill->lock);
    fill->events = events;
    bool is_due = events - fill->filled >= EVENTS;
    if (is_due)
        pthread_cond_broadcast(&fill->moved);
    pthread_mutex_unlock(&fill->lock);
    if (is_due)
        start(fill);
}

void search_fill_last(struct search_fill *fill)
{
    if (fill == NULL)
        return;
    if (fill->events > 0 && annal__search_is_used(fill->index))
        start(fill);
    pthread_mutex_lock(&fill->lock);
    fill->is_last = true;
    pthread_cond_broadcast(&fill->moved);
    pthread_mutex_unlock(&fill->lock);
}

static void wait_for_end(struct search_fill *fill)
{
    struct progress line;
    progress_begin(&line, "search index", 0);
    pthread_mutex_lock(&fill->lock);
    while (!fill->is_done) {
        line.total = fill->progress.bytes_total;
        progress_set(&line, fill->progress.bytes_done, NULL);
        annal__thread_cond_wait_us(&fill->moved, &fill->lock, DRAW_MS * 1000);
    }
    pthread_mutex_unlock(&fill->lock);
    progress_hide(&line);
}

void search_fill_free(struct search_fill *fill)
{
    if (fill == NULL)
        return;
    search_fill_last(fill);
    if (fill->is_started) {
        wait_for_end(fill);
        pthread_join(fill->thread, NULL);
    }
    pthread_cond_destroy(&fill->moved);
    pthread_mutex_destroy(&fill->lock);
    annal__free(fill);
}
