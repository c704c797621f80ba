/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, computed by libmd: the name of an artifact, and the hash of a state. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES      32
#define SHA256_TEXT_BYTES 65 /* 64 lower-case hex digits and a NUL */

struct sha256;
struct sha256 *annal__sha256_begin(void); /* NULL: out of memory */
void annal__sha256_add(struct sha256 *sha256, const void *bytes, size_t len);
void annal__sha256_end(struct sha256 *sha256, uint8_t out[SHA256_BYTES]); /* frees the struct */

/* Compute the hash of bytes that are all in memory. */
void annal__sha256_of(const void *bytes, size_t len, uint8_t out[SHA256_BYTES]);

void annal__sha256_text(const uint8_t sha256[SHA256_BYTES], char out[SHA256_TEXT_BYTES]);
