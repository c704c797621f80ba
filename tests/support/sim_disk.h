/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk in memory that loses power.
 *
 * A process sees a page cache, as on any system. The content of the disk itself is kept apart from
 * it, and changes only with a sync:
 *
 *   data    fdatasync(file) and fsync(file) keep the bytes and the size of that file, nothing else
 *   names   fsync(directory) keeps its entries, not the bytes of the files that they name
 *
 * sim_disk_crash() cuts the power. Synced data survives; for all other data:
 *
 * (1) Data is kept in sectors of 512 bytes, each by itself, in any file: a sector that was written
 *     n times since the last sync holds the old bytes or any of the n versions.
 * (2) Changes of a file's size are kept up to one of them, in order. Sectors beyond the size that
 *     was kept are gone; sectors within it that were not kept read as zeros. A truncated sector
 *     reappears neither with its old bytes nor, while the truncation was not kept, with newer
 *     bytes.
 * (3) Changes of names (create, mkdir, rename, unlink) are kept or not each by itself, in any
 *     directory. A rename is one change: the file has its old name or its new one, never both and
 *     never none, also between two directories; it is durable when the directory of the new name
 *     was synced.
 * (4) Memory that is mapped with map_shared is written back at any time: lost, kept, or garbage.
 * (5) The boot id changes; descriptors, locks and the page cache are lost.
 *
 * This is harsher than ext4, XFS or Btrfs, whose journals keep the order of names, and most sizes.
 * POSIX allows a disk to do all of this. Only (3) is weaker: all of these keep a rename atomic.
 *
 * sim_disk_kill() ends the processes and not the machine: the page cache stays, locks go, same
 * boot.
 *
 * A process is a view of the disk with descriptors, locks and maps of its own. Its paths begin with
 * its root, "/sim-<n>", by which sim_vfs finds it too. One thread only.
 */
#pragma once

#include "journal/base/clock.h"
#include "journal/base/io.h"
#include "tests/support/random.h"

struct sim_disk;

enum sim_op_kind {
    SIM_CREATE,
    SIM_WRITE,
    SIM_SYNC, /* fdatasync, and fsync of a file */
    SIM_SYNC_DIR,
    SIM_RESIZE,
    SIM_RENAME,
    SIM_UNLINK,
    SIM_MKDIR
};

/* An operation that changes what a crash may leave. */
struct sim_op {
    enum sim_op_kind kind;
    uint64_t number;   /* from 1, on this disk */
    const char *name;  /* of the file, without its directory */
    uint64_t inode;    /* 0: the file does not exist yet */
    const void *bytes; /* of a SIM_WRITE */
    size_t len;
    uint64_t offset; /* of a SIM_WRITE; the new size of a SIM_RESIZE */
};

const char *sim_op_name(enum sim_op_kind kind);

/*
 * Called before each operation that changes something. Anything but 0 is an errno: the operation
 * fails with it. A SIM_SYNC that fails has dropped its dirty pages: the cache still shows what the
 * disk does not have (or has, with failed_syncs_write), and the next sync succeeds.
 */
typedef int (*sim_hook)(void *arg, struct sim_disk *disk, const struct sim_op *op);

struct sim_process {
    struct io io; /* its arg is this struct: do not copy */
    struct sim_disk *disk;
    char root[24];
    bool dead; /* every call fails */
    struct sim_process *next;
};

struct sim_disk {
    struct clock clock; /* advances a little with every read; its arg is this struct */
    int64_t now_us;
    int64_t tick_us; /* how much a look at the clock takes; more makes waiting short */
    uint8_t boot[16];
    uint64_t ops;
    uint64_t free_bytes;
    bool failed_syncs_write; /* what a failed sync drops did reach the disk all the same */
    sim_hook hook;
    void *hook_arg;

    /* sim_disk.c and sim_crash.c only. */
    struct sim_inode **inodes;
    size_t inode_count, inode_room;
    uint64_t last_inode;
    struct sim_handle *handles;
    size_t handle_count;
    struct sim_name_change *names;
    size_t name_count, name_room;
    struct sim_process *processes;
};

struct sim_disk *sim_disk_new(void);
void sim_disk_free(struct sim_disk *disk); /* with its processes; NULL is fine */

/* ---- Processes ---- */

struct sim_process *sim_process_new(struct sim_disk *disk);

/*
 * It dies: from now on its calls do nothing and fail, and what it has mapped is its own. Its
 * descriptors, and with them its locks, stay until they are closed, in whatever order the kernel
 * likes.
 */
void sim_process_kill(struct sim_process *process);
size_t sim_process_open_files(const struct sim_process *process);
void sim_process_close_first(struct sim_process *process); /* the oldest descriptor */
void sim_process_close_last(struct sim_process *process);
void sim_process_close_all(struct sim_process *process);

/* The living process whose root a path begins with, on any disk; NULL. */
struct sim_process *sim_process_of(const char *path);

/* ---- Crashes ---- */

/*
 * How a crash chooses. To go through all crashes of a disk, or, if there are too many, through
 * some:
 *
 *     struct sim_choices choices;
 *     sim_choices_init(&choices, disk, seed, most);
 *     while (sim_choices_next(&choices)) {
 *         struct sim_disk *left = sim_disk_crash(disk, &choices);
 *         …
 *     }
 */
struct sim_choices {
    struct sim_disk *disk;
    bool all;        /* go through every outcome; else `most` outcomes, drawn from the seed */
    uint64_t number; /* of this outcome, from 1 */
    uint64_t most;
    uint64_t seed;
    struct random random;
    int policy, unit_policy;
    uint32_t digits[64];
    uint32_t radices[64];
    size_t digit; /* the next digit to choose */
    size_t count; /* of digits that are set */
};

void sim_choices_init(struct sim_choices *choices, struct sim_disk *disk, uint64_t seed,
                      uint64_t most);
bool sim_choices_next(struct sim_choices *choices);

/* Go to one outcome, to repeat it; false if there are fewer outcomes. */
bool sim_choices_goto(struct sim_choices *choices, uint64_t number);

/* What is left after a power cut. */
struct sim_disk *sim_disk_crash(struct sim_disk *disk, struct sim_choices *choices);

/*
 * What is left when all processes die at once; in_flight (may be NULL) is a write of which the
 * first written bytes were done.
 */
struct sim_disk *sim_disk_kill(struct sim_disk *disk, const struct sim_op *in_flight,
                               size_t written);

/* ---- Looking ---- */

/*
 * A hash of all names and bytes below a directory ("" is the root), as a process sees them; files
 * that were ever mapped are left out.
 */
uint64_t sim_disk_hash(struct sim_disk *disk, const char *directory);

/*
 * The writeback of a file failed, and each process that had it open got the error or is dead: its
 * dirty pages count as clean, and the disk does not have them. A descriptor that is opened from now
 * on never reports it.
 */
void sim_disk_lose_writes(struct sim_process *process, const char *path);

/* Flip the bits of mask in one byte of the page cache and of the disk, as rot does. */
void sim_disk_flip(struct sim_process *process, const char *path, uint64_t offset, uint8_t mask);
