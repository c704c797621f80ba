/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index: STORE/sessions.db, a SQLite database made from the journals. It says where each event
 * is (event_index), and has the tables of the core pack (sessions, turns) and the snapshots.
 * Nothing in it is precious: delete it at any moment, even while it is in use, and it is rebuilt
 * with the same content. The plain sqlite3 shell may read it.
 *
 * Appends never wait for the index. It follows the journals: a keeper indexes what its own process
 * appends (options.follow), and every reader first catches up with what was durable when it asked,
 * within its time limit.
 */
#ifndef ANNAL_INDEX_H
#define ANNAL_INDEX_H

#include <annal/journal.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annal_index annal_index;

/* Events to be appended to a session that stores share. */
typedef struct annal_decision {
    /* of the journal, before them. last_seq 0: they are the first, of a journal with its file,
     * created_us and format, which does not exist locally if bytes is 0 */
    const annal_session_info *end;
    const annal_event *events;
    size_t count;
    /* other sessions that the guards read, with their last seqs at that time; last_seq 0: it has no
     * events */
    const annal_session_info *reads;
    size_t read_count;
} annal_decision;

/*
 * Who decides about the events of sessions that several stores share (lease.h): a program that asks
 * a database which all of them reach. annal_pack_append() calls it for each append to such a
 * session, from whatever thread. Its functions may fail with any status, and set err then.
 */
typedef struct annal_decider {
    /*
     * Make the session one that stores share, and give it the lease here that says so. Called for a
     * session that a pack names (`scope cluster`), that has no lease here that holds, in a store
     * with a file `cluster`. No lock is held.
     */
    annal_status (*share)(void *arg, annal_slice session, annal_error *err);
    /*
     * Append to the journal the decided events that it lacks; creates the journal if necessary. No
     * lock is held.
     *
     * ANNAL_ERR_CONFLICT  the session is not shared as its lease says, and that was ended: all
     *                     begins again
     */
    annal_status (*bring)(void *arg, annal_slice session, annal_error *err);
    /*
     * Commit the events, all or none, if the sessions end there as the decision says. The tables
     * that guards read stay locked during the call, so it must not wait long.
     *
     * ANNAL_ERR_CONFLICT  one of them ends elsewhere there: other events were first; or as above
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
    /* how long a reader waits for its catch-up, and for other programs; default: the store's */
    uint32_t wait_ms;
    bool no_snapshots; /* take no snapshots of what the store appends; see <annal/snapshot.h> */
    /* NULL: appends to sessions that are shared, or would be, are refused. It must outlive the
     * index */
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
 * It also takes snapshots of the sessions that the store appends to, as they become due, unless
 * options.no_snapshots is set: see annal_snapshots_open(). If a store object has several indexes
 * the index that was opened first does this; when it is closed, the next one continues.
 *
 * In a store that is open for reading only nothing is written: an existing sessions.db is read
 * without catching up, and if it is missing, a private one is built in memory from the journals.
 *
 * A process that was forked while an index was open must open none before it calls exec():
 * SQLite's list of the locks of this process says there what the parent's connections had locked
 * at that moment, so that a call can wait in vain up to its limit, and a database can be taken for
 * locked that is not. Fork first. Of journals this is not true: a child may open the store again,
 * append and read.
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
    uint64_t bytes_done; /* of journal */
    uint64_t bytes_total;
    uint64_t events; /* indexed by this call */
} annal_index_progress;

/* Called between transactions, without locks. If it returns anything but 0 the work ends, and the
 * answer is ANNAL_END. */
typedef int (*annal_progress_fn)(void *arg, const annal_index_progress *progress);

typedef struct annal_catch_up_options {
    /* Default: the wait_ms of the index; ANNAL_NO_TIMEOUT: as long as it takes. */
    uint32_t timeout_ms;
    annal_progress_fn progress;
    void *arg;
    bool packs; /* the tables of the store's packs too; see annal/pack.h */
    /* also the databases that packs keep for single sessions: of all sessions (without it: of the
     * given session) */
    bool every_database;
} annal_catch_up_options;

/*
 * Index everything that was durable when this was called, of a session, or of all if session is
 * empty. Damage in a journal, and a payload that a pack cannot accept, cost that line and are kept
 * as findings; they are not failures. A session whose journal was replaced is indexed again by
 * itself (if the new journal has exactly the same size: when that session is queried by name, or
 * grows); a session without a journal is removed from the tables. Any thread.
 *
 * ANNAL_ERR_BUSY  the time to wait is over; the message says which process was in the way or how
 *                 much is left. What was done stays done.
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

/* One session: what its journal has, and how much of it is indexed. */
typedef struct annal_index_lag {
    annal_slice session;
    uint64_t journal_seq; /* last event in the journal */
    uint64_t indexed_seq; /* last event in the index */
    uint64_t journal_bytes;
    uint64_t indexed_bytes; /* the index knows the journal up to here */
} annal_index_lag;

/*
 * Return 0 to continue; any other value stops, and is returned. Slices are valid until it returns.
 */
typedef int (*annal_index_lag_fn)(void *arg, const annal_index_lag *lag);

/*
 * The lag of a session, or of all if session is empty. Reads the end of each journal. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_lag_each(annal_index *index,
                                                             annal_slice session,
                                                             annal_index_lag_fn fn, void *arg,
                                                             annal_error *err);

/* Something that the indexer met and could not use, and after which it continued. */
typedef struct annal_index_finding {
    annal_slice session;
    uint64_t seq;
    uint64_t offset;
    uint64_t length;
    /*
     * "damage": of the journal; "pack": a handler could not accept the event; "guard": it was
     * appended past its guard. Without a session: "pack", a pack is not run; "database", the tables
     * of a pack cannot be read
     */
    annal_slice kind;
    annal_slice what;
} annal_index_finding;

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal_index_finding_fn)(void *arg, const annal_index_finding *finding);

/*
 * The findings of a session, or of all if session is empty. Those in sessions.db are passed on
 * first, by session and place, then those in each database of packs, then those without a session.
 * Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_findings(annal_index *index,
                                                             annal_slice session,
                                                             annal_index_finding_fn fn, void *arg,
                                                             annal_error *err);

/* ---- The databases as files: sessions.db and the databases of packs ---- */

/* As in SQLite's PRAGMA wal_checkpoint. */
typedef enum annal_wal_mode {
    ANNAL_WAL_TRUNCATE = 0, /* everything, and the -wal file is truncated to length 0 */
    ANNAL_WAL_PASSIVE = 1,  /* copy as much as possible without waiting */
    ANNAL_WAL_FULL = 2,
    ANNAL_WAL_RESTART = 3
} annal_wal_mode;

typedef struct annal_maintenance {
    const char *name;     /* name of the database */
    bool done;            /* false: error says why not */
    bool busy;            /* whether a reader prevented a complete checkpoint */
    int64_t log_pages;    /* in the WAL; -1: no WAL */
    int64_t checkpointed; /* number of these frames that are in the database now */
    uint64_t bytes_before;
    uint64_t bytes_after; /* database and WAL */
    const annal_error *error;
} annal_maintenance;

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal_maintenance_fn)(void *arg, const annal_maintenance *what);

/*
 * Move the content of the WAL of each database into the database, under its lock (SQLite before
 * 3.51.3 can corrupt a database if two connections write and checkpoint at once); one that does not
 * exist is left out. Appends do not wait; a catch-up does. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_wal_checkpoint(annal_index *index,
                                                                   annal_wal_mode mode,
                                                                   annal_maintenance_fn fn,
                                                                   void *arg, annal_error *err);

/* Rewrite each database without its free pages, under its lock; readers continue. Needs as much
 * space again. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_vacuum(annal_index *index,
                                                           annal_maintenance_fn fn, void *arg,
                                                           annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
