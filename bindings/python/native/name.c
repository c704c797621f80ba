/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of libannal/_names.py. */
#include "native.h"

#include <xxhash.h>

/* Return the lower 64 bits of XXH3-128. */
uint64_t libannal_hash(const char *bytes, size_t len)
{
    return XXH3_128bits(bytes, len).low64;
}
