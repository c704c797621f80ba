/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/clock.h"

#include <time.h>

#define AHEAD_MAX_US ((int64_t)5 * 60 * 1000000)

static int64_t read_clock(clockid_t id)
{
    struct timespec now = {0};
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t wall_us(void *arg)
{
    (void)arg;
    return read_clock(CLOCK_REALTIME);
}

static int64_t monotonic_us(void *arg)
{
    (void)arg;
    return read_clock(CLOCK_MONOTONIC);
}

const struct clock annal__system_clock = {
    .wall_us = wall_us, .monotonic_us = monotonic_us, .arg = NULL};

int64_t annal__clock_monotonic_us(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t annal__clock_after(const struct clock *clock, int64_t last_us)
{
    int64_t now_us = clock->wall_us(clock->arg);
    return last_us > now_us && last_us - now_us < AHEAD_MAX_US ? last_us : now_us;
}
