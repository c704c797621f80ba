/* SPDX-License-Identifier: Apache-2.0 */
/* Tombstones of journals that were deleted or replaced (replace.h, rule 2). */
#pragma once

#include "journal/context.h"

#define TOMBSTONES   ".gone" /* the folder of the tombstones, in events/ */
#define FILE_ID_TEXT (2 * FRAME_FILE_ID_BYTES)

/* Compose the path of the tombstone of the journal with this file id. */
annal_status annal__replace_tombstone_path(const struct context *context, const char *file,
                                           struct buf *out, annal_error *err);

/*
 * Find out whether a tombstone exists for the journal of this session, in this format and with this
 * file id. ANNAL_ERR_IO if the tombstone cannot be read, ANNAL_ERR_CORRUPT if its header is
 * damaged.
 */
annal_status annal__replace_is_gone(const struct context *context, annal_slice session,
                                    const struct codec *codec,
                                    const uint8_t file[FRAME_FILE_ID_BYTES], bool *out_gone,
                                    annal_error *err);
