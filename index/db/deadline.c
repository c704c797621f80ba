/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/deadline.h"

#include "journal/base/clock.h"

#include <annal/base.h>

#include <time.h>

int64_t annal__deadline_after(uint32_t wait_ms)
{
    return wait_ms == ANNAL_NO_TIMEOUT ? INT64_MAX
                                       : annal__clock_monotonic_us() + (int64_t)wait_ms * 1000;
}

bool annal__deadline_passed(int64_t deadline_us)
{
    return deadline_us != INT64_MAX && annal__clock_monotonic_us() >= deadline_us;
}

void annal__deadline_pause(unsigned attempt)
{
    long ms = attempt < 20 ? 1 + (long)attempt : 20;
    struct timespec pause = {.tv_nsec = ms * 1000000L};
    nanosleep(&pause, NULL);
}
