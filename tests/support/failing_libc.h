/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap and other functions of the C library that may fail, except that one call fails: the
 * fail_at-th of a family.
 *
 * For programs that are linked with FAULTS (tests/CMakeLists.txt), where the linker replaces
 * malloc() and the others by these functions. Unless a failure is armed, they only count the
 * allocated blocks.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

enum libc_family {
    LIBC_HEAP,   /* malloc, calloc, realloc, posix_memalign */
    LIBC_SYSTEM, /* getrandom, pthread_create, pthread_mutex_init, pthread_cond_init */
    LIBC_SYNC    /* fsync */
};

struct failing_libc {
    enum libc_family family;
    _Atomic unsigned calls; /* counted calls of this family */
    unsigned fail_at;
    bool for_good;
    char failed[64]; /* what failed first; empty: nothing yet */
};

/* From now on; NULL: nothing fails. One at a time in a process. */
void failing_libc_arm(struct failing_libc *plan);

/* Simulate a kernel that accepts this advice to madvise(2) and does nothing; -1: any advice, 0: no
 * simulation. */
void failing_libc_ignore_advice(int advice);

/* Blocks that were given out and not taken back. */
long failing_libc_blocks(void);
