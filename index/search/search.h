/* SPDX-License-Identifier: Apache-2.0 */
/* search.db: a follower that fills a full-text index from the journals. */
#pragma once

#include "index/db/shape.h"
#include "index/follow/follower.h"
#include "index/sys/databases.h"

#include <pthread.h>
#include <stdatomic.h>

struct search {
    struct derived derived;
    struct follower follower;
    bool has_mutex;
    pthread_mutex_t mutex;
    /* expected shape of search.db; without objects until it is first needed; set under the mutex */
    struct shape shape;
    /* for tests: number of ids that ranked searches have read, and how many each may read; 0: the
     * usual number */
    atomic_uint_fast64_t rows_read;
    uint32_t rows_most;
    /* statements that are prepared while derived.db is open */
    sqlite3_stmt *add_document, *get_session, *add_session, *count_documents;
    sqlite3_stmt *add_text, *add_call, *get_tool;
    sqlite3_stmt *drop_texts, *drop_documents, *drop_session, *drop_calls;
    sqlite3_stmt *add_vector, *drop_vectors;
    /* the session whose events are added: its number, or 0, and what its row lacks until flush() */
    struct {
        int64_t number, documents, last_us;
    } current;
};

/* Initialize the search without touching a file. */
annal_status annal__search_init(struct search *search, annal_store *store, uint32_t wait_ms,
                                annal_error *err);
void annal__search_done(struct search *search);

/*
 * Remove the last bytes of words that were deleted. FTS5 keeps the bytes until it merges its parts,
 * so all parts are merged and the file is rewritten. If that fails the file is deleted, and the
 * next search rebuilds it.
 */
annal_status annal__search_wipe(struct search *search, int64_t deadline_us, annal_error *err);

/* Run FTS5's own check of its tables, and call fn if they are damaged. */
annal_status annal__search_check(struct search *search, annal__damaged_fn fn, void *arg,
                                 annal_error *err);

bool annal__search_is_off(const struct search *search);

/* Return whether the keeper must keep search.db up to date: search is switched on, and search.db
 * exists because a user has searched. */
bool annal__search_is_kept(const struct search *search);

/*
 * Add the SQL functions and the tokenizer that the tables of search.db need to a connection. The
 * store must outlive the connection.
 */
annal_status annal__search_add_functions(sqlite3 *db, annal_store *store, annal_error *err);
