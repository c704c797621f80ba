/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <annal/base.h>

#include <stdio.h>

enum { UNZST_RATIO_MAX = 1000 };

/* Return whether a file unpacks to more than 64 MiB plus UNZST_RATIO_MAX times its size, and so may
 * fill a disk. Real logs do not compress so well: their lines differ. */
bool unzst_is_bomb(uint64_t packed, uint64_t unpacked);

/*
 * Write the content of the zstd frames in fd to out, from the beginning of fd.
 *
 * ANNAL_ERR_CORRUPT  a frame is damaged, or ends early because it is still being written, or the
 *                    content is larger than 64 MiB plus a thousand times the file; the content
 *                    before that is written
 */
annal_status unzst(int fd, FILE *out, annal_error *err);
