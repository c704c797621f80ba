/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of a log as zstd frames, each with the bytes before it as its prefix. */
#ifndef TOOLS_SOURCE_COPIES_ZSTD_H
#define TOOLS_SOURCE_COPIES_ZSTD_H

#include "journal/base/buf.h"

struct copies_zstd; /* keeps what both directions need from piece to piece */

struct copies_zstd *copies_zstd_new(void); /* NULL: out of memory */
void copies_zstd_free(struct copies_zstd *zstd);

/* out is cleared first. */
annal_status copies_zstd_pack(struct copies_zstd *zstd, annal_slice window, annal_slice piece,
                              struct buf *out, annal_error *err);

/* Unpack a frame of so many bytes; out is cleared first. ANNAL_ERR_CORRUPT. */
annal_status copies_zstd_unpack(struct copies_zstd *zstd, annal_slice window, annal_slice frame,
                                size_t bytes, struct buf *out, annal_error *err);

#endif
