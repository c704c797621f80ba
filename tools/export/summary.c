/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/summary.h"

#include "journal/base/json_walk.h"
#include "tools/cli/must.h"
#include "tools/show/excerpt.h"

enum { FIELD_BYTES_MAX = 4096 };

/* Read the fields from session.created, and their changes from session.updated. */
static void take_fields(struct summary *summary, const annal_event *event)
{
    static const char *const names[FIELD_COUNT] = {
        "title",      "agent_id",         "provider", "model", "working_directory",
        "git_branch", "parent_session_id"};
    annal_slice fields = {0};
    if (event_is(event, "session.created") || event_is(event, "session_start"))
        fields = event->data;
    else if (event_is(event, "session.updated"))
        fields = event_member(event, "set");
    for (int i = 0; i < FIELD_COUNT && fields.len > 0 && fields.ptr[0] == '{'; i++) {
        annal_slice value = annal__json_member(fields, names[i]);
        if (!excerpt_is_text(value) || value.len > FIELD_BYTES_MAX)
            continue;
        annal__buf_clear(&summary->fields[i]);
        must_append_slice(&summary->fields[i], value);
    }
}

/* Set the model to the first one that a message or a usage names, if no event names the model of
 * the session. */
static void take_model(struct summary *summary, const annal_event *event)
{
    annal_slice model = event_member(event, "model");
    struct buf *field = &summary->fields[FIELD_MODEL];
    if (field->len == 0 && excerpt_is_text(model) && model.len <= FIELD_BYTES_MAX)
        must_append_slice(field, model);
}

static void take_ends(struct summary *summary, const annal_event *event)
{
    annal_slice call = event_member(event, "call_id"), turn = event_member(event, "turn_id");
    switch (event_fact_of(event)) {
    case FACT_CALL:
        summary->calls++;
        if (open_set_end(&summary->open, OPEN_RESULT, call).seq == 0)
            (void)open_set_begin(&summary->open, OPEN_CALL, call, event);
        break;
    case FACT_RESULT:
        if (open_set_end(&summary->open, OPEN_CALL, call).seq == 0)
            (void)open_set_begin(&summary->open, OPEN_RESULT, call, event);
        summary->failed_calls += event_failed(event) ? 1 : 0;
        break;
    case FACT_TURN_BEGINS:
        (void)open_set_begin(&summary->open, OPEN_TURN, turn, event);
        break;
    case FACT_TURN_ENDS:
        if (turn.len > 0)
            (void)open_set_end(&summary->open, OPEN_TURN, turn);
        else
            (void)open_set_end_newest(&summary->open, OPEN_TURN);
        break;
    default:
        break;
    }
}

static void take_back(struct summary *summary, const annal_event *event)
{
    annal_slice turn = event_member(event, "turn_id");
    bool rolled = event_is(event, "turn.rolled_back"), left = event_is(event, "turn.abandoned");
    if (turn.len == 0 || !(rolled || left || event_is(event, "turn.restored")))
        return;
    (void)open_set_end(&summary->open, OPEN_ROLLED_BACK, turn);
    (void)open_set_end(&summary->open, OPEN_ABANDONED, turn);
    if (rolled || left)
        (void)open_set_begin(&summary->open, rolled ? OPEN_ROLLED_BACK : OPEN_ABANDONED, turn,
                             event);
}

/* At an event telemetry.superseded, forget the calls, turns and usage of the events before it: they
 * are from telemetry, and the log of the session, which follows, has them, too. */
static void supersede(struct summary *summary, const annal_event *event)
{
    if (!event_is(event, "telemetry.superseded"))
        return;
    open_set_done(&summary->open);
    summary->spending = (struct spending){0};
    summary->calls = 0;
    summary->failed_calls = 0;
    summary->superseded_seq = event->seq;
}

/* Record a time. Times 0 and 1 are how importers write an unknown time. */
static void take_time(struct summary *summary, int64_t ts_us)
{
    if (ts_us == 0 || ts_us == 1)
        return;
    if (summary->first_us == 0 || ts_us < summary->first_us)
        summary->first_us = ts_us;
    if (summary->last_us == 0 || ts_us > summary->last_us)
        summary->last_us = ts_us;
}

static void take(struct summary *summary, const annal_event *event)
{
    enum fact fact = event_fact_of(event);
    take_fields(summary, event);
    if (fact == FACT_MESSAGE || fact == FACT_USAGE)
        take_model(summary, event);
    summary->events++;
    take_time(summary, event->ts_us);
    struct tally used = event_spending_add(&summary->spending, event);
    summary->takes_back = summary->takes_back || used.input_tokens < 0 || used.output_tokens < 0;
    take_ends(summary, event);
    take_back(summary, event);
    supersede(summary, event);
    if (event_is(event, "import.recovered"))
        summary->recovered_seq = event->seq;
    summary->rests = event_rests(summary->rests, event);
}

/* At the end, count the newest turn as ended if the agent has answered and no call is open. */
static void end_answered(struct summary *summary)
{
    if (summary->rests && open_set_count(&summary->open, OPEN_CALL) == 0)
        summary->answered_seq = open_set_end_newest(&summary->open, OPEN_TURN).seq;
}

annal_status summary_make(struct summary *summary, struct export *export, annal_error *err)
{
    struct export_reader reader;
    annal_event event;
    *summary = (struct summary){0};
    annal_status status = export_reader_open(&reader, export, false, err);
    while (status >= 0 && status != ANNAL_END) {
        status = export_reader_next(&reader, &event, err);
        if (status == ANNAL_OK)
            take(summary, &event);
        else if (status == ANNAL_DAMAGE)
            summary->lost += annal_cursor_damage(reader.cursor).event_lost ? 1 : 0;
    }
    export_reader_close(&reader);
    end_answered(summary);
    return status < 0 ? status : ANNAL_OK;
}

void summary_done(struct summary *summary)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        annal__buf_done(&summary->fields[i]);
    open_set_done(&summary->open);
}

const char *summary_taken_back(const struct summary *summary, annal_slice turn_id)
{
    return open_set_knows(&summary->open, OPEN_ROLLED_BACK, turn_id) ? "rolled back"
           : open_set_knows(&summary->open, OPEN_ABANDONED, turn_id) ? "abandoned"
                                                                     : NULL;
}

bool summary_supersedes(const struct summary *summary, const annal_event *event)
{
    return (event->seq < summary->superseded_seq && !event_is(event, "session.created") &&
            !event_is(event, "session.updated")) ||
           (event->seq < summary->recovered_seq && event_is(event, "import.unreadable"));
}

annal_slice summary_field(const struct summary *summary, enum session_field field)
{
    return annal__buf_slice(&summary->fields[field]);
}
