/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plot/gather_session.h"

#include "index/sys/view.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"
#include "tools/show/event_facts.h"

#include <stdlib.h>
#include <string.h>

struct session_part {
    char journal[ANNAL_SESSION_ID_BYTES_MAX + 1];
    int64_t from_seq, to_seq;
    int64_t to_us; /* latest time of the journal's events */
    bool last;     /* whether this is the session's own journal, not an ancestor's journal */
};

static bool in_range(const struct session *session, int64_t time_us)
{
    const struct time_range *range = &session->range;
    return (range->since_us == 0 || time_us >= range->since_us) &&
           (range->until_us == 0 || time_us < range->until_us);
}

static bool read_time(const annal_value *value, int64_t *out_us)
{
    return value->kind == ANNAL_VALUE_TEXT &&
           annal_time_parse(value->bytes, out_us, NULL) == ANNAL_OK;
}

static annal_slice text_of(const annal_value *value)
{
    return value->kind == ANNAL_VALUE_TEXT ? value->bytes : (annal_slice){0};
}

/* ---- The journals that contain its history ---- */

static int add_part(void *arg, const annal_lineage_part *lineage)
{
    struct session *session = arg;
    struct session_part *part = must_array_add(&session->parts, &session->part_count, sizeof *part);
    memcpy(part->journal, lineage->session.ptr, lineage->session.len);
    part->from_seq = (int64_t)lineage->from_seq;
    part->to_seq = lineage->to_seq > INT64_MAX ? INT64_MAX : (int64_t)lineage->to_seq;
    part->last = session->part_count == 1;
    part->to_us = INT64_MIN;
    return 0;
}

static annal_status find_parts(annal_store *store, struct session *session, annal_error *err)
{
    annal_status status = annal_session_lineage(store, session->id, add_part, session, err);
    for (size_t i = 0; i < session->part_count / 2; i++) {
        struct session_part swapped = session->parts[i];
        session->parts[i] = session->parts[session->part_count - 1 - i];
        session->parts[session->part_count - 1 - i] = swapped;
    }
    return status;
}

struct asking {
    struct session *session;
    struct session_part *part;
    happening_fn fn;
    void *arg;
    struct pending *pending; /* turns and calls that were open at a fork point */
    size_t pending_count;
    uint64_t turns; /* number of turns reported so far */
};

/* Run a SELECT for each journal of the history: ?1 is the journal, ?2 and ?3 are its first and last
 * seq. */
static int ask_parts(annal__view *view, struct asking *asking, const char *sql, annal_row_fn fn,
                     annal_error *err)
{
    int status = ANNAL_OK;
    for (size_t i = 0; status == ANNAL_OK && i < asking->session->part_count; i++) {
        struct session_part *part = &asking->session->parts[i];
        const annal_value params[] = {
            {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(part->journal)},
            {.kind = ANNAL_VALUE_INTEGER, .integer = part->from_seq},
            {.kind = ANNAL_VALUE_INTEGER, .integer = part->to_seq}};
        const annal_sql_options options = {.params = params, .param_count = 3};
        asking->part = part;
        status = annal__view_sql(view, annal_slice_of(sql), &options, fn, asking, err);
    }
    return status;
}

/* ---- Times and pauses ---- */

static void add_pause(struct session *session, size_t at, struct pause pause)
{
    (void)must_array_add(&session->pauses, &session->pause_count, sizeof pause);
    memmove(&session->pauses[at + 1], &session->pauses[at],
            (session->pause_count - 1 - at) * sizeof pause);
    session->pauses[at] = pause;
}

static void drop_pause(struct session *session, size_t at)
{
    session->pause_count--;
    memmove(&session->pauses[at], &session->pauses[at + 1],
            (session->pause_count - at) * sizeof session->pauses[at]);
}

/* Handle an event whose time is earlier than that of events before it: if it is in a pause, the
 * pause is split. */
static void split_pause(struct session *session, int64_t time_us)
{
    size_t low = 0, high = session->pause_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (session->pauses[middle].to_us <= time_us)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == session->pause_count || session->pauses[low].from_us >= time_us)
        return;
    struct pause after = {time_us, session->pauses[low].to_us};
    session->pauses[low].to_us = time_us;
    if (after.to_us - after.from_us > PAUSE_US)
        add_pause(session, low + 1, after);
    if (time_us - session->pauses[low].from_us <= PAUSE_US)
        drop_pause(session, low);
}

static void add_event(struct session *session, int64_t time_us)
{
    bool first = session->events++ == 0;
    if (first)
        session->from_us = session->to_us = time_us;
    else if (time_us > session->to_us + PAUSE_US)
        add_pause(session, session->pause_count, (struct pause){session->to_us, time_us});
    else if (time_us < session->from_us - PAUSE_US)
        add_pause(session, 0, (struct pause){time_us, session->from_us});
    else if (time_us < session->to_us)
        split_pause(session, time_us);
    session->from_us = time_us < session->from_us ? time_us : session->from_us;
    session->to_us = time_us > session->to_us ? time_us : session->to_us;
}

static int add_time(void *arg, const annal_row *row)
{
    struct asking *asking = arg;
    struct session *session = asking->session;
    int64_t time_us = 0;
    if (!read_time(&row->values[0], &time_us))
        return 0;
    if (time_us > asking->part->to_us)
        asking->part->to_us = time_us;
    if (time_us < UNTIMED_BEFORE_US)
        session->untimed += session->range.since_us == 0;
    else if (in_range(session, time_us))
        add_event(session, time_us);
    return 0;
}

static const char all_times[] = "SELECT timestamp FROM event_index "
                                "WHERE session_id = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq";

/* ---- Tools ---- */

static int add_tool(void *arg, const annal_row *row)
{
    struct session *session = ((struct asking *)arg)->session;
    annal_slice name = text_of(&row->values[0]);
    uint64_t calls = (uint64_t)row->values[1].integer;
    for (size_t i = 0; i < session->tool_count; i++) {
        struct tool *tool = &session->tools[i];
        if (annal__slice_is(name, tool->name)) {
            tool->calls += calls;
            return 0;
        }
    }
    struct tool *tool = must_array_add(&session->tools, &session->tool_count, sizeof *tool);
    *tool = (struct tool){must_strndup(name.len > 0 ? name.ptr : "", name.len), calls};
    return 0;
}

static int compare_tools(const void *a, const void *b)
{
    const struct tool *left = a, *right = b;
    if (left->calls != right->calls)
        return left->calls > right->calls ? -1 : 1;
    return strcmp(left->name, right->name);
}

annal_status gather_session(annal_store *store, annal__view *view, struct session *out,
                            annal_error *err)
{
    struct asking asking = {.session = out};
    int status = find_parts(store, out, err);
    if (status >= 0)
        status = ask_parts(view, &asking, all_times, add_time, err);
    /* a row without called_at is a result in a fork whose call is in an ancestor */
    if (status >= 0)
        status = ask_parts(view, &asking,
                           "SELECT tool, count(*) FROM tool_calls WHERE session_id = ?1 "
                           "AND seq BETWEEN ?2 AND ?3 AND called_at IS NOT NULL GROUP BY tool",
                           add_tool, err);
    if (status >= 0 && out->tool_count > 0)
        qsort(out->tools, out->tool_count, sizeof *out->tools, compare_tools);
    return (annal_status)status;
}

void gather_session_done(struct session *session)
{
    for (size_t i = 0; i < session->tool_count; i++)
        annal__free(session->tools[i].name);
    annal__free(session->tools);
    annal__free(session->pauses);
    annal__free(session->parts);
    *session = (struct session){0};
}

/* ---- Turns and calls ---- */

struct pending {
    uint64_t key; /* hash of kind and id of the turn or call */
    bool met;
    enum happening_kind kind;
    char *name;
    int64_t from_us;
};

/* Report a happening, cut to the times of the session; it is not reported if it is outside. */
static int tell(struct asking *asking, struct happening what)
{
    const struct session *session = asking->session;
    what.to_us = what.to_us < what.from_us ? what.from_us : what.to_us;
    if (what.from_us > session->to_us || what.to_us < session->from_us)
        return 0;
    what.from_us = what.from_us < session->from_us ? session->from_us : what.from_us;
    what.to_us = what.to_us > session->to_us ? session->to_us : what.to_us;
    asking->turns += what.kind == HAPPENED_TURN;
    return asking->fn(asking->arg, &what);
}

static uint64_t key_of(enum happening_kind kind, annal_slice id)
{
    return annal__hash(id.ptr, id.len, (uint64_t)kind);
}

static int hold(struct asking *asking, const struct happening *what, annal_slice id)
{
    struct pending *held = must_array_add(&asking->pending, &asking->pending_count, sizeof *held);
    *held = (struct pending){
        .key = key_of(what->kind, id),
        .kind = what->kind,
        .name = must_strndup(what->name.len > 0 ? what->name.ptr : "", what->name.len),
        .from_us = what->from_us};
    return 0;
}

/* Return the turn or call with this id if it was open at a fork point, else NULL. */
static struct pending *find_held(struct asking *asking, enum happening_kind kind, annal_slice id)
{
    uint64_t key = key_of(kind, id);
    for (size_t i = 0; i < asking->pending_count; i++) {
        if (!asking->pending[i].met && asking->pending[i].key == key)
            return &asking->pending[i];
    }
    return NULL;
}

static int tell_row(struct asking *asking, struct happening *what, annal_slice id)
{
    struct pending *held = id.len == 0 ? NULL : find_held(asking, what->kind, id);
    if (what->open && !asking->part->last)
        return hold(asking, what, id);
    if (held != NULL) {
        held->met = true;
        what->from_us = held->from_us;
        what->name = what->name.len > 0 ? what->name : annal_slice_of(held->name);
    }
    return tell(asking, *what);
}

/* Report the turns and calls that had not ended at a fork point, and do not end later either, as
 * lasting until the end of the session. */
static int tell_held(struct asking *asking)
{
    int status = ANNAL_OK;
    for (size_t i = 0; status == ANNAL_OK && i < asking->pending_count; i++) {
        const struct pending *held = &asking->pending[i];
        if (!held->met)
            status = tell(asking, (struct happening){.kind = held->kind,
                                                     .name = annal_slice_of(held->name),
                                                     .from_us = held->from_us,
                                                     .to_us = asking->session->to_us,
                                                     .open = true});
    }
    for (size_t i = 0; i < asking->pending_count; i++)
        annal__free(asking->pending[i].name);
    annal__free(asking->pending);
    asking->pending = NULL;
    asking->pending_count = 0;
    return status;
}

/* Report a turn, from a row of turn_id, status, created_at, completed_at. */
static int add_turn(void *arg, const annal_row *row)
{
    struct asking *asking = arg;
    annal_slice id = text_of(&row->values[0]), state = text_of(&row->values[1]);
    struct happening what = {.kind = HAPPENED_TURN, .name = id};
    if (!read_time(&row->values[2], &what.from_us) || what.from_us < UNTIMED_BEFORE_US)
        return 0;
    what.open = !read_time(&row->values[3], &what.to_us) ||
                (!asking->part->last && what.to_us > asking->part->to_us);
    what.to_us = what.open ? asking->session->to_us : what.to_us;
    what.failed = !what.open && annal__slice_is(state, "failed");
    return tell_row(asking, &what, id);
}

/* Report a call, from a row of call_id, tool, status, called_at, returned_at, result_seq. */
static int add_call(void *arg, const annal_row *row)
{
    struct asking *asking = arg;
    annal_slice id = text_of(&row->values[0]), state = text_of(&row->values[2]);
    struct happening what = {.kind = HAPPENED_CALL, .name = text_of(&row->values[1])};
    bool called = read_time(&row->values[3], &what.from_us);
    what.open =
        !read_time(&row->values[4], &what.to_us) || row->values[5].integer > asking->part->to_seq;
    if (!called || (!what.open && what.to_us < what.from_us))
        what.from_us = what.to_us;
    if (what.from_us < UNTIMED_BEFORE_US || (!called && what.open))
        return 0;
    what.to_us = what.open ? asking->session->to_us : what.to_us;
    what.failed = !what.open && annal__slice_is(state, "failed");
    int status = tell_row(asking, &what, id);
    if (status == ANNAL_OK && what.failed)
        status = tell(asking, (struct happening){.kind = HAPPENED_FAIL,
                                                 .name = what.name,
                                                 .from_us = what.to_us,
                                                 .to_us = what.to_us,
                                                 .failed = true});
    return status;
}

static int add_moment(void *arg, const annal_row *row)
{
    struct asking *asking = arg;
    struct happening what = {.kind = HAPPENED_EVENT};
    if (!read_time(&row->values[0], &what.from_us) || !in_range(asking->session, what.from_us))
        return 0;
    what.to_us = what.from_us;
    return what.from_us < UNTIMED_BEFORE_US ? 0 : tell(asking, what);
}

/* ---- What is only in the data of events ---- */

static int add_payload(struct asking *asking, struct spending *spending, const annal_event *event)
{
    struct happening what = {.from_us = event->ts_us, .to_us = event->ts_us};
    const struct tally used = event_spending_add(spending, event);
    annal_slice role = event_message_role(event);
    enum fact fact = event_fact_of(event);
    int status = 0;
    if (event->ts_us < UNTIMED_BEFORE_US)
        return 0;
    if (annal__slice_is(role, "\"user\"")) {
        what.kind = HAPPENED_USER;
        status = tell(asking, what);
    }
    bool ended = fact == FACT_TURN_ENDS || fact == FACT_OTHER;
    if (ended && event_failed(event)) {
        what.kind = HAPPENED_FAIL;
        what.name = event->type;
        what.failed = true;
        status = tell(asking, what);
    }
    if (status == 0 && (used.input_tokens != 0 || used.output_tokens != 0))
        status = tell(asking, (struct happening){.kind = HAPPENED_TOKENS,
                                                 .from_us = event->ts_us,
                                                 .to_us = event->ts_us,
                                                 .input_tokens = used.input_tokens,
                                                 .output_tokens = used.output_tokens});
    return status;
}

static int read_events(annal_query *query, struct asking *asking, annal_error *err)
{
    struct spending spending = {0};
    annal_slice session;
    annal_event event;
    int status = ANNAL_OK;
    for (;;) {
        status = annal_query_next(query, &session, &event, err);
        if (status == ANNAL_DAMAGE)
            asking->session->damaged++;
        else if (status == ANNAL_OK)
            status = add_payload(asking, &spending, &event);
        if (status != ANNAL_OK && status != ANNAL_DAMAGE)
            break;
    }
    return status == ANNAL_END ? ANNAL_OK : status;
}

static int ask_payloads(annal_index *index, struct asking *asking, annal_error *err)
{
    static const char *const names[] = {"message.added",   "agent.turn.usage", "turn.started",
                                        "turn_start",      "turn.completed",   "turn.failed",
                                        "turn.cancelled",  "turn_complete",    "turn_error",
                                        "provider.failed", "provider_error"};
    annal_slice types[sizeof names / sizeof names[0]];
    size_t count = 0;
    for (; count < sizeof names / sizeof names[0]; count++)
        types[count] = annal_slice_of(names[count]);
    const struct session *session = asking->session;
    const annal_filter filter = {.sessions = &session->id,
                                 .session_count = 1,
                                 .types = types,
                                 .type_count = count,
                                 .since_us = session->range.since_us,
                                 .until_us = session->range.until_us,
                                 .as_indexed = true};
    annal_query *query = NULL;
    int status = annal_query_open(index, &filter, &query, err);
    if (status >= 0)
        status = read_events(query, asking, err);
    annal_query_close(query);
    return status;
}

annal_status gather_happenings(annal_index *index, annal__view *view, struct session *session,
                               happening_fn fn, void *arg, annal_error *err)
{
    struct asking asking = {.session = session, .fn = fn, .arg = arg};
    int status = ask_parts(view, &asking,
                           "SELECT turn_id, status, created_at, completed_at FROM turns "
                           "WHERE session_id = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq",
                           add_turn, err);
    if (status >= 0)
        status = ask_parts(view, &asking,
                           "SELECT call_id, tool, status, called_at, returned_at, result_seq "
                           "FROM tool_calls WHERE session_id = ?1 AND seq BETWEEN ?2 AND ?3 "
                           "ORDER BY seq",
                           add_call, err);
    int held = tell_held(&asking);
    if (status >= 0)
        status = held;
    if (status >= 0 && asking.turns == 0)
        status = ask_parts(view, &asking, all_times, add_moment, err);
    if (status >= 0)
        status = ask_payloads(index, &asking, err);
    return (annal_status)status;
}
