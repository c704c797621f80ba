/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/serve/waits.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ROUND_MS  250 /* interval of the checks whether the time of a wait is over */
#define READY_MAX 256

struct waits {
    pthread_t thread;
    int epoll, wakeup;
    pthread_mutex_t lock; /* guards all below, and the members of each wait */
    struct wait *first;   /* list of the waits that wait */
    struct wait *due;     /* list of the waits whose fn is to be called */
    bool stops, ended;
};

/* Let the thread call a wait's fn. Call with the lock. */
static void make_due(struct waits *waits, struct wait *wait)
{
    if (wait->state == WAIT_DUE)
        return;
    if (wait->state == WAIT_LISTED) {
        *(wait->previous == NULL ? &waits->first : &wait->previous->next) = wait->next;
        if (wait->next != NULL)
            wait->next->previous = wait->previous;
    }
    wait->state = WAIT_DUE;
    wait->next = waits->due;
    waits->due = wait;
}

static bool add(struct waits *waits, struct wait *wait, bool now)
{
    const uint64_t one = 1;
    pthread_mutex_lock(&waits->lock);
    bool good = !waits->ended;
    now = now || wait->is_ready;
    bool wakes = good && now && waits->due == NULL;
    if (good && now) {
        make_due(waits, wait);
    } else if (good && wait->state == WAIT_NOT) {
        wait->state = WAIT_LISTED;
        wait->previous = NULL;
        wait->next = waits->first;
        if (wait->next != NULL)
            wait->next->previous = wait;
        waits->first = wait;
    }
    pthread_mutex_unlock(&waits->lock);
    if (wakes)
        (void)!write(waits->wakeup, &one, sizeof one);
    return good;
}

bool waits_for(struct waits *waits, struct wait *wait)
{
    return add(waits, wait, false);
}

bool waits_call(struct waits *waits, struct wait *wait)
{
    return add(waits, wait, true);
}

/* Watch the tail by edges: epoll reports it when an event arrives, and not again while events
 * remain unread. */
annal_status waits_watch(struct waits *waits, struct wait *wait, annal_tail *tail, annal_error *err)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = wait};
    int fd;
    annal_status status = annal_tail_fd(tail, &fd, err);
    if (status < 0 || epoll_ctl(waits->epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return status;
    return annal__fail_errno(err, "serve: cannot watch a tail");
}

/* Closing a descriptor is not enough: a child process that is being started shares it until it runs
 * its program, and until then the epoll continues to report it. */
void waits_unwatch(struct waits *waits, annal_tail *tail)
{
    int fd;
    if (tail != NULL && annal_tail_fd(tail, &fd, NULL) >= 0)
        (void)epoll_ctl(waits->epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* Call the waits of a list. fn may free its wait, or wait again. */
static void call_all(struct waits *waits, struct wait *due, bool over)
{
    while (due != NULL) {
        struct wait *wait = due;
        pthread_mutex_lock(&waits->lock);
        due = wait->next;
        wait->state = WAIT_NOT;
        wait->is_ready = false;
        pthread_mutex_unlock(&waits->lock);
        wait->fn(wait->arg, over);
    }
}

static void *run(void *arg)
{
    struct waits *waits = arg;
    struct epoll_event ready[READY_MAX];
    int64_t look_us = 0;
    bool ended = false;
    while (!ended) {
        uint64_t rings;
        int count = epoll_wait(waits->epoll, ready, READY_MAX, ROUND_MS);
        int64_t now_us = annal__clock_monotonic_us();
        (void)!read(waits->wakeup, &rings, sizeof rings);
        pthread_mutex_lock(&waits->lock);
        ended = waits->ended = waits->stops;
        for (int i = 0; i < count; i++) {
            struct wait *wait = ready[i].data.ptr;
            if (wait != NULL)
                wait->is_ready = true;
            if (wait != NULL && wait->state == WAIT_LISTED)
                make_due(waits, wait);
        }
        bool looks = ended || now_us >= look_us;
        look_us = looks ? now_us + ROUND_MS * INT64_C(1000) : look_us;
        struct wait *next = looks ? waits->first : NULL;
        for (struct wait *wait = next; wait != NULL; wait = next) {
            next = wait->next;
            if (ended || wait->until_us <= now_us)
                make_due(waits, wait);
        }
        struct wait *due = waits->due;
        waits->due = NULL;
        pthread_mutex_unlock(&waits->lock);
        call_all(waits, due, ended);
    }
    return NULL;
}

annal_status waits_new(struct waits **out, annal_error *err)
{
    struct epoll_event event = {.events = EPOLLIN};
    struct waits *waits = annal__zalloc(sizeof *waits);
    if (waits == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "serve: out of memory");
    pthread_mutex_init(&waits->lock, NULL);
    waits->epoll = epoll_create1(EPOLL_CLOEXEC);
    waits->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (waits->epoll < 0 || waits->wakeup < 0 ||
        epoll_ctl(waits->epoll, EPOLL_CTL_ADD, waits->wakeup, &event) != 0 ||
        (errno = annal__thread_start(&waits->thread, run, waits)) != 0) {
        annal__fail_errno(err, "serve: cannot start the thread that waits for events");
        waits->thread = 0;
        waits_free(waits);
        return ANNAL_ERR_IO;
    }
    *out = waits;
    return ANNAL_OK;
}

void waits_stop(struct waits *waits)
{
    const uint64_t one = 1;
    if (waits == NULL || waits->thread == 0)
        return;
    pthread_mutex_lock(&waits->lock);
    waits->stops = true;
    pthread_mutex_unlock(&waits->lock);
    (void)!write(waits->wakeup, &one, sizeof one);
    pthread_join(waits->thread, NULL);
    waits->thread = 0;
}

void waits_free(struct waits *waits)
{
    if (waits == NULL)
        return;
    waits_stop(waits);
    if (waits->epoll >= 0)
        close(waits->epoll);
    if (waits->wakeup >= 0)
        close(waits->wakeup);
    pthread_mutex_destroy(&waits->lock);
    annal__free(waits);
}
