/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plot/chart_svg.h"
#include "tools/plot/chart_text.h"
#include "tools/plot/plot.h"
#include "tools/plot/svg.h"

#include <inttypes.h>
#include <string.h>

enum { CHARTS_MAX = 3 };

struct charts {
    struct chart charts[CHARTS_MAX];
    int count;
};

/* Find the range of a picture: the range that the user gave, else from the first to the last event.
 * Every hour with tokens has an event, so this includes all tokens. Returns false if there are no
 * events. */
static bool find_range(const struct plot *plot, const struct points *events, int64_t *from_us,
                       int64_t *to_us)
{
    if (events->count == 0)
        return false;
    *from_us = plot->range.has_since ? plot->range.since_us : events->at[0].time_us;
    *to_us =
        plot->range.has_until ? plot->range.until_us - 1 : events->at[events->count - 1].time_us;
    return true;
}

static bool any(const struct points *points, int value)
{
    for (size_t i = 0; i < points->count; i++) {
        if (points->at[i].values[value] > 0)
            return true;
    }
    return false;
}

static void list_charts(const struct gathered *gathered, struct charts *out)
{
    const struct points *usage = &gathered->usage;
    if (gathered->events.count > 0)
        out->charts[out->count++] = (struct chart){.what = "events",
                                                   .points = &gathered->events,
                                                   .series = {{.value = EVENTS, .part = -1}},
                                                   .series_count = 1};
    if (any(usage, INPUT_TOKENS) || any(usage, OUTPUT_TOKENS))
        out->charts[out->count++] =
            (struct chart){.what = "tokens",
                           .points = usage,
                           .series = {{.name = "input",
                                       .part_name = "from cache",
                                       .value = INPUT_TOKENS,
                                       .part = CACHED_INPUT_TOKENS},
                                      {.name = "output", .value = OUTPUT_TOKENS, .part = -1}},
                           .series_count = 2};
    if (any(usage, COST_MICROUSD))
        out->charts[out->count++] = (struct chart){.what = "cost",
                                                   .unit = UNIT_MICROUSD,
                                                   .points = usage,
                                                   .series = {{.value = COST_MICROUSD, .part = -1}},
                                                   .series_count = 1};
}

enum { COLUMNS_USUAL = 80 };

static void make_charts(const struct plot *plot, const struct gathered *gathered,
                        size_t buckets_max, struct charts *out)
{
    int64_t from_us = 0, to_us = 0;
    if (!find_range(plot, &gathered->events, &from_us, &to_us))
        return;
    /* Whether to choose the unit of time as for a terminal of 80 columns: without --by, an SVG
     * does, so that it shows the same buckets as a terminal. */
    bool usual = plot->svg != NULL && plot->by == BY_NONE;
    size_t room = usual ? chart_text_buckets(COLUMNS_USUAL) : buckets_max;
    enum by by = plot->by != BY_NONE ? plot->by : chart_choose(from_us, to_us, room);
    list_charts(gathered, out);
    for (int i = 0; i < out->count; i++) {
        struct chart *chart = &out->charts[i];
        chart->by = by;
        chart->from_us = from_us;
        chart->to_us = to_us;
        chart_fill(chart, room);
    }
}

static void say_untimed(const struct gathered *gathered, struct drawing *out)
{
    char text[TEXT_BYTES];
    if (gathered->untimed > 0)
        text_drawing_put(
            out, "Not in the pictures: %s event%s whose time is unknown or in the future.\n",
            text_exact(text, gathered->untimed, UNIT_COUNT), gathered->untimed == 1 ? "" : "s");
}

static void say_costed(const struct gathered *gathered, struct drawing *out)
{
    if (gathered->costed_tokens > 0 && gathered->costed_tokens < gathered->tokens)
        text_drawing_put(out, "The cost covers %d %% of the tokens: the others have no price.\n",
                         (int)(100.0 * (double)gathered->costed_tokens / (double)gathered->tokens));
    if (gathered->computed_microusd > 0)
        text_drawing_put(out,
                         "$%.2f of the cost is computed from list prices: the logs contain none.\n",
                         (double)gathered->computed_microusd / 1e6);
}

/* ---- As a picture ---- */

static int put_charts(const struct plot *plot, const struct gathered *gathered,
                      const struct charts *charts)
{
    struct picture picture = {0};
    for (int i = 0; i < charts->count; i++) {
        const struct chart *chart = &charts->charts[i];
        if (plot->svg != NULL) {
            picture.height = chart_svg(chart, picture.height, &picture.drawn) + 12;
        } else {
            text_drawing_put(&picture.drawn, "%s", i > 0 ? "\n" : "");
            chart_text(chart, plot->columns, &picture.drawn);
        }
    }
    if (charts->count == 0)
        plot_say_empty(plot, &picture.notes);
    say_untimed(gathered, &picture.notes);
    say_costed(gathered, &picture.notes);
    return plot_put(plot, annal_store_path(plot->store), &picture);
}

static int draw_charts(const struct plot *plot, const struct gathered *gathered)
{
    struct charts charts = {0};
    size_t buckets = plot->svg != NULL ? CHART_SVG_BUCKETS : chart_text_buckets(plot->columns);
    make_charts(plot, gathered, buckets, &charts);
    int exit_status = put_charts(plot, gathered, &charts);
    for (int i = 0; i < charts.count; i++)
        chart_done(&charts.charts[i]);
    return exit_status;
}

/* ---- As JSON ---- */

static void print_bucket(const struct point *bucket, bool usage, enum by by)
{
    static const char *const names[] = {"input_tokens", "output_tokens", "cached_input_tokens",
                                        "cache_write_tokens", "cost_microusd"};
    printf("{\"plot\":\"%s\",\"by\":\"%s\",\"begin\":\"", usage ? "usage" : "events",
           chart_by_name(by));
    out_time(bucket->time_us);
    fputc('"', stdout);
    if (!usage)
        printf(",\"events\":%" PRId64, bucket->values[EVENTS]);
    for (int i = 0; usage && i < POINT_VALUES; i++)
        printf(",\"%s\":%" PRId64, names[i], bucket->values[i]);
    puts("}");
}

/*
 * Print the buckets that are not empty. Points are sorted by time, so a bucket is complete when a
 * point belongs to the next one.
 */
static void print_buckets(const struct points *points, bool usage, enum by by)
{
    struct point bucket = {0};
    by = by != BY_NONE ? by : usage ? BY_DAY : BY_HOUR;
    for (size_t i = 0; i < points->count; i++) {
        int64_t begin_us = chart_by_begin(by, points->at[i].time_us);
        if (i > 0 && begin_us != bucket.time_us) {
            print_bucket(&bucket, usage, by);
            bucket = (struct point){0};
        }
        bucket.time_us = begin_us;
        for (int j = 0; j < POINT_VALUES; j++)
            bucket.values[j] += points->at[i].values[j];
    }
    if (points->count > 0)
        print_bucket(&bucket, usage, by);
}

static int print_points(const struct plot *plot, const struct gathered *gathered)
{
    print_buckets(&gathered->events, false, plot->by);
    print_buckets(&gathered->usage, true, plot->by);
    return EXIT_DONE;
}

int plot_store(struct plot *plot)
{
    annal_error err = {0};
    struct gathered gathered = {0};
    int exit_status = EXIT_DONE;
    if (gather_charts(plot->view, &plot->range, &gathered, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == EXIT_DONE && (plot->svg != NULL || !plot->args->json))
        exit_status = draw_charts(plot, &gathered);
    if (exit_status == EXIT_DONE && plot->args->json)
        exit_status = print_points(plot, &gathered);
    gather_done(&gathered);
    return exit_status;
}
