/*
 * The spare: an index in memory for a reader whose sessions.db cannot be made or written (the disk
 * is full, the directory is not ours, something else stands there, or there is none yet and
 * somebody keeps the lock under which it is made), or that somebody deletes faster than it is made.
 * An answer takes longer then, and is the same.
 *
 * (1) It is made from the journals when it is first needed, and lives as long as its index.
 * (2) A catch-up tries sessions.db first, unless that failed less than RETRY_MS ago.
 * (3) Who asks for what is indexed already gets the one that was caught up last.
 * (4) Snapshots are put into sessions.db, or not at all.
 */
#include "index/index.h"
#include "journal/sys/log.h"

#define RETRY_MS 10000

annal_status annal__spare_begin(annal_index *index, const annal_error *why, annal_error *err)
{
    struct spare *spare = &index->spare;
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&spare->mutex);
    if (spare->index == NULL) {
        status = annal__index_open_private(index->store, index->base.wait_ms, &spare->index, err);
        if (status >= 0 && annal__index_is_hopeless(why))
            annal__store_log(index->store, ANNAL_LOG_WARNING,
                             "the index cannot be kept, and is made in memory each time: %s",
                             why->message);
    }
    if (status >= 0) {
        spare->in_use = true;
        spare->until_us = annal__deadline_after(RETRY_MS);
    }
    pthread_mutex_unlock(&spare->mutex);
    return status;
}

bool annal__spare_helps(const annal_index *index, annal_status status)
{
    return !index->base.frozen && !index->base.private &&
           (status == ANNAL_ERR_IO || status == ANNAL_ERR_CORRUPT ||
            (status == ANNAL_ERR_BUSY && !annal__derived_exists(&index->base)));
}

annal_index *annal__spare_or_self(annal_index *index, struct stamp *out_caught_up)
{
    struct spare *spare = &index->spare;
    pthread_mutex_lock(&spare->mutex);
    annal_index *used = spare->in_use ? spare->index : index;
    *out_caught_up = spare->in_use ? (struct stamp){0} : spare->caught_up;
    pthread_mutex_unlock(&spare->mutex);
    return used;
}

/* Rule 2. */
static bool is_due(annal_index *index)
{
    struct spare *spare = &index->spare;
    pthread_mutex_lock(&spare->mutex);
    bool due = !spare->in_use || annal__deadline_passed(spare->until_us);
    pthread_mutex_unlock(&spare->mutex);
    return due;
}

/* sessions.db was tried, and is what counts; caught_up when it holds everything. */
static void note_tried(annal_index *index, bool caught_up, struct stamp stamp)
{
    struct spare *spare = &index->spare;
    pthread_mutex_lock(&spare->mutex);
    spare->in_use = false;
    if (caught_up && !(spare->caught_up.id == stamp.id && spare->caught_up.commits > stamp.commits))
        spare->caught_up = stamp;
    pthread_mutex_unlock(&spare->mutex);
}

annal_status annal__index_catch_up(annal_index *index, const annal_slice *sessions, size_t count,
                                   const annal_catch_up_options *options, annal_index **out_used,
                                   struct stamp *out_stamp, annal_error *err)
{
    annal_error why = {0};
    bool stuck = false;
    *out_used = index;
    if (is_due(index)) {
        annal_status status = annal__follower_run(&index->follower, sessions, count, NULL, options,
                                                  out_stamp, &stuck, &why);
        if (!stuck) {
            note_tried(index, status == ANNAL_OK, *out_stamp);
            if (status < 0 && err != NULL)
                *err = why;
            return status;
        }
    }
    annal_status status = annal__spare_begin(index, &why, err);
    if (status < 0)
        return status;
    struct stamp ignored;
    *out_used = annal__spare_or_self(index, &ignored);
    return annal__follower_run(&(*out_used)->follower, sessions, count, NULL, options, out_stamp,
                               &stuck, err);
}

annal_status annal_index_catch_up(annal_index *index, annal_slice session,
                                  const annal_catch_up_options *options, annal_error *err)
{
    struct stamp stamp;
    annal_index *used;
    annal_status status =
        annal__index_catch_up(index, &session, session.len > 0, options, &used, &stamp, err);
    if (status != ANNAL_OK || options == NULL || !(options->packs || options->every_database))
        return status;
    return annal__packs_catch_up(used, options->every_database ? PACK_EVERYONE : PACK_SHARED,
                                 &session, session.len > 0, options, err);
}

annal_status annal__spare_reader(annal_index *index, sqlite3 **out_db, annal_error *err)
{
    annal_error why = {0};
    struct stamp stamp;
    annal_index *used = annal__spare_or_self(index, &stamp);
    annal_status status =
        annal__derived_reader(&used->base, index->base.wait_ms, out_db, &stamp, &why);
    if (used == index && annal__spare_helps(index, status)) {
        status = annal__spare_begin(index, &why, &why);
        used = annal__spare_or_self(index, &stamp);
        if (status >= 0)
            status = annal__derived_reader(&used->base, index->base.wait_ms, out_db, &stamp, &why);
    }
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}
