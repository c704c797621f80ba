/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/hash.h"

/*
 * If the build found the dispatching variant of the library, use the widest vectors that this
 * processor has. Debian's XXH3_64bits() itself uses SSE2 only, which is half as fast. The hash is
 * the same.
 */
#ifdef ANNAL_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

uint64_t annal__hash(const void *bytes, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}

struct hash_stream *annal__hash_begin(uint64_t seed)
{
    XXH3_state_t *state = XXH3_createState();
    if (state != NULL && XXH3_64bits_reset_withSeed(state, seed) != XXH_OK) {
        XXH3_freeState(state);
        state = NULL;
    }
    return (struct hash_stream *)state;
}

void annal__hash_add(struct hash_stream *stream, const void *bytes, size_t len)
{
    (void)XXH3_64bits_update((XXH3_state_t *)stream, bytes, len);
}

uint64_t annal__hash_end(struct hash_stream *stream)
{
    uint64_t hash = XXH3_64bits_digest((XXH3_state_t *)stream);
    XXH3_freeState((XXH3_state_t *)stream);
    return hash;
}
