/* The hash of libannal/_names.py. */
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

uint64_t libannal_hash(const char *bytes, size_t len);

/* The lower 64 bits of XXH3-128. */
uint64_t libannal_hash(const char *bytes, size_t len)
{
    return XXH3_128bits(bytes, len).low64;
}
