/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plot/picture.h"

#include "journal/base/alloc.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"
#include "tools/plot/svg.h"

#include <string.h>

static annal_slice text_of(const annal_value *value)
{
    return value->kind == ANNAL_VALUE_TEXT ? value->bytes : (annal_slice){0};
}

/* Return the place of a word in a list that ends with NULL, or `other`. */
static int find(const char *const *words, const annal_value *value, int other)
{
    for (int i = 0; words[i] != NULL; i++)
        if (annal__slice_is(text_of(value), words[i]))
            return i;
    return other;
}

static struct picture_row read_row(const annal_value *values)
{
    static const char *const kinds[] = {"", "panel", "lane", "bar", "tick", "key", "note", NULL};
    static const char *const marks[] = {"-",    "bar",   "cut",    "open", "failed",
                                        "left", "right", "middle", NULL};
    return (struct picture_row){.kind = (enum element)find(kinds, &values[0], ELEMENT_NONE),
                                .text = text_of(&values[1]),
                                .more = text_of(&values[2]),
                                .high = text_of(&values[3]),
                                .low = text_of(&values[4]),
                                .mark = (enum mark)find(marks, &values[5], MARK_BAR),
                                .at = (int)values[6].integer,
                                .until = (int)values[7].integer,
                                .has_value = values[8].kind == ANNAL_VALUE_INTEGER,
                                .value = values[8].integer,
                                .part = values[9].integer};
}

static void draw(struct picture *picture, const struct picture_row *row)
{
    bool failed = row->kind == BAR && !row->has_value && row->part >= row->at;
    bool unseen = row->kind == KEY && ((picture->seen & 1u << row->mark) == 0 ||
                                       (row->mark == MARK_BAR && picture->columns > 0));
    if (row->kind == BAR)
        picture->seen |= 1u << row->mark | (failed ? 1u << MARK_FAILED : 0);
    if (unseen)
        return;
    if (picture->columns > 0)
        picture_text_row(picture, row);
    else
        picture_svg_row(picture, row);
    picture->last = row->kind;
}

int picture_row(void *arg, const annal_row *from)
{
    struct picture *picture = arg;
    const struct picture_row row = read_row(from->values);
    if (row.kind != NOTE)
        draw(picture, &row);
    else
        must_printf(&picture->notes, "%.*s\n", ANNAL_FMT(row.text));
    return 0;
}

/* Append a complete SVG: the elements of the picture, and its notes as lines of text. */
static void put_svg(const struct picture *picture, const char *title, struct buf *out)
{
    enum { LINE_HEIGHT = 20 };
    annal_slice rest = annal__buf_slice(&picture->notes);
    int height = picture->bottom + 16;
    for (size_t i = 0; i < rest.len; i++)
        height += rest.ptr[i] == '\n' ? LINE_HEIGHT : 0;
    svg_begin(out, PICTURE_WIDTH, height, annal_slice_of(title));
    must_append_slice(out, annal__buf_slice(&picture->drawn));
    for (int y = picture->bottom + LINE_HEIGHT; rest.len > 0; y += LINE_HEIGHT) {
        size_t len = (size_t)((const char *)memchr(rest.ptr, '\n', rest.len) - rest.ptr);
        svg_text(out, 16, y, ALIGN_LEFT, "name", (annal_slice){rest.ptr, len});
        rest = (annal_slice){rest.ptr + len + 1, rest.len - len - 1};
    }
    svg_end(out);
}

void picture_end(struct picture *picture, const char *title, struct buf *out)
{
    draw(picture, &(struct picture_row){.kind = ELEMENT_NONE});
    annal_slice drawn = annal__buf_slice(&picture->drawn);
    annal_slice notes = annal__buf_slice(&picture->notes);
    if (picture->columns > 0) {
        must_append_slice(out, drawn);
        must_printf(out, "%s", drawn.len > 0 && notes.len > 0 ? "\n" : "");
        must_append_slice(out, notes);
    } else {
        put_svg(picture, title, out);
    }
    struct buf *const texts[] = {&picture->drawn,    &picture->notes, &picture->name,
                                 &picture->sum,      &picture->high,  &picture->low,
                                 &picture->end_label};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        annal__buf_done(texts[i]);
    annal__free(picture->cells);
}
