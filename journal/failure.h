/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens when a write or sync fails: commit-log rules 6, 7 and 11.
 *
 * (1) The log decides. A group whose sync returned 0 is durable, whatever happens to the journals.
 *     A group that was not written, or whose write or sync failed, is refused once it can certainly
 *     never appear: after an empty group that overwrites it is durable, or else a void file
 *     (log_void.h). If neither is possible, the group is unknown, and the store object accepts no
 *     more work.
 * (2) Whatever was encoded after a refused group is refused with it, and its sessions return to the
 *     end that they had before: seq, offset, h, ids, and loose bytes. Callers that already had
 *     their answer, at level batch, get an error once: from the next append of the writer, and from
 *     the next annal_store_sync().
 * (3) A log whose sync failed is never written again. The groups that are still needed are written
 *     into the journals again, completely, and synced; then a new log is renamed to its name, and
 *     then the void file is removed. Until that is done, appends are refused.
 * (4) A session is late while its journal must be written again. LATE_BYTES: a write to the journal
 *     failed; the events are durable in the log, and the session accepts no more until they are in
 *     the journal. LATE_SYNC: a sync of the journal failed; the kernel may have dropped the bytes,
 *     and a second sync would succeed without them.
 * (5) Late sessions are written again from the log and synced: by the keeper, a checkpoint,
 *     annal_store_keep(), and close. If that fails they become LATE_BYTES, which is reported once
 *     to the log callback. No epoch is released while a session is late, so the log keeps what it
 *     needs. At close such a session stays in the held list, and the log is redone at the next
 * open.
 * (6) Only the thread that leads the commit does (1) to (3) and (5): no other thread writes the
 *     log, or groups into journals.
 */
#pragma once

#include "journal/commit.h"

/* Return the end of a session, to restore it later. The session's lock is held. */
struct session_tail annal__failure_session_tail(const struct session *session);

/* Roll back the sessions of two refused groups, of which the second was encoded after the first
 * (rule 2). */
void annal__failure_roll_back(struct commit *commit, const struct group *first,
                              const struct group *second);

/* Make sure that a group never appears after writing it failed with *failure (rule 1). Return
 * failure->status, or ANNAL_ERR_UNKNOWN with *failure changed if this cannot be ensured. */
annal_status annal__failure_settle(struct commit *commit, annal_error *failure);

/* Replace the log if a sync of it failed (state LOG_BROKEN); else do nothing (rule 3). */
annal_status annal__failure_renew_log(struct commit *commit, annal_error *err);

/* Write the journals of all late sessions again, from the log (rule 5). ANNAL_OK if no session is
 * late after that. */
annal_status annal__failure_catch_up(struct commit *commit, annal_error *err);

/*
 * Sync all journals with events of epochs up to this epoch; only the leader calls this. The
 * journals of late sessions are written again before it and, if this checkpoint makes sessions
 * late, once more after it.
 */
annal_status annal__failure_checkpoint(struct commit *commit, uint64_t epoch, annal_error *err);
