/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has begun and not ended: calls without a result, turns without an end; and results that
 * precede their call. At most 160 bytes for each.
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

/* At most this many entries are remembered at once. */
#define OPEN_ENTRIES_MAX (UINT32_C(1) << 20)

struct open_entry {
    uint64_t id;  /* a hash */
    uint64_t seq; /* seq of the event with which it began; 0: a free entry */
    int64_t ts_us;
    uint64_t turn_seq; /* turn in which it began; 0: none */
    enum open_kind kind;
};

struct open_set {
    struct open_entry *entries;
    uint32_t capacity; /* a power of two */
    uint32_t count;
    uint64_t turn_seq; /* newest open turn; 0: none */
};

/*
 * Add an entry. id is a raw JSON string; if empty, the entry can never be closed. False: the set is
 * full, or the result was already seen; the entry then counts as closed.
 */
bool open_set_begin(struct open_set *set, enum open_kind kind, annal_slice id,
                    const annal_event *event);

/* Remove an entry, and return how it began. seq is 0 if unknown. */
struct open_entry open_set_end(struct open_set *set, enum open_kind kind, annal_slice id);

/* Remove the newest entry of a kind, for an end that does not name what it ends. */
struct open_entry open_set_end_newest(struct open_set *set, enum open_kind kind);

/* Return the newest open turn; 0: none. */
uint64_t open_set_turn(const struct open_set *set);

/* List the entries that are still open, sorted by seq; after that the set may only be walked and
 * freed. */
void open_set_sort(struct open_set *set);

/* Return whether the entry that began with event seq is still open. */
bool open_set_has(const struct open_set *set, enum open_kind kind, annal_slice id, uint64_t seq);

/* Return whether an entry of this kind with this id exists. */
bool open_set_knows(const struct open_set *set, enum open_kind kind, annal_slice id);

uint32_t open_set_count(const struct open_set *set, enum open_kind kind);
void open_set_done(struct open_set *set);

#endif
