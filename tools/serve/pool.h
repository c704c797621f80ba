/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that call the store, so that the connection thread never waits for a disk, a lock or
 * another process (http.h, rule 2).
 *
 * Short calls in the connection thread would not do: an append waits for a sync, and a catch-up for
 * everything that other processes wrote; neither can be split. Each queue has its own threads. So
 * long requests (search, verify, bundles) leave threads for the others, and so does SQL, which may
 * run as long as its timeout.
 */
#pragma once

#include <stdbool.h>

enum pool_queue { QUEUE_QUICK, QUEUE_SLOW, QUEUE_SQL, QUEUES };

struct pool;

/* Start the threads of each queue. Returns NULL if memory ran out or no thread could be started. */
struct pool *pool_new(const int threads[QUEUES]);

/* Call fn(arg) in a thread of the queue `which`. Returns false if too many calls are waiting in the
 * queue. */
bool pool_submit(struct pool *pool, enum pool_queue which, void (*fn)(void *arg), void *arg);

/* Return the number of calls that wait or run, in all queues. */
unsigned pool_load(struct pool *pool);

/* pool_stop() finishes all submitted calls and accepts no more; pool_free() then frees the pool.
 * Both accept NULL. */
void pool_stop(struct pool *pool);
void pool_free(struct pool *pool);
