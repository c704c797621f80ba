/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a model, reconstructed from messages and from agent.turn.usage: a span for each
 * answer, with the messages before it, the answer, and the tokens.
 *
 * (1) An answer is the assistant's messages with one message_id, and the usage that names it.
 *     Without message_ids it ends with its usage, or with the next question. A cost without tokens
 *     belongs to the current answer, or to the next answer with tokens.
 * (2) The tokens of all spans add up to the tokens of the session. A usage that takes back counted
 *     tokens is subtracted from the current answer, as long as that has some, then from the answers
 *     that follow; the rest at the end (chat_overdraft) is subtracted from the first answers.
 * (3) At most CHAT_CONTENT_BYTES of a request are kept, in whole messages; if there were more, the
 *     span has annal.content_cut.
 */
#ifndef TOOLS_EXPORT_CHAT_H
#define TOOLS_EXPORT_CHAT_H

#include "tools/export/export.h"
#include "tools/show/event_facts.h"

#define CHAT_CONTENT_BYTES ((size_t)4 << 20)

struct chat_tokens {
    int64_t input, output, cost_microusd;
    int64_t cached, cache_write, reasoning;
};

struct chat {
    bool begun; /* the answer has content */
    bool used;  /* whether its tokens are known */
    uint64_t seq;
    uint64_t turn_seq;
    int64_t start_us, end_us;
    struct chat_tokens tokens;
    struct buf model, id;     /* raw strings */
    struct buf input, output; /* messages with their commas */
    const char *finish;       /* why the last message of output ended, or NULL */
    bool cut;
};

/* Print the span of a complete answer. */
typedef annal_status (*chat_fn)(void *arg, const struct chat *chat, annal_error *err);

struct chats {
    chat_fn fn; /* NULL: only count */
    void *arg;
    struct chat now;
    struct chat_tokens owed; /* still to be subtracted from later spans; a cost may be added */
    int64_t asked_us;        /* time of the last question to the model */
    struct buf asked;        /* messages without an answer yet */
    bool asked_cut;
};

/*
 * Add each event in its order; used is the result of event_spending_add(). turn_seq: the turn of
 * the event.
 */
annal_status chats_take(struct chats *chats, const annal_event *event, const struct tally *used,
                        uint64_t turn_seq, annal_error *err);
annal_status chats_finish(struct chats *chats, annal_error *err);
void chats_done(struct chats *chats);

#endif
