#include "tools/overdue.h"

#include "journal/base/alloc.h"
#include "tools/command.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GRACE_US INT64_C(1000000) /* for what can be stopped */
#define LOOK_NS  200000000

struct watch {
    int64_t due_us;
    char message[160];
};

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void *watch_it(void *arg)
{
    struct watch *watch = arg;
    for (;;) {
        int64_t due_us = __atomic_load_n(&watch->due_us, __ATOMIC_ACQUIRE);
        if (due_us != 0 && now_us() > due_us + GRACE_US) {
            (void)!write(STDERR_FILENO, watch->message, strlen(watch->message));
            _exit(EXIT_REFUSED);
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return NULL;
}

int64_t *overdue_watch(unsigned seconds)
{
    struct watch *watch = annal__zalloc(sizeof *watch);
    pthread_t thread;
    if (watch == NULL)
        return NULL;
    snprintf(watch->message, sizeof watch->message,
             "annal: SQL: it was stopped after %u seconds, in one call of a function; --timeout "
             "changes that\n",
             seconds);
    sigset_t all, before; /* signals are for the thread that waits for them */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, NULL, watch_it, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        annal__free(watch);
        return NULL;
    }
    pthread_detach(thread);
    return &watch->due_us;
}
