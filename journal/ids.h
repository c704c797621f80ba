/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of a session's last events, for exactly-once appends.
 *
 * There are two generations of up to IDS_REMEMBERED ids each: when the young one is full it becomes
 * the old one. So at least the last IDS_REMEMBERED ids are known, in bounded memory. An id is kept
 * as its hash and the place of its event; the caller compares the bytes there.
 */
#ifndef JOURNAL_IDS_H
#define JOURNAL_IDS_H

#include <annal/base.h>

#define IDS_REMEMBERED 65536u

struct ids_entry {
    uint64_t hash; /* 0: free */
    uint64_t offset;
};

struct ids_table {
    struct ids_entry *entries;
    uint32_t slots; /* a power of two */
    uint32_t used;
};

struct ids {
    struct ids_table young;
    struct ids_table old;
};

annal_status annal__ids_add(struct ids *ids, annal_slice id, uint64_t offset);

/* The offset of the event that has (very probably) this id; false if there is no such event. */
bool annal__ids_find(const struct ids *ids, annal_slice id, uint64_t *out_offset);
void annal__ids_done(struct ids *ids);

#endif
