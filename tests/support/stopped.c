#include "tests/support/stopped.h"

#include <check.h>
#include <fcntl.h>
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
