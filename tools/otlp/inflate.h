/* SPDX-License-Identifier: Apache-2.0 */
/* Decompresses gzip bodies; only inflate.c uses zlib. */
#ifndef TOOLS_OTLP_INFLATE_H
#define TOOLS_OTLP_INFLATE_H

#include "journal/base/buf.h"

#include <annal/base.h>

/* Decompress a gzip body, and append it to out. ANNAL_ERR_INVALID: it is not gzip. ANNAL_ERR_LIMIT:
 * the content is longer than out->limit. */
annal_status inflate_gzip(annal_slice in, struct buf *out, annal_error *err);

#endif
