/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The goals of Annal beside its peers. Rates of different machines cannot be compared, so most
 * goals are ratios within one run.
 */
#include "tests/bench/compare/report.h"

#include <string.h>

/* What the figure is compared with. */
enum against {
    RAW,   /* the limit's figure */
    PEER,  /* the rate of the best durable peer */
    NAMED, /* the figure of the contender `other` */
    FIXED  /* nothing: the figure itself has a bound */
};

struct goal {
    const char *workload, *contender, *what;
    figure_fn figure;
    enum against against;
    const char *other;
    double bound; /* at least, for rates; at most, for times */
    bool at_most;
};

static const struct goal goals[] = {
    {"A1", "annal", "rate, of raw", row_rate, RAW, NULL, 0.9, false},
    {"A1", "annal", "rate, of the best peer", row_rate, PEER, NULL, 1.25, false},
    {"A1", "annal", "p99, of raw's", row_p99_us, NAMED, "raw", 2, true},
    {"A2-threads", "annal", "rate, of raw", row_rate, RAW, NULL, 0.8, false},
    {"A2-threads", "annal", "rate, of the best peer", row_rate, PEER, NULL, 1.5, false},
    {"A2-threads", "annal", "p99, µs", row_p99_us, FIXED, NULL, 1200, true},
    {"A2-processes", "annal", "rate, of a file each", row_rate, NAMED, "jsonl-sync", 1.2, false},
    {"A3", "annal-journals", "rate, of lmdb", row_rate, NAMED, "lmdb", 2, false},
    {"A3", "annal-journals", "processor time, µs", row_cpu_us, FIXED, NULL, 5, true},
    {"A3", "annal", "rate until caught up, of lmdb", row_settled_rate, NAMED, "lmdb", 1, false},
    {"A4", "annal", "rate, of the best peer", row_rate, PEER, NULL, 2.5, false},
    {"R1", "annal", "rate, of raw", row_rate, RAW, NULL, 0.8, false},
    {"R2", "annal-journals", "p50, of raw's", row_p50_us, NAMED, "raw", 2, true},
    {"R2", "annal", "p50, of raw's", row_p50_us, NAMED, "raw", 4.6, true},
    {"R3-count", "annal", "p50, µs", row_p50_us, FIXED, NULL, 500, true},
};

static const struct contender *contender_of(const char *name)
{
    const struct contender *const *at = contenders;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at++;
    return *at;
}

static const struct workload *workload_of(const struct report *report, const char *name)
{
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->rows[i].workload->name, name) == 0)
            return report->rows[i].workload;
    return NULL;
}

/* The figure, or its ratio; 0: something did not run. */
static double value_of(const struct report *report, const struct goal *goal)
{
    const struct workload *workload = workload_of(report, goal->workload);
    if (workload == NULL)
        return 0;
    double value = report_middle(report, workload, contender_of(goal->contender), goal->figure);
    double base = 1;
    if (goal->against == NAMED)
        base = report_middle(report, workload, contender_of(goal->other), goal->figure);
    else if (goal->against != FIXED)
        base = report_best(report, workload, goal->against == RAW ? LIMITS : PEERS);
    return base > 0 ? value / base : 0;
}

void report_goals(const struct report *report, FILE *out)
{
    const char *head = "\n## What is asked for\n\n| workload | contender | figure | asked | here "
                       "| |\n| --- | --- | --- | ---: | ---: | --- |\n";
    for (size_t i = 0; i < sizeof goals / sizeof *goals; i++) {
        const struct goal *goal = &goals[i];
        double value = value_of(report, goal);
        if (value <= 0)
            continue;
        bool reached = goal->at_most ? value <= goal->bound : value >= goal->bound;
        fprintf(out, "%s| %s | %s | %s | %s %g | %.4g | %s |\n", head, goal->workload,
                goal->contender, goal->what, goal->at_most ? "at most" : "at least", goal->bound,
                value, reached ? "reached" : "**not reached**");
        head = "";
    }
}
