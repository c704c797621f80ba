/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns of a session and how long they took: a turn covers its children, even answers after its
 * end. 40 bytes for each.
 */
#ifndef TOOLS_EXPORT_TURN_LIST_H
#define TOOLS_EXPORT_TURN_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct turn_span {
    uint64_t seq;
    uint64_t end_seq; /* event that ended it; 0: none */
    int64_t start_us;
    int64_t end_us;
};

struct turn_list {
    struct turn_span *all; /* by seq */
    size_t count;
    size_t capacity;
};

/* Add a turn; turns are added in order of seq. False: no memory. */
bool turn_list_add(struct turn_list *turns, uint64_t seq, int64_t ts_us);

/* Find the turn that event seq began; NULL if there is none. */
struct turn_span *turn_list_find(const struct turn_list *turns, uint64_t seq);

/* Extend a turn to cover start_us to end_us. Does nothing for seq 0, or without such a turn. */
void turn_list_widen(const struct turn_list *turns, uint64_t seq, int64_t start_us, int64_t end_us);

void turn_list_done(struct turn_list *turns);

#endif
