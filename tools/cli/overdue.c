/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/overdue.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "tools/cli/command.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GRACE_US INT64_C(1000000) /* extra time, in us, in which SQL stops by itself */
#define LOOK_NS  200000000

struct watch {
    int64_t due_us;
    char message[160];
};

static void *watch_it(void *arg)
{
    struct watch *watch = arg;
    for (;;) {
        int64_t due_us = __atomic_load_n(&watch->due_us, __ATOMIC_ACQUIRE);
        if (due_us != 0 && annal__clock_monotonic_us() > due_us + GRACE_US) {
            (void)!write(STDERR_FILENO, watch->message, strlen(watch->message));
            _exit(EXIT_REFUSED);
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return NULL;
}

void overdue_watch(annal_limits *limits)
{
    struct watch *watch = limits->run_ms == 0 ? NULL : annal__zalloc(sizeof *watch);
    pthread_t thread;
    /* signals are blocked in the new thread, so that other threads handle them */
    sigset_t all, before;
    if (watch == NULL)
        return;
    snprintf(watch->message, sizeof watch->message,
             "annal: SQL: stopped after %u seconds, inside one call of a function; --timeout "
             "changes the limit\n",
             limits->run_ms / 1000);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, watch_it, watch) == 0) {
        pthread_detach(thread);
        limits->due_us = &watch->due_us;
    } else {
        annal__free(watch);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
