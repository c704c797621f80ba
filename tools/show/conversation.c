#include "tools/show/conversation.h"

#include "journal/base/hash.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/number.h"
#include "journal/base/slice.h"
#include "tools/cli/out.h"
#include "tools/show/excerpt.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { INDENT = 19, LINE_CHARS = 160, MESSAGE_LINES = 40, THOUGHT_LINES = 6, RESULT_LINES = 8 };

static const int64_t DAY_US = 86400000000;

/* ---- What is known before it begins ---- */

void conversation_know_turn(struct conversation *conversation, annal_slice turn_id, bool ended,
                            uint64_t seq)
{
    spending_know_turn(&conversation->spending, turn_id, ended, seq);
}

void conversation_know_call(struct conversation *conversation, annal_slice call_id,
                            annal_slice tool)
{
    struct buf raw = {0};
    if (annal__json_quote(&raw, call_id) == ANNAL_OK)
        known_calls_add(&conversation->calls, annal__buf_slice(&raw), tool);
    annal__buf_done(&raw);
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
    char ts[ANNAL_TIME_BYTES];
    int64_t day = event->ts_us / DAY_US + 1000000; /* never 0 */
    annal_time_format(event->ts_us, ts);
    colour(talk, DIM);
    if (day != talk->day)
        printf("%*s%.10s\n", INDENT, "", ts);
    talk->day = day;
    printf("%7" PRIu64 "  %.8s  ", event->seq, ts + 11);
    colour(talk, "0");
}

static int room(const struct conversation *talk, size_t used)
{
    int columns = talk->columns - INDENT - (int)used - 1;
    return talk->full ? 1 << 20 : talk->columns == 0 ? LINE_CHARS : columns < 20 ? 20 : columns;
}

/* How to read what was cut: explained once, then only "cut". */
static void print_hint(struct conversation *talk, const annal_event *event, uint64_t cut)
{
    if (cut == 0)
        return;
    colour(talk, DIM);
    printf("%*s… %" PRIu64 " more line%s", INDENT, "", cut, cut == 1 ? "" : "s");
    if (!talk->hinted)
        printf(": annal query %s --seq %" PRIu64 "..%" PRIu64 ", or --full", talk->session,
               event->seq, event->seq);
    fputc('\n', stdout);
    colour(talk, "0");
    talk->hinted = true;
}

static void print_block(struct conversation *talk, const annal_event *event, annal_slice raw,
                        int lines)
{
    const struct excerpt excerpt = {.indent = INDENT,
                                    .lines_max = talk->full ? 0 : lines,
                                    .line_chars = talk->full ? 0 : LINE_CHARS * 4};
    print_hint(talk, event, excerpt_print(&excerpt, raw));
}

/* One block of a message's content. */
static void print_part(struct conversation *talk, const annal_event *event, annal_slice part)
{
    static const char *const texts[] = {"text", "thinking", "summary", "content"};
    annal_slice type = {0}, text = {0};
    printf("%*s", INDENT, "");
    if (part.len > 0 && part.ptr[0] == '{') {
        type = annal__json_member(part, "type");
        for (size_t i = 0; i < sizeof texts / sizeof *texts && !excerpt_is_text(text); i++)
            text = annal__json_member(part, texts[i]);
    }
    bool thought = type.len > 9 && (memcmp(type.ptr, "\"thinking", 9) == 0 ||
                                    memcmp(type.ptr, "\"reasonin", 9) == 0);
    if (thought)
        colour(talk, DIM);
    if (excerpt_is_text(text)) {
        fputs(thought ? "(thinks) " : "", stdout);
        print_block(talk, event, text, thought ? THOUGHT_LINES : MESSAGE_LINES);
    } else if (part.len > 0 && part.ptr[0] == '"') {
        print_block(talk, event, part, MESSAGE_LINES);
    } else {
        fputc('[', stdout);
        excerpt_print_line(part, (size_t)room(talk, 2));
        fputs("]\n", stdout);
    }
    if (thought)
        colour(talk, "0");
}

/* Text, or blocks, or an object in the producer's own form. */
static void print_content(struct conversation *talk, const annal_event *event, annal_slice content)
{
    struct json_walk walk;
    annal_slice part;
    if (content.len == 0)
        return;
    if (content.ptr[0] == '[' && annal__json_walk_array(&walk, content)) {
        while (annal__json_walk_item(&walk, &part))
            print_part(talk, event, part);
        return;
    }
    print_part(talk, event, content);
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
    print_content(talk, event, event_member(event, "content"));
}

static void print_call(struct conversation *talk, const annal_event *event)
{
    annal_slice call = event_member(event, "call_id"), tool = event_member(event, "tool");
    if (call.len > 0)
        known_calls_add(&talk->calls, call, tool);
    colour(talk, BLUE);
    fputs("→ ", stdout);
    excerpt_print_line(tool.len > 0 ? tool : ANNAL_SLICE("\"?\""), 60);
    colour(talk, "0");
    fputs("  ", stdout);
    excerpt_print_line(event_either(event, "input", "arguments"), (size_t)room(talk, tool.len + 4));
    fputc('\n', stdout);
}

static void print_result(struct conversation *talk, const annal_event *event)
{
    annal_slice call = event_member(event, "call_id"),
                output = event_either(event, "output", "output_ref");
    annal_slice ms = event_member(event, "duration_ms");
    annal_slice exit_code = event_member(event, "exit_code");
    const char *tool = known_calls_tool(&talk->calls, call);
    bool failed = event_failed(event);
    colour(talk, failed ? RED : BLUE);
    printf("%s ", failed ? "✗" : "←");
    if (tool != NULL)
        fputs(tool, stdout);
    else
        excerpt_print_line(call.len > 0 ? call : ANNAL_SLICE("\"?\""), 60);
    colour(talk, "0");
    if (ms.len > 0)
        printf("  %.*s ms", ANNAL_FMT(ms));
    if (exit_code.len > 0 && exit_code.len < 12 && (exit_code.ptr[0] != '0' || failed))
        printf("  exit %.*s", ANNAL_FMT(exit_code));
    fputs("  ", stdout);
    if (output.len > 0 && output.ptr[0] == '"') {
        print_block(talk, event, output, RESULT_LINES);
    } else if (output.len > 0 && output.ptr[0] == '[') {
        fputc('\n', stdout);
        print_content(talk, event, output);
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
        printf("tokens: %s in, %s out; ", signed_text(in, used->input_tokens),
               signed_text(out, used->output_tokens));
    printf("so far %s\n", tally_text(text, &talk->spending.tally));
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

/* Any other event, and those of sessions: the type, and what it says. */
static void print_other(struct conversation *talk, const annal_event *event)
{
    colour(talk, YELLOW);
    printf("%.*s", ANNAL_FMT(event->type));
    colour(talk, "0");
    fputs("  ", stdout);
    excerpt_print_line(event->data, (size_t)room(talk, event->type.len + 2));
    fputc('\n', stdout);
}

void conversation_print(struct conversation *conversation, const annal_event *event)
{
    struct tally used = spending_add(&conversation->spending, event);
    print_time(conversation, event);
    switch (fact_of(event)) {
    case FACT_MESSAGE:
        print_message(conversation, event);
        break;
    case FACT_CALL:
        print_call(conversation, event);
        break;
    case FACT_RESULT:
        print_result(conversation, event);
        break;
    case FACT_USAGE:
        print_tally(conversation, &used);
        break;
    case FACT_TURN_BEGINS:
        print_turn_begins(conversation, event);
        print_content(conversation, event, event_member(event, "prompt"));
        break;
    case FACT_TURN_ENDS:
        print_turn_ends(conversation, event);
        print_tally(conversation, &used);
        break;
    case FACT_OTHER:
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
