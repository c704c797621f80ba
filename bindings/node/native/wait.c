/* SPDX-License-Identifier: Apache-2.0 */
/* One thread waits for all tails of a store. A job here requests the next events of a tail. */
#include "native.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct waiters {
    pthread_t thread;
    int wakeup; /* an eventfd: look at the list again */
    pthread_mutex_t lock;
    pthread_cond_t ended; /* a job left the list */
    struct job *jobs;
    bool stop;
};

static void ring(struct waiters *waiters)
{
    uint64_t one = 1;
    if (write(waiters->wakeup, &one, sizeof one) < 0)
        return; /* it is full, so that it wakes the thread anyway */
}

/* Look for events without waiting; true: the job has its answer. */
static bool look(struct job *job)
{
    annal_error err = {0};
    if (job->cancelled)
        return true;
    annal_status status = tail_read(job->handle, job->max, &job->table, &err);
    if (status < 0 && job->table.cell_count == 0) /* after events the next job gets the failure */
        job_failed(job, status, &err);
    return status < 0 || job->table.cell_count > 0;
}

/* Answer each job that can be; the number of those that still wait. The lock is held. */
static size_t look_at_all(struct waiters *waiters)
{
    size_t count = 0;
    struct job **at = &waiters->jobs;
    while (*at != NULL) {
        struct job *job = *at;
        if (!look(job)) {
            at = &job->next;
            count++;
            continue;
        }
        *at = job->next;
        pthread_cond_broadcast(&waiters->ended);
        job_done(job);
    }
    return count;
}

static void *wait_for_events(void *arg)
{
    struct waiters *waiters = arg;
    struct pollfd *fds = NULL;
    size_t room = 0;
    pthread_mutex_lock(&waiters->lock);
    while (!waiters->stop) {
        size_t count = look_at_all(waiters) + 1;
        if (count > room) {
            struct pollfd *grown = realloc(fds, 2 * count * sizeof *grown);
            if (grown != NULL) {
                fds = grown;
                room = 2 * count;
            }
        }
        size_t used = 0;
        if (room > 0)
            fds[used++] = (struct pollfd){.fd = waiters->wakeup, .events = POLLIN};
        for (struct job *job = waiters->jobs; job != NULL && used < room; job = job->next)
            fds[used++] = (struct pollfd){.fd = job->fd, .events = POLLIN};
        pthread_mutex_unlock(&waiters->lock);
        /* Without memory for all of them, look again now and then. */
        poll(fds, used, used < count ? 10 : -1);
        uint64_t wakeups;
        if (used > 0 && (fds[0].revents & POLLIN) != 0 &&
            read(waiters->wakeup, &wakeups, sizeof wakeups) < 0)
            wakeups = 0;
        pthread_mutex_lock(&waiters->lock);
    }
    pthread_mutex_unlock(&waiters->lock);
    free(fds);
    return NULL;
}

struct waiters *waiters_open(void)
{
    struct waiters *waiters = calloc(1, sizeof *waiters);
    if (waiters == NULL)
        return NULL;
    waiters->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&waiters->lock, NULL);
    pthread_cond_init(&waiters->ended, NULL);
    sigset_t blocked, before;
    sigfillset(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    bool failed = waiters->wakeup < 0 ||
                  pthread_create(&waiters->thread, NULL, wait_for_events, waiters) != 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        return waiters;
    if (waiters->wakeup >= 0)
        close(waiters->wakeup);
    free(waiters);
    return NULL;
}

void waiters_submit(struct waiters *waiters, struct job *job)
{
    pthread_mutex_lock(&waiters->lock);
    job->next = waiters->jobs;
    waiters->jobs = job;
    pthread_mutex_unlock(&waiters->lock);
    ring(waiters);
}

static bool is_of(const struct job *job, const struct store *store, uint32_t ticket)
{
    return job->store == store && (ticket == 0 || job->ticket == ticket);
}

void waiters_cancel(struct waiters *waiters, const struct store *store, uint32_t ticket)
{
    pthread_mutex_lock(&waiters->lock);
    for (;;) {
        bool any = false;
        for (struct job *job = waiters->jobs; job != NULL; job = job->next)
            if (is_of(job, store, ticket))
                any = job->cancelled = true;
        if (!any)
            break;
        ring(waiters);
        pthread_cond_wait(&waiters->ended, &waiters->lock);
    }
    pthread_mutex_unlock(&waiters->lock);
}

void waiters_close(struct waiters *waiters)
{
    if (waiters == NULL)
        return;
    pthread_mutex_lock(&waiters->lock);
    waiters->stop = true;
    pthread_mutex_unlock(&waiters->lock);
    ring(waiters);
    pthread_join(waiters->thread, NULL);
    close(waiters->wakeup);
    pthread_mutex_destroy(&waiters->lock);
    pthread_cond_destroy(&waiters->ended);
    free(waiters);
}
