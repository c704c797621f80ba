/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/compare/bench.h"

#include <string.h>

#define FILL_SECONDS       120 /* at most, before each run */
#define QUICK_FILL_FIRST   10
#define QUICK_FILL_SECONDS 0.2

bool bench_names(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; at != NULL && *at != '\0';) {
        const char *comma = strchrnul(at, ',');
        if ((size_t)(comma - at) == len && strncmp(at, name, len) == 0)
            return true;
        at = *comma == ',' ? comma + 1 : comma;
    }
    return false;
}

static bool wants(const struct bench *bench, const struct contender *contender)
{
    if (bench->options.growth && !bench->some_contenders)
        return contender->durable;
    return !bench->some_contenders || bench_names(bench->options.only, contender->name);
}

static uint64_t fill(const struct bench *bench)
{
    double seconds = bench->options.size == WHOLE ? FILL_SECONDS
                     : bench->report.count == 0   ? QUICK_FILL_FIRST
                                                  : QUICK_FILL_SECONDS;
    return fill_page_cache(bench->dir, bench->options.no_fill ? 0 : seconds, &run_interrupted);
}

static void run_one(const struct bench *bench, const struct workload *workload,
                    const struct payloads *payloads, const struct contender *contender,
                    struct run_result *out)
{
    char why[BENCH_WHY_BYTES] = "", dir[sizeof bench->dir + 8];
    const char *not =
        contender->find != NULL && !contender->find(why) ? why : run_not(contender, workload);
    if (not != NULL) {
        *out = (struct run_result){.skipped = true};
        snprintf(out->error, sizeof out->error, "%s", not );
        return;
    }
    uint64_t free_bytes = fill(bench);
    snprintf(dir, sizeof dir, "%s/run", bench->dir);
    run(contender, workload, payloads, dir, out);
    out->free_bytes = free_bytes;
}

static void tell(const struct report_row *row)
{
    fprintf(stderr, "%-16s %-14s %u  ", row->workload->name, row->contender->name, row->run);
    if (row->result.error[0] != '\0')
        fprintf(stderr, "%s: %s\n", row->result.skipped ? "not run" : "FAILED", row->result.error);
    else
        fprintf(stderr, "%12.0f events/s   p50 %9.1f us   p99 %9.1f us\n", row_rate(row),
                (double)times_quantile_ns(&row->result.times, 0.5) / 1e3,
                (double)times_quantile_ns(&row->result.times, 0.99) / 1e3);
}

int bench_turn(struct bench *bench, const struct workload *workload,
               const struct payloads *payloads, unsigned number)
{
    int failed = 0;
    for (const struct contender *const *at = contenders; *at != NULL && !run_interrupted; at++) {
        struct report_row row = {workload, *at, number, {.error = ""}};
        if (!wants(bench, *at))
            continue;
        run_one(bench, workload, payloads, *at, &row.result);
        tell(&row);
        failed += row.result.error[0] != '\0' && !row.result.skipped;
        if (!report_add(&bench->report, &row))
            return -1;
    }
    return failed;
}
