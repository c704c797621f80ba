/* SPDX-License-Identifier: Apache-2.0 */
/* Prints calls, turns, usage or events of a session, from a seq on, as JSON without a line
 * break. */
#pragma once

#include "journal/base/buf.h"

#include <annal/query.h>

typedef annal_status timeline_part(annal_index *index, annal_slice session, uint64_t from,
                                   struct buf *out, annal_error *err);

timeline_part timeline_tools;
timeline_part timeline_turns;
timeline_part timeline_usage;

/* Append seq, type, time and length of all events, in columns. */
timeline_part timeline_outline;
