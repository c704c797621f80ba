/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/thread.h"

#include <signal.h>
#include <time.h>

int annal__thread_start(pthread_t *out_thread, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(out_thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

int annal__thread_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    int failed = pthread_condattr_init(&attr);
    if (failed != 0)
        return failed;
    failed = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (failed == 0)
        failed = pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    return failed;
}

void annal__thread_cond_wait_us(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t us)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + us % 1000000 * 1000;
    until.tv_sec += us / 1000000 + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    (void)pthread_cond_timedwait(cond, mutex, &until);
}
