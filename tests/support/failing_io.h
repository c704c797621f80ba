/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's I/O, except that one call fails: the fail_at-th (from 1) of the counted calls. With
 * fail_at 0 no call fails, and `calls` is their number.
 *
 *     struct failing_io disk;
 *     failing_io_init(&disk);
 *     disk.fail_at = 3;
 *     annal__io_publish_file(&disk.io, …);
 *
 * With by_table every function of the seam is counted, and the call fails in one way of its list:
 * way 0, 1, …; afterwards `ways` is the length of the list. A way is an errno, a short count, the
 * first half of a write before the disk is full, or an incomplete listing.
 */
#pragma once

#include "journal/base/io.h"

#include <stdatomic.h>

struct failing_io {
    struct io io; /* its arg is this struct: do not copy */
    /*
     * counted calls: open, pread, pwrite, fdatasync, fsync, ftruncate, reserve, rename, mkdir,
     * flock
     */
    _Atomic unsigned calls;
    unsigned fail_at; /* which of them fails */
    int with_errno;   /* ENOSPC unless set */
    bool for_good;    /* all later ones fail too */
    const char *only; /* "fstat": its calls are counted, and no others */
    size_t short_len; /* if set, every pread and pwrite moves at most this much */

    bool by_table;
    bool lazy;    /* syncs say yes and O_DIRECT is left out: for loops of thousands of stores */
    unsigned way; /* of the call that fails; later calls fail in the same one, or in their first */
    unsigned ways;
    char failed[64]; /* "pwrite EIO": what failed first, for messages; empty: nothing yet */
    bool full;       /* half of a write was taken: the next one finds the disk full */
};

void failing_io_init(struct failing_io *disk);
