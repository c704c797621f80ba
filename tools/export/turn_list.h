/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns of a session with the time that they and what is in them took: a span contains those
 * below it, also what was answered after the turn had ended. 40 bytes for each.
 */
#ifndef TOOLS_EXPORT_TURN_LIST_H
#define TOOLS_EXPORT_TURN_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct turn_span {
    uint64_t seq;
    uint64_t end_seq; /* of the event that ended it; 0: none */
    int64_t start_us;
    int64_t end_us;
};

struct turn_list {
    struct turn_span *all; /* by seq */
    size_t count;
    size_t capacity;
};

/* A turn begins; they come by seq. False: no memory. */
bool turn_list_add(struct turn_list *turns, uint64_t seq, int64_t ts_us);

/* The turn that event seq began; NULL: there is none. */
struct turn_span *turn_list_find(const struct turn_list *turns, uint64_t seq);

/* Something in a turn took from start_us to end_us. seq 0, or of no turn: nothing. */
void turn_list_widen(const struct turn_list *turns, uint64_t seq, int64_t start_us, int64_t end_us);

void turn_list_done(struct turn_list *turns);

#endif
