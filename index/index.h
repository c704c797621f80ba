/* SPDX-License-Identifier: Apache-2.0 */
/* An open index, for the files of this folder. */
#ifndef INDEX_INDEX_H
#define INDEX_INDEX_H

#include "index/db/derived.h"
#include "index/db/shape.h"
#include "index/follow/follower.h"
#include "index/pack/packs.h"
#include "index/search/search.h"

#include <annal/index.h>
#include <annal/journal.h>

#include <sqlite3.h>

/* The number of events of a type since the last flush. */
struct core_count {
    char type[ANNAL_TYPE_BYTES_MAX + 1];
    uint64_t n;
};

#define CORE_COUNTS_MAX 64

/* A row of event_index that is not written yet. */
struct core_event {
    uint64_t seq, offset, length;
    char type[ANNAL_TYPE_BYTES_MAX];
    size_t type_bytes;
    char ts[ANNAL_TIME_BYTES];
};

#define CORE_EVENTS_MAX 32

/* What the index writes in addition to what every follower writes; see event_index.c. */
struct core_rows {
    sqlite3_stmt *insert_event, *insert_events; /* for one row, and for CORE_EVENTS_MAX rows */
    sqlite3_stmt *add_count;
    /* events of the current session, like the counts */
    struct core_event events[CORE_EVENTS_MAX];
    size_t event_count;
    struct core_count counts[CORE_COUNTS_MAX];
    size_t count_count;
};

/* The replacement for a sessions.db that cannot be used; see fallback.c. */
struct fallback {
    pthread_mutex_t mutex;
    annal_index *index;     /* in memory; NULL until it is needed */
    bool in_use;            /* whether the last catch-up used the fallback */
    int64_t until_us;       /* time before which sessions.db is not tried again */
    struct stamp caught_up; /* version of sessions.db at the last catch-up; id 0: no catch-up yet */
};

struct annal_index {
    annal_store *store;
    annal_pack *core;
    struct derived derived; /* sessions.db */
    struct follower follower;
    struct core_rows rows;        /* guarded by the lock of derived */
    const annal_decider *decider; /* or NULL */
    bool follows;
    uint64_t changed_since; /* for the task; see annal__session_list_changed() */
    bool lags;              /* whether the task left work; used by tasks only */
    struct shape shape;     /* of sessions.db, without the core pack */
    struct fallback fallback;
    struct packs packs;
    struct search search;
    void (*_Atomic on_close)(void *arg); /* see annal__index_on_close() */
    void *_Atomic on_close_arg;
};

/* ---- index_open.c ---- */

/* Open a private index in memory of the same store, independent of the files on disk. */
annal_status annal__index_open_private(annal_store *store, uint32_t wait_ms,
                                       annal_index **out_index, annal_error *err);

/* ---- event_index.c ---- */

extern const struct derived_ops annal__core_ops; /* arg: the index */
extern const struct follower_ops annal__core_follower;

/* ---- index_task.c ---- */

/* Run the task of options.follow. */
annal_status annal__index_follow(void *arg, annal_error *err);

/* ---- fallback.c ---- */

/*
 * Call annal__indexer_run(), on the fallback if necessary. *out_used: the index that is caught up
 * now.
 */
annal_status annal__fallback_catch_up(annal_index *index, const annal_slice *sessions, size_t count,
                                      const annal_catch_up_options *options, annal_index **out_used,
                                      struct stamp *out_stamp, annal_error *err);

/*
 * Use the fallback from now on, for some seconds. `why` is logged unless sessions.db was deleted.
 */
annal_status annal__fallback_begin(annal_index *index, const annal_error *why, annal_error *err);

/* Return whether the fallback can help after this failure of sessions.db. */
bool annal__fallback_helps(const annal_index *index, annal_status status);

/* Return the index that was caught up last. *out_caught_up: up to where (id 0: never). */
annal_index *annal__fallback_or_self(annal_index *index, struct stamp *out_caught_up);

/*
 * Call annal__derived_borrow() on the index in use, or on the fallback if sessions.db cannot be
 * used. annal__derived_give(&index->derived, …) takes back connections of both.
 */
annal_status annal__fallback_borrow(annal_index *index, sqlite3 **out_db, annal_error *err);

/* ---- reader.c ---- */

/*
 * Begin a read: catch up (unless as_indexed) on these sessions, or on all if count is 0, and open a
 * connection. A catch-up that did not finish is reported in *out_lag (may be NULL), and is not a
 * failure.
 */
annal_status annal__reader_read(annal_index *index, const annal_slice *sessions, size_t count,
                                bool as_indexed, uint32_t timeout_ms, sqlite3 **out_db,
                                annal_lag *out_lag, annal_error *err);

/*
 * As above, with a connection that is kept for reuse: it may have served another query. Return it
 * with annal__derived_give() to this index's derived.
 */
annal_status annal__reader_borrow(annal_index *index, const annal_slice *sessions, size_t count,
                                  bool as_indexed, uint32_t timeout_ms, sqlite3 **out_db,
                                  annal_lag *out_lag, annal_error *err);

/*
 * Read events that are not indexed yet from the journals, into the table temp.rest, which has the
 * columns of event_index. Call it after annal__reader_read() on db. Begins a transaction, so that
 * both tables keep their content. *lag: what is still missing; if there is too much to read,
 * nothing is read (*out_added stays false).
 */
annal_status annal__reader_add_rest(annal_index *index, sqlite3 *db, const annal_slice *sessions,
                                    size_t count, annal_lag *lag, bool *out_added,
                                    annal_error *err);

#endif
