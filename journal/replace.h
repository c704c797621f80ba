/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remove a journal, or replace it by another file (rule 12 of the commit log).
 *
 * A commit log of any process may contain redo for the journal that is removed. This redo must not
 * be written any more: it would restore a deleted session, or write old bytes into the new file.
 *
 * (1) The caller holds locks/structure and owns the session: nothing is pending, its journal is
 *     synced and closed, our own log is checkpointed. With locks/structure held, the caller never
 *     waits for a session. If the disk is too full for the log of a slot, locks/claim is held while
 *     the journal is deleted, instead of the session.
 * (2) First a durable tombstone, events/.gone/<file id>, is written. It contains a header: of this
 *     file id, session and format. From then on redo for this journal is skipped if the journal
 *     does not exist; redo for another session is not, even with the same file id. (A copy of a
 *     journal under another name has the same file id, and is not a session: it is deleted without
 *     a tombstone.) Older versions wrote empty tombstones, which name the file id only. If a full
 *     disk has no room for a tombstone, the journal is deleted without it, provided that no log
 *     names the journal.
 * (3) Deleting: the name is removed, and events/ synced.
 * (4) Replacing: the new journal is written as events/.new-<file id>, whose header says `replaces`,
 *     synced, proved against the old one, and renamed to its name; events/ is synced. That name
 *     differs from the old one, because the format does. The old name is removed next, and events/
 *     synced. For a moment both exist: readers take the first format in annal__codecs, so for them
 *     the switch is the rename or the removal, and at every moment they find one whole journal
 *     (docs/decisions/0007).
 * (5) A journal that exists is valid, whatever tombstones exist, and of two journals, the journal
 *     in the first format. So after a crash the old journal either exists (and may even have grown
 *     since), or does not. The sweep then removes the second of two journals, and .new- files: only
 *     a process that holds locks/structure creates these.
 * (6) A tombstone is removed when no log has a record of its file id that no checkpoint covers.
 *     There will never be another such record: no process can write that file any more.
 */
#pragma once

#include "journal/replace_claim.h"

/* Read the header of the journal that is to be removed. ANNAL_ERR_NOTFOUND if it does not exist;
 * ANNAL_ERR_CONFLICT if a fork needs it. */
annal_status annal__replace_examine(struct change *change, annal_error *err);

/* Write the tombstone that a deletion or conversion needs (rule 2). */
annal_status annal__replace_put_tombstone(struct change *change, annal_error *err);
