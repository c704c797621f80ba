/* SPDX-License-Identifier: Apache-2.0 */
/* The clock seam: tests use their own time. */
#ifndef JOURNAL_BASE_CLOCK_H
#define JOURNAL_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    int64_t (*wall_us)(void *arg);      /* UTC */
    int64_t (*monotonic_us)(void *arg); /* never goes back; for durations */
    void *arg;
};

/* The system's clocks. */
extern const struct clock annal__system_clock;

/* Of the system's clock, where no test replaces it. */
int64_t annal__clock_monotonic_us(void);

/* Now, but not before last_us, unless last_us is minutes ahead: then the clock was corrected. */
int64_t annal__clock_after(const struct clock *clock, int64_t last_us);

/* Limit a time to the years 0000 to 9999, which its text can express. */
int64_t annal__time_clamp(int64_t time_us);

#endif
