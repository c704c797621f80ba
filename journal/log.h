/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commit log file: commit/<nn>.log.
 *
 * One fdatasync covers one file. Therefore the events of all sessions of a process become durable
 * in this file first, and are written to their journals only after that. The file is filled with
 * zeros once, or its space is reserved, and later it is only overwritten, so that a sync does not
 * have to change the file's metadata (in reserved space, from the second write to a block on).
 * Numbers in parentheses are commit-log rules.
 *
 * Block 0 (4096 bytes, the fields in its first 512, little-endian):
 *    0  8  "ANNALLOG"
 *    8  4  version, 1            12  4  block bytes
 *   16 16  slot id, random
 *   32 32  two regions {offset u64, bytes u64}
 *   64  4  pid of the creator    68  4  zero
 *   72  8  time of creation, microseconds
 *   80  8  XXH3-64 of the 80 bytes before
 * The last 4096 bytes of the file, after the regions, are a copy of block 0: without the seed in it
 * no group could be recognized, so one bad sector must not destroy it. Either copy is enough.
 *
 * A region contains groups. Each begins at a multiple of the block size, and is padded with zeros
 * to the next:
 *    0  8  "ANNALGRP"
 *    8  4  version, 1            12  4  records
 *   16  8  epoch                 24  8  group             32  8  released
 *   40  8  toc bytes             48  8  payload bytes
 *   56  8  XXH3-64 of header, toc and payload, this field taken as zero, seeded with the last 8
 *          bytes of the slot id
 *   64     toc, then payload
 *
 * A toc entry:
 *    0  1  type: 1 create, 2 bytes, 3 loose     1  1  format: 1 JSON lines, 2 msgpack
 *    2  2  session id bytes     4  4  zero
 *    8 16  file id
 *   24  8  offset     32  8  length     40  8  first seq     48  8  last seq
 *   56  8  h before   64  8  h after    72     session id, padded with zeros to a multiple of 8
 * Zeros may follow the last entry. The payload is the bytes of the records, one after the other.
 *
 * create: the header line of a new journal. bytes: what is in the journal from offset on; a record
 * without bytes says that the journal is durable up to offset. loose: the mark of level os, without
 * bytes. From offset on, where event `first seq` follows a line with `h before`, the journal may
 * contain bytes that no sync has covered, and none of them was acknowledged as durable. This holds
 * until a later record of the session says something else. level_os.h has the rules.
 */
#pragma once

#include "journal/base/buf.h"
#include "journal/base/io.h"
#include "journal/codec.h"

#include <stdatomic.h>

#define LOG_BLOCK_BYTES   4096u
#define LOG_SLOT_ID_BYTES 16
#define LOG_REGIONS       2u
#define LOG_REGION_FIRST  ((uint64_t)1 << 20)
/* size in bytes of a region in a log that is created on an almost full disk */
#define LOG_REGION_LEAST   ((uint64_t)64 << 10)
#define LOG_REGION_DEFAULT ((uint64_t)64 << 20)

enum record_type { RECORD_CREATE = 1, RECORD_BYTES = 2, RECORD_LOOSE = 3 };

struct record {
    enum record_type type;
    annal_format format; /* format of the session's journal */
    annal_slice session;
    uint8_t file[FRAME_FILE_ID_BYTES];
    uint64_t offset;
    uint64_t length;
    uint64_t first_seq;
    uint64_t last_seq;
    uint64_t h_before;
    uint64_t h_after;
};

struct region {
    uint64_t offset;
    uint64_t bytes;
    /* number of bytes of the region that may have been written; the bytes after them are still
     * zeros */
    uint64_t written;
    uint64_t epoch; /* epoch of the groups that this process wrote into the region; 0: none */
};

enum log_state {
    LOG_SOUND = 0,
    LOG_UNWRITTEN, /* a write failed: the group, or a piece of it, may be in the file */
    LOG_BROKEN     /* a sync failed: the log is never written again (rule 11) */
};

struct log {
    const struct io *io;
    int fd;
    char path[4200];
    dev_t device; /* device and inode of the file when it was opened */
    ino_t inode;
    uint8_t slot_id[LOG_SLOT_ID_BYTES];
    uint64_t seed; /* last 8 bytes of slot_id, the seed of group hashes */
    uint32_t block;
    bool first_damaged; /* whether block 0 is damaged, so that its copy was read */
    struct region regions[LOG_REGIONS];

    /* Region in which the next group is written. Only the leader, the thread that writes groups,
     * uses this member and the members below it. */
    unsigned current;
    uint64_t end; /* offset of the next group in the current region */
    uint64_t epoch;
    uint64_t group; /* number of the last written group */
    /* last epoch that a durable group records as released (its events are in synced journals) */
    uint64_t durable_released;
    /* time in us when the log switched to the current region (monotonic) */
    int64_t begun_us;
    /* number of the last group when the rest of the log was overwritten, or 0 */
    uint64_t wiped_group;
    enum log_state state;
    char *scratch; /* memory for reads and writes, aligned for O_DIRECT */
    size_t scratch_bytes;
    /* counter that rises while the log is read, for processes that wait for the recovery; or
     * NULL */
    _Atomic uint64_t *steps;
};

/* Write and read a number as little-endian bytes. */
void annal__log_put(char *at, uint64_t value, int bytes);
uint64_t annal__log_take(const char *at, int bytes);

/* Create a log at path with two empty regions, synced and locked. Its directory is not synced. */
annal_status annal__log_create(const struct io *io, const char *path, uint64_t region_bytes,
                               int64_t now_us, struct log *out_log, annal_error *err);

/* Open an existing log and read block 0, or its copy. ANNAL_ERR_NOTFOUND if it does not exist,
 * ANNAL_ERR_CORRUPT if both are damaged. */
annal_status annal__log_open(const struct io *io, const char *path, bool write, struct log *out_log,
                             annal_error *err);

/* Open a log in two steps, so that the caller can lock it in between: open the file without reading
 * it, then read block 0 or its copy. */
annal_status annal__log_find(const struct io *io, const char *path, bool write, struct log *out_log,
                             annal_error *err);
annal_status annal__log_read_first(struct log *log, annal_error *err);

/* If block 0 is damaged, write it again from its copy. The caller has locked the log. */
annal_status annal__log_mend(struct log *log, annal_error *err);

/* Close the log; this also releases the lock on it. */
void annal__log_close(struct log *log);

/* Return whether the log's name still belongs to the open file. */
bool annal__log_is_in_place(const struct log *log);

/* Fail with ANNAL_ERR_CLOSED if the log's name is missing or belongs to another file, with
 * ANNAL_ERR_IO if that cannot be checked. */
annal_status annal__log_check_place(const struct log *log, annal_error *err);

/* Return the number of bytes that a group occupies in a region. */
uint64_t annal__log_group_bytes(const struct log *log, size_t toc_bytes, size_t payload_bytes);

/* Return whether a group of this size fits into the current region, leaving a block for a last,
 * empty group. */
bool annal__log_fits(const struct log *log, uint64_t bytes);

/* Continue in the other region with the next epoch. A durable group must have recorded that the
 * other region's epoch is released. */
void annal__log_switch(struct log *log);

/* Append a toc entry. */
annal_status annal__log_put_record(struct buf *toc, const struct record *record);

/*
 * The payload of a large group is written from its own memory, without a copy. This needs memory
 * from annal__log_reserve(), which is annal__buf_reserve() with begin and end aligned for O_DIRECT,
 * and a toc padded by annal__log_align_toc(), which does nothing for a small payload.
 */
annal_status annal__log_reserve(struct buf *payload, size_t more);
annal_status annal__log_align_toc(const struct log *log, struct buf *toc,
                                  const struct buf *payload);

/*
 * Write a group at the end of the log and sync it. After a failure, log->state says what was
 * written. LOG_SOUND: nothing. LOG_UNWRITTEN: perhaps a piece; the next group overwrites it.
 * LOG_BROKEN: perhaps the group; no other group may be written to this log.
 */
annal_status annal__log_write_group(struct log *log, uint32_t records, const struct buf *toc,
                                    const struct buf *payload, uint64_t released, annal_error *err);

/*
 * Overwrite everything but the groups of the current epoch with zeros, and sync. A durable group of
 * the current epoch records that every earlier epoch is released. If the sync fails, the state
 * becomes LOG_BROKEN.
 */
annal_status annal__log_wipe(struct log *log, annal_error *err);

/* A group that was found in a log. */
struct log_group {
    unsigned region;
    uint64_t offset; /* offset in the file */
    uint64_t epoch;
    uint64_t group;
    uint64_t released;
    uint32_t records;
    uint64_t toc_bytes;
    uint64_t payload_bytes;
};

/* Find all valid groups, in the order of their numbers. Free *out_groups with annal__free(). The
 * caller has synced the log and dropped its cache. */
annal_status annal__log_find_groups(struct log *log, struct log_group **out_groups,
                                    size_t *out_count, annal_error *err);

/* Return the last epoch that the groups record as released: events of this epoch and of earlier
 * epochs are in synced journals, so recovery needs only groups of later epochs. */
uint64_t annal__log_released(const struct log_group *groups, size_t count);

/*
 * Return whether groups are missing although a later group exists: by rule 1 this is damage, and
 * not the trace of a crash. *out_last is the number of the last missing group. Only groups that are
 * not released are examined; groups is the result of annal__log_find_groups().
 */
bool annal__log_lost(const struct log *log, const struct log_group *groups, size_t count,
                     uint64_t *out_last);

/* Call fn for the sessions that damaged groups seem to name. Their tocs are not checked by a
 * hash. */
typedef annal_status (*annal__log_name_fn)(void *arg, annal_slice session, annal_error *err);
annal_status annal__log_lost_names(struct log *log, annal__log_name_fn fn, void *arg,
                                   annal_error *err);

/* Read toc and payload of a group into bytes. */
annal_status annal__log_read_group(struct log *log, const struct log_group *group,
                                   struct buf *bytes, annal_error *err);

/* Read one record from the front of a toc, and remove it from the toc; false if the toc is
 * invalid. */
bool annal__log_take_record(annal_slice *toc, struct record *out_record);
