/* What an event says: the text of it that can be searched. */
#ifndef INDEX_SEARCH_SEARCH_TEXT_H
#define INDEX_SEARCH_SEARCH_TEXT_H

#include "journal/base/buf.h"

#include <annal/journal.h>

/* Of one event no more is searched; the rest is not found. */
#define SEARCH_TEXT_MAX (1u << 20)

/*
 * Append it to out: every string in data, a line each, whatever member it stands in, and what was
 * taken out of data into an artifact ("output_ref"). Left out are
 *   names of members; the role; what classifies or names ("type", "id", "turn_id");
 *   encoded bytes, such as images;
 *   what an import keeps beside the event: where it stood ($.source) and what means nothing to us
 *   ($.extra), unless the event is nothing else (import.record).
 * ANNAL_ERR_NOMEM without a message.
 */
annal_status annal__search_text(annal_store *store, annal_slice session, const annal_event *event,
                                struct buf *out);

#endif
