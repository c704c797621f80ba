/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Full-text search over messages and tool output.
 *
 * Words are found by SQLite's FTS5 in STORE/search.db, which is built from the journals like the
 * rest of the index: it may be deleted at any moment, and is rebuilt. The first search builds it,
 * or `annal import` of many events, so a store that is never searched pays nothing; from then on an
 * index that follows (annal_index_options) keeps it up to date, and every search updates it first.
 * It can be switched off.
 *
 * The search covers every string in the data of an event, in any member, and the output of tools
 * that was stored as an artifact, up to 1 MiB. It leaves out names of members, encoded bytes such
 * as images, and what an import stores beside the event ($.source, $.extra). A word consists of
 * letters and digits of Unicode; case, accents and the normal form do not matter. In scripts
 * without spaces between words, such as Chinese, Japanese, Korean and Thai, any part of a text is
 * found.
 */
#ifndef ANNAL_SEARCH_H
#define ANNAL_SEARCH_H

#include <annal/index.h>
#include <annal/query.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum annal_search_order {
    /* messages and tool output, then all other events; each group in the order of bm25 */
    ANNAL_SEARCH_BEST = 0,
    ANNAL_SEARCH_NEWEST = 1 /* by ts, newest first */
} annal_search_order;

/* The query of a search. An event is found if it matches every member that is set (not 0). words or
 * expression must be set. */
typedef struct annal_search_options {
    /*
     * Each entry is a word or a phrase (several words in a row), and all must occur. A * at the end
     * of an entry matches any continuation of its last word. No other character has a special
     * meaning.
     */
    const annal_slice *words;
    size_t word_count;
    annal_slice expression; /* instead of words: an expression of FTS5, "a AND (b OR c*) NOT d" */
    const annal_slice *sessions; /* only events in the history of one of these sessions */
    size_t session_count;
    /* role of the event's author: user, assistant, system, …; tool: output that a tool returned */
    annal_slice role;
    annal_slice tool; /* name of a tool, whose calls and outputs are searched */
    /* only events with one of these types; patterns are allowed, as in annal_filter */
    const annal_slice *types;
    size_t type_count;
    /* Whether to search events of the types import.* and agent.turn.usage, too; without it they are
     * searched only if `types` names them. */
    bool bookkeeping;
    int64_t since_us; /* ts >= since_us; a half-open range, as in annal_filter */
    int64_t until_us; /* end of the range: ts < until_us; 0: no limit */
    uint64_t limit;   /* largest number of hits, or of sessions; 0: no limit */
    annal_search_order order;
    uint32_t snippet_words; /* approximate length of a snippet; default 16, at most 64 */
    const char *mark_begin; /* text before a found word in a snippet; default: nothing */
    const char *mark_end;   /* text after a found word in a snippet; default: nothing */
    /* limits of the catch-up; default: no time limit, and no calls of progress */
    const annal_catch_up_options *catch_up;
    annal_limits limits; /* limits of the search; default: none */
    /* For annal_search_session_each() only: the largest number of places of a session, default 3;
     * and sessions that weigh a little more, such as those of the same project. */
    uint32_t places;
    const annal_slice *preferred;
    size_t preferred_count;
    /* For annal_search_session_each() only: a vector that means the same as the search, computed by
     * the caller with the model whose embeddings were stored. words may then be empty. */
    annal_slice vector_model;
    const float *vector;
    size_t vector_count;
} annal_search_options;

/* An event that was found. Slices are valid until the callback returns. */
typedef struct annal_search_hit {
    annal_slice session;
    uint64_t seq;
    int64_t ts_us;
    annal_slice type;
    annal_slice role; /* role of the event's author; empty: the role is not known */
    annal_slice tool; /* name of the tool that the event is about; empty: none */
    annal_slice snippet;
    double rank; /* rank by FTS5's function bm25(): the lower, the better */
} annal_search_hit;

/* A function that is called for each hit. It returns 0 to continue; any other value ends the calls,
 * and is returned to the caller. */
typedef int (*annal_search_fn)(void *arg, const annal_search_hit *hit);

/*
 * Call fn for each hit. *out_lag says what is missing in the answer, if other programs kept the
 * database busy for too long; out_lag may be NULL. Memory does not grow with the answer. Any
 * thread.
 *
 * ANNAL_ERR_INVALID      no words to search for, or no word that contains a letter or a digit
 * ANNAL_ERR_SQL          options->expression is not an expression
 * ANNAL_ERR_UNSUPPORTED  search is switched off in this store
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_search_each(annal_index *index,
                                                          const annal_search_options *options,
                                                          annal_search_fn fn, void *arg,
                                                          annal_lag *out_lag, annal_error *err);

/* A session that was found. Slices are valid until the callback returns. */
typedef struct annal_search_session {
    annal_slice session;
    int64_t last_us; /* ts of its latest event with text */
    uint64_t events; /* number of its events that contain a word of the search */
    double score;    /* the higher, the better; scores of two searches do not compare */
    annal_slice why; /* one line: "high in 2 events, water in 3; both in event 4" */
    /* the best events, best first; rank is lower, the better */
    const annal_search_hit *places;
    size_t place_count;
} annal_search_session;

typedef int (*annal_search_session_fn)(void *arg, const annal_search_session *found);

/*
 * Call fn for each session that contains one of options->words, the best first: the session is
 * judged as a whole and by its best event, by BM25. Words count the more, the fewer sessions and
 * events contain them; common English words such as "the" count only if there are no others. A word
 * stands for all words of its stem (migrate, migrated), and, if no event contains it, for words
 * that differ by one typing error. A name such as get_user_id, getUserId or src/table.py is found
 * as a whole and, with less weight, by its parts; an entry of several words adds to the score where
 * it occurs as a phrase. Later sessions and preferred ones weigh a little more.
 *
 * With options->vector, the sessions have a second order, by the event whose embedding of the same
 * model and dimension is the nearest, by cosine; the score is then the sum of 1 / (60 + rank) in
 * both orders. All embeddings of the store are compared, and the nearest 1000 count.
 *
 * options->expression and order are not used. The time does not grow with the store beyond a limit:
 * of a word that occurs very often, the events that were indexed last count.
 *
 * Otherwise like annal_search_each(), except that an event need not contain all words.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_search_session_each(
    annal_index *index, const annal_search_options *options, annal_search_session_fn fn, void *arg,
    annal_lag *out_lag, annal_error *err);

/* ---- Embeddings ---- */

#define ANNAL_EMBEDDING_MAX 65536

/* A vector that a program computed for an event of a session. */
typedef struct annal_embedding {
    uint64_t seq;      /* of the event, which is in the session's own journal */
    annal_slice model; /* name of the model; vectors of one model are compared with each other */
    const float *values;
    size_t count; /* dimension, at most ANNAL_EMBEDDING_MAX */
} annal_embedding;

/*
 * Store embeddings, durably: as events of type embedding.added of the session, so that they are
 * deleted with it, and the search index can be rebuilt. Their ts is the time of the session's last
 * event. A later embedding of the same event and model replaces an earlier one. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session or event; or the event is of an ancestor of a fork: its
 *                     embedding belongs into the ancestor's journal, which the message names
 * ANNAL_ERR_INVALID   no model, no numbers, too many, or one that is not finite
 * Otherwise like annal_writer_append().
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_embedding_put(annal_store *store, annal_slice session,
                                                            const annal_embedding *embeddings,
                                                            size_t count, annal_error *err);

/*
 * Switch search on or off for the store, until it is switched again. Switching it off removes
 * search.db; switching it on creates no file yet. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_search_enable(annal_index *index, bool on,
                                                            annal_error *err);

/* Rebuild search.db from the journals. Afterwards it contains no words of deleted sessions. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_search_rebuild(annal_index *index,
                                                             const annal_catch_up_options *options,
                                                             annal_error *err);

typedef struct annal_search_info {
    bool on;
    bool exists; /* whether search.db exists */
    uint64_t documents;
    uint64_t bytes; /* size of search.db, without its WAL */
} annal_search_info;

/* Report the state of search, without catching up or creating anything. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_search_info_get(annal_index *index,
                                                              annal_search_info *out_info,
                                                              annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
