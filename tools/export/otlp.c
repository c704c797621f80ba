/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints spans of OpenTelemetry, with the names of its semantic conventions for generative AI, as
 * one line of OTLP JSON for each session.
 *
 * (1) A trace is a session. Its root is a span invoke_agent, from the first event to the last. The
 *     root has a span for each turn, and a turn has spans chat (chat.h) and execute_tool.
 * (2) A span is printed when it has ended, a turn at the end of the session, because its time
 *     covers its children, even those after its end. A span that has not ended at the end of the
 *     session ends with the last event, with status ERROR and annal.incomplete; the root then has
 *     them too. A turn counts as ended if its last event is an answer and no call is open, even
 *     without an event that ends it. An event without a time has the time of the event before it.
 * (3) A second call with the same id ends the first. A result may precede its call; a result
 *     without a call is a span without an operation, printed at the end.
 */
#include "journal/base/error.h"
#include "journal/base/json_walk.h"
#include "journal/sys/cursor.h"
#include "tools/cli/must.h"
#include "tools/export/chat.h"
#include "tools/export/span.h"
#include "tools/export/summary.h"
#include "tools/export/turn_list.h"
#include "tools/show/event_out.h"
#include "tools/show/excerpt.h"

#include <string.h>

/* The version of the conventions whose names are used. */
#define SCHEMA_URL "https://opentelemetry.io/schemas/1.38.0"

struct trace {
    struct export *export;
    struct summary summary;
    struct spending spending;
    struct open_set open;
    struct turn_list turns;
    struct chats chats;
    int64_t now_us; /* time of the newest event that has a time, in us; 0 if none has */
    /*
     * cursor with which the event that began a call or turn is read again; NULL until it is needed
     */
    annal_cursor *back;
    struct buf back_data;
    bool any; /* whether a span was printed already, so that a comma precedes the next */
};

/* ---- Spans in general ---- */

static void begin(struct trace *trace, struct span *span, const char *what, annal_slice which)
{
    if (span->end_us < span->start_us)
        span->end_us = span->start_us;
    turn_list_widen(&trace->turns, span->parent_seq, span->start_us, span->end_us);
    fputs(trace->any ? "," : "", stdout);
    trace->any = true;
    span_begin(span, trace->export->session, what, which);
    span_text(span, "gen_ai.conversation.id", trace->export->session);
}

/* Return the provider of a model as the conventions call it, because they require one in each span,
 * and some logs name only a model. */
static annal_slice provider_of(annal_slice model)
{
    static const struct {
        const char *begin, *provider;
    } known[] = {
        {"\"claude", "anthropic"}, {"\"gpt", "openai"},        {"\"o1", "openai"},
        {"\"o3", "openai"},        {"\"o4", "openai"},         {"\"gemini", "gcp.gemini"},
        {"\"grok", "x_ai"},        {"\"deepseek", "deepseek"}, {"\"mistral", "mistral_ai"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t len = strlen(known[i].begin);
        if (model.len > len && memcmp(model.ptr, known[i].begin, len) == 0)
            return annal_slice_of(known[i].provider);
    }
    return ANNAL_SLICE("unknown");
}

/* Begin the span of an operation of the conventions. */
static void begin_operation(struct trace *trace, struct span *span, const char *operation,
                            annal_slice which)
{
    begin(trace, span, operation, which);
    span_text(span, "gen_ai.operation.name", annal_slice_of(operation));
    annal_slice provider = summary_field(&trace->summary, FIELD_PROVIDER);
    if (provider.len > 0)
        span_raw(span, "gen_ai.provider.name", provider);
    else
        span_text(span, "gen_ai.provider.name",
                  provider_of(summary_field(&trace->summary, FIELD_MODEL)));
}

static void put_incomplete(struct span *span)
{
    span_true(span, "annal.incomplete");
    span_text(span, "error.type", ANNAL_SLICE("incomplete"));
}

/* ---- The root ---- */

static void put_parent(const struct trace *trace)
{
    char id[TRACE_ID_BYTES], root[SPAN_ID_BYTES];
    SCOPED_BUF scratch = {0};
    annal_slice raw = summary_field(&trace->summary, FIELD_PARENT), parent = {0};
    if (raw.len > 0 && annal__json_text(raw, &scratch, &parent) == ANNAL_OK) {
        span_trace_id(parent, id);
        span_id(parent, 0, root);
        printf(",\"links\":[{\"traceId\":\"%s\",\"spanId\":\"%s\"}]", id, root);
    }
}

static void put_root(struct trace *trace)
{
    const struct summary *summary = &trace->summary;
    annal_slice agent = summary_field(summary, FIELD_AGENT);
    bool incomplete = open_set_count(&summary->open, OPEN_CALL) > 0 ||
                      open_set_count(&summary->open, OPEN_TURN) > 0;
    struct span span = {.start_us = summary->first_us, .end_us = summary->last_us};
    begin_operation(trace, &span, "invoke_agent", agent);
    span_raw(&span, "gen_ai.agent.name", agent);
    span_raw(&span, "gen_ai.request.model", summary_field(summary, FIELD_MODEL));
    span_raw(&span, "annal.session.title", summary_field(summary, FIELD_TITLE));
    span_number(&span, "annal.session.events", (int64_t)summary->events);
    if (incomplete)
        put_incomplete(&span);
    span_status(incomplete,
                incomplete ? ANNAL_SLICE("the session ends in the middle") : (annal_slice){0});
    put_parent(trace);
    fputc('}', stdout);
}

/* ---- Events that began earlier ---- */

static annal_status read_back(struct trace *trace, uint64_t seq, annal_event *out_event,
                              annal_error *err)
{
    uint64_t data_bytes = 0;
    annal_status status = ANNAL_OK;
    if (trace->back == NULL)
        status =
            annal_cursor_open(trace->export->store, trace->export->session, seq, &trace->back, err);
    else
        status = annal_cursor_seek(trace->back, seq, err);
    do {
        if (status >= 0)
            status = annal__cursor_next_head(trace->back, out_event, &data_bytes, err);
    } while (status == ANNAL_DAMAGE);
    if (status == ANNAL_END || (status == ANNAL_OK && out_event->seq != seq))
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "export: the journal was changed during the export");
    if (status == ANNAL_OK && out_event->data.len < data_bytes)
        status = event_read_whole(trace->back, out_event, data_bytes, &trace->back_data, err);
    return status == ANNAL_OK ? event_mend(out_event, &trace->back_data, err) : status;
}

/* ---- Tools ---- */

static annal_slice error_type(const annal_event *event)
{
    annal_slice error = event_member(event, "error");
    annal_slice type =
        error.len > 0 && error.ptr[0] == '{' ? annal__json_member(error, "type") : error;
    return excerpt_is_text(type) && type.len < 100 ? type : ANNAL_SLICE("\"_OTHER\"");
}

static void put_result(struct span *span, const annal_event *result)
{
    annal_slice exit_code = event_member(result, "exit_code");
    span_raw(span, "gen_ai.tool.call.result", event_either(result, "output", "output_ref"));
    if (exit_code.len > 0)
        span_number(span, "process.exit.code", event_raw_count(exit_code));
    if (event_failed(result))
        span_raw(span, "error.type", error_type(result));
}

/* Print the span of a call. result is NULL if the call has no result. */
static void put_tool(struct trace *trace, const annal_event *call, uint64_t turn_seq,
                     const annal_event *result)
{
    annal_slice tool = event_member(call, "tool");
    const struct turn_span *turn = turn_list_find(&trace->turns, turn_seq);
    int64_t given_up_us =
        turn != NULL && turn->end_seq != 0 ? turn->end_us : trace->summary.last_us;
    struct span span = {call->seq, turn_seq, call->ts_us,
                        result != NULL ? result->ts_us : given_up_us, 0};
    begin_operation(trace, &span, "execute_tool", tool);
    span_raw(&span, "gen_ai.tool.name", tool);
    span_raw(&span, "gen_ai.tool.call.id", event_member(call, "call_id"));
    span_raw(&span, "gen_ai.tool.call.arguments", event_either(call, "input", "arguments"));
    if (result != NULL) {
        put_result(&span, result);
        span_end(event_failed(result), event_member(result, "error"));
    } else {
        put_incomplete(&span);
        span_end(true, ANNAL_SLICE("no result"));
    }
}

/* Print the span of a call that began earlier. result is the current event, or NULL. */
static annal_status put_call_back(struct trace *trace, const struct open_entry *call,
                                  const annal_event *result, annal_error *err)
{
    annal_event event;
    annal_status status = read_back(trace, call->seq, &event, err);
    event.ts_us = call->ts_us;
    if (status >= 0)
        put_tool(trace, &event, call->turn_seq, result);
    return status;
}

static annal_status take_call(struct trace *trace, const annal_event *event, annal_error *err)
{
    annal_event result;
    annal_slice id = event_member(event, "call_id");
    struct open_entry before = open_set_end(&trace->open, OPEN_CALL, id);
    struct open_entry answer = open_set_end(&trace->open, OPEN_RESULT, id);
    annal_status status = ANNAL_OK;
    if (before.seq != 0)
        status = put_call_back(trace, &before, NULL, err);
    if (status >= 0 && answer.seq != 0)
        status = read_back(trace, answer.seq, &result, err);
    result.ts_us = answer.ts_us;
    if (status < 0 || (answer.seq == 0 && open_set_begin(&trace->open, OPEN_CALL, id, event)))
        return status;
    put_tool(trace, event, open_set_turn(&trace->open), answer.seq != 0 ? &result : NULL);
    return ANNAL_OK;
}

static void put_result_alone(struct trace *trace, const annal_event *event, uint64_t turn_seq)
{
    struct span span = {event->seq, turn_seq, event->ts_us, event->ts_us, 0};
    begin(trace, &span, "tool result", (annal_slice){0});
    span_raw(&span, "gen_ai.tool.call.id", event_member(event, "call_id"));
    put_result(&span, event);
    span_end(event_failed(event), event_member(event, "error"));
}

static annal_status take_result(struct trace *trace, const annal_event *event, annal_error *err)
{
    annal_slice id = event_member(event, "call_id");
    struct open_entry call = open_set_end(&trace->open, OPEN_CALL, id);
    if (call.seq != 0)
        return put_call_back(trace, &call, event, err);
    if (!open_set_begin(&trace->open, OPEN_RESULT, id, event))
        put_result_alone(trace, event, open_set_turn(&trace->open));
    return ANNAL_OK;
}

/* ---- Turns ---- */

static annal_status put_turn_end(struct trace *trace, struct span *span, uint64_t seq,
                                 annal_error *err)
{
    annal_event end;
    annal_status status = read_back(trace, seq, &end, err);
    if (status < 0)
        return status;
    bool failed = event_type_ends(&end, "failed") || event_type_ends(&end, "error");
    span_text(span, "annal.turn.end", end.type);
    span_raw(span, "annal.turn.reason", event_member(&end, "reason"));
    if (failed)
        span_raw(span, "error.type", error_type(&end));
    span_end(failed, event_member(&end, "error"));
    return ANNAL_OK;
}

static annal_status put_turn(struct trace *trace, const struct turn_span *turn, annal_error *err)
{
    annal_event event;
    annal_status status = read_back(trace, turn->seq, &event, err);
    if (status < 0)
        return status;
    struct span span = {turn->seq, 0, turn->start_us,
                        turn->end_seq != 0 ? turn->end_us : trace->summary.last_us, 0};
    begin(trace, &span, "turn", event_either(&event, "sequence", "turn_id"));
    const char *taken = summary_taken_back(&trace->summary, event_member(&event, "turn_id"));
    span_raw(&span, "annal.turn.id", event_member(&event, "turn_id"));
    if (taken != NULL)
        span_text(&span, "annal.turn.taken_back", annal_slice_of(taken));
    if (turn->end_seq != 0)
        return put_turn_end(trace, &span, turn->end_seq, err);
    if (turn->seq == trace->summary.answered_seq) {
        span_end(false, (annal_slice){0});
    } else {
        put_incomplete(&span);
        span_end(true, ANNAL_SLICE("the turn has no end"));
    }
    return ANNAL_OK;
}

static void take_turn_begins(struct trace *trace, const annal_event *event)
{
    annal_slice id = event_member(event, "turn_id");
    (void)open_set_end(&trace->open, OPEN_TURN, id);
    (void)open_set_begin(&trace->open, OPEN_TURN, id, event);
    turn_list_add(&trace->turns, event->seq, event->ts_us);
}

static void take_turn_ends(struct trace *trace, const annal_event *event)
{
    annal_slice id = event_member(event, "turn_id");
    struct open_entry open = id.len > 0 ? open_set_end(&trace->open, OPEN_TURN, id)
                                        : open_set_end_newest(&trace->open, OPEN_TURN);
    struct turn_span *turn = turn_list_find(&trace->turns, open.seq);
    if (turn == NULL)
        return;
    turn->end_seq = event->seq;
    turn_list_widen(&trace->turns, turn->seq, event->ts_us, event->ts_us);
}

static annal_status put_turns(struct trace *trace, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < trace->turns.count && status >= 0; i++)
        status = put_turn(trace, &trace->turns.all[i], err);
    return status;
}

/* ---- Requests to a model ---- */

static void put_messages(struct span *span, const char *key, const struct buf *messages)
{
    SCOPED_BUF array = {0};
    if (messages->len == 0)
        return;
    must_printf(&array, "[%.*s]", ANNAL_FMT(annal__buf_slice(messages)));
    span_text(span, key, annal__buf_slice(&array));
}

static void put_tokens(struct span *span, const struct chat_tokens *tokens)
{
    static const char *const parts[] = {"gen_ai.usage.cache_read.input_tokens",
                                        "gen_ai.usage.cache_write.input_tokens",
                                        "gen_ai.usage.reasoning.output_tokens"};
    span_number(span, "gen_ai.usage.input_tokens", tokens->of[CHAT_INPUT]);
    span_number(span, "gen_ai.usage.output_tokens", tokens->of[CHAT_OUTPUT]);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (tokens->of[CHAT_CACHED + i] > 0)
            span_number(span, parts[i], tokens->of[CHAT_CACHED + i]);
    if (tokens->of[CHAT_COST] > 0)
        span_real(span, "gen_ai.usage.cost", (double)tokens->of[CHAT_COST] / 1e6);
}

static void put_chat(void *arg, const struct chat *chat)
{
    struct trace *trace = arg;
    annal_slice model = annal__buf_slice(&chat->model);
    if (model.len == 0)
        model = summary_field(&trace->summary, FIELD_MODEL);
    struct span span = {chat->seq, chat->turn_seq, chat->start_us, chat->end_us, 0};
    begin_operation(trace, &span, "chat", model);
    span_raw(&span, "gen_ai.request.model", model);
    span_raw(&span, "gen_ai.response.id", annal__buf_slice(&chat->id));
    if (chat->finish != NULL)
        span_word(&span, "gen_ai.response.finish_reasons", chat->finish);
    if (chat->used)
        put_tokens(&span, &chat->tokens);
    put_messages(&span, "gen_ai.input.messages", &chat->input);
    put_messages(&span, "gen_ai.output.messages", &chat->output);
    if (chat->cut)
        span_true(&span, "annal.content_cut");
    span_end(false, (annal_slice){0});
}

/* Print the span of a request that the model did not answer. */
static void put_failure(struct trace *trace, const annal_event *event)
{
    annal_slice error = event_member(event, "error");
    struct span span = {event->seq, open_set_turn(&trace->open),
                        trace->chats.asked_us != 0 ? trace->chats.asked_us : event->ts_us,
                        event->ts_us, 0};
    begin_operation(trace, &span, "chat", (annal_slice){0});
    span_raw(&span, "gen_ai.request.model", summary_field(&trace->summary, FIELD_MODEL));
    span_raw(&span, "error.type", error_type(event));
    span_end(true, error);
}

/* ---- A session ---- */

/* Return the time of an event, or of the newest event before it if the event has no time, which
 * importers write as 1. */
static int64_t time_of(struct trace *trace, const annal_event *event)
{
    if (event->ts_us > 1)
        trace->now_us = event->ts_us;
    return trace->now_us;
}

static annal_status take(struct trace *trace, const annal_event *given, annal_error *err)
{
    annal_event timed = *given, *event = &timed;
    event->ts_us = time_of(trace, given);
    struct tally used = event_spending_add(&trace->spending, event);
    chats_take(&trace->chats, event, &used, open_set_turn(&trace->open));
    switch (event_fact_of(event)) {
    case FACT_CALL:
        return take_call(trace, event, err);
    case FACT_RESULT:
        return take_result(trace, event, err);
    case FACT_TURN_BEGINS:
        take_turn_begins(trace, event);
        break;
    case FACT_TURN_ENDS:
        take_turn_ends(trace, event);
        break;
    default:
        if (event_is(event, "provider.failed") || event_is(event, "provider_error"))
            put_failure(trace, event);
    }
    return ANNAL_OK;
}

static annal_status put_open(struct trace *trace, annal_error *err)
{
    annal_event event;
    annal_status status = ANNAL_OK;
    open_set_sort(&trace->open);
    for (uint32_t i = 0; i < trace->open.capacity && status >= 0; i++) {
        const struct open_entry *entry = &trace->open.entries[i];
        if (entry->seq == 0 || entry->kind == OPEN_TURN)
            continue;
        if (entry->kind == OPEN_RESULT)
            status = read_back(trace, entry->seq, &event, err);
        event.ts_us = entry->ts_us;
        if (entry->kind == OPEN_CALL)
            status = put_call_back(trace, entry, NULL, err);
        else if (status >= 0)
            put_result_alone(trace, &event, entry->turn_seq);
    }
    return status;
}

/* Pass all events to fn. Only the last pass over a session counts for the progress. */
static annal_status pass(struct trace *trace, bool last_pass,
                         annal_status (*fn)(struct trace *, const annal_event *, annal_error *),
                         annal_error *err)
{
    struct export_reader reader;
    annal_event event;
    annal_status status = export_reader_open(&reader, trace->export, last_pass, err);
    while (status >= 0 && status != ANNAL_END && out_wanted()) {
        status = export_reader_next(&reader, &event, err);
        if (status == ANNAL_OK && !summary_supersedes(&trace->summary, &event))
            status = fn(trace, &event, err);
    }
    export_reader_close(&reader);
    return status < 0 ? status : ANNAL_OK;
}

static annal_status count(struct trace *trace, const annal_event *event, annal_error *err)
{
    (void)err;
    struct tally used = event_spending_add(&trace->spending, event);
    chats_take(&trace->chats, event, &used, 0);
    return ANNAL_OK;
}

/* Read all events once to find how many tokens were counted twice, and must be subtracted from the
 * first answers (chat.h, rule 2). */
static annal_status find_overdraft(struct trace *trace, annal_error *err)
{
    annal_status status = pass(trace, false, count, err);
    chats_finish(&trace->chats);
    struct chat_tokens owed = trace->chats.owed;
    chats_done(&trace->chats);
    trace->chats = (struct chats){.owed = owed};
    trace->spending = (struct spending){0};
    return status;
}

static annal_status put_session(struct trace *trace, annal_error *err)
{
    annal_slice agent = summary_field(&trace->summary, FIELD_AGENT);
    fputs("{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
          "\"stringValue\":",
          stdout);
    if (agent.len > 0)
        span_put_raw_string(agent);
    else
        fputs("\"annal\"", stdout);
    printf("}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"annal\",\"version\":\"%s\"},\"spans\":[",
           annal_version());
    trace->now_us = trace->summary.first_us;
    put_root(trace);
    annal_status status = pass(trace, true, take, err);
    if (status >= 0)
        chats_finish(&trace->chats);
    if (status >= 0)
        status = put_open(trace, err);
    if (status >= 0)
        status = put_turns(trace, err);
    fputs("],\"schemaUrl\":\"" SCHEMA_URL "\"}],\"schemaUrl\":\"" SCHEMA_URL "\"}]}\n", stdout);
    return status;
}

int otlp_export(struct export *export)
{
    struct trace trace = {.export = export};
    annal_error err = {0};
    annal_status status = summary_make(&trace.summary, export, &err);
    if (status >= 0 && trace.summary.takes_back)
        status = find_overdraft(&trace, &err);
    trace.chats.fn = put_chat;
    trace.chats.arg = &trace;
    if (status >= 0)
        status = put_session(&trace, &err);
    annal_cursor_close(trace.back);
    annal__buf_done(&trace.back_data);
    chats_done(&trace.chats);
    open_set_done(&trace.open);
    turn_list_done(&trace.turns);
    summary_done(&trace.summary);
    return status < 0 ? fail_error(&err) : 0;
}
