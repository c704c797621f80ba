/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that this store object writes, or wrote.
 *
 * The struct lives from the first append until the store is closed. Its values for the journal are
 * true while the state is SESSION_OWNED; otherwise another process may have written to it since.
 *
 *      0 ────────── logged ────────── end        bytes of the journal
 *      in the log or synced  │ level os: in the page cache, and in `loose`
 *
 * (1) Everything below `logged` is in a group (durable or being written) or synced in the journal.
 *     The next record starts there (commit-log rule 3).
 * (2) `pending` records in groups contain bytes of this session that are not yet in the journal.
 *     While there are any, an append of level os joins the current group.
 * (3) While `marked`, a durable group says that bytes may follow which no sync covers. Only then
 *     does level os write to the journal directly. Before the group is released, the mark is
 *     removed.
 * (4) The descriptor stays open from a write until the sync that covers it: the kernel would not
 *     report a failed writeback to a descriptor that was opened later.
 */
#ifndef JOURNAL_SESSION_H
#define JOURNAL_SESSION_H

#include "journal/base/buf.h"
#include "journal/codec.h"
#include "journal/ids.h"

#include <annal/store.h>

#include <pthread.h>
#include <sys/types.h>

enum session_state { SESSION_FREE, SESSION_BUSY, SESSION_OWNED };

/* A session is late while its journal lacks, or may lack, what only our log has for sure; see
 * failure.h. */
enum session_late {
    LATE_NOT,
    LATE_SYNC, /* a sync of its journal failed: its bytes must be written again */
    LATE_BYTES /* its journal could not be written, so it accepts no appends */
};

/* The end of a session, kept so that it can be restored. */
struct session_tail {
    bool create_logged;
    uint64_t mark_group;
    uint64_t logged;
    uint64_t logged_h;
    uint64_t end;
    uint64_t seq;
    int64_t ts_us;
    uint64_t h;
    size_t loose_bytes;
    uint64_t loose_first_seq;
};

#define SESSION_LOOSE_BYTES_MAX ((size_t)1 << 20)

struct session {
    /* Set once. */
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    size_t id_bytes;
    struct session *next;  /* in its bucket of the table */
    struct session *older; /* in the list of all */

    pthread_mutex_t lock;
    pthread_cond_t moved; /* state or in_use changed */

    /* Guarded by lock. */
    enum session_state state;
    uint32_t held_index;
    bool unlisted;          /* seized without a slot: see annal__session_seize() */
    int64_t yield_until_us; /* another process wants it: do not take it again before */
    bool refused;           /* no more appends until the store is opened again */
    enum session_late late;
    const annal_error *refusal; /* why it is refused or late; else of status 0 */
    int64_t lease_until_us;     /* lease.h; INT64_MAX: no lease, 0: not known */
    bool redone;                /* the catch-up that is running has seen it */
    /* The last refusal of groups that contained a mark, or events, of this session. */
    uint64_t rolled_marks;
    uint64_t rolled_back;
    struct annal_writer *lossy; /* writers with batch events that are not durable yet */
    bool in_use;                /* whether its descriptor is being synced and must not be closed */
    int fd;                     /* descriptor of the journal, -1: not open */
    dev_t device;
    ino_t inode;
    const struct codec *codec; /* the format of the journal */
    char *path;                /* path of the journal; its suffix is the codec's */
    uint8_t file[FRAME_FILE_ID_BYTES];
    bool create_logged; /* the journal's header is in the log or synced */
    bool exists;        /* the journal's header is in the journal */
    struct buf header;  /* the header line of a new journal */
    uint64_t logged;
    uint64_t logged_h; /* hash of the last line before logged */
    uint64_t end;
    uint64_t seq;
    int64_t ts_us;
    uint64_t h;
    struct buf loose;
    uint64_t loose_first_seq; /* the first event in loose */
    uint32_t pending;
    uint64_t last_group; /* group and index of its last record */
    size_t last_record;
    bool marked;           /* or about to be: certainly true if nothing is pending; see (3) */
    uint64_t mark_group;   /* the group of the last mark that no later record ended; 0: none */
    bool dirty;            /* the journal has bytes that no sync has covered */
    uint64_t written_back; /* bytes before this offset were written back, but not synced */
    struct ids ids;
    bool ids_loaded;
    uint64_t changed; /* the store's change counter at the last apply */
    int64_t used_us;  /* monotonic, to choose which descriptor to close */
};

/* Set why a session is refused or late. Session's lock held. */
void annal__session_set_refusal(struct session *session, const annal_error *why);

/* The struct of a session, created at first use. It lives until the store is closed. */
struct session *annal__session_get(annal_store *store, annal_slice id, annal_error *err);

/* Call fn for each session; fn may lock it. Stops if fn returns below 0, and returns that. */
typedef annal_status (*session_fn)(void *arg, struct session *session, annal_error *err);
annal_status annal__session_each(annal_store *store, session_fn fn, void *arg, annal_error *err);
void annal__sessions_done(annal_store *store);

annal_slice annal__session_id(const struct session *session);

/*
 * Own the session, waiting at most until the deadline (monotonic): take it (commit-log rule 8) and
 * read the end of its journal; a torn end is cut (rule 13). Call it with the lock held; it releases
 * the lock in between, and returns with it held.
 */
annal_status annal__session_own(annal_store *store, struct session *session, int64_t deadline_us,
                                annal_error *err);

/*
 * Release the session (rule 9): wait for pending groups, sync the journal, free the entry. Call it
 * with the lock held; it releases the lock in between, keeps new appends out, and returns with the
 * lock held.
 */
annal_status annal__session_release(annal_store *store, struct session *session, annal_error *err);

/*
 * Own the session with its journal synced and closed, and keep everybody else out until
 * annal__session_let_go(): other threads wait in annal__session_own(), other processes for the held
 * entry. Does not look at the journal, which may be missing or damaged. Waits neither for another
 * process nor for a thread that is taking the session: it returns ANNAL_ERR_BUSY, after asking the
 * owner for it. Call it with the lock held; it releases the lock in between, and returns with it
 * held.
 *
 * If the disk is too full for the log of a slot, the session is `unlisted`: other threads are kept
 * out, but other processes only while the caller has annal__slot_keep_off().
 */
annal_status annal__session_seize(annal_store *store, struct session *session, annal_error *err);
void annal__session_let_go(annal_store *store, struct session *session);

/* Whether another process asked for the session. */
bool annal__session_is_wanted(annal_store *store, const struct session *session);

/* Write bytes into the journal, which is created if necessary. Lock held. */
annal_status annal__session_write(annal_store *store, struct session *session, uint64_t offset,
                                  annal_slice bytes, annal_error *err);

/*
 * After a write up to `end`: start writeback of all complete pieces of piece_bytes. Otherwise the
 * next sync of any file must write them and takes longer. Journals that grow side by side complete
 * their pieces at different times. The session's lock is held. A failure is a failure of the write.
 */
annal_status annal__session_write_back(annal_store *store, struct session *session, uint64_t end,
                                       uint64_t piece_bytes, annal_error *err);

/*
 * fdatasync the journal if it is dirty, and the directory if the journal is new. If the sync fails
 * the session becomes late. Lock held.
 */
annal_status annal__session_sync(annal_store *store, struct session *session, annal_error *err);

/*
 * In the held list: whether the session has bytes of level os that no durable group says are
 * durable. Lock held, session owned or being released.
 */
bool annal__session_is_loose(const annal_store *store, const struct session *session);
void annal__session_set_loose(annal_store *store, struct session *session, bool loose);

/* Forget the first bytes of session->loose, and its memory with the last of them. Lock held. */
void annal__session_drop_loose(struct session *session, size_t bytes);

/*
 * The journal contains, synced, everything that the log has of the session: open it again, and
 * write the loose bytes again. Lock held.
 */
annal_status annal__session_reopen(annal_store *store, struct session *session, annal_error *err);

/* Forget that we own it, without looking at its journal, which is not ours; false: not possible
 * now. Lock held. */
bool annal__session_forget(annal_store *store, struct session *session);

/* The path of a session's journal in one format. */
annal_status annal__store_journal_path(const annal_store *store, annal_slice session,
                                       const struct codec *codec, struct buf *out,
                                       annal_error *err);

/*
 * The journal of a session: its path, and the codec of its format. If it has no journal: the path
 * that it would have in the default format, and *out_codec is NULL. A file of 0 bytes counts only
 * without another journal.
 */
annal_status annal__store_journal_find(const annal_store *store, annal_slice session,
                                       struct buf *out_path, const struct codec **out_codec,
                                       annal_error *err);

/* As above, and open it for reading. ANNAL_ERR_NOTFOUND if it does not exist. */
annal_status annal__store_journal_open(const annal_store *store, annal_slice session, int *out_fd,
                                       const struct codec **out_codec, annal_error *err);

/* Whether the session also has a journal in a different format. */
bool annal__store_journal_is_double(const annal_store *store, annal_slice session,
                                    const struct codec *codec);

/* The header of a journal that begins now, with a random id, and its frame and hash. */
annal_status annal__session_header_new(const annal_store *store, annal_slice session,
                                       const struct codec *codec, struct frame_header *out,
                                       struct buf *frame, uint64_t *out_h, annal_error *err);

/* Begin a journal in this format. The session has no journal, and the log has no record of it. Lock
 * held. */
annal_status annal__session_begin(annal_store *store, struct session *session,
                                  const struct codec *codec, annal_error *err);

#endif
