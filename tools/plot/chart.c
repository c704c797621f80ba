/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plot/chart.h"

#include "journal/base/alloc.h"
#include "journal/base/calendar.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US_PER_HOUR (3600LL * 1000000)
#define US_PER_DAY  (24 * US_PER_HOUR)

enum { PERIODS_MAX = 200000 };

static const char *const names[] = {"", "hour", "day", "week", "month"};

const char *chart_by_name(enum by by)
{
    return names[by];
}

/* ---- The calendar ---- */

static enum period period_of(enum by by)
{
    return by == BY_NONE ? PERIOD_HOUR : (enum period)(PERIOD_HOUR + (by - BY_HOUR));
}

int64_t chart_by_begin(enum by by, int64_t time_us)
{
    return annal__calendar_period_begin(period_of(by), time_us);
}

static int64_t bucket_us(enum by by)
{
    static const int64_t days[] = {0, 0, 1, 7, 31};
    return by == BY_HOUR ? US_PER_HOUR : days[by] * US_PER_DAY;
}

enum by chart_choose(int64_t from_us, int64_t to_us, size_t buckets)
{
    int64_t span = to_us - from_us;
    enum by by = span <= 3 * US_PER_DAY ? BY_HOUR : BY_DAY;
    while (by < BY_MONTH && span / bucket_us(by) >= (int64_t)buckets)
        by++;
    return by;
}

/* ---- Points and buckets ---- */

void chart_points_add(struct points *points, const struct point *point)
{
    struct point *last = must_array_add(&points->at, &points->count, sizeof *last);
    *last = *point;
}

void chart_points_done(struct points *points)
{
    annal__free(points->at);
    *points = (struct points){0};
}

static void add_point(struct chart *chart, const struct point *point)
{
    /* the bucket of the point is from low on and before high */
    size_t low = 0, high = chart->count;
    if (point->time_us < chart->from_us || point->time_us >= chart->to_us)
        return;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (chart->buckets[middle].time_us <= point->time_us)
            low = middle;
        else
            high = middle;
    }
    for (int i = 0; i < POINT_VALUES; i++)
        chart->buckets[low].values[i] += point->values[i];
}

static void sum_up(struct chart *chart)
{
    for (int i = 0; i < chart->series_count; i++) {
        struct series *series = &chart->series[i];
        series->sum = series->part_sum = series->most = 0;
        for (size_t at = 0; at < chart->count; at++) {
            int64_t value = chart->buckets[at].values[series->value];
            series->sum += value;
            series->part_sum += series->part < 0 ? 0 : chart->buckets[at].values[series->part];
            series->most = value > series->most ? value : series->most;
        }
    }
}

/* Walk through the hours, days, weeks or months of the chart, and return their number. Once buckets
 * exist, set their starts. */
static int64_t walk_periods(struct chart *chart)
{
    int64_t count = 0;
    for (int64_t at_us = chart->from_us; at_us < chart->to_us; count++) {
        if (chart->buckets != NULL && count % chart->merged == 0)
            chart->buckets[count / chart->merged].time_us = at_us;
        at_us = annal__calendar_period_end(period_of(chart->by), at_us);
    }
    return count;
}

void chart_fill(struct chart *chart, size_t buckets_max)
{
    int64_t most = (int64_t)buckets_max;
    while (chart->by < BY_MONTH &&
           (chart->to_us - chart->from_us) / bucket_us(chart->by) > PERIODS_MAX)
        chart->by++;
    int64_t last_us = chart->to_us;
    chart->from_us = chart_by_begin(chart->by, chart->from_us);
    chart->to_us = annal__calendar_period_end(period_of(chart->by), last_us);
    int64_t count = walk_periods(chart);
    chart->merged = (count + most - 1) / most;
    chart->count = (size_t)((count + chart->merged - 1) / chart->merged);
    chart->buckets = must_zalloc(chart->count * sizeof *chart->buckets);
    (void)walk_periods(chart);
    for (size_t i = 0; i < chart->points->count; i++)
        add_point(chart, &chart->points->at[i]);
    sum_up(chart);
}

void chart_done(struct chart *chart)
{
    annal__free(chart->buckets);
    chart->buckets = NULL;
}

/* ---- Labels ---- */

int64_t chart_scale(int64_t most)
{
    static const int tenths[] = {10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100};
    int64_t unit = 1; /* a power of ten; the scale is one of `tenths` times this unit */
    if (most <= 10)
        return most <= 1 ? 1 : most + most % 2;
    while (unit <= INT64_MAX / 1000 && unit * 100 < most)
        unit *= 10;
    for (size_t i = 0; i < sizeof tenths / sizeof tenths[0]; i++) {
        if (tenths[i] * unit >= most)
            return tenths[i] * unit;
    }
    return most;
}

void chart_title(const struct chart *chart, struct drawing *out)
{
    char text[TEXT_BYTES], zone[HUMAN_ZONE_BYTES];
    text_drawing_put(out, "%s per ", chart->what);
    if (chart->merged > 1)
        text_drawing_put(out, "%d %ss", (int)chart->merged, chart_by_name(chart->by));
    else
        text_drawing_put(out, "%s", chart_by_name(chart->by));
    text_drawing_put(out, ", %s", text_day(text, chart->from_us));
    int64_t last_us = chart->to_us - 1;
    if (last_us - chart->from_us >= US_PER_DAY)
        text_drawing_put(out, " to %s", text_day(text, last_us));
    text_drawing_put(out, " %s", human_zone(zone));
    if (chart->series_count == 1)
        text_drawing_put(out, ": %s", text_exact(text, chart->series[0].sum, chart->unit));
}

const char *chart_label(const struct chart *chart, size_t bucket, char text[TEXT_BYTES])
{
    char time[ANNAL_TIME_BYTES];
    annal_time_format(annal__calendar_wall(chart->buckets[bucket].time_us), time);
    bool midnight = memcmp(time + 11, "00", 2) == 0;
    if (chart->by == BY_HOUR && !midnight)
        snprintf(text, TEXT_BYTES, "%.5s", time + 11);
    else if (chart->by == BY_MONTH)
        snprintf(text, TEXT_BYTES, "%.7s", time);
    else if (chart->to_us - chart->from_us > 366 * US_PER_DAY)
        snprintf(text, TEXT_BYTES, "%.10s", time);
    else
        snprintf(text, TEXT_BYTES, "%.5s", time + 5);
    return text;
}

const char *chart_name(const struct chart *chart, size_t bucket, char text[TEXT_BYTES])
{
    char time[ANNAL_TIME_BYTES];
    annal_time_format(annal__calendar_wall(chart->buckets[bucket].time_us), time);
    if (chart->by == BY_HOUR)
        snprintf(text, TEXT_BYTES, "%.10s %.5s", time, time + 11);
    else if (chart->by == BY_MONTH)
        snprintf(text, TEXT_BYTES, "%.7s", time);
    else
        snprintf(text, TEXT_BYTES, "%s%.10s", chart->by == BY_WEEK ? "week of " : "", time);
    if (chart->merged > 1)
        snprintf(text + strlen(text), TEXT_BYTES - strlen(text), " and %d %ss more",
                 (int)chart->merged - 1, chart_by_name(chart->by));
    return text;
}

size_t chart_label_step(const struct chart *chart, size_t least, size_t *out_first)
{
    static const size_t hours[] = {1, 2, 3, 6, 12, 24}, months[] = {1, 2, 3, 6, 12};
    char from[ANNAL_TIME_BYTES];
    bool by_month = chart->by == BY_MONTH;
    const size_t *steps = by_month ? months : hours;
    size_t count = by_month ? 5 : 6, step = 0;
    for (size_t i = 0; i < count && step == 0; i++)
        step = steps[i] >= least ? steps[i] : 0;
    *out_first = 0;
    if (step == 0 || chart->merged > 1 || chart->by == BY_DAY || chart->by == BY_WEEK)
        return step == 0 || (chart->by != BY_HOUR && !by_month) ? (least > 0 ? least : 1) : step;
    annal_time_format(annal__calendar_wall(chart->from_us), from);
    int64_t origin = strtol(from + (by_month ? 5 : 11), NULL, 10) - (by_month ? 1 : 0);
    size_t past = (size_t)(origin % (int64_t)step);
    *out_first = past == 0 || chart->count < 2 * step ? 0 : step - past;
    return step;
}
