/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   s1: 8 events, 2026-03-02T09:10:00Z to 10:40:02Z (1 h 30 min)
 *
 *              turns │              █████████████████│ 1
 *               user │              █                │ 1
 *               Bash │                ×××××××××××    │ 1
 *             tokens │                             █▁│ 1,060
 *           failures │                          ×    │ 1
 *             pauses │               ┊               │ 1, 1 h 28 min
 *                     09:10:00        10:38:20
 */
#include "tools/plot/timeline_text.h"

#include <math.h>
#include <string.h>

enum { SUM_COLUMNS = 14, FRAME_COLUMNS = 4, SLOTS_MIN = 10, LABEL_MIN = 8 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Return the number of columns for names: at most a quarter of the picture, but at least
 * LABEL_MIN. */
static int label_columns(const struct session *session, int columns)
{
    int width = LABEL_MIN;
    for (size_t i = 0; i < session->tool_count && i < TOOL_ROWS_MAX; i++) {
        int own = text_width(annal_slice_of(session->tools[i].name));
        width = own > width ? own : width;
    }
    width = session->tool_count > TOOL_ROWS_MAX && width < 12 ? 12 : width;
    return least(width, columns / 4 > LABEL_MIN ? columns / 4 : LABEL_MIN);
}

int timeline_text_slots(const struct session *session, int columns)
{
    int slots = columns - label_columns(session, columns) - SUM_COLUMNS - FRAME_COLUMNS;
    return slots < SLOTS_MIN ? SLOTS_MIN : slots;
}

static const char *block_of(const struct row *row, const struct slot *slot)
{
    static const char *const eighths[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    switch (row->kind) {
    case ROW_PAUSES:
        return slot->begun > 0 ? "┊" : " ";
    case ROW_AMOUNTS:
        if (slot->amount <= 0)
            return " ";
        return eighths[(int)ceil((double)slot->amount / (double)row->most * 8) - 1];
    case ROW_SPANS:
    case ROW_MARKS:
        break;
    }
    if (slot->failed > 0)
        return "×";
    if (slot->open > 0 && slot->open == slot->begun && row->role == ROLE_TOOL)
        return "○";
    return slot->busy ? "█" : " ";
}

static void put_row(const struct timeline *timeline, const struct row *row, int label,
                    struct drawing *out)
{
    text_drawing_fit(out, annal_slice_of(row->label), label, true);
    text_drawing_put(out, " │");
    for (int i = 0; i < timeline->slots; i++)
        text_drawing_put(out, "%s", block_of(row, &row->slots[i]));
    text_drawing_put(out, "│ ");
    timeline_sum(row, out);
    text_drawing_put(out, "\n");
}

/* Append the times at which segments begin, as far as there is room, and the end of the last
 * one. */
static void put_times(const struct timeline *timeline, int label, struct drawing *out)
{
    char text[TEXT_BYTES], last[TEXT_BYTES];
    const struct session *session = timeline->session;
    int64_t before_us = session->from_us;
    int at = 0, end = timeline->slots;
    text_drawing_put(out, "%*s", label + 2, "");
    timeline_label(session->to_us, session->from_us, last);
    int last_at = end - (int)strlen(last);
    bool ends = session->to_us > session->from_us && last_at > (int)strlen("00:00:00");
    for (size_t i = 0; i < timeline->segment_count; i++) {
        const struct segment *segment = &timeline->segments[i];
        timeline_label(segment->from_us, before_us, text);
        int to = segment->first + (int)strlen(text);
        if (i > 0 && (segment->first < at + 2 || to + 2 > (ends ? last_at : end)))
            continue;
        text_drawing_put(out, "%*s%s", segment->first - at, "", text);
        before_us = segment->from_us;
        at = to;
    }
    if (ends) {
        timeline_label(session->to_us, before_us, text);
        text_drawing_put(out, "%*s%s", end - (int)strlen(text) - at, "", text);
    }
    text_drawing_put(out, "\n");
}

static bool any_open_call(const struct timeline *timeline)
{
    for (int i = 0; i < timeline->row_count; i++) {
        if (timeline->rows[i].role == ROLE_TOOL && timeline->rows[i].open > 0)
            return true;
    }
    return false;
}

static bool has_role(const struct timeline *timeline, enum row_role role)
{
    for (int i = 0; i < timeline->row_count; i++) {
        if (timeline->rows[i].role == role)
            return true;
    }
    return false;
}

static void put_key(const struct timeline *timeline, int label, struct drawing *out)
{
    bool failed = has_role(timeline, ROLE_FAILURES), open = any_open_call(timeline);
    bool cut = has_role(timeline, ROLE_PAUSES);
    if (!failed && !open && !cut)
        return;
    text_drawing_put(out, "\n%*s", label + 2, "");
    text_drawing_put(out, "%s%s%s%s%s\n", failed ? "× failed" : "",
                     failed && (open || cut) ? "  " : "", open ? "○ no result" : "",
                     open && cut ? "  " : "", cut ? "┊ pause, cut out" : "");
}

void timeline_text(const struct timeline *timeline, int columns, struct drawing *out)
{
    int label = label_columns(timeline->session, columns);
    timeline_title(timeline, columns, out);
    text_drawing_put(out, "\n\n");
    for (int i = 0; i < timeline->row_count; i++)
        put_row(timeline, &timeline->rows[i], label, out);
    put_times(timeline, label, out);
    put_key(timeline, label, out);
}
