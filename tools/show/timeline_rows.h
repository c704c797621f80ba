/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "journal/base/buf.h"

#include <annal/query.h>

/* Append a part of a session from a seq on, as JSON without a line break: the rows of its "tools",
 * "turns" or "usage", or its "outline": seq, type, time and length of all events, in columns. */
annal_status timeline_part(annal_index *index, const char *part, annal_slice session, uint64_t from,
                           struct buf *out, annal_error *err);
