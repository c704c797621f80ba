/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/stopped.h"

#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void stopped_start(struct stopped *stopped, void (*fn)(void *arg), void *arg)
{
    int how = 0;
    stopped->pid = fork();
    ck_assert_int_ge(stopped->pid, 0);
    if (stopped->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fn(arg);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(stopped->pid, &how, WUNTRACED), stopped->pid);
    ck_assert(WIFSTOPPED(how));
    snprintf(stopped->who, sizeof stopped->who, "process %ld (stopped)", (long)stopped->pid);
}

static void stop_locked(void *arg)
{
    for (const char *const *path = arg; *path != NULL; path++) {
        int fd = open(*path, O_RDWR | O_CREAT, 0600);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
            return;
    }
    raise(SIGSTOP);
}

void stopped_start_locked(struct stopped *stopped, const char *const *paths)
{
    stopped_start(stopped, stop_locked, (void *)paths);
}

/* The lock under which SQLite makes the index of a WAL. */
static void make_wal_index_and_stop(void *arg)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 128, .l_len = 1};
    int fd = open(arg, O_RDWR | O_CREAT, 0600);
    if (fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0)
        raise(SIGSTOP);
}

void stopped_start_making_wal_index(struct stopped *stopped, const char *path)
{
    stopped_start(stopped, make_wal_index_and_stop, (void *)path);
}

void stopped_end(struct stopped *stopped)
{
    if (stopped->pid > 0) {
        kill(stopped->pid, SIGKILL);
        ck_assert_int_eq(waitpid(stopped->pid, NULL, 0), stopped->pid);
    }
    stopped->pid = 0;
}

int64_t stopped_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A millisecond of work, in pieces, on the machines where the limits were chosen. */
static int64_t work_us(void)
{
    enum { PIECES = 20, ROUNDS = 25000 };
    static volatile uint64_t sum;
    int64_t begun_us = stopped_now_us();
    for (int piece = 0; piece < PIECES; piece++) {
        for (int round = 0; round < ROUNDS; round++)
            sum = sum * 6364136223846793005u + 1;
        sched_yield(); /* as a process that waits for others does */
    }
    return stopped_now_us() - begun_us;
}

int64_t scaled_us(int64_t us)
{
    enum { TRIES = 5, USUAL_US = 1000, FACTOR_MOST = 40 };
    int64_t slowest_us = USUAL_US;
    for (int i = 0; i < TRIES; i++) {
        int64_t took_us = work_us();
        slowest_us = took_us > slowest_us ? took_us : slowest_us;
    }
    int64_t most_us = FACTOR_MOST * USUAL_US;
    return us * (slowest_us < most_us ? slowest_us : most_us) / USUAL_US;
}
