/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3-64 (xxHash 0.8), the hash of frames, groups and snapshots. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t annal__hash(const void *bytes, size_t len, uint64_t seed);

/* Compute the same hash over several pieces, without copying them together first. */
struct hash_stream;
struct hash_stream *annal__hash_begin(uint64_t seed); /* NULL: out of memory */
void annal__hash_add(struct hash_stream *stream, const void *bytes, size_t len);
uint64_t annal__hash_end(struct hash_stream *stream); /* frees the stream */
