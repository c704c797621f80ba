/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/calendar.h"

#include "journal/base/clock.h"
#include "journal/base/slice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define US         INT64_C(1000000)
#define HOUR_S     INT64_C(3600)
#define DAY_S      (24 * HOUR_S)
#define HORIZON_S  (26 * HOUR_S) /* greatest offset from UTC: no zone has a greater one */
#define EPOCH_WEEK (3 * DAY_S)   /* seconds from a Monday to 1970-01-01, which was a Thursday */

enum { AGE_MAX = 1000000, DATE_BYTES = 10 };

const char *const annal__period_words[PERIODS] = {"hour", "day", "week", "month"};

static int64_t floor_to(int64_t value, int64_t unit)
{
    int64_t rest = value % unit;
    return value - (rest < 0 ? rest + unit : rest);
}

static int64_t to_seconds(int64_t time_us)
{
    return floor_to(time_us, US) / US;
}

static int64_t offset_s(int64_t seconds)
{
    struct tm local;
    time_t time = (time_t)seconds;
    return localtime_r(&time, &local) == NULL ? 0 : (int64_t)local.tm_gmtoff;
}

static int64_t wall_s(int64_t seconds)
{
    return seconds + offset_s(seconds);
}

/* Find the first second after low, at most high, at which the offset from UTC differs from the
 * offset at low. */
static int64_t find_change(int64_t low, int64_t high)
{
    const int64_t before = offset_s(low);
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (offset_s(middle) == before)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Find the instants at which the local clock shows this time, in order, and return their number. If
 * the clock skips this time, out[0] is the instant of the change. */
static int find_instants(int64_t wall, int64_t out[2])
{
    const int64_t before = offset_s(wall - HORIZON_S), after = offset_s(wall + HORIZON_S);
    const int64_t first = wall - (before > after ? before : after);
    const int64_t second = wall - (before > after ? after : before);
    int count = 0;
    if (wall_s(first) == wall)
        out[count++] = first;
    if (second != first && wall_s(second) == wall)
        out[count++] = second;
    if (count == 0)
        out[0] = find_change(first - 1, second);
    return count;
}

int64_t annal__calendar_instant(int64_t wall_us)
{
    int64_t found[2];
    const int64_t wall = to_seconds(wall_us);
    const int64_t fraction_us = wall_us - wall * US;
    return find_instants(wall, found) == 0 ? found[0] * US : found[0] * US + fraction_us;
}

int64_t annal__calendar_wall(int64_t time_us)
{
    return annal__time_clamp(time_us + offset_s(to_seconds(time_us)) * US);
}

/* ---- Hours ---- */

/* hour_begin() returns the first instant of the hour that contains `at`, and hour_end() the first
 * instant after this hour. An hour begins and ends where the clock changes within it, unless the
 * clock shows the same hour after the change. */
static int64_t hour_begin(int64_t at)
{
    const int64_t wall = wall_s(at);
    const int64_t begin = at - (wall - floor_to(wall, HOUR_S));
    return offset_s(begin) == offset_s(at) ? begin : find_change(begin, at);
}

static int64_t hour_end(int64_t at)
{
    const int64_t wall = wall_s(at);
    const int64_t end = at + floor_to(wall, HOUR_S) + HOUR_S - wall;
    return offset_s(end) == offset_s(at) ? end : find_change(at, end);
}

/* ---- Longer periods ---- */

/* Return the number of months since the year 0. */
static int64_t month_of(int64_t wall)
{
    char text[ANNAL_TIME_BYTES];
    annal_time_format(wall * US, text);
    return strtol(text, NULL, 10) * 12 + strtol(text + 5, NULL, 10) - 1;
}

static int64_t month_wall(int64_t month)
{
    char text[sizeof "-2147483648-00-01"];
    int64_t wall_us = 0;
    snprintf(text, sizeof text, "%04d-%02d-01", (int)(month / 12), (int)(month % 12 + 1));
    /* annal_time_parse() refuses the year 10000, whose first month follows the year 9999 */
    if (annal_time_parse(annal_slice_of(text), &wall_us, NULL) < 0)
        return month_wall(month - 1) + 31 * DAY_S;
    return wall_us / US;
}

/* Return the local time at which a period begins or, if `after` is 1, at which the next period
 * begins. */
static int64_t period_wall(enum period period, int64_t wall, int after)
{
    if (period == PERIOD_MONTH)
        return month_wall(month_of(wall) + after);
    if (period == PERIOD_WEEK)
        return floor_to(wall + EPOCH_WEEK, 7 * DAY_S) - EPOCH_WEEK + after * 7 * DAY_S;
    return floor_to(wall, DAY_S) + after * DAY_S;
}

int64_t annal__calendar_period_begin(enum period period, int64_t time_us)
{
    const int64_t at = to_seconds(annal__time_clamp(time_us));
    if (period == PERIOD_HOUR)
        return hour_begin(at) * US;
    return annal__calendar_instant(period_wall(period, wall_s(at), 0) * US);
}

int64_t annal__calendar_period_end(enum period period, int64_t time_us)
{
    const int64_t at = to_seconds(annal__time_clamp(time_us));
    if (period == PERIOD_HOUR)
        return hour_end(at) * US;
    return annal__calendar_instant(period_wall(period, wall_s(at), 1) * US);
}

/* ---- Names ---- */

/* Write the name of a week, such as "2026-W10": the year of a week is the year of its Thursday. */
static void name_week(int64_t wall, char out[PERIOD_NAME_BYTES])
{
    char text[ANNAL_TIME_BYTES];
    int64_t january_us = 0;
    const int64_t thursday = period_wall(PERIOD_WEEK, wall, 0) + 3 * DAY_S;
    annal_time_format(thursday * US, text);
    memcpy(text + 5, "01-01", 5);
    text[10] = '\0';
    (void)!annal_time_parse(annal_slice_of(text), &january_us, NULL);
    snprintf(out, PERIOD_NAME_BYTES, "%.4s-W%02d", text,
             (int)((thursday - january_us / US) / (7 * DAY_S)) + 1);
}

static void name_hour(int64_t at, const char *text, char out[PERIOD_NAME_BYTES])
{
    int64_t found[2];
    const int64_t offset = offset_s(at);
    int length = snprintf(out, PERIOD_NAME_BYTES, "%.13s", text);
    if (find_instants(floor_to(at + offset, HOUR_S), found) > 1 ||
        find_instants(floor_to(at + offset, HOUR_S) + HOUR_S - 1, found) > 1)
        snprintf(out + length, PERIOD_NAME_BYTES - (size_t)length, "%c%02d:%02d",
                 offset < 0 ? '-' : '+', (int)(llabs(offset) / HOUR_S),
                 (int)(llabs(offset) / 60 % 60));
}

void annal__calendar_period_name(enum period period, int64_t time_us, char out[PERIOD_NAME_BYTES])
{
    char text[ANNAL_TIME_BYTES];
    const int64_t at = to_seconds(annal__time_clamp(time_us));
    annal_time_format(wall_s(at) * US, text);
    if (period == PERIOD_HOUR)
        name_hour(at, text, out);
    else if (period == PERIOD_WEEK)
        name_week(wall_s(at), out);
    else
        snprintf(out, PERIOD_NAME_BYTES, "%.*s", period == PERIOD_DAY ? 10 : 7, text);
}

/* ---- What users write ---- */

bool annal__calendar_read_age(annal_slice text, int64_t *out_us)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', HOUR_S}, {'d', DAY_S}, {'w', 7 * DAY_S}};
    int64_t count = 0;
    if (text.len < 2 || text.len > 8)
        return false;
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        count = count * 10 + (text.ptr[i] - '0');
    }
    for (size_t i = 0; count <= AGE_MAX && i < sizeof units / sizeof units[0]; i++) {
        if (units[i].unit == text.ptr[text.len - 1]) {
            *out_us = count * units[i].seconds * US;
            return true;
        }
    }
    return false;
}

static bool has_zone(annal_slice text)
{
    char last = text.ptr[text.len - 1];
    bool zone = last == 'Z' || last == 'z';
    for (size_t i = DATE_BYTES; i < text.len; i++)
        zone = zone || text.ptr[i] == '+' || text.ptr[i] == '-';
    return zone;
}

bool annal__calendar_read_instant(annal_slice text, int64_t now_us, int64_t *out_us)
{
    int64_t time_us = 0;
    const bool yesterday = annal__slice_is(text, "yesterday");
    if (yesterday || annal__slice_is(text, "today")) {
        *out_us = annal__calendar_period_begin(PERIOD_DAY, now_us);
        if (yesterday)
            *out_us = annal__calendar_period_begin(PERIOD_DAY, *out_us - 1);
    } else if (annal__calendar_read_age(text, &time_us)) {
        *out_us = now_us - time_us;
    } else if (text.len > 0 && annal_time_parse(text, &time_us, NULL) == ANNAL_OK) {
        *out_us = has_zone(text) ? time_us : annal__calendar_instant(time_us);
    } else {
        return false;
    }
    return true;
}
