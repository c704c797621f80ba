/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a model, made from messages and from agent.turn.usage: a span of each answer, with
 * what was asked before it, what was answered, and the tokens.
 *
 * (1) An answer is the messages of the assistant with one message_id, and the usage that names it.
 *     Without message_ids it ends with its usage, or with the next question. A cost that comes
 *     without tokens belongs to the current answer, or to the next one that has tokens.
 * (2) The tokens of all spans add up to those of the session. A usage that takes back what was
 *     counted is subtracted from the current answer, as long as that has some, then from those that
 *     follow; what would be left over at the end (chat_overdraft) from the first ones.
 * (3) Of a request at most CHAT_CONTENT_BYTES are kept, in messages that are whole; if there were
 *     more the span says so as annal.content_cut.
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
    bool begun; /* there is something to report */
    bool used;  /* its tokens are known */
    uint64_t seq;
    uint64_t turn_seq;
    int64_t start_us, end_us;
    struct chat_tokens tokens;
    struct buf model, id;     /* raw strings */
    struct buf input, output; /* messages with their commas */
    const char *finish;       /* why the last one of output ended; NULL: there is none */
    bool cut;
};

/* Print the span of an answer that is complete. */
typedef annal_status (*chat_fn)(void *arg, const struct chat *chat, annal_error *err);

struct chats {
    chat_fn fn; /* NULL: only count */
    void *arg;
    struct chat now;
    struct chat_tokens
        owed; /* what is still to be subtracted from spans to come; a cost may be one to be added */
    int64_t asked_us; /* when the model was last asked something */
    struct buf asked; /* by messages that have no answer yet */
    bool asked_cut;
};

/* Each event in its order; used is the result of spending_add(). turn_seq: the turn it is in. */
annal_status chats_take(struct chats *chats, const annal_event *event, const struct tally *used,
                        uint64_t turn_seq, annal_error *err);
annal_status chats_finish(struct chats *chats, annal_error *err);
void chats_done(struct chats *chats);

#endif
