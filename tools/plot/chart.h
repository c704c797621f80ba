/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chart: sums of values in buckets of time, with a scale of round numbers.
 *
 * (1) Buckets are hours, days, weeks (from Monday) or months of the user's time zone. They follow
 *     each other without a gap from the first to the last; an empty bucket is a gap in the picture.
 * (2) If there are more buckets than a picture has room for, neighbours are added up.
 * (3) The series of one chart share its buckets, but not its scale: output tokens beside a hundred
 *     times as many input tokens would be invisible.
 */
#ifndef TOOLS_PLOT_CHART_H
#define TOOLS_PLOT_CHART_H

#include "tools/plot/text.h"

enum by { BY_NONE, BY_HOUR, BY_DAY, BY_WEEK, BY_MONTH };

/* Return the name of a unit of time, such as "hour"; empty for BY_NONE. */
const char *chart_by_name(enum by by);

/* Return the beginning of the bucket that contains a time, in us. */
int64_t chart_by_begin(enum by by, int64_t time_us);

/* Values at a time, such as the events or tokens of an hour. */
enum { POINT_VALUES = 5 };
struct point {
    int64_t time_us;
    int64_t values[POINT_VALUES];
};

struct points {
    struct point *at;
    size_t count;
};

/* Add a point to the list. */
void chart_points_add(struct points *points, const struct point *point);
void chart_points_done(struct points *points);

struct series {
    const char *name; /* name of the series, such as "input"; NULL if the chart has only one */
    /* name of the part of a bar that is drawn lighter, such as "from cache"; NULL for none */
    const char *part_name;
    /* indexes in point.values of the value and of its lighter part; part is -1 for none */
    int value, part;
    int64_t sum, part_sum;
    int64_t most; /* largest value of this series in a bucket */
};

enum { SERIES_MAX = 2 };

struct chart {
    const char *what; /* name of the things that are counted, such as "events" */
    enum unit unit;
    struct series series[SERIES_MAX];
    int series_count;
    const struct points *points;
    int64_t from_us, to_us; /* start of the first bucket and end of the last one, in us */
    enum by by;
    int64_t merged;        /* number of hours, days, weeks or months in one bucket */
    struct point *buckets; /* sums for each bucket; time_us is the start of the bucket */
    size_t count;
};

/* Return the shortest unit of time that divides the range into at most `buckets` buckets, but hours
 * only for a range of up to 3 days; BY_MONTH if none does. */
enum by chart_choose(int64_t from_us, int64_t to_us, size_t buckets);

/*
 * Fill the buckets, at most buckets_max. The members what, unit, series, points, by, from_us and
 * to_us must be set.
 */
void chart_fill(struct chart *chart, size_t buckets_max);
void chart_done(struct chart *chart);

/* Return the upper end of a scale: a round number, not less than most. Half of it is round too, or
 * too small to be halved. */
int64_t chart_scale(int64_t most);

/* Append the title, such as "events per day, 2026-03-02 to 2026-03-15: 12,345". */
void chart_title(const struct chart *chart, struct drawing *out);

/* Write the short label of a bucket to text, and return text: "03-02", "09:00", "2026-03". */
const char *chart_label(const struct chart *chart, size_t bucket, char text[TEXT_BYTES]);

/* Write the full label of a bucket to text, and return text: "2026-03-02 09:00", "week of
 * 2026-03-02", "2026-03". */
const char *chart_name(const struct chart *chart, size_t bucket, char text[TEXT_BYTES]);

/* Return the number of buckets from one label to the next, at least `least`. *out_first is the
 * first bucket with a label, chosen so that labels of hours include midnight. */
size_t chart_label_step(const struct chart *chart, size_t least, size_t *out_first);

#endif
