/*
 * What has begun and not ended: calls without a result, turns without an end. 24 bytes each.
 */
#ifndef TOOLS_EXPORT_OPEN_SET_H
#define TOOLS_EXPORT_OPEN_SET_H

#include <annal/event.h>

enum open_kind { OPEN_CALL = 1, OPEN_TURN = 2 };

/* More than so many at once are not remembered. */
#define OPEN_ENTRIES_MAX (UINT32_C(1) << 20)

struct open_entry {
    uint64_t id;  /* a hash */
    uint64_t seq; /* of the event with which it began; 0: a free place */
    enum open_kind kind;
};

struct open_set {
    struct open_entry *entries;
    uint32_t capacity; /* a power of two */
    uint32_t count;
};

/* id is raw. False: there was no room, or no memory; it is as if it had ended at once. */
bool open_set_begin(struct open_set *set, enum open_kind kind, annal_slice id, uint64_t seq);

/* The seq with which it began, and it is forgotten; 0: it is not known. */
uint64_t open_set_end(struct open_set *set, enum open_kind kind, annal_slice id);

/* The newest of a kind, for an end that does not say whose it is; it is forgotten. */
uint64_t open_set_end_newest(struct open_set *set, enum open_kind kind);

/* Whether that which began with event seq is still open. */
bool open_set_has(const struct open_set *set, enum open_kind kind, annal_slice id, uint64_t seq);

uint32_t open_set_count(const struct open_set *set, enum open_kind kind);
void open_set_done(struct open_set *set);

#endif
