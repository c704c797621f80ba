/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of one session: a row for each kind of thing that takes time, above one axis.
 *
 * (1) The axis has as many slots as a picture has columns or pixels. Each thing is entered into the
 *     slots that it covers, so memory does not grow with the session. A thing that takes no time
 *     has one slot.
 * (2) Long pauses are cut out: the axis consists of segments, each with at least one slot, and of
 *     slots between them that represent no time. The longest pauses are cut, as long as each would
 *     take more room than the mark of a cut.
 * (3) The rows are turns (events, if there are no turns), user messages, tools (the most called
 *     first; tools without a row of their own share one), tokens, failures and pauses. An empty row
 *     is left out.
 */
#ifndef TOOLS_PLOT_TIMELINE_H
#define TOOLS_PLOT_TIMELINE_H

#include "tools/plot/gather_session.h"

enum { TOOL_ROWS_MAX = 12, TIMELINE_ROWS_MAX = TOOL_ROWS_MAX + 7 };

enum row_kind { ROW_SPANS, ROW_MARKS, ROW_AMOUNTS, ROW_PAUSES };
enum row_role {
    ROLE_EVENTS,
    ROLE_TURNS,
    ROLE_USER,
    ROLE_TOOL,
    ROLE_TOKENS,
    ROLE_FAILURES,
    ROLE_PAUSES
};

struct slot {
    uint32_t begun;  /* number of spans that begin in this slot, or of marks in it */
    uint32_t failed; /* number of failed spans that cover the slot */
    uint32_t open;   /* number of spans that begin in the slot and never end */
    bool busy;       /* whether a span covers the slot */
    int64_t amount;
    int64_t from_us, to_us; /* earliest start and latest end of the spans that begin in the slot */
};

struct row {
    enum row_role role;
    enum row_kind kind;
    char *label;
    uint64_t count, failed, open;
    int64_t amount; /* sum of the slots: tokens, or time that was cut out, in us */
    int64_t most;   /* largest amount in one slot */
    struct slot *slots;
};

struct segment {
    int64_t from_us, to_us;
    int first, slots;
};

struct timeline {
    const struct session *session;
    int slots;
    struct segment *segments;
    size_t segment_count;
    struct row rows[TIMELINE_ROWS_MAX];
    int row_count;
    int others; /* index of the row shared by the tools without a row of their own */
};

/* Divide the axis into segments, and create empty rows. A cut takes cut_slots slots. */
void timeline_init(struct timeline *timeline, const struct session *session, int slots,
                   int cut_slots);

/* Enter a happening into its row; a happening_fn. arg is a struct timeline. */
int timeline_enter(void *arg, const struct happening *what);

/* Remove empty rows. Call it when everything is entered. */
void timeline_finish(struct timeline *timeline);
void timeline_done(struct timeline *timeline);

/* Append the line above the timeline, such as "s1: 8 events, 2026-03-02T09:10:00Z to 10:40:02Z (1 h
 * 30 min)". It is split in two if it is wider than columns; columns is 0 for no limit. */
void timeline_title(const struct timeline *timeline, int columns, struct drawing *out);

/* Append the text after a row, such as "1,060", "12 (3 ×)" or "1, 1 h 28 min". */
void timeline_sum(const struct row *row, struct drawing *out);

/* Write a time under the axis to text, and return text: "09:10:00", or "03-03 09:10" if the time
 * before it is on another day. */
const char *timeline_label(int64_t time_us, int64_t before_us, char text[TEXT_BYTES]);

#endif
