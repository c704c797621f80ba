/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct random random_init(uint64_t seed)
{
    const char *asked = getenv("ANNAL_TEST_SEED");
    if (asked != NULL)
        seed = strtoull(asked, NULL, 0);
    printf("seed %" PRIu64 " (ANNAL_TEST_SEED sets another)\n", seed);
    return (struct random){seed};
}

/* splitmix64, by S. Vigna (public domain). */
uint64_t random_next(struct random *random)
{
    uint64_t z = random->state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

uint64_t random_below(struct random *random, uint64_t limit)
{
    return random_next(random) % limit;
}
