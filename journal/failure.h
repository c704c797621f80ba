/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens when a write or sync fails: commit-log rules 6, 7 and 11.
 *
 * (1) The log decides. A group whose sync returned 0 happened, whatever becomes of the journals. A
 *     group that was not written, or whose write or sync failed, is refused once it can certainly
 *     never appear: after an empty group in its place is durable, or else a void file (log_void.h).
 *     If neither is possible, the group is unknown, and the store object accepts no more work.
 * (2) Whatever was encoded after a refused group is refused with it, and its sessions return to the
 *     end that they had before: seq, offset, h, ids, and loose bytes. Callers that already had
 *     their answer, at level batch, get an error once: from the next append of the writer, and from
 *     the next annal_sync().
 * (3) A log whose sync failed is never written again. Its needed groups are written into the
 *     journals again, completely, and synced; then a new log takes its name, and then the void is
 *     removed. Until that is done, appends are refused.
 * (4) A session whose journal could not be written is late: LATE_BYTES. Its events are durable, and
 *     it accepts no more until they are in the journal. A session whose journal could not be synced
 *     is LATE_SYNC: the kernel may have dropped the bytes, and a second sync would succeed without
 *     them.
 * (5) Late sessions are written again from the log and synced: by the keeper, a checkpoint,
 *     annal_keep(), and close. If that fails they are marked as behind, which is reported once to
 *     the log callback. No epoch is released while a session is late, so the log keeps what it
 *     needs. At close such a session stays in the held list, and the log is redone at the next
 *     open.
 * (6) Only the thread that leads the commit does (1) to (3) and (5): no other thread writes the
 *     log, or applies.
 */
#ifndef JOURNAL_FAILURE_H
#define JOURNAL_FAILURE_H

#include "journal/store.h"

/* The end of a session, to restore it later. Its lock is held. */
struct session_tail annal__failure_session_tail(const struct session *session);

/* Rule (2): roll back the sessions of these two groups, of which the second was encoded after the
 * first. */
void annal__failure_roll_back(annal_store *store, const struct group *first,
                              const struct group *second);

/*
 * Rule (1): a group could not be written, and *failure says why. Make sure that it never appears,
 * and return failure->status, or ANNAL_ERR_UNKNOWN with *failure changed.
 */
annal_status annal__failure_settle(annal_store *store, annal_error *failure);

/* Rule (3): replace the log if it is broken. */
annal_status annal__failure_renew_log(annal_store *store, annal_error *err);

/* Rule (4): mark the session as late. Its lock is held. */
void annal__failure_set_late(annal_store *store, struct session *session, enum session_late late,
                             const annal_error *why);

bool annal__failure_is_late(annal_store *store, annal_slice id);

/* Rule (5): catch up. ANNAL_OK: no session is late any more. */
annal_status annal__failure_catch_up(annal_store *store, annal_error *err);

/* Whether the fate of late events is unknown, because another file is in the place of their
 * journal. */
annal_status annal__failure_refuse_unknown(annal_store *store, annal_error *err);

/* Why the first late session is late; ANNAL_OK if none is. */
annal_status annal__failure_refuse_late(annal_store *store, annal_error *err);

/* A checkpoint by the leader. Late sessions are caught up with before it, and those that it finds
 * late after it. */
annal_status annal__failure_checkpoint(annal_store *store, uint64_t epoch, annal_error *err);

/* Note for the writers of a session that batch events from this seq on are lost. Lock held. In
 * writer.c. */
void annal__writers_lose(struct session *session, uint64_t seq);

/* As above, if another file is in the place of the journal: the fate of their events is unknown. */
void annal__writers_doubt(struct session *session);

#endif
