/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/level_os.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/checkpoint.h"
#include "journal/session_file.h"

/* Maximum number of a session's bytes of level os that annal_store_sync() writes to the log; for
 * more bytes, syncing the journal is cheaper. */
#define CARRIED_BYTES_MAX ((size_t)256 << 10)

/* A session whose bytes of level os become durable by a sync of its journal. */
struct direct {
    struct session *session;
    /* whether this sync set session->in_use, which keeps the session's descriptor open */
    bool in_use;
    uint64_t end; /* offset of the end of the journal when its sync began */
    uint64_t seq;
    uint64_t h;
};

struct sync {
    struct commit *commit;
    struct direct *direct;
    struct session **files; /* sessions of `direct` whose journals must be synced */
    size_t count;
    size_t file_count;
    size_t room;
    /* whether another thread was releasing a session, so that it must be examined again */
    bool missed;
};

/*
 * Add a record of the session to the current group. With `carry`, the record contains its bytes of
 * level os that are not durable; with `mark`, it ends with a mark: the journal may contain events
 * of level os after it. ANNAL_END: the group is full.
 */
static annal_status say(struct commit *commit, struct session *session, bool carry, bool mark,
                        struct group **out_group, annal_error *err)
{
    uint64_t first_seq = session->loose.len > 0 ? session->loose_first_seq : session->seq + 1;
    struct group_record record = {.session = session,
                                  .create = !session->create_logged,
                                  .mark = mark,
                                  .offset = session->logged,
                                  .first_seq = first_seq,
                                  .last_seq = carry ? session->seq : first_seq - 1,
                                  .h_before = session->logged_h,
                                  .h_after = carry ? session->h : session->logged_h};
    annal_slice header = {NULL, 0}, loose = {NULL, 0};
    if (record.create)
        header = annal__buf_slice(&session->header);
    if (carry)
        loose = annal__buf_slice(&session->loose);
    annal_status status = annal__commit_add(commit, &record, header, loose, (annal_slice){NULL, 0},
                                            0, 0, false, out_group, err);
    if (status != ANNAL_OK)
        return status;
    session->create_logged = true;
    session->marked = mark;
    session->mark_group = mark ? (*out_group)->number : 0;
    if (carry) {
        annal__session_drop_loose(session, session->loose.len);
        session->logged = session->end;
        session->logged_h = session->h;
    }
    if (session->loose.len == 0)
        annal__session_set_loose(commit->sessions, session, false);
    return ANNAL_OK;
}

annal_status annal__level_os_mark(struct commit *commit, struct session *session, annal_error *err)
{
    struct group *group = NULL;
    annal_status status = say(commit, session, false, true, &group, err);
    if (status != ANNAL_OK)
        return status;
    pthread_mutex_unlock(&session->lock);
    annal_error failure;
    status = annal__commit_wait(commit, group, session, &failure);
    /* the mark may be in the log, but no event was written after it, so nothing is lost */
    if (status == ANNAL_ERR_UNKNOWN)
        status = annal__fail(err, ANNAL_ERR_CLOSED,
                             "append to session '%s': refused, nothing was written: %.300s",
                             session->id, failure.message);
    else if (status < 0 && err != NULL)
        *err = failure;
    pthread_mutex_lock(&session->lock);
    return status;
}

bool annal__level_os_has_mark(struct commit *commit, const struct session *session)
{
    pthread_mutex_lock(&commit->lock);
    bool has = session->mark_group > commit->rotated;
    pthread_mutex_unlock(&commit->lock);
    return has;
}

annal_status annal__level_os_end(struct commit *commit, struct session *session, annal_error *err)
{
    struct group *group = NULL;
    annal_status status = annal__session_sync(commit->sessions, session, err);
    if (status == ANNAL_OK)
        status = say(commit, session, false, false, &group, err);
    if (status < 0)
        return status;
    pthread_mutex_unlock(&session->lock);
    if (status == ANNAL_OK)
        status = annal__commit_wait(commit, group, session, err);
    else
        status = annal__commit_make_room(commit, err);
    pthread_mutex_lock(&session->lock);
    return status;
}

/* ---- Acknowledging ---- */

/* Return whether the session has bytes that annal_store_sync() must make durable. The caller holds
 * the session's lock. */
static bool is_loose(const struct commit *commit, const struct session *session)
{
    return session->state == SESSION_OWNED && annal__session_is_loose(commit->sessions, session);
}

/* Return whether another thread is releasing the session, which syncs its journal. */
static bool is_being_synced(const struct session *session)
{
    return session->state == SESSION_BUSY && session->loose.len > 0;
}

static annal_status say_and_leave(struct commit *commit, struct session *session, bool carry,
                                  annal_error *err)
{
    struct group *group = NULL;
    annal_status status = say(commit, session, carry, true, &group, err);
    if (status == ANNAL_OK)
        annal__commit_leave(commit, group);
    return status;
}

static annal_status carry_if_few(void *arg, struct session *session, annal_error *err)
{
    struct commit *commit = arg;
    annal_status status;
    do {
        pthread_mutex_lock(&session->lock);
        while (is_being_synced(session))
            pthread_cond_wait(&session->moved, &session->lock);
        bool few = is_loose(commit, session) && !session->refused && session->loose.len > 0 &&
                   session->loose.len <= CARRIED_BYTES_MAX;
        status = few ? say_and_leave(commit, session, true, err) : ANNAL_OK;
        pthread_mutex_unlock(&session->lock);
        if (status == ANNAL_END && (status = annal__commit_make_room(commit, err)) == ANNAL_OK)
            status = ANNAL_END;
    } while (status == ANNAL_END);
    return status;
}

static annal_status make_room(struct sync *sync, annal_error *err)
{
    if (sync->count < sync->room)
        return ANNAL_OK;
    size_t room = sync->room == 0 ? 64 : sync->room * 2;
    struct direct *direct = annal__realloc_array(sync->direct, room, sizeof *direct);
    if (direct != NULL)
        sync->direct = direct;
    struct session **files = annal__realloc_array(sync->files, room, sizeof *files);
    if (files != NULL)
        sync->files = files;
    if (direct == NULL || files == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "sync the store: out of memory");
    sync->room = room;
    return ANNAL_OK;
}

static annal_status collect(void *arg, struct session *session, annal_error *err)
{
    struct sync *sync = arg;
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&session->lock);
    bool loose = is_loose(sync->commit, session);
    sync->missed =
        /* a session that is being released is examined later: this thread must not wait for it,
         * because it holds checkpoint_lock */
        sync->missed || is_being_synced(session);
    if (loose && session->late != LATE_NOT) { /* the journal must be written again first */
        status = session->refusal->status;
        if (err != NULL)
            *err = *session->refusal;
    } else if (loose) {
        status = make_room(sync, err);
    }
    if (loose && status == ANNAL_OK) {
        struct direct *direct = &sync->direct[sync->count++];
        *direct = (struct direct){.session = session,
                                  .in_use = session->dirty && session->fd >= 0,
                                  .end = session->end,
                                  .seq = session->seq,
                                  .h = session->h};
        if (direct->in_use) {
            session->dirty =
                /* bytes that are written from now on belong to the next sync */
                false;
            session->in_use = true;
            sync->files[sync->file_count++] = session;
        }
    }
    pthread_mutex_unlock(&session->lock);
    return status;
}

/* After a sync, forget the bytes of the session that it made durable (events of level os are not in
 * the commit log), unless they were written to the commit log in the meantime. */
static void settle(struct session *session, const struct direct *direct)
{
    if (session->loose.len == 0 || session->logged >= direct->end)
        return;
    annal__session_drop_loose(session, (size_t)(direct->end - session->logged));
    session->logged = direct->end;
    session->logged_h = direct->h;
    session->loose_first_seq = direct->seq + 1;
}

static void put_back(const struct sync *sync, bool synced)
{
    for (size_t i = 0; i < sync->count; i++) {
        struct session *session = sync->direct[i].session;
        pthread_mutex_lock(&session->lock);
        if (synced)
            settle(session, &sync->direct[i]);
        if (sync->direct[i].in_use) {
            session->in_use = false;
            session->dirty = session->dirty || !synced;
            pthread_cond_broadcast(&session->moved);
        }
        pthread_mutex_unlock(&session->lock);
    }
}

static annal_status mark_behind(struct sync *sync, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < sync->count && status >= 0;) {
        struct session *session = sync->direct[i].session;
        pthread_mutex_lock(&session->lock);
        status = is_loose(sync->commit, session) ? say_and_leave(sync->commit, session, false, err)
                                                 : ANNAL_OK;
        pthread_mutex_unlock(&session->lock);
        if (status == ANNAL_OK)
            i++;
        else if (status == ANNAL_END)
            status = annal__commit_make_room(sync->commit, err);
    }
    return status;
}

/* Sync the journals of sessions with many bytes of level os, and then add marks after the synced
 * bytes to the log. *out_missed: another thread was releasing a session, so call this again. */
static annal_status sync_directly(struct commit *commit, bool *out_missed, annal_error *err)
{
    struct sync sync = {.commit = commit};
    pthread_mutex_lock(&commit->checkpoint_lock);
    annal_status status = annal__session_each(commit->sessions, collect, &sync, err);
    if (status == ANNAL_OK)
        status = annal__checkpoint_journals(commit, sync.files, sync.file_count, err);
    /* Sync the directory events/ before put_back(), which frees the bytes that are durable now. */
    if (status == ANNAL_OK)
        status = annal__checkpoint_events(commit->sessions->events, err);
    put_back(&sync, status == ANNAL_OK);
    pthread_mutex_unlock(&commit->checkpoint_lock);
    if (status == ANNAL_OK)
        status = mark_behind(&sync, err);
    if (status == ANNAL_OK && sync.count > 0)
        status = annal__commit_flush(commit, err);
    *out_missed = sync.missed;
    annal__free(sync.direct);
    annal__free(sync.files);
    return status;
}

annal_status annal__level_os_sync(struct commit *commit, annal_error *err)
{
    annal_status status = ANNAL_OK;
    bool missed;
    do {
        missed = false;
        if (atomic_load(&commit->sessions->loose) > 0)
            status = annal__session_each(commit->sessions, carry_if_few, commit, err);
        if (status == ANNAL_OK)
            status = annal__commit_flush(commit, err);
        if (status == ANNAL_OK && atomic_load(&commit->sessions->loose) > 0)
            status = sync_directly(commit, &missed, err);
    } while (status == ANNAL_OK && missed);
    return status;
}
