/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of one session: a row for each thing that takes time, over one axis.
 *
 * (1) The axis has slots, as many as a picture has columns or pixels. What happens is entered into
 *     the slots it covers, so memory does not grow with the session. A thing that takes no time has
 *     a slot, too.
 * (2) Long pauses are cut out: the axis is segments, each with at least one slot, with slots
 *     between that represent no time. Only what would take more room than its mark is cut, the
 *     longest first.
 * (3) Rows are turns (events, if there are none), user messages, tools (the most called first, and
 *     those without a row of their own together), tokens, failures and pauses; one in which nothing
 *     happened is left out.
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
    uint32_t failed; /* spans in it that failed */
    uint32_t open;   /* begun here, never ended */
    bool busy;       /* a span covers it */
    int64_t amount;
    int64_t from_us, to_us; /* of what begins here: the first beginning, the last end */
};

struct row {
    enum row_role role;
    enum row_kind kind;
    char *label;
    uint64_t count, failed, open;
    int64_t amount; /* tokens; time that was cut out, in µs */
    int64_t most;   /* of any slot */
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
    int others; /* the row of the tools without a row of their own */
};

/* Lay out the axis, and create empty rows. A cut takes cut_slots. False: no memory. */
bool timeline_init(struct timeline *timeline, const struct session *session, int slots,
                   int cut_slots);

/* Enter what happened; arg is a struct timeline. A happening_fn. */
int timeline_enter(void *arg, const struct happening *what);

/* Call it when all is entered: removes rows without anything. */
void timeline_finish(struct timeline *timeline);
void timeline_done(struct timeline *timeline);

/* The sentence above it: "s1: 8 events, 2026-03-02T09:10:00Z to 10:40:02Z (1 h 30 min)"; in two
 * lines if it is wider than columns (0: never). */
void timeline_title(const struct timeline *timeline, int columns, struct drawing *out);

/* The text after a row: "1,060"; "12 (3 ×)"; "1, 1 h 28 min". */
void timeline_sum(const struct row *row, struct drawing *out);

/* A time under the axis: "09:10:00", or "03-03 09:10" if the time before it is of another day. */
const char *timeline_label(int64_t time_us, int64_t before_us, char text[TEXT_BYTES]);

#endif
