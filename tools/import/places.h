/* SPDX-License-Identifier: Apache-2.0 */
/* Find the entries of an array by a hash. The caller owns the array, and compares the entries. */
#ifndef TOOLS_IMPORT_PLACES_H
#define TOOLS_IMPORT_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct places {
    struct place {
        uint64_t hash;
        size_t index; /* index in the caller's array, plus 1; 0: empty */
    } * all;
    size_t count; /* a power of two */
    size_t used;
};

/* Add an entry. False: out of memory. */
bool places_add(struct places *places, uint64_t hash, size_t index);

/* Find the next entry with this hash; *at is 0 at first. SIZE_MAX: no further entry. */
size_t places_next(const struct places *places, uint64_t hash, size_t *at);

void places_done(struct places *places);

#endif
