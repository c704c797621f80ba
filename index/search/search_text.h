/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an event that can be searched. */
#ifndef INDEX_SEARCH_SEARCH_TEXT_H
#define INDEX_SEARCH_SEARCH_TEXT_H

#include "journal/base/buf.h"

#include <annal/journal.h>

/* The part of an event's text that is searched; words after it are not found. */
#define SEARCH_TEXT_MAX (1u << 20)

/*
 * Append the searchable text to out: every string in data, each on a line, in whatever member, and
 * what was moved from data into an artifact ("output_ref"). Skipped are names of members; the role;
 * what classifies or names ("type", "id", "turn_id"); encoded bytes, such as images; what an import
 * keeps beside the event: its place ($.source) and unused members ($.extra), unless the event
 * consists of nothing else (import.record). ANNAL_ERR_NOMEM without a message.
 */
annal_status annal__search_text(annal_store *store, annal_slice session, const annal_event *event,
                                struct buf *out);

#endif
