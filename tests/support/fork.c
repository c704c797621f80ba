/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork(), with which test programs are linked in place of the C library's: a child dies with the
 * thread that started it, whatever becomes of its test.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void)
{
    pid_t parent = getpid(), pid = __real_fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    return pid;
}
