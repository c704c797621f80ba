/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that call the store, so that the connection thread never waits for a disk, a lock or
 * another process: rule 2 of http.h.
 *
 * Why a pool instead of short calls in the connection thread: an append waits for a sync, a
 * catch-up for whatever other processes wrote, and neither can be split. Each queue has its own
 * threads. So long requests (search, verify, bundles) leave threads for the others, and so does
 * SQL, which runs as long as its caller allows.
 */
#ifndef TOOLS_SERVE_POOL_H
#define TOOLS_SERVE_POOL_H

#include <stdbool.h>

enum pool_queue { QUEUE_QUICK, QUEUE_SLOW, QUEUE_SQL, QUEUES };

struct pool;

struct pool *pool_new(const int threads[QUEUES]); /* NULL without memory or threads */

/* Call fn(arg) in a thread of that queue. Returns false if too many calls are waiting there. */
bool pool_submit(struct pool *pool, enum pool_queue which, void (*fn)(void *arg), void *arg);

/* Return the number of waiting and running calls. */
unsigned pool_load(struct pool *pool);

/* Finish all submitted calls and accept no more; then free the pool. Both accept NULL. */
void pool_stop(struct pool *pool);
void pool_free(struct pool *pool);

#endif
