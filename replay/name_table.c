/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/name_table.h"

#include "journal/base/alloc.h"
#include "journal/base/hash.h"

#include <string.h>

struct named *annal__name_table_find(const struct names *names, annal_slice name)
{
    if (names->room == 0)
        return NULL;
    uint64_t hash = annal__hash(name.ptr, name.len, 0);
    struct named *named = names->buckets[hash & (names->room - 1)];
    while (named != NULL && (named->hash != hash || named->len != name.len ||
                             memcmp(named->name, name.ptr, name.len) != 0))
        named = named->next;
    return named;
}

static bool grow(struct names *names)
{
    size_t room = names->room == 0 ? 16 : names->room * 2;
    struct named **buckets = annal__zalloc(room * sizeof *buckets);
    if (buckets == NULL)
        return false;
    for (size_t i = 0; i < names->room; i++) {
        for (struct named *named = names->buckets[i], *next; named != NULL; named = next) {
            next = named->next;
            named->next = buckets[named->hash & (room - 1)];
            buckets[named->hash & (room - 1)] = named;
        }
    }
    annal__free(names->buckets);
    names->buckets = buckets;
    names->room = room;
    return true;
}

struct named *annal__name_table_add(struct names *names, annal_slice name, size_t bytes)
{
    if (names->count >= names->room && !grow(names))
        return NULL;
    struct named *named = annal__zalloc(bytes);
    if (named == NULL)
        return NULL;
    named->hash = annal__hash(name.ptr, name.len, 0);
    named->len = name.len;
    memcpy(named->name, name.ptr, name.len);
    named->next = names->buckets[named->hash & (names->room - 1)];
    names->buckets[named->hash & (names->room - 1)] = named;
    names->count++;
    return named;
}

void annal__name_table_drop(struct names *names, struct named *named)
{
    struct named **at = &names->buckets[named->hash & (names->room - 1)];
    while (*at != named)
        at = &(*at)->next;
    *at = named->next;
    names->count--;
    annal__free(named);
}

struct named *annal__name_table_next(const struct names *names, const struct named *named)
{
    if (named != NULL && named->next != NULL)
        return named->next;
    size_t bucket = named == NULL ? 0 : (size_t)(named->hash & (names->room - 1)) + 1;
    while (bucket < names->room && names->buckets[bucket] == NULL)
        bucket++;
    return bucket < names->room ? names->buckets[bucket] : NULL;
}

void annal__name_table_done(struct names *names)
{
    struct named *named = annal__name_table_next(names, NULL);
    while (named != NULL) {
        struct named *next = annal__name_table_next(names, named);
        annal__free(named);
        named = next;
    }
    annal__free(names->buckets);
    *names = (struct names){0};
}
