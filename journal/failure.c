/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/failure.h"

#include "journal/base/error.h"
#include "journal/checkpoint.h"
#include "journal/failure_late.h"
#include "journal/log_void.h"
#include "journal/recover.h"
#include "journal/session_file.h"
#include "journal/slot_log.h"

#include <inttypes.h>

/* ---- Rule (2): roll sessions back to their durable end ---- */

struct session_tail annal__failure_session_tail(const struct session *session)
{
    return (struct session_tail){
        .create_logged = session->create_logged,
        .mark_group = session->mark_group,
        .logged = session->logged,
        .logged_h = session->logged_h,
        .end = session->end,
        .seq = session->seq,
        .ts_us = session->ts_us,
        .h = session->h,
        .loose_bytes = session->loose.len,
        .loose_first_seq = session->loose_first_seq,
    };
}

/* Set the end of a session back to the event before the refused groups. loose: the bytes of level
 * os that were in its journal before the refused events. */
static void take_back(struct commit *commit, struct session *session,
                      const struct session_tail *tail, annal_slice loose)
{
    if (session->seq > tail->seq)
        annal__session_lose(session, tail->seq + 1);
    session->logged = tail->logged;
    session->logged_h = tail->logged_h;
    session->end = tail->end;
    session->seq = tail->seq;
    session->ts_us = tail->ts_us;
    session->h = tail->h;
    session->loose_first_seq = tail->loose_first_seq;
    annal__ids_done(&session->ids);
    session->ids_loaded = false;
    annal__buf_clear(&session->loose);
    if (loose.len == 0)
        return;
    annal__session_set_loose(commit->sessions, session, true);
    if (annal__buf_append_slice(&session->loose, loose) < 0) {
        annal_error why = {0};
        session->refused = true;
        annal__fail(&why, ANNAL_ERR_CLOSED,
                    "session '%s' accepts no more events: out of memory; open the store again",
                    session->id);
        annal__session_set_refusal(session, &why);
    }
}

/*
 * Set the end of the record's session back to where it was before this record. Of several records
 * of the session, only the first changes it, because its `before` is the earliest. A record without
 * events is a mark of level os, and changes no seq.
 */
static void roll_back_record(struct commit *commit, const struct group *group,
                             const struct group_record *record, uint64_t pass)
{
    struct session *session = record->session;
    const struct session_tail *tail = &record->before;
    pthread_mutex_lock(&session->lock);
    if (session->rolled_marks != pass) {
        session->create_logged = tail->create_logged;
        session->mark_group = tail->mark_group;
        session->marked = false; /* the next append of level os writes a new mark */
    }
    session->rolled_marks = pass;
    if (record->length > record->header_bytes && session->rolled_back != pass) {
        session->rolled_back = pass;
        take_back(commit, session, tail,
                  (annal_slice){group->payload.ptr + record->at + record->header_bytes,
                                tail->loose_bytes});
    }
    session->pending--;
    pthread_mutex_unlock(&session->lock);
}

static void roll_back_group(struct commit *commit, const struct group *group, uint64_t pass)
{
    for (size_t i = 0; i < group->count; i++)
        roll_back_record(commit, group, &group->records[i], pass);
}

void annal__failure_roll_back(struct commit *commit, const struct group *first,
                              const struct group *second)
{
    roll_back_group(commit, first, second->number);
    roll_back_group(commit, second, second->number);
}

/* ---- Rules (1) and (3): the log ---- */

annal_status annal__failure_settle(struct commit *commit, annal_error *failure)
{
    static const struct buf nothing;
    struct log *log = &commit->own_log->log;
    annal_error why;
    if (log->state == LOG_SOUND)
        return failure->status;
    if (log->state == LOG_UNWRITTEN &&
        annal__log_write_group(log, 0, &nothing, &nothing, log->durable_released, &why) == 0)
        return failure->status;
    log->state = LOG_BROKEN;
    if (annal__log_void_write(log, log->group + 1, &why) == ANNAL_OK)
        return failure->status;
    annal_error both;
    annal__fail(&both, ANNAL_ERR_UNKNOWN, "%.200s; then %.200s", failure->message, why.message);
    both.os_errno = failure->os_errno;
    *failure = both;
    return ANNAL_ERR_UNKNOWN;
}

/*
 * Record the result of writing a late session's journal again. If why is NULL, the journal has all
 * events now, and the session accepts appends again. Otherwise the session stays late, and refuses
 * them.
 */
static void settle_session(void *arg, struct session *session, const annal_error *why)
{
    struct commit *commit = arg;
    annal_error failure;
    pthread_mutex_lock(&session->lock);
    session->redone = true;
    if (why == NULL && session->late != LATE_NOT &&
        annal__session_reopen(commit->sessions, session, &failure) < 0)
        why = &failure;
    if (why != NULL) {
        annal__failure_set_late(commit->sessions, session, LATE_BYTES, why);
        /* The journal's name belongs to another file, so the session's bytes are not needed: the
         * next append reads that file. */
        if (why->status == ANNAL_ERR_UNKNOWN && annal__session_forget(commit->sessions, session))
            why = NULL;
    }
    if (why == NULL && session->late != LATE_NOT) {
        session->late = LATE_NOT;
        atomic_fetch_sub(&commit->sessions->late, 1);
        session->changed = atomic_fetch_add(&commit->sessions->changes, 1) + 1;
        annal__context_say(commit->context, ANNAL_LOG_INFO, "session '%s' accepts events again",
                           session->id);
    }
    pthread_mutex_unlock(&session->lock);
}

/* Forget the mark of level os of a session, because the log that contains the mark is removed; the
 * next append of level os writes a new mark. */
static annal_status take_mark(void *arg, struct session *session, annal_error *err)
{
    (void)arg;
    (void)err;
    pthread_mutex_lock(&session->lock);
    session->marked = false;
    pthread_mutex_unlock(&session->lock);
    return ANNAL_OK;
}

annal_status annal__failure_renew_log(struct commit *commit, annal_error *err)
{
    struct log *log = &commit->own_log->log;
    if (log->state != LOG_BROKEN)
        return ANNAL_OK;
    pthread_mutex_lock(&commit->lock);
    uint64_t released = commit->released;
    pthread_mutex_unlock(&commit->lock);
    annal_status status = annal__session_each(commit->sessions, take_mark, NULL, err);
    if (status == ANNAL_OK)
        status =
            annal__recover_redo_own(commit->sessions, true, released, settle_session, commit, err);
    if (status == ANNAL_OK && atomic_load(&commit->sessions->late) > 0)
        status = annal__failure_refuse_late(commit->sessions, err);
    struct log fresh = {.fd = -1};
    if (status == ANNAL_OK)
        status = annal__slot_make_log(commit->context, LOG_REGION_FIRST, &fresh, err);
    if (status == ANNAL_OK)
        status = annal__slot_put_log(commit->own_log, &fresh, err);
    if (status < 0)
        return status;
    pthread_mutex_lock(&commit->lock);
    commit->released = commit->full = log->epoch;
    commit->rotated = commit->durable;
    pthread_mutex_unlock(&commit->lock);
    annal__log_void_remove(log);
    annal__context_say(
        commit->context, ANNAL_LOG_INFO,
        "commit log %02" PRIu32
        ", whose write or sync had failed, was replaced by a new log; appends are accepted again",
        commit->own_log->number);
    return ANNAL_OK;
}

/* ---- Rules (4) and (5): the journals ---- */

static annal_status expect(void *arg, struct session *session, annal_error *err)
{
    (void)arg;
    (void)err;
    pthread_mutex_lock(&session->lock);
    session->redone = false;
    pthread_mutex_unlock(&session->lock);
    return ANNAL_OK;
}

/* Finish a late session of which the log has no record: only its bytes of level os, which are in
 * memory, must be written to its journal again. */
static annal_status settle_rest(void *arg, struct session *session, annal_error *err)
{
    (void)err;
    pthread_mutex_lock(&session->lock);
    bool rest = session->late != LATE_NOT && !session->redone;
    pthread_mutex_unlock(&session->lock);
    if (rest)
        settle_session(arg, session, NULL);
    return ANNAL_OK;
}

annal_status annal__failure_catch_up(struct commit *commit, annal_error *err)
{
    if (atomic_load(&commit->sessions->late) == 0)
        return ANNAL_OK;
    pthread_mutex_lock(&commit->lock);
    uint64_t released = commit->released;
    pthread_mutex_unlock(&commit->lock);
    annal_status status = annal__session_each(commit->sessions, expect, NULL, err);
    if (status == ANNAL_OK)
        status =
            annal__recover_redo_own(commit->sessions, false, released, settle_session, commit, err);
    if (status == ANNAL_OK)
        status = annal__session_each(commit->sessions, settle_rest, commit, err);
    return status < 0 ? status : annal__failure_refuse_late(commit->sessions, err);
}

annal_status annal__failure_checkpoint(struct commit *commit, uint64_t epoch, annal_error *err)
{
    annal_status status = annal__failure_catch_up(commit, err);
    if (status < 0)
        return status;
    status = annal__checkpoint_epoch(commit, epoch, err);
    if (status < 0 && atomic_load(&commit->sessions->late) > 0) {
        status = annal__failure_catch_up(commit, err);
        if (status == ANNAL_OK)
            status = annal__checkpoint_epoch(commit, epoch, err);
    }
    return status;
}
