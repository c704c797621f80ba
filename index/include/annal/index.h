/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index: STORE/sessions.db, a SQLite database built from the journals. It contains the place of
 * each event in its journal (event_index), the tables of the core pack (sessions, turns), and the
 * snapshots. Everything in it can be rebuilt: delete it at any moment, even while it is in use, and
 * it is rebuilt with the same content. The plain sqlite3 shell may read it.
 *
 * Appends never wait for the index. It follows the journals: a keeper indexes what its own process
 * appends (options.follow), and every reader first catches up with the events that were durable
 * when the reader began, within its time limit.
 */
#ifndef ANNAL_INDEX_H
#define ANNAL_INDEX_H

#include <annal/journal.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annal_index annal_index;

/* Events to be appended to a session that several stores share. */
typedef struct annal_decision {
    /* The end of the journal before these events. If last_seq is 0 the events are the first of the
     * journal; if bytes is 0, too, the journal does not exist locally, and end contains its file,
     * created_us and format. */
    const annal_session_info *end;
    const annal_event *events;
    size_t count;
    /* other sessions that the guards read, with their last seqs when they were read; last_seq 0:
     * the session has no events */
    const annal_session_info *reads;
    size_t read_count;
} annal_decision;

/*
 * The program that decides about the events of sessions that several stores share (lease.h), by
 * querying a database that all of these stores reach. annal_pack_append() calls it for each append
 * to such a session, from any thread. Its functions may fail with any status, and set err then.
 */
typedef struct annal_decider {
    /*
     * Make the session a shared one, and store its lease, which says so, in this store. Called in a
     * store with a file `cluster`, for a session that a pack declares as shared (`scope cluster`)
     * and for which this store has no valid lease. No lock is held.
     */
    annal_status (*share)(void *arg, annal_slice session, annal_error *err);
    /*
     * Append to the journal the decided events that it lacks; creates the journal if necessary. No
     * lock is held.
     *
     * ANNAL_ERR_CONFLICT  the session is not shared although its lease says so; the lease was
     *                     ended, and the caller begins the append again
     */
    annal_status (*bring)(void *arg, annal_slice session, annal_error *err);
    /*
     * Commit the events to the database, all or none, if each session in the decision ends in the
     * database at the seq that the decision gives. The tables that guards read stay locked during
     * the call, so it must not wait long.
     *
     * ANNAL_ERR_CONFLICT  another store committed events to one of these sessions first; or the
     *                     reason given for bring()
     * ANNAL_ERR_UNKNOWN   it is not known whether they were committed
     */
    annal_status (*decide)(void *arg, const annal_decision *decision, annal_error *err);
    void *arg;
} annal_decider;

typedef struct annal_index_options {
    /*
     * index what the store appends in the background, as a task of the store's keeper: when
     * nothing was appended for 20 ms, or a second after the first append
     */
    bool follow;
    /* time in ms that a reader waits for its catch-up, and for other programs; default: the store's
     * wait_ms */
    uint32_t wait_ms;
    bool no_snapshots; /* take no snapshots of what the store appends; see <annal/snapshot.h> */
    /* NULL: an append to a session that is shared, or that its pack would share, is refused. The
     * decider must outlive the index. */
    const annal_decider *decider;
} annal_index_options;

/*
 * Open the index of a store; close it before the store. A sessions.db that is missing, of another
 * version, or damaged is rebuilt from the journals by the first catch-up; one that another program
 * created is first moved aside to sessions.db.foreign. Any thread, and an index may be used by many
 * threads at once. The store must outlive it.
 *
 * If sessions.db cannot be created or written (no space, no permission), or is deleted faster than
 * it is rebuilt, readers are answered from an index in memory, built from the journals: slower, and
 * with the same answers. The store's log says why, except for a deletion.
 *
 * An index that follows turns rows that users wrote into the databases of writable packs into
 * events, when it is opened and when it is closed, for up to a second. Rows that cannot become
 * events stay in the database, and the store's log reports them.
 *
 * It also takes snapshots of the sessions that the store appends to, at the intervals of
 * annal/snapshot.h, unless options.no_snapshots is set: see annal_snapshots_open(). If a store
 * object has several indexes the index that was opened first does this; when it is closed, the next
 * one continues.
 *
 * In a store that is open for reading only nothing is written: an existing sessions.db is read
 * without catching up, and if it is missing, a private one is built in memory from the journals.
 *
 * A process that was forked while an index was open must open none before it calls exec():
 * in the child, SQLite's list of the locks of this process still contains the locks that the
 * parent's connections held at the fork, so a call can wait up to its time limit for a lock that is
 * free. Fork before an index is opened. Journals have no such restriction: a child may open the
 * store again, append and read.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_open(annal_store *store,
                                                         const annal_index_options *options,
                                                         annal_index **out_index, annal_error *err);

/*
 * Close the index, after all its queries. NULL is accepted. In a child of fork() it has no
 * effect.
 */
ANNAL_API void annal_index_close(annal_index *index);

/* ---- Catching up ---- */

typedef struct annal_index_progress {
    uint64_t bytes_done; /* number of bytes of the journals that are indexed so far */
    uint64_t bytes_total;
    uint64_t events; /* number of events that the call that reports this progress has indexed */
} annal_index_progress;

/* A function that is called between transactions, without locks. If it returns a value other than
 * 0, the work ends, and the function that called it returns ANNAL_END. */
typedef int (*annal_progress_fn)(void *arg, const annal_index_progress *progress);

typedef struct annal_catch_up_options {
    /* Time limit of the catch-up or rebuild. Default: the wait_ms of the index; ANNAL_NO_TIMEOUT:
     * none. */
    uint32_t timeout_ms;
    annal_progress_fn progress;
    void *arg;
    bool packs; /* whether to catch up the tables of the store's packs too; see annal/pack.h */
    /* whether to catch up the databases that packs keep for single sessions, of all sessions; if
     * false, only the databases of the given session */
    bool every_database;
} annal_catch_up_options;

/*
 * Index everything that was durable when this was called, of a session, or of all if session is
 * empty. Damage in a journal, and a payload that a pack cannot accept, lose only the event in that
 * line and are recorded as findings; they are not failures. A session whose journal was replaced is
 * indexed again by itself (if the new journal has exactly the same size: when that session is
 * queried by name, or grows); a session without a journal is removed from the tables. Any thread.
 *
 * ANNAL_ERR_BUSY  the time limit has passed; the message names the process that held a lock, or
 *                 says how much is left to index. What was indexed stays.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_catch_up(annal_index *index,
                                                             annal_slice session,
                                                             const annal_catch_up_options *options,
                                                             annal_error *err);

/*
 * Delete sessions.db and rebuild it, and then the tables of all packs. Other processes notice and
 * follow. The default is to wait without limit. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_rebuild(annal_index *index,
                                                            const annal_catch_up_options *options,
                                                            annal_error *err);

/* ---- How up to date it is ---- */

/* The events of one session in its journal, and those in the index. */
typedef struct annal_index_lag {
    annal_slice session;
    uint64_t journal_seq; /* seq of the last event in the journal */
    uint64_t indexed_seq; /* seq of the last event in the index */
    uint64_t journal_bytes;
    uint64_t indexed_bytes; /* number of bytes of the journal that are indexed */
} annal_index_lag;

/*
 * A function that is called for each session. It returns 0 to continue; any other value ends the
 * calls, and is returned to the caller. Slices are valid until it returns.
 */
typedef int (*annal_index_lag_fn)(void *arg, const annal_index_lag *lag);

/*
 * Report how far the index is behind the journal of a session, or of all if session is
 * empty. Reads the end of each journal. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_lag_each(annal_index *index,
                                                             annal_slice session,
                                                             annal_index_lag_fn fn, void *arg,
                                                             annal_error *err);

/* A problem that the indexer found in the data of an event and after which it continued. */
typedef struct annal_index_finding {
    annal_slice session;
    uint64_t seq;
    uint64_t offset;
    uint64_t length;
    /*
     * "damage": the journal is damaged; "pack": a handler could not accept the event; "guard": the
     * event was appended although its guard refuses it. Without a session, "pack": a pack is not
     * run; "database": the tables of a pack cannot be read.
     */
    annal_slice kind;
    annal_slice what;
} annal_index_finding;

/* A function that is called for each finding. It returns 0 to continue; any other value ends the
 * calls, and is returned to the caller. */
typedef int (*annal_index_finding_fn)(void *arg, const annal_index_finding *finding);

/*
 * Report the findings of a session, or of all if session is empty. First come the findings in
 * sessions.db, by session and offset; then the findings in each database of packs; then the
 * findings without a session. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_finding_each(annal_index *index,
                                                                 annal_slice session,
                                                                 annal_index_finding_fn fn,
                                                                 void *arg, annal_error *err);

/* ---- The databases as files: sessions.db and the databases of packs ---- */

/* Kinds of checkpoints, as in SQLite's PRAGMA wal_checkpoint. */
typedef enum annal_wal_mode {
    /* copy all pages into the database, and truncate the -wal file to length 0 */
    ANNAL_WAL_TRUNCATE = 0,
    ANNAL_WAL_PASSIVE = 1, /* copy as many pages as possible without waiting for readers */
    ANNAL_WAL_FULL = 2,
    ANNAL_WAL_RESTART = 3
} annal_wal_mode;

typedef struct annal_maintenance {
    const char *name;     /* name of the database */
    bool done;            /* whether the work was done; if false, error says why not */
    bool busy;            /* whether a reader prevented a complete checkpoint */
    int64_t log_pages;    /* number of pages in the WAL; -1: no WAL */
    int64_t checkpointed; /* number of pages of the WAL that have been copied into the database */
    uint64_t bytes_before;
    uint64_t bytes_after; /* size of the database and its WAL after the call, in bytes */
    const annal_error *error;
} annal_maintenance;

/* A function that is called for each database. It returns 0 to continue; any other value ends the
 * calls, and is returned to the caller. */
typedef int (*annal_maintenance_fn)(void *arg, const annal_maintenance *what);

/*
 * Move the content of the WAL of each database into the database, under the lock of the database
 * (SQLite before 3.51.3 can corrupt a database if two connections write and checkpoint at once). A
 * database that does not exist is left out. Appends do not wait for this; a catch-up does. Any
 * thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_wal_checkpoint(annal_index *index,
                                                                   annal_wal_mode mode,
                                                                   annal_maintenance_fn fn,
                                                                   void *arg, annal_error *err);

/* Rewrite each database without its free pages, under its lock; readers continue. It needs free
 * disk space of the size of the database. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_vacuum(annal_index *index,
                                                           annal_maintenance_fn fn, void *arg,
                                                           annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
