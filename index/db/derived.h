/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A derived database: one SQLite file of a store that is made from its journals, so that it may be
 * deleted at any time. sessions.db is one, each pack database another. The rules in derived.c say
 * how such a file is opened, created and rebuilt.
 */
#ifndef INDEX_DB_DERIVED_H
#define INDEX_DB_DERIVED_H

#include "index/db/files.h"
#include "index/db/index_lock.h"
#include "index/db/patience.h"
#include "index/db/readers.h"

#include <annal/store.h>

#include <sqlite3.h>

/* The database that a connection reads, and up to which transaction; see _stamp in schema.sql. */
struct stamp {
    int64_t id;
    int64_t commits;
};

/* The functions of a kind of derived database; each gets the arg of the database. */
struct derived_ops {
    /* create the tables of a new file, in a transaction */
    annal_status (*make)(void *arg, sqlite3 *db, annal_error *err);
    /* Called after the writer's connection was opened, under the lock, without a transaction. */
    annal_status (*opened)(void *arg, sqlite3 *db, annal_error *err);
    /*
     * Whether the tables are what this program makes; if not, the writer's connection is opened
     * again. db is a reader's connection, on any thread, or NULL for the writer's. If this is NULL
     * they always are.
     */
    annal_status (*is_current)(void *arg, sqlite3 *db, bool *out, annal_error *err);
    /* Called after a transaction has begun. May be NULL. */
    annal_status (*begun)(void *arg, annal_error *err);
    void (*closing)(void *arg); /* it will be closed: finalize statements on it */
    void (*undone)(void *arg);  /* a transaction was rolled back; may be NULL */
};

struct derived {
    annal_store *store;
    uint32_t wait_ms;
    char *path;             /* what SQLite opens: STORE/sessions.db, or a database in memory */
    size_t root_bytes;      /* this much of it is the store's path, which is never created */
    size_t given_bytes;     /* this much of it was given by a user; no link is followed below it */
    int32_t application_id; /* of a file of this kind, */
    int64_t user_version;   /* and of this version */
    /* other programs write it, too: a rollback journal, synced in full, no WAL */
    bool rollback;
    bool frozen;  /* a read-only store that has such a file: never written */
    bool private; /* in memory, and kept there by keep */
    sqlite3 *keep;
    const struct derived_ops *ops;
    void *arg;
    struct index_lock lock;
    struct patience patience;
    struct readers readers;

    /* The connection that writes. Used only while the lock is held. */
    sqlite3 *db;             /* NULL: not open */
    sqlite3_stmt *get_stamp; /* on db; NULL until it is needed, like the next one */
    sqlite3_stmt *count_commit;
    struct stamp stamp;      /* when the transaction began */
    struct file_id wal, shm; /* when db was opened */
    int wal_pages;           /* after the last commit */
};

/*
 * Initialize it without touching a file. path is copied; lock_name is the lock's file in
 * STORE/locks. For databases in memory call annal__derived_make_private() after it.
 */
annal_status annal__derived_init(struct derived *derived, annal_store *store, const char *path,
                                 const char *lock_name, annal_error *err);
void annal__derived_done(struct derived *derived);

/* Use a database in memory instead of the file. */
annal_status annal__derived_make_private(struct derived *derived, annal_error *err);

/* For a read-only store: its file as it is, or one in memory. */
annal_status annal__derived_open_read_only(struct derived *derived, annal_error *err);

/*
 * Take the lock, make sure that the file is ours and open, and begin a transaction. While another
 * program has the file locked, our lock is not held. ANNAL_ERR_BUSY after the deadline.
 */
annal_status annal__derived_begin(struct derived *derived, int64_t deadline_us, annal_error *err);

/*
 * If keep, commit and count that in the stamp, else roll back; checkpoint the WAL if it has grown;
 * release the lock.
 */
annal_status annal__derived_end(struct derived *derived, bool keep, annal_error *err);

/* As above, but the lock is held until annal__derived_release(). */
annal_status annal__derived_finish(struct derived *derived, bool keep, annal_error *err);

/*
 * For work on the file as a whole: take the lock and open the writer, without a transaction. Does
 * not create the file: ANNAL_ERR_NOTFOUND if there is none. After ANNAL_OK call
 * annal__derived_release().
 */
annal_status annal__derived_hold(struct derived *derived, int64_t deadline_us, annal_error *err);
void annal__derived_release(struct derived *derived);

/* If the WAL has this many pages after a commit, the writer checkpoints. */
#define DERIVED_WAL_PAGES_CHECKPOINT 1000 /* 4 MiB, like SQLite's own limit */
/*
 * Move the content of the WAL into the file and remove the WAL. The caller has called
 * annal__derived_hold(). ANNAL_ERR_BUSY: at the deadline it was still being read.
 */
annal_status annal__derived_empty_wal(struct derived *derived, int64_t deadline_us,
                                      annal_error *err);

/* Close the writer's connection until the next annal__derived_begin(), unless it is in use. */
void annal__derived_rest(struct derived *derived);

/* Delete the file; the next annal__derived_begin() creates it again. */
annal_status annal__derived_discard(struct derived *derived, int64_t deadline_us, annal_error *err);

/*
 * A reader found the file corrupt: delete it. True if the next catch-up rebuilds it, so that asking
 * again helps.
 */
bool annal__derived_heal(struct derived *derived);

/* Whether the file exists; does not create it. */
bool annal__derived_exists(const struct derived *derived);

/* Read the whole file, and delete it if SQLite finds that it is corrupt: then returns true. */
bool annal__derived_heal_if_corrupt(struct derived *derived);

/*
 * Read the whole file as it is. ANNAL_DAMAGE: *out_damage says what is wrong with it; the next
 * annal__derived_begin() deletes it, unless other programs write it. A missing file is sound.
 */
annal_status annal__derived_prove(struct derived *derived, annal_error *out_damage,
                                  annal_error *err);

/*
 * Open a connection that only reads; the caller closes it with annal__db_close(). Creates the file
 * if it is missing. Waits up to wait_ms for other programs, but no longer than the database's own
 * wait_ms, which is also what each statement waits later: a caller with less time sets a limit for
 * those (patience.h, rule 3).
 */
annal_status annal__derived_reader(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                   struct stamp *out_stamp, annal_error *err);

/*
 * As above, but reuses a connection that was returned; the caller returns it with
 * annal__derived_give(). clean: it is in the state in which it was lent (readers.h, rule 2). db may
 * be NULL.
 */
annal_status annal__derived_borrow(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                   struct stamp *out_stamp, annal_error *err);
void annal__derived_give(struct derived *derived, sqlite3 *db, bool clean);

/* As annal__derived_reader(), but a connection that was returned is used first. */
annal_status annal__derived_take(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                 struct stamp *out_stamp, annal_error *err);

/*
 * In a transaction that emptied tables: make it a different database from now on, so that plans
 * that were made before are rejected, and readers see that what they caught up is gone.
 */
annal_status annal__derived_renew(struct derived *derived, annal_error *err);

/* Whether a failure means that trying again is useless: no space, no permission. */
bool annal__index_is_hopeless(const annal_error *why);

/* The stamp of a database that is attached to db under this name ("main": db itself). */
annal_status annal__derived_read_stamp(sqlite3 *db, const char *schema, struct stamp *out,
                                       annal_error *err);

/* Whether the opened database has what was caught up: the same database, not before that
 * transaction. */
bool annal__stamp_holds(struct stamp opened, struct stamp caught_up);

#endif
