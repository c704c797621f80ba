/* SPDX-License-Identifier: Apache-2.0 */
/* The results, as JSON with every figure of every run, and as Markdown with medians and ratios. */
#pragma once

#include "tests/bench/compare/run.h"

#include <stdio.h>

struct report_row {
    const struct workload *workload;
    const struct contender *contender;
    unsigned run; /* from 1 */
    struct run_result result;
};

struct report {
    struct machine machine;
    uint64_t seed;
    double mean_bytes;
    double making_us; /* processor time of making one event, which all of them bear */
    bool filled;      /* free memory was taken for clean page cache before each run */
    char *command;
    struct report_row *rows;
    size_t count, room;
};

/* False: no memory. */
bool report_add(struct report *report, const struct report_row *row);
void report_done(struct report *report);

/* Figures of a row; 0 if it has no such figure. */
typedef double (*figure_fn)(const struct report_row *row);
double row_rate(const struct report_row *row);         /* events a second */
double row_settled_rate(const struct report_row *row); /* until index and tables had caught up */
double row_p50_us(const struct report_row *row);
double row_p99_us(const struct report_row *row);
double row_cpu_us(const struct report_row *row); /* of an event */

/* The median of the runs of one contender on one workload; 0 if none ran. */
double report_middle(const struct report *report, const struct workload *workload,
                     const struct contender *contender, figure_fn figure);

/* The best median of the contenders of a kind. */
enum whom { LIMITS, PEERS };
double report_best(const struct report *report, const struct workload *workload, enum whom whom);

/* Print the goals, and whether they were reached; omits goals without a row. goals.c. */
void report_goals(const struct report *report, FILE *out);

void report_json(const struct report *report, FILE *out);
void report_markdown(const struct report *report, FILE *out);
