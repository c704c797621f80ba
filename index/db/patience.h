/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long SQLite waits for other programs: at most wait_ms for one wait, and within the limit for
 * all waits of the store together (annal__store_may_wait()).
 *
 * (1) Our busy handler waits for locks of other connections.
 * (2) While the header of a WAL index is torn or being written, by a process that was stopped at
 *     this point, SQLite tries a hundred times and sleeps ten seconds in all, whatever the busy
 *     handler returns. So we replace the sleep as well, with a VFS that equals the default VFS
 *     except for its xSleep (and its checks of pages, page_proof.h). When time is up it does not
 *     sleep any more, the remaining tries take no time, and SQLITE_PROTOCOL reports the busy
 *     process. Only SQLite's own "unix" is copied in this way. If a program has made another VFS
 *     the default, which may be larger than sqlite3_vfs says, that VFS is used unchanged, and the
 *     wait for such a process takes as long as SQLite's.
 * (3) A caller may have less time than wait_ms. Connections are kept for the next caller, and
 *     SQLite does not tell a VFS which connection sleeps. So the limit belongs to a thread, from
 *     annal__patience_limit() to annal__patience_unlimit(), for all connections on this VFS.
 */
#pragma once

#include <annal/store.h>

#include <sqlite3.h>

#include <pthread.h>
#include <stdatomic.h>

/* A limit for all waits of one thread: rule (3). It is on the stack of this thread. */
struct patience_limit {
    pthread_t thread;
    int64_t deadline_us; /* time on the monotonic clock; INT64_MAX: no deadline */
    struct patience_limit *next;
};

struct patience {
    sqlite3_vfs vfs; /* the VFS with our sleep (rule 2); its zName is name */
    char name[40];
    annal_store *store; /* the store to which the database belongs; NULL: none */
    /* longest wait in milliseconds; NULL: annal__patience_init() was not called, or failed */
    const uint32_t *wait_ms;
    /* whether pages of files that are opened from now on have hashes: page_proof.h */
    atomic_bool proves;
    /* sleep of the copied VFS; NULL: the default VFS is used unchanged (rule 2) */
    int (*sleep)(sqlite3_vfs *vfs, int us);
    int (*open)(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags);
    /* monotonic time at which SQLite's current series of attempts began (rule 2) */
    _Atomic int64_t begun_us;
    pthread_mutex_t mutex;
    struct patience_limit *limits; /* list of the limits in effect; guarded by mutex */
};

/*
 * Initialize the VFS. store and *wait_ms must stay at their address until annal__patience_done(),
 * which is called when no connection is left.
 */
annal_status annal__patience_init(struct patience *patience, annal_store *store,
                                  const uint32_t *wait_ms, annal_error *err);
void annal__patience_done(struct patience *patience);

/* Return the VFS on which to open connections; NULL: the default VFS. */
const char *annal__patience_vfs(const struct patience *patience);

/* Make a connection wait for locks of other connections: install the busy handler of rule (1). */
void annal__patience_on(struct patience *patience, sqlite3 *db);

/* Limit all waits of this thread until annal__patience_unlimit() (rule 3). Limits may be nested:
 * the earliest deadline counts. */
void annal__patience_limit(struct patience *patience, struct patience_limit *limit,
                           int64_t deadline_us);
void annal__patience_unlimit(struct patience *patience, struct patience_limit *limit);
