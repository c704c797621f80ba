/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of a derived database: one writer at a time, among all processes.
 *
 * (1) A process that writes the database, or checkpoints its WAL, holds the lock, for one
 *     transaction and no longer. SQLite before 3.51.3 can corrupt a WAL database if two connections
 *     write and checkpoint at once.
 * (2) The lock is a flock on a file in STORE/locks (sessions.db: index), which the kernel releases
 *     if its holder dies. flock does not exclude threads that share a descriptor, so a mutex is
 *     taken before it.
 * (3) A process that cannot get the lock tries again every few milliseconds until the deadline.
 *     There is no queue, so a stuck waiter blocks no other process.
 * (4) A child of fork() shares its parent's flock, and releasing it would release it for both. So a
 *     child can neither take nor release it.
 * (5) The file has a note, written under the lock and never synced. It names a boot, a set of
 *     packs, and a transaction of a database: in that boot, with those packs, the tables had every
 *     fact that was appended through guards at that transaction. While such an append is running,
 *     the note also names its session, and keeps that name if the process dies. After a power cut,
 *     or if the packs were different in between, the note is not used. Before guards are checked,
 *     the note is read, and what may be missing according to it is caught up (guard_tables.c, rule
 *     2). Emptying tables wipes the note.
 * (6) A process that waits for the lock writes the time into its file, after the note. A holder
 *     with much to do looks at this time when it releases the lock. It then leaves the lock free
 *     for longer than others pause between two tries. There is no queue, so otherwise it would take
 *     the lock again before they try. A process that only tries does not write the time: the holder
 *     would leave the lock free in vain.
 */
#ifndef INDEX_DB_INDEX_LOCK_H
#define INDEX_DB_INDEX_LOCK_H

#include "index/db/deadline.h"
#include "journal/base/io.h"

#include <annal/event.h>

#include <pthread.h>
#include <stdatomic.h>

#define ANNAL__LOCK_NAME_BYTES 256

struct index_lock {
    const struct io *io;
    char name[ANNAL__LOCK_NAME_BYTES]; /* name of the lock's file in STORE/locks */
    pthread_mutex_t mutex;
    int fd; /* -1: not open; guarded by mutex */
    pid_t pid;
    /* whether the note was wiped since this process last wrote it; guarded by the lock */
    bool wiped;
    _Atomic int64_t wanted_us; /* rule 6: when a thread of this process last waited */
};

/* Rule 5. */
struct lock_note {
    uint64_t magic;
    uint8_t boot[16];
    uint64_t packs;         /* hash of the enabled packs */
    int64_t database;       /* id of its stamp */
    int64_t transactions;   /* number of transactions, at least */
    uint32_t session_bytes; /* 0: no append is running */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 4];
    uint64_t hash; /* hash of the members before it */
};

annal_status annal__index_lock_init(struct index_lock *lock, const struct io *io, const char *name,
                                    annal_error *err);
void annal__index_lock_done(struct index_lock *lock);

/* Return false in a child of the process that opened the index. */
bool annal__index_lock_is_ours(const struct index_lock *lock);

/*
 * Take the lock. ANNAL_ERR_BUSY after the deadline; a deadline of 0 only tries. ANNAL_ERR_CLOSED in
 * a child of fork(). Without a store_path (nothing is shared with other processes) only threads are
 * excluded.
 */
annal_status annal__index_lock_take(struct index_lock *lock, const char *store_path,
                                    int64_t deadline_us, annal_error *err);
void annal__index_lock_give(struct index_lock *lock);

/* Close the lock's file until the lock is taken again: a store may have a database for each run. */
void annal__index_lock_rest(struct index_lock *lock);

/*
 * Rule 6, under the lock: return whether another process has waited since that time. Pause after
 * releasing the lock.
 */
bool annal__index_lock_is_wanted(const struct index_lock *lock, int64_t since_us);
void annal__index_lock_leave_free(void);

/*
 * Read the note without the lock: the last note, or a note that is being written.
 * ANNAL_ERR_NOTFOUND: no note exists. ANNAL_ERR_BUSY: a thread of this process holds the lock.
 */
annal_status annal__index_lock_note_peek(struct index_lock *lock, const char *store_path,
                                         struct lock_note *out);

/* Read the note under the lock. Returns false if no note exists or it cannot be read. */
bool annal__index_lock_note_read(const struct index_lock *lock, struct lock_note *out);

/* Write the note, setting magic and hash. Returns false if it could not be written. */
bool annal__index_lock_note_write(struct index_lock *lock, struct lock_note *note);
void annal__index_lock_note_wipe(struct index_lock *lock);

#endif
