/* SPDX-License-Identifier: Apache-2.0 */
/* Finds entries of an array by hash. The caller owns the array, and compares the entries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct places {
    struct place {
        uint64_t hash;
        size_t index; /* index in the caller's array plus 1; 0: empty */
    } * all;
    size_t count; /* number of places, a power of two */
    size_t used;
};

/* Add an entry. Return false if out of memory. */
bool places_add(struct places *places, uint64_t hash, size_t index);

/* Return the index of the next entry with this hash; SIZE_MAX: no further entry. Set *at to 0
 * before the first call. */
size_t places_next(const struct places *places, uint64_t hash, size_t *at);

/* Set the index of the first entry with this hash, if there is one. */
void places_set(struct places *places, uint64_t hash, size_t index);

void places_done(struct places *places);
