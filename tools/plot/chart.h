/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chart: what was counted, in buckets of time, with a scale that people can read.
 *
 * (1) Buckets are hours, days, weeks (from Monday) or months of the reader's zone. They follow
 *     each other without a hole from the first to the last; one in which nothing was counted is a
 *     gap in the picture.
 * (2) Where there are more buckets than a picture has room for, neighbours are added up.
 * (3) Series of one chart share its buckets, not its scale: output tokens beside a hundred times as
 *     much input would not be seen.
 */
#ifndef TOOLS_PLOT_CHART_H
#define TOOLS_PLOT_CHART_H

#include "tools/plot/text.h"

enum by { BY_NONE, BY_HOUR, BY_DAY, BY_WEEK, BY_MONTH };

/* "hour"; of BY_NONE it is empty. */
const char *by_name(enum by by);

/* The bucket that a time is in. */
int64_t by_begin(enum by by, int64_t time_us);

/* What was counted at some times. */
enum { POINT_VALUES = 5 };
struct point {
    int64_t time_us;
    int64_t values[POINT_VALUES];
};

struct points {
    struct point *at;
    size_t count;
};

bool points_add(struct points *points, const struct point *point); /* false: no memory */
void points_done(struct points *points);

struct series {
    const char *name;      /* "input"; NULL where there is only one */
    const char *part_name; /* "from cache": what of it is drawn lighter; NULL: nothing is */
    int value, part;       /* which of the values of a point; part -1: none */
    int64_t sum, part_sum;
    int64_t most; /* of any bucket */
};

enum { SERIES_MAX = 2 };

struct chart {
    const char *what; /* "events" */
    enum unit unit;
    struct series series[SERIES_MAX];
    int series_count;
    const struct points *points;
    int64_t from_us, to_us; /* the first bucket begins, the last one ends */
    enum by by;
    int64_t merged;        /* so many of them are one bucket here */
    struct point *buckets; /* time_us is where it begins */
    size_t count;
};

/* The widest time for which so many buckets are enough, or months. */
enum by chart_choose(int64_t from_us, int64_t to_us, size_t buckets);

/*
 * Fill the buckets of a chart, of which what, unit, series, points, by, from_us and to_us are set,
 * at most buckets_max of them. False: no memory.
 */
bool chart_fill(struct chart *chart, size_t buckets_max);
void chart_done(struct chart *chart);

/* The end of the scale: a round number, not below most. A half of it is round too, or too small to
 * be halved. */
int64_t chart_scale(int64_t most);

/* "events per day, 2026-03-02 to 2026-03-15: 12,345" */
void chart_title(const struct chart *chart, struct drawing *out);

/* What stands under a bucket: "03-02", "09:00", "2026-03". */
const char *chart_label(const struct chart *chart, size_t bucket, char text[TEXT_BYTES]);

/* The same in full: "2026-03-02 09:00", "week of 2026-03-02", "2026-03". */
const char *chart_name(const struct chart *chart, size_t bucket, char text[TEXT_BYTES]);

/* Every how many buckets a label stands, when there is room at every so many only; and at which
 * one first: at midnight rather than at 23 o'clock. */
size_t chart_label_step(const struct chart *chart, size_t least, size_t *out_first);

#endif
