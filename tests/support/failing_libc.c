/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/failing_libc.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* Of the linker's --wrap: __real_x is the function that x was. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t bytes);
void __real_free(void *block);
ssize_t __real_getrandom(void *out, size_t bytes, unsigned flags);
int __real_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __real_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr);
int __real_fsync(int fd);
int __real_madvise(void *at, size_t bytes, int advice);

static struct failing_libc *_Atomic armed;
static _Atomic long blocks;
static _Atomic int ignored_advice;

void failing_libc_ignore_advice(int advice)
{
    atomic_store(&ignored_advice, advice);
}

void failing_libc_arm(struct failing_libc *plan)
{
    atomic_store(&armed, plan);
}

long failing_libc_blocks(void)
{
    return atomic_load(&blocks);
}

static bool fails(enum libc_family family, const char *name)
{
    struct failing_libc *plan = atomic_load(&armed);
    if (plan == NULL || plan->family != family)
        return false;
    unsigned call = atomic_fetch_add(&plan->calls, 1) + 1;
    if (plan->fail_at == 0 || call < plan->fail_at || (call > plan->fail_at && !plan->for_good))
        return false;
    if (call == plan->fail_at)
        snprintf(plan->failed, sizeof plan->failed, "%s", name);
    return true;
}

static void *given(void *block)
{
    if (block != NULL)
        atomic_fetch_add(&blocks, 1);
    return block;
}

void *__wrap_malloc(size_t bytes)
{
    if (fails(LIBC_HEAP, "malloc")) {
        errno = ENOMEM;
        return NULL;
    }
    return given(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    if (fails(LIBC_HEAP, "calloc")) {
        errno = ENOMEM;
        return NULL;
    }
    return given(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *block, size_t bytes)
{
    if (fails(LIBC_HEAP, "realloc")) {
        errno = ENOMEM;
        return NULL;
    }
    void *moved = __real_realloc(block, bytes);
    return block == NULL ? given(moved) : moved;
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    if (fails(LIBC_HEAP, "posix_memalign"))
        return ENOMEM;
    int failed = __real_posix_memalign(out, alignment, bytes);
    if (failed == 0)
        (void)given(*out);
    return failed;
}

void __wrap_free(void *block)
{
    if (block != NULL)
        atomic_fetch_sub(&blocks, 1);
    __real_free(block);
}

ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags)
{
    if (fails(LIBC_SYSTEM, "getrandom")) {
        errno = ENOSYS;
        return -1;
    }
    return __real_getrandom(out, bytes, flags);
}

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg)
{
    return fails(LIBC_SYSTEM, "pthread_create") ? EAGAIN
                                                : __real_pthread_create(out, attr, fn, arg);
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    return fails(LIBC_SYSTEM, "pthread_mutex_init") ? ENOMEM
                                                    : __real_pthread_mutex_init(mutex, attr);
}

int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
    return fails(LIBC_SYSTEM, "pthread_cond_init") ? ENOMEM : __real_pthread_cond_init(cond, attr);
}

int __wrap_fsync(int fd)
{
    if (fails(LIBC_SYNC, "fsync")) {
        errno = EIO;
        return -1;
    }
    return __real_fsync(fd);
}

int __wrap_madvise(void *at, size_t bytes, int advice)
{
    int ignored = atomic_load(&ignored_advice);
    return ignored == -1 || (ignored != 0 && ignored == advice) ? 0
                                                                : __real_madvise(at, bytes, advice);
}
