/*
 * A derived database: one SQLite file of a store that is made from its journals, so that it may be
 * thrown away at any moment. sessions.db is one, each pack database another. derived.c says in
 * rules how such a file is opened, made and made anew.
 */
#ifndef INDEX_DB_DERIVED_H
#define INDEX_DB_DERIVED_H

#include "index/db/files.h"
#include "index/db/lock.h"
#include "index/db/patience.h"
#include "index/db/readers.h"

#include <annal/store.h>

#include <sqlite3.h>

/* Which database a connection looks at, and up to which transaction; see _stamp in schema.sql. */
struct stamp {
    int64_t id;
    int64_t commits;
};

/* What a kind of derived database brings along; each gets the arg of the database. */
struct derived_ops {
    annal_status (*make)(void *arg, sqlite3 *db, annal_error *err); /* tables of a new file, in a
                                                                       transaction */
    /* The writer's connection was opened, under the lock, without a transaction. */
    annal_status (*opened)(void *arg, sqlite3 *db, annal_error *err);
    /* Whether the tables are what this program makes; else the writer's connection is opened anew.
     * db is a reader's, on any thread, or NULL: the writer's. NULL: always. */
    annal_status (*is_current)(void *arg, sqlite3 *db, bool *out, annal_error *err);
    /* A transaction has begun. NULL: nothing to do then. */
    annal_status (*begun)(void *arg, annal_error *err);
    void (*closing)(void *arg); /* it will be closed: finalize what was prepared on it */
    void (*undone)(void *arg);  /* a transaction was rolled back */
};

struct derived {
    annal_store *store;
    uint32_t wait_ms;
    char *path;             /* what SQLite opens: STORE/sessions.db, or a database in memory */
    size_t root_bytes;      /* so much of it is the store's path, which is never made */
    size_t given_bytes;     /* so much of it was given by a user; no link is followed below it */
    int32_t application_id; /* of a file of this kind, */
    int64_t user_version;   /* and of this version */
    bool rollback;          /* strangers write it too: a rollback journal, synced in full, no WAL */
    bool frozen;            /* read-only store with such a file: never written */
    bool private;           /* in memory, and keep holds it there */
    sqlite3 *keep;
    const struct derived_ops *ops;
    void *arg;
    struct index_lock lock;
    struct patience patience;
    struct readers readers;

    /* The connection that writes. Used only by who holds the lock. */
    sqlite3 *db;             /* NULL: not open */
    sqlite3_stmt *get_stamp; /* on db; NULL until it is needed, as the next one */
    sqlite3_stmt *count_commit;
    struct stamp stamp;      /* when the transaction began */
    struct file_id wal, shm; /* when db was opened */
    int wal_pages;           /* after the last commit */
};

/*
 * Without touching a file. path is copied; lock_name is the lock's file in STORE/locks. The store's
 * databases in memory come from annal__derived_make_private().
 */
annal_status annal__derived_init(struct derived *derived, annal_store *store, const char *path,
                                 const char *lock_name, annal_error *err);
void annal__derived_done(struct derived *derived);

/* A database in memory instead of the file. */
annal_status annal__derived_make_private(struct derived *derived, annal_error *err);

/* A read-only store: its file as it is, or one in memory. */
annal_status annal__derived_open_read_only(struct derived *derived, annal_error *err);

/*
 * Take the lock, see to it that the file is ours and open, and begin a transaction. While another
 * program has it locked, our lock is not held. ANNAL_ERR_BUSY when the deadline passes.
 */
annal_status annal__derived_begin(struct derived *derived, int64_t deadline_us, annal_error *err);

/*
 * Commit (and count that in the stamp) when keep, else roll back; checkpoint the WAL when it has
 * grown; give the lock back.
 */
annal_status annal__derived_end(struct derived *derived, bool keep, annal_error *err);

/* The same, but the lock stays until annal__derived_release(). */
annal_status annal__derived_finish(struct derived *derived, bool keep, annal_error *err);

/*
 * For work on the file as a whole: the lock is held and the writer open, without a transaction.
 * Does not make the file: ANNAL_ERR_NOTFOUND when there is none. annal__derived_release() must
 * follow ANNAL_OK.
 */
annal_status annal__derived_hold(struct derived *derived, int64_t deadline_us, annal_error *err);
void annal__derived_release(struct derived *derived);

/* Of the WAL pages after a commit, how many are too many: then the writer checkpoints. */
#define DERIVED_WAL_PAGES_CHECKPOINT 1000 /* 4 MiB, as SQLite's own would be */
/*
 * Take what its WAL has into the file, and the WAL away, while it is held. ANNAL_ERR_BUSY: somebody
 * reads it, and did until the deadline.
 */
annal_status annal__derived_empty_wal(struct derived *derived, int64_t deadline_us,
                                      annal_error *err);

/* Close the writer's connection until the next annal__derived_begin(), unless it is in use. */
void annal__derived_rest(struct derived *derived);

/* Throw the file away; the next annal__derived_begin() makes it anew. */
annal_status annal__derived_discard(struct derived *derived, int64_t deadline_us, annal_error *err);

/*
 * A reader found the file corrupt: throw it away. True when the next catch-up makes it anew, so
 * that asking again helps.
 */
bool annal__derived_heal(struct derived *derived);

/* Whether the file is there, without making it. */
bool annal__derived_exists(const struct derived *derived);

/* Throw the file away when SQLite finds that it is corrupt: true when it did. Reads all of it. */
bool annal__derived_heal_if_corrupt(struct derived *derived);

/*
 * Open a connection that only reads; the caller's, to be given to annal__db_close(). Makes the file
 * if it is missing. Waits up to wait_ms for other programs, and no longer than the database's own
 * wait_ms, which each statement waits later: a caller with less time sets a limit for those
 * (patience.h, rule 3).
 */
annal_status annal__derived_reader(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                   struct stamp *out_stamp, annal_error *err);

/*
 * The same, but a connection that was given back is used again; the caller gives it back with
 * annal__derived_give(). clean: as it was handed out (readers.h, rule 2). NULL is accepted.
 */
annal_status annal__derived_borrow(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                   struct stamp *out_stamp, annal_error *err);
void annal__derived_give(struct derived *derived, sqlite3 *db, bool clean);

/*
 * In a transaction that emptied tables: the database is another one from now on, so that plans
 * which were made before are of no use, and readers see that what they caught up is gone.
 */
annal_status annal__derived_renew(struct derived *derived, annal_error *err);

/* Whether a failure says that trying again is of no use: no space, no permission. */
bool annal__index_is_hopeless(const annal_error *why);

/* The stamp of a database that is attached to db under this name ("main": db itself). */
annal_status annal__derived_read_stamp(sqlite3 *db, const char *schema, struct stamp *out,
                                       annal_error *err);

/* Whether what was opened holds what was caught up: the same database, not before that transaction.
 */
bool annal__stamp_holds(struct stamp opened, struct stamp caught_up);

#endif
