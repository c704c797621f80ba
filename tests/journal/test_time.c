/* SPDX-License-Identifier: Apache-2.0 */
#include <annal/base.h>

#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000)

static const struct {
    const char *text;
    int64_t time_us;
} readable[] = {
    {"1970-01-01T00:00:00.000000Z", 0},
    {"2026-01-06T07:24:00.123456Z", INT64_C(1767684240123456)},
    {"2026-01-06T07:24:00Z", INT64_C(1767684240000000)},
    {"2026-01-06t07:24:00z", INT64_C(1767684240000000)},
    {"2026-01-06 07:24:00", INT64_C(1767684240000000)},
    {"2026-01-06T07:24Z", INT64_C(1767684240000000)},
    {"2026-01-06", INT64_C(1767657600000000)},
    {"2026-01-06T07:24:00.5Z", INT64_C(1767684240500000)},
    {"2026-01-06T07:24:00.1234569999Z", INT64_C(1767684240123456)},
    {"2026-01-06T09:24:00+02:00", INT64_C(1767684240000000)},
    {"2026-01-06T01:54:00-0530", INT64_C(1767684240000000)},
    {"2000-02-29T00:00:00Z", INT64_C(951782400000000)},
    {"1969-12-31T23:59:59.999999Z", -1},
    {"2016-12-31T23:59:60Z", INT64_C(1483228800000000)}, /* a leap second is the next one */
    {"0000-01-01T00:00:00Z", INT64_C(-62167219200000000)},
    {"9999-12-31T23:59:59.999999Z", INT64_C(253402300799999999)},
};

START_TEST(a_time_is_read_in_every_documented_form)
{
    int64_t time_us = 0;
    annal_error err = {0};
    annal_status status = annal_time_parse(annal_slice_of(readable[_i].text), &time_us, &err);
    ck_assert_msg(status == ANNAL_OK, "%s: %s", readable[_i].text, err.message);
    ck_assert_int_eq(time_us, readable[_i].time_us);
}
END_TEST

static const char *const unreadable[] = {
    "",
    "2026",
    "2026-01",
    "2026-1-6",
    "2026-13-01",
    "2026-00-01",
    "2026-01-32",
    "2026-02-29",
    "1900-02-29",
    "2026-01-00",
    "2026-01-06T",
    "2026-01-06T07",
    "2026-01-06T24:00:00Z",
    "2026-01-06T07:60:00Z",
    "2026-01-06T07:24:61Z",
    "2026-01-06T07:24:00.Z",
    "2026-01-06T07:24:00X",
    "2026-01-06T07:24:00Z ",
    " 2026-01-06",
    "2026-01-06T07:24:00+24:00",
    "2026-01-06T07:24:00+02:60",
    "2026-01-06T07:24:00+",
    "+2026-01-06",
    "yesterday",
};

START_TEST(an_invalid_time_is_refused_with_a_message_and_writes_nothing)
{
    int64_t time_us = 77;
    annal_error err = {0};
    ck_assert_int_eq(annal_time_parse(annal_slice_of(unreadable[_i]), &time_us, &err),
                     ANNAL_ERR_INVALID);
    ck_assert_int_eq(time_us, 77);
    ck_assert_ptr_nonnull(strstr(err.message, "is not a time"));
}
END_TEST

START_TEST(a_written_time_is_read_back_unchanged)
{
    struct random random = random_init(1);
    for (int i = 0; i < 20000; i++) {
        int64_t time_us = (int64_t)random_below(&random, UINT64_C(315569519999999999));
        time_us -= INT64_C(62167219200000000);
        char text[ANNAL_TIME_BYTES];
        annal_time_format(time_us, text);
        int64_t again = 0;
        if (strlen(text) != ANNAL_TIME_BYTES - 1 ||
            annal_time_parse(annal_slice_of(text), &again, NULL) != ANNAL_OK || again != time_us)
            ck_abort_msg("%" PRId64 " gave %s", time_us, text);
    }
}
END_TEST

START_TEST(the_calendar_agrees_with_the_system)
{
    struct random random = random_init(2);
    for (int i = 0; i < 20000; i++) {
        time_t seconds = (time_t)random_below(&random, UINT64_C(253402300800));
        struct tm tm = {0};
        char expected[32], text[ANNAL_TIME_BYTES];
        gmtime_r(&seconds, &tm);
        strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S.000000Z", &tm);
        annal_time_format((int64_t)seconds * SECOND, text);
        if (strcmp(expected, text) != 0)
            ck_abort_msg("%s is not %s", text, expected);
    }
}
END_TEST

START_TEST(times_beyond_four_digit_years_are_clamped)
{
    char text[ANNAL_TIME_BYTES];
    annal_time_format(INT64_MAX, text);
    ck_assert_str_eq(text, "9999-12-31T23:59:59.999999Z");
    annal_time_format(INT64_MIN, text);
    ck_assert_str_eq(text, "0000-01-01T00:00:00.000000Z");
}
END_TEST

Suite *suite_time(void)
{
    Suite *suite = suite_create("time");
    TCase *tests = suite_case(suite, "time", NULL, NULL);
    tcase_add_loop_test(tests, a_time_is_read_in_every_documented_form, 0,
                        sizeof readable / sizeof readable[0]);
    tcase_add_loop_test(tests, an_invalid_time_is_refused_with_a_message_and_writes_nothing, 0,
                        sizeof unreadable / sizeof unreadable[0]);
    tcase_add_test(tests, a_written_time_is_read_back_unchanged);
    tcase_add_test(tests, the_calendar_agrees_with_the_system);
    tcase_add_test(tests, times_beyond_four_digit_years_are_clamped);
    return suite;
}
