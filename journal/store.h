/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store object: what the files of this folder share. Read commit.h, session.h and slot.h first.
 */
#ifndef JOURNAL_STORE_H
#define JOURNAL_STORE_H

#include "journal/base/clock.h"
#include "journal/base/io.h"
#include "journal/commit.h"
#include "journal/filelock.h"
#include "journal/held_list.h"
#include "journal/log.h"
#include "journal/metrics.h"
#include "journal/seek_table.h"
#include "journal/session.h"
#include "journal/stray.h"
#include "journal/sys/keeper_task.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"
#include "journal/wakeup_page.h"

#include <annal/journal.h>

#include <stdatomic.h>
#include <sys/types.h>

#define STORE_VERSION   1
#define SESSION_BUCKETS 4096u
#define TASKS_MAX       16
#define PATH_BYTES_MAX  8192
/* descriptors of the process's limit that are left to the program and to SQLite */
#define DESCRIPTORS_RESERVED 64
/* number of bytes of the disk that are kept free by default */
#define FREE_RESERVE_BYTES ((uint64_t)16 << 20)
/* on a small disk, at most the disk's size divided by this number is kept free */
#define FREE_RESERVE_PART 16u

/* Interfaces that tests replace by their own. */
struct seams {
    const struct io *io;
    const struct clock *clock;
    const uint8_t *boot; /* 16 bytes of a boot id; NULL: the system's */
};

/* The slot of this store object: its commit log and its held list (slot.h). */
struct slot {
    pthread_mutex_t lock;
    pthread_cond_t moved; /* signaled when a thread has finished claiming a slot */
    bool claiming;        /* whether a thread is claiming a slot; guarded by lock */
    /* whether number, log and held are set (this store object has a slot); then only the leader
     * uses log */
    _Atomic bool claimed;
    uint32_t number;
    struct log log;
    struct held held;
};

struct task_state {
    annal__keeper_task task;
    int64_t due_us; /* time before which the task does not run, in us (monotonic) */
    /* time in us at which the task runs even if appends continue (monotonic); 0: no change since
     * its last run */
    int64_t latest_us;
    uint64_t ran_at_change;
};

struct keeper {
    pthread_t thread;
    bool running;
    _Atomic bool is_stopping;
    /* whether the keeper may sleep for long, so that an append must wake it */
    _Atomic bool idle;
    /* futex on which the keeper sleeps until this process has a slot */
    _Atomic uint32_t local_word;
    _Atomic uint32_t
        /* futex on which the keeper sleeps: local_word or, after this process has a slot, the word
         * in its held list */
        *_Atomic wakeup_word;
    pthread_mutex_t round; /* held during a round; guards the members below */
    struct task_state tasks[TASKS_MAX];
    size_t task_count;
    bool is_last_run;    /* whether a task runs for the last time, so that it must finish */
    int64_t no_yield_us; /* time before which tasks do not yield the processor (monotonic) */
    /* whether the last task stopped early, because the keeper had other work */
    bool has_task_yielded;
    /* time in us when the keeper last synced all journals, or found nothing to sync (monotonic) */
    int64_t rotated_us;
    /* time before which a failed checkpoint or write is not retried (monotonic); 0: none failed */
    int64_t retry_us;
    /* number of the last group whose journals a checkpoint of the keeper has synced */
    uint64_t rotated_group;
};

/* Waiting time of the store object (journal/sys/seam.h). */
struct waits {
    pthread_mutex_t lock;
    /* Guarded by lock. */
    int64_t limit_us;  /* maximum of waited_us; INT64_MAX: no limit */
    int64_t waited_us; /* time in us that threads have waited in total, without the present wait */
    uint32_t threads;  /* number of threads that are waiting now */
    int64_t since_us;  /* time in us since when at least one thread is waiting (monotonic) */
};

struct annal_store {
    /* Members that are set once, when the store is opened. */
    const struct io *io;
    const struct clock *clock;
    uint8_t boot[16];
    char *path;
    bool read_only;
    annal_level level;
    const struct codec *codec; /* format of new journals */
    uint32_t batch_ms;
    uint32_t wait_ms;
    uint64_t region_bytes;
    /* number of bytes of the disk that are kept free; 0 before the size of the disk is known */
    uint64_t keep_free_bytes;
    annal_log_fn log;
    void *log_arg;
    pid_t pid;
    /* a number that fork() sets to 0 in a child; NULL: not supported, so getpid() is called */
    uint32_t *same_process;
    bool unsafe_filesystem;
    int events_dir; /* descriptor of events/, to sync it and to find the free space */
    uint32_t descriptors_max;

    struct waits waits;
    struct file_lock claim_lock;
    struct file_lock recovery_lock;
    struct file_lock structure_lock; /* locks/structure (replace.h) */
    struct slot slot;
    struct commit commit;
    struct keeper keeper;

    pthread_mutex_t sessions_lock;
    /* sessions by the hash of their ids; guarded by sessions_lock */
    struct session *buckets[SESSION_BUCKETS];
    /* head of the list of all sessions; guarded by sessions_lock */
    struct session *newest;
    /* number of open journals; guarded by sessions_lock */
    uint32_t open_journals;

    pthread_mutex_t checkpoint_lock; /* held during a checkpoint */
    /* Held while events/ is synced, so that a thread that then finds events_dirty false can rely on
     * it. */
    pthread_mutex_t events_lock;
    _Atomic bool events_dirty; /* whether names in events/ are not synced */
    /* number of changes of journals so far; session->changed refers to it */
    _Atomic uint64_t changes;
    /* time in us when events were last written to a journal (monotonic) */
    _Atomic int64_t appended_us;
    /* number of sessions with bytes of level os that are not durable (level_os.h) */
    _Atomic uint32_t loose_sessions;
    /* number of sessions whose journal must be written again (failure.h) */
    _Atomic uint32_t late_sessions;
    _Atomic uint32_t open_writers;
    _Atomic bool tombstones; /* whether tombstones may exist, to be removed when the log is empty */
    _Atomic int64_t space_checked_us;
    _Atomic uint64_t space_free;
    /* size of a region of this store object's log, in bytes; 0: it has no slot yet */
    _Atomic uint64_t log_region_bytes;

    struct tails_place tails;
    struct strays strays;
    _Atomic uint64_t damages_said; /* number of damaged events that were left out of answers */
    struct seek_tables seek_tables;
    struct wakeup wakeup;
    struct metrics metrics;
};

/* Open a store as annal_store_open() does, with other interfaces to the system. */
annal_status annal__store_open(const char *path, const annal_store_options *options,
                               const struct seams *seams, annal_store **out_store,
                               annal_error *err);

/* Fail with ANNAL_ERR_CLOSED in a child of fork(), which must not use its parent's store object.
 * Every public function calls this first. */
annal_status annal__store_check(const annal_store *store, annal_error *err);

/* As annal__store_check(), and fail if the store is open for reading only. */
annal_status annal__store_check_writable(const annal_store *store, annal_error *err);

/* Compose the path STORE/part/name, or STORE/part if name is "". ANNAL_ERR_LIMIT if it is too
 * long. */
annal_status annal__store_path(const annal_store *store, struct buf *out, const char *part,
                               const char *name, annal_error *err);

/* Compose the path of a session's journal in one format. */
annal_status annal__store_journal_path(const annal_store *store, annal_slice session,
                                       const struct codec *codec, struct buf *out,
                                       annal_error *err);

/* Sync a file, or the directory events/ if it has new names, and count the sync. Return 0, or -1
 * and set errno. */
int annal__store_fdatasync(annal_store *store, int fd);
int annal__store_sync_events(annal_store *store);

int64_t annal__store_now_us(const annal_store *store); /* monotonic */

/* Wait until another thread of this process signals the condition, or until the deadline
 * (monotonic). ANNAL_ERR_BUSY, without a message, if the deadline had passed before. */
annal_status annal__store_wait_on(annal_store *store, pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  int64_t deadline_us);

/* Return the deadline (monotonic) of a wait for other processes that begins now. */
int64_t annal__store_deadline(const annal_store *store);

#endif
