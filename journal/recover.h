/*
 * Redo: from the log of a dead process to the journals.
 *
 * (1) The caller holds the slot's lock. No session locks are needed: the held list keeps others
 *     off.
 * (2) The log is synced and its cache dropped first: the cache may show what the disk does not
 *     have.
 * (3) A record is written only where the journal is contiguous up to it and ends there in `h
 *     before`. What does not fit is reported, and that session is stopped: it stays in the held
 *     list, and the slot keeps its log. So is a journal that cannot be opened, read or written,
 *     until the next time. A record is dropped, without a word, when a journal with another file id
 *     stands there, or when none does and a tombstone names the one that it is for: its session,
 *     format and file id (see replace.h).
 * (4) It never leaves a hole, never cuts but under (7), and every step may be done again: a crash
 *     in the middle is recovered the same way.
 * (5) Bytes are written also when they look equal: the kernel may have lost them without a word.
 * (6) A group that is missing in front of one that is there was acknowledged (commit-log rule 1). A
 *     session that a later group goes on with, just where its journal ends, lost nothing by it;
 *     every other one that is held may have, and is stopped. In another boot that is also who a
 *     damaged toc seems to name.
 * (7) Where the last word about a session is a mark (level_os.h), what follows it was acknowledged
 *     to nobody. A power cut leaves holes and pieces of it, a killed process a piece of a line.
 *     From the mark on every line has to prove itself; what does not, and all behind it, is kept
 *     under events/.torn and cut. Damage before the mark is damage.
 * (8) Groups that a void names never happened. A log with a void is not written: it is for the
 *     caller to remove, once everything before the void is in the journals.
 * (9) The owner itself redoes from its own log what it could not write, or not sync: the same way.
 */
#ifndef JOURNAL_RECOVER_H
#define JOURNAL_RECOVER_H

#include "journal/store.h"

/*
 * Recover the slot of this log; held is its list, bound or unknown. ANNAL_OK: nothing of the log is
 * needed any more; the slot is empty, or, when *out_void, the log is to be removed.
 * ANNAL_ERR_CORRUPT: some session was stopped; the message names the first.
 */
annal_status annal__recover(annal_store *store, struct log *log, struct held *held, bool *out_void,
                            annal_error *err);

/* What rule (9) did: why is NULL when the session's journal holds, synced, all that the log has of
 * it. */
typedef void (*redo_done_fn)(void *arg, struct session *session, const annal_error *why);

/*
 * Rule (9), for the leader of this store object: redo the sessions that are late, or all that are
 * held, from the groups behind the epoch `released`. done is called for each that the log names.
 */
annal_status annal__redo_own(annal_store *store, bool all, uint64_t released, redo_done_fn done,
                             void *arg, annal_error *err);

#endif
