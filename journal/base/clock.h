/* The clock seam: tests bring their own time. */
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

/* Of the system's clock, where no test brings another. */
int64_t annal__monotonic_us(void);

/* Now, but not before last_us, unless that is minutes ahead: then the clock was set right. */
int64_t annal__clock_after(const struct clock *clock, int64_t last_us);

/* Into the years 0000 to 9999, which text can say. */
int64_t annal__time_clamp(int64_t time_us);

#endif
