/* SPDX-License-Identifier: Apache-2.0 */
/* The journal file of a session that this store object writes: its descriptor, writes, syncs. */
#pragma once

#include "journal/session.h"

/* Open the journal; with `create`, create it if it is missing. *out_found is set if it existed. */
annal_status annal__session_open_journal(struct session_table *sessions, struct session *session,
                                         bool create, bool *out_found, annal_error *err);
void annal__session_close_journal(struct session_table *sessions, struct session *session);

/* Wait until no checkpoint or sync uses the session's descriptor. The caller holds the session's
 * lock. */
void annal__session_wait_unused(struct session *session);

/* Set the format of the journal, and its path. The journal is not open. */
void annal__session_set_codec(struct session *session, const struct codec *codec);

/* Create the header of a new journal, with a random file id, and encode it as a frame in *frame;
 * *out_h is the hash of the frame. */
annal_status annal__session_header_new(const struct context *context, annal_slice session,
                                       const struct codec *codec, struct frame_header *out,
                                       struct buf *frame, uint64_t *out_h, annal_error *err);

/* Prepare a new journal in this format, in memory only; the first append writes it. The session has
 * no journal, and the log has no record of it. The caller holds the session's lock. */
annal_status annal__session_begin(struct session_table *sessions, struct session *session,
                                  const struct codec *codec, annal_error *err);

/* Write bytes into the session's journal at this offset; create the journal if it is missing. The
 * caller holds the session's lock. */
annal_status annal__session_write(struct session_table *sessions, struct session *session,
                                  uint64_t offset, annal_slice bytes, annal_error *err);

/*
 * After a write up to `end`, ask the kernel to write all complete pieces of piece_bytes to the
 * disk. Otherwise the next sync of any file must write them, and takes longer. Journals that grow
 * side by side complete their pieces at different times. A failure is treated like a failed write.
 * Lock held.
 */
annal_status annal__session_write_back(struct session_table *sessions, struct session *session,
                                       uint64_t end, uint64_t piece_bytes, annal_error *err);

/*
 * Sync the journal if it has unsynced bytes, and events/ if it has new names. If the sync of the
 * journal fails, the session becomes late: its journal must be written again. The caller holds the
 * session's lock.
 */
annal_status annal__session_sync(struct session_table *sessions, struct session *session,
                                 annal_error *err);

/* Open the journal again, after all records of the session in the log were written to it and
 * synced; then write the bytes of level os again. The caller holds the session's lock. */
annal_status annal__session_reopen(struct session_table *sessions, struct session *session,
                                   annal_error *err);

/* Read and set, in the held list, whether the session has bytes of level os that no durable group
 * records as durable. The caller holds the session's lock, and owns or is releasing the session. */
bool annal__session_is_loose(const struct session_table *sessions, const struct session *session);
void annal__session_set_loose(struct session_table *sessions, struct session *session, bool loose);

/* Remove the first bytes of session->loose, which are durable, and free its memory when it becomes
 * empty. The caller holds the session's lock. */
void annal__session_drop_loose(struct session *session, size_t bytes);

/*
 * Give up the ownership of a session whose journal's name belongs to another file, without reading
 * that file. Return false while records wait to be written, or the descriptor is in use. The caller
 * holds the session's lock.
 */
bool annal__session_forget(struct session_table *sessions, struct session *session);

/* Free the held entry of a session whose journal is closed. The caller holds the session's lock. */
void annal__session_let_go(struct session_table *sessions, struct session *session);
