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
 * (2) If a group contains a record of a session with a mark, the record contains the session's
 *     loose bytes (commit-log rule 3), followed by a new mark: the next append of level os need not
 *     wait for a mark.
 * (3) A checkpoint forgets all marks before it syncs, because it releases the groups that contain
 *     them: the next append of level os waits for a new mark. Replacing the log does the same
 *     (failure.h).
 * (4) annal_store_sync() acknowledges. If there are few loose bytes they go through the log, for
 *     all sessions in one group. If there are many, they are synced in the journal, so that they
 *     are written only once; then a mark after them becomes durable before annal_store_sync()
 *     returns. If these bytes are damaged later, recovery reports damage instead of cutting them as
 *     loose bytes.
 * (5) When a session is released it gets an end mark, a record without bytes, unless the log
 *     contains no mark of it any more. After the end mark, recovery of this log ignores what other
 *     processes append to the journal.
 * (6) If the last record of a session is a mark, recovery reads the journal from there and keeps
 *     the events whose hashes are right; see recover.h.
 */
#pragma once

#include "journal/commit.h"

/*
 * Write a mark to the log (the session's journal may contain events of level os after it), and wait
 * until it is durable (rule 1). Called and returns with the session's lock held, but releases it in
 * between, so the session may have changed. ANNAL_END: the current group is full, and nothing was
 * done.
 */
annal_status annal__level_os_mark(struct commit *commit, struct session *session, annal_error *err);

/* Return whether the log may still contain a mark of this session (rule 5). The caller holds the
 * session's lock. */
bool annal__level_os_has_mark(struct commit *commit, const struct session *session);

/* Sync the journal and write an end mark, and wait until the end mark is durable (rule 5). The
 * session's state is SESSION_BUSY. Locks and ANNAL_END as for annal__level_os_mark(). */
annal_status annal__level_os_end(struct commit *commit, struct session *session, annal_error *err);

/* Make the events of level os of all sessions durable, and wait until all groups are in their
 * journals (rule 4). */
annal_status annal__level_os_sync(struct commit *commit, annal_error *err);
