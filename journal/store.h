/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store object. Its parts are structs of the files that own them: context.h, session.h,
 * slot_log.h, commit.h, keeper.h. Read these first.
 */
#pragma once

#include "journal/base/clock.h"
#include "journal/base/io.h"
#include "journal/commit.h"
#include "journal/context.h"
#include "journal/events_dir.h"
#include "journal/filelock.h"
#include "journal/journal_watch.h"
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
/* descriptors of the process's limit that are left to the program and to SQLite */
#define DESCRIPTORS_RESERVED 64

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
    bool unsafe_filesystem;

    struct file_lock claim_lock;
    struct file_lock recovery_lock;
    struct file_lock structure_lock; /* locks/structure (replace.h) */
    struct slot slot;
    struct own_log own_log;
    struct commit commit;
    struct keeper keeper;

    struct session_table sessions;
    struct events_dir events;

    _Atomic uint32_t open_writers;
    _Atomic bool tombstones; /* whether tombstones may exist, to be removed when the log is empty */

    struct tails_place tails;
    struct strays strays;
    _Atomic uint64_t damages_said; /* number of damaged events that were left out of answers */
    struct seek_tables seek_tables;
    struct wakeup wakeup;
    struct journal_watch journal_watch;
    struct metrics metrics;
};

/* Open a store as annal_store_open() does, with other interfaces to the system. */
annal_status annal__store_open(const char *path, const annal_store_options *options,
                               const struct seams *seams, annal_store **out_store,
                               annal_error *err);
