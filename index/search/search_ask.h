/* SPDX-License-Identifier: Apache-2.0 */
/* What the two kinds of search share: search_ask.c lists events, search_rank.c ranks sessions. */
#pragma once

#include "index/db/bound.h"
#include "index/follow/history.h"
#include "index/index.h"

#include <annal/search.h>

struct asking {
    annal_index *index;
    const annal_search_options *options;
    /* prepare: compose the expression, before a database is opened. answer: answer the search on
     * db. */
    annal_status (*prepare)(struct asking *asking, annal_error *err);
    annal_status (*answer)(struct asking *asking, annal_error *err);
    void *arg; /* data of these functions */
    struct buf expression;
    struct history history;
    sqlite3 *db;
    sqlite3_stmt *hits, *snippet;
    struct bound bound;
    /* whether a hit was passed to the caller, so that the search must not run again after a
     * failure */
    bool begun;
};

/* Append a text as a string of FTS5's expressions, in quotes. */
annal_status annal__search_ask_quote(struct buf *out, annal_slice text);

/* Run a search: bring search.db up to date, open it, and call answer; again if search.db is
 * damaged and can be rebuilt. */
annal_status annal__search_ask(struct asking *asking, annal_lag *out_lag, annal_error *err);

/*
 * Append the conditions of the options on the row d of documents, except sessions. Parameters: ?2
 * role, ?3 tool, ?4 since, ?5 until, types from ?7 on.
 */
annal_status annal__search_ask_conditions(struct buf *sql, const annal_search_options *options);
/* Bind these parameters, and ?1 and ?6: the expression and the limit. Returns a result code of
 * SQLite. */
int annal__search_ask_bind(sqlite3_stmt *stmt, const annal_search_options *options,
                           annal_slice expression, uint64_t limit);

/* Prepare asking->snippet for an expression. */
annal_status annal__search_ask_snippets(struct asking *asking, annal_slice expression,
                                        annal_error *err);

/* Columns of documents d and sessions s that annal__search_ask_hit() reads. */
#define SEARCH_HIT_COLUMNS                                                                         \
    "d.id, s.session_id, d.id >> 6 & 0x7fffffff, d.timestamp, d.type, d.role, d.tool"
/* Read a hit, except rank, from a row with these columns; it is valid until the next step of the
 * row or of asking->snippet. */
annal_status annal__search_ask_hit(struct asking *asking, sqlite3_stmt *row,
                                   annal_search_hit *out_hit, annal_error *err);

/* Fail after a step. If FTS5 cannot parse options->expression, the status is ANNAL_ERR_SQL: the
 * caller's mistake. */
annal_status annal__search_ask_fail(const struct asking *asking, int rc, annal_error *err);
