/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded by LD_PRELOAD: calls FAIL_FROM up to FAIL_TO of fdatasync(2) fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int calls;

int fdatasync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    int call = atomic_fetch_add(&calls, 1);
    if (call < atoi(getenv("FAIL_FROM")) || call >= atoi(getenv("FAIL_TO")))
        return real(fd);
    errno = EIO;
    return -1;
}
