/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the ancestors of a fork are what it was made from. */
#ifndef JOURNAL_SYS_LINEAGE_H
#define JOURNAL_SYS_LINEAGE_H

#include <annal/journal.h>

/*
 * Check that at each fork point of a session's lineage there is the event that the fork was made
 * from. annal_cursor_next() proves this on the way; this is for callers that read in another way.
 * Reads one place in each ancestor's journal. Damage there is not another history: ANNAL_OK. Any
 * thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CORRUPT   an ancestor's journal is missing, or has another history
 */
ANNAL_MUST_CHECK annal_status annal__session_lineage_check(annal_store *store, annal_slice session,
                                                           annal_error *err);

#endif
