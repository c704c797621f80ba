/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting journals: the part of annal_delete() that the journal does. */
#ifndef JOURNAL_SYS_DELETE_H
#define JOURNAL_SYS_DELETE_H

#include <annal/journal.h>

/*
 * Delete a session: its journal is removed, durably, and nothing in a commit log restores it.
 * out_info (may be NULL): what was deleted; of a damaged journal only its size may be known. The
 * index and the snapshots follow when they next look.
 *
 * The session is taken from its owner first, as for an append. A later append, even by a writer
 * that is open now, begins the session again with seq 1 and another file id; expected_seq
 * distinguishes the two. Open cursors continue to read the old journal. Any thread.
 *
 * Afterwards no commit log of the store contains anything of it. Other processes are requested to
 * overwrite their logs; if a process is stopped, the store's log function reports what remains,
 * which is overwritten when that process continues or ends. Databases belong to the index. It waits
 * for other processes no longer than the store's wait_ms in all.
 *
 * It works on a full disk, too: then no commit log is created for it, and no tombstone if no commit
 * log names the journal.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CONFLICT  a fork of the session needs it
 * ANNAL_ERR_BUSY      another process owns the session, or is deleting or converting another
 *                     session, and did not finish in the store's wait_ms
 */
ANNAL_MUST_CHECK annal_status annal__replace_delete(annal_store *store, annal_slice session,
                                                    annal_session_info *out_info, annal_error *err);

/*
 * As above, to delete many sessions: commit logs keep their content until
 * annal__replace_wipe_logs(). Call that once, after the last: each call makes every process that
 * writes overwrite its log of 2 MiB. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__replace_delete_unwiped(annal_store *store, annal_slice session,
                                                            annal_session_info *out_info,
                                                            annal_error *err);

/*
 * Overwrite the parts of commit logs that are not needed any more. Any thread.
 *
 * ANNAL_ERR_BUSY  some log may still contain something: the message says which one, and until when
 */
ANNAL_MUST_CHECK annal_status annal__replace_wipe_logs(annal_store *store, annal_error *err);

#endif
