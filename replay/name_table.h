/* A hash table of what has a name: sessions. What is kept embeds a struct named as its first
 * member. */
#ifndef REPLAY_NAME_TABLE_H
#define REPLAY_NAME_TABLE_H

#include <annal/event.h>

struct named {
    struct named *next; /* in its bucket */
    uint64_t hash;
    size_t len;
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

struct names {
    struct named **buckets;
    size_t count;
    size_t room; /* a power of two, or 0 */
};

/* NULL: there is none. */
struct named *annal__names_find(const struct names *names, annal_slice name);

/* Zeroed memory of this many bytes, under that name, which must not be there yet. NULL: no
 * memory. */
struct named *annal__names_add(struct names *names, annal_slice name, size_t bytes);

/* Take it out and free it. */
void annal__names_drop(struct names *names, struct named *named);

/* One after the other, in no order: begin with NULL. Dropping the one just given is fine only when
 * the next was asked for before. */
struct named *annal__names_next(const struct names *names, const struct named *named);

/* Frees all. */
void annal__names_done(struct names *names);

#endif
