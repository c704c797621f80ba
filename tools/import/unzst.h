#ifndef TOOLS_IMPORT_UNZST_H
#define TOOLS_IMPORT_UNZST_H

#include <annal/base.h>

#include <stdio.h>

/*
 * Write what the zstd frames in fd, from its begin, stand for.
 *
 * ANNAL_ERR_CORRUPT  a frame is damaged, or ends early, as one that is still being written does;
 *                    what it holds until then is written
 */
annal_status unzst(int fd, FILE *out, annal_error *err);

#endif
