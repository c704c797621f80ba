/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Level os: bytes that are in a journal before any sync covers them.
 *
 * An append of level os writes to the journal and nowhere else. After a crash three kinds of bytes
 * must be distinguished: durable bytes, bytes that were reported as durable, and the rest, of which
 * a power cut may leave zeros, holes and pieces. Only the log can tell, so the log has marks:
 *
 * (1) Before the first loose byte, a mark is durable in the log: from this offset on nothing was
 *     acknowledged. It costs one sync, and is valid for all later appends of level os until (3). It
 *     joins the current group, so sessions that begin at the same time share the sync.
 * (2) Whatever a group records of a marked session contains its loose bytes (commit-log rule 3),
 *     and a mark after them: the next append of level os need not wait for a new mark.
 * (3) A checkpoint removes all marks before it syncs, because it releases the groups that contain
 *     them: what is written from then on has its mark in a group that is not being released.
 *     Replacing the log does the same (failure.h).
 * (4) annal_sync() acknowledges. If there are few loose bytes they go through the log, for all
 *     sessions in one group. If there are many, they are synced in the journal, so that they are
 *     written only once; then a mark after them, durable before annal_sync() returns, says so: what
 *     rots later is damage, and is never taken for a loose tail.
 * (5) When a session is released it gets an end mark, a record without bytes, unless the log
 *     contains no mark of it any more. Later appends of another process do not concern this log.
 * (6) Recovery walks from the last mark on, if that is the last record of a session, and keeps what
 *     proves itself; see recover.h.
 */
#ifndef JOURNAL_LEVEL_OS_H
#define JOURNAL_LEVEL_OS_H

#include "journal/store.h"

/*
 * Rule (1): wait until a mark is durable. Called and returns with the session's lock held; releases
 * it in between, so the session may have moved. ANNAL_END: the current group is full, and nothing
 * was done.
 */
annal_status annal__level_os_mark(annal_store *store, struct session *session, annal_error *err);

/* Rule (5): whether the log may still hold a mark of this session. Session's lock held. */
bool annal__level_os_has_mark(annal_store *store, const struct session *session);

/* Rule (5): sync the journal and end the mark, durably. The session is busy; otherwise as above. */
annal_status annal__level_os_end(annal_store *store, struct session *session, annal_error *err);

/* Rule (4): sync the loose bytes, and wait until everything in a group is durable. */
annal_status annal__level_os_sync(annal_store *store, annal_error *err);

#endif
