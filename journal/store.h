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
/* descriptors of the soft limit that are left to the program and to SQLite */
#define DESCRIPTORS_RESERVED 64
#define FREE_RESERVE_BYTES   ((uint64_t)16 << 20) /* space of the disk that is never used */
#define FREE_RESERVE_PART    16u                  /* on a smaller disk, at most this part of it */

/* What tests replace. */
struct seams {
    const struct io *io;
    const struct clock *clock;
    const uint8_t *boot; /* 16 bytes; NULL: the system's */
};

/* The slot of this store object: its commit log and its held list. See slot.h. */
struct slot {
    pthread_mutex_t lock;
    pthread_cond_t moved; /* claiming ended */
    bool claiming;        /* guarded by lock: a thread is claiming it */
    _Atomic bool claimed; /* whether the members below are set, and log belongs to the leader */
    uint32_t number;
    struct log log;
    struct held held;
};

struct task_state {
    annal__keeper_task task;
    int64_t due_us;    /* monotonic: not earlier */
    int64_t latest_us; /* monotonic: not later, although something is appended; 0: no change */
    uint64_t ran_at_change;
};

struct keeper {
    pthread_t thread;
    bool running;
    _Atomic bool is_stopping;
    _Atomic bool idle;           /* whether it sleeps for long: wake it if there is work */
    _Atomic uint32_t local_word; /* futex, until a slot is claimed */
    _Atomic uint32_t
        *_Atomic wakeup_word; /* the word on which it sleeps: the local word, then the held
                                     * list's */
    pthread_mutex_t round;    /* one round at a time; guards what follows */
    struct task_state tasks[TASKS_MAX];
    size_t task_count;
    bool is_last_run;      /* whether this is the last run of the task */
    int64_t no_yield_us;   /* until then tasks do not yield the processor */
    bool has_task_yielded; /* whether the last task stopped early, because the keeper was needed */
    int64_t rotated_us;    /* monotonic */
    int64_t retry_us; /* monotonic: what the disk refused is not tried earlier; 0: nothing was */
    uint64_t rotated_group; /* the last group that a rotation covered */
};

/* See journal/sys/seam.h. */
struct waits {
    pthread_mutex_t lock;
    /* Guarded by lock. */
    int64_t limit_us;  /* INT64_MAX: none */
    int64_t waited_us; /* until now, without the threads that wait at this moment */
    uint32_t threads;  /* number of threads that wait at this moment */
    int64_t since_us;  /* monotonic: when the first of them began */
};

struct annal_store {
    /* Set once. */
    const struct io *io;
    const struct clock *clock;
    uint8_t boot[16];
    char *path;
    bool read_only;
    annal_level level;
    const struct codec *codec; /* codec of new journals */
    uint32_t batch_ms;
    uint32_t wait_ms;
    uint64_t region_bytes;
    uint64_t keep_free_bytes; /* 0 until it is known how large the disk is */
    annal_log_fn log;
    void *log_arg;
    pid_t pid;
    /* a page that fork() wipes: 0 in a child. NULL: not supported, getpid() is called */
    uint32_t *same_process;
    bool unsafe_filesystem;
    int events_dir; /* a descriptor, for syncing and for free space */
    uint32_t descriptors_max;

    struct waits waits;
    struct file_lock claim_lock;
    struct file_lock recovery_lock;
    struct file_lock structure_lock; /* see replace.h */
    struct slot slot;
    struct commit commit;
    struct keeper keeper;

    pthread_mutex_t sessions_lock;
    struct session *buckets[SESSION_BUCKETS]; /* guarded by sessions_lock */
    struct session *newest;                   /* newest of all sessions; guarded by sessions_lock */
    uint32_t open_journals;                   /* guarded by sessions_lock */

    pthread_mutex_t checkpoint_lock; /* one checkpoint at a time */
    /* Held while events/ is synced: a thread that finds it clean may rely on that. */
    pthread_mutex_t events_lock;
    _Atomic bool events_dirty;       /* names in events/ that no sync has covered */
    _Atomic uint64_t changes;        /* counts applied groups and os writes */
    _Atomic int64_t appended_us;     /* monotonic time of the last applied group */
    _Atomic uint32_t loose_sessions; /* their held entries say `loose` */
    _Atomic uint32_t late_sessions;  /* see failure.h */
    _Atomic uint32_t open_writers;
    _Atomic bool tombstones; /* we made tombstones: sweep when the log is empty */
    _Atomic int64_t space_checked_us;
    _Atomic uint64_t space_free;
    _Atomic uint64_t log_region_bytes; /* size of a region of our log; 0: no log yet */

    struct tails_place tails;
    struct strays strays;
    _Atomic uint64_t damages_said; /* events that were missing in an answer */
    struct seek_tables seek_tables;
    struct wakeup wakeup;
    struct metrics metrics;
};

/* Whether this is a child of the process that opened it. */
bool annal__store_was_forked(const annal_store *store);

/* annal_store_open() with other seams. */
annal_status annal__store_open(const char *path, const annal_store_options *options,
                               const struct seams *seams, annal_store **out_store,
                               annal_error *err);

/* Every entry point calls this first: a child of fork() must not use its parent's handle. */
annal_status annal__store_check(const annal_store *store, annal_error *err);

/* As above, for functions that write. */
annal_status annal__store_check_writable(const annal_store *store, annal_error *err);

/* STORE/<part>/<name>; ANNAL_ERR_LIMIT if it is too long. */
annal_status annal__store_path(const annal_store *store, struct buf *out, const char *part,
                               const char *name, annal_error *err);

/* Syncs that are measured. -1 with errno. */
int annal__store_fdatasync(annal_store *store, int fd);
int annal__store_sync_events(annal_store *store);

int64_t annal__store_now_us(const annal_store *store); /* monotonic */

/*
 * Wait until another thread of ours signals the condition, or for a while. ANNAL_ERR_BUSY, without
 * a message, after the deadline (monotonic).
 */
annal_status annal__store_wait_on(annal_store *store, pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  int64_t deadline_us);

/* The deadline of a wait for other processes that begins now (monotonic). */
int64_t annal__store_deadline(const annal_store *store);

#endif
