/* SPDX-License-Identifier: Apache-2.0 */
/* Growth curves: the same work with more sessions, processes, events, and larger ones. */
#include "tests/bench/compare/bench.h"
#include "tests/bench/compare/svg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define POINTS_MAX     8
#define CONTENDERS_MAX 32
#define THREADS_MOST   16
#define EVENT_BYTES    1000 /* where events are counted, so that 30 million fit on a disk */
#define LONG_EVENTS    30000000

enum curve_y { RATE, SETTLED_RATE, P50, MEGABYTES };

struct curve {
    const char *file, *title, *x_label, *y_label;
    enum curve_y y;
    double points[POINTS_MAX]; /* ends with 0 */
    double quick_most, tiny_most;
    void (*set)(struct workload *workload, double x);
};

static void set_sessions(struct workload *workload, double x)
{
    workload->sessions = (unsigned)x;
    workload->threads = x < THREADS_MOST ? (unsigned)x : THREADS_MOST;
}

static void set_processes(struct workload *workload, double x)
{
    workload->processes = workload->sessions = (unsigned)x;
}

static void set_events(struct workload *workload, double x)
{
    workload->events = (uint64_t)x;
    workload->sessions = 100;
    workload->batch = 1000;
    workload->stretch = 10;
    workload->fixed_bytes = EVENT_BYTES;
    workload->settled = true;
}

static void set_length(struct workload *workload, double x)
{
    workload->preload = (uint64_t)x;
    workload->fixed_bytes = EVENT_BYTES;
}

static void set_size(struct workload *workload, double x)
{
    workload->fixed_bytes = (size_t)x;
}

static const struct curve curves[] = {
    {"growth-sessions",
     "More sessions in one process",
     "sessions, written in turn by up to 16 threads",
     "durable events a second",
     RATE,
     {1, 16, 100, 1000, 10000},
     1000,
     16,
     set_sessions},
    {"growth-processes",
     "More processes, with a session each",
     "processes",
     "durable events a second",
     RATE,
     {1, 2, 4, 8, 16, 32, 64},
     16,
     2,
     set_processes},
    {"growth-events",
     "More events: bulk over 100 sessions, durable every 1,000",
     "events of 1 KB",
     "durable events a second",
     RATE,
     {1e4, 1e5, 1e6, LONG_EVENTS},
     1e5,
     1e4,
     set_events},
    {"growth-settled",
     "More events: the same until index and tables have caught up",
     "events of 1 KB",
     "events a second",
     SETTLED_RATE,
     {1e4, 1e5, 1e6, LONG_EVENTS},
     1e5,
     1e4,
     NULL},
    {"growth-length",
     "A longer session: one durable append",
     "events of 1 KB in the session",
     "median µs",
     P50,
     {1e4, 1e5, 1e6, LONG_EVENTS},
     1e5,
     1e4,
     set_length},
    {"growth-size",
     "Larger events, one writer, each durable",
     "bytes of an event",
     "MB of payload a second",
     MEGABYTES,
     {1e3, 1e4, 1e5, 1e6, 1e7},
     1e6,
     1e3,
     set_size},
};
#define CURVES (sizeof curves / sizeof *curves)

const char *growth_name(size_t number)
{
    return number < CURVES ? curves[number].file : NULL;
}

static bool wanted(const struct bench *bench, size_t number)
{
    return !bench->some_workloads || bench_names(bench->options.only, curves[number].file);
}

static bool takes(const struct bench *bench, const struct curve *curve, double x)
{
    if (x == LONG_EVENTS)
        return bench->options.longest;
    return x > 0 && (bench->options.size == WHOLE ||
                     x <= (bench->options.size == QUICK ? curve->quick_most : curve->tiny_most));
}

static double value_of(const struct report_row *row, enum curve_y y)
{
    const struct run_result *result = &row->result;
    switch (y) {
    case RATE:
        return row_rate(row);
    case SETTLED_RATE:
        return (double)result->events / result->settled_seconds;
    case P50:
        return (double)times_quantile_ns(&result->times, 0.5) / 1e3;
    default:
        return (double)result->bytes / 1e6 / result->seconds;
    }
}

/* ---- Running ---- */

/* Those of a curve; kept for the report. */
static struct workload *workloads[CURVES][POINTS_MAX];

static struct workload *make_workload(const struct bench *bench, const struct curve *curve,
                                      double x)
{
    struct workload *workload = calloc(1, sizeof *workload);
    char *title = NULL;
    if (workload == NULL || asprintf(&title, "%s: %.0f", curve->title, x) < 0) {
        free(workload);
        return NULL;
    }
    *workload = (struct workload){.name = curve->file,
                                  .title = title,
                                  .kind = WORKLOAD_APPEND,
                                  .processes = 1,
                                  .threads = 1,
                                  .sessions = 1,
                                  .batch = 1,
                                  .stretch = 1,
                                  .seconds = bench->options.size == WHOLE   ? 3
                                             : bench->options.size == QUICK ? 0.4
                                                                            : TINY_SECONDS};
    curve->set(workload, x);
    return workload;
}

static int run_point(struct bench *bench, const struct workload *workload)
{
    int failed = 0;
    struct payloads *payloads =
        workload->fixed_bytes == 0
            ? bench->payloads
            : payloads_new(bench->options.seed, workload->fixed_bytes, workload->sessions);
    for (unsigned n = 1; payloads != NULL && failed >= 0 && n <= bench->options.runs; n++) {
        int more = bench_turn(bench, workload, payloads, n);
        failed = more < 0 ? -1 : failed + more;
    }
    if (payloads != bench->payloads)
        payloads_free(payloads);
    return payloads == NULL ? -1 : failed;
}

static int run_curve(struct bench *bench, size_t number)
{
    const struct curve *curve = &curves[number];
    int failed = 0;
    for (size_t i = 0; i < POINTS_MAX && failed >= 0; i++) {
        if (!takes(bench, curve, curve->points[i]))
            continue;
        workloads[number][i] = make_workload(bench, curve, curve->points[i]);
        if (workloads[number][i] == NULL)
            return -1;
        fprintf(stderr, "%s %.0f\n", curve->x_label, curve->points[i]);
        int more = run_point(bench, workloads[number][i]);
        failed = more < 0 ? -1 : failed + more;
    }
    return failed;
}

/* ---- Drawing ---- */

static double middle(const struct report *report, const struct workload *workload,
                     const struct contender *contender, enum curve_y y)
{
    double values[64];
    size_t count = 0;
    for (size_t i = 0; i < report->count && count < 64; i++) {
        const struct report_row *row = &report->rows[i];
        if (row->workload == workload && row->contender == contender &&
            row->result.error[0] == '\0')
            values[count++] = value_of(row, y);
    }
    return median(values, count);
}

static void draw(const struct bench *bench, size_t number, size_t of, FILE *out)
{
    struct svg_point points[CONTENDERS_MAX][POINTS_MAX];
    struct svg_line lines[CONTENDERS_MAX];
    size_t count = 0;
    for (; contenders[count] != NULL && count < CONTENDERS_MAX; count++) {
        const struct contender *contender = contenders[count];
        lines[count] = (struct svg_line){.name = contender->name,
                                         .points = points[count],
                                         .bold = contender->ours,
                                         .dashed = contender->limit || !contender->durable};
        for (size_t i = 0; i < POINTS_MAX; i++) {
            double y = workloads[of][i] == NULL
                           ? 0
                           : middle(&bench->report, workloads[of][i], contender, curves[number].y);
            if (y > 0)
                points[count][lines[count].count++] =
                    (struct svg_point){curves[number].points[i], y};
        }
    }
    svg_draw(&(struct svg_picture){curves[number].title, curves[number].x_label,
                                   curves[number].y_label, lines, count},
             out);
}

static bool draw_file(const struct bench *bench, size_t number, size_t of)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s.svg", bench->options.out, curves[number].file);
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        fprintf(stderr, "annal-bench: write %s: %s\n", path, strerror(errno));
        return false;
    }
    draw(bench, number, of, file);
    return fclose(file) == 0;
}

static bool is_viewed_again(size_t number)
{
    return number + 1 < CURVES && curves[number + 1].set == NULL;
}

int growth_run(struct bench *bench)
{
    int failed = 0;
    if (mkdir(bench->options.out, 0777) < 0 && errno != EEXIST) {
        fprintf(stderr, "annal-bench: make %s: %s\n", bench->options.out, strerror(errno));
        return -1;
    }
    for (size_t i = 0, ran = 0; i < CURVES && failed >= 0; i++) {
        int more = 0;
        if (curves[i].set != NULL) /* else it is another view of the previous curve */
            ran = i;
        if (ran == i && (wanted(bench, i) || (is_viewed_again(i) && wanted(bench, i + 1))))
            more = run_curve(bench, i);
        failed = more < 0 ? -1 : failed + more;
        if (failed >= 0 && wanted(bench, i) && !draw_file(bench, i, ran))
            failed = -1;
    }
    return failed;
}
