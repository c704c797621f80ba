/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of things with a name: sessions. An entry's first member is a struct named. */
#ifndef REPLAY_NAME_TABLE_H
#define REPLAY_NAME_TABLE_H

#include <annal/event.h>

struct named {
    struct named *next; /* next in its bucket */
    uint64_t hash;
    size_t len;
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

struct names {
    struct named **buckets;
    size_t count;
    size_t room; /* a power of two, or 0 */
};

/* Find an entry, or return NULL. */
struct named *annal__name_table_find(const struct names *names, annal_slice name);

/*
 * Add zeroed memory of this many bytes under a name that is not in the table yet. NULL: no memory.
 */
struct named *annal__name_table_add(struct names *names, annal_slice name, size_t bytes);

/* Remove an entry and free it. */
void annal__name_table_drop(struct names *names, struct named *named);

/*
 * Walk over all entries, in no particular order: begin with NULL. To drop the current entry, get
 * the next one first.
 */
struct named *annal__name_table_next(const struct names *names, const struct named *named);

/* Free all entries. */
void annal__name_table_done(struct names *names);

#endif
