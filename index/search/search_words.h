/* SPDX-License-Identifier: Apache-2.0 */
/* What counts as a word in search.db. */
#ifndef INDEX_SEARCH_SEARCH_WORDS_H
#define INDEX_SEARCH_SEARCH_WORDS_H

#include <annal/base.h>

#include <sqlite3.h>
#include <stdbool.h>

/* Register the tokenizer annal_words with FTS5. Any connection to search.db needs it. */
annal_status annal__search_words_add(sqlite3 *db, annal_error *err);

struct search_words {
    size_t count;  /* number of tokens */
    bool is_short; /* whether the last token is one letter of a script without spaces: a prefix */
};

/* Count the tokens of a search text. */
struct search_words annal__search_words_count(annal_slice text);

/*
 * Return FTS5's interface, as in "Extending FTS5" of SQLite's manual; NULL if this SQLite has no
 * FTS5.
 */
fts5_api *annal__search_fts5(sqlite3 *db);

#endif
