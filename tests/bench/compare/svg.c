/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/compare/svg.h"

#include <math.h>

#define WIDTH  860.0
#define HEIGHT 440.0
#define LEFT   78.0
#define RIGHT  690.0
#define TOP    48.0
#define BOTTOM 384.0

static const char *const colours[] = {"#c2410c", "#0f766e", "#1d4ed8", "#7e22ce", "#a16207",
                                      "#be185d", "#4d7c0f", "#0e7490", "#64748b", "#111827",
                                      "#b91c1c", "#5b21b6", "#047857"};
#define COLOURS (sizeof colours / sizeof *colours)

/* Powers of ten that hold all points. */
struct range {
    double from, to;
};

static struct range range_of(const struct svg_picture *picture, bool of_y)
{
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < picture->count; i++) {
        for (size_t j = 0; j < picture->lines[i].count; j++) {
            const struct svg_point *point = &picture->lines[i].points[j];
            double value = of_y ? point->y : point->x;
            least = fmin(least, value);
            most = fmax(most, value);
        }
    }
    if (most <= 0)
        return (struct range){0, 1};
    struct range range = {floor(log10(least)), ceil(log10(most))};
    if (range.from == range.to)
        range.to++;
    return range;
}

static double place_x(const struct range *range, double x)
{
    return LEFT + (log10(x) - range->from) / (range->to - range->from) * (RIGHT - LEFT);
}

static double place_y(const struct range *range, double y)
{
    return BOTTOM - (log10(y) - range->from) / (range->to - range->from) * (BOTTOM - TOP);
}

static void put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else
            fputc(*text, out);
    }
}

static void put_power(FILE *out, double power)
{
    double value = pow(10, power);
    if (power < 0)
        fprintf(out, "%g", value);
    else if (power < 3)
        fprintf(out, "%.0f", value);
    else if (power < 6)
        fprintf(out, "%.0f,000", value / 1e3);
    else
        fprintf(out, "%.0f million", value / 1e6);
}

static void draw_axes(const struct svg_picture *picture, const struct range *x,
                      const struct range *y, FILE *out)
{
    for (double power = y->from; power <= y->to; power++) {
        double at = place_y(y, pow(10, power));
        fprintf(out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#d4d4d8\"/>\n"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">",
                LEFT, at, RIGHT, at, LEFT - 8, at + 4);
        put_power(out, power);
        fputs("</text>\n", out);
    }
    for (double power = x->from; power <= x->to; power++) {
        double at = place_x(x, pow(10, power));
        fprintf(out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e4e4e7\"/>\n"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                at, TOP, at, BOTTOM, at, BOTTOM + 18);
        put_power(out, power);
        fputs("</text>\n", out);
    }
    fprintf(out, "<text x=\"%.1f\" y=\"24\" font-size=\"15\" font-weight=\"bold\">", LEFT);
    put_text(out, picture->title);
    fprintf(out, "</text>\n<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", (LEFT + RIGHT) / 2,
            BOTTOM + 40);
    put_text(out, picture->x_label);
    fprintf(out,
            "</text>\n<text transform=\"translate(16 %.1f) rotate(-90)\" "
            "text-anchor=\"middle\">",
            (TOP + BOTTOM) / 2);
    put_text(out, picture->y_label);
    fputs("</text>\n", out);
}

static void draw_line(const struct svg_line *line, const char *colour, const struct range *x,
                      const struct range *y, FILE *out)
{
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"%s points=\"", colour,
            line->bold ? "3" : "1.5", line->dashed ? " stroke-dasharray=\"6 4\"" : "");
    for (size_t i = 0; i < line->count; i++)
        fprintf(out, "%s%.1f,%.1f", i == 0 ? "" : " ", place_x(x, line->points[i].x),
                place_y(y, line->points[i].y));
    fputs("\"/>\n", out);
    for (size_t i = 0; i < line->count; i++)
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"%s\"/>\n",
                place_x(x, line->points[i].x), place_y(y, line->points[i].y),
                line->bold ? "3.5" : "2.5", colour);
}

static void draw_name(const struct svg_line *line, const char *colour, double at, FILE *out)
{
    fprintf(out,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
            "stroke-width=\"%s\"%s/>\n<text x=\"%.1f\" y=\"%.1f\"%s>",
            RIGHT + 16, at, RIGHT + 38, at, colour, line->bold ? "3" : "1.5",
            line->dashed ? " stroke-dasharray=\"6 4\"" : "", RIGHT + 46, at + 4,
            line->bold ? " font-weight=\"bold\"" : "");
    put_text(out, line->name);
    fputs("</text>\n", out);
}

/* The names stand in the order in which the lines end, the highest first. */
static size_t rank_of(const struct svg_picture *picture, size_t number)
{
    const struct svg_line *own = &picture->lines[number];
    double end = own->points[own->count - 1].y;
    size_t rank = 0;
    for (size_t i = 0; i < picture->count; i++) {
        const struct svg_line *line = &picture->lines[i];
        double other = line->count == 0 ? 0 : line->points[line->count - 1].y;
        rank += other > end || (other == end && i < number);
    }
    return rank;
}

void svg_draw(const struct svg_picture *picture, FILE *out)
{
    struct range x = range_of(picture, false), y = range_of(picture, true);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
            "height=\"%.0f\" font-family=\"system-ui, sans-serif\" font-size=\"12\" "
            "fill=\"#27272a\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_axes(picture, &x, &y, out);
    for (size_t i = 0; i < picture->count; i++) {
        const struct svg_line *line = &picture->lines[i];
        if (line->count == 0)
            continue;
        draw_line(line, colours[i % COLOURS], &x, &y, out);
        draw_name(line, colours[i % COLOURS], TOP + 8 + 20 * (double)rank_of(picture, i), out);
    }
    fputs("</svg>\n", out);
}
