/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an event that can be searched. */
#ifndef INDEX_SEARCH_SEARCH_TEXT_H
#define INDEX_SEARCH_SEARCH_TEXT_H

#include "journal/base/buf.h"

#include <annal/journal.h>

/* Of one event, no more than this is searched; the rest is not found. */
#define SEARCH_TEXT_MAX (1u << 20)

/*
 * Append it to out: every string in data, each on a line, whatever member it is in, and what was
 * moved from data into an artifact ("output_ref"). Left out are
 *   names of members; the role; what classifies or names ("type", "id", "turn_id");
 *   encoded bytes, such as images;
 *   what an import keeps beside the event: its place ($.source) and what we have no use for
 *   ($.extra), unless the event is nothing else (import.record).
 * ANNAL_ERR_NOMEM without a message.
 */
annal_status annal__search_text(annal_store *store, annal_slice session, const annal_event *event,
                                struct buf *out);

#endif
