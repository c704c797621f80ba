/* Threads of the library. */
#ifndef JOURNAL_BASE_THREAD_H
#define JOURNAL_BASE_THREAD_H

#include <pthread.h>

/* pthread_create(), with all signals blocked in the new thread: they are for the host's. */
int annal__thread_start(pthread_t *out_thread, void *(*run)(void *arg), void *arg);

#endif
