/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plot/timeline.h"

#include "journal/base/alloc.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The axis ---- */

static int compare_lengths(const void *a, const void *b)
{
    const struct pause *left = a, *right = b;
    int64_t left_us = left->to_us - left->from_us, right_us = right->to_us - right->from_us;
    if (left_us != right_us)
        return left_us > right_us ? -1 : 1;
    return left->from_us < right->from_us ? -1 : 1;
}

static int compare_times(const void *a, const void *b)
{
    const struct pause *left = a, *right = b;
    return left->from_us < right->from_us ? -1 : 1;
}

/* Choose the pauses to cut, at most `most`, and sort them by time. Returns their number. */
static size_t choose_cuts(const struct session *session, struct pause *cuts, size_t most)
{
    /* a pause shorter than 1/50 of the time that remains without it is not cut */
    enum { FRACTION = 50 };
    size_t count = 0;
    int64_t rest = session->to_us - session->from_us;
    qsort(cuts, session->pause_count, sizeof *cuts, compare_lengths);
    while (count < session->pause_count && count < most) {
        int64_t length = cuts[count].to_us - cuts[count].from_us;
        if (length < (rest - length) / FRACTION)
            break;
        rest -= length;
        count++;
    }
    qsort(cuts, count, sizeof *cuts, compare_times);
    return count;
}

static void make_segments(struct timeline *timeline, const struct pause *cuts, int cut_slots)
{
    const struct session *session = timeline->session;
    size_t count = timeline->segment_count;
    int64_t active = 0, before = 0;
    for (size_t i = 0; i < count; i++) {
        struct segment *segment = &timeline->segments[i];
        segment->from_us = i == 0 ? session->from_us : cuts[i - 1].to_us;
        segment->to_us = i + 1 == count ? session->to_us : cuts[i].from_us;
        active += segment->to_us - segment->from_us;
    }
    /* Each segment gets one slot, and a share of the other slots in proportion to its time. */
    int spare = timeline->slots - (int)count - ((int)count - 1) * cut_slots;
    int used = 0, first = 0;
    for (size_t i = 0; i < count; i++) {
        struct segment *segment = &timeline->segments[i];
        before += segment->to_us - segment->from_us;
        double share = active > 0 ? (double)before / (double)active : 1;
        int until = (int)(share * spare + 0.5);
        segment->first = first;
        segment->slots = 1 + until - used;
        used = until;
        first += segment->slots + cut_slots;
    }
}

static void lay_out(struct timeline *timeline, int cut_slots)
{
    const struct session *session = timeline->session;
    /* maximum number of cuts: the labels of more cuts do not fit into a terminal of 80 columns */
    enum { CUTS_MAX = 6 };
    size_t most = (size_t)timeline->slots / (size_t)(8 * cut_slots);
    most = most > CUTS_MAX ? CUTS_MAX : most;
    size_t bytes = session->pause_count * sizeof *session->pauses;
    struct pause *cuts = must_zalloc(bytes + 1);
    if (bytes > 0)
        memcpy(cuts, session->pauses, bytes);
    timeline->segment_count = choose_cuts(session, cuts, most) + 1;
    timeline->segments = must_zalloc(timeline->segment_count * sizeof *timeline->segments);
    make_segments(timeline, cuts, cut_slots);
    annal__free(cuts);
}

/* Return the slot of a time. A time in a cut is drawn at the beginning of the cut. */
static int slot_of(const struct timeline *timeline, int64_t time_us)
{
    size_t low = 0, high = timeline->segment_count - 1;
    while (low < high) { /* binary search for the last segment that begins at or before the time */
        size_t middle = low + (high - low + 1) / 2;
        if (timeline->segments[middle].from_us <= time_us)
            low = middle;
        else
            high = middle - 1;
    }
    const struct segment *segment = &timeline->segments[low];
    int64_t span = segment->to_us - segment->from_us, past = time_us - segment->from_us;
    if (past <= 0 || span <= 0)
        return segment->first;
    int slot = (int)((double)past / (double)span * segment->slots);
    return segment->first + (slot < segment->slots ? slot : segment->slots - 1);
}

/* ---- Rows ---- */

static void add_row(struct timeline *timeline, enum row_role role, enum row_kind kind,
                    const char *label)
{
    struct row *row = &timeline->rows[timeline->row_count++];
    *row = (struct row){.role = role, .kind = kind, .label = must_strndup(label, strlen(label))};
    row->slots = must_zalloc((size_t)timeline->slots * sizeof *row->slots);
}

static void add_tools(struct timeline *timeline)
{
    const struct session *session = timeline->session;
    bool all = session->tool_count <= TOOL_ROWS_MAX;
    size_t own = all ? session->tool_count : TOOL_ROWS_MAX - 1;
    for (size_t i = 0; i < own; i++) {
        const char *name = session->tools[i].name;
        add_row(timeline, ROLE_TOOL, ROW_SPANS, name[0] != '\0' ? name : "(no name)");
    }
    char label[TEXT_BYTES];
    if (all)
        snprintf(label, sizeof label, "others");
    else
        snprintf(label, sizeof label, "others (%zu)", session->tool_count - own);
    timeline->others = timeline->row_count;
    if (!all || own < TOOL_ROWS_MAX)
        add_row(timeline, ROLE_TOOL, ROW_SPANS, label);
}

static void enter_pauses(struct timeline *timeline)
{
    struct row *row = &timeline->rows[timeline->row_count - 1];
    for (size_t i = 1; i < timeline->segment_count; i++) {
        const struct segment *before = &timeline->segments[i - 1], *after = before + 1;
        for (int at = before->first + before->slots; at < after->first; at++)
            row->slots[at] =
                (struct slot){.begun = 1, .from_us = before->to_us, .to_us = after->from_us};
        row->count++;
        row->amount += after->from_us - before->to_us;
    }
}

void timeline_init(struct timeline *timeline, const struct session *session, int slots,
                   int cut_slots)
{
    *timeline = (struct timeline){.session = session, .slots = slots};
    lay_out(timeline, cut_slots);
    add_row(timeline, ROLE_EVENTS, ROW_AMOUNTS, "events");
    add_row(timeline, ROLE_TURNS, ROW_SPANS, "turns");
    add_row(timeline, ROLE_USER, ROW_MARKS, "user");
    add_tools(timeline);
    add_row(timeline, ROLE_TOKENS, ROW_AMOUNTS, "tokens");
    add_row(timeline, ROLE_FAILURES, ROW_MARKS, "failures");
    add_row(timeline, ROLE_PAUSES, ROW_PAUSES, "pauses");
    enter_pauses(timeline);
}

static struct row *row_of(struct timeline *timeline, const struct happening *what)
{
    const struct session *session = timeline->session;
    const enum row_role roles[] = {
        [HAPPENED_EVENT] = ROLE_EVENTS,  [HAPPENED_TURN] = ROLE_TURNS,
        [HAPPENED_USER] = ROLE_USER,     [HAPPENED_CALL] = ROLE_TOOL,
        [HAPPENED_TOKENS] = ROLE_TOKENS, [HAPPENED_FAIL] = ROLE_FAILURES};
    int first = 0;
    while (timeline->rows[first].role != roles[what->kind])
        first++;
    for (int i = 0; what->kind == HAPPENED_CALL && first + i < timeline->others; i++) {
        if (annal__slice_is(what->name, session->tools[i].name))
            return &timeline->rows[first + i];
    }
    return &timeline->rows[what->kind == HAPPENED_CALL ? timeline->others : first];
}

static void enter_begin(struct slot *slot, const struct happening *what)
{
    slot->from_us =
        slot->begun == 0 || what->from_us < slot->from_us ? what->from_us : slot->from_us;
    slot->to_us = slot->begun == 0 || what->to_us > slot->to_us ? what->to_us : slot->to_us;
    slot->begun++;
    slot->open += what->open;
}

int timeline_enter(void *arg, const struct happening *what)
{
    struct timeline *timeline = arg;
    struct row *row = row_of(timeline, what);
    int from = slot_of(timeline, what->from_us);
    int to = slot_of(timeline, what->to_us);
    /* The duration of a call without a result is unknown, so it has one slot. */
    if (what->open && what->kind == HAPPENED_CALL)
        to = from;
    enter_begin(&row->slots[from], what);
    for (int at = from; at <= to; at++) {
        row->slots[at].busy = true;
        row->slots[at].failed += what->failed;
    }
    int64_t amount = what->kind == HAPPENED_EVENT ? 1 : what->input_tokens + what->output_tokens;
    struct slot *slot = &row->slots[from];
    slot->amount += amount;
    row->count++;
    row->failed += what->failed;
    row->open += what->open;
    row->amount += amount;
    row->most = slot->amount > row->most ? slot->amount : row->most;
    return 0;
}

static void row_done(struct row *row)
{
    annal__free(row->label);
    annal__free(row->slots);
}

void timeline_finish(struct timeline *timeline)
{
    int kept = 0;
    for (int i = 0; i < timeline->row_count; i++) {
        struct row *row = &timeline->rows[i];
        if (row->count > 0)
            timeline->rows[kept++] = *row;
        else
            row_done(row);
    }
    timeline->row_count = kept;
}

void timeline_done(struct timeline *timeline)
{
    for (int i = 0; i < timeline->row_count; i++)
        row_done(&timeline->rows[i]);
    annal__free(timeline->segments);
    *timeline = (struct timeline){0};
}

/* ---- Texts ---- */

/* Return a time without its fraction of a second, unless the session took less than ten seconds. */
static int64_t limited_time(const struct session *session, int64_t time_us)
{
    const int64_t second = 1000000;
    bool is_short = session->to_us - session->from_us < 10 * second;
    return is_short ? time_us : time_us - time_us % second;
}

void timeline_title(const struct timeline *timeline, int columns, struct drawing *out)
{
    const struct session *session = timeline->session;
    char count[TEXT_BYTES], from[TEXT_BYTES], to[TEXT_BYTES], span[TEXT_BYTES];
    int64_t from_us = limited_time(session, session->from_us);
    int64_t to_us = limited_time(session, session->to_us);
    char rest[4 * TEXT_BYTES];
    int len = snprintf(rest, sizeof rest, "%s event%s, %s",
                       text_exact(count, (int64_t)session->events, UNIT_COUNT),
                       session->events == 1 ? "" : "s", text_time(from, from_us));
    if (session->to_us > session->from_us)
        snprintf(rest + len, sizeof rest - (size_t)len, " to %s (%s)",
                 text_time_after(to, to_us, from_us),
                 text_span(span, session->to_us - session->from_us));
    int width = text_width(session->id);
    bool wide = columns > 0 && width + 2 + (int)strlen(rest) > columns;
    text_drawing_fit(out, session->id, width, false);
    text_drawing_put(out, ":%s%s", wide ? "\n" : " ", rest);
}

void timeline_sum(const struct row *row, struct drawing *out)
{
    char text[TEXT_BYTES];
    if (row->kind == ROW_AMOUNTS) {
        text_drawing_put(out, "%s", text_short(text, row->amount, UNIT_COUNT));
        return;
    }
    text_drawing_put(out, "%s", text_exact(text, (int64_t)row->count, UNIT_COUNT));
    if (row->kind == ROW_PAUSES)
        text_drawing_put(out, ", %s", text_span(text, row->amount));
    else if (row->kind == ROW_SPANS && row->failed > 0 && row->failed < row->count)
        text_drawing_put(out, " (%s ×)", text_exact(text, (int64_t)row->failed, UNIT_COUNT));
}

const char *timeline_label(int64_t time_us, int64_t before_us, char text[TEXT_BYTES])
{
    char time[ANNAL_TIME_BYTES], before[ANNAL_TIME_BYTES];
    annal_time_format(time_us, time);
    annal_time_format(before_us, before);
    if (memcmp(time, before, 10) == 0)
        snprintf(text, TEXT_BYTES, "%.8s", time + 11);
    else
        snprintf(text, TEXT_BYTES, "%.5s %.5s", time + 5, time + 11);
    return text;
}
