/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the rows of a SELECT: bars above axes, on a terminal or as an SVG.
 *
 * (1) The columns of a row are kind, text, more, high, low, mark, at, until, value and part. Places
 *     (at, until) are slots of the axis, from 0.
 * (2) panel  an axis: `at` slots, each until columns wide (an SVG: until pixels for all), and what
 *            is left of it, part columns or pixels wide. text and more are its title, and value is
 *            the height of its lanes in lines or pixels.
 *     lane   a row of bars, of which the longest possible is value. In lanes of one line, text is
 *            its name, and more what stands right of it. In others, high and low are the numbers at
 *            the top and in the middle of its scale, text is its name, and more the name of the
 *            lighter part of bars; both may be NULL.
 *     bar    a bar of this value, of which part is lighter. Without a value, a span from one slot
 *            to another; mark is failed, open, cut, or NULL, and up to the slot part it failed.
 *            more is the tooltip.
 *     tick   a label under the axis; mark is left, right or middle, the side that is at the slot.
 *            Labels without room are left out.
 *     key    the meaning of a mark. It is left out if no bar has the mark; bar is for an SVG.
 *     note   a sentence under the picture.
 * (3) In a picture that has both, panels stand before notes; rows of a panel follow it in the order
 *     above.
 */
#pragma once

#include "tools/plot/text.h"

#include <annal/query.h>

enum { PICTURE_WIDTH = 960 };

enum element { ELEMENT_NONE, PANEL, LANE, BAR, TICK, KEY, NOTE };
/* MARK_NONE: nothing is drawn; a row without a mark has MARK_BAR */
enum mark {
    MARK_NONE,
    MARK_BAR,
    MARK_CUT,
    MARK_OPEN,
    MARK_FAILED,
    MARK_LEFT,
    MARK_RIGHT,
    MARK_MIDDLE
};

struct picture_row {
    enum element kind;
    annal_slice text, more, high, low;
    enum mark mark;
    int at, until;
    bool has_value;
    int64_t value, part;
};

struct cell {
    int eighths, light; /* height of the bar and of its lighter part, in eighths of a line */
    enum mark mark;     /* of a span */
};

struct picture {
    int columns; /* width of the terminal; 0: draw an SVG */
    struct buf drawn, notes;
    enum element last; /* kind of the row before */
    unsigned seen;     /* marks of the bars until now, as bits */

    /* the panel and the lane that are being drawn */
    int slots, width, left, height;
    int64_t most;
    struct buf name, sum, high, low; /* on a terminal */
    struct cell *cells;
    struct buf end_label;
    int used, end;         /* end of the last label under the axis, and of the room for labels */
    int top, lane, bottom; /* y in an SVG: of the panel, of the bars of the lane, and below it */
    int keys;              /* x of the next key */
};

/* Draw a row; an annal_row_fn. arg is a struct picture, which is zero at the beginning, except for
 * its columns. */
int picture_row(void *arg, const annal_row *row);

/* Append the complete picture to out, and free it. title is the title of an SVG. */
void picture_end(struct picture *picture, const char *title, struct buf *out);

/* Draw a row that is not a note: picture_text.c on a terminal, picture_svg.c as SVG. The kind
 * ELEMENT_NONE ends the picture. */
void picture_text_row(struct picture *picture, const struct picture_row *row);
void picture_svg_row(struct picture *picture, const struct picture_row *row);
