/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void annal__futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t timeout_us)
{
    struct timespec timeout = {.tv_sec = timeout_us / 1000000,
                               .tv_nsec = timeout_us % 1000000 * 1000};
    (void)syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

void annal__futex_wake(_Atomic uint32_t *word)
{
    annal__futex_wake_some(word, INT32_MAX);
}

void annal__futex_wake_some(_Atomic uint32_t *word, int sleepers)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, sleepers, NULL, NULL, 0);
}
