/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer of search.db, which divides a text into words. */
#pragma once

#include <annal/base.h>

#include <sqlite3.h>
#include <stdbool.h>

/* Register the tokenizer annal_words with FTS5. Each connection to search.db needs it. */
annal_status annal__search_words_add(sqlite3 *db, annal_error *err);

struct search_words {
    int rc;       /* a result code of SQLite: SQLITE_NOMEM if they could not be counted */
    size_t count; /* number of tokens */
    /* whether the last token is a single letter of a script without spaces, which must be searched
     * as a prefix */
    bool is_short;
};

/* Count the tokens of the text of a search. */
struct search_words annal__search_words_count(annal_slice text);

/* Receives a token; FTS5_TOKEN_COLOCATED in flags: it is at the place of the token before it. A
 * result other than 0 ends the calls and is returned. */
typedef int (*search_word_fn)(void *arg, int flags, const char *token, int len, int begin, int end);

/* Call fn for each token of the text of a search, and for the parts of names (rule 6 of
 * search_words.c) as FTS5 does for a text. */
int annal__search_words_split(annal_slice text, search_word_fn fn, void *arg);

/*
 * Find FTS5's interface, as in "Extending FTS5" of SQLite's manual. ANNAL_ERR_UNSUPPORTED: this
 * SQLite has no FTS5.
 */
annal_status annal__search_fts5(sqlite3 *db, fts5_api **out_api, annal_error *err);
