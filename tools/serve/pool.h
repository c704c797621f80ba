/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that ask the store, so that the thread of the connections never waits for a disk, a lock,
 * or another process: rule 2 of http.h.
 *
 * Why a pool, and not short calls in that thread: an append waits for a sync, a catch-up for
 * whatever other processes wrote, and neither can be cut into pieces. There are lanes with threads
 * of their own, so that what takes long (search, verify, bundles) leaves the others their threads,
 * and so does SQL, which takes as long as its caller likes.
 */
#ifndef TOOLS_SERVE_POOL_H
#define TOOLS_SERVE_POOL_H

#include <stdbool.h>

enum lane { LANE_QUICK, LANE_SLOW, LANE_SQL, LANES };

struct pool;

struct pool *pool_new(const int threads[LANES]); /* NULL: no memory, or no threads */

/* Call fn(arg) in a thread of that lane. False: too much waits there already. */
bool pool_submit(struct pool *pool, enum lane lane, void (*fn)(void *arg), void *arg);

/* How many calls wait or run. */
unsigned pool_load(struct pool *pool);

/* Finish what was submitted, and take nothing more. Then free. NULL is accepted. */
void pool_stop(struct pool *pool);
void pool_free(struct pool *pool);

#endif
