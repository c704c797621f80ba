/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   events per day, 2026-03-02 to 2026-03-04: 1,060        s1: 8 events, 2026-03-02T09:10:00Z
 *
 *   800 ┤    ▅▅▅                                              turns │    ████████│ 1
 *       │    ███                                               Bash │     ××××   │ 1
 *   400 ┤    ███                                             tokens │          █▁│ 1,060
 *       │▄▄▄ ███ ▁▁▁                                                 09:10:00
 *       └───────────
 *        03-02   03-04
 *
 * A number is beside the line whose upper edge it is. A slot with a value is never drawn as an
 * empty one.
 */
#include "tools/plot/picture.h"

#include "journal/base/alloc.h"
#include "tools/cli/must.h"

#include <string.h>

enum { EIGHTHS = 8 };

static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const glyphs[] = {" ", "█", "┊", "○", "×"}; /* by enum mark */

static void begin_panel(struct picture *picture, const struct picture_row *row)
{
    struct buf *out = &picture->drawn;
    must_printf(out, "%s", out->len > 0 ? "\n" : "");
    picture->slots = row->at;
    picture->width = row->until;
    picture->height = (int)row->value;
    picture->left = (int)row->part;
    if (row->text.len == 0)
        return;
    int width = text_width(row->text);
    bool wide = width + 2 + (int)row->more.len > picture->columns;
    text_fit(out, row->text, width, false);
    if (row->more.len > 0)
        must_printf(out, ":%s%.*s", wide ? "\n" : " ", ANNAL_FMT(row->more));
    must_printf(out, "\n\n");
}

static void keep(struct buf *out, annal_slice text)
{
    annal__buf_clear(out);
    must_append_slice(out, text);
}

static void begin_lane(struct picture *picture, const struct picture_row *row)
{
    keep(&picture->name, row->text);
    keep(&picture->sum, row->more);
    keep(&picture->high, row->high);
    keep(&picture->low, row->low);
    picture->most = row->value;
    annal__free(picture->cells);
    picture->cells = must_zalloc((size_t)picture->slots * sizeof *picture->cells);
}

static int eighths(const struct picture *picture, int64_t value)
{
    int full = picture->height * EIGHTHS;
    int height = picture->most > 0 ? (int)((double)value / (double)picture->most * full + 0.5) : 0;
    return value > 0 && height == 0 ? 1 : height < full ? height : full;
}

static void enter_bar(struct picture *picture, const struct picture_row *row)
{
    for (int at = row->at; at <= row->until && at < picture->slots; at++) {
        struct cell *cell = &picture->cells[at];
        enum mark mark = at <= row->part ? MARK_FAILED : row->mark;
        if (row->has_value) {
            cell->eighths = eighths(picture, row->value);
            cell->light = eighths(picture, row->part);
        } else if (mark > cell->mark) {
            cell->mark = mark;
        }
    }
}

/* Return the block that draws one line of a slot; lines are counted from below. */
static const char *block_of(const struct cell *cell, int line)
{
    int height = cell->eighths - line * EIGHTHS;
    if (cell->mark > MARK_NONE || height <= 0)
        return glyphs[cell->mark];
    if (height < EIGHTHS)
        return blocks[height];
    return cell->light >= (line + 1) * EIGHTHS ? "▒" : blocks[EIGHTHS];
}

static void put_slots(struct picture *picture, int line)
{
    struct buf *out = &picture->drawn;
    int drawn = picture->width > 2 ? picture->width - 1 : picture->width, gap = 0;
    for (int i = 0; i < picture->slots; i++) {
        const char *block = block_of(&picture->cells[i], line);
        if (block[0] == ' ') {
            gap += picture->width;
            continue;
        }
        text_repeat(out, " ", gap);
        text_repeat(out, block, drawn);
        gap = picture->width - drawn;
    }
    if (picture->height == 1)
        text_repeat(out, " ", gap);
}

/* Draw a lane of one line, with its name and its sum. */
static void end_line(struct picture *picture)
{
    struct buf *out = &picture->drawn;
    text_fit(out, annal__buf_slice(&picture->name), picture->left, true);
    must_printf(out, " │");
    put_slots(picture, 0);
    must_printf(out, "│ %.*s\n", ANNAL_FMT(annal__buf_slice(&picture->sum)));
}

static void end_bars(struct picture *picture)
{
    struct buf *out = &picture->drawn;
    annal_slice name = annal__buf_slice(&picture->name), part = annal__buf_slice(&picture->sum);
    if (name.len > 0)
        must_printf(out, "%*s %.*s%s%.*s\n", picture->left, "", ANNAL_FMT(name),
                    part.len > 0 ? ", ▒ " : "", ANNAL_FMT(part));
    for (int line = picture->height - 1; line >= 0; line--) {
        annal_slice number = {0};
        if (line == picture->height - 1 || line == picture->height / 2 - 1)
            number = annal__buf_slice(line == picture->height - 1 ? &picture->high : &picture->low);
        must_printf(out, "%*.*s %s", picture->left, ANNAL_FMT(number), number.len > 0 ? "┤" : "│");
        put_slots(picture, line);
        must_printf(out, "\n");
    }
    must_printf(out, "%*s └", picture->left, "");
    text_repeat(out, "─", picture->slots * picture->width);
    must_printf(out, "\n");
}

/* Append a label if there is room. The label at the right end is the first row, and drawn last. */
static void put_tick(struct picture *picture, const struct picture_row *row)
{
    int at = row->at * picture->width, len = (int)row->text.len;
    int end = picture->slots * picture->width;
    if (picture->last != TICK) {
        must_printf(&picture->drawn, "%*s", picture->left + 2, "");
        picture->used = -2;
        picture->end = end;
        annal__buf_clear(&picture->end_label);
    }
    if (row->mark == MARK_RIGHT) {
        if (end < 2 * len + 2)
            return;
        keep(&picture->end_label, row->text);
        picture->end = end - len - 2;
        return;
    }
    bool first = picture->used < 0;
    if (!first && (at < picture->used + 2 || at + len > picture->end))
        return;
    must_printf(&picture->drawn, "%*s%.*s", at - (first ? 0 : picture->used), "",
                ANNAL_FMT(row->text));
    picture->used = at + len;
}

static void end_ticks(struct picture *picture)
{
    annal_slice label = annal__buf_slice(&picture->end_label);
    int at = picture->slots * picture->width - (int)label.len;
    if (label.len > 0)
        must_printf(&picture->drawn, "%*s%.*s", at - picture->used, "", ANNAL_FMT(label));
    must_printf(&picture->drawn, "\n");
}

void picture_text_row(struct picture *picture, const struct picture_row *row)
{
    struct buf *out = &picture->drawn;
    enum element last = picture->last;
    if ((last == LANE || last == BAR) && row->kind != BAR)
        (picture->height == 1 ? end_line : end_bars)(picture);
    if (last == TICK && row->kind != TICK)
        end_ticks(picture);
    if (last == KEY && row->kind != KEY)
        must_printf(out, "\n");
    if (row->kind == PANEL)
        begin_panel(picture, row);
    else if (row->kind == LANE)
        begin_lane(picture, row);
    else if (row->kind == BAR)
        enter_bar(picture, row);
    else if (row->kind == TICK)
        put_tick(picture, row);
    else if (row->kind == KEY)
        must_printf(out, "%s%*s%s %.*s", last == KEY ? "" : "\n",
                    last == KEY ? 2 : picture->left + 2, "", glyphs[row->mark],
                    ANNAL_FMT(row->text));
}
