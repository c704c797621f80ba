/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes gzip; only gzip.c uses zlib. */
#pragma once

#include "journal/base/buf.h"

#include <annal/base.h>

/* Decompress a gzip body, and append it to out. ANNAL_ERR_INVALID: it is not gzip. ANNAL_ERR_LIMIT:
 * the content is longer than out->limit. */
annal_status gzip_inflate(annal_slice in, struct buf *out, annal_error *err);

/* Compress a text for a network, quickly, and append it to out. */
annal_status gzip_deflate(annal_slice in, struct buf *out, annal_error *err);
