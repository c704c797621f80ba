/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/must.h"
#include "tools/plot/picture.h"
#include "tools/plot/svg.h"

/* Sizes in pixels. LINE is the height of the bars of a lane of one line, which has its name on the
 * left; the others have a scale there. */
enum {
    TITLE_HEIGHT = 34,
    LINE = 14,
    LINE_TOP = 5,
    LABEL_CHARS = 22,
    LABEL_WIDTH = 74,
    BAR_MAX = 48
};

static const char *const classes[] = {"", "bar", "cut", "open", "failed"}; /* by enum mark */

static double slot_x(const struct picture *picture, double slot)
{
    return picture->left + slot * picture->width / picture->slots;
}

static void begin_panel(struct picture *picture, const struct picture_row *row)
{
    picture->bottom += picture->bottom > 0 && row->text.len > 0 ? 12 : 0;
    picture->slots = row->at;
    picture->width = row->until;
    picture->height = (int)row->value;
    picture->left = (int)row->part;
    if (row->text.len > 0) {
        SCOPED_BUF title = {0};
        must_printf(&title, "%.*s%s%.*s", ANNAL_FMT(row->text), row->more.len > 0 ? ": " : "",
                    ANNAL_FMT(row->more));
        svg_text(&picture->drawn, 16, picture->bottom + 20, ALIGN_LEFT, "title",
                 annal__buf_slice(&title));
        picture->bottom += TITLE_HEIGHT;
    }
    picture->top = picture->bottom;
}

static void begin_line(struct picture *picture, const struct picture_row *row)
{
    SCOPED_BUF label = {0};
    struct buf *out = &picture->drawn;
    int y = picture->bottom, width = text_width(row->text);
    svg_rect(out, picture->left, y + 2, picture->width, LINE + 2 * LINE_TOP - 4, "frame",
             (annal_slice){0});
    text_fit(&label, row->text, width < LABEL_CHARS ? width : LABEL_CHARS, true);
    svg_text(out, picture->left - 10, y + 16, ALIGN_RIGHT, "", annal__buf_slice(&label));
    svg_text(out, picture->left + picture->width + 10, y + 16, ALIGN_LEFT, "name", row->more);
    picture->lane = y + LINE_TOP;
    picture->bottom = y + LINE + 2 * LINE_TOP;
}

static void put_name(struct picture *picture, const char *class, int x, annal_slice name)
{
    if (name.len == 0)
        return;
    svg_rect(&picture->drawn, picture->left + x, picture->bottom + 4, 10, 10, class,
             (annal_slice){0});
    svg_text(&picture->drawn, picture->left + x + 16, picture->bottom + 13, ALIGN_LEFT, "name",
             name);
}

static void begin_bars(struct picture *picture, const struct picture_row *row)
{
    struct buf *out = &picture->drawn;
    const annal_slice numbers[] = {ANNAL_SLICE("0"), row->low, row->high};
    put_name(picture, "bar", 0, row->text);
    put_name(picture, "part", 220, row->more);
    picture->lane = picture->bottom + (row->text.len > 0 ? 30 : 8);
    for (int half = 0; half <= 2; half++) {
        double y = picture->lane + picture->height - picture->height * half / 2.0;
        if (numbers[half].len == 0)
            continue;
        svg_line(out, picture->left, y, picture->left + picture->width, y,
                 half == 0 ? "base" : "grid", (annal_slice){0});
        svg_text(out, picture->left - 8, y + 4, ALIGN_RIGHT, "axis", numbers[half]);
    }
    picture->bottom = picture->lane + picture->height;
}

static void put_bar(struct picture *picture, const struct picture_row *row)
{
    struct buf *out = &picture->drawn;
    double cell = (double)picture->width / picture->slots, top = picture->lane;
    double full = picture->height, x = slot_x(picture, row->at);
    double width = cell * (row->until - row->at + 1) - 0.5;
    bool chart = picture->height > LINE;
    if (row->mark == MARK_CUT) {
        x += (width + 0.5) / 2;
        svg_line(out, x, picture->top, x, picture->bottom, "cut", row->more);
        return;
    }
    if (chart) {
        width = cell * 0.8 > BAR_MAX ? BAR_MAX : cell > 3 ? cell * 0.8 : cell;
        x += (cell - width) / 2;
    } else if (width < 3) {
        width = 3;
    }
    double height = row->has_value ? svg_height(row->value, picture->most, full) : full;
    double part = chart ? svg_height(row->part, picture->most, full) : 0;
    part = part > height ? height : part;
    if (height > part)
        svg_rect(out, x, top + full - height, width, height - part, classes[row->mark], row->more);
    if (part > 0)
        svg_rect(out, x, top + full - part, width, part, "part", row->more);
}

/* Append a label if there is room. The label at the right end is the first row. */
static void put_tick(struct picture *picture, const struct picture_row *row)
{
    int end = picture->left + picture->width, y = picture->bottom + 16;
    bool middle = row->mark == MARK_MIDDLE, first = picture->last != TICK;
    double x = slot_x(picture, row->at + (middle ? 0.5 : 0));
    if (first)
        picture->used = picture->left;
    if (row->mark == MARK_RIGHT) {
        svg_text(&picture->drawn, end, y, ALIGN_RIGHT, "axis", row->text);
        picture->end = end - LABEL_WIDTH;
        return;
    }
    middle = middle && x >= picture->left + LABEL_WIDTH / 2.0;
    double begin = middle ? x - LABEL_WIDTH / 2.0 : slot_x(picture, row->at);
    if (begin < picture->used || begin + LABEL_WIDTH > picture->end)
        return;
    svg_text(&picture->drawn, middle ? x : begin, y, middle ? ALIGN_MIDDLE : ALIGN_LEFT, "axis",
             row->text);
    picture->used = (int)(begin + LABEL_WIDTH + 0.999);
}

static void put_key(struct picture *picture, const struct picture_row *row)
{
    struct buf *out = &picture->drawn;
    int y = picture->bottom;
    picture->keys = picture->last == KEY ? picture->keys + 110 : picture->left;
    if (row->mark == MARK_CUT)
        svg_line(out, picture->keys + 5, y + 3, picture->keys + 5, y + 19, "cut", (annal_slice){0});
    else
        svg_rect(out, picture->keys, y + 6, 10, 10, classes[row->mark], (annal_slice){0});
    svg_text(out, picture->keys + 16, y + 15, ALIGN_LEFT, "name", row->text);
}

void picture_svg_row(struct picture *picture, const struct picture_row *row)
{
    if (picture->last == TICK && row->kind != TICK)
        picture->bottom += 28;
    if (picture->last == KEY && row->kind != KEY)
        picture->bottom += 26;
    if (row->kind == PANEL) {
        begin_panel(picture, row);
    } else if (row->kind == LANE) {
        picture->most = row->value;
        (picture->height > LINE ? begin_bars : begin_line)(picture, row);
        picture->end = picture->left + picture->width;
    } else if (row->kind == BAR) {
        put_bar(picture, row);
    } else if (row->kind == TICK) {
        put_tick(picture, row);
    } else if (row->kind == KEY) {
        put_key(picture, row);
    }
}
