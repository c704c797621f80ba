/* SPDX-License-Identifier: Apache-2.0 */
/* The text in an event that can be searched. */
#pragma once

#include "journal/base/buf.h"

#include <annal/journal.h>

/* Maximum number of bytes of an event's text that are indexed; words after it are not found. */
#define SEARCH_TEXT_MAX (1u << 20)

/*
 * Append the searchable text to out: every string in data, in any member, each on its own line, and
 * the content of artifacts to which data refers ("output_ref"). Skipped are names of members; the
 * role; types and ids ("type", "id", "turn_id"); encoded bytes, such as images; and what an import
 * adds to the event: its position in the log ($.source) and unused members ($.extra), except for
 * import.record, which consists of $.extra. Returns ANNAL_ERR_NOMEM, without a message, if memory
 * runs out.
 */
annal_status annal__search_text(annal_store *store, annal_slice session, const annal_event *event,
                                struct buf *out);
