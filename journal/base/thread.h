/* SPDX-License-Identifier: Apache-2.0 */
/* Start threads, and wait for conditions. */
#pragma once

#include <pthread.h>
#include <stdint.h>

/* Start a thread as pthread_create() does, with all signals blocked: only threads of the program
 * handle signals. */
int annal__thread_start(pthread_t *out_thread, void *(*run)(void *arg), void *arg);

/*
 * Initialize a condition, and wait for it for up to us microseconds, measured by the monotonic
 * clock. annal__thread_cond_init() returns 0 or an errno; annal__thread_cond_wait_us() may return
 * early.
 */
int annal__thread_cond_init(pthread_cond_t *cond);
void annal__thread_cond_wait_us(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t us);
