/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/open_set.h"

#include "journal/base/alloc.h"
#include "journal/base/hash.h"
#include "tools/cli/must.h"

#include <stdlib.h>

enum { CAPACITY_LEAST = 64 };

static uint64_t id_of(enum open_kind kind, annal_slice id, uint64_t seq)
{
    return id.len > 0 ? annal__hash(id.ptr, id.len, (uint64_t)kind)
                      : annal__hash(&seq, sizeof seq, (uint64_t)kind + 16);
}

/* Return the place of the entry with this id, or the free place for it. */
static uint32_t place_of(const struct open_set *set, uint64_t id)
{
    uint32_t mask = set->capacity - 1, at = (uint32_t)id & mask;
    while (set->entries[at].seq != 0 && set->entries[at].id != id)
        at = (at + 1) & mask;
    return at;
}

static void grow(struct open_set *set)
{
    struct open_set grown = *set;
    grown.capacity = set->capacity == 0 ? CAPACITY_LEAST : set->capacity * 2;
    grown.entries = must_zalloc(grown.capacity * sizeof *grown.entries);
    for (uint32_t i = 0; i < set->capacity; i++) {
        if (set->entries[i].seq != 0)
            grown.entries[place_of(&grown, set->entries[i].id)] = set->entries[i];
    }
    annal__free(set->entries);
    *set = grown;
}

bool open_set_begin(struct open_set *set, enum open_kind kind, annal_slice id,
                    const annal_event *event)
{
    if (set->count >= OPEN_ENTRIES_MAX)
        return false;
    if (set->count * 2 >= set->capacity)
        grow(set);
    uint64_t hash = id_of(kind, id, event->seq);
    struct open_entry *entry = &set->entries[place_of(set, hash)];
    if (kind == OPEN_RESULT && entry->seq != 0)
        return false;
    set->count += entry->seq == 0 ? 1 : 0;
    *entry = (struct open_entry){.id = hash,
                                 .seq = event->seq,
                                 .ts_us = event->ts_us,
                                 .turn_seq = set->turn_seq,
                                 .kind = kind};
    if (kind == OPEN_TURN)
        set->turn_seq = event->seq;
    return true;
}

/* Remove the entry in a place. Entries after it are moved, so that each can still be found from the
 * hash of its id. */
static void forget(struct open_set *set, uint32_t hole)
{
    uint32_t mask = set->capacity - 1;
    for (uint32_t at = (hole + 1) & mask; set->entries[at].seq != 0; at = (at + 1) & mask) {
        uint32_t home = (uint32_t)set->entries[at].id & mask;
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        set->entries[hole] = set->entries[at];
        hole = at;
    }
    set->entries[hole] = (struct open_entry){0};
    set->count--;
}

/* Return the place of the newest entry of a kind; capacity if there is none. */
static uint32_t newest_of(const struct open_set *set, enum open_kind kind)
{
    uint32_t newest = set->capacity;
    for (uint32_t i = 0; i < set->capacity; i++) {
        const struct open_entry *entry = &set->entries[i];
        if (entry->seq != 0 && entry->kind == kind &&
            (newest == set->capacity || entry->seq > set->entries[newest].seq))
            newest = i;
    }
    return newest;
}

static struct open_entry take(struct open_set *set, uint32_t place)
{
    struct open_entry entry = set->entries[place];
    if (entry.seq == 0)
        return entry;
    forget(set, place);
    if (entry.kind == OPEN_TURN && entry.seq == set->turn_seq) {
        uint32_t newest = newest_of(set, OPEN_TURN);
        set->turn_seq = newest < set->capacity ? set->entries[newest].seq : 0;
    }
    return entry;
}

struct open_entry open_set_end(struct open_set *set, enum open_kind kind, annal_slice id)
{
    if (set->capacity == 0 || id.len == 0)
        return (struct open_entry){0};
    return take(set, place_of(set, id_of(kind, id, 0)));
}

struct open_entry open_set_end_newest(struct open_set *set, enum open_kind kind)
{
    uint32_t newest = newest_of(set, kind);
    return newest < set->capacity ? take(set, newest) : (struct open_entry){0};
}

uint64_t open_set_turn(const struct open_set *set)
{
    return set->turn_seq;
}

bool open_set_has(const struct open_set *set, enum open_kind kind, annal_slice id, uint64_t seq)
{
    return set->capacity > 0 && set->entries[place_of(set, id_of(kind, id, seq))].seq == seq;
}

bool open_set_knows(const struct open_set *set, enum open_kind kind, annal_slice id)
{
    return set->capacity > 0 && id.len > 0 &&
           set->entries[place_of(set, id_of(kind, id, 0))].seq != 0;
}

static int by_seq(const void *a, const void *b)
{
    uint64_t one = ((const struct open_entry *)a)->seq, other = ((const struct open_entry *)b)->seq;
    return one < other ? -1 : one > other ? 1 : 0;
}

void open_set_sort(struct open_set *set)
{
    if (set->capacity > 0)
        qsort(set->entries, set->capacity, sizeof *set->entries, by_seq);
}

uint32_t open_set_count(const struct open_set *set, enum open_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->capacity; i++)
        count += set->entries[i].seq != 0 && set->entries[i].kind == kind ? 1 : 0;
    return count;
}

void open_set_done(struct open_set *set)
{
    annal__free(set->entries);
    *set = (struct open_set){0};
}
