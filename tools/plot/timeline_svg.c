/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plot/timeline_svg.h"

#include "tools/cli/must.h"
#include "tools/plot/svg.h"

#include <string.h>

/* Sizes in pixels. SLOT is the width of a slot. */
enum {
    SLOT = 2,
    LEFT = 156,
    WIDTH = TIMELINE_SVG_SLOTS * SLOT,
    TITLE_HEIGHT = 36,
    ROW_HEIGHT = 24,
    BAR_HEIGHT = 14,
    BAR_TOP = 5,
    AXIS_HEIGHT = 26,
    LABEL_CHARS = 22,
    TIME_WIDTH = 78
};

/* Append what happened in a slot, such as "Bash, 10:38:20 to 10:39:40 (1 min 20 s), failed". */
static void tell(const struct row *row, const struct slot *slot, struct drawing *out)
{
    char text[TEXT_BYTES];
    text_drawing_put(out, "%s", row->role == ROLE_USER ? "user message" : "");
    if (row->role != ROLE_USER)
        must_append_text(&out->text, row->label);
    if (slot->begun > 1)
        text_drawing_put(out, ": %u", slot->begun);
    text_drawing_put(out, ", %s", text_time(text, slot->from_us));
    if (slot->to_us > slot->from_us) {
        text_drawing_put(out, " to %s", text_time_after(text, slot->to_us, slot->from_us));
        text_drawing_put(out, " (%s)", text_span(text, slot->to_us - slot->from_us));
    }
    if (row->kind == ROW_AMOUNTS)
        text_drawing_put(out, ": %s", text_exact(text, slot->amount, UNIT_COUNT));
    if (row->kind == ROW_SPANS && slot->failed > 0)
        text_drawing_put(out, slot->begun > 1 ? ", %u failed" : ", failed", slot->failed);
    if (slot->open > 0)
        text_drawing_put(out, row->role == ROLE_TOOL ? ", no result" : ", not ended");
}

/* Return the slot after the last one that the spans beginning in slot `from` cover, up to the next
 * slot in which a span begins. */
static int run_end(const struct timeline *timeline, const struct row *row, int from)
{
    int to = from + 1;
    while (row->kind == ROW_SPANS && to < timeline->slots && row->slots[to].busy &&
           row->slots[to].begun == 0)
        to++;
    return to;
}

static const char *class_of(const struct row *row, const struct slot *slot)
{
    if (row->role == ROLE_FAILURES || slot->failed > 0)
        return "failed";
    return row->role == ROLE_TOOL && slot->open == slot->begun ? "open" : "bar";
}

static void put_bars(const struct timeline *timeline, const struct row *row, int y,
                     struct drawing *out)
{
    for (int from = 0, to; from < timeline->slots; from = to) {
        const struct slot *slot = &row->slots[from];
        to = slot->begun > 0 ? run_end(timeline, row, from) : from + 1;
        if (slot->begun == 0)
            continue;
        struct drawing tooltip = {0};
        double width = (to - from) * SLOT > 3 ? (to - from) * SLOT - 0.5 : 3;
        double height =
            row->kind == ROW_AMOUNTS ? svg_height(slot->amount, row->most, BAR_HEIGHT) : BAR_HEIGHT;
        tell(row, slot, &tooltip);
        if (height > 0)
            svg_rect(out, LEFT + from * SLOT, y + BAR_TOP + BAR_HEIGHT - height, width, height,
                     class_of(row, slot), text_drawing_slice(&tooltip));
        text_drawing_done(&tooltip);
    }
}

static void put_row(const struct timeline *timeline, const struct row *row, int y,
                    struct drawing *out)
{
    struct drawing text = {0};
    svg_rect(out, LEFT, y + 2, WIDTH, ROW_HEIGHT - 4, "frame", (annal_slice){0});
    int width = text_width(annal_slice_of(row->label));
    text_drawing_fit(&text, annal_slice_of(row->label), width < LABEL_CHARS ? width : LABEL_CHARS,
                     true);
    svg_text(out, LEFT - 10, y + 16, ALIGN_RIGHT, "", text_drawing_slice(&text));
    text_drawing_done(&text);
    if (row->kind != ROW_PAUSES)
        put_bars(timeline, row, y, out);
    text = (struct drawing){0};
    timeline_sum(row, &text);
    svg_text(out, LEFT + WIDTH + 10, y + 16, ALIGN_LEFT, "name", text_drawing_slice(&text));
    text_drawing_done(&text);
}

/* Draw a line through all rows in each place where time was cut out. */
static void put_cuts(const struct timeline *timeline, int top, int bottom, struct drawing *out)
{
    char text[TEXT_BYTES];
    for (size_t i = 1; i < timeline->segment_count; i++) {
        const struct segment *before = &timeline->segments[i - 1], *after = before + 1;
        struct drawing tooltip = {0};
        double x = LEFT + (before->first + before->slots + after->first) * SLOT / 2.0;
        text_drawing_put(&tooltip, "pause, %s", text_time(text, before->to_us));
        text_drawing_put(&tooltip, " to %s", text_time_after(text, after->from_us, before->to_us));
        text_drawing_put(&tooltip, " (%s)", text_span(text, after->from_us - before->to_us));
        svg_line(out, x, top, x, bottom, "cut", text_drawing_slice(&tooltip));
        text_drawing_done(&tooltip);
    }
}

static void put_times(const struct timeline *timeline, int y, struct drawing *out)
{
    char text[TEXT_BYTES];
    const struct session *session = timeline->session;
    int64_t before_us = session->from_us;
    int end = LEFT + WIDTH, free_from = 0;
    bool ends = session->to_us > session->from_us;
    for (size_t i = 0; i < timeline->segment_count; i++) {
        const struct segment *segment = &timeline->segments[i];
        int x = LEFT + segment->first * SLOT;
        if (i > 0 && (x < free_from || x + TIME_WIDTH > end - (ends ? TIME_WIDTH : 0)))
            continue;
        timeline_label(segment->from_us, before_us, text);
        svg_text(out, x, y + 14, ALIGN_LEFT, "axis", annal_slice_of(text));
        free_from = x + TIME_WIDTH;
        before_us = segment->from_us;
    }
    if (ends)
        svg_text(out, end, y + 14, ALIGN_RIGHT, "axis",
                 annal_slice_of(timeline_label(session->to_us, before_us, text)));
}

static void put_legend(int y, struct drawing *out)
{
    static const struct {
        const char *class, *text;
    } keys[] = {{"bar", "under way"}, {"failed", "failed"}, {"open", "no result"}};
    int x = LEFT;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        svg_rect(out, x, y + 6, 10, 10, keys[i].class, (annal_slice){0});
        svg_text(out, x + 16, y + 15, ALIGN_LEFT, "name", annal_slice_of(keys[i].text));
        x += 110;
    }
    svg_line(out, x + 5, y + 3, x + 5, y + 19, "cut", (annal_slice){0});
    svg_text(out, x + 16, y + 15, ALIGN_LEFT, "name", ANNAL_SLICE("pause, cut out"));
}

int timeline_svg(const struct timeline *timeline, int y, struct drawing *out)
{
    struct drawing title = {0};
    timeline_title(timeline, 0, &title);
    svg_text(out, 16, y + 20, ALIGN_LEFT, "title", text_drawing_slice(&title));
    text_drawing_done(&title);
    y += TITLE_HEIGHT;
    int top = y;
    for (int i = 0; i < timeline->row_count; i++, y += ROW_HEIGHT)
        put_row(timeline, &timeline->rows[i], y, out);
    put_cuts(timeline, top, y, out);
    put_times(timeline, y, out);
    put_legend(y + AXIS_HEIGHT, out);
    return y + AXIS_HEIGHT + AXIS_HEIGHT + 6;
}
