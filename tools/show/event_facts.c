/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/event_facts.h"

#include "journal/base/hash.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/number.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"
#include "tools/show/excerpt.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- The content of an event ---- */

annal_slice event_member(const annal_event *event, const char *name)
{
    annal_slice data = event->data;
    if (data.len == 0 || data.ptr[0] != '{')
        return (annal_slice){0};
    annal_slice value = annal__json_member(data, name);
    return annal__slice_is(value, "null") ? (annal_slice){0} : value;
}

annal_slice event_either(const annal_event *event, const char *name, const char *other)
{
    annal_slice value = event_member(event, name);
    return value.len > 0 ? value : event_member(event, other);
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

int64_t event_raw_count(annal_slice raw)
{
    double real = 0;
    return read_real(raw, &real) ? (int64_t)real : 0;
}

static int64_t event_cost(const annal_event *event)
{
    double usd = 0;
    annal_slice micro = event_member(event, "cost_microusd");
    if (micro.len > 0)
        return event_raw_count(micro);
    return read_real(event_member(event, "cost_usd"), &usd) && fabs(usd) < 9e9 ? llround(usd * 1e6)
                                                                               : 0;
}

bool event_is(const annal_event *event, const char *type)
{
    return annal__slice_is(event->type, type);
}

bool event_type_ends(const annal_event *event, const char *end)
{
    size_t len = strlen(end);
    return event->type.len >= len && memcmp(event->type.ptr + event->type.len - len, end, len) == 0;
}

bool event_failed(const annal_event *event)
{
    annal_slice success = event_member(event, "success");
    return event_type_ends(event, "failed") || event_type_ends(event, "error") ||
           annal__slice_is(success, "false");
}

enum fact event_fact_of(const annal_event *event)
{
    static const struct {
        const char *type;
        enum fact fact;
    } kinds[] = {{"message.added", FACT_MESSAGE},    {"tool.called", FACT_CALL},
                 {"tool_call", FACT_CALL},           {"tool.returned", FACT_RESULT},
                 {"tool.failed", FACT_RESULT},       {"tool_result", FACT_RESULT},
                 {"tool_error", FACT_RESULT},        {"agent.turn.usage", FACT_USAGE},
                 {"turn.started", FACT_TURN_BEGINS}, {"turn_start", FACT_TURN_BEGINS},
                 {"turn.completed", FACT_TURN_ENDS}, {"turn.failed", FACT_TURN_ENDS},
                 {"turn.cancelled", FACT_TURN_ENDS}, {"turn_complete", FACT_TURN_ENDS},
                 {"turn_error", FACT_TURN_ENDS}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (event_is(event, kinds[i].type))
            return kinds[i].fact;
    }
    return FACT_OTHER;
}

annal_slice event_message_role(const annal_event *event)
{
    return event_fact_of(event) == FACT_MESSAGE ? event_member(event, "role") : (annal_slice){0};
}

annal_slice event_message_content(const annal_event *event)
{
    return event_message_role(event).len > 0 ? event_member(event, "content") : (annal_slice){0};
}

bool event_block_is_thought(annal_slice block)
{
    static const annal_slice types[] = {
        {"\"thinking", 9}, {"\"reasoning", 10}, {"\"redacted_think", 15}, {"\"redactedThink", 14}};
    annal_slice type = {0};
    bool thought = false;
    if (block.len > 0 && block.ptr[0] == '{')
        type = annal__json_member(block, "type");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        thought = thought ||
                  (type.len > types[i].len && memcmp(type.ptr, types[i].ptr, types[i].len) == 0);
    return thought;
}

/* Return a raw string: the value itself, or the text of the first object of an array, such as a
 * summary of Codex. */
static annal_slice first_text(annal_slice value)
{
    struct json_walk walk;
    annal_slice item;
    if (value.len == 0 || value.ptr[0] != '[' || !annal__json_walk_array(&walk, value))
        return value;
    if (!annal__json_walk_item(&walk, &item) || item.ptr[0] != '{')
        return (annal_slice){0};
    return annal__json_member(item, "text");
}

annal_slice event_block_text(annal_slice block)
{
    static const char *const members[] = {"text", "thinking", "summary", "content"};
    annal_slice text = {0};
    if (excerpt_is_text(block))
        return block;
    for (size_t i = 0; i < sizeof members / sizeof *members && !excerpt_is_text(text) &&
                       block.len > 0 && block.ptr[0] == '{';
         i++)
        text = first_text(annal__json_member(block, members[i]));
    return excerpt_is_text(text) ? text : (annal_slice){0};
}

/* Return whether a raw string contains only white space. */
static bool is_blank(annal_slice raw)
{
    if (raw.len < 2 || raw.ptr[0] != '"')
        return false;
    for (size_t i = 1; i + 1 < raw.len; i++) {
        if (raw.ptr[i] == '\\' && strchr("nrt", raw.ptr[i + 1]) != NULL)
            i++;
        else if (raw.ptr[i] != ' ')
            return false;
    }
    return true;
}

bool event_block_is_empty(annal_slice block)
{
    static const char *const members[] = {"text", "thinking", "summary", "content"};
    annal_slice text = event_block_text(block);
    bool empty = is_blank(block) || event_block_is_thought(block);
    for (size_t i = 0; i < sizeof members / sizeof *members && block.ptr[0] == '{'; i++)
        empty = empty || is_blank(annal__json_member(block, members[i]));
    return empty && (text.len == 0 || is_blank(text));
}

/* Return the member of an object that is an object; empty if it has none. */
static annal_slice object_in(annal_slice object, const char *name)
{
    annal_slice value = annal__json_member(object, name);
    return value.len > 0 && value.ptr[0] == '{' ? value : (annal_slice){0};
}

bool event_block_is_media(annal_slice block, annal_slice *out_type)
{
    static const char *const types[] = {"\"image\"",      "\"input_image\"", "\"image_url\"",
                                        "\"audio\"",      "\"input_audio\"", "\"document\"",
                                        "\"input_file\"", "\"file\"",        "\"media\""};
    static const char *const places[] = {"source", "inlineData", "inline_data", "fileData"};
    static const char *const names[] = {"media_type", "mimeType", "mime_type", "mediaType", "mime"};
    annal_slice type = {0}, media = {0}, within = block;
    bool found = false;
    if (block.len == 0 || block.ptr[0] != '{' || event_block_text(block).len > 0)
        return false;
    type = annal__json_member(block, "type");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        found = found || annal__slice_is(type, types[i]);
    for (size_t i = 0; i < sizeof places / sizeof *places && within.ptr == block.ptr; i++) {
        annal_slice data = object_in(block, places[i]);
        within = data.len > 0 ? data : block;
        found = found || (i > 0 && data.len > 0);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names && !excerpt_is_text(media); i++)
        media = annal__json_member(within, names[i]);
    *out_type = annal__json_inside(excerpt_is_text(media) ? media : type);
    return found;
}

bool event_content_is_empty(annal_slice content)
{
    struct json_walk walk;
    annal_slice part;
    bool empty = true;
    if (content.len == 0 || content.ptr[0] != '[' || !annal__json_walk_array(&walk, content))
        return content.len == 0 || event_block_is_empty(content);
    while (empty && annal__json_walk_item(&walk, &part))
        empty = event_block_is_empty(part);
    return empty;
}

annal_slice event_content_text(annal_slice content)
{
    struct json_walk walk;
    annal_slice part, text = {0};
    if (excerpt_is_text(content))
        return content;
    if (content.len == 0 || content.ptr[0] != '[' || !annal__json_walk_array(&walk, content))
        return text;
    while (!excerpt_is_text(text) && annal__json_walk_item(&walk, &part)) {
        text = part;
        if (part.len > 0 && part.ptr[0] == '{')
            text =
                event_block_is_thought(part) ? (annal_slice){0} : annal__json_member(part, "text");
    }
    return excerpt_is_text(text) ? text : (annal_slice){0};
}

annal_slice event_message_text(const annal_event *event)
{
    annal_slice content = event_message_content(event);
    return content.len > 0 && content.ptr[0] == '{' ? content : event_content_text(content);
}

static bool is_answer(const annal_event *event)
{
    static const char *const cut[] = {"\"tool_use\"", "\"max_tokens\"", "\"pause_turn\""};
    annal_slice stop = event_member(event, "stop_reason");
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        if (annal__slice_is(stop, cut[i]))
            return false;
    }
    return annal__slice_is(event_message_role(event), "\"assistant\"") &&
           event_message_text(event).len > 0;
}

bool event_rests(bool rested, const annal_event *event)
{
    switch (event_fact_of(event)) {
    case FACT_MESSAGE:
        return is_answer(event);
    case FACT_CALL:
    case FACT_RESULT:
    case FACT_TURN_BEGINS:
        return false;
    default:
        return rested && !event_is(event, "provider.failed") && !event_is(event, "provider_error");
    }
}

/* ---- Usage ---- */

static uint64_t turn_of(annal_slice turn_id, uint64_t seq)
{
    return turn_id.len > 0 ? annal__hash(turn_id.ptr, turn_id.len, 0)
                           /* without an id, the seq of the event identifies the turn */
                           : annal__hash(&seq, sizeof seq, 1);
}

static const struct known_turn *known_turn(const struct known_turns *known, uint64_t id)
{
    for (int i = 0; i < TURNS_KNOWN; i++) {
        if (known->turns[i].id == id && known->turns[i].seq != 0)
            return &known->turns[i];
    }
    return NULL;
}

/* Remember a turn. Returns whether it is new: not remembered, or remembered from the same or a
 * later event. */
static bool meet(struct known_turns *known, uint64_t id, uint64_t seq)
{
    const struct known_turn *turn = known_turn(known, id);
    if (turn != NULL)
        /* also new if it is remembered from this event or a later one: after a step back, the same
         * event is added again */
        return turn->seq >= seq;
    known->turns[known->next++ % TURNS_KNOWN] = (struct known_turn){id, seq};
    return true;
}

/* Record the end of the newest open turn, because an end without a turn id belongs to that. */
static void end_newest(struct spending *spending, uint64_t seq)
{
    for (unsigned back = 1; back <= TURNS_KNOWN; back++) {
        const struct known_turn *turn =
            &spending->begun.turns[(spending->begun.next - back) % TURNS_KNOWN];
        if (turn->seq == 0 || turn->seq > seq)
            continue;
        const struct known_turn *end = known_turn(&spending->ended, turn->id);
        if (end == NULL || end->seq >= seq) {
            (void)meet(&spending->ended, turn->id, seq);
            return;
        }
    }
}

void event_spending_know_turn(struct spending *spending, annal_slice turn_id, bool ended,
                              uint64_t seq)
{
    SCOPED_BUF raw = {0};
    must_quote(&raw, turn_id);
    uint64_t id = turn_of(annal__buf_slice(&raw), 0);
    (void)meet(&spending->begun, id, seq);
    if (ended)
        (void)meet(&spending->ended, id, seq);
}

static int64_t count_or_none(int64_t count)
{
    return count < 0 ? 0 : count;
}

/* Return the usage in the event that ends a turn. Negative numbers count as 0. */
static struct tally tally_of_end(const annal_event *event)
{
    return (struct tally){
        .input_tokens = count_or_none(event_raw_count(event_member(event, "input_tokens"))),
        .output_tokens = count_or_none(event_raw_count(event_member(event, "output_tokens"))),
        .cost_microusd = event_cost(event)};
}

/* Return the usage in agent.turn.usage: an increment, which may be negative. */
static struct tally tally_of_usage(const annal_event *event)
{
    return (struct tally){
        .input_tokens = event_raw_count(event_either(event, "input_tokens", "inputTokens")),
        .output_tokens = event_raw_count(event_either(event, "output_tokens", "outputTokens")),
        .cost_microusd = event_cost(event)};
}

static void tally_add(struct tally *tally, const struct tally *used)
{
    tally->turns += used->turns;
    tally->input_tokens += used->input_tokens;
    tally->output_tokens += used->output_tokens;
    tally->cost_microusd += used->cost_microusd;
}

static struct tally tally_of_turn_end(struct spending *spending, const annal_event *event)
{
    annal_slice turn = event_member(event, "turn_id");
    struct tally used = tally_of_end(event);
    uint64_t id = turn_of(turn, event->seq);
    if (turn.len == 0)
        end_newest(spending, event->seq);
    else if (!meet(&spending->ended, id, event->seq))
        used = (struct tally){0};
    else if (meet(&spending->begun, id, event->seq))
        used.turns = 1; /* count the turn at its end, because no event reported its beginning */
    return used;
}

struct tally event_spending_add(struct spending *spending, const annal_event *event)
{
    struct tally used = {0};
    enum fact fact = event_fact_of(event);
    if (fact == FACT_USAGE)
        used = tally_of_usage(event);
    else if (fact == FACT_TURN_ENDS)
        used = tally_of_turn_end(spending, event);
    else if (fact == FACT_TURN_BEGINS)
        used.turns =
            meet(&spending->begun, turn_of(event_member(event, "turn_id"), event->seq), event->seq);
    tally_add(&spending->tally, &used);
    return used;
}

const char *event_signed_text(char text[HUMAN_BYTES], int64_t count)
{
    char digits[HUMAN_BYTES];
    human_count(digits, count < 0 ? 0 - (uint64_t)count : (uint64_t)count);
    snprintf(text, HUMAN_BYTES, "%s%.30s", count < 0 ? "-" : "", digits);
    return text;
}

const char *event_tally_text(char text[TALLY_BYTES], const struct tally *tally)
{
    char tokens[HUMAN_BYTES];
    event_signed_text(tokens, tally->input_tokens + tally->output_tokens);
    int len = snprintf(text, TALLY_BYTES, "%" PRIu64 " turn%s · %s tokens", tally->turns,
                       tally->turns == 1 ? "" : "s", tokens);
    if (tally->cost_microusd != 0)
        snprintf(text + len, (size_t)(TALLY_BYTES - len), " · $%.2f",
                 (double)tally->cost_microusd / 1e6);
    return text;
}

/* ---- Calls, by their id ---- */

void event_calls_add(struct known_calls *known, annal_slice call_id, annal_slice tool)
{
    SCOPED_BUF name = {0};
    struct known_call *call = &known->calls[known->next++ % CALLS_KNOWN];
    excerpt_line(&name, tool, 20);
    *call = (struct known_call){.id = annal__hash(call_id.ptr, call_id.len, 0)};
    if (name.len < sizeof call->tool && name.len > 0)
        memcpy(call->tool, name.ptr, name.len);
}

const char *event_calls_tool(const struct known_calls *known, annal_slice call_id)
{
    uint64_t id = annal__hash(call_id.ptr, call_id.len, 0);
    for (unsigned back = 1; call_id.len > 0 && back <= CALLS_KNOWN; back++) {
        const struct known_call *call = &known->calls[(known->next - back) % CALLS_KNOWN];
        if (call->id == id && call->tool[0] != '\0')
            return call->tool;
    }
    return NULL;
}
