#include "tools/conversation.h"

#include "journal/base/hash.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/number.h"
#include "tools/excerpt.h"
#include "tools/out.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { INDENT = 19, LINE_CHARS = 160, MESSAGE_LINES = 40, THOUGHT_LINES = 6, RESULT_LINES = 8 };

static const int64_t DAY_US = 86400000000;

/* ---- What an event says ---- */

static annal_slice member(const annal_event *event, const char *name)
{
    annal_slice data = event->data;
    if (data.len == 0 || data.ptr[0] != '{')
        return (annal_slice){0};
    annal_slice value = annal__json_member(data, name);
    return value.len == 4 && memcmp(value.ptr, "null", 4) == 0 ? (annal_slice){0} : value;
}

static annal_slice either(const annal_event *event, const char *name, const char *other)
{
    annal_slice value = member(event, name);
    return value.len > 0 ? value : member(event, other);
}

static bool read_real(annal_slice raw, double *out)
{
    if (raw.len == 0 || (raw.ptr[0] != '-' && (raw.ptr[0] < '0' || raw.ptr[0] > '9')))
        return false;
    struct number number = annal__number_read(raw);
    *out = number.kind == NUMBER_UINT  ? (double)number.uint
           : number.kind == NUMBER_INT ? (double)number.sint
                                       : number.real;
    return number.kind != NUMBER_OTHER && fabs(*out) < 9e15;
}

static int64_t read_count(annal_slice raw)
{
    double real = 0;
    return read_real(raw, &real) ? (int64_t)real : 0;
}

static int64_t read_cost(const annal_event *event)
{
    double usd = 0;
    annal_slice micro = member(event, "cost_microusd");
    if (micro.len > 0)
        return read_count(micro);
    return read_real(member(event, "cost_usd"), &usd) && fabs(usd) < 9e9 ? llround(usd * 1e6) : 0;
}

static bool is_type(const annal_event *event, const char *const *types)
{
    for (; *types != NULL; types++) {
        if (strlen(*types) == event->type.len &&
            memcmp(*types, event->type.ptr, event->type.len) == 0)
            return true;
    }
    return false;
}

static bool type_ends(const annal_event *event, const char *end)
{
    size_t len = strlen(end);
    return event->type.len >= len && memcmp(event->type.ptr + event->type.len - len, end, len) == 0;
}

annal_slice message_role(const annal_event *event)
{
    static const char *const added[] = {"message.added", NULL};
    return is_type(event, added) ? member(event, "role") : (annal_slice){0};
}

annal_slice message_content(const annal_event *event)
{
    return message_role(event).len > 0 ? member(event, "content") : (annal_slice){0};
}

/* ---- What was used ---- */

static uint64_t turn_of(annal_slice turn_id, uint64_t seq)
{
    return turn_id.len > 0 ? annal__hash(turn_id.ptr, turn_id.len, 0)
                           : annal__hash(&seq, sizeof seq, 1); /* one without a name */
}

static const struct known_turn *known_turn(const struct known_turns *known, uint64_t id)
{
    for (int i = 0; i < TURNS_KNOWN; i++) {
        if (known->turns[i].id == id && known->turns[i].seq != 0)
            return &known->turns[i];
    }
    return NULL;
}

/* Whether a turn is met for the first time, as far as is remembered; it is remembered then. */
static bool meet(struct known_turns *known, uint64_t id, uint64_t seq)
{
    const struct known_turn *turn = known_turn(known, id);
    if (turn != NULL)
        return turn->seq >= seq; /* it may be played again */
    known->turns[known->next++ % TURNS_KNOWN] = (struct known_turn){id, seq};
    return true;
}

/* The end of a turn that names none is that of the newest one that is open. */
static void end_newest(struct conversation *talk, uint64_t seq)
{
    for (unsigned back = 1; back <= TURNS_KNOWN; back++) {
        const struct known_turn *turn = &talk->begun.turns[(talk->begun.next - back) % TURNS_KNOWN];
        if (turn->seq == 0 || turn->seq > seq)
            continue;
        const struct known_turn *end = known_turn(&talk->ended, turn->id);
        if (end == NULL || end->seq >= seq) {
            (void)meet(&talk->ended, turn->id, seq);
            return;
        }
    }
}

void conversation_know_turn(struct conversation *conversation, annal_slice turn_id, bool ended,
                            uint64_t seq)
{
    struct buf raw = {0};
    if (annal__json_quote(&raw, turn_id) == ANNAL_OK) {
        uint64_t id = turn_of(annal__buf_slice(&raw), 0);
        (void)meet(&conversation->begun, id, seq);
        if (ended)
            (void)meet(&conversation->ended, id, seq);
    }
    annal__buf_done(&raw);
}

static int64_t count_or_none(int64_t count)
{
    return count < 0 ? 0 : count;
}

/* What the end of a turn used, which is 0 where agent.turn.usage said it. */
static struct tally tally_of_end(const annal_event *event)
{
    return (struct tally){.input_tokens = count_or_none(read_count(member(event, "input_tokens"))),
                          .output_tokens =
                              count_or_none(read_count(member(event, "output_tokens"))),
                          .cost_microusd = read_cost(event)};
}

/* An increment, which may take back what was counted. */
static struct tally tally_of_usage(const annal_event *event)
{
    return (struct tally){.input_tokens = read_count(either(event, "input_tokens", "inputTokens")),
                          .output_tokens =
                              read_count(either(event, "output_tokens", "outputTokens")),
                          .cost_microusd = read_cost(event)};
}

static void tally_add(struct tally *tally, const struct tally *used)
{
    tally->turns += used->turns;
    tally->input_tokens += used->input_tokens;
    tally->output_tokens += used->output_tokens;
    tally->cost_microusd += used->cost_microusd;
}

static const char *signed_count(char text[HUMAN_BYTES], int64_t count)
{
    char digits[HUMAN_BYTES];
    human_count(digits, count < 0 ? 0 - (uint64_t)count : (uint64_t)count);
    snprintf(text, HUMAN_BYTES, "%s%.30s", count < 0 ? "-" : "", digits);
    return text;
}

const char *tally_text(char text[TALLY_BYTES], const struct tally *tally)
{
    char tokens[HUMAN_BYTES];
    signed_count(tokens, tally->input_tokens + tally->output_tokens);
    int len = snprintf(text, TALLY_BYTES, "%" PRIu64 " turn%s · %s tokens", tally->turns,
                       tally->turns == 1 ? "" : "s", tokens);
    if (tally->cost_microusd != 0)
        snprintf(text + len, (size_t)(TALLY_BYTES - len), " · $%.2f",
                 (double)tally->cost_microusd / 1e6);
    return text;
}

/* ---- Calls, by their id ---- */

static void remember_call(struct conversation *talk, annal_slice call, annal_slice tool)
{
    struct buf name = {0};
    struct known_call *known = &talk->calls[talk->calls_next++ % CALLS_KNOWN];
    excerpt_line(&name, tool, 20);
    *known = (struct known_call){.id = annal__hash(call.ptr, call.len, 0)};
    if (name.len < sizeof known->tool && name.len > 0)
        memcpy(known->tool, name.ptr, name.len);
    annal__buf_done(&name);
}

void conversation_know_call(struct conversation *conversation, annal_slice call_id,
                            annal_slice tool)
{
    struct buf raw = {0};
    if (annal__json_quote(&raw, call_id) == ANNAL_OK)
        remember_call(conversation, annal__buf_slice(&raw), tool);
    annal__buf_done(&raw);
}

static const char *tool_of(const struct conversation *talk, annal_slice call)
{
    uint64_t id = annal__hash(call.ptr, call.len, 0);
    for (unsigned back = 1; call.len > 0 && back <= CALLS_KNOWN; back++) {
        const struct known_call *known = &talk->calls[(talk->calls_next - back) % CALLS_KNOWN];
        if (known->id == id && known->tool[0] != '\0')
            return known->tool;
    }
    return NULL;
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
        printf("\033[%sm", code);
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

/* How to read what was cut: told once, then only that it was. */
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

/* Text, or blocks, or an object of the producer's own. */
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
    annal_slice role = member(event, "role");
    bool user = role.len == 6 && memcmp(role.ptr, "\"user\"", 6) == 0;
    bool assistant = role.len == 11 && memcmp(role.ptr, "\"assistant\"", 11) == 0;
    colour(talk, user ? GREEN : assistant ? CYAN : YELLOW);
    if (role.len > 0)
        excerpt_print_line(role, 30);
    else
        fputs("message", stdout);
    colour(talk, "0");
    fputc('\n', stdout);
    print_content(talk, event, member(event, "content"));
}

static void print_call(struct conversation *talk, const annal_event *event)
{
    annal_slice call = member(event, "call_id"), tool = member(event, "tool");
    if (call.len > 0)
        remember_call(talk, call, tool);
    colour(talk, BLUE);
    fputs("→ ", stdout);
    excerpt_print_line(tool.len > 0 ? tool : ANNAL_SLICE("\"?\""), 60);
    colour(talk, "0");
    fputs("  ", stdout);
    excerpt_print_line(either(event, "input", "arguments"), (size_t)room(talk, tool.len + 4));
    fputc('\n', stdout);
}

static void print_result(struct conversation *talk, const annal_event *event)
{
    annal_slice call = member(event, "call_id"), output = either(event, "output", "output_ref");
    annal_slice success = member(event, "success"), ms = member(event, "duration_ms");
    annal_slice exit_code = member(event, "exit_code");
    const char *tool = tool_of(talk, call);
    bool failed = type_ends(event, "failed") || type_ends(event, "error") ||
                  (success.len == 5 && memcmp(success.ptr, "false", 5) == 0);
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
        excerpt_print_line(output.len > 0 ? output : member(event, "error"),
                           (size_t)room(talk, 30));
        fputc('\n', stdout);
    }
}

static void print_tally(struct conversation *talk, const struct tally *used)
{
    char text[TALLY_BYTES], in[HUMAN_BYTES], out[HUMAN_BYTES];
    colour(talk, DIM);
    if (used->input_tokens != 0 || used->output_tokens != 0 || used->cost_microusd != 0)
        printf("tokens: %s in, %s out; ", signed_count(in, used->input_tokens),
               signed_count(out, used->output_tokens));
    printf("so far %s\n", tally_text(text, &talk->tally));
    colour(talk, "0");
}

static void print_usage(struct conversation *talk, const annal_event *event)
{
    struct tally used = tally_of_usage(event);
    tally_add(&talk->tally, &used);
    print_tally(talk, &used);
}

static void print_turn_begins(struct conversation *talk, const annal_event *event)
{
    annal_slice prompt = member(event, "prompt"), turn = member(event, "turn_id");
    if (meet(&talk->begun, turn_of(turn, event->seq), event->seq))
        tally_add(&talk->tally, &(struct tally){.turns = 1});
    colour(talk, BOLD);
    fputs("turn ", stdout);
    excerpt_print_line(either(event, "sequence", "turn_id"), 60);
    fputs(" begins\n", stdout);
    colour(talk, "0");
    if (prompt.len > 0)
        print_content(talk, event, prompt);
}

static void print_turn_ends(struct conversation *talk, const annal_event *event)
{
    annal_slice error = member(event, "error"), reason = member(event, "reason");
    annal_slice turn = member(event, "turn_id");
    struct tally used = tally_of_end(event);
    uint64_t id = turn_of(turn, event->seq);
    if (turn.len == 0)
        end_newest(talk, event->seq);
    else if (!meet(&talk->ended, id, event->seq))
        used = (struct tally){0};
    else if (meet(&talk->begun, id, event->seq))
        used.turns = 1; /* nobody said that it began */
    tally_add(&talk->tally, &used);
    colour(talk, BOLD);
    printf("turn ends: %s", type_ends(event, "cancelled") ? "cancelled"
                            : type_ends(event, "completed") || type_ends(event, "complete")
                                ? "completed"
                                : "failed");
    colour(talk, "0");
    if (error.len > 0 || reason.len > 0) {
        fputs("  ", stdout);
        excerpt_print_line(error.len > 0 ? error : reason, (size_t)room(talk, 24));
    }
    fputs("  ", stdout);
    print_tally(talk, &used);
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
    static const char *const messages[] = {"message.added", NULL};
    static const char *const calls[] = {"tool.called", "tool_call", NULL};
    static const char *const results[] = {"tool.returned", "tool.failed", "tool_result",
                                          "tool_error", NULL};
    static const char *const usage[] = {"agent.turn.usage", NULL};
    static const char *const begins[] = {"turn.started", "turn_start", NULL};
    static const char *const ends[] = {"turn.completed", "turn.failed", "turn.cancelled",
                                       "turn_complete",  "turn_error",  NULL};
    static const struct {
        const char *const *types;
        void (*print)(struct conversation *, const annal_event *);
    } kinds[] = {{messages, print_message}, {calls, print_call},         {results, print_result},
                 {usage, print_usage},      {begins, print_turn_begins}, {ends, print_turn_ends}};
    print_time(conversation, event);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (is_type(event, kinds[i].types)) {
            kinds[i].print(conversation, event);
            return;
        }
    }
    print_other(conversation, event);
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
