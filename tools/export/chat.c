/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/chat.h"

#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"
#include "tools/show/excerpt.h"

#include <string.h>

enum { NAME_BYTES_MAX = 1024 };

/* ---- Tokens ---- */

static struct chat_tokens tokens_of(const annal_event *event, const struct tally *used)
{
    return (struct chat_tokens){
        {[CHAT_INPUT] = used->input_tokens,
         [CHAT_OUTPUT] = used->output_tokens,
         [CHAT_COST] = used->cost_microusd,
         [CHAT_CACHED] = event_raw_count(event_member(event, "cached_input_tokens")),
         [CHAT_CACHE_WRITE] = event_raw_count(event_member(event, "cache_write_tokens")),
         [CHAT_REASONING] = event_raw_count(event_member(event, "reasoning_output_tokens"))}};
}

/* Subtract what is owed from the tokens of each kind, at most to 0, and reduce it by what was
 * subtracted (chat.h, rule 2). */
static void pay(struct chat_tokens *tokens, struct chat_tokens *owed)
{
    for (int i = 0; i < CHAT_KINDS; i++) {
        int64_t left = tokens->of[i] - owed->of[i];
        tokens->of[i] = left > 0 ? left : 0;
        owed->of[i] = left < 0 ? -left : 0;
    }
}

/* ---- Messages ---- */

static bool is_string(annal_slice raw)
{
    return raw.len > 0 && raw.ptr[0] == '"';
}

/* Return the text of the first summary of a hidden thought, as a raw string; an empty string if it
 * has none, because the conventions require a content for each thought. */
static annal_slice first_summary(annal_slice block)
{
    struct json_walk walk;
    annal_slice summary = annal__json_member(block, "summary"), item = {0};
    if (summary.len > 0 && summary.ptr[0] == '[' && annal__json_walk_array(&walk, summary) &&
        annal__json_walk_item(&walk, &item) && item.ptr[0] == '{')
        item = annal__json_member(item, "text");
    return is_string(item) ? item : ANNAL_SLICE("\"\"");
}

/* Append one block of a message as a part in the form of OpenTelemetry's conventions for generative
 * AI: {"type":"text",…}, {"type":"reasoning",…}. */
static void append_part(struct buf *out, annal_slice block)
{
    annal_slice type = {0}, text = block;
    const char *kind = "text", *rest = "";
    if (block.len > 0 && block.ptr[0] == '{') {
        type = annal__json_member(block, "type");
        text = annal__json_member(block, "text");
        if (event_block_is_thought(block)) {
            kind = "reasoning";
            text = is_string(text) ? text : annal__json_member(block, "thinking");
            if (!is_string(text)) {
                text = first_summary(block);
                rest = ",\"value\":";
            }
        }
    }
    if (is_string(text)) {
        must_printf(out, "{\"type\":\"%s\",\"content\":%.*s%s", kind, ANNAL_FMT(text), rest);
        if (rest[0] == '\0')
            block = (annal_slice){0};
    } else if (type.len > 0) {
        /* a block that has a type, but no text, is copied unchanged */
        must_append_slice(out, block);
        return;
    } else {
        must_append_text(out, "{\"type\":\"other\",\"value\":");
    }
    must_append_slice(out, block);
    must_append_text(out, "}");
}

static void append_parts(struct buf *out, annal_slice content)
{
    struct json_walk walk;
    annal_slice block;
    must_append_text(out, "[");
    if (content.len > 0 && content.ptr[0] == '[' && annal__json_walk_array(&walk, content)) {
        for (int i = 0; annal__json_walk_item(&walk, &block); i++) {
            must_append_text(out, i > 0 ? "," : "");
            append_part(out, block);
        }
    } else if (content.len > 0) {
        append_part(out, content);
    }
    must_append_text(out, "]");
}

/* Append a message, unless the request would become longer than CHAT_CONTENT_BYTES (chat.h, rule
 * 3). finish is NULL if the message is not an answer. */
static void append_message(struct buf *out, bool *cut, annal_slice role, annal_slice content,
                           const char *finish)
{
    size_t before = out->len;
    if (before + content.len > CHAT_CONTENT_BYTES) {
        *cut = true;
        return;
    }
    must_append_text(out, before > 0 ? ",{\"role\":" : "{\"role\":");
    must_append_slice(out, excerpt_is_text(role) ? role : ANNAL_SLICE("\"user\""));
    must_append_text(out, ",\"parts\":");
    append_parts(out, content);
    if (finish != NULL)
        must_printf(out, ",\"finish_reason\":\"%s\"", finish);
    must_append_text(out, "}");
}

/* ---- Answers ---- */

/* Return why an answer ended, as a word of the conventions, which require a reason for each
 * answer. */
static const char *finish_of(annal_slice stop_reason)
{
    static const struct {
        const char *said, *reason;
    } known[] = {{"\"tool_use\"", "tool_call"},
                 {"\"toolUse\"", "tool_call"},
                 {"\"tool_calls\"", "tool_call"},
                 {"\"tool-calls\"", "tool_call"},
                 {"\"max_tokens\"", "length"},
                 {"\"MAX_TOKENS\"", "length"},
                 {"\"length\"", "length"},
                 {"\"refusal\"", "content_filter"},
                 {"\"SAFETY\"", "content_filter"},
                 {"\"content_filter\"", "content_filter"},
                 {"\"content-filter\"", "content_filter"},
                 {"\"error\"", "error"},
                 {"\"aborted\"", "error"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (annal__slice_is(stop_reason, known[i].said))
            return known[i].reason;
    return "stop";
}

static void emit(struct chats *chats)
{
    struct chat *now = &chats->now;
    if (!now->begun)
        return;
    if (now->used)
        pay(&now->tokens, &chats->owed);
    if (chats->fn != NULL)
        chats->fn(chats->arg, now);
    chats->asked_us = now->end_us;
    now->begun = now->used = now->cut = false;
    now->finish = NULL;
    now->tokens = (struct chat_tokens){0};
    annal__buf_clear(&now->model);
    annal__buf_clear(&now->id);
    annal__buf_clear(&now->input);
    annal__buf_clear(&now->output);
}

static bool same_text(const struct buf *text, annal_slice raw)
{
    return raw.len > 0 && annal__slice_same(annal__buf_slice(text), raw);
}

static void set_name(struct buf *name, annal_slice raw)
{
    if (name->len == 0 && excerpt_is_text(raw) && raw.len <= NAME_BYTES_MAX)
        must_append_slice(name, raw);
}

/* Begin an answer with this event, unless one has begun, and set the members that are not set
 * yet. */
static void begin(struct chats *chats, const annal_event *event, uint64_t turn_seq)
{
    struct chat *now = &chats->now;
    if (!now->begun) {
        struct buf empty = now->input;
        now->begun = true;
        now->turn_seq = turn_seq;
        now->start_us = chats->asked_us != 0 ? chats->asked_us : event->ts_us;
        now->input = chats->asked;
        now->cut = chats->asked_cut;
        chats->asked = empty;
        chats->asked_cut = false;
        annal__buf_clear(&chats->asked);
    }
    now->seq = event->seq;
    now->end_us = event->ts_us;
    set_name(&now->model, event_member(event, "model"));
    set_name(&now->id, event_member(event, "message_id"));
}

/* Return whether an event belongs to another answer than the current one, by its message_id. */
static bool is_another(const struct chat *now, const annal_event *event)
{
    annal_slice id = event_member(event, "message_id");
    return now->begun && now->id.len > 0 && excerpt_is_text(id) && !same_text(&now->id, id);
}

static void take_answer(struct chats *chats, const annal_event *event, uint64_t turn_seq)
{
    struct chat *now = &chats->now;
    bool over = now->used && !same_text(&now->id, event_member(event, "message_id"));
    if (over || is_another(now, event))
        emit(chats);
    begin(chats, event, turn_seq);
    now->finish = finish_of(event_member(event, "stop_reason"));
    append_message(&now->output, &now->cut, ANNAL_SLICE("\"assistant\""),
                   event_member(event, "content"), now->finish);
}

static void take_tokens(struct chats *chats, const annal_event *event, const struct tally *used,
                        uint64_t turn_seq)
{
    struct chat *now = &chats->now;
    struct chat_tokens tokens = tokens_of(event, used);
    bool takes_back = tokens.of[CHAT_INPUT] < 0 || tokens.of[CHAT_OUTPUT] < 0;
    if (takes_back && !now->begun)
        pay(&tokens, &chats->owed);
    if (takes_back && !now->begun && tokens.of[CHAT_INPUT] == 0 && tokens.of[CHAT_OUTPUT] == 0)
        return;
    bool over = now->used && !same_text(&now->id, event_member(event, "message_id"));
    bool costs_only = tokens.of[CHAT_INPUT] == 0 && tokens.of[CHAT_OUTPUT] == 0;
    if (costs_only && !now->begun) {
        chats->owed.of[CHAT_COST] -= tokens.of[CHAT_COST];
        return;
    }
    bool joins = now->begun && (takes_back || costs_only);
    if (!joins && (over || is_another(now, event)))
        emit(chats);
    if (!joins)
        begin(chats, event, turn_seq);
    for (int i = 0; i < CHAT_KINDS; i++)
        now->tokens.of[i] += tokens.of[i];
    now->used = true;
}

static void take_question(struct chats *chats, const annal_event *event)
{
    emit(chats);
    chats->asked_us = event->ts_us;
    append_message(&chats->asked, &chats->asked_cut, event_message_role(event),
                   event_member(event, "content"), NULL);
}

void chats_take(struct chats *chats, const annal_event *event, const struct tally *used,
                uint64_t turn_seq)
{
    enum fact fact = event_fact_of(event);
    annal_slice role = event_message_role(event);
    bool answers = annal__slice_is(role, "\"assistant\"");
    bool counted = used->input_tokens != 0 || used->output_tokens != 0 || used->cost_microusd != 0;
    if (fact == FACT_MESSAGE && answers)
        take_answer(chats, event, turn_seq);
    else if (fact == FACT_MESSAGE)
        take_question(chats, event);
    else if (counted)
        take_tokens(chats, event, used, turn_seq);
    else if (fact == FACT_RESULT || fact == FACT_TURN_BEGINS)
        chats->asked_us = event->ts_us;
}

void chats_finish(struct chats *chats)
{
    emit(chats);
}

void chats_done(struct chats *chats)
{
    annal__buf_done(&chats->now.model);
    annal__buf_done(&chats->now.id);
    annal__buf_done(&chats->now.input);
    annal__buf_done(&chats->now.output);
    annal__buf_done(&chats->asked);
}
