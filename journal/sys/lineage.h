/* Whether the ancestors of a fork are what it was made from. */
#ifndef JOURNAL_SYS_LINEAGE_H
#define JOURNAL_SYS_LINEAGE_H

#include <annal/journal.h>

/*
 * Check that at each fork point of a session's lineage stands the event that the fork behind it was
 * made from; what annal_cursor_next() proves on the way, for who reads by another way. Reads one
 * place of each ancestor's journal. Damage there is no other history: ANNAL_OK. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CORRUPT   an ancestor's journal is not there, or has another history
 */
ANNAL_MUST_CHECK annal_status annal__session_lineage_check(annal_store *store, annal_slice session,
                                                           annal_error *err);

#endif
