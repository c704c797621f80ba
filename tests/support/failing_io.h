/*
 * The system's I/O, except that one call fails: the fail_at-th (from 1) of those that are counted.
 * With fail_at 0 nothing fails and calls tells how many there were.
 *
 *     struct failing_io disk;
 *     failing_io_init(&disk);
 *     disk.fail_at = 3;
 *     annal__publish_file(&disk.io, …);
 */
#ifndef TESTS_SUPPORT_FAILING_IO_H
#define TESTS_SUPPORT_FAILING_IO_H

#include "journal/base/io.h"

#include <stdatomic.h>

struct failing_io {
    struct io io; /* its arg is this struct: do not copy */
    _Atomic unsigned
        calls; /* open, pread, pwrite, fdatasync, fsync, ftruncate, rename, mkdir, flock so far */
    unsigned fail_at; /* which of them fails */
    int with_errno;   /* ENOSPC unless set */
    bool for_good;    /* all later ones fail too */
    size_t short_len; /* if set, every pread and pwrite moves at most this much */
};

void failing_io_init(struct failing_io *disk);

#endif
