/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that come again: the seed is the one given, or ANNAL_TEST_SEED; it is printed. */
#ifndef TESTS_SUPPORT_RANDOM_H
#define TESTS_SUPPORT_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

struct random random_init(uint64_t seed);
uint64_t random_next(struct random *random);
uint64_t random_below(struct random *random, uint64_t limit); /* 0 to limit - 1 */

#endif
