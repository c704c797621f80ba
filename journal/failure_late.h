/* SPDX-License-Identifier: Apache-2.0 */
/* Late sessions: sessions whose journals must be written again from the log (failure.h, rule 4). */
#pragma once

#include "journal/session.h"

/* Mark a session as late: its journal could not be written or synced, and must be written again
 * from the log (rule 4). The caller holds the session's lock. */
void annal__failure_set_late(struct session_table *sessions, struct session *session,
                             enum session_late late, const annal_error *why);

bool annal__failure_is_late(struct session_table *sessions, annal_slice id);

/* Return ANNAL_ERR_UNKNOWN if the name of a late session's journal belongs to another file, so that
 * the fate of its events is unknown; else ANNAL_OK. */
annal_status annal__failure_refuse_unknown(struct session_table *sessions, annal_error *err);

/* Return why the first late session could not be written to its journal, or ANNAL_OK if no session
 * is late. */
annal_status annal__failure_refuse_late(struct session_table *sessions, annal_error *err);
