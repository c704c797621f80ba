/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that is stopped in the middle of something, as by Ctrl-Z or a debugger. It dies with
 * the test, whatever becomes of that.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/*
 * What a wait may take beyond its limit here, on a busy machine: half of what a store waits
 * unasked.
 */
#define SPARE_US 5000000

struct stopped {
    pid_t pid;    /* 0: none */
    char who[64]; /* as messages name it */
};

/* In a child: fn(arg), which stops it by raise(SIGSTOP). Returns when it is stopped. */
void stopped_start(struct stopped *stopped, void (*fn)(void *arg), void *arg);

/* One that has the flocks of these files; NULL is the last. */
void stopped_start_locked(struct stopped *stopped, const char *const *paths);

/* The same, with the lock under which SQLite builds the index of a WAL; path is the path of the
 * -shm. */
void stopped_start_making_wal_index(struct stopped *stopped, const char *path);

/* Kill it, if there is one. */
void stopped_end(struct stopped *stopped);

/* Monotonic. */
int64_t stopped_now_us(void);

/*
 * A limit for what takes us on a quick and idle machine, here and now: us times the factor by which
 * some work of the processor takes longer than there. Other programs may have the processor.
 */
int64_t scaled_us(int64_t us);

/* No more than limit_us, and what a busy machine adds, have gone by since then. */
#define ck_in_time(begun_us, limit_us)                                                             \
    ck_assert_int_lt(stopped_now_us() - (begun_us), (limit_us) + scaled_us(SPARE_US))
