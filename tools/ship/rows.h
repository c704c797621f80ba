/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With follow: rows of sessions and turns are made by a thread with a connection of its own, so
 * that no batch waits for them (ship.h, rule 7).
 *
 * (1) It looks a moment after a batch, and goes on until the rows of all batches are made that were
 *     there when it looked. One process at a time makes rows at a target; the others ask once a
 *     second whether theirs are done.
 * (2) Where rows are made more slowly than events come, each batch waits for a call of the thread,
 *     but not for long: events matter more than rows.
 * (3) Its failures are said once, and do not end the shipping; it tries again.
 */
#ifndef TOOLS_SHIP_ROWS_H
#define TOOLS_SHIP_ROWS_H

#include "tools/ship/ship.h"

struct row_maker; /* NULL is accepted: nothing is made */

/* *out becomes NULL if this kind of target has no such rows. */
annal_status row_maker_start(const struct ship_options *options, struct row_maker **out,
                             annal_error *err);
void row_maker_stop(struct row_maker *maker);

/* A batch was committed. Waits as rule 2 says. */
void row_maker_wake(struct row_maker *maker);

/* What was left when it looked last. Prints a failure that was not said yet. */
struct ship_rows row_maker_look(struct row_maker *maker);

#endif
