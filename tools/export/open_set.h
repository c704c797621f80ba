/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has begun and not ended: calls without a result, turns without an end; and results whose
 * call has not come yet. At most 160 bytes for each.
 */
#ifndef TOOLS_EXPORT_OPEN_SET_H
#define TOOLS_EXPORT_OPEN_SET_H

#include <annal/event.h>

enum open_kind {
    OPEN_CALL = 1,
    OPEN_TURN,
    OPEN_RESULT,
    OPEN_ROLLED_BACK, /* turns that were taken back */
    OPEN_ABANDONED
};

/* No more than this many at once are remembered. */
#define OPEN_ENTRIES_MAX (UINT32_C(1) << 20)

struct open_entry {
    uint64_t id;  /* a hash */
    uint64_t seq; /* of the event with which it began; 0: a free place */
    int64_t ts_us;
    uint64_t turn_seq; /* of the turn in which it began; 0: none */
    enum open_kind kind;
};

struct open_set {
    struct open_entry *entries;
    uint32_t capacity; /* a power of two */
    uint32_t count;
    uint64_t turn_seq; /* of the newest open turn; 0: none */
};

/*
 * id is raw; empty: nothing ends it. False: there was no room, or a result of that id is there
 * already; it counts as ended at once.
 */
bool open_set_begin(struct open_set *set, enum open_kind kind, annal_slice id,
                    const annal_event *event);

/* How it began; it is forgotten then. seq is 0 if it is not known. */
struct open_entry open_set_end(struct open_set *set, enum open_kind kind, annal_slice id);

/* The newest of a kind, for an end that does not say what it ends; it is forgotten then. */
struct open_entry open_set_end_newest(struct open_set *set, enum open_kind kind);

/* The newest open turn; 0: none. */
uint64_t open_set_turn(const struct open_set *set);

/* What is still open, sorted by seq; after that the set may only be walked and freed. */
void open_set_sort(struct open_set *set);

/* Whether that which began with event seq is still open. */
bool open_set_has(const struct open_set *set, enum open_kind kind, annal_slice id, uint64_t seq);

/* Whether there is one of this kind with this id. */
bool open_set_knows(const struct open_set *set, enum open_kind kind, annal_slice id);

uint32_t open_set_count(const struct open_set *set, enum open_kind kind);
void open_set_done(struct open_set *set);

#endif
