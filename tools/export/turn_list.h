/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns of a session and their times. A turn covers its children, even answers after its end.
 * 40 bytes for each turn.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct turn_span {
    uint64_t seq;
    uint64_t end_seq; /* seq of the event that ended the turn; 0: the turn is open */
    int64_t start_us;
    int64_t end_us;
};

struct turn_list {
    struct turn_span *all; /* sorted by seq */
    size_t count;
};

/* Add a turn; turns must be added in the order of seq. */
void turn_list_add(struct turn_list *turns, uint64_t seq, int64_t ts_us);

/* Return the turn that event seq began; NULL if it began none. */
struct turn_span *turn_list_find(const struct turn_list *turns, uint64_t seq);

/* Extend the turn that event seq began so that it covers start_us to end_us. Do nothing if seq
 * began no turn. */
void turn_list_widen(const struct turn_list *turns, uint64_t seq, int64_t start_us, int64_t end_us);

void turn_list_done(struct turn_list *turns);
