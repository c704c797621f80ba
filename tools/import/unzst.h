/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_IMPORT_UNZST_H
#define TOOLS_IMPORT_UNZST_H

#include <annal/base.h>

#include <stdio.h>

/*
 * Write the content of the zstd frames in fd, from its beginning.
 *
 * ANNAL_ERR_CORRUPT  a frame is damaged, or ends early, like one that is still being written, or
 *                    there is a thousand times as much as in fd, and more than 64 MiB; the
 *                    content up to there is written
 */
annal_status unzst(int fd, FILE *out, annal_error *err);

#endif
