/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of a derived database: one writer at a time, among all processes.
 *
 * (1) A process that writes the database, or checkpoints its WAL, holds the lock, for one
 *     transaction and no longer. SQLite before 3.51.3 can corrupt a WAL database if two connections
 *     write and checkpoint at once.
 * (2) The lock is a flock on a file in STORE/locks (named index for sessions.db), which the kernel
 *     releases if its holder dies. flock does not exclude threads that share a descriptor, so a
 *     mutex is taken before it.
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
 *     that will take the lock again soon reads this time when it releases the lock. If a process is
 *     waiting, the holder leaves the lock free for longer than a waiter pauses between two
 *     attempts, because it would otherwise take the lock again before the waiter's next attempt. A
 *     process that tries only once does not write the time.
 */
#pragma once

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
    int fd; /* descriptor of the lock's file; -1: not open; guarded by mutex */
    pid_t pid;
    /* whether the note was wiped since this process last wrote the note; guarded by the lock */
    bool wiped;
    /* time in us when a thread of this process last waited for the lock (rule 6) */
    _Atomic int64_t wanted_us;
};

/* The note in the lock's file: up to which transaction the tables contain all guarded appends (rule
 * 5). */
struct lock_note {
    uint64_t magic;
    uint8_t boot[16];
    uint64_t packs;       /* hash of the files in packs/: pack_set.seen */
    int64_t database;     /* id in the stamp of the database */
    int64_t transactions; /* number of commits in the stamp; the database has at least as many */
    /* length of session, whose append is running; 0: no append is running */
    uint32_t session_bytes;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 4];
    uint64_t hash; /* hash of the members above */
};

annal_status annal__index_lock_init(struct index_lock *lock, const struct io *io, const char *name,
                                    annal_error *err);
void annal__index_lock_done(struct index_lock *lock);

/* Return whether this process opened the index. A child of fork() did not. */
bool annal__index_lock_is_ours(const struct index_lock *lock);

/*
 * Take the lock. ANNAL_ERR_BUSY after the deadline; a deadline of 0 only tries. ANNAL_ERR_CLOSED in
 * a child of fork(). Without a store_path (nothing is shared with other processes) only threads are
 * excluded.
 */
annal_status annal__index_lock_take(struct index_lock *lock, const char *store_path,
                                    int64_t deadline_us, annal_error *err);
void annal__index_lock_give(struct index_lock *lock);

/* Close the lock's file until the lock is taken again: a store may have a database for each run,
 * and too few descriptors for all. The caller holds the lock, which is released. */
void annal__index_lock_rest(struct index_lock *lock);

/*
 * Return whether another thread or process has waited for the lock since that time. If so, call
 * annal__index_lock_leave_free() after releasing it (rule 6). Call it under the lock.
 */
bool annal__index_lock_is_wanted(const struct index_lock *lock, int64_t since_us);
void annal__index_lock_leave_free(void);

/*
 * Read the note without the lock: the last note, or a note that is being written.
 * ANNAL_ERR_NOTFOUND: no note exists. ANNAL_ERR_BUSY: a thread of this process holds the lock.
 */
annal_status annal__index_lock_note_peek(struct index_lock *lock, const char *store_path,
                                         struct lock_note *out);

/* Read the note that the last holder left in the lock's file. The caller holds the lock. Returns
 * false if no valid note exists. */
bool annal__index_lock_note_read(const struct index_lock *lock, struct lock_note *out);

/* Write the note to the lock's file, after setting its members magic and hash. Returns false if it
 * could not be written. */
bool annal__index_lock_note_write(struct index_lock *lock, struct lock_note *note);
void annal__index_lock_note_wipe(struct index_lock *lock);
