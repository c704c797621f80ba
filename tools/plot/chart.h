/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chart: counts in buckets of time, with a scale of round numbers.
 *
 * (1) Buckets are hours, days, weeks (from Monday) or months of the reader's zone. They follow each
 *     other without a hole from the first to the last; an empty bucket is a gap in the picture.
 * (2) If there are more buckets than a picture has room for, neighbours are added up.
 * (3) The series of one chart share its buckets, but not its scale: output tokens beside a hundred
 *     times as many input tokens would be invisible.
 */
#ifndef TOOLS_PLOT_CHART_H
#define TOOLS_PLOT_CHART_H

#include "tools/plot/text.h"

enum by { BY_NONE, BY_HOUR, BY_DAY, BY_WEEK, BY_MONTH };

/* Return the name, "hour"; empty for BY_NONE. */
const char *chart_by_name(enum by by);

/* Find the bucket of a time. */
int64_t chart_by_begin(enum by by, int64_t time_us);

/* Counts at some times. */
enum { POINT_VALUES = 5 };
struct point {
    int64_t time_us;
    int64_t values[POINT_VALUES];
};

struct points {
    struct point *at;
    size_t count;
};

bool chart_points_add(struct points *points, const struct point *point); /* false: no memory */
void chart_points_done(struct points *points);

struct series {
    const char *name;      /* "input"; NULL for a single series */
    const char *part_name; /* part drawn lighter, "from cache"; NULL: none */
    int value, part;       /* members of a point; part -1: none */
    int64_t sum, part_sum;
    int64_t most; /* largest value of a bucket */
};

enum { SERIES_MAX = 2 };

struct chart {
    const char *what; /* "events" */
    enum unit unit;
    struct series series[SERIES_MAX];
    int series_count;
    const struct points *points;
    int64_t from_us, to_us; /* start of the first bucket, end of the last */
    enum by by;
    int64_t merged;        /* periods in one bucket */
    struct point *buckets; /* time_us is the start */
    size_t count;
};

/* Find the widest time for which this many buckets are enough, or months. */
enum by chart_choose(int64_t from_us, int64_t to_us, size_t buckets);

/*
 * Fill the buckets of a chart whose what, unit, series, points, by, from_us and to_us are set, with
 * at most buckets_max of them. False: no memory.
 */
bool chart_fill(struct chart *chart, size_t buckets_max);
void chart_done(struct chart *chart);

/* Find the end of the scale: a round number, not below most. Half of it is round too, or too small
 * to be halved. */
int64_t chart_scale(int64_t most);

/* Write the title, "events per day, 2026-03-02 to 2026-03-15: 12,345". */
void chart_title(const struct chart *chart, struct drawing *out);

/* Write the label under a bucket: "03-02", "09:00", "2026-03". */
const char *chart_label(const struct chart *chart, size_t bucket, char text[TEXT_BYTES]);

/* Write the full label: "2026-03-02 09:00", "week of 2026-03-02", "2026-03". */
const char *chart_name(const struct chart *chart, size_t bucket, char text[TEXT_BYTES]);

/* Find the interval between labels, at least this many buckets, and the first label: at midnight
 * rather than at 23 o'clock. */
size_t chart_label_step(const struct chart *chart, size_t least, size_t *out_first);

#endif
