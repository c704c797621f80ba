/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of one session: a row for each kind of thing that takes time, over one axis.
 *
 * (1) The axis has as many slots as a picture has columns or pixels. Each thing is entered into the
 *     slots that it covers, so memory does not grow with the session. A thing that takes no time
 *     has a slot, too.
 * (2) Long pauses are cut out: the axis is segments, each with at least one slot, with slots
 *     between them that represent no time. A pause is cut only if it would take more room than its
 *     mark, the longest first.
 * (3) Rows are turns (events, if there are none), user messages, tools (the most called first, and
 *     those without a row of their own together), tokens, failures and pauses; an empty row is left
 *     out.
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
    uint32_t begun;  /* spans that begin here, or marks */
    uint32_t failed; /* failed spans that begin here */
    uint32_t open;   /* spans that begin here and never end */
    bool busy;       /* a span covers it */
    int64_t amount;
    int64_t from_us, to_us; /* first start and last end of the spans that begin here */
};

struct row {
    enum row_role role;
    enum row_kind kind;
    char *label;
    uint64_t count, failed, open;
    int64_t amount; /* tokens; time that was cut out, in µs */
    int64_t most;   /* largest amount of a slot */
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
    int others; /* row of the tools without a row of their own */
};

/* Lay out the axis, and create empty rows. A cut takes cut_slots. False: no memory. */
bool timeline_init(struct timeline *timeline, const struct session *session, int slots,
                   int cut_slots);

/* Enter what happened, as a happening_fn; arg is a struct timeline. */
int timeline_enter(void *arg, const struct happening *what);

/* Remove empty rows. Call it once everything is entered. */
void timeline_finish(struct timeline *timeline);
void timeline_done(struct timeline *timeline);

/* Write the sentence above it: "s1: 8 events, 2026-03-02T09:10:00Z to 10:40:02Z (1 h 30 min)"; in
 * two lines if it is wider than columns (0: never). */
void timeline_title(const struct timeline *timeline, int columns, struct drawing *out);

/* Write the text after a row: "1,060"; "12 (3 ×)"; "1, 1 h 28 min". */
void timeline_sum(const struct row *row, struct drawing *out);

/* Write a time under the axis: "09:10:00", or "03-03 09:10" if the time before it is on another
 * day. */
const char *timeline_label(int64_t time_us, int64_t before_us, char text[TEXT_BYTES]);

#endif
