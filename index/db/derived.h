/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A derived database: one SQLite file of a store that is built from its journals, so that it may be
 * deleted at any time. sessions.db is a derived database, and so is each pack database. The rules
 * in derived.c say how such a file is opened, created and rebuilt.
 */
#pragma once

#include "index/db/files.h"
#include "index/db/index_lock.h"
#include "index/db/patience.h"
#include "index/db/readers.h"

#include <annal/store.h>

#include <sqlite3.h>

/* The identity of a database and the number of its transactions, as a connection reads them; see
 * _stamp in schema.sql. */
struct stamp {
    int64_t id;
    int64_t commits;
};

/* The functions of one kind of derived database (sessions.db, pack database, …). Each is called
 * with the arg of the database. */
struct derived_ops {
    /*
     * Compare the schema of a database of this kind, attached under this name, with what this
     * program creates (shape.h). db is any connection, on any thread. ANNAL_ERR_CORRUPT: the schema
     * differs.
     */
    annal_status (*check)(void *arg, sqlite3 *db, const char *schema, annal_error *err);
    /* Create the tables of a new file, in a transaction. */
    annal_status (*make)(void *arg, sqlite3 *db, annal_error *err);
    /* Prepare the writer's connection after it was opened, under the lock, without a
     * transaction. */
    annal_status (*opened)(void *arg, sqlite3 *db, annal_error *err);
    /*
     * Find out whether the tables were built from the current SQL text of the schema or packs; if
     * not, the writer's connection is opened again. db is a reader's connection, on any thread, or
     * NULL for the writer's. Without this function the tables always count as current.
     */
    annal_status (*is_current)(void *arg, sqlite3 *db, bool *out, annal_error *err);
    /*
     * Register the SQL functions and modules that the tables use, on any connection: since SQLite
     * 3.44 a check of the database opens its virtual tables. May be NULL.
     */
    annal_status (*add_functions)(void *arg, sqlite3 *db, annal_error *err);
    /* called in each new transaction, after the tables turned out to be current; may be NULL */
    annal_status (*begun)(void *arg, annal_error *err);
    /* called before the writer's connection is closed, to finalize statements on it */
    void (*closing)(void *arg);
    void (*undone)(void *arg); /* called when a transaction is rolled back; may be NULL */
};

struct derived {
    annal_store *store;
    uint32_t wait_ms;
    /* name of the database for SQLite: STORE/sessions.db, or the URI of a database in memory */
    char *path;
    /* length of the store's path at the begin of path, if the file is in the store; else 0.
     * Directories within this part are never created. */
    size_t root_bytes;
    /* length of the part of path that a user gave; no symbolic link is followed after it */
    size_t given_bytes;
    int32_t application_id; /* application_id in the header of files of this kind */
    int64_t user_version;   /* user_version in the header of current files of this kind */
    /* whether other programs write the file, too: then it has a rollback journal, synced in full,
     * and no WAL */
    bool rollback;
    /* whether the store is read-only and the file exists: the file is never written */
    bool frozen;
    /* whether the database is in memory only; then the connection `keep` stays open, because the
     * database ends with its last connection */
    bool private;
    sqlite3 *keep;
    const struct derived_ops *ops;
    void *arg;
    struct index_lock lock;
    struct patience patience;
    struct readers readers;

    /* The connection that writes, and its statements. Used only while the lock is held. */
    sqlite3 *db; /* connection that writes; NULL: it is not open */
    /* statement on db; NULL until it is needed, like the next two statements */
    sqlite3_stmt *get_stamp;
    sqlite3_stmt *count_commit;
    sqlite3_stmt *get_cookie;
    /* number of the schema's version in SQLite (cookie) at its last comparison; -1: none was
     * compared */
    int64_t cookie;
    struct stamp stamp;      /* stamp that the file had when the transaction began */
    struct file_id wal, shm; /* device and inode of the files -wal and -shm when db was opened */
    int wal_pages;           /* number of pages in the WAL after the last commit */
};

/*
 * Initialize a derived database without touching a file. path is copied; lock_name is the name of
 * the lock's file in STORE/locks. For a database in memory call annal__derived_make_private() after
 * this.
 */
annal_status annal__derived_init(struct derived *derived, annal_store *store, const char *path,
                                 const char *lock_name, annal_error *err);
void annal__derived_done(struct derived *derived);

/* Use a database in memory instead of the file. */
annal_status annal__derived_make_private(struct derived *derived, annal_error *err);

/* Open the database of a read-only store: its file unchanged, or a database in memory. */
annal_status annal__derived_open_read_only(struct derived *derived, annal_error *err);

/*
 * Take the lock, open the file, which is created or rebuilt if necessary, and begin a transaction.
 * While another program has locked the file in SQLite, the lock is released between attempts.
 * ANNAL_ERR_BUSY after the deadline.
 */
annal_status annal__derived_begin(struct derived *derived, int64_t deadline_us, annal_error *err);

/*
 * Commit if keep, and count the commit in the stamp, else roll back; checkpoint the WAL if it has
 * grown; release the lock.
 */
annal_status annal__derived_end(struct derived *derived, bool keep, annal_error *err);

/* End a transaction as annal__derived_end() does, but keep the lock until
 * annal__derived_release(). */
annal_status annal__derived_finish(struct derived *derived, bool keep, annal_error *err);

/*
 * Take the lock and open the writer, without a transaction, for work on the file as a whole. Does
 * not create the file: ANNAL_ERR_NOTFOUND if it does not exist. After ANNAL_OK call
 * annal__derived_release().
 */
annal_status annal__derived_hold(struct derived *derived, int64_t deadline_us, annal_error *err);
void annal__derived_release(struct derived *derived);

/* number of pages in the WAL at which the writer checkpoints after a commit: 4 MiB, like SQLite's
 * own limit */
#define DERIVED_WAL_PAGES_CHECKPOINT 1000
/*
 * Move the content of the WAL into the file and remove the WAL. The caller has called
 * annal__derived_hold(). ANNAL_ERR_BUSY: the WAL was still being read at the deadline.
 */
annal_status annal__derived_empty_wal(struct derived *derived, int64_t deadline_us,
                                      annal_error *err);

/* Close the writer's connection until the next annal__derived_begin(), unless it is in use. */
void annal__derived_rest(struct derived *derived);

/* Delete the file; the next annal__derived_begin() creates it again. */
annal_status annal__derived_discard(struct derived *derived, int64_t deadline_us, annal_error *err);

/*
 * Delete a file that a reader found corrupt. Returns true if the next catch-up rebuilds it, so that
 * trying again helps.
 */
bool annal__derived_heal(struct derived *derived);

/* Return whether the file exists; does not create it. */
bool annal__derived_exists(const struct derived *derived);

/*
 * Read the whole file, and delete it if SQLite finds that it is corrupt. Returns whether it was
 * deleted.
 */
bool annal__derived_heal_if_corrupt(struct derived *derived);

/*
 * Examine the file in its current state, and read the whole file if all. ANNAL_DAMAGE: *out_damage
 * says what is wrong; the next annal__derived_begin() deletes the file, unless other programs write
 * the file. A missing file counts as undamaged.
 */
annal_status annal__derived_prove(struct derived *derived, bool all, annal_error *out_damage,
                                  annal_error *err);

/*
 * Open a connection that only reads; the caller closes it with annal__db_close(). It is in a read
 * transaction, unless other programs write the database. Creates the file if it is missing. Waits
 * up to wait_ms for other programs, but no longer than the database's own wait_ms, which is also
 * the limit of each later statement. A caller with less time sets a limit for those (patience.h,
 * rule 3).
 */
annal_status annal__derived_reader(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                   struct stamp *out_stamp, annal_error *err);

/* Compare the schema of this database with the expected schema. db: a connection to which the
 * database is attached under the name `schema`. ANNAL_ERR_CORRUPT: the schemas differ. */
annal_status annal__derived_check(const struct derived *derived, sqlite3 *db, const char *schema,
                                  annal_error *err);

/*
 * Open a reader as annal__derived_reader() does, but reuse a returned connection if possible; the
 * caller returns it with annal__derived_give(). clean: the connection is in the state in which it
 * was lent (readers.h, rule 2). db may be NULL.
 */
annal_status annal__derived_borrow(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                   struct stamp *out_stamp, annal_error *err);
void annal__derived_give(struct derived *derived, sqlite3 *db, bool clean);

/* As annal__derived_reader(), without a transaction; reuse a returned connection if possible. */
annal_status annal__derived_take(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                 struct stamp *out_stamp, annal_error *err);

/* Assign a new database id, so that plans and stamps of readers, which contain the old id, become
 * invalid. Call it in a transaction that emptied tables. */
annal_status annal__derived_renew(struct derived *derived, annal_error *err);

/* Return whether a failure means that trying again is useless: no space, no permission. */
bool annal__derived_is_hopeless(const annal_error *why);

/* Read the stamp of the database that is attached to db under this name ("main": of db itself). */
annal_status annal__derived_read_stamp(sqlite3 *db, const char *schema, struct stamp *out,
                                       annal_error *err);

/*
 * Return whether an opened database contains everything up to the transaction caught_up: both
 * stamps are of the same database, and the opened one is not older.
 */
bool annal__derived_stamp_holds(struct stamp opened, struct stamp caught_up);
