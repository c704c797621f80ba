/* SPDX-License-Identifier: Apache-2.0 */
/* An interface to the clock, so that tests can use their own time. */
#pragma once

#include <stdint.h>

struct clock {
    int64_t (*wall_us)(void *arg);      /* microseconds since 1970, UTC */
    int64_t (*monotonic_us)(void *arg); /* microseconds since a fixed moment; never goes back */
    void *arg;
};

/* The clocks of the system. */
extern const struct clock annal__system_clock;

/* Return the monotonic time of the system, for code in which tests do not replace the clock. */
int64_t annal__clock_monotonic_us(void);

/* Return the later of the present time and last_us. But if last_us is five minutes or more after
 * the present time, the clock was corrected: then return the present time. */
int64_t annal__clock_after(const struct clock *clock, int64_t last_us);

/* Limit a time to the years 0000 to 9999, which its text can express. */
int64_t annal__time_clamp(int64_t time_us);
