/* SPDX-License-Identifier: Apache-2.0 */
/* Which entries of an array have a hash. The array is the caller's, and so is the comparison. */
#ifndef TOOLS_IMPORT_PLACES_H
#define TOOLS_IMPORT_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct places {
    struct place {
        uint64_t hash;
        size_t index; /* in the caller's array, and 1; 0: empty */
    } * all;
    size_t count; /* a power of two */
    size_t used;
};

/* False: out of memory. */
bool places_add(struct places *places, uint64_t hash, size_t index);

/*
 * The next entry with this hash; *at is 0 at first. SIZE_MAX: there is no further one.
 */
size_t places_next(const struct places *places, uint64_t hash, size_t *at);

void places_done(struct places *places);

#endif
