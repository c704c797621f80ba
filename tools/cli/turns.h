/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that process items 0, 1, …: several items at the same time, but parts of the work only in
 * the order of the items. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* maximum value of --jobs */
#define TURNS_JOBS_MAX 64

struct args;

struct turns {
    pthread_mutex_t lock;
    pthread_cond_t moved; /* signalled when turn changes */
    /* guarded by lock */
    size_t next;  /* number of the next item to begin */
    size_t turn;  /* number of the item whose turn it is */
    size_t count; /* number of items */
};

/* Return the value of --jobs, or the number of cores. */
unsigned turns_jobs(const struct args *args);

/*
 * Call work(workers[0]), work(workers[1]), … at the same time, workers[0] in the calling thread,
 * and wait for them. If a thread cannot be started, fewer are called: each must process items until
 * turns_take() returns SIZE_MAX.
 */
void turns_run(struct turns *turns, size_t items, void *(*work)(void *worker), void *const *workers,
               unsigned count);

/* Return the next item, or SIZE_MAX. */
size_t turns_take(struct turns *turns);

/* Return whether it is the turn of an item; wait until it is; end it. */
bool turns_has(struct turns *turns, size_t item);
void turns_wait(struct turns *turns, size_t item);
void turns_pass(struct turns *turns, size_t item);

/* Begin no more items. */
void turns_end(struct turns *turns);
