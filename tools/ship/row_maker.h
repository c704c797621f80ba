/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With follow, a thread with its own connection builds the rows of sessions and turns, so that no
 * batch waits for them (ship.h, rule 7).
 *
 * (1) Shortly after each batch the thread builds the rows of all batches that exist at that time.
 *     Only one process at a time builds rows at a target; other processes check once a second
 *     whether the rows of their batches are built.
 * (2) If events arrive faster than rows are built, each batch waits for one call of the thread, but
 *     only for a limited time: events are more important than rows.
 * (3) A failure is printed once and retried; it does not stop shipping.
 */
#pragma once

#include "tools/ship/ship.h"

/* The thread that builds rows of sessions and turns. All functions below accept NULL for it, and
 * then do nothing. */
struct row_maker;

/* Start the thread. *out is NULL if this kind of target has no such rows. */
annal_status row_maker_start(const struct ship_options *options, struct row_maker **out,
                             annal_error *err);
void row_maker_stop(struct row_maker *maker);

/* Tell the thread that a batch was committed. If rows are built slower than events arrive, wait a
 * limited time (rule 2). */
void row_maker_wake(struct row_maker *maker);

/* Return the batches without rows at the thread's last check. Prints a failure that was not printed
 * yet. */
struct ship_rows row_maker_look(struct row_maker *maker);
