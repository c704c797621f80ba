/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies with gzip; the only user of zlib. */
#ifndef TOOLS_OTLP_INFLATE_H
#define TOOLS_OTLP_INFLATE_H

#include "journal/base/buf.h"

#include <annal/base.h>

/* ANNAL_ERR_INVALID: it is not gzip; ANNAL_ERR_LIMIT: more than out->limit comes out of it. */
annal_status inflate_gzip(annal_slice in, struct buf *out, annal_error *err);

#endif
