/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library. */
#ifndef JOURNAL_BASE_THREAD_H
#define JOURNAL_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

/*
 * pthread_create(), with all signals blocked in the new thread: they are for the program's threads.
 */
int annal__thread_start(pthread_t *out_thread, void *(*run)(void *arg), void *arg);

/*
 * A condition that can be waited on for a given time, even if the wall clock changes during the
 * wait. 0, or an errno; it may also return early.
 */
int annal__thread_cond_init(pthread_cond_t *cond);
void annal__thread_cond_wait_us(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t us);

#endif
