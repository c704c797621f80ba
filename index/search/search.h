/* SPDX-License-Identifier: Apache-2.0 */
/* search.db: follows the journals for full-text search. */
#ifndef INDEX_SEARCH_SEARCH_H
#define INDEX_SEARCH_SEARCH_H

#include "index/db/shape.h"
#include "index/follow/follower.h"
#include "index/sys/databases.h"

#include <pthread.h>

struct search {
    struct derived derived;
    struct follower follower;
    bool has_mutex;
    pthread_mutex_t mutex;
    struct shape shape; /* without objects until it is needed; set under the mutex */
    /* Prepared on derived.db while that is open. */
    sqlite3_stmt *add_document, *add_text, *add_call, *get_tool;
    sqlite3_stmt *drop_texts, *drop_documents, *drop_calls;
};

/* Initialize it without touching a file. */
annal_status annal__search_init(struct search *search, annal_store *store, uint32_t wait_ms,
                                annal_error *err);
void annal__search_done(struct search *search);

/*
 * Remove the last bytes of words that were deleted. FTS5 keeps them until it merges, so everything
 * is merged and the file is rewritten. If that fails the file is deleted, and the next search
 * rebuilds it.
 */
annal_status annal__search_wipe(struct search *search, int64_t deadline_us, annal_error *err);

/* Run FTS5's own check of its tables, which annal__maintain_prove() includes. */
annal_status annal__search_check(struct search *search, annal__damaged_fn fn, void *arg,
                                 annal_error *err);

bool annal__search_is_off(const struct search *search);

/* Return whether the keeper has to follow it: search is enabled, and a user has searched once. */
bool annal__search_is_kept(const struct search *search);

/*
 * Add annal_said() and the tokenizer, which the tables need, to a connection to search.db. The
 * store must outlive it.
 */
annal_status annal__search_add_functions(sqlite3 *db, annal_store *store, annal_error *err);

#endif
