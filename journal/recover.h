/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redo: from the log of a dead process to the journals.
 *
 * (1) The caller holds the slot's lock. No locks of sessions are needed: the held list keeps other
 *     processes out.
 * (2) First the log is synced and its cache dropped, because the cache may show what the disk does
 *     not have.
 * (3) A record is written only if the journal has every byte before it and ends there in `h
 *     before`. A record that does not fit is reported, and the session is stopped: it stays in the
 *     held list, and the slot keeps its log. The same happens if a journal cannot be opened, read
 *     or written, until the next recovery. A record is dropped silently if the journal has another
 *     file id, or if the journal does not exist and a tombstone names the journal of the record:
 *     its session, format and file id (see replace.h).
 * (4) Redo never leaves a hole, never cuts except under (7), and every step may be repeated: a
 *     crash in the middle is recovered in the same way.
 * (5) Bytes are written even if the journal seems to contain them: the kernel may have lost them
 *     without an error.
 * (6) If a group is missing before an existing group, the missing group was acknowledged
 *     (commit-log rule 1). A session that a later group continues exactly where its journal ends
 *     has lost nothing. Every other held session may have, and is stopped. After a reboot so is
 *     every session that a damaged toc seems to name.
 * (7) If the last record of a session is a mark (level_os.h), the bytes after the mark were never
 *     acknowledged. A power cut leaves holes and pieces of it, a killed process a piece of a line.
 *     From the mark on, every line must prove itself. The first one that does not, and everything
 *     after it, is kept under events/.torn and cut. Damage before the mark is damage.
 * (8) Groups that a void names never happened. Nothing is written to a log that has a void: the
 *     caller removes it, once everything before the void is in the journals.
 * (9) The owner itself redoes what it could not write, or not sync, from its own log, in the same
 *     way.
 */
#ifndef JOURNAL_RECOVER_H
#define JOURNAL_RECOVER_H

#include "journal/store.h"

/*
 * Recover the slot of this log; held is its list, bound or unknown. ANNAL_OK: nothing in the log is
 * needed any more, and the slot is empty; if *out_void, the log must be removed. ANNAL_ERR_CORRUPT:
 * a session was stopped; the message names the first.
 */
annal_status annal__recover(annal_store *store, struct log *log, struct held *held, bool *out_void,
                            annal_error *err);

/* Reports a result of rule (9): why is NULL if the session's journal has, synced, everything that
 * the log has of it. */
typedef void (*redo_done_fn)(void *arg, struct session *session, const annal_error *why);

/*
 * Rule (9), for the leader of this store object: redo the sessions that are late, or all that are
 * held, from the groups after the epoch `released`. done is called for each session that the log
 * names.
 */
annal_status annal__recover_redo_own(annal_store *store, bool all, uint64_t released,
                                     redo_done_fn done, void *arg, annal_error *err);

#endif
