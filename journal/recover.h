/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redo: write what the log of a dead process contains to the journals.
 *
 * (1) The caller holds the slot's lock. No locks of sessions are needed: the held list keeps other
 *     processes out.
 * (2) First the log is synced and its cache dropped, because the cache may show what the disk does
 *     not have.
 * (3) A record is written only if the journal has every byte before it and ends there in `h
 *     before`. A record that does not fit is reported, and the session is stopped: it stays in the
 *     held list, and the slot keeps its log. The same happens if a journal cannot be opened, read
 *     or written, until the next recovery. A record is skipped silently if the journal has another
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
 *     acknowledged. A power cut leaves holes and pieces of them, a killed process a piece of a
 *     line. From the mark on, every line must have the right hash. The first line that has not, and
 *     everything after it, is copied to events/.torn and cut. Damage before the mark is reported as
 *     damage.
 * (8) Groups that a void file names (log_void.h) are ignored. Nothing is written to a log with a
 *     void file: the caller removes the log once its other groups are in the journals.
 * (9) A living owner redoes what it could not write or sync from its own log, in the same way.
 */
#pragma once

#include "journal/held_list.h"
#include "journal/log.h"
#include "journal/session.h"

/*
 * Recover the slot of this log; held is the slot's list, valid or not. ANNAL_OK: nothing in the log
 * is needed any more, and the slot is empty; with *out_void the log has a void file, and must be
 * removed. ANNAL_ERR_CORRUPT: the recovery of a session was stopped; the message names the first.
 */
annal_status annal__recover(struct session_table *sessions, struct log *log, struct held *held,
                            bool *out_void, annal_error *err);

/* Receives the result for a session (rule 9). why is NULL if the session's journal contains all
 * events of the session that are in the log, synced. */
typedef void (*redo_done_fn)(void *arg, struct session *session, const annal_error *why);

/*
 * Write sessions to their journals again from this process's own log, from the groups after the
 * epoch `released` (rule 9): the late sessions or, with all, those in the held list. done is called
 * for each session that these groups name. Only the leader of this store object (the thread that
 * writes the log) calls this.
 */
annal_status annal__recover_redo_own(struct session_table *sessions, bool all, uint64_t released,
                                     redo_done_fn done, void *arg, annal_error *err);
