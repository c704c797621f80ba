/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the records of a file in STORE/sources: copies.h (3). */
#pragma once

#include "journal/base/buf.h"
#include "tools/source/copies.h"

#include <sys/stat.h>

#define COPIES_PIECE  ((size_t)1 << 20) /* maximum bytes of a log in one record COPIES_BYTES */
#define COPIES_WINDOW ((size_t)128 << 10)
#define COPIES_DEEP   64
/* maximum size of a generation times the number of generations that must be unpacked to read it */
#define COPIES_DEEP_BYTES ((uint64_t)1 << 30)
#define COPIES_INFO_MAX   ((size_t)1 << 20)
#define COPIES_BOOT_BYTES 16

/* A log counts as quiet if it was not changed for this time: the clock of a file system may advance
 * only every 10 ms, so that a later write could have the same time. */
#define COPIES_QUIET_NS ((int64_t)20000000)

enum copies_kind { COPIES_INFO = 1, COPIES_BYTES, COPIES_SAME, COPIES_MARK };

struct copies_record {
    enum copies_kind kind;
    uint32_t payload; /* size of the payload, in bytes */
    uint64_t bytes;   /* number of bytes of the log that this record adds */
    uint64_t chain;
    uint64_t at; /* offset of the payload in the file */
};

struct copies_mark {
    int64_t mtime_ns, ctime_ns;
    uint64_t inode;
    int64_t copied_us;
    uint32_t mode;
    uint8_t boot[COPIES_BOOT_BYTES];
};

/* The valid records of a file. */
struct copies_file {
    struct copies_record *records;
    size_t count;
    /* of all valid records: bytes of the log, chain of the last one, and offset of its end */
    uint64_t bytes, chain, end;
    size_t marked_count; /* number of records up to the last COPIES_MARK; 0: the file has none */
    uint64_t marked_bytes, marked_chain, marked_end;
    struct copies_mark mark;
    uint64_t size; /* size of the file, in bytes */
    uint64_t generation;
    uint64_t depth;  /* number of older generations that are needed to read this generation */
    struct buf info; /* payload of the last record COPIES_INFO */
};

/* Read and check the headers of all records. ANNAL_END: the file does not begin with a record
 * COPIES_INFO. */
annal_status copies_file_read(int fd, struct copies_file *out, annal_error *err);
void copies_file_done(struct copies_file *file);

/*
 * Return whether the bytes after the last valid record are damaged. They are not if a killed
 * process left them: its last record begins with zeros, because a header is written after its
 * payload, and no valid record follows.
 */
bool copies_file_is_damaged(int fd, const struct copies_file *file);

/* Drop the records after the last COPIES_MARK from `file`; the file on the disk is not changed. */
void copies_file_cut(struct copies_file *file);

/* Append a record at file->end, and add it to the sums in `file`, but not to file->records. */
annal_status copies_file_append(int fd, struct copies_file *file, enum copies_kind kind,
                                const void *payload, size_t len, uint64_t bytes, uint64_t chain,
                                annal_error *err);
annal_status copies_file_append_mark(int fd, struct copies_file *file,
                                     const struct copies_mark *mark, annal_error *err);

int64_t copies_file_ns(struct timespec time);

/* Return whether a log was not changed in the last COPIES_QUIET_NS. A time in the future, by
 * another clock, also counts as quiet, because waiting would not help. */
bool copies_file_is_quiet(const struct stat *st);

/*
 * Read (copies_file_get()) or write (copies_file_put()) len bytes at offset at. ANNAL_ERR_IO: the
 * operation failed, or the file is shorter.
 */
annal_status copies_file_get(int fd, void *bytes, size_t len, uint64_t at, annal_error *err);
annal_status copies_file_put(int fd, const void *bytes, size_t len, uint64_t at, annal_error *err);
