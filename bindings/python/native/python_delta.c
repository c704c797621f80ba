/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The difference of a value from the previous value, for a state that grows: it begins like the
 * previous value, except for a count near the beginning, and has something new at its end.
 */
#include "native.h"

#include <string.h>

#define HEADER 9  /* maximum of bytes of a count in msgpack */
#define MATCH  24 /* number of equal bytes that are not a coincidence */
#define BLOCK  4096

/* Return how many bytes at the beginning are equal. */
static size_t common(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t len = a_len < b_len ? a_len : b_len;
    size_t at = 0;
    while (len - at >= BLOCK && memcmp(a + at, b + at, BLOCK) == 0)
        at += BLOCK;
    while (at < len && a[at] == b[at])
        at++;
    return at;
}

void libannal_delta_find(const char *old_bytes, size_t old_len, const char *new_bytes,
                         size_t new_len, libannal_delta *out)
{
    size_t begin = common(old_bytes, old_len, new_bytes, new_len);
    *out = (libannal_delta){.begin = begin};
    for (size_t skipped = 0; skipped < HEADER && begin + skipped + MATCH <= old_len; skipped++)
        for (size_t inserted = 0; inserted < HEADER && begin + inserted + MATCH <= new_len;
             inserted++) {
            const char *left = old_bytes + begin + skipped;
            const char *right = new_bytes + begin + inserted;
            if (memcmp(left, right, MATCH) != 0)
                continue;
            size_t copied =
                common(left, old_len - begin - skipped, right, new_len - begin - inserted);
            if (copied > out->copied)
                *out = (libannal_delta){begin, inserted, skipped, copied};
        }
}
