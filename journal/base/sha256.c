/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/sha256.h"

#include "journal/base/alloc.h"
#include "journal/base/hex.h"

#include <sha2.h>

struct sha256 {
    SHA2_CTX context;
};

struct sha256 *annal__sha256_begin(void)
{
    struct sha256 *sha256 = annal__zalloc(sizeof *sha256);
    if (sha256 != NULL)
        SHA256Init(&sha256->context);
    return sha256;
}

void annal__sha256_add(struct sha256 *sha256, const void *bytes, size_t len)
{
    SHA256Update(&sha256->context, bytes, len);
}

void annal__sha256_end(struct sha256 *sha256, uint8_t out[SHA256_BYTES])
{
    if (out != NULL)
        SHA256Final(out, &sha256->context);
    annal__free(sha256);
}

void annal__sha256_of(const void *bytes, size_t len, uint8_t out[SHA256_BYTES])
{
    SHA2_CTX context;
    SHA256Init(&context);
    SHA256Update(&context, bytes, len);
    SHA256Final(out, &context);
}

void annal__sha256_text(const uint8_t sha256[SHA256_BYTES], char out[SHA256_TEXT_BYTES])
{
    annal__hex_text(sha256, SHA256_BYTES, out);
}
