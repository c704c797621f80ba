/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   events per day, 2026-03-02 to 2026-03-04: 1,060
 *
 *   800 ┤    ▅▅▅
 *       │    ███
 *   400 ┤    ███
 *       │▄▄▄ ███ ▁▁▁
 *       └───────────
 *        03-02   03-04
 *
 * A number is beside the row whose upper edge it is. A bucket with a value is never drawn as an
 * empty bucket.
 */
#include "tools/plot/chart_text.h"

#include <string.h>

enum { SCALE_COLUMNS = 7, ROWS = 6, EIGHTHS = 8, CELL_MAX = 6 };

static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

size_t chart_text_buckets(int columns)
{
    int room = columns - SCALE_COLUMNS - 2;
    return room < 10 ? 10 : (size_t)room;
}

/* Return how many columns of the terminal a bucket takes, with the gap after it. */
static int cell_columns(const struct chart *chart, int columns)
{
    size_t cell = chart_text_buckets(columns) / chart->count;
    return cell > CELL_MAX ? CELL_MAX : cell < 1 ? 1 : (int)cell;
}

static int eighths(int64_t value, int64_t scale, int rows)
{
    int height = (int)((double)value / (double)scale * rows * EIGHTHS + 0.5);
    return value > 0 && height == 0 ? 1 : height;
}

/* Return the block character that draws one row of a bucket; rows are counted from below. */
static const char *block_of(const struct series *series, const struct point *bucket, int64_t scale,
                            int row)
{
    int height = eighths(bucket->values[series->value], scale, ROWS) - row * EIGHTHS;
    if (height <= 0)
        return blocks[0];
    if (height < EIGHTHS)
        return blocks[height];
    int part = series->part < 0 ? 0 : eighths(bucket->values[series->part], scale, ROWS);
    return part >= (row + 1) * EIGHTHS ? "▒" : blocks[EIGHTHS];
}

static void put_scale(const struct chart *chart, int64_t scale, int row, struct drawing *out)
{
    char text[TEXT_BYTES] = "";
    if (row == ROWS - 1)
        text_short(text, scale, chart->unit);
    else if (row == ROWS / 2 - 1 && scale % 2 == 0)
        text_short(text, scale / 2, chart->unit);
    text_drawing_put(out, "%*s %s", SCALE_COLUMNS, text, text[0] != '\0' ? "┤" : "│");
}

/* Append a row of the chart, which ends with its last block, without spaces after it. */
static void put_row(const struct chart *chart, const struct series *series, int64_t scale, int row,
                    int cell, struct drawing *out)
{
    int gap = 0;
    put_scale(chart, scale, row, out);
    for (size_t i = 0; i < chart->count; i++) {
        const char *block = block_of(series, &chart->buckets[i], scale, row);
        if (block[0] == ' ') {
            gap += cell;
            continue;
        }
        int width = cell > 2 ? cell - 1 : cell;
        text_drawing_repeat(out, " ", gap);
        text_drawing_repeat(out, block, width);
        gap = cell - width;
    }
    text_drawing_put(out, "\n");
}

static void put_labels(const struct chart *chart, int cell, struct drawing *out)
{
    char text[TEXT_BYTES];
    size_t first, at = 0;
    int width = (int)strlen(chart_label(chart, chart->count - 1, text));
    size_t least = (size_t)((width + 2 + cell - 1) / cell);
    size_t step = chart_label_step(chart, least, &first);
    int room = (int)chart->count * cell;
    first = first < chart->count ? first : 0;
    text_drawing_put(out, "%*s", SCALE_COLUMNS + 2, "");
    for (size_t i = first; i < chart->count; i += step) {
        int column = (int)i * cell;
        if (i > first && column + width > (room > width ? room : width))
            break;
        text_drawing_put(out, "%*s%s", column - (int)at, "", chart_label(chart, i, text));
        at = (size_t)column + strlen(text);
    }
    text_drawing_put(out, "\n");
}

/* Append the name, the total and the lighter part of a series, such as "input 64,804,170, ▒
 * 63,249,080 from cache". */
static void put_name(const struct chart *chart, const struct series *series, struct drawing *out)
{
    char text[TEXT_BYTES];
    text_drawing_put(out, "%*s %s %s", SCALE_COLUMNS, "", series->name,
                     text_exact(text, series->sum, chart->unit));
    if (series->part_sum > 0)
        text_drawing_put(out, ", ▒ %s %s", text_exact(text, series->part_sum, chart->unit),
                         series->part_name);
    text_drawing_put(out, "\n");
}

void chart_text(const struct chart *chart, int columns, struct drawing *out)
{
    int cell = cell_columns(chart, columns);
    chart_title(chart, out);
    text_drawing_put(out, "\n");
    for (int i = 0; i < chart->series_count; i++) {
        const struct series *series = &chart->series[i];
        int64_t scale = chart_scale(series->most);
        if (series->most <= 0)
            continue;
        text_drawing_put(out, "\n");
        if (series->name != NULL)
            put_name(chart, series, out);
        for (int row = ROWS - 1; row >= 0; row--)
            put_row(chart, series, scale, row, cell, out);
        text_drawing_put(out, "%*s └", SCALE_COLUMNS, "");
        text_drawing_repeat(out, "─", (int)chart->count * cell);
        text_drawing_put(out, "\n");
        put_labels(chart, cell, out);
    }
}
