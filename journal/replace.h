/*
 * Taking a journal away, and putting another in its place (commit-log rule 12).
 *
 * A commit log, ours or another process's, may hold redo for the journal that goes: written again, it
 * would bring a deleted session back, or put its bytes into the file that stands there now.
 *
 * (1) Whoever does this holds locks/structure and the session, which is settled: nothing pending, its
 *     journal synced and closed, our own log checkpointed. Sessions are only tried under the lock.
 * (2) First a tombstone, events/.gone/<file id>, is made durable. Redo for this file id is dropped from
 *     then on, where no journal stands. It holds the header line of the journal, for people.
 * (3) Deleting: the name is removed, and events/ synced.
 * (4) Replacing: the new journal is written as events/.new-<file id>, whose header says `replaces`, and
 *     synced; proved against the old one; renamed over it; events/ is synced. So at every moment a whole
 *     journal stands there, for every reader (docs/decisions/0007).
 * (5) A journal that stands there counts, whatever tombstones say. So after a crash nothing is half
 *     done: either the old one is there, and may even have grown since, or it is gone. What is left to
 *     do is to remove .new- files: nobody but who holds locks/structure writes one.
 * (6) A tombstone goes when no log holds a record of its file id that no checkpoint covers. There
 *     will never be another: nobody can write that file any more.
 */
#ifndef JOURNAL_REPLACE_H
#define JOURNAL_REPLACE_H

#include "journal/store.h"

/* Whether there is a tombstone for this file. */
bool annal__replace_is_gone(const annal_store *store, const uint8_t file[FRAME_FILE_ID_BYTES]);

/* Rules (5) and (6). Does nothing when somebody else is at it; the next time will do. */
void annal__replace_sweep(annal_store *store);

#endif
