/* What came out, as JSON with every figure of every run, and as Markdown with medians and
 * ratios. */
#ifndef TESTS_BENCH_COMPARE_REPORT_H
#define TESTS_BENCH_COMPARE_REPORT_H

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

double row_rate(const struct report_row *row); /* events a second */

void report_json(const struct report *report, FILE *out);
void report_markdown(const struct report *report, FILE *out);

#endif
