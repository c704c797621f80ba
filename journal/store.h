/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store object. Its parts are structs of the files that own them: context.h, session.h,
 * slot_log.h, commit.h, keeper.h. Read these first.
 */
#ifndef JOURNAL_STORE_H
#define JOURNAL_STORE_H

#include "journal/base/clock.h"
#include "journal/base/io.h"
#include "journal/commit.h"
#include "journal/context.h"
#include "journal/filelock.h"
#include "journal/keeper.h"
#include "journal/metrics.h"
#include "journal/seek_table.h"
#include "journal/session.h"
#include "journal/slot.h"
#include "journal/slot_log.h"
#include "journal/stray.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"
#include "journal/wakeup_page.h"

#include <annal/journal.h>

#include <stdatomic.h>
#include <sys/types.h>

#define STORE_VERSION 1
#define TASKS_MAX     16
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

struct annal_store {
    struct context context;

    /* Members that are set once, when the store is opened. */
    annal_level level;
    const struct codec *codec; /* format of new journals */
    uint32_t batch_ms;
    uint64_t region_bytes;
    /* number of bytes of the disk that are kept free; 0 before the size of the disk is known */
    uint64_t keep_free_bytes;
    bool unsafe_filesystem;
    int events_dir; /* descriptor of events/, to sync it and to find the free space */

    struct file_lock claim_lock;
    struct file_lock recovery_lock;
    struct file_lock structure_lock; /* locks/structure (replace.h) */
    struct slot slot;
    struct own_log own_log;
    struct commit commit;
    struct keeper keeper;

    struct session_table sessions;

    pthread_mutex_t checkpoint_lock; /* held during a checkpoint */
    /* Held while events/ is synced, so that a thread that then finds events_dirty false can rely on
     * it. */
    pthread_mutex_t events_lock;
    _Atomic bool events_dirty; /* whether names in events/ are not synced */
    /* time in us when events were last written to a journal (monotonic) */
    _Atomic int64_t appended_us;
    _Atomic uint32_t open_writers;
    _Atomic bool tombstones; /* whether tombstones may exist, to be removed when the log is empty */
    _Atomic int64_t space_checked_us;
    _Atomic uint64_t space_free;

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

/* Sync a file, or the directory events/ if it has new names, and count the sync. Return 0, or -1
 * and set errno. */
int annal__store_fdatasync(annal_store *store, int fd);
int annal__store_sync_events(annal_store *store);

#endif
