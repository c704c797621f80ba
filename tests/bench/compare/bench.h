/* SPDX-License-Identifier: Apache-2.0 */
/* What the whole run and the growth curves have in common. */
#pragma once

#include "tests/bench/compare/report.h"

enum bench_size { WHOLE, QUICK, TINY }; /* tiny: whether it works, not how fast anything is */

#define TINY_SECONDS 0.05

struct options {
    enum bench_size size;
    const char *only, *dir, *out;
    unsigned runs;
    uint64_t seed;
    bool half; /* PAYLOADS_HALF_MIX */
    bool no_fill, list, growth, longest;
};

struct bench {
    struct options options;
    bool some_contenders; /* options.only names some; else all */
    bool some_workloads;  /* or curves */
    char dir[4096];       /* of all runs; made by us */
    struct payloads *payloads;
    struct report report;
};

/* Whether a comma-separated list of names contains this name. */
bool bench_names(const char *list, const char *name);

/*
 * Let every contender that is wanted do a workload, and say how it went. Returns how many failed;
 * -1: no memory. The workload must live as long as the report.
 */
int bench_turn(struct bench *bench, const struct workload *workload,
               const struct payloads *payloads, unsigned number);

/* The growth curves that are wanted, drawn into options.out. As bench_turn(). */
int growth_run(struct bench *bench);

/* The name of a curve; NULL after the last curve. */
const char *growth_name(size_t number);
