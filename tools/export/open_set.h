/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls without a result until now, turns without an end until now, and results that precede their
 * call. An entry takes at most 160 bytes.
 */
#pragma once

#include <annal/event.h>

enum open_kind {
    OPEN_CALL = 1,
    OPEN_TURN,
    OPEN_RESULT,
    OPEN_ROLLED_BACK, /* turn that was undone, and not restored */
    OPEN_ABANDONED
};

/* Maximum number of entries; if the set is full, further entries count as ended. */
#define OPEN_ENTRIES_MAX (UINT32_C(1) << 20)

struct open_entry {
    uint64_t id;  /* hash of kind and id */
    uint64_t seq; /* seq of the event that began the call or turn; 0: the entry is free */
    int64_t ts_us;
    uint64_t turn_seq; /* seq of the event that began the turn of the call; 0 without a turn */
    enum open_kind kind;
};

struct open_set {
    struct open_entry *entries;
    uint32_t capacity; /* number of entries, a power of two */
    uint32_t count;
    uint64_t turn_seq; /* seq of the event that began the newest open turn; 0 if none is open */
};

/*
 * Add an entry. id is a raw JSON string; an entry with an empty id cannot be ended by its id.
 * Returns false, and adds nothing, if the set is full or if it has this result already.
 */
bool open_set_begin(struct open_set *set, enum open_kind kind, annal_slice id,
                    const annal_event *event);

/* Remove an entry, and return it. Its seq is 0 if the set does not contain it. */
struct open_entry open_set_end(struct open_set *set, enum open_kind kind, annal_slice id);

/* Remove the newest entry of a kind, for an event that does not name what it ends. The seq of the
 * result is 0 if the set has no entry of this kind. */
struct open_entry open_set_end_newest(struct open_set *set, enum open_kind kind);

/* Return the seq of the event that began the newest open turn; 0 if none is open. */
uint64_t open_set_turn(const struct open_set *set);

/* Sort the entries by seq. After that only open_set_count() and open_set_done() may be called, and
 * the entries be read. */
void open_set_sort(struct open_set *set);

/* Return whether the entry that event seq began still exists. */
bool open_set_has(const struct open_set *set, enum open_kind kind, annal_slice id, uint64_t seq);

/* Return whether an entry of this kind with this id exists. */
bool open_set_knows(const struct open_set *set, enum open_kind kind, annal_slice id);

uint32_t open_set_count(const struct open_set *set, enum open_kind kind);
void open_set_done(struct open_set *set);
