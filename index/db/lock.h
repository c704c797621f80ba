/*
 * The lock of a derived database: one writer at a time, among all processes.
 *
 * (1) Whoever writes it, or checkpoints its WAL, holds the lock, for one transaction and no longer.
 *     SQLite before 3.51.3 can corrupt a WAL database when two connections write and checkpoint at
 *     once.
 * (2) It is a flock on a file in STORE/locks (sessions.db: index): the kernel gives it back when
 *     its holder dies. flock does not exclude threads that share a descriptor, so a mutex stands
 *     before it.
 * (3) Who cannot get it asks again every few milliseconds until the deadline: nobody queues, so a
 *     stuck waiter hinders nobody.
 * (4) A child of fork() shares its parent's flock, and giving it back would give it back for both.
 *     So a child can neither take nor give.
 * (5) The file carries a note, written under the lock and never synced: in which boot, with which
 *     set of packs and at which transaction of which database its tables held every fact that was
 *     appended through guards, and, while such an append is under way, to which session it goes.
 *     Who died left that session there; after a power cut, or when the packs were other ones in
 *     between, the note is of no use. Who asks a guard looks first, and brings up what the note
 *     says may be missing (guard.c, rule 10). Who empties tables wipes it.
 * (6) Whoever waits for the lock leaves the time in its file, behind the note. A holder with much
 *     to do looks when it gives the lock, and then stays away for longer than others wait between
 *     two looks: nobody queues, so it would have the lock again before they ask. Who only tries
 *     leaves no word: the holder would stay away for nobody.
 */
#ifndef INDEX_DB_LOCK_H
#define INDEX_DB_LOCK_H

#include "journal/base/io.h"

#include <annal/event.h>

#include <pthread.h>
#include <stdatomic.h>

#define ANNAL__LOCK_NAME_BYTES 256

struct index_lock {
    const struct io *io;
    char name[ANNAL__LOCK_NAME_BYTES]; /* of its file in STORE/locks */
    pthread_mutex_t mutex;
    int fd; /* -1: not open; guarded by mutex */
    pid_t pid;
    bool wiped;                /* the note, since it was last written here; who holds the lock */
    _Atomic int64_t wanted_us; /* rule 6, of threads */
};

/* Rule 5. */
struct lock_note {
    uint64_t magic;
    uint8_t boot[16];
    uint64_t packs;         /* which set was on */
    int64_t database;       /* its stamp, */
    int64_t transactions;   /* and how many there were at least */
    uint32_t session_bytes; /* 0: nothing is under way */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 4];
    uint64_t hash; /* of all before it */
};

/* Microseconds on the monotonic clock, wait_ms from now; INT64_MAX for ANNAL_NO_TIMEOUT. */
int64_t annal__deadline_after(uint32_t wait_ms);
bool annal__deadline_passed(int64_t deadline_us);

/* Sleep a little, longer with each attempt (1 to 20 ms). */
void annal__pause(unsigned attempt);

annal_status annal__index_lock_init(struct index_lock *lock, const struct io *io, const char *name,
                                    annal_error *err);
void annal__index_lock_done(struct index_lock *lock);

/* False in a child of the process that opened the index. */
bool annal__index_lock_is_ours(const struct index_lock *lock);

/*
 * ANNAL_ERR_BUSY when the deadline passes; a deadline of 0 only tries. ANNAL_ERR_CLOSED in a child
 * of fork(). Without a store_path (nothing is shared with other processes) only threads are
 * excluded.
 */
annal_status annal__index_lock_take(struct index_lock *lock, const char *store_path,
                                    int64_t deadline_us, annal_error *err);
void annal__index_lock_give(struct index_lock *lock);

/* Give it, and close its file until it is next taken: a store may have a database for each run. */
void annal__index_lock_rest(struct index_lock *lock);

/* Rule 6, under the lock: whether somebody waited since then. The pause is for after it was
 * given. */
bool annal__index_lock_is_wanted(const struct index_lock *lock, int64_t since_us);
void annal__index_lock_stay_away(void);

/*
 * The note, without the lock: what was written last, or is being written. ANNAL_ERR_NOTFOUND: there
 * is none. ANNAL_ERR_BUSY: a thread of this process has the lock.
 */
annal_status annal__lock_note_peek(struct index_lock *lock, const char *store_path,
                                   struct lock_note *out);

/* Under the lock. False: there is no note, or none that can be read. */
bool annal__lock_note_read(const struct index_lock *lock, struct lock_note *out);

/* magic and hash are set. False: it could not be written. */
bool annal__lock_note_write(struct index_lock *lock, struct lock_note *note);
void annal__lock_note_wipe(struct index_lock *lock);

#endif
