/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reconstructs the requests to a model from messages and from agent.turn.usage, for one span per
 * answer: the messages before the answer, the answer, and its tokens.
 *
 * (1) An answer consists of the assistant's messages with the same message_id, and the usage with
 *     the same message_id. Without message_ids the answer ends with its usage, or with the next
 *     question. A cost without tokens belongs to the current answer, or to the next answer with
 *     tokens.
 * (2) The tokens of all spans add up to the tokens of the session. A usage with negative tokens is
 *     subtracted from the current answer, as long as that has tokens left, then from the answers
 *     that follow. The rest at the end (find_overdraft() in otlp.c) is subtracted from the first
 *     answers.
 * (3) At most CHAT_CONTENT_BYTES of a request are kept, as complete messages; if there were more,
 *     the span has annal.content_cut.
 */
#pragma once

#include "tools/export/export.h"
#include "tools/show/event_facts.h"

#define CHAT_CONTENT_BYTES ((size_t)4 << 20)

enum {
    CHAT_INPUT,
    CHAT_OUTPUT,
    CHAT_COST,
    CHAT_CACHED,
    CHAT_CACHE_WRITE,
    CHAT_REASONING,
    CHAT_KINDS
};

/* Tokens of each kind, and the cost in millionths of a US dollar. */
struct chat_tokens {
    int64_t of[CHAT_KINDS];
};

struct chat {
    bool begun; /* whether the answer has begun */
    bool used;  /* whether a usage has given the tokens of the answer */
    uint64_t seq;
    uint64_t turn_seq;
    int64_t start_us, end_us;
    struct chat_tokens tokens;
    struct buf model, id;     /* raw JSON strings */
    struct buf input, output; /* messages as JSON, with commas between them */
    const char *finish;       /* reason why the last message of output ended, or NULL */
    bool cut;
};

/* Receive a complete answer. */
typedef void (*chat_fn)(void *arg, const struct chat *chat);

struct chats {
    chat_fn fn; /* NULL: answers are only counted */
    void *arg;
    struct chat now;
    struct chat_tokens owed; /* tokens to subtract from later answers; a negative cost is added */
    int64_t asked_us; /* time of the last question to the model, in us; 0 without a question */
    struct buf asked; /* messages that the model has not answered yet */
    bool asked_cut;
};

/*
 * Add the next event of a session. used is the result of event_spending_add(); turn_seq is the seq
 * of the event that began the turn.
 */
void chats_take(struct chats *chats, const annal_event *event, const struct tally *used,
                uint64_t turn_seq);
void chats_finish(struct chats *chats);
void chats_done(struct chats *chats);
