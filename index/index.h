/* SPDX-License-Identifier: Apache-2.0 */
/* The members of an open index, for the files of this folder. */
#pragma once

#include "index/db/derived.h"
#include "index/db/shape.h"
#include "index/follow/follower.h"
#include "index/pack/packs.h"
#include "index/search/search.h"

#include <annal/index.h>
#include <annal/journal.h>

#include <sqlite3.h>

/* The number of events of one type in the current session since the last flush. */
struct core_count {
    char type[ANNAL_TYPE_BYTES_MAX + 1];
    uint64_t n;
};

#define CORE_COUNTS_MAX 64

/* A row for event_index that was not inserted yet. */
struct core_event {
    uint64_t seq, offset, length;
    char type[ANNAL_TYPE_BYTES_MAX];
    size_t type_bytes;
    char ts[ANNAL_TIME_BYTES];
};

#define CORE_EVENTS_MAX 32

/* The rows that the index writes in addition to what every follower writes; see event_index.c. */
struct core_rows {
    /* INSERT of one row into event_index, and of CORE_EVENTS_MAX rows */
    sqlite3_stmt *insert_event, *insert_events;
    sqlite3_stmt *add_count;
    /* rows of the current session that are not written yet; the counts are of the current session,
     * too */
    struct core_event events[CORE_EVENTS_MAX];
    size_t event_count;
    struct core_count counts[CORE_COUNTS_MAX];
    size_t count_count;
};

/* The replacement for a sessions.db that cannot be used; see fallback.c. */
struct fallback {
    pthread_mutex_t mutex;
    annal_index *index; /* index in memory; NULL until it is needed */
    bool in_use;        /* whether the last catch-up used the fallback */
    /* monotonic time, in microseconds, before which sessions.db is not tried again */
    int64_t until_us;
    /* stamp of sessions.db after the last catch-up that was complete; id 0: none was */
    struct stamp caught_up;
};

struct annal_index {
    annal_store *store;
    annal_pack *core;
    struct derived derived; /* the database sessions.db */
    struct follower follower;
    /* rows for event_index and its counts; guarded by the lock of derived */
    struct core_rows rows;
    const annal_decider *decider; /* decider of the caller, or NULL */
    bool follows;
    /* number up to which the background task has indexed changed sessions:
     * annal__session_list_changed() */
    uint64_t changed_since;
    /* whether the last round of the task did not index everything; used only by tasks of the
     * keeper */
    bool lags;
    struct shape shape; /* expected shape of sessions.db, without the core pack */
    struct fallback fallback;
    struct packs packs;
    struct search search;
    /* statement of annal__type_fields_check() on a connection of its own, while no thread uses it;
     * may be NULL */
    sqlite3_stmt *_Atomic strict;
    /* function for annal__index_on_close(), with its arg in the next member */
    void (*_Atomic on_close)(void *arg);
    void *_Atomic on_close_arg;
};

/* ---- index_open.c ---- */

/* Open a private index of the same store in memory, which uses no database on disk. */
annal_status annal__index_open_private(annal_store *store, uint32_t wait_ms,
                                       annal_index **out_index, annal_error *err);

/* ---- event_index.c ---- */

/* functions of sessions.db as a derived database; their arg is the index */
extern const struct derived_ops annal__core_ops;
extern const struct follower_ops annal__core_follower;

/* ---- index_task.c ---- */

/* Run one round of the background task of an index with options.follow. */
annal_status annal__index_follow(void *arg, annal_error *err);

/* ---- fallback.c ---- */

/*
 * Catch up with annal__indexer_run(), or catch up the fallback if sessions.db cannot be used.
 * *out_used: the index that was caught up.
 */
annal_status annal__fallback_catch_up(annal_index *index, const annal_slice *sessions, size_t count,
                                      const annal_catch_up_options *options, annal_index **out_used,
                                      struct stamp *out_stamp, annal_error *err);

/*
 * Use the fallback from now on, until a catch-up tries sessions.db again after RETRY_MS. `why` is
 * logged if trying again is useless (no space, no permission).
 */
annal_status annal__fallback_begin(annal_index *index, const annal_error *why, annal_error *err);

/* Return whether the fallback can help after sessions.db failed with this status. */
bool annal__fallback_helps(const annal_index *index, annal_status status);

/* Return the index or the fallback, whichever was caught up last. *out_caught_up: stamp of
 * sessions.db after its last complete catch-up; id 0: none, or the fallback is returned. */
annal_index *annal__fallback_or_self(annal_index *index, struct stamp *out_caught_up);

/*
 * Borrow a connection with annal__derived_borrow() from the index or fallback that was caught up
 * last, or from the fallback if sessions.db cannot be used. annal__derived_give(&index->derived, …)
 * takes back connections of both.
 */
annal_status annal__fallback_borrow(annal_index *index, sqlite3 **out_db, annal_error *err);

/* ---- reader.c ---- */

/*
 * Open a connection to the index for reading, after catching up (unless as_indexed) on these
 * sessions, or on all if count is 0. An incomplete catch-up is reported in *out_lag (may be NULL),
 * and is not a failure.
 */
annal_status annal__reader_read(annal_index *index, const annal_slice *sessions, size_t count,
                                bool as_indexed, uint32_t timeout_ms, sqlite3 **out_db,
                                annal_lag *out_lag, annal_error *err);

/*
 * Do the same as annal__reader_read() with a connection that is kept for reuse, and may have been
 * used for another query. Return it with annal__derived_give() to this index's derived.
 */
annal_status annal__reader_borrow(annal_index *index, const annal_slice *sessions, size_t count,
                                  bool as_indexed, uint32_t timeout_ms, sqlite3 **out_db,
                                  annal_lag *out_lag, annal_error *err);

/*
 * Read events that are not indexed yet from the journals, into the table temp.rest, which has the
 * columns of event_index. Call it after annal__reader_read() on db. It begins a transaction, so
 * that both tables keep their content. *lag is the lag of annal__reader_read(), and is reduced to
 * the events that could not be read. If there are no such events, or too many, nothing is read and
 * *out_added is false.
 */
annal_status annal__reader_add_rest(annal_index *index, sqlite3 *db, const annal_slice *sessions,
                                    size_t count, annal_lag *lag, bool *out_added,
                                    annal_error *err);
