/* SPDX-License-Identifier: Apache-2.0 */
/* Owning a session: taking it from other processes, and releasing it to them. */
#pragma once

#include "journal/session.h"

/*
 * Own the session, waiting for its owner at most until the deadline (monotonic): add it to the held
 * list (commit-log rule 8), and read the end of its journal; a torn end is cut (rule 13). Called
 * and returns with the session's lock held, but releases it in between.
 */
annal_status annal__session_own(annal_store *store, struct session *session, int64_t deadline_us,
                                annal_error *err);

/*
 * Release the session (commit-log rule 9): wait for pending groups, sync and close the journal, and
 * free the held entry. Called and returns with the session's lock held, but releases it in between;
 * new appends wait meanwhile.
 */
annal_status annal__session_release(annal_store *store, struct session *session, annal_error *err);

/*
 * Own the session with its journal synced and closed, so that until annal__session_let_go() other
 * threads wait in annal__session_own(), and other processes for the held entry. Does not read the
 * journal, which may be missing or damaged. Waits neither for another process nor for a thread that
 * is taking the session: then it returns ANNAL_ERR_BUSY, after asking the owner to release the
 * session. Called and returns with the session's lock held, but releases it in between.
 *
 * If the disk is too full for the log of a slot, the session becomes `unlisted`: other threads
 * still wait for it, but other processes only while the caller holds locks/claim by
 * annal__slot_keep_off().
 */
annal_status annal__session_seize(annal_store *store, struct session *session, annal_error *err);

/* Return whether another process waits for the session. */
bool annal__session_is_wanted(annal_store *store, const struct session *session);
