/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Full-text search over messages and tool output.
 *
 * Words are found by SQLite's FTS5 in STORE/search.db, which is built from the journals like the
 * rest of the index: it may be deleted at any moment, and is rebuilt. The first search builds it,
 * so a store that is never searched pays nothing; from then on an index that follows
 * (annal_index_options) keeps it up to date, and every search updates it first. It can be switched
 * off.
 *
 * What is searched of an event: every string in its data, whatever member it is in, and the output
 * of tools that was stored as an artifact; up to 1 MiB. Not searched are names of members, encoded
 * bytes such as images, and what an import keeps beside the event ($.source, $.extra). A word is
 * what Unicode calls letters and digits; case, accents and the normal form do not matter. In
 * scripts without spaces between words, such as Chinese, Japanese, Korean and Thai, any part of a
 * text is found.
 */
#ifndef ANNAL_SEARCH_H
#define ANNAL_SEARCH_H

#include <annal/index.h>
#include <annal/query.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum annal_search_order {
    /* Messages and tool output, then the rest; each in the order of bm25. */
    ANNAL_SEARCH_BEST = 0,
    ANNAL_SEARCH_NEWEST = 1 /* by ts, last first */
} annal_search_order;

/* The question. Everything that is set must hold; zero sets nothing, but there must be words. */
typedef struct annal_search_options {
    /*
     * Each is a word or a phrase (several words in a row), and all must occur. A * at its end means
     * any rest of its last word. No other character has a meaning.
     */
    const annal_slice *words;
    size_t word_count;
    annal_slice expression; /* instead of words: an expression of FTS5, "a AND (b OR c*) NOT d" */
    const annal_slice *sessions; /* in the history of any of these */
    size_t session_count;
    annal_slice role;         /* user, assistant, system, ..., tool: what a tool returned */
    annal_slice tool;         /* calls of this tool, and what they returned */
    const annal_slice *types; /* as in annal_filter */
    size_t type_count;
    /* Also import.* and agent.turn.usage, which are left out unless types name them. */
    bool bookkeeping;
    int64_t since_us; /* ts >= since_us; a half-open range, as in annal_filter */
    int64_t until_us; /* ts < until_us */
    uint64_t limit;   /* at most this many hits */
    annal_search_order order;
    uint32_t snippet_words; /* approximate length of a snippet; default 16, at most 64 */
    const char *mark_begin; /* text before and after a found word, */
    const char *mark_end;   /* in snippets; default: nothing */
    const annal_catch_up_options *catch_up; /* default: as long as it takes, without progress */
    annal_limits limits;                    /* limits of the search; default: none */
} annal_search_options;

/* Slices are valid until the callback returns. */
typedef struct annal_search_hit {
    annal_slice session;
    uint64_t seq;
    int64_t ts_us;
    annal_slice type;
    annal_slice role; /* empty: not known */
    annal_slice tool; /* empty: not about a tool */
    annal_slice snippet;
    double rank; /* FTS5's bm25: the lower the better */
} annal_search_hit;

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal_search_fn)(void *arg, const annal_search_hit *hit);

/*
 * Call fn for each hit. *out_lag (may be NULL) says what is missing in the answer, if others kept
 * the database busy for too long. Memory does not grow with the answer. Any thread.
 *
 * ANNAL_ERR_INVALID      there is nothing to search for: no words, or none with a letter in it
 * ANNAL_ERR_SQL          options->expression is not an expression
 * ANNAL_ERR_UNSUPPORTED  search is switched off in this store
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_search(annal_index *index,
                                                     const annal_search_options *options,
                                                     annal_search_fn fn, void *arg,
                                                     annal_lag *out_lag, annal_error *err);

/*
 * Switch search on or off, for the store, until it is switched again. Off removes search.db; on
 * creates nothing yet. Doing it again changes nothing. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_search_switch(annal_index *index, bool on,
                                                            annal_error *err);

/* Rebuild search.db from the journals. Words of sessions that were deleted are gone then. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_search_rebuild(annal_index *index,
                                                             const annal_catch_up_options *options,
                                                             annal_error *err);

typedef struct annal_search_info {
    bool on;
    bool exists; /* search.db exists */
    uint64_t documents;
    uint64_t bytes; /* size of the file, without its WAL */
} annal_search_info;

/* The state of search. Catches up on nothing, creates nothing. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_search_info_get(annal_index *index,
                                                              annal_search_info *out_info,
                                                              annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
