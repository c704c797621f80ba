/* SPDX-License-Identifier: Apache-2.0 */
/* Write and read content as one zstd frame in a file, as a stream that is hashed on the way. */
#pragma once

#include "journal/base/io.h"
#include "journal/base/sha256.h"

#include <annal/artifact.h>

struct frame_result {
    uint8_t sha256[SHA256_BYTES];
    uint64_t bytes;        /* size of the content */
    uint64_t stored_bytes; /* size of the file */
};

/* Compress the content that source returns into the file, which is empty, and sync the file. path
 * is for messages. */
annal_status annal__artifact_write(const struct io *io, int fd, const char *path,
                                   annal_artifact_source source, void *arg,
                                   struct frame_result *out, annal_error *err);

/* Decompress the file, passing pieces to fn, which may be NULL. ANNAL_ERR_CORRUPT if it is not a
 * complete zstd frame. If fn returns another value than 0, stop and return this value. */
annal_status annal__artifact_unpack(const struct io *io, int fd, const char *path,
                                    annal_artifact_sink fn, void *arg, struct frame_result *out,
                                    annal_error *err);
