/* SPDX-License-Identifier: Apache-2.0 */
/* One file of a copy: its records, copies.h (3). */
#ifndef TOOLS_SOURCE_COPIES_FILE_H
#define TOOLS_SOURCE_COPIES_FILE_H

#include "journal/base/buf.h"
#include "tools/source/copies.h"

#include <sys/stat.h>

#define COPIES_PIECE      ((size_t)1 << 20) /* most bytes of a log in a record BYTES */
#define COPIES_WINDOW     ((size_t)128 << 10)
#define COPIES_DEEP       64
#define COPIES_DEEP_BYTES ((uint64_t)1 << 30) /* bytes to unpack for one generation */
#define COPIES_INFO_MAX   ((size_t)1 << 20)
#define COPIES_BOOT_BYTES 16

enum copies_kind { COPIES_INFO = 1, COPIES_BYTES, COPIES_SAME, COPIES_MARK };

struct copies_record {
    enum copies_kind kind;
    uint32_t payload; /* bytes of the payload */
    uint64_t bytes;   /* bytes of the log */
    uint64_t chain;
    uint64_t at; /* position of the payload */
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
    uint64_t bytes, chain, end; /* of all records */
    size_t marked_count;        /* records up to the last mark; 0: no mark */
    uint64_t marked_bytes, marked_chain, marked_end;
    struct copies_mark mark;
    uint64_t size; /* of the file */
    uint64_t generation;
    uint64_t depth;  /* number of generations before it that it needs */
    struct buf info; /* payload of the last INFO */
};

/* ANNAL_END: it does not begin with a record INFO. */
annal_status copies_file_read(int fd, struct copies_file *out, annal_error *err);
void copies_file_done(struct copies_file *file);

/*
 * Return whether the bytes after the last valid record are a damage, and not what a killed process
 * left: a header, which is written last, or a valid record after them.
 */
bool copies_file_is_damaged(int fd, const struct copies_file *file);

/* Drop the records after the last mark. */
void copies_file_cut(struct copies_file *file);

/* Append a record at the end. `file` counts it, but does not list it. */
annal_status copies_file_append(int fd, struct copies_file *file, enum copies_kind kind,
                                const void *payload, size_t len, uint64_t bytes, uint64_t chain,
                                annal_error *err);
annal_status copies_file_append_mark(int fd, struct copies_file *file,
                                     const struct copies_mark *mark, annal_error *err);

/* Read or write all bytes. ANNAL_ERR_IO: also if the file is shorter. */
annal_status copies_file_get(int fd, void *bytes, size_t len, uint64_t at, annal_error *err);
annal_status copies_file_put(int fd, const void *bytes, size_t len, uint64_t at, annal_error *err);

#endif
