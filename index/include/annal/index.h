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

/* annal_index_open() with options.no_snapshots: for floors that know of no snapshots. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_open_plain(annal_store *store,
                                                               const annal_index_options *options,
                                                               annal_index **out_index,
                                                               annal_error *err);

/*
 * Have end(arg) called when the index is closed, while it still works: for what a floor above
 * opened with it. There is one of them; arg NULL takes it away. Returns the arg that was there
 * before. Any thread.
 */
ANNAL_API void *annal_index_on_close(annal_index *index, void (*end)(void *arg), void *arg);

/* The store that it was opened on. Any thread. */
ANNAL_API annal_store *annal_index_store(const annal_index *index);

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

/* Return 0 to go on; anything else stops and is handed through. */
typedef int (*annal_index_count_fn)(void *arg, annal_slice type, uint64_t events);

/* How many events of each type are indexed, in one session or, when session is empty, in all; by
 * counters. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_counts(annal_index *index, annal_slice session,
                                                           annal_index_count_fn fn, void *arg,
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

typedef struct annal_database_info {
    const char *name; /* "sessions.db"; as path, below the store or absolute */
    bool exists;      /* false: nothing else is known; it is made when it is first asked for */
    uint64_t bytes;
    uint64_t wal_bytes;
    uint64_t free_bytes;         /* of bytes, what annal_index_vacuum() would give back */
    const char *journal_mode;    /* "wal", or "delete" where others write too */
    const char *synchronous;     /* of our writer: "NORMAL" or "FULL" */
    uint32_t wal_autocheckpoint; /* pages after which our writer checkpoints; SQLite's own
                                    automatic is off: only the holder of the lock may */
    uint32_t busy_timeout_ms;    /* of our readers */
    bool foreign_keys;           /* whether our readers enforce them */
} annal_database_info;

/* Return 0 to go on; anything else stops and is handed through. The info lives until it returns. */
typedef int (*annal_database_fn)(void *arg, const annal_database_info *info);

/* Look at each database; makes none. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_databases(annal_index *index,
                                                              annal_database_fn fn, void *arg,
                                                              annal_error *err);

/* Return 0 to go on; anything else stops and is handed through. Slices live until it returns. */
typedef int (*annal_table_fn)(void *arg, const char *database, annal_slice name, uint64_t rows);

/* How many rows each table has, as the databases stand; private tables (_name) are left out, and
 * what does not exist is not made. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_tables(annal_index *index, annal_table_fn fn,
                                                           void *arg, annal_error *err);

/* How many sessions have each status, the most frequent first, in each database that has a table of
 * sessions; name is the status, empty where there is none. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_statuses(annal_index *index, annal_table_fn fn,
                                                             void *arg, annal_error *err);

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

/* ---- Rows of the snapshots table. Derived: rebuilding the index drops them. ---- */

/*
 * Put a row; one that stands at this seq is replaced. Waits up to wait_ms for other writers of the
 * index; 0 only tries, as a chore must. Any thread.
 *
 * ANNAL_ERR_BUSY  somebody else writes the index
 */
ANNAL_API ANNAL_MUST_CHECK annal_status
annal_index_snapshot_put(annal_index *index, annal_slice session, uint64_t seq, annal_slice state,
                         int64_t created_us, uint32_t wait_ms, annal_error *err);

/*
 * The same for a row that is worth nothing without another one of the session, which begins with
 * these bytes. ANNAL_ERR_CONFLICT when that one is gone, or another stands there: the index was
 * rebuilt, or another process deleted it.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_snapshot_put_over(
    annal_index *index, annal_slice session, uint64_t seq, annal_slice state, int64_t created_us,
    uint64_t base_seq, annal_slice base_begins, uint32_t wait_ms, annal_error *err);

/* Delete the rows at these seqs that are there, all or none. As annal_index_snapshot_put(). */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_snapshot_delete(annal_index *index,
                                                                    annal_slice session,
                                                                    const uint64_t *seqs,
                                                                    size_t count, uint32_t wait_ms,
                                                                    annal_error *err);

/*
 * The row with the largest seq that is at most at_most. *out_state is the caller's, to be given
 * back with annal_index_free(). ANNAL_ERR_NOTFOUND when there is none. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status
annal_index_snapshot_newest(annal_index *index, annal_slice session, uint64_t at_most,
                            uint64_t *out_seq, annal_slice *out_state, annal_error *err);

typedef struct annal_snapshot_row {
    annal_slice session;
    uint64_t seq;
    uint64_t bytes;   /* of state */
    annal_slice head; /* the first of them, 256 at most. Lives until the callback returns */
    int64_t created_us;
} annal_snapshot_row;

/* Return 0 to go on; anything else stops and is handed through. */
typedef int (*annal_snapshot_row_fn)(void *arg, const annal_snapshot_row *row);

/*
 * fn is called with the row of this session that has the largest seq; never, when there is none.
 * Does not wait for other programs, as a chore must not. Any thread.
 *
 * ANNAL_ERR_BUSY  one keeps the database to itself
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_snapshot_last(annal_index *index,
                                                                  annal_slice session,
                                                                  annal_snapshot_row_fn fn,
                                                                  void *arg, annal_error *err);

/* The rows of one session, or of all when session is empty, by session and seq; of states only the
 * head is read. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_snapshot_each(annal_index *index,
                                                                  annal_slice session,
                                                                  annal_snapshot_row_fn fn,
                                                                  void *arg, annal_error *err);

/* ---- Rows of _reductions: what C reducers saved. Derived, too. ---- */

typedef struct annal_reduction_row {
    annal_slice session; /* in whose journal event seq stands */
    annal_slice reducer;
    uint32_t version;
    uint64_t every;  /* events from one row to the next */
    uint64_t seq;    /* the state after this event */
    uint64_t offset; /* where in that journal the next one begins */
    uint64_t h;      /* of event seq */
    annal_slice state;
} annal_reduction_row;

/*
 * Put a row; those of the same reducer with another version go. When the rows of this reducer and
 * session together take more than bytes_max, as many go as must, each time the one whose going
 * leaves the smallest gap, and `every` is doubled until so many cover the session. *out_every is
 * what it is now. Waits as annal_index_snapshot_put(). Any thread.
 *
 * ANNAL_ERR_LIMIT  it alone takes more than bytes_max: nothing is changed
 */
ANNAL_API ANNAL_MUST_CHECK annal_status
annal_index_reduction_put(annal_index *index, const annal_reduction_row *row, uint64_t bytes_max,
                          uint32_t wait_ms, uint64_t *out_every, annal_error *err);

/*
 * The newest row of this session, reducer and version with an event at or before at_most. out_row
 * borrows session and reducer; its state is the caller's: annal_index_free(). ANNAL_ERR_NOTFOUND
 * when there is none. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_reduction_newest(
    annal_index *index, annal_slice session, annal_slice reducer, uint32_t version,
    uint64_t at_most, annal_reduction_row *out_row, annal_error *err);

/* Give back what a function of this folder handed out. NULL is accepted. */
ANNAL_API void annal_index_free(const void *bytes);

#ifdef __cplusplus
}
#endif

#endif
