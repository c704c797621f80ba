/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plot/chart_svg.h"

#include "tools/plot/svg.h"

#include <stdio.h>

enum {
    LEFT = 70,
    RIGHT = 24,
    WIDTH = PICTURE_WIDTH - LEFT - RIGHT,
    HEIGHT = 120,
    TITLE_HEIGHT = 32,
    NAME_HEIGHT = 22,
    AXIS_HEIGHT = 34,
    LABEL_WIDTH = 74,
    BAR_MAX = 48
};

static void put_scale(const struct chart *chart, int64_t scale, int y, struct drawing *out)
{
    char text[TEXT_BYTES];
    for (int half = scale % 2 == 0 ? 1 : 2; half <= 2; half++) {
        double at = y + HEIGHT - HEIGHT * half / 2.0;
        svg_line(out, LEFT, at, LEFT + WIDTH, at, "grid", (annal_slice){0});
        text_short(text, scale / 2 * half + (half == 2 ? scale % 2 : 0), chart->unit);
        svg_text(out, LEFT - 8, at + 4, ALIGN_RIGHT, "axis", annal_slice_of(text));
    }
    svg_text(out, LEFT - 8, y + HEIGHT + 4, ALIGN_RIGHT, "axis", ANNAL_SLICE("0"));
}

static void put_bar(const struct chart *chart, const struct series *series, size_t at,
                    int64_t scale, int y, struct drawing *out)
{
    char text[TEXT_BYTES];
    struct drawing tooltip = {0};
    const struct point *bucket = &chart->buckets[at];
    double cell = (double)WIDTH / (double)chart->count;
    double width = cell * 0.8 > BAR_MAX ? BAR_MAX : cell > 3 ? cell * 0.8 : cell;
    double x = LEFT + (double)at * cell + (cell - width) / 2;
    int64_t value = bucket->values[series->value];
    int64_t part = series->part < 0 ? 0 : bucket->values[series->part];
    double height = svg_height(value, scale, HEIGHT);
    double part_height = part > value ? height : svg_height(part, scale, HEIGHT);
    text_drawing_put(&tooltip, "%s: %s", chart_name(chart, at, text),
                     text_exact((char[TEXT_BYTES]){0}, value, chart->unit));
    text_drawing_put(&tooltip, " %s", series->name != NULL ? series->name : chart->what);
    if (part > 0)
        text_drawing_put(&tooltip, ", %s %s", text_exact(text, part, chart->unit),
                         series->part_name);
    if (height > part_height)
        svg_rect(out, x, y + HEIGHT - height, width, height - part_height, "bar",
                 text_drawing_slice(&tooltip));
    if (part_height > 0)
        svg_rect(out, x, y + HEIGHT - part_height, width, part_height, "part",
                 text_drawing_slice(&tooltip));
    text_drawing_done(&tooltip);
}

static void put_labels(const struct chart *chart, int y, struct drawing *out)
{
    char text[TEXT_BYTES];
    double cell = (double)WIDTH / (double)chart->count, free_from = LEFT;
    size_t first, step = chart_label_step(chart, (size_t)(LABEL_WIDTH / cell) + 1, &first);
    first = first < chart->count ? first : 0;
    for (size_t i = first; i < chart->count; i += step) {
        double x = LEFT + ((double)i + 0.5) * cell;
        bool left = x < LEFT + LABEL_WIDTH / 2.0;
        double begin = left ? LEFT + (double)i * cell : x - LABEL_WIDTH / 2.0;
        if (begin + LABEL_WIDTH > LEFT + WIDTH)
            break;
        if (begin < free_from)
            continue;
        chart_label(chart, i, text);
        svg_text(out, left ? begin : x, y + 16, left ? ALIGN_LEFT : ALIGN_MIDDLE, "axis",
                 annal_slice_of(text));
        free_from = begin + LABEL_WIDTH;
    }
}

/* Draw the name and the total of a series, and the name of its lighter part. Returns the y below
 * them. */
static int put_name(const struct chart *chart, const struct series *series, int y,
                    struct drawing *out)
{
    char text[TEXT_BYTES], line[2 * TEXT_BYTES];
    if (series->name == NULL)
        return y;
    snprintf(line, sizeof line, "%s %s", series->name, text_exact(text, series->sum, chart->unit));
    svg_rect(out, LEFT, y + 4, 10, 10, "bar", (annal_slice){0});
    svg_text(out, LEFT + 16, y + 13, ALIGN_LEFT, "name", annal_slice_of(line));
    if (series->part_sum > 0) {
        snprintf(line, sizeof line, "%s %s", series->part_name,
                 text_exact(text, series->part_sum, chart->unit));
        svg_rect(out, LEFT + 220, y + 4, 10, 10, "part", (annal_slice){0});
        svg_text(out, LEFT + 236, y + 13, ALIGN_LEFT, "name", annal_slice_of(line));
    }
    return y + NAME_HEIGHT;
}

int chart_svg(const struct chart *chart, int y, struct drawing *out)
{
    struct drawing title = {0};
    chart_title(chart, &title);
    svg_text(out, 16, y + 20, ALIGN_LEFT, "title", text_drawing_slice(&title));
    text_drawing_done(&title);
    y += TITLE_HEIGHT;
    for (int i = 0; i < chart->series_count; i++) {
        const struct series *series = &chart->series[i];
        int64_t scale = chart_scale(series->most);
        if (series->most <= 0)
            continue;
        y = put_name(chart, series, y, out) + 8;
        put_scale(chart, scale, y, out);
        for (size_t at = 0; at < chart->count; at++)
            put_bar(chart, series, at, scale, y, out);
        svg_line(out, LEFT, y + HEIGHT, LEFT + WIDTH, y + HEIGHT, "base", (annal_slice){0});
        put_labels(chart, y + HEIGHT, out);
        y += HEIGHT + AXIS_HEIGHT;
    }
    return y;
}
