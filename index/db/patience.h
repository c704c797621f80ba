/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long SQLite waits for other programs: as long as one wait may take, and as all waits of the
 * store together may take (annal__store_may_wait()).
 *
 * (1) Waiting for a lock of another connection is done by SQLite's busy handler, which is ours.
 * (2) While the header of a WAL index is torn or being written, by a process that was stopped at
 *     this point, SQLite tries a hundred times and sleeps ten seconds in all, whatever the busy
 *     handler says. So the sleep is ours as well: a VFS that is the default one except for that.
 *     When time is up it does not sleep any more, the remaining tries take no time, and
 *     SQLITE_PROTOCOL says that somebody is busy. Only SQLite's own "unix" is copied in this way:
 *     if a program has made another VFS the default, which may be larger than sqlite3_vfs says,
 *     that one is used as it is, and the wait for such a process takes as long as SQLite makes it.
 * (3) A caller may have less time than that. Connections are kept for the next caller, and SQLite
 *     does not tell a VFS which connection sleeps. So the limit belongs to a thread, from
 *     annal__patience_limit() to annal__patience_unlimit(), whichever of these connections it uses.
 */
#ifndef INDEX_DB_PATIENCE_H
#define INDEX_DB_PATIENCE_H

#include <annal/store.h>

#include <sqlite3.h>

#include <pthread.h>
#include <stdatomic.h>

/* Rule (3); it is on the stack of its thread. */
struct patience_limit {
    pthread_t thread;
    int64_t deadline_us; /* monotonic; INT64_MAX: none */
    struct patience_limit *next;
};

struct patience {
    sqlite3_vfs vfs; /* zName is name */
    char name[40];
    annal_store *store;      /* NULL: a foreign database, of no store */
    const uint32_t *wait_ms; /* NULL: nothing was set up */
    atomic_bool proves; /* pages of files that are opened from now on have proofs: page_proof.h */
    int (*sleep)(sqlite3_vfs *vfs, int us); /* NULL: without rule (2) */
    int (*open)(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags);
    _Atomic int64_t begun_us; /* monotonic: the series of tries that is running */
    pthread_mutex_t mutex;
    struct patience_limit *limits; /* guarded by mutex */
};

/* Neither may move until annal__patience_done(), when no connection is left. */
annal_status annal__patience_init(struct patience *patience, annal_store *store,
                                  const uint32_t *wait_ms, annal_error *err);
void annal__patience_done(struct patience *patience);

/* The VFS to open connections on; NULL: the default one. */
const char *annal__patience_vfs(const struct patience *patience);

/* Rule (1), for a connection that may wait. */
void annal__patience_on(struct patience *patience, sqlite3 *db);

/* Rule (3). Limits may be nested: the earliest deadline counts. */
void annal__patience_limit(struct patience *patience, struct patience_limit *limit,
                           int64_t deadline_us);
void annal__patience_unlimit(struct patience *patience, struct patience_limit *limit);

#endif
