/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/session_own.h"

#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/lock_holder.h"
#include "journal/level_os.h"
#include "journal/replace_sweep.h"
#include "journal/scan.h"
#include "journal/session_file.h"
#include "journal/slot.h"
#include "journal/store.h"
#include "journal/store_journal.h"
#include "journal/sys/inspect.h"
#include "journal/torn_tail.h"

#include <inttypes.h>
#include <string.h>

/* How long this process does not take a session again after releasing it to another process, in
 * microseconds, so that the other process can take it. */
#define YIELD_US 5000

/* ---- Reading the end of the journal ---- */

/* Return a hash of the state of the journal in this boot: its file, length and times. 0 if its
 * length is not `end`, or if it cannot be examined. */
static uint64_t look_of(const annal_store *store, const struct session *session, uint64_t end)
{
    struct stat file;
    if (store->context.io->fstat(store->context.io->arg, session->fd, &file) < 0 ||
        (uint64_t)file.st_size != end)
        return 0;
    const int64_t facts[] = {(int64_t)file.st_dev, (int64_t)file.st_ino, file.st_size,
                             file.st_mtim.tv_sec,  file.st_mtim.tv_nsec, file.st_ctim.tv_sec,
                             file.st_ctim.tv_nsec};
    return annal__hash(facts, sizeof facts,
                       annal__hash(store->context.boot, sizeof store->context.boot, 0));
}

/*
 * Leave a hash of the journal's state in the held entry (held_list.h, rule 8). First the journal's
 * time is set to just before its last write, so that every later write changes it, even a write in
 * the same tick of the clock.
 */
static void note_whole(const annal_store *store, const struct session *session)
{
    uint64_t whole = 0;
    struct stat file;
    if (store->context.io->fstat(store->context.io->arg, session->fd, &file) == 0) {
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, file.st_mtim};
        times[1].tv_sec -= times[1].tv_nsec == 0;
        times[1].tv_nsec = (times[1].tv_nsec == 0 ? 1000000000 : times[1].tv_nsec) - 1;
        if (store->context.io->futimens(store->context.io->arg, session->fd, times) == 0)
            whole = look_of(store, session, session->end);
    }
    atomic_store(&annal__held_entry(&store->own_log.held, session->held_index)->whole, whole);
}

/* Return the ts of the last event that a fork shares with its parent, in microseconds; INT64_MIN if
 * it cannot be read. */
static int64_t fork_ts(annal_store *store, annal_slice session, uint64_t fork_seq)
{
    annal_cursor *cursor = NULL;
    annal_event event = {.ts_us = INT64_MIN};
    if (annal_cursor_open(store, session, fork_seq, &cursor, NULL) < 0 ||
        annal_cursor_next(cursor, &event, NULL) != ANNAL_OK)
        event.ts_us = INT64_MIN;
    annal_cursor_close(cursor);
    return event.ts_us;
}

static annal_status continue_journal(annal_store *store, struct session *session, annal_error *err)
{
    struct journal_tail tail;
    annal_status status =
        annal__scan_tail(store->context.io, session->fd, session->codec, &tail, err);
    if (status < 0) {
        annal__error_context(err, "session '%s'", session->id);
        return status;
    }
    tail.header.session = annal_slice_of(tail.session);
    if (tail.has_header)
        status = annal__codec_check_owner(&tail.header, annal__session_id(session), err);
    if (status < 0)
        return status;
    if (tail.has_header && tail.header.version > FRAME_VERSION)
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "session '%s' has format version %u, but this library writes version "
                           "%d: the session stays readable but accepts no more events",
                           session->id, tail.header.version, FRAME_VERSION);
    if (tail.state == TAIL_DAMAGED || (tail.size > 0 && tail.end > 0 && !tail.has_header))
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "session '%s' is damaged at byte %" PRIu64
                           " of its journal: the session stays readable but accepts no more "
                           "events; 'annal repair %s --to NEW' copies its undamaged events",
                           session->id, tail.has_header ? tail.end : 0, session->id);
    if (tail.state == TAIL_TORN) {
        status = annal__torn_cut(&store->sessions, annal__session_id(session), session->fd,
                                 tail.end, tail.size, err);
        if (status < 0)
            return status;
    }
    if (tail.end == 0)
        return annal__session_begin(&store->sessions, session, session->codec, err);
    /* Sync the journal, which may have been copied into the store and never synced, unless its
     * state is one that the held list has noted. */
    if (!annal__held_has_note(&store->own_log.held, look_of(store, session, tail.end)) &&
        annal__metrics_fdatasync(&store->metrics, session->fd) < 0)
        return annal__fail_errno(err, "cannot sync the journal of session '%s'", session->id);
    memcpy(session->file, tail.header.file, sizeof session->file);
    session->create_logged = session->exists = true;
    session->seq = tail.seq;
    session->ts_us = tail.seq > 0 ? tail.ts_us : INT64_MIN;
    if (tail.offset == 0 && tail.seq > 0) /* a fork without events of its own */
        session->ts_us = fork_ts(store, annal__session_id(session), tail.header.fork_seq);
    session->h = tail.h;
    session->end = tail.end;
    return ANNAL_OK;
}

/* Find the session's journal, which another process may have created or replaced. Fails if the
 * session has two journals that no conversion left. */
static annal_status find_journal(annal_store *store, struct session *session, annal_error *err)
{
    SCOPED_BUF path = {0};
    const struct codec *codec = NULL;
    annal_slice id = annal__session_id(session);
    annal_status status = annal__store_journal_find(&store->context, id, &path, &codec, err);
    if (status < 0)
        return status;
    annal__session_set_codec(session, codec == NULL ? store->codec : codec);
    if (codec == NULL || !annal__store_journal_is_double(&store->context, id, codec))
        return ANNAL_OK;
    /* if an interrupted conversion left two journals, one is removed */
    annal__replace_sweep(store);
    if (annal__store_journal_is_double(&store->context, id, codec))
        return annal__fail(
            err, ANNAL_ERR_CORRUPT,
            "session '%s' has two journals, one in each format: the session stays readable but "
            "accepts no more events; move the wrong journal out of the store",
            session->id);
    return ANNAL_OK;
}

static annal_status read_journal(annal_store *store, struct session *session, annal_error *err)
{
    bool found = false;
    annal__ids_done(&session->ids);
    session->ids_loaded = false;
    session->refused = false;
    session->lease_until_us = 0;
    session->dirty = false;
    session->marked = false;
    session->mark_group = 0;
    annal__session_drop_loose(session, session->loose.len);
    annal_status status = find_journal(store, session, err);
    if (status == ANNAL_OK)
        status = annal__session_open_journal(&store->sessions, session, false, &found, err);
    if (status == ANNAL_OK)
        status = found ? continue_journal(store, session, err)
                       : annal__session_begin(&store->sessions, session, session->codec, err);
    session->logged = session->end;
    session->logged_h = session->h;
    return status;
}

/* ---- Owning ---- */

static annal_status release_if_idle(void *arg, struct session *session, annal_error *err)
{
    annal_store *store = arg;
    if (pthread_mutex_trylock(&session->lock) != 0)
        return ANNAL_OK;
    if (session->state == SESSION_OWNED && session->pending == 0 && !session->in_use)
        (void)annal__session_release(store, session, err);
    pthread_mutex_unlock(&session->lock);
    return ANNAL_OK;
}

/* Fail because another thread is taking or releasing the session, and name the process that this
 * thread waits for, if that is known. */
static annal_status refuse_taken(annal_store *store, const struct session *session,
                                 annal_error *err)
{
    char name[HOLDER_BYTES];
    uint32_t pid = 0;
    if (annal__log_session_owner(store, annal__session_id(session), &pid, NULL) == ANNAL_OK &&
        pid != 0 && pid != (uint32_t)store->context.pid)
        return annal__fail(err, ANNAL_ERR_BUSY,
                           "session '%s' is in use by %s, and another thread of this process waits "
                           "for the session",
                           session->id, annal__lock_holder_name(pid, name));
    return annal__fail(err, ANNAL_ERR_BUSY,
                       "timed out waiting for another thread to acquire or release session '%s'",
                       session->id);
}

annal_status annal__session_own(annal_store *store, struct session *session, int64_t deadline_us,
                                annal_error *err)
{
    while (session->state == SESSION_BUSY) {
        if (annal__context_wait_on(&store->context, &session->moved, &session->lock, deadline_us) <
            0)
            return refuse_taken(store, session, err);
    }
    if (session->state == SESSION_OWNED)
        return ANNAL_OK;

    session->state = SESSION_BUSY;
    int64_t yield_us = session->yield_until_us - annal__context_now_us(&store->context);
    pthread_mutex_unlock(&session->lock);
    if (yield_us > 0) {
        _Atomic uint32_t never = 0;
        annal__futex_wait(&never, 0, yield_us < YIELD_US ? yield_us : YIELD_US);
    }
    uint32_t held_index = 0;
    annal_slice id = annal__session_id(session);
    annal_status status = annal__slot_take(store, id, deadline_us, &held_index, err);
    /* this process's held list, the list of sessions that it owns, has no free entry */
    if (status == ANNAL_ERR_LIMIT) {
        /* Checkpoint once for all sessions, instead of once for each session that is released. */
        (void)annal__commit_rotate(&store->commit, NULL);
        (void)annal__session_each(&store->sessions, release_if_idle, store, NULL);
        status = annal__slot_take(store, id, deadline_us, &held_index, err);
    }
    pthread_mutex_lock(&session->lock);
    bool taken = status == ANNAL_OK;
    if (taken)
        status = read_journal(store, session, err);
    if (status == ANNAL_OK) {
        session->held_index = held_index;
        session->state = SESSION_OWNED;
        atomic_fetch_add(&store->metrics.sessions_owned, 1);
    } else {
        annal__session_close_journal(&store->sessions, session);
        if (taken)
            annal__held_remove(&store->own_log.held, held_index);
        session->state = SESSION_FREE;
        annal__metrics_add(&store->metrics, METRIC_REFUSED_OPENS, 1);
    }
    pthread_cond_broadcast(&session->moved);
    return status;
}

/* ---- Releasing ---- */

bool annal__session_is_wanted(annal_store *store, const struct session *session)
{
    return session->state == SESSION_OWNED &&
           atomic_load(&annal__held_entry(&store->own_log.held, session->held_index)->word) ==
               HELD_WANTED;
}

/* Sync and close the journal. No record is pending, and no append can start. */
static annal_status settle(annal_store *store, struct session *session, annal_error *err)
{
    /* After the store has failed, it keeps its sessions until it is closed, because the recovery of
     * its log includes only sessions in its held list. */
    annal_status status = annal__commit_check(&store->commit, err);
    if (status < 0)
        return status;
    if (session->refused || session->late != LATE_NOT)
        return annal__fail(err, ANNAL_ERR_IO, "session '%s' cannot be released: %.300s",
                           session->id, session->refusal->message);
    status = annal__session_sync(&store->sessions, session, err);
    if (status < 0)
        return status;
    annal__session_set_loose(&store->sessions, session, false);
    if (session->fd >= 0)
        note_whole(store, session);
    annal__session_close_journal(&store->sessions, session);
    return ANNAL_OK;
}

/* Make new appends wait in annal__session_own(), and sync and close the journal. After a failure
 * the session is owned as before. */
static annal_status quiesce(annal_store *store, struct session *session, annal_error *err)
{
    session->state = SESSION_BUSY;
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK && (session->pending > 0 || session->in_use)) {
        pthread_mutex_unlock(&session->lock);
        status = annal__commit_flush(&store->commit, err);
        pthread_mutex_lock(&session->lock);
        annal__session_wait_unused(session);
    }
    while (status == ANNAL_OK && !session->refused &&
           annal__level_os_has_mark(&store->commit, session))
        status = annal__level_os_end(&store->commit, session, err);
    if (status == ANNAL_OK)
        status = settle(store, session, err);
    if (status < 0) {
        session->state = SESSION_OWNED;
        pthread_cond_broadcast(&session->moved);
    }
    return status;
}

annal_status annal__session_release(annal_store *store, struct session *session, annal_error *err)
{
    if (session->state != SESSION_OWNED)
        return ANNAL_OK;
    annal_status status = quiesce(store, session, err);
    if (status < 0)
        return status;
    struct held_entry *entry = annal__held_entry(&store->own_log.held, session->held_index);
    if (atomic_load(&entry->word) == HELD_WANTED)
        session->yield_until_us = annal__context_now_us(&store->context) + YIELD_US;
    annal__session_let_go(&store->sessions, session);
    return ANNAL_OK;
}

annal_status annal__session_seize(annal_store *store, struct session *session, annal_error *err)
{
    if (session->state == SESSION_BUSY)
        return refuse_taken(store, session, err);
    if (session->state == SESSION_OWNED)
        return quiesce(store, session, err);
    uint32_t held_index = 0;
    annal_error failure = {0};
    annal_slice id = annal__session_id(session);
    session->state = SESSION_BUSY;
    pthread_mutex_unlock(&session->lock);
    annal_status status = annal__slot_take(store, id, 0, &held_index, &failure);
    bool unlisted = status < 0 && annal__error_is_no_space(&failure);
    if (unlisted)
        status = annal__slot_keep_off(store, id, &failure);
    if (unlisted && status == ANNAL_OK)
        annal__slot_let_on(store);
    if (status < 0 && err != NULL)
        *err = failure;
    pthread_mutex_lock(&session->lock);
    if (status == ANNAL_OK) {
        session->held_index = held_index;
        session->unlisted = unlisted;
        atomic_fetch_add(&store->metrics.sessions_owned, 1);
    } else {
        session->state = SESSION_FREE;
        pthread_cond_broadcast(&session->moved);
    }
    return status;
}
