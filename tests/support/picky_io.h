/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's I/O, except that some calls on some files fail: those of one kind, on a file whose
 * path contains a word.
 *
 *     struct picky_io disk;
 *     picky_io_init(&disk);
 *     picky_io_fail(&disk, PICKY_SYNC, "commit/00.log", EIO, 1);
 *
 * A failed sync or writeback loses the bytes written since the last success, as the kernel may:
 * they read as zeros from then on. Do not inject failures from several threads.
 */
#pragma once

#include "journal/base/io.h"

#define PICKY_RULES 4
#define PICKY_FILES 64

enum picky_call {
    PICKY_OPEN,
    PICKY_WRITE,
    PICKY_WRITE_BACK,
    PICKY_SYNC,
    PICKY_RENAME,
    PICKY_UNLINK,
    PICKY_CALLS
};

struct picky_rule {
    enum picky_call call;
    const char *word;
    int with_errno;
    int times; /* remaining failures; below 0: without end */
    int after; /* number of calls that succeed first */
};

struct picky_file {
    char path[512];
    uint64_t unsynced_from, unsynced_to;
};

struct picky_io {
    struct io io; /* its arg is this struct: do not copy */
    struct picky_rule rules[PICKY_RULES];
    struct picky_file files[PICKY_FILES]; /* by descriptor */
    unsigned failed;                      /* number of failed calls */
};

void picky_io_init(struct picky_io *disk);

/* Fail `times` calls of this kind on files whose path contains word; below 0: all of them. */
struct picky_rule *picky_io_fail(struct picky_io *disk, enum picky_call call, const char *word,
                                 int with_errno, int times);

/* No more failures. */
void picky_io_heal(struct picky_io *disk);
