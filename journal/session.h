/*
 * A session that this store object writes, or wrote.
 *
 * The struct lives from the first append to the close of the store. What it says about the journal
 * holds while the state is SESSION_OWNED; another process may have written in between otherwise.
 *
 *      0 ────────── logged ────────── end        bytes of the journal
 *      in the log or synced  │ level os: in the page cache, and in `loose`
 *
 * (1) Everything below `logged` is in a group (durable or on its way) or synced in the journal.
 *     The next record starts there (commit-log rule 3).
 * (2) `pending` records in groups hold bytes of this session that are not in the journal yet. While
 *     there are any, an append of level os joins the current group.
 * (3) While `marked`, a durable group says that bytes may follow which no sync covers: only then
 *     level os writes to the journal directly. Whoever releases the group takes the mark away
 *     first.
 * (4) The descriptor stays open from a write until the sync that covers it: a descriptor opened
 *     later would not be told of a failed writeback.
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
    LATE_SYNC, /* a sync of its journal failed: its bytes are to be written again */
    LATE_BYTES /* behind: its journal could not be written; takes no appends */
};

/* Where a session stands, to go back to. */
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
    struct session *next; /* in its bucket of the table */

    pthread_mutex_t lock;
    pthread_cond_t moved; /* state or in_use changed */

    /* Guarded by lock. */
    enum session_state state;
    uint32_t held_index;
    bool unlisted;          /* seized without a slot: see annal__session_seize() */
    int64_t yield_until_us; /* somebody else wants it: do not take it again before */
    bool refused;           /* no more appends until the store is opened again */
    enum session_late late;
    annal_error refusal; /* why it is refused or behind */
    bool redone;         /* the catching up that is under way has seen it */
    /* The last refusal of groups that it was part of, with a mark or with events. */
    uint64_t rolled_marks;
    uint64_t rolled_back;
    struct annal_writer *lossy; /* writers that have batch events under way */
    bool in_use;                /* its descriptor is being synced; do not close it */
    int fd;                     /* of the journal, -1: not open */
    dev_t device;
    ino_t inode;
    const struct codec *codec; /* the format of the journal */
    char *path;                /* of the journal; its suffix is the codec's */
    uint8_t file[FRAME_FILE_ID_BYTES];
    bool create_logged; /* the journal's header is in the log or synced */
    bool exists;        /* the journal's header is in the journal */
    struct buf header;  /* the header line of a new journal */
    uint64_t logged;
    uint64_t logged_h; /* of the last line before logged */
    uint64_t end;
    uint64_t seq;
    int64_t ts_us;
    uint64_t h;
    struct buf loose;
    uint64_t loose_first_seq; /* the first event in loose */
    uint32_t pending;
    bool marked;         /* or about to be: true for sure when nothing is pending; see (3) */
    uint64_t mark_group; /* the group of the last mark that no later record took back; 0: none */
    bool dirty;          /* the journal has bytes that no sync has covered */
    uint64_t dirty_from; /* about where they begin */
    struct ids ids;
    bool ids_loaded;
    uint64_t changed; /* the store's change counter at the last apply */
    int64_t used_us;  /* monotonic, for choosing which descriptor to close */
};

/* The struct of a session, made at first use. Lives until the store is closed. */
struct session *annal__session_get(annal_store *store, annal_slice id, annal_error *err);

/* Call fn for each; it may lock the session. Stops and returns what fn returned below 0. */
typedef annal_status (*session_fn)(void *arg, struct session *session, annal_error *err);
annal_status annal__session_each(annal_store *store, session_fn fn, void *arg, annal_error *err);
void annal__sessions_done(annal_store *store);

annal_slice annal__session_id(const struct session *session);

/*
 * Own the session by the deadline (monotonic): take it (commit-log rule 8) and read the end of its
 * journal, cutting a torn tail (rule 13). Called and returns with the lock held; lets go of it in
 * between.
 */
annal_status annal__session_own(annal_store *store, struct session *session, int64_t deadline_us,
                                annal_error *err);

/*
 * Give it back (rule 9): waits for pending groups, syncs the journal, frees the entry. Called and
 * returns with the lock held; lets go of it in between, and keeps new appends off.
 */
annal_status annal__session_release(annal_store *store, struct session *session, annal_error *err);

/*
 * Own it with its journal synced and closed, and keep everybody off until annal__session_let_go():
 * other threads wait in annal__session_own(), other processes for the held entry. Does not look at
 * the journal, which need not be there or sound. Waits neither for another process nor for a thread
 * that takes it: ANNAL_ERR_BUSY, but the owner has been asked. Called and returns with the lock
 * held; lets go of it in between.
 *
 * On a full disk, where there is no room for the log of a slot, it is `unlisted`: then other
 * threads are kept off, and other processes only while the caller has annal__slot_keep_off().
 */
annal_status annal__session_seize(annal_store *store, struct session *session, annal_error *err);
void annal__session_let_go(annal_store *store, struct session *session);

/* Whether another process asked for it. */
bool annal__session_is_wanted(annal_store *store, const struct session *session);

/* Write bytes into the journal, which is made if need be. With the lock held. */
annal_status annal__session_write(annal_store *store, struct session *session, uint64_t offset,
                                  annal_slice bytes, annal_error *err);

/* Wait until no checkpoint uses its descriptor, and let that one hurry. Lock held. */
void annal__session_wait_unused(annal_store *store, struct session *session);

/*
 * fdatasync the journal if it is dirty; and the directory when the journal is new. A journal that
 * cannot be synced is late. Lock held.
 */
annal_status annal__session_sync(annal_store *store, struct session *session, annal_error *err);

/*
 * In the held list: whether it has bytes of level os of which no durable group says that they are
 * durable. Lock held, session owned or being given back.
 */
bool annal__session_is_loose(const annal_store *store, const struct session *session);
void annal__session_set_loose(annal_store *store, struct session *session, bool loose);

/*
 * Its journal holds, synced, all that the log has of it: open it anew, write what is loose again.
 * Lock held.
 */
annal_status annal__session_reopen(annal_store *store, struct session *session, annal_error *err);

/* Let it go without a look at its journal, which is not ours; false: not now. Lock held. */
bool annal__session_forget(annal_store *store, struct session *session);

/* The path of a session's journal in one format. */
annal_status annal__journal_path(const annal_store *store, annal_slice session,
                                 const struct codec *codec, struct buf *out, annal_error *err);

/*
 * Which journal a session has: its path, and the codec of its format. Without any: the path that it
 * would have in the default format, and *out_codec is NULL. A file of 0 bytes is one only when
 * there is no other.
 */
annal_status annal__journal_find(const annal_store *store, annal_slice session,
                                 struct buf *out_path, const struct codec **out_codec,
                                 annal_error *err);

/* The same, and open it for reading. ANNAL_ERR_NOTFOUND without any. */
annal_status annal__journal_open(const annal_store *store, annal_slice session, int *out_fd,
                                 const struct codec **out_codec, annal_error *err);

/* Whether a journal in another format than this one stands there too. */
bool annal__journal_is_double(const annal_store *store, annal_slice session,
                              const struct codec *codec);

/* Begin a journal in this format. There is none, and nothing of one is in the log. Lock held. */
annal_status annal__session_begin(annal_store *store, struct session *session,
                                  const struct codec *codec, annal_error *err);

#endif
