/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plot/gather.h"

#include "index/sys/view.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"

#include <stdio.h>
#include <string.h>

/* Read the hour in a value of a row. Returns false if it is not a time. */
static bool read_time(const annal_value *value, int64_t *out_us)
{
    return value->kind == ANNAL_VALUE_TEXT &&
           annal_time_parse(value->bytes, out_us, NULL) == ANNAL_OK;
}

static bool is_untimed(const struct gathered *gathered, int64_t time_us)
{
    return gathered->latest_us != 0 &&
           (time_us < UNTIMED_BEFORE_US || time_us >= gathered->latest_us);
}

static int add_events(void *arg, const annal_row *row)
{
    struct gathered *gathered = arg;
    struct point point = {.values = {[EVENTS] = row->values[1].integer}};
    if (!read_time(&row->values[0], &point.time_us) || is_untimed(gathered, point.time_us)) {
        gathered->untimed += point.values[EVENTS];
        return 0;
    }
    chart_points_add(&gathered->events, &point);
    return 0;
}

static int add_usage(void *arg, const annal_row *row)
{
    struct gathered *gathered = arg;
    struct point point = {0};
    if (!read_time(&row->values[0], &point.time_us) || is_untimed(gathered, point.time_us))
        return 0;
    for (size_t i = 0; i < POINT_VALUES; i++)
        point.values[i] = row->values[i + 1].integer;
    chart_points_add(&gathered->usage, &point);
    return 0;
}

static int add_costed(void *arg, const annal_row *row)
{
    struct gathered *gathered = arg;
    gathered->tokens = row->values[0].integer;
    gathered->costed_tokens = row->values[1].integer;
    gathered->computed_microusd = row->values[2].integer;
    return 0;
}

/* Convert both ends of a range to texts that compare as timestamps do. */
static void bind_range(const struct time_range *range, char texts[2][ANNAL_TIME_BYTES],
                       annal_value values[2])
{
    strcpy(texts[0], "");
    /* without an upper bound: ":" sorts after every digit, and so after every timestamp */
    strcpy(texts[1], ":");
    if (range->since_us != 0)
        annal_time_format(range->since_us, texts[0]);
    if (range->until_us != 0)
        annal_time_format(range->until_us, texts[1]);
    for (int i = 0; i < 2; i++)
        values[i] = (annal_value){.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(texts[i])};
}

annal_status gather_charts(annal__view *view, const struct time_range *range, struct gathered *out,
                           annal_error *err)
{
    char texts[2][ANNAL_TIME_BYTES];
    annal_value params[2];
    const annal_sql_options options = {.params = params, .param_count = 2};
    bind_range(range, texts, params);
    if (!range->has_since && !range->has_until)
        out->latest_us = annal__system_clock.wall_us(annal__system_clock.arg) + TIME_AHEAD_US;
    int status = annal__view_sql(
        view,
        ANNAL_SLICE(
            "SELECT annal_period_begin(timestamp, 'hour') AS hour, count(*) FROM event_index "
            "WHERE timestamp >= ?1 AND timestamp < ?2 GROUP BY hour ORDER BY hour"),
        &options, add_events, out, err);
    if (status >= 0)
        status = annal__view_sql(
            view,
            ANNAL_SLICE(
                "SELECT annal_period_begin(timestamp, 'hour') AS hour, SUM(input_tokens), "
                "SUM(output_tokens), SUM(cached_input_tokens), SUM(cache_write_tokens), "
                "CAST(round(round(SUM(cost_microusd), 6)) AS INTEGER) FROM usage_event_costs "
                "WHERE timestamp >= ?1 AND timestamp < ?2 GROUP BY hour ORDER BY hour"),
            &options, add_usage, out, err);
    if (status >= 0)
        status = annal__view_sql(
            view,
            ANNAL_SLICE(
                "SELECT SUM(tokens), SUM(costed_tokens), "
                "CAST(round(round(SUM(computed_microusd), 6)) AS INTEGER) FROM usage_event_costs "
                "WHERE timestamp >= ?1 AND timestamp < ?2"),
            &options, add_costed, out, err);
    return (annal_status)status;
}

void gather_done(struct gathered *gathered)
{
    chart_points_done(&gathered->events);
    chart_points_done(&gathered->usage);
}
