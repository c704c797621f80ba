/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fallback: an index in memory, for readers that cannot use sessions.db. Either the file cannot
 * be created or written (the disk is full, the directory belongs to another user, another file has
 * its name, or it does not exist yet and another process holds the lock that is needed to create
 * it), or it is deleted faster than it is rebuilt. A query then takes longer, and has the same
 * result.
 *
 * (1) The fallback is built from the journals when it is first needed, and exists until the index
 *     is closed.
 * (2) A catch-up uses sessions.db, unless sessions.db could not be used at a time less than
 *     RETRY_MS ago.
 * (3) A caller that does not catch up uses the index, sessions.db or the fallback, that was caught
 *     up last.
 * (4) Snapshots are written to sessions.db only, never to the fallback.
 */
#include "index/index.h"
#include "journal/base/error.h"
#include "journal/sys/say.h"

#define RETRY_MS 10000

annal_status annal__fallback_begin(annal_index *index, const annal_error *why, annal_error *err)
{
    struct fallback *fallback = &index->fallback;
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&fallback->mutex);
    if (fallback->index == NULL) {
        status =
            annal__index_open_private(index->store, index->derived.wait_ms, &fallback->index, err);
        if (status >= 0 && annal__derived_is_hopeless(why))
            annal__say(index->store, ANNAL_LOG_WARNING,
                       "cannot keep the index on disk; the index is built in memory each time: %s",
                       why->message);
    }
    if (status >= 0) {
        fallback->in_use = true;
        fallback->until_us = annal__deadline_after(RETRY_MS);
    }
    pthread_mutex_unlock(&fallback->mutex);
    return status;
}

bool annal__fallback_helps(const annal_index *index, annal_status status)
{
    return !index->derived.frozen && !index->derived.private &&
           (annal__error_is_io(status) || status == ANNAL_ERR_CORRUPT ||
            (status == ANNAL_ERR_BUSY && !annal__derived_exists(&index->derived)));
}

annal_index *annal__fallback_or_self(annal_index *index, struct stamp *out_caught_up)
{
    struct fallback *fallback = &index->fallback;
    pthread_mutex_lock(&fallback->mutex);
    annal_index *used = fallback->in_use ? fallback->index : index;
    *out_caught_up = fallback->in_use ? (struct stamp){0} : fallback->caught_up;
    pthread_mutex_unlock(&fallback->mutex);
    return used;
}

/* Return whether a catch-up must try sessions.db (rule 2). */
static bool is_due(annal_index *index)
{
    struct fallback *fallback = &index->fallback;
    pthread_mutex_lock(&fallback->mutex);
    bool due = !fallback->in_use || annal__deadline_passed(fallback->until_us);
    pthread_mutex_unlock(&fallback->mutex);
    return due;
}

/* Record that sessions.db is used again. caught_up: whether the catch-up was complete; stamp: of
 * the database then. */
static void note_tried(annal_index *index, bool caught_up, struct stamp stamp)
{
    struct fallback *fallback = &index->fallback;
    pthread_mutex_lock(&fallback->mutex);
    fallback->in_use = false;
    if (caught_up &&
        !(fallback->caught_up.id == stamp.id && fallback->caught_up.commits > stamp.commits))
        fallback->caught_up = stamp;
    pthread_mutex_unlock(&fallback->mutex);
}

annal_status annal__fallback_catch_up(annal_index *index, const annal_slice *sessions, size_t count,
                                      const annal_catch_up_options *options, annal_index **out_used,
                                      struct stamp *out_stamp, annal_error *err)
{
    annal_error why = {0};
    bool stuck = false;
    *out_used = index;
    if (is_due(index)) {
        annal_status status = annal__indexer_run(&index->follower, sessions, count, NULL, options,
                                                 out_stamp, &stuck, &why);
        if (!stuck) {
            note_tried(index, status == ANNAL_OK, *out_stamp);
            return annal__error_pass(err, status, &why);
        }
    }
    annal_status status = annal__fallback_begin(index, &why, err);
    if (status < 0)
        return status;
    struct stamp ignored;
    *out_used = annal__fallback_or_self(index, &ignored);
    return annal__indexer_run(&(*out_used)->follower, sessions, count, NULL, options, out_stamp,
                              &stuck, err);
}

annal_status annal_index_catch_up(annal_index *index, annal_slice session,
                                  const annal_catch_up_options *options, annal_error *err)
{
    struct stamp stamp;
    annal_index *used;
    annal_status status =
        annal__fallback_catch_up(index, &session, session.len > 0, options, &used, &stamp, err);
    if (status != ANNAL_OK || options == NULL || !(options->packs || options->every_database))
        return status;
    return annal__packs_catch_up(used, options->every_database ? PACK_EVERYONE : PACK_SHARED,
                                 &session, session.len > 0, options, err);
}

annal_status annal__fallback_borrow(annal_index *index, sqlite3 **out_db, annal_error *err)
{
    annal_error why = {0};
    struct stamp stamp;
    annal_index *used = annal__fallback_or_self(index, &stamp);
    annal_status status =
        annal__derived_borrow(&used->derived, index->derived.wait_ms, out_db, &stamp, &why);
    if (used == index && annal__fallback_helps(index, status)) {
        status = annal__fallback_begin(index, &why, &why);
        used = annal__fallback_or_self(index, &stamp);
        if (status >= 0)
            status =
                annal__derived_borrow(&used->derived, index->derived.wait_ms, out_db, &stamp, &why);
    }
    return annal__error_pass(err, status, &why);
}
