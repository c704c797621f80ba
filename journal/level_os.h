/*
 * Level os: bytes that stand in a journal before any sync covers them.
 *
 * An append of level os writes to the journal and to nothing else. Three things have to be told
 * apart after a crash: what was durable, what somebody was told is durable, and the rest, of which
 * a power cut may leave zeros, holes and pieces. Only the log can tell, so the log has marks:
 *
 * (1) Before the first loose byte a mark is durable in the log: from this offset on nothing was
 *     acknowledged. It costs one sync, and holds for all later appends of level os until (3). It
 *     joins the current group, so many sessions that begin at once share the sync.
 * (2) Whatever a group says of a marked session carries its loose bytes (commit-log rule 3) and a
 *     mark behind them: the next append of level os need not wait for another one.
 * (3) A checkpoint takes all marks away before it syncs, because it releases the groups that they
 *     stand in: what is written from then on has its mark in a group that is not being released.
 *     So does whoever replaces the log (failure.h).
 * (4) annal_sync() acknowledges. Few loose bytes go through the log, of all sessions in one group.
 *     Many are synced in the journal, so they are written once; then a mark behind them, durable
 *     before annal_sync() returns, says so: what rots later is damage, and is never taken for a
 *     loose tail.
 * (5) A session is given back with an end mark, a record of no bytes, unless the log holds no mark
 *     of it any more. What another process then appends is none of this log's business.
 * (6) Recovery walks from the last mark on, if that is the last word about a session, and keeps
 *     what proves itself; see recover.h.
 */
#ifndef JOURNAL_LEVEL_OS_H
#define JOURNAL_LEVEL_OS_H

#include "journal/store.h"

/*
 * Rule (1): wait until a mark is durable. Called and returns with the session's lock held; lets go
 * of it in between, so the session may have moved. ANNAL_END: the current group is full, nothing
 * was done.
 */
annal_status annal__loose_mark(annal_store *store, struct session *session, annal_error *err);

/* Rule (5): whether the log may still hold a mark of this session. Session's lock held. */
bool annal__loose_has_mark(annal_store *store, const struct session *session);

/* Rule (5): sync the journal and take the mark back, durably. The session is busy; otherwise as
 * above. */
annal_status annal__loose_end(annal_store *store, struct session *session, annal_error *err);

/* Rule (4), and everything that is in a group. */
annal_status annal__loose_sync(annal_store *store, annal_error *err);

#endif
