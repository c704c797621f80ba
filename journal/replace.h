/*
 * Taking a journal away, and putting another in its place (commit-log rule 12).
 *
 * A commit log, ours or another process's, may hold redo for the journal that goes: written again,
 * it would bring a deleted session back, or put its bytes into the file that stands there now.
 *
 * (1) Whoever does this holds locks/structure and the session, which is settled: nothing pending,
 *     its journal synced and closed, our own log checkpointed. Sessions are only tried under the
 *     lock. On a full disk, where there is no room for the log of a slot, locks/claim is held
 *     for the moment in which a journal is deleted, instead of the session.
 * (2) First a tombstone, events/.gone/<file id>, is made durable. It holds a header: of this file
 *     id, session and format. Redo for this journal is dropped from then on, where no journal
 *     stands; redo for any other is not, whatever its file id. (A copy of a journal under another
 *     name has its file id, and is no session: it is deleted without a tombstone for that id.)
 *     Older versions left some that are empty: these say the file id only. On a full disk there
 *     may be no room for one: then none is needed when no log names the journal.
 * (3) Deleting: the name is removed, and events/ synced.
 * (4) Replacing: the new journal is written as events/.new-<file id>, whose header says `replaces`,
 *     synced, proved against the old one, and renamed to its name; events/ is synced. It is another
 *     name than the old one's, for it is of another format; the old name is removed then, and
 *     events/ synced. For a moment both stand there: readers take the first format in
 *     annal__codecs, so for them the switch is the rename or the removal, and at every moment they
 *     find one whole journal (docs/decisions/0007).
 * (5) A journal that stands there counts, whatever tombstones say, and of two that of the first
 *     format. So after a crash nothing is half done: the old one is there (and may even have grown
 *     since), or it is gone. What is left to do is to remove the second of two and .new- files:
 *     nobody but who holds locks/structure makes them.
 * (6) A tombstone goes when no log holds a record of its file id that no checkpoint covers. There
 *     will never be another: nobody can write that file any more.
 */
#ifndef JOURNAL_REPLACE_H
#define JOURNAL_REPLACE_H

#include "journal/store.h"

/*
 * Whether there is a tombstone for the journal of this session, in this format and with this file
 * id. A look that fails says neither: ANNAL_ERR_IO, or ANNAL_ERR_CORRUPT for a tombstone whose
 * header is damaged.
 */
annal_status annal__replace_is_gone(const annal_store *store, annal_slice session,
                                    const struct codec *codec,
                                    const uint8_t file[FRAME_FILE_ID_BYTES], bool *out_gone,
                                    annal_error *err);

/* Rules (5) and (6). Does nothing when somebody else is at it; the next time will do. */
void annal__replace_sweep(annal_store *store);

/* A session that is about to lose its journal. */
struct change {
    annal_store *store;
    int64_t deadline_us;       /* monotonic: all waiting for others ends then */
    struct session *session;   /* NULL: it could not be had */
    const struct codec *codec; /* of its journal */
    struct buf path;
    /* The header, as it stands there; empty when it is damaged, or that of another session. */
    struct buf frame;
    struct frame_header header;
    annal_session_info info;
    bool is_logged; /* a log names the journal */
};

/*
 * Have locks/structure and the session, which need not be there. With sound, the end of the journal
 * must be so, if there is one. annal__change_end() is called in any case.
 */
annal_status annal__change_claim(struct change *change, annal_store *store, annal_slice id,
                                 bool sound, annal_error *err);

/*
 * Rule (1). With sound, the end of the journal must be so. Whoever has the lock or the session gets
 * until the store's limit to give it back. annal__change_end() is called in any case.
 */
annal_status annal__change_begin(struct change *change, annal_store *store, annal_slice id,
                                 bool sound, annal_error *err);

/* Look at the journal that goes. ANNAL_ERR_NOTFOUND; ANNAL_ERR_CONFLICT when a fork needs it. */
annal_status annal__change_examine(struct change *change, annal_error *err);

/* Rule (2). */
annal_status annal__change_bury(struct change *change, annal_error *err);

/* Let go of everything. */
void annal__change_end(struct change *change);

#endif
