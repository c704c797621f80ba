/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite on a disk and a heap of which one call fails. Installed as its default VFS and its
 * allocator, for the whole process; while nothing is armed everything works. Nothing is ever
 * synced.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct failing_sqlite {
    bool heap;      /* its allocator, else its VFS */
    unsigned calls; /* number of calls */
    unsigned fail_at;
    bool for_good;
    unsigned way; /* of the call that fails */
    unsigned ways;
    char failed[64]; /* what failed first; empty: nothing yet */
};

/* Before SQLite is used in this process. */
void failing_sqlite_install(void);

/* From now on; NULL: nothing fails. For one thread. */
void failing_sqlite_arm(struct failing_sqlite *plan);

/* Bytes that SQLite has not given back. */
int64_t failing_sqlite_bytes(void);
