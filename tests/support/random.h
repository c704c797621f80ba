/* SPDX-License-Identifier: Apache-2.0 */
/* Reproducible random numbers: the seed is the given number or ANNAL_TEST_SEED, and is printed. */
#pragma once

#include <stdint.h>

struct random {
    uint64_t state;
};

struct random random_init(uint64_t seed);
uint64_t random_next(struct random *random);
uint64_t random_below(struct random *random, uint64_t limit); /* 0 to limit - 1 */
