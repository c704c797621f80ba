/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/clock.h"

#include "tests/support/runner.h"

#include <time.h>

START_TEST(the_wall_clock_counts_microseconds_since_1970)
{
    const struct clock *clock = &annal__system_clock;
    int64_t before_us = (int64_t)time(NULL) * 1000000;
    int64_t now_us = clock->wall_us(clock->arg);
    ck_assert_int_ge(now_us, before_us - 1000000);
    ck_assert_int_lt(now_us, before_us + 60 * 1000000LL);
}
END_TEST

START_TEST(the_monotonic_clock_only_moves_forward)
{
    const struct clock *clock = &annal__system_clock;
    int64_t start_us = clock->monotonic_us(clock->arg);
    int64_t last_us = start_us;
    for (int i = 0; i < 1000; i++) {
        int64_t now_us = clock->monotonic_us(clock->arg);
        ck_assert_int_ge(now_us, last_us);
        last_us = now_us;
    }
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    ck_assert_int_ge(clock->monotonic_us(clock->arg) - start_us, 2000);
}
END_TEST

Suite *suite_clock(void)
{
    Suite *suite = suite_create("clock");
    TCase *tests = suite_case(suite, "clock", NULL, NULL);
    tcase_add_test(tests, the_wall_clock_counts_microseconds_since_1970);
    tcase_add_test(tests, the_monotonic_clock_only_moves_forward);
    return suite;
}
