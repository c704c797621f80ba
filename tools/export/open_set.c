#include "tools/export/open_set.h"

#include "journal/base/alloc.h"
#include "journal/base/hash.h"

enum { CAPACITY_LEAST = 64 };

static uint64_t id_of(enum open_kind kind, annal_slice id)
{
    return annal__hash(id.ptr, id.len, (uint64_t)kind);
}

/* The place of an id, or the free one where it would stand. */
static uint32_t place_of(const struct open_set *set, uint64_t id)
{
    uint32_t mask = set->capacity - 1, at = (uint32_t)id & mask;
    while (set->entries[at].seq != 0 && set->entries[at].id != id)
        at = (at + 1) & mask;
    return at;
}

static bool grow(struct open_set *set)
{
    struct open_set grown = {.capacity = set->capacity == 0 ? CAPACITY_LEAST : set->capacity * 2,
                             .count = set->count};
    grown.entries = annal__zalloc(grown.capacity * sizeof *grown.entries);
    if (grown.entries == NULL)
        return false;
    for (uint32_t i = 0; i < set->capacity; i++) {
        if (set->entries[i].seq != 0)
            grown.entries[place_of(&grown, set->entries[i].id)] = set->entries[i];
    }
    annal__free(set->entries);
    *set = grown;
    return true;
}

bool open_set_begin(struct open_set *set, enum open_kind kind, annal_slice id, uint64_t seq)
{
    if (set->count >= OPEN_ENTRIES_MAX || (set->count * 2 >= set->capacity && !grow(set)))
        return false;
    struct open_entry *entry = &set->entries[place_of(set, id_of(kind, id))];
    set->count += entry->seq == 0 ? 1 : 0;
    *entry = (struct open_entry){id_of(kind, id), seq, kind};
    return true;
}

/* Those behind it move up, so that each is still found from where its id points. */
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

uint64_t open_set_end(struct open_set *set, enum open_kind kind, annal_slice id)
{
    if (set->capacity == 0)
        return 0;
    uint32_t place = place_of(set, id_of(kind, id));
    uint64_t seq = set->entries[place].seq;
    if (seq != 0)
        forget(set, place);
    return seq;
}

uint64_t open_set_end_newest(struct open_set *set, enum open_kind kind)
{
    uint32_t newest = 0;
    uint64_t seq = 0;
    for (uint32_t i = 0; i < set->capacity; i++) {
        if (set->entries[i].kind == kind && set->entries[i].seq > seq) {
            newest = i;
            seq = set->entries[i].seq;
        }
    }
    if (seq != 0)
        forget(set, newest);
    return seq;
}

bool open_set_has(const struct open_set *set, enum open_kind kind, annal_slice id, uint64_t seq)
{
    return set->capacity > 0 && set->entries[place_of(set, id_of(kind, id))].seq == seq;
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
