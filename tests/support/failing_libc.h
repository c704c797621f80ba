/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap, and what else of the C library may fail, except that one call fails: the fail_at-th of
 * a family.
 *
 * For programs that are linked with FAULTS (tests/CMakeLists.txt), where the linker puts these
 * functions in the place of malloc() and its kin. While nothing is armed they only count the blocks
 * that live.
 */
#ifndef TESTS_SUPPORT_FAILING_LIBC_H
#define TESTS_SUPPORT_FAILING_LIBC_H

#include <stdatomic.h>
#include <stdbool.h>

enum libc_family {
    LIBC_HEAP,   /* malloc, calloc, realloc, posix_memalign */
    LIBC_SYSTEM, /* getrandom, pthread_create, pthread_mutex_init, pthread_cond_init */
    LIBC_SYNC    /* fsync */
};

struct failing_libc {
    enum libc_family family;
    _Atomic unsigned calls; /* of this family so far */
    unsigned fail_at;
    bool for_good;
    char failed[64]; /* what failed first; empty: nothing yet */
};

/* From now on; NULL: nothing fails. One at a time in a process. */
void failing_libc_arm(struct failing_libc *plan);

/* A kernel that accepts this advice to madvise(2) and does nothing; -1: any advice, 0: as it is. */
void failing_libc_ignore_advice(int advice);

/* Blocks that were given out and not taken back. */
long failing_libc_blocks(void);

#endif
