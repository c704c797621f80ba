/*
 * Is the index what the journals say? Proved by walking both side by side, and by folding the session
 * anew: the rows of event_index against the events, the rows of sessions and turns against the state.
 */
#ifndef TOOLS_VERIFY_INDEX_H
#define TOOLS_VERIFY_INDEX_H

#include <annal/index.h>
#include <annal/journal.h>

/*
 * Compare one session as far as it is indexed now; what the index does not know yet is lag and no
 * finding. Does not catch up. fn is called with each finding.
 */
annal_status verify_index_session(annal_store *store, annal_index *index, annal_slice session,
                                  annal_finding_fn fn, void *arg, annal_error *err);

#endif
