#include "journal/base/thread.h"

#include <signal.h>

int annal__thread_start(pthread_t *out_thread, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(out_thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}
