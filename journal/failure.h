/*
 * What happens when the disk says no: commit-log rules 6, 7 and 11.
 *
 * (1) The log decides. A group whose sync returned 0 happened, whatever becomes of the journals. A
 *     group that was not written, or whose write or sync failed, is refused, as soon as it is
 *     certain that it can never appear: after an empty group in its place is durable, or else a
 *     void file (log_void.h). When neither can be had it is unknown, and the store object takes no
 *     more work.
 * (2) Whatever was encoded behind a refused group is refused with it, and its sessions go back to
 *     where they stood before: seq, offset, h, ids, and what was loose. Those who had their answer
 *     already, at level batch, are told once: the next append of the writer, and the next
 *     annal_sync().
 * (3) A log whose sync failed is never written again. What is needed of it is written into the
 *     journals again, all of it, and synced; then a fresh log takes its name, and then the void
 *     goes. Until that has been done appends are refused.
 * (4) A session whose journal could not be written is behind: LATE_BYTES. Its events are durable,
 *     and it takes no more until the journal has them. A session whose journal could not be synced
 *     is LATE_SYNC: the kernel may have dropped the bytes, and a second sync would succeed without
 *     them.
 * (5) Late sessions are written again from the log and synced: by the keeper, a checkpoint,
 *     annal_keep(), close. If that fails they are behind, said once to the log callback. No epoch
 *     is released while a session is late, so the log keeps what it needs. At close such a session
 *     stays in the held list, and the log is redone at the next open.
 * (6) Only who leads the commit does (1) to (3) and (5): nobody else writes the log, or applies.
 */
#ifndef JOURNAL_FAILURE_H
#define JOURNAL_FAILURE_H

#include "journal/store.h"

/* Where a session stands, to go back to. Its lock is held. */
struct session_tail annal__session_tail(const struct session *session);

/* Rule (2): take the sessions of these two groups, the second encoded behind the first, back. */
void annal__failure_roll_back(annal_store *store, const struct group *first,
                              const struct group *second);

/*
 * Rule (1): a group could not be written, *failure says why. Make sure that it never appears and
 * return failure->status, or ANNAL_ERR_UNKNOWN with *failure changed.
 */
annal_status annal__failure_settle(annal_store *store, annal_error *failure);

/* Rule (3), if the log is broken. */
annal_status annal__failure_renew_log(annal_store *store, annal_error *err);

/* Rule (4). The session's lock is held. */
void annal__session_set_late(annal_store *store, struct session *session, enum session_late late,
                             const annal_error *why);

/* Whether it is late; asked by id. */
bool annal__session_is_late(annal_store *store, annal_slice id);

/* Rule (5): catch up. ANNAL_OK: no session is late any more. */
annal_status annal__failure_catch_up(annal_store *store, annal_error *err);

/* Whether events are late that nobody can speak for: another file stands where their journal
 * was. */
annal_status annal__failure_refuse_unknown(annal_store *store, annal_error *err);

/* Why the first session that is late is late; ANNAL_OK when none is. */
annal_status annal__failure_refuse_late(annal_store *store, annal_error *err);

/* A checkpoint by who leads: late sessions are caught up with first, and those that it finds
 * late. */
annal_status annal__failure_checkpoint(annal_store *store, uint64_t epoch, annal_error *err);

/* Tell the writers of a session whose batch events from this seq on are lost. Lock held. In
 * writer.c. */
void annal__writers_lose(struct session *session, uint64_t seq);

/* Another file stands in the journal's place: nobody can speak for their events. Likewise. */
void annal__writers_doubt(struct session *session);

#endif
