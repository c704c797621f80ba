/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compresses pieces of a log as zstd frames; the bytes before a piece are the prefix of its frame.
 */
#pragma once

#include "journal/base/buf.h"

struct copies_zstd; /* zstd contexts that are reused from piece to piece */

struct copies_zstd *copies_zstd_new(void); /* NULL: out of memory */
void copies_zstd_free(struct copies_zstd *zstd);

/* Compress a piece into out, which is cleared first. window: the bytes of the log before it. */
annal_status copies_zstd_pack(struct copies_zstd *zstd, annal_slice window, annal_slice piece,
                              struct buf *out, annal_error *err);

/* Unpack a frame into out, which is cleared first. ANNAL_ERR_CORRUPT: the frame is damaged, or does
 * not contain exactly `bytes` bytes. */
annal_status copies_zstd_unpack(struct copies_zstd *zstd, annal_slice window, annal_slice frame,
                                size_t bytes, struct buf *out, annal_error *err);
