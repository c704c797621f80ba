/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds facts in events, by the types and members of docs/events.md: the kind of an event, the
 * usage up to an event, the call of a result. Values are raw JSON, slices of the event's data.
 *
 * Memory does not grow with the session: only the newest calls and ended turns are remembered, so
 * that a result has the name of its tool and a turn that ends twice counts once.
 */
#pragma once

#include "tools/cli/out.h"

#include <annal/event.h>

enum fact {
    FACT_OTHER,
    FACT_MESSAGE,
    FACT_CALL,
    FACT_RESULT,
    FACT_USAGE,
    FACT_TURN_BEGINS,
    FACT_TURN_ENDS
};

enum fact event_fact_of(const annal_event *event);

/* Return a member of the event's data as raw JSON: event_member() the member `name`, event_either()
 * `name` or, if that is missing, `other`. Empty if it is missing or null. */
annal_slice event_member(const annal_event *event, const char *name);
annal_slice event_either(const annal_event *event, const char *name, const char *other);
bool event_is(const annal_event *event, const char *type);
bool event_type_ends(const annal_event *event, const char *end);

/* Return whether an event reports a failure, such as a result of a tool that failed. */
bool event_failed(const annal_event *event);

/* Return a raw number as a whole number; 0 if it is not a number. */
int64_t event_raw_count(annal_slice raw);

/* ---- Usage, computed as in the pack core ---- */

struct tally {
    uint64_t turns;
    int64_t input_tokens;
    int64_t output_tokens;
    int64_t cost_microusd;
};

enum { CALLS_KNOWN = 256, TURNS_KNOWN = 256, TOOL_NAME_BYTES = 48 };

struct spending {
    struct tally tally; /* totals of the events up to now */
    struct known_turns {
        struct known_turn {
            uint64_t id; /* hash of the raw turn id */
            uint64_t seq;
        } turns[TURNS_KNOWN];
        unsigned next;
    } begun, ended;
};

/* Add the usage of an event to the totals, and return it. The same event may be added again after a
 * step back. */
struct tally event_spending_add(struct spending *spending, const annal_event *event);

/* Add a turn that began before the first event, and whether it has ended; its id is text. */
void event_spending_know_turn(struct spending *spending, annal_slice turn_id, bool ended,
                              uint64_t seq);

/* Write "3 turns · 14,219 tokens · $0.12" to text, and return text. */
#define TALLY_BYTES 120
const char *event_tally_text(char text[TALLY_BYTES], const struct tally *tally);

/* Write a number with commas and its sign, such as "-1,234", to text, and return text. */
const char *event_signed_text(char text[HUMAN_BYTES], int64_t count);

/* ---- Calls, by their id ---- */

struct known_calls {
    struct known_call {
        uint64_t id; /* hash of the raw call id; 0 if unused */
        char tool[TOOL_NAME_BYTES];
    } calls[CALLS_KNOWN];
    unsigned next;
};

/* Remember a call and its tool; both are raw JSON. */
void event_calls_add(struct known_calls *known, annal_slice call_id, annal_slice tool);

/* Return the tool of a call that is remembered; NULL if it is not. */
const char *event_calls_tool(const struct known_calls *known, annal_slice call_id);

/* ---- Messages ---- */

/* Return a member of a message.added as raw JSON: event_message_role() the role,
 * event_message_content() the content; empty if the event is not such a message. */
annal_slice event_message_role(const annal_event *event);
annal_slice event_message_content(const annal_event *event);

/* Return what was said, by an event or in a content, as a raw string: the content itself, or the
 * first text in its blocks. Empty if the message has only thoughts or images. */
annal_slice event_message_text(const annal_event *event);
annal_slice event_content_text(annal_slice content);

/* event_block_is_thought() returns whether a block of a content is a thought. event_block_text()
 * returns the text of a block as a raw string, empty if it has none (an image, or a hidden
 * thought). */
bool event_block_is_thought(annal_slice block);
annal_slice event_block_text(annal_slice block);

/* Return whether a block (event_block_is_empty()), or every block of a content
 * (event_content_is_empty()), has an empty text. */
bool event_block_is_empty(annal_slice block);

/* Return whether a block is an image, a sound, or a file, without text. *out_type is its media
 * type, such as image/png. */
bool event_block_is_media(annal_slice block, annal_slice *out_type);
bool event_content_is_empty(annal_slice content);

/*
 * Return whether the agent is idle after an event; rested is the answer before it. The agent is
 * idle if the latest message, call, result or failure is a complete text of the assistant that
 * announces no call. This is computed because many logs do not record the end of a turn.
 */
bool event_rests(bool rested, const annal_event *event);
