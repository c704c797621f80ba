/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/calendar.h"

#include "tests/support/runner.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000)
#define HOUR   (3600 * SECOND)

#define BERLIN    "CET-1CEST,M3.5.0,M10.5.0/3"
#define LORD_HOWE "LHST-10:30LHDT-11,M10.1.0,M4.1.0"
#define NEPAL     "NPT-5:45"
#define APIA      "Pacific/Apia"

static void set_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static int64_t at(const char *text)
{
    int64_t time_us = 0;
    ck_assert_int_eq(annal_time_parse(annal_slice_of(text), &time_us, NULL), ANNAL_OK);
    return time_us;
}

static const struct {
    const char *zone;
    enum period period;
    const char *time, *begin, *end, *name;
} periods[] = {
    {"UTC", PERIOD_DAY, "2026-03-02T09:10:11.5Z", "2026-03-02", "2026-03-03", "2026-03-02"},
    {"UTC", PERIOD_HOUR, "2026-03-02T09:10:11Z", "2026-03-02T09:00", "2026-03-02T10:00",
     "2026-03-02T09"},
    {"UTC", PERIOD_WEEK, "2027-01-03", "2026-12-28", "2027-01-04", "2026-W53"},
    {"UTC", PERIOD_WEEK, "2027-01-04", "2027-01-04", "2027-01-11", "2027-W01"},
    {"UTC", PERIOD_WEEK, "2024-12-30", "2024-12-30", "2025-01-06", "2025-W01"},
    {"UTC", PERIOD_MONTH, "2026-12-31T23:59:59Z", "2026-12-01", "2027-01-01", "2026-12"},
    {"UTC", PERIOD_DAY, "1969-12-31T23:59:59.999999Z", "1969-12-31", "1970-01-01", "1969-12-31"},
    {BERLIN, PERIOD_DAY, "2026-03-29T12:00Z", "2026-03-28T23:00Z", "2026-03-29T22:00Z",
     "2026-03-29"},
    {BERLIN, PERIOD_DAY, "2026-10-25T12:00Z", "2026-10-24T22:00Z", "2026-10-25T23:00Z",
     "2026-10-25"},
    {BERLIN, PERIOD_MONTH, "2026-10-31T22:30Z", "2026-09-30T22:00Z", "2026-10-31T23:00Z",
     "2026-10"},
    {BERLIN, PERIOD_HOUR, "2026-10-25T00:30Z", "2026-10-25T00:00Z", "2026-10-25T01:00Z",
     "2026-10-25T02+02:00"},
    {BERLIN, PERIOD_HOUR, "2026-10-25T01:30Z", "2026-10-25T01:00Z", "2026-10-25T02:00Z",
     "2026-10-25T02+01:00"},
    {BERLIN, PERIOD_HOUR, "2026-03-29T01:30Z", "2026-03-29T01:00Z", "2026-03-29T02:00Z",
     "2026-03-29T03"},
    {NEPAL, PERIOD_HOUR, "2026-03-02T09:10Z", "2026-03-02T08:15Z", "2026-03-02T09:15Z",
     "2026-03-02T14"},
    {NEPAL, PERIOD_DAY, "2026-03-01T18:15Z", "2026-03-01T18:15Z", "2026-03-02T18:15Z",
     "2026-03-02"},
    {LORD_HOWE, PERIOD_HOUR, "2026-04-04T14:10Z", "2026-04-04T14:00Z", "2026-04-04T15:00Z",
     "2026-04-05T01+11:00"},
    {LORD_HOWE, PERIOD_HOUR, "2026-04-04T15:10Z", "2026-04-04T15:00Z", "2026-04-04T15:30Z",
     "2026-04-05T01+10:30"},
    {LORD_HOWE, PERIOD_HOUR, "2026-10-03T15:40Z", "2026-10-03T15:30Z", "2026-10-03T16:00Z",
     "2026-10-04T02"},
    {APIA, PERIOD_DAY, "2011-12-30T09:59Z", "2011-12-29T10:00Z", "2011-12-30T10:00Z", "2011-12-29"},
    {APIA, PERIOD_DAY, "2011-12-30T10:00Z", "2011-12-30T10:00Z", "2011-12-31T10:00Z", "2011-12-31"},
};

START_TEST(a_period_begins_and_ends_as_its_zone_says)
{
    char name[PERIOD_NAME_BYTES];
    set_zone(periods[_i].zone);
    if (periods[_i].zone[0] == 'P' && access("/usr/share/zoneinfo/" APIA, R_OK) != 0)
        return; /* no zone data on this machine */
    int64_t time_us = at(periods[_i].time);
    ck_assert_int_eq(annal__calendar_period_begin(periods[_i].period, time_us),
                     at(periods[_i].begin));
    ck_assert_int_eq(annal__calendar_period_end(periods[_i].period, time_us), at(periods[_i].end));
    annal__calendar_period_name(periods[_i].period, time_us, name);
    ck_assert_str_eq(name, periods[_i].name);
}
END_TEST

static const struct {
    const char *zone, *wall, *instant;
} walls[] = {
    {"UTC", "2026-03-29T02:30", "2026-03-29T02:30Z"},
    {BERLIN, "2026-03-29T01:59:59.5", "2026-03-29T00:59:59.5Z"},
    {BERLIN, "2026-03-29T02:30", "2026-03-29T01:00Z"}, /* the clock skips it */
    {BERLIN, "2026-10-25T02:30", "2026-10-25T00:30Z"}, /* the first of two */
    {BERLIN, "2026-10-25T03:00", "2026-10-25T02:00Z"},
    {APIA, "2011-12-30", "2011-12-30T10:00Z"},
    {APIA, "2011-12-31", "2011-12-30T10:00Z"},
};

START_TEST(a_wall_clock_time_means_its_first_instant)
{
    set_zone(walls[_i].zone);
    if (walls[_i].zone[0] == 'P' && access("/usr/share/zoneinfo/" APIA, R_OK) != 0)
        return;
    ck_assert_int_eq(annal__calendar_instant(at(walls[_i].wall)), at(walls[_i].instant));
}
END_TEST

/* Every quarter of an hour around both changes of a year. */
START_TEST(periods_follow_each_other_without_a_gap)
{
    static const char *const zones[] = {"UTC", BERLIN, LORD_HOWE, NEPAL};
    static const char *const days[] = {"2026-03-28", "2026-04-03", "2026-10-02", "2026-10-24"};
    set_zone(zones[_i]);
    for (size_t day = 0; day < sizeof days / sizeof days[0]; day++) {
        for (int quarter = 0; quarter < 4 * 24 * 3; quarter++) {
            int64_t time_us = at(days[day]) + quarter * (HOUR / 4);
            for (int i = PERIOD_HOUR; i < PERIODS; i++) {
                int64_t begin_us = annal__calendar_period_begin((enum period)i, time_us);
                int64_t end_us = annal__calendar_period_end((enum period)i, time_us);
                ck_assert(begin_us <= time_us && time_us < end_us);
                ck_assert_int_eq(annal__calendar_period_begin((enum period)i, end_us), end_us);
                ck_assert_int_eq(annal__calendar_period_end((enum period)i, begin_us), end_us);
                ck_assert_int_eq(annal__calendar_period_begin((enum period)i, end_us - 1),
                                 begin_us);
            }
        }
    }
}
END_TEST

Suite *suite_calendar(void)
{
    Suite *suite = suite_create("calendar");
    TCase *tests = suite_case(suite, "calendar", NULL, NULL);
    tcase_add_loop_test(tests, a_period_begins_and_ends_as_its_zone_says, 0,
                        sizeof periods / sizeof periods[0]);
    tcase_add_loop_test(tests, a_wall_clock_time_means_its_first_instant, 0,
                        sizeof walls / sizeof walls[0]);
    tcase_add_loop_test(tests, periods_follow_each_other_without_a_gap, 0, 4);
    return suite;
}
