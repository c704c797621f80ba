/* An open index, as the files of this folder share it. */
#ifndef INDEX_INDEX_H
#define INDEX_INDEX_H

#include "index/apply.h"
#include "index/files.h"
#include "index/lock.h"

#include <annal/index.h>
#include <annal/journal.h>

#include <sqlite3.h>

/* Which database a connection looks at, and up to which transaction; see _stamp in schema.sql. */
struct stamp {
    int64_t id;
    int64_t commits;
};

/* The connection that writes. Used only by who holds the index lock. */
struct writer {
    sqlite3 *db;             /* NULL: not open */
    struct stamp stamp;      /* when the transaction began */
    struct file_id wal, shm; /* when db was opened */
    struct applier *applier;
    sqlite3_stmt *insert_event;
    sqlite3_stmt *insert_finding;
    sqlite3_stmt *add_count;
    sqlite3_stmt *get_cursor;
    sqlite3_stmt *put_cursor;
    int wal_pages; /* after the last commit */
};

/* What stands in for a sessions.db that cannot be had; see spare.c. */
struct spare {
    pthread_mutex_t mutex;
    annal_index *index;     /* in memory; NULL until it is needed */
    bool in_use;            /* the last catch-up was of this one */
    int64_t until_us;       /* until then sessions.db is not tried again */
    struct stamp caught_up; /* of the last catch-up of sessions.db; id 0: none yet */
};

struct annal_index {
    annal_store *store;
    uint32_t wait_ms;
    char *path;           /* what SQLite opens: STORE/sessions.db, or a database in memory */
    int64_t user_version; /* of a sessions.db that this code made */
    annal_pack *core;
    bool frozen;  /* read-only store with a sessions.db: never written */
    bool private; /* read-only store without one: in memory, and keep holds it there */
    sqlite3 *keep;
    bool follows;
    uint64_t changed_since; /* the chore's; see annal_store_changed() */
    struct spare spare;
    struct index_lock lock;
    struct writer writer; /* under lock */
};

/* ---- open.c ---- */

/*
 * Take the index lock, see to it that sessions.db is ours and open, and begin a transaction. While
 * another program has sessions.db locked, the index lock is not held. ANNAL_ERR_BUSY when the
 * deadline passes.
 */
annal_status annal__index_begin(annal_index *index, int64_t deadline_us, annal_error *err);

/*
 * Commit (and count that in the stamp) when keep, else roll back; checkpoint the WAL when it has
 * grown; give the lock back.
 */
annal_status annal__index_end(annal_index *index, bool keep, annal_error *err);

/* Throw sessions.db away; the next annal__index_begin() makes it anew. */
annal_status annal__index_discard(annal_index *index, int64_t deadline_us, annal_error *err);

/*
 * A reader found sessions.db corrupt: throw it away. True when the next catch-up makes it anew, so
 * that asking again helps.
 */
bool annal__index_heal(annal_index *index);

/*
 * Open a connection that only reads; the caller's, to be given to annal__db_close(). Makes
 * sessions.db when there is none. Waits up to wait_ms for other programs, now and in every
 * statement.
 */
annal_status annal__index_reader(annal_index *index, uint32_t wait_ms, sqlite3 **out_db,
                                 struct stamp *out_stamp, annal_error *err);

/* A private index in memory of the same store, whatever stands on disk. */
annal_status annal__index_open_private(annal_store *store, uint32_t wait_ms,
                                       annal_index **out_index, annal_error *err);

/* ---- indexer.c ---- */

/*
 * Catch up on several sessions, all when count is 0. *out_stamp tells which database is caught up
 * now. *out_stuck: it failed because sessions.db cannot be made or written, or is deleted again and
 * again.
 */
annal_status annal__index_run(annal_index *index, const annal_slice *sessions, size_t count,
                              const annal_catch_up_options *options, struct stamp *out_stamp,
                              bool *out_stuck, annal_error *err);

/* Whether a failure says that trying again is of no use: no space, no permission. */
bool annal__index_is_hopeless(const annal_error *why);

/* The chore of options.follow. */
annal_status annal__index_follow(void *arg, annal_error *err);

/* ---- spare.c ---- */

/* annal__index_run(), on the spare where it must be; *out_used is which one is caught up now. */
annal_status annal__index_catch_up(annal_index *index, const annal_slice *sessions, size_t count,
                                   const annal_catch_up_options *options, annal_index **out_used,
                                   struct stamp *out_stamp, annal_error *err);

/* From now on, and for some seconds, the spare. why is logged unless sessions.db was deleted. */
annal_status annal__spare_begin(annal_index *index, const annal_error *why, annal_error *err);

/* Whether what failed with status is a sessions.db for which a spare can stand in. */
bool annal__spare_helps(const annal_index *index, annal_status status);

/* The index that was caught up last, and up to where (id 0: never). */
annal_index *annal__spare_or_self(annal_index *index, struct stamp *out_caught_up);

/* annal__index_reader() on whichever it is, and on the spare when sessions.db cannot be had. */
annal_status annal__spare_reader(annal_index *index, sqlite3 **out_db, annal_error *err);

/* ---- plan.c ---- */

/*
 * Where the indexer stands in a session; get_cursor is prepared from INDEX_GET_CURSOR. Not found:
 * before its first event.
 */
#define INDEX_GET_CURSOR "SELECT seq, offset, h FROM _cursor WHERE session_id = ?1"
annal_status annal__index_cursor(sqlite3_stmt *get_cursor, annal_slice session,
                                 annal_position *out_from, bool *out_found, annal_error *err);

/* ---- lookup.c ---- */

/*
 * What every reader begins with: catch up (unless as_indexed) on these sessions, all when there are
 * none, and open a connection. A catch-up that did not finish is told in *out_lag (may be NULL),
 * not a failure.
 */
annal_status annal__index_read(annal_index *index, const annal_slice *sessions, size_t count,
                               bool as_indexed, uint32_t timeout_ms, sqlite3 **out_db,
                               annal_lag *out_lag, annal_error *err);

/*
 * After annal__index_read() on db: put what the index lags behind, read from the journals, into the
 * table temp.rest, with the columns of event_index. A transaction is begun, so that both stay as
 * they are. *lag becomes what is still missing; too much to read is left alone (*out_added stays
 * false).
 */
annal_status annal__index_add_rest(annal_index *index, sqlite3 *db, const annal_slice *sessions,
                                   size_t count, annal_lag *lag, bool *out_added, annal_error *err);

#endif
