/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for the next event of a session without a thread for each wait: one thread watches the
 * descriptors of the tails, and the times.
 */
#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/thread.h"
#include "tools/serve/durable.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#define WAITS_MAX 8192u
#define ROUND_MS  250
#define READY_MAX 256

struct wait {
    annal_tail *tail;
    int fd;
    int64_t until_us;
    void (*fn)(void *arg, bool over);
    void *arg;
    bool is_ready;
    struct wait *next;
};

struct durable_waits {
    pthread_t thread;
    int epoll;
    pthread_mutex_t lock;
    struct wait *first;
    unsigned count;
    bool stops;
};

static void free_wait(struct wait *wait)
{
    annal_tail_close(wait->tail);
    annal__free(wait);
}

/* Open the tail of a wait. Returns ANNAL_END if it has no event yet. */
static annal_status open_tail(struct serve *serve, annal_slice session, uint64_t seq,
                              struct wait *wait)
{
    annal_event event;
    const annal_tail_options options = {.sessions = &session, .session_count = 1, .from_seq = seq};
    annal_status status = annal_tail_open(serve->store, &options, &wait->tail, NULL);
    if (status >= 0)
        status = annal_tail_fd(wait->tail, &wait->fd, NULL);
    return status < 0 ? status : annal_tail_next(wait->tail, 0, &event, NULL);
}

/* Add a wait to the list. Returns false if the list is full, or the server ends. */
static bool add(struct durable_waits *waits, struct wait *wait)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = wait};
    pthread_mutex_lock(&waits->lock);
    bool good = !waits->stops && waits->count < WAITS_MAX &&
                epoll_ctl(waits->epoll, EPOLL_CTL_ADD, wait->fd, &event) == 0;
    if (good) {
        wait->next = waits->first;
        waits->first = wait;
        waits->count++;
    }
    pthread_mutex_unlock(&waits->lock);
    return good;
}

void durable_wait_for(struct serve *serve, annal_slice session, uint64_t seq, int64_t until_us,
                      void (*fn)(void *arg, bool over), void *arg)
{
    struct wait *wait = annal__zalloc(sizeof *wait);
    annal_status status = ANNAL_ERR_NOMEM;
    if (wait != NULL) {
        *wait = (struct wait){.until_us = until_us, .fn = fn, .arg = arg};
        status = open_tail(serve, session, seq, wait);
        if (status == ANNAL_END && add(serve->waits, wait))
            return;
        free_wait(wait);
    }
    fn(arg, status < 0 || status == ANNAL_END);
}

/* Take the waits that are ready, or whose time has come, off the list. */
static struct wait *take_due(struct durable_waits *waits, int64_t now_us, bool all)
{
    struct wait *due = NULL;
    for (struct wait **at = &waits->first; *at != NULL;) {
        struct wait *wait = *at;
        if (!all && !wait->is_ready && wait->until_us > now_us) {
            at = &wait->next;
            continue;
        }
        *at = wait->next;
        wait->next = due;
        due = wait;
        waits->count--;
        (void)epoll_ctl(waits->epoll, EPOLL_CTL_DEL, wait->fd, NULL);
    }
    return due;
}

static void end_all(struct wait *due, bool over)
{
    while (due != NULL) {
        struct wait *next = due->next;
        void (*fn)(void *arg, bool over) = due->fn;
        void *arg = due->arg;
        free_wait(due);
        fn(arg, over);
        due = next;
    }
}

static void *run(void *arg)
{
    struct durable_waits *waits = arg;
    struct epoll_event ready[READY_MAX];
    bool stops = false;
    while (!stops) {
        int count = epoll_wait(waits->epoll, ready, READY_MAX, ROUND_MS);
        pthread_mutex_lock(&waits->lock);
        for (int i = 0; i < count; i++)
            ((struct wait *)ready[i].data.ptr)->is_ready = true;
        stops = waits->stops;
        struct wait *due = take_due(waits, annal__clock_monotonic_us(), stops);
        pthread_mutex_unlock(&waits->lock);
        end_all(due, stops);
    }
    return NULL;
}

annal_status durable_wait_new(struct durable_waits **out, annal_error *err)
{
    struct durable_waits *waits = annal__zalloc(sizeof *waits);
    if (waits == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "streams: out of memory");
    pthread_mutex_init(&waits->lock, NULL);
    waits->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (waits->epoll < 0 || (errno = annal__thread_start(&waits->thread, run, waits)) != 0) {
        annal__fail_errno(err, "serve: cannot start the thread that waits for streams");
        waits->thread = 0;
        durable_wait_free(waits);
        return ANNAL_ERR_IO;
    }
    *out = waits;
    return ANNAL_OK;
}

void durable_wait_stop(struct durable_waits *waits)
{
    if (waits == NULL || waits->thread == 0)
        return;
    pthread_mutex_lock(&waits->lock);
    waits->stops = true;
    pthread_mutex_unlock(&waits->lock);
    pthread_join(waits->thread, NULL);
    waits->thread = 0;
}

void durable_wait_free(struct durable_waits *waits)
{
    if (waits == NULL)
        return;
    durable_wait_stop(waits);
    if (waits->epoll >= 0)
        close(waits->epoll);
    pthread_mutex_destroy(&waits->lock);
    annal__free(waits);
}
