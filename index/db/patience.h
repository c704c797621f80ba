/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long SQLite waits for other programs: as long as one wait may take, and as all waits of the
 * store together may take (annal__store_may_wait()).
 *
 * (1) Our busy handler waits for locks of other connections.
 * (2) While the header of a WAL index is torn or being written, by a process that was stopped at
 *     this point, SQLite tries a hundred times and sleeps ten seconds in all, whatever the busy
 *     handler returns. So the sleep is ours as well, by a VFS that equals the default VFS except
 *     for that. When time is up it does not sleep any more, the remaining tries take no time, and
 *     SQLITE_PROTOCOL reports the busy process. Only SQLite's own "unix" is copied in this way. If
 *     a program has made another VFS the default, which may be larger than sqlite3_vfs says, that
 *     VFS is used unchanged, and the wait for such a process takes as long as SQLite's.
 * (3) A caller may have less time than that. Connections are kept for the next caller, and SQLite
 *     does not tell a VFS which connection sleeps. So the limit belongs to a thread, from
 *     annal__patience_limit() to annal__patience_unlimit(), for all of these connections.
 */
#ifndef INDEX_DB_PATIENCE_H
#define INDEX_DB_PATIENCE_H

#include <annal/store.h>

#include <sqlite3.h>

#include <pthread.h>
#include <stdatomic.h>

/* The limit of rule (3), on the stack of its thread. */
struct patience_limit {
    pthread_t thread;
    int64_t deadline_us; /* monotonic; INT64_MAX: no deadline */
    struct patience_limit *next;
};

struct patience {
    sqlite3_vfs vfs; /* zName is name */
    char name[40];
    annal_store *store;      /* NULL: the database belongs to no store */
    const uint32_t *wait_ms; /* NULL: nothing was set up */
    /* whether pages of files that are opened from now on have hashes: page_proof.h */
    atomic_bool proves;
    int (*sleep)(sqlite3_vfs *vfs, int us); /* NULL: without rule (2) */
    int (*open)(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags);
    _Atomic int64_t begun_us; /* monotonic begin of the series of tries that is running */
    pthread_mutex_t mutex;
    struct patience_limit *limits; /* guarded by mutex */
};

/*
 * Initialize the VFS. Neither argument may move until annal__patience_done(), when no connection is
 * left.
 */
annal_status annal__patience_init(struct patience *patience, annal_store *store,
                                  const uint32_t *wait_ms, annal_error *err);
void annal__patience_done(struct patience *patience);

/* Return the VFS on which to open connections; NULL: the default VFS. */
const char *annal__patience_vfs(const struct patience *patience);

/* Install the busy handler of rule (1) on a connection that may wait. */
void annal__patience_on(struct patience *patience, sqlite3 *db);

/* Limit the waits of this thread (rule 3). Limits may be nested: the earliest deadline counts. */
void annal__patience_limit(struct patience *patience, struct patience_limit *limit,
                           int64_t deadline_us);
void annal__patience_unlimit(struct patience *patience, struct patience_limit *limit);

#endif
