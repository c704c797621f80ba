/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The id of a document in search.db, which is its rowid in FTS5: number of the session, seq, kind
 * and size, from the highest bit to the lowest. A list of ids that FTS5 returns for a word is
 * therefore sorted by session and event, and is enough to rank sessions: no row needs to be read.
 */
#pragma once

#include <stdint.h>

/* largest seq of an event that is searched */
#define SEARCH_SEQ_MAX ((1u << 31) - 1)

enum search_kind {
    SEARCH_BOOKKEEPING, /* import.*, agent.turn.usage */
    SEARCH_OTHER,       /* calls and results of tools, and all other events */
    SEARCH_ANSWER,      /* messages of the assistant */
    SEARCH_ASKED        /* messages of the user */
};

/* size: the power of 2 of the text's number of bytes, less 4, from 0 to 15 */
static inline int64_t search_id(int64_t number, uint64_t seq, enum search_kind kind, int size)
{
    return number << 37 | (int64_t)seq << 6 | (int64_t)kind << 4 | size;
}

static inline int64_t search_id_session(int64_t id)
{
    return id >> 37;
}

static inline uint64_t search_id_seq(int64_t id)
{
    return (uint64_t)(id >> 6) & SEARCH_SEQ_MAX;
}

static inline enum search_kind search_id_kind(int64_t id)
{
    return (enum search_kind)(id >> 4 & 3);
}

static inline int search_id_size(int64_t id)
{
    return (int)(id & 15);
}
