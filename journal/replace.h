/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing a journal, and putting another in its place (commit-log rule 12).
 *
 * A commit log, ours or another process's, may contain redo for the journal that is removed. If it
 * were written again, it would restore a deleted session, or write its bytes into the present file.
 *
 * (1) The caller holds locks/structure and the session, which is settled: nothing is pending, its
 *     journal is synced and closed, our own log is checkpointed. Sessions are only tried under the
 *     lock. If the disk is too full for the log of a slot, locks/claim is held while the journal is
 *     deleted, instead of the session.
 * (2) First a durable tombstone, events/.gone/<file id>, is written. It contains a header: of this
 *     file id, session and format. From then on redo for this journal is dropped if the journal
 *     does not exist; redo for any other is not, whatever its file id. (A copy of a journal under
 *     another name has its file id, and is not a session: it is deleted without a tombstone for
 *     that id.) Older versions left empty tombstones: these say the file id only. On a full disk
 *     there may be no room for one: then none is needed if no log names the journal.
 * (3) Deleting: the name is removed, and events/ synced.
 * (4) Replacing: the new journal is written as events/.new-<file id>, whose header says `replaces`,
 *     synced, proved against the old one, and renamed to its name; events/ is synced. That name
 *     differs from the old one, because the format does. The old name is removed next, and events/
 *     synced. For a moment both exist: readers take the first format in annal__codecs, so for them
 *     the switch is the rename or the removal, and at every moment they find one whole journal
 *     (docs/decisions/0007).
 * (5) A journal that exists counts, whatever tombstones say, and of two journals, the journal in
 *     the first format. So after a crash nothing is half done: either the old journal exists (and
 *     may even have grown since), or it is gone. All that is left to do is to remove the second of
 *     two journals, and .new- files: only a process that holds locks/structure creates these.
 * (6) A tombstone is removed when no log has a record of its file id that no checkpoint covers.
 *     There will never be another such record: no process can write that file any more.
 */
#ifndef JOURNAL_REPLACE_H
#define JOURNAL_REPLACE_H

#include "journal/store.h"

/*
 * Whether there is a tombstone for the journal of this session, in this format and with this file
 * id. If that cannot be found out: ANNAL_ERR_IO, or ANNAL_ERR_CORRUPT for a tombstone whose header
 * is damaged.
 */
annal_status annal__replace_is_gone(const annal_store *store, annal_slice session,
                                    const struct codec *codec,
                                    const uint8_t file[FRAME_FILE_ID_BYTES], bool *out_gone,
                                    annal_error *err);

/*
 * Rules (5) and (6): finish interrupted conversions and deletions. Does nothing if another process
 * is doing so; the next call will.
 */
void annal__replace_sweep(annal_store *store);

/* A session that is about to lose its journal. */
struct change {
    annal_store *store;
    int64_t deadline_us;       /* monotonic: all waiting for others ends then */
    struct session *session;   /* NULL: it could not be taken */
    const struct codec *codec; /* codec of its journal */
    struct buf path;
    /* The header that is in the journal; empty if it is damaged, or belongs to another session. */
    struct buf frame;
    struct frame_header header;
    annal_session_info info;
    bool is_logged; /* a log names the journal */
};

/*
 * Take locks/structure and the session, which need not exist. With sound, the end of the journal
 * must be sound, if there is a journal. Call annal__replace_end() in any case.
 */
annal_status annal__replace_claim(struct change *change, annal_store *store, annal_slice id,
                                  bool sound, annal_error *err);

/*
 * Rule (1). With sound, the end of the journal must be sound. Waits up to the store's limit for the
 * process that holds the lock or the session. Call annal__replace_end() in any case.
 */
annal_status annal__replace_begin(struct change *change, annal_store *store, annal_slice id,
                                  bool sound, annal_error *err);

/* Look at the journal that is to be removed. ANNAL_ERR_NOTFOUND; ANNAL_ERR_CONFLICT if a fork needs
 * it. */
annal_status annal__replace_examine(struct change *change, annal_error *err);

/* Rule (2). */
annal_status annal__replace_put_tombstone(struct change *change, annal_error *err);

/* Release everything. */
void annal__replace_end(struct change *change);

#endif
