/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a transcript in Markdown: the facts of the session, then, turn by turn, who said what, the
 * arguments and results of tools, failures, and calls and turns that did not end.
 */
#include "tools/cli/must.h"
#include "tools/export/page.h"
#include "tools/export/summary.h"
#include "tools/show/excerpt.h"

#include <annal/index.h>
#include <annal/query.h>

#include <inttypes.h>
#include <string.h>

enum { LINE_CHARS = 200, NAME_CHARS = 80, RESULT_LINES = 40, OTHER_CHARS = 400 };

struct transcript {
    const struct export *export;
    const struct summary *summary;
    struct known_calls calls;
    struct spending spending;
    struct tally turn; /* usage since the turn began */
    uint64_t left_out; /* number of events that are not shown because of their type */
    struct buf hold;   /* a value of the current event without base64 */
    bool folded;       /* whether the current turn was undone, and is printed in a folded section */
};

static void put_line(struct buf *out, const char *before, annal_slice raw, size_t chars,
                     const char *after)
{
    must_append_text(out, before);
    page_inline(out, raw, chars);
    must_append_text(out, after);
}

/* ---- The head ---- */

static void put_field(struct buf *out, const struct summary *summary, enum session_field field,
                      const char *name)
{
    annal_slice raw = summary_field(summary, field);
    if (raw.len == 0)
        return;
    must_printf(out, "- **%s**: ", name);
    page_code(out, raw, LINE_CHARS);
    must_append_text(out, "\n");
}

static void put_time_fields(struct buf *out, const struct summary *summary)
{
    char first[ANNAL_TIME_BYTES], last[ANNAL_TIME_BYTES];
    if (summary->first_us == 0)
        return;
    annal_time_format(summary->first_us, first);
    annal_time_format(summary->last_us, last);
    must_printf(out, "- **Time**: %.10s %.8s to %.10s %.8s UTC\n", first, first + 11, last,
                last + 11);
}

/* Append the usage between two texts; nothing if there is none. */
static void put_tokens(struct buf *out, const char *before, const struct tally *used,
                       const char *after)
{
    char in[HUMAN_BYTES], produced[HUMAN_BYTES];
    if (used->input_tokens == 0 && used->output_tokens == 0 && used->cost_microusd == 0)
        return;
    must_printf(out, "%s%s tokens in, %s out", before, event_signed_text(in, used->input_tokens),
                event_signed_text(produced, used->output_tokens));
    if (used->cost_microusd != 0)
        must_printf(out, ", $%.4f", (double)used->cost_microusd / 1e6);
    must_append_text(out, after);
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void put_unfinished(struct buf *out, const struct summary *summary)
{
    uint32_t calls = open_set_count(&summary->open, OPEN_CALL);
    uint32_t turns = open_set_count(&summary->open, OPEN_TURN);
    if (summary->lost > 0)
        must_printf(out, "- **Damaged**: %" PRIu64 " place%s in the journal cannot be read\n",
                    summary->lost, plural(summary->lost));
    if (calls > 0)
        must_printf(out, "- **Unfinished**: %" PRIu32 " tool call%s without a result\n", calls,
                    plural(calls));
    if (turns > 0)
        must_printf(out, "- **Unfinished**: %" PRIu32 " turn%s without an end\n", turns,
                    plural(turns));
}

static int put_title_row(void *arg, const annal_row *row)
{
    if (row->values[0].kind == ANNAL_VALUE_TEXT)
        page_inline(arg, row->values[0].bytes, LINE_CHARS);
    return 0;
}

/* Print the title: from an event, else as in annal ls, where it may be the user's first message. */
static void put_title(struct buf *out, const struct export *export, const struct summary *summary)
{
    const annal_value param = {.kind = ANNAL_VALUE_TEXT, .bytes = export->session};
    annal_slice title = summary_field(summary, FIELD_TITLE);
    annal_index *index = NULL;
    size_t before = out->len;
    page_inline(out, title, LINE_CHARS);
    if (title.len == 0 && annal_index_open(export->store, NULL, &index, NULL) >= 0)
        (void)!annal_index_sql(index, ANNAL_SLICE("SELECT title FROM sessions WHERE id = ?1"),
                               &(annal_sql_options){.params = &param, .param_count = 1},
                               put_title_row, out, NULL);
    annal_index_close(index);
    if (out->len == before)
        page_inline(out, export->session, LINE_CHARS);
}

static void put_head(struct buf *out, const struct export *export, const struct summary *summary)
{
    char count[HUMAN_BYTES];
    const struct tally *tally = &summary->spending.tally;
    must_append_text(out, "# ");
    put_title(out, export, summary);
    must_printf(out, "\n\n- **Session**: `%.*s`\n", ANNAL_FMT(export->session));
    put_field(out, summary, FIELD_AGENT, "Agent");
    put_field(out, summary, FIELD_PROVIDER, "Provider");
    put_field(out, summary, FIELD_MODEL, "Model");
    put_field(out, summary, FIELD_DIRECTORY, "Directory");
    put_field(out, summary, FIELD_BRANCH, "Branch");
    put_field(out, summary, FIELD_PARENT, "Started by session");
    put_time_fields(out, summary);
    must_printf(out, "- **Events**: %s\n", human_count(count, summary->events));
    if (tally->turns > 0)
        must_printf(out, "- **Turns**: %s\n", human_count(count, tally->turns));
    if (summary->calls > 0) {
        must_printf(out, "- **Tool calls**: %s", human_count(count, summary->calls));
        if (summary->failed_calls > 0)
            must_printf(out, ", %s failed", human_count(count, summary->failed_calls));
        must_append_text(out, "\n");
    }
    put_tokens(out, "- **Used**: ", tally, "\n");
    put_unfinished(out, summary);
    must_append_text(out, "\n");
}

/* ---- Messages ---- */

/* Return a member of the event's data, or the other one, without texts in base64. The slice lives
 * until the next call. */
static annal_slice readable(struct transcript *transcript, const annal_event *event,
                            const char *name, const char *other)
{
    return page_without_base64(event_either(event, name, other), &transcript->hold);
}

static void put_place(struct buf *out, const annal_event *event)
{
    char ts[ANNAL_TIME_BYTES];
    annal_time_format(event->ts_us, ts);
    must_printf(out, "*event %" PRIu64 ", %.10s %.8s*\n\n", event->seq, ts, ts + 11);
}

static void put_message(struct buf *out, struct transcript *transcript, const annal_event *event)
{
    annal_slice role = event_member(event, "role");
    put_line(out, "### ", excerpt_is_text(role) ? role : ANNAL_SLICE("message"), NAME_CHARS,
             "\n\n");
    put_place(out, event);
    page_content(out, readable(transcript, event, "content", "content"));
}

/* ---- Tools ---- */

static void put_call(struct buf *out, struct transcript *transcript, const annal_event *event)
{
    annal_slice call = event_member(event, "call_id"), tool = event_member(event, "tool");
    annal_slice input = readable(transcript, event, "input", "arguments");
    if (call.len > 0)
        event_calls_add(&transcript->calls, call, tool);
    put_line(out, "### Call: ", tool.len > 0 ? tool : ANNAL_SLICE("?"), NAME_CHARS, "\n\n");
    put_place(out, event);
    if (input.len > 0) {
        page_members(out, input);
        must_append_text(out, "\n");
    }
    if (open_set_has(&transcript->summary->open, OPEN_CALL, call, event->seq))
        must_append_text(out, "**No result**: the session ends while this call is under way.\n\n");
}

static void put_result_facts(struct buf *out, const annal_event *event)
{
    annal_slice ms = event_member(event, "duration_ms"), code = event_member(event, "exit_code");
    if (ms.len > 0)
        put_line(out, ", ", ms, 20, " ms");
    if (code.len > 0 && (code.len > 1 || code.ptr[0] != '0'))
        put_line(out, ", exit status ", code, 20, "");
}

/* Print an output of a result. */
static void put_output(struct buf *out, const struct transcript *transcript,
                       const annal_event *event, annal_slice output)
{
    SCOPED_BUF hint = {0};
    annal_slice session = transcript->export->session;
    must_printf(&hint,
                "`annal export %.*s --format markdown --full`, or `annal query %.*s --seq %" PRIu64
                "..%" PRIu64 "`",
                ANNAL_FMT(session), ANNAL_FMT(session), event->seq, event->seq);
    page_output(out, output, transcript->export->full ? 0 : RESULT_LINES, annal__buf_slice(&hint));
}

static void put_result(struct buf *out, struct transcript *transcript, const annal_event *event)
{
    annal_slice call = event_member(event, "call_id");
    const char *tool = event_calls_tool(&transcript->calls, call);
    put_line(out, event_failed(event) ? "### Failed: " : "### Result: ",
             tool != NULL   ? annal_slice_of(tool)
             : call.len > 0 ? call
                            : ANNAL_SLICE("?"),
             NAME_CHARS, "");
    put_result_facts(out, event);
    must_append_text(out, "\n\n");
    put_place(out, event);
    put_output(out, transcript, event, readable(transcript, event, "output", "output_ref"));
    put_output(out, transcript, event, readable(transcript, event, "error", "error"));
}

static void end_fold(struct buf *out, struct transcript *transcript)
{
    if (transcript->folded)
        must_append_text(out, "</details>\n\n");
    transcript->folded = false;
}

static void put_turn_begins(struct buf *out, struct transcript *transcript,
                            const annal_event *event)
{
    const char *taken = summary_taken_back(transcript->summary, event_member(event, "turn_id"));
    end_fold(out, transcript);
    put_line(out, "## Turn ", event_either(event, "sequence", "turn_id"), NAME_CHARS, "");
    if (taken != NULL)
        must_printf(out,
                    " (%s)\n\n<details><summary>No longer part of the conversation: %s</summary>",
                    taken, taken);
    transcript->folded = taken != NULL;
    must_append_text(out, "\n\n");
    put_place(out, event);
    page_content(out, readable(transcript, event, "prompt", "prompt"));
}

static void put_turn_ends(struct buf *out, const struct transcript *transcript,
                          const annal_event *event)
{
    annal_slice why = event_either(event, "error", "reason");
    bool done = event_type_ends(event, "completed") || event_type_ends(event, "complete");
    must_printf(out, "**Turn %s**",
                done                                  ? "completed"
                : event_type_ends(event, "cancelled") ? "cancelled"
                                                      : "failed");
    put_line(out, why.len > 0 ? ": " : "", why, OTHER_CHARS, "");
    put_tokens(out, " · ", &transcript->turn, "");
    must_append_text(out, "\n\n");
}

/* ---- Other events ---- */

/* Other types of events that matter to a reader of the conversation, the name under which they are
 * printed, and the member that is printed, or another one if that is missing. */
static const struct told {
    const char *type;
    const char *name;
    const char *member;
    const char *other;
} told[] = {{"provider.failed", "The model did not answer", "error", "provider"},
            {"provider_error", "The model did not answer", "error", "provider"},
            {"checkpoint.noted", "Noted", "note", "trigger"},
            {"session.paused", "Session paused", "reason", "status"},
            {"session_pause", "Session paused", "reason", "status"},
            {"session.resumed", "Session resumed", "reason", "from_seq"},
            {"session_resume", "Session resumed", "reason", "from_seq"},
            {"session.ended", "Session ended", "reason", "status"},
            {"session_end", "Session ended", "reason", "status"},
            {"session.status_changed", "Session is now", "to", "status"},
            {"artifact.stored", "File stored", "name", "sha256"},
            {"annal.gap", "An event is missing here", "why", "first_seq"},
            {"import.unreadable", "A line of the log that cannot be read", "text", "reason"}};

static const struct told *told_of(const annal_event *event)
{
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        if (event_is(event, told[i].type))
            return &told[i];
    }
    return NULL;
}

static bool is_in_head(const annal_event *event)
{
    return event_is(event, "session.created") || event_is(event, "session.updated") ||
           event_is(event, "session_start");
}

static void put_other(struct buf *out, struct transcript *transcript, const annal_event *event)
{
    const struct told *tell = told_of(event);
    if (tell != NULL) {
        annal_slice what = readable(transcript, event, tell->member, tell->other);
        must_printf(out, "**%s**", tell->name);
        put_line(out, what.len > 0 ? ": " : "", what, OTHER_CHARS, "\n\n");
    } else if (transcript->export->full) {
        must_printf(out, "*event %" PRIu64 "* `%.*s` ", event->seq, ANNAL_FMT(event->type));
        page_code(out, page_without_base64(event->data, &transcript->hold), SIZE_MAX - 1);
        must_append_text(out, "\n\n");
    } else if (!is_in_head(event)) {
        transcript->left_out++;
    }
}

static void put_event(struct buf *out, struct transcript *transcript, const annal_event *event)
{
    struct tally used = event_spending_add(&transcript->spending, event);
    enum fact fact = event_fact_of(event);
    if (fact == FACT_TURN_BEGINS)
        transcript->turn = (struct tally){0};
    transcript->turn.input_tokens += used.input_tokens;
    transcript->turn.output_tokens += used.output_tokens;
    transcript->turn.cost_microusd += used.cost_microusd;
    switch (fact) {
    case FACT_MESSAGE:
        if (event_content_is_empty(event_member(event, "content")))
            put_other(out, transcript, event);
        else
            put_message(out, transcript, event);
        break;
    case FACT_CALL:
        put_call(out, transcript, event);
        break;
    case FACT_RESULT:
        put_result(out, transcript, event);
        break;
    case FACT_TURN_BEGINS:
        put_turn_begins(out, transcript, event);
        break;
    case FACT_TURN_ENDS:
        put_turn_ends(out, transcript, event);
        transcript->turn = (struct tally){0};
        break;
    case FACT_USAGE:
        break; /* token usage is not printed here, but at the end of the turn and in the head */
    case FACT_OTHER:
        put_other(out, transcript, event);
    }
}

static void flush(struct buf *out)
{
    out_slice(annal__buf_slice(out));
    annal__buf_clear(out);
}

static void put_damage(struct buf *out, const struct export_reader *reader)
{
    annal_damage damage = annal_cursor_damage(reader->cursor);
    if (damage.event_lost)
        must_printf(out, "**Damaged**: event %" PRIu64 " cannot be read: %s\n\n", damage.seq,
                    damage.what);
}

static void put_end(struct buf *out, const struct transcript *transcript)
{
    if (open_set_count(&transcript->summary->open, OPEN_TURN) > 0)
        must_append_text(out, "**The session ends here, in the middle of a turn.**\n\n");
    if (transcript->left_out > 0)
        must_printf(
            out,
            "*%" PRIu64 " event%s of other types or without a text %s not shown: `annal export "
            "%.*s --format markdown --full`*\n\n",
            transcript->left_out, plural(transcript->left_out),
            transcript->left_out == 1 ? "is" : "are", ANNAL_FMT(transcript->export->session));
}

int markdown_export(struct export *export)
{
    struct export_reader reader = {0};
    struct summary summary;
    SCOPED_BUF out = {.limit = SIZE_MAX};
    struct transcript transcript = {
        .export = export, .summary = &summary, .hold = {.limit = SIZE_MAX}};
    annal_event event;
    annal_error err = {0};
    annal_status status = summary_make(&summary, export, &err);
    if (status >= 0) {
        put_head(&out, export, &summary);
        status = export_reader_open(&reader, export, true, &err);
    }
    while (status >= 0 && status != ANNAL_END && out_wanted()) {
        status = export_reader_next(&reader, &event, &err);
        if (status == ANNAL_OK && !summary_supersedes(&summary, &event))
            put_event(&out, &transcript, &event);
        else if (status == ANNAL_DAMAGE)
            put_damage(&out, &reader);
        flush(&out);
    }
    end_fold(&out, &transcript);
    if (status >= 0)
        put_end(&out, &transcript);
    flush(&out);
    export_reader_close(&reader);
    annal__buf_done(&transcript.hold);
    summary_done(&summary);
    return status < 0 ? fail_error(&err) : 0;
}
