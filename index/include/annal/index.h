/*
 * The index: STORE/sessions.db, a SQLite database made from the journals. It says which event
 * stands where (event_index), and holds the tables that the core pack keeps (sessions, turns) and
 * the snapshots. Nothing in it is precious: delete it at any moment, also while it is in use, and
 * it comes back the same. The stock sqlite3 shell may read it.
 *
 * Appends never wait for the index. It follows the journals: a keeper indexes what its own process
 * appends (options.follow), and every reader first catches up with what was durable when it asked,
 * for as long as it is willing to wait.
 */
#ifndef ANNAL_INDEX_H
#define ANNAL_INDEX_H

#include <annal/store.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annal_index annal_index;

typedef struct annal_index_options {
    bool follow;       /* index in the background, as a chore of the store's keeper, what the store
                         appends */
    uint32_t wait_ms;  /* how long a reader waits for its catch-up, and for other programs; default:
                         the store's */
    bool no_snapshots; /* take no snapshots of what the store appends; see <annal/snapshot.h> */
} annal_index_options;

/*
 * Open the index of a store; close it before the store. A sessions.db that is missing, of another
 * version, or damaged is made anew from the journals by the first catch-up; one that another
 * program made is first moved aside to sessions.db.foreign. Any thread, and an index may be used by
 * many threads at once. The store must outlive it.
 *
 * Where sessions.db cannot be made or written (no space, no permission), or is deleted faster than
 * it is made, readers are answered from an index in memory, made from the journals: slower, and the
 * same. But for the deletion the store's log is told why.
 *
 * One that follows moves what users wrote into the databases of writable packs into the journals,
 * when it is opened and when it is closed, as far as it gets in a second; what it cannot move stays
 * where it is, and the store's log is told.
 *
 * It also takes snapshots of the sessions that the store appends to, as they become due, unless
 * options.no_snapshots says otherwise: see annal_snapshots_open(). Of several indexes of one store
 * object the one that was opened first does; when it is closed, the next one goes on.
 *
 * In a store that is open for reading only nothing is written: a sessions.db that stands there is
 * read as it is, and where there is none, a private one is made in memory from the journals.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_open(annal_store *store,
                                                         const annal_index_options *options,
                                                         annal_index **out_index, annal_error *err);

/*
 * All queries of this index must be closed before. NULL is accepted. A child of fork() may call it,
 * to no effect; it opens store and index again.
 */
ANNAL_API void annal_index_close(annal_index *index);

/* ---- Catching up ---- */

typedef struct annal_index_progress {
    uint64_t bytes_done; /* of journal */
    uint64_t bytes_total;
    uint64_t events; /* indexed by this call */
} annal_index_progress;

/* Called between transactions, without locks. Anything but 0 ends the work, and ANNAL_END is the
 * answer. */
typedef int (*annal_progress_fn)(void *arg, const annal_index_progress *progress);

typedef struct annal_catch_up_options {
    uint32_t
        timeout_ms; /* default: the wait_ms of the index; ANNAL_NO_TIMEOUT: as long as it takes */
    annal_progress_fn progress;
    void *arg;
    bool packs;          /* the tables of the store's packs too; see annal/pack.h */
    bool every_database; /* and those databases that packs keep for single sessions: of all sessions
                            (without it: of the session that is asked for) */
} annal_catch_up_options;

#define ANNAL_NO_TIMEOUT UINT32_MAX

/*
 * Index everything that was durable when this was called, of one session, or of all when session is
 * empty. Damage in a journal, and a payload that a pack cannot take, cost that line and are kept as
 * findings; they are no failure. A session whose journal was replaced is indexed anew by itself
 * (when by one of exactly the same size: as soon as that session is asked for, or grows); one whose
 * journal is gone leaves the tables. Any thread.
 *
 * ANNAL_ERR_BUSY  the time to wait is over; the message says who was in the way or how much is
 * left. What was done stays done.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_catch_up(annal_index *index,
                                                             annal_slice session,
                                                             const annal_catch_up_options *options,
                                                             annal_error *err);

/*
 * These sessions were deleted: take them out of every database of the store, and see to it that no
 * byte of them is left there. Rows are overwritten when they are deleted; then the write-ahead logs
 * are emptied, and search.db is merged and made anew. Waits for others up to the index's wait_ms.
 * Any thread.
 *
 * ANNAL_ERR_BUSY  something may remain: the message says where, and why
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_wipe(annal_index *index,
                                                         const annal_slice *sessions, size_t count,
                                                         annal_error *err);

/*
 * Throw sessions.db away and make it anew, and then the tables of all packs. Other processes notice
 * and follow. The default is to wait without limit. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_rebuild(annal_index *index,
                                                            const annal_catch_up_options *options,
                                                            annal_error *err);

/* ---- How it stands ---- */

/* One session: what its journal holds against what is indexed. */
typedef struct annal_index_lag {
    annal_slice session;
    uint64_t journal_seq; /* last event in the journal */
    uint64_t indexed_seq; /* last event in the index */
    uint64_t journal_bytes;
    uint64_t indexed_bytes; /* the index knows the journal up to here */
} annal_index_lag;

/* Return 0 to go on; anything else stops and is handed through. Slices live until it returns. */
typedef int (*annal_index_lag_fn)(void *arg, const annal_index_lag *lag);

/* The lag of one session, or of all when session is empty. Reads the end of each journal. Any
 * thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_lag_each(annal_index *index,
                                                             annal_slice session,
                                                             annal_index_lag_fn fn, void *arg,
                                                             annal_error *err);

/* What the indexer met and went on from. */
typedef struct annal_index_finding {
    annal_slice session;
    uint64_t seq;
    uint64_t offset;
    uint64_t length;
    annal_slice kind; /* "damage": of the journal; "pack": a handler could not take the event */
    annal_slice what;
} annal_index_finding;

/* Return 0 to go on; anything else stops and is handed through. */
typedef int (*annal_index_finding_fn)(void *arg, const annal_index_finding *finding);

/* The findings of one session, or of all when session is empty, by session and place. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_findings(annal_index *index,
                                                             annal_slice session,
                                                             annal_index_finding_fn fn, void *arg,
                                                             annal_error *err);

/* ---- The databases as files: sessions.db and those of the packs ---- */

typedef enum annal_checkpoint_mode { /* as SQLite's PRAGMA wal_checkpoint has them */
                                     ANNAL_CHECKPOINT_TRUNCATE =
                                         0, /* all, and the -wal file gets length 0 */
                                     ANNAL_CHECKPOINT_PASSIVE =
                                         1, /* what is possible without waiting */
                                     ANNAL_CHECKPOINT_FULL = 2,
                                     ANNAL_CHECKPOINT_RESTART = 3
} annal_checkpoint_mode;

typedef struct annal_maintenance {
    const char *name;     /* of the database */
    bool done;            /* false: error says why not */
    bool busy;            /* of a checkpoint: a reader was in the way */
    int64_t log_pages;    /* in the WAL; -1: there is none */
    int64_t checkpointed; /* of them, in the database now */
    uint64_t bytes_before;
    uint64_t bytes_after; /* database and WAL */
    const annal_error *error;
} annal_maintenance;

/* Return 0 to go on; anything else stops and is handed through. */
typedef int (*annal_maintenance_fn)(void *arg, const annal_maintenance *what);

/*
 * Move what stands in the WAL of each database into the database, under its lock (see lock.h for
 * why nobody else may); one that does not exist is left out. Appends do not wait; who catches up
 * does. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_checkpoint(annal_index *index,
                                                               annal_checkpoint_mode mode,
                                                               annal_maintenance_fn fn, void *arg,
                                                               annal_error *err);

/* Make each database anew without its free pages, under its lock; readers go on. Needs as much
 * space again. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_vacuum(annal_index *index,
                                                           annal_maintenance_fn fn, void *arg,
                                                           annal_error *err);

/* Give back what a function of this folder handed out. NULL is accepted. */
ANNAL_API void annal_index_free(const void *bytes);

#ifdef __cplusplus
}
#endif

#endif
