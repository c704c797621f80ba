/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/conversation.h"

#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/show/excerpt.h"
#include "tools/show/gist.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

enum { INDENT = 19, LINE_CHARS = 160, MESSAGE_LINES = 40, THOUGHT_LINES = 6, COLUMNS_LEAST = 20 };

/* ---- The state before the first event ---- */

void conversation_know_turn(struct conversation *conversation, annal_slice turn_id, bool ended,
                            uint64_t seq)
{
    event_spending_know_turn(&conversation->spending, turn_id, ended, seq);
}

void conversation_know_call(struct conversation *conversation, annal_slice call_id,
                            annal_slice tool)
{
    SCOPED_BUF raw = {0};
    must_quote(&raw, call_id);
    event_calls_add(&conversation->calls, annal__buf_slice(&raw), tool);
}

/* ---- Printing ---- */

#define BOLD   "1"
#define DIM    "2"
#define RED    "31"
#define GREEN  "1;32"
#define YELLOW "33"
#define BLUE   "34"
#define CYAN   "1;36"

static void colour(const struct conversation *talk, const char *code)
{
    if (talk->colours)
        out_style(code);
}

static void print_time(struct conversation *talk, const annal_event *event)
{
    char time[HUMAN_TIME_BYTES];
    human_time(time, event->ts_us);
    conversation_end_line(talk);
    colour(talk, DIM);
    if (memcmp(talk->day, time, 10) != 0)
        printf("%*s%.10s\n", INDENT, "", time);
    snprintf(talk->day, sizeof talk->day, "%.10s", time);
    talk->seq = event->seq;
    printf("%7" PRIu64 "  %.8s  ", event->seq, time + 11);
    colour(talk, "0");
}

static int room(const struct conversation *talk, size_t used)
{
    int columns = talk->columns - INDENT - (int)used - 1;
    return talk->full ? 1 << 20 : talk->columns == 0 ? LINE_CHARS : columns < 20 ? 20 : columns;
}

/* Print how many lines were cut, and, the first time, how to read them. */
static void print_hint(struct conversation *talk, uint64_t cut)
{
    if (cut == 0)
        return;
    colour(talk, DIM);
    printf("%*s… %" PRIu64 " more line%s", INDENT, "", cut, cut == 1 ? "" : "s");
    if (!talk->hinted && talk->session != NULL)
        printf(": annal query %s --seq %" PRIu64 "..%" PRIu64 " --json", talk->session, talk->seq,
               talk->seq);
    else if (!talk->hinted)
        fputs(": --full prints them", stdout);
    fputc('\n', stdout);
    colour(talk, "0");
    talk->hinted = true;
}

/* Print a raw text in at most `lines` lines; used is the number of columns used on its first
 * line. */
static void print_block(struct conversation *talk, annal_slice raw, int lines, int used)
{
    const int columns = talk->columns - INDENT - 1;
    const struct excerpt excerpt = {.indent = INDENT,
                                    .lines_max = talk->full ? 0 : lines,
                                    .line_chars = talk->full ? 0 : LINE_CHARS * 4,
                                    .columns = columns >= COLUMNS_LEAST ? columns : 0,
                                    .used = used};
    print_hint(talk, excerpt_print(&excerpt, raw));
}

/* Print one block of a message's content. */
static void print_part(struct conversation *talk, annal_slice part)
{
    static const char thinks[] = "(thinks) ";
    bool thought = event_block_is_thought(part);
    annal_slice text = event_block_text(part), type;
    if (event_block_is_empty(part) && !talk->full)
        return;
    printf("%*s", INDENT, "");
    if (thought)
        colour(talk, DIM);
    if (text.len > 0) {
        fputs(thought ? thinks : "", stdout);
        print_block(talk, text, thought ? THOUGHT_LINES : MESSAGE_LINES,
                    thought ? (int)sizeof thinks - 1 : 0);
    } else if (part.len > 0 && part.ptr[0] == '"') {
        print_block(talk, part, MESSAGE_LINES, 0);
    } else {
        fputc('[', stdout);
        excerpt_print_line(event_block_is_media(part, &type) && !talk->full ? type : part,
                           (size_t)room(talk, 2));
        fputs("]\n", stdout);
    }
    if (thought)
        colour(talk, "0");
}

/* Print the content of a message: a text, blocks, or an object in the form of its program. */
static void print_content(struct conversation *talk, annal_slice content)
{
    struct json_walk walk;
    annal_slice part;
    if (content.len == 0)
        return;
    if (content.ptr[0] == '[' && annal__json_walk_array(&walk, content)) {
        while (annal__json_walk_item(&walk, &part))
            print_part(talk, part);
        return;
    }
    print_part(talk, content);
}

static void print_message(struct conversation *talk, const annal_event *event)
{
    annal_slice role = event_member(event, "role");
    bool user = annal__slice_is(role, "\"user\"");
    bool assistant = annal__slice_is(role, "\"assistant\"");
    colour(talk, user ? GREEN : assistant ? CYAN : YELLOW);
    if (role.len > 0)
        excerpt_print_line(role, 30);
    else
        fputs("message", stdout);
    colour(talk, "0");
    fputc('\n', stdout);
    print_content(talk, event_member(event, "content"));
}

/* Print a mark and the name of a tool, such as "→ Grep ". Returns the number of columns used. */
static int print_tool(struct conversation *talk, const char *mark, const char *style,
                      annal_slice tool)
{
    SCOPED_BUF name = {0};
    excerpt_line(&name, tool.len > 0 ? tool : ANNAL_SLICE("\"?\""), 60);
    colour(talk, style);
    fputs(mark, stdout);
    int used = 4 + out_cut(60, annal__buf_slice(&name));
    colour(talk, "0");
    fputs("  ", stdout);
    return used;
}

/* Print the line of a call. Its result may be added to the line. */
static void print_call(struct conversation *talk, const annal_event *event)
{
    annal_slice call = event_member(event, "call_id"), tool = event_member(event, "tool");
    annal_slice input = event_either(event, "input", "arguments");
    SCOPED_BUF line = {0};
    if (call.len > 0)
        event_calls_add(&talk->calls, call, tool);
    int used = print_tool(talk, "→ ", BLUE, tool);
    if (talk->full) {
        excerpt_print_line(input, (size_t)room(talk, tool.len + 4));
        fputc('\n', stdout);
        return;
    }
    gist_input(&line, input);
    int left = room(talk, (size_t)used);
    used += out_cut(left - left / 3, annal__buf_slice(&line));
    annal__buf_clear(&talk->call.bytes);
    if (call.len > 0) {
        must_append_slice(&talk->call.bytes, call);
        talk->call.id = annal__buf_slice(&talk->call.bytes);
        talk->call.used = used;
    }
    if (talk->rewrites || talk->call.id.len == 0)
        fputc('\n', stdout);
}

void conversation_end_line(struct conversation *conversation)
{
    if (conversation->call.id.len > 0 && !conversation->rewrites)
        fputc('\n', stdout);
    conversation->call.id = (annal_slice){0};
}

/* If the last line is the line of this call, continue it for the result. Returns false
 * otherwise. */
static bool continue_call(struct conversation *talk, annal_slice call)
{
    char up[40];
    if (call.len == 0 || !annal__slice_same(talk->call.id, call))
        return false;
    snprintf(up, sizeof up, "\033[A\033[%dG", INDENT + talk->call.used + 1);
    if (talk->rewrites)
        out_control(stdout, up);
    fputs("  ", stdout);
    talk->call.id = (annal_slice){0};
    return true;
}

static void print_facts(const annal_event *event, bool failed, struct buf *out)
{
    annal_slice ms = event_member(event, "duration_ms");
    annal_slice exit_code = event_member(event, "exit_code");
    if (ms.len > 0)
        must_printf(out, "%.*s ms  ", ANNAL_FMT(ms));
    if (exit_code.len > 0 && exit_code.len < 12 && (exit_code.ptr[0] != '0' || failed))
        must_printf(out, "exit %.*s  ", ANNAL_FMT(exit_code));
}

static annal_slice tool_of(struct conversation *talk, const annal_event *event)
{
    annal_slice call = event_member(event, "call_id");
    const char *tool = event_calls_tool(&talk->calls, call);
    return tool != NULL ? annal_slice_of(tool) : call;
}

/* Print a result on one line: its first words, and its number of lines. */
static void print_result(struct conversation *talk, const annal_event *event)
{
    annal_slice output = event_either(event, "output", "output_ref");
    annal_slice call = event_member(event, "call_id");
    bool failed = event_failed(event);
    char lines[40] = "";
    SCOPED_BUF text = {0};
    int used = talk->call.used;
    if (continue_call(talk, call)) {
        colour(talk, failed ? RED : BLUE);
        fputs(failed ? "✗ " : "← ", stdout);
        used += 4;
    } else {
        print_time(talk, event);
        used = print_tool(talk, failed ? "✗ " : "← ", failed ? RED : BLUE, tool_of(talk, event));
        colour(talk, failed ? RED : DIM);
    }
    uint64_t count = excerpt_lines(event_content_text(output));
    if (count > 1)
        snprintf(lines, sizeof lines, " (%" PRIu64 " lines)", count);
    print_facts(event, failed, &text);
    gist_output(&text, output.len > 0 ? output : event_member(event, "error"));
    (void)out_cut(room(talk, (size_t)used + strlen(lines)), annal__buf_slice(&text));
    puts(lines);
    colour(talk, "0");
}

/* Print all of a result, for an uncut conversation (full). */
static void print_result_whole(struct conversation *talk, const annal_event *event)
{
    annal_slice output = event_either(event, "output", "output_ref");
    bool failed = event_failed(event);
    SCOPED_BUF facts = {0};
    print_time(talk, event);
    (void)print_tool(talk, failed ? "✗ " : "← ", failed ? RED : BLUE, tool_of(talk, event));
    print_facts(event, failed, &facts);
    out_slice(annal__buf_slice(&facts));
    if (output.len > 0 && output.ptr[0] == '"') {
        print_block(talk, output, 0, 0);
    } else if (output.len > 0 && output.ptr[0] == '[') {
        fputc('\n', stdout);
        print_content(talk, output);
    } else {
        excerpt_print_line(output.len > 0 ? output : event_member(event, "error"),
                           (size_t)room(talk, 30));
        fputc('\n', stdout);
    }
}

static void print_tally(struct conversation *talk, const struct tally *used)
{
    char text[TALLY_BYTES], in[HUMAN_BYTES], out[HUMAN_BYTES];
    colour(talk, DIM);
    if (used->input_tokens != 0 || used->output_tokens != 0 || used->cost_microusd != 0)
        printf("tokens: %s in, %s out; ", event_signed_text(in, used->input_tokens),
               event_signed_text(out, used->output_tokens));
    printf("so far %s\n", event_tally_text(text, &talk->spending.tally));
    colour(talk, "0");
}

static void print_turn_begins(const struct conversation *talk, const annal_event *event)
{
    colour(talk, BOLD);
    fputs("turn ", stdout);
    excerpt_print_line(event_either(event, "sequence", "turn_id"), 60);
    fputs(" begins\n", stdout);
    colour(talk, "0");
}

static void print_turn_ends(const struct conversation *talk, const annal_event *event)
{
    annal_slice why = event_either(event, "error", "reason");
    colour(talk, BOLD);
    printf("turn ends: %s",
           event_type_ends(event, "cancelled")                                         ? "cancelled"
           : event_type_ends(event, "completed") || event_type_ends(event, "complete") ? "completed"
                                                                                       : "failed");
    colour(talk, "0");
    if (why.len > 0) {
        fputs("  ", stdout);
        excerpt_print_line(why, (size_t)room(talk, 24));
    }
    fputs("  ", stdout);
}

/* Print an event without a form of its own: its type, and what it is about. */
static void print_other(struct conversation *talk, const annal_event *event)
{
    SCOPED_BUF text = {0};
    colour(talk, YELLOW);
    printf("%.*s", ANNAL_FMT(event->type));
    colour(talk, "0");
    fputs("  ", stdout);
    if (talk->full) {
        excerpt_print_line(event->data, (size_t)room(talk, 0));
    } else {
        gist(&text, event);
        (void)out_cut(room(talk, event->type.len + 2), annal__buf_slice(&text));
    }
    fputc('\n', stdout);
}

bool conversation_shows(const struct conversation *conversation, const annal_event *event)
{
    static const char *const bookkeeping[] = {"import.record", "session.updated",
                                              "agent.turn.usage"};
    char type[ANNAL_TYPE_BYTES_MAX + 1];
    const char *types = conversation->types;
    if (types != NULL && types[0] != '\0') {
        snprintf(type, sizeof type, "%.*s", ANNAL_FMT(event->type));
        return fnmatch(types, type, 0) == 0;
    }
    for (size_t i = 0; i < sizeof bookkeeping / sizeof *bookkeeping; i++) {
        if (event_is(event, bookkeeping[i]))
            return false;
    }
    annal_slice content = event_message_content(event);
    return content.len == 0 || !event_content_is_empty(content);
}

void conversation_done(struct conversation *conversation)
{
    conversation_end_line(conversation);
    annal__buf_done(&conversation->call.bytes);
}

void conversation_print(struct conversation *conversation, const annal_event *event)
{
    struct tally used = event_spending_add(&conversation->spending, event);
    enum fact fact = event_fact_of(event);
    if (!conversation_shows(conversation, event))
        return;
    if (fact == FACT_RESULT) {
        (conversation->full ? print_result_whole : print_result)(conversation, event);
        return;
    }
    print_time(conversation, event);
    switch (fact) {
    case FACT_MESSAGE:
        print_message(conversation, event);
        break;
    case FACT_CALL:
        print_call(conversation, event);
        break;
    case FACT_USAGE:
        print_tally(conversation, &used);
        break;
    case FACT_TURN_BEGINS:
        print_turn_begins(conversation, event);
        print_content(conversation, event_member(event, "prompt"));
        break;
    case FACT_TURN_ENDS:
        print_turn_ends(conversation, event);
        print_tally(conversation, &used);
        break;
    default:
        print_other(conversation, event);
    }
}

void conversation_print_long(struct conversation *conversation, const annal_event *event,
                             annal_slice begin, uint64_t data_bytes)
{
    char size[HUMAN_BYTES];
    print_time(conversation, event);
    colour(conversation, YELLOW);
    printf("%.*s", ANNAL_FMT(event->type));
    colour(conversation, "0");
    printf("  %s: ", human_bytes(size, data_bytes));
    out_plain(begin);
    fputs("…\n", stdout);
}
