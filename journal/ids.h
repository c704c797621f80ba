/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of a session's last events, for exactly-once appends.
 *
 * There are two tables of up to IDS_REMEMBERED ids each: when the young table is full, it replaces
 * the old table, and an empty table becomes the young one. So at least the last IDS_REMEMBERED ids
 * are known, in bounded memory. A table stores the hash of an id and the offset of its event; the
 * caller reads the event there and compares the id.
 */
#pragma once

#include <annal/base.h>

#define IDS_REMEMBERED 65536u

struct ids_entry {
    uint64_t hash; /* hash of the id; 0: this entry is free */
    uint64_t offset;
};

struct ids_table {
    struct ids_entry *entries;
    uint32_t slots; /* number of entries, a power of two */
    uint32_t used;
};

struct ids {
    struct ids_table young;
    struct ids_table old;
};

annal_status annal__ids_add(struct ids *ids, annal_slice id, uint64_t offset);

/* Find the offset of the event that very probably has this id (an equal hash is no proof); false if
 * no event has it. */
bool annal__ids_find(const struct ids *ids, annal_slice id, uint64_t *out_offset);
void annal__ids_done(struct ids *ids);
