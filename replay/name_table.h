/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of structs with a name, here a session id. The first member of such a struct is a
 * struct named. */
#pragma once

#include <annal/event.h>

struct named {
    struct named *next; /* next entry of the bucket */
    uint64_t hash;
    size_t len;
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

struct names {
    struct named **buckets;
    size_t count;
    size_t room; /* number of buckets: a power of two, or 0 */
};

/* Return the entry with this name, or NULL. */
struct named *annal__name_table_find(const struct names *names, annal_slice name);

/* Add an entry with a name that is not in the table yet: zeroed memory of this many bytes. NULL:
 * out of memory. */
struct named *annal__name_table_add(struct names *names, annal_slice name, size_t bytes);

/* Remove an entry and free it. */
void annal__name_table_drop(struct names *names, struct named *named);

/* Return the entry after `named`, or the first entry if `named` is NULL; NULL after the last. The
 * order is arbitrary. To drop the current entry, get the next entry first. */
struct named *annal__name_table_next(const struct names *names, const struct named *named);

/* Free all entries, and the table. */
void annal__name_table_done(struct names *names);
