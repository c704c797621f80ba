/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/replace_claim.h"

#include "journal/commit.h"
#include "journal/keeper_wake.h"
#include "journal/session_file.h"
#include "journal/session_own.h"
#include "journal/store.h"

/* first pause between two attempts to own the session, in microseconds, doubled each time up to
 * RETRY_US_MOST */
#define RETRY_US      2000
#define RETRY_US_MOST 20000

/* Take ownership of the session, while the caller holds the lock locks/structure. With sound, fail
 * if the end of its journal is damaged. */
static annal_status seize(struct change *change, bool sound, annal_error *err)
{
    struct session *session = change->session;
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&session->lock);
    if (sound)
        status = annal__session_own(change->store, session, 0, err);
    if (status == ANNAL_OK)
        status = annal__session_seize(change->store, session, err);
    pthread_mutex_unlock(&session->lock);
    return status;
}

/*
 * Lock locks/structure, and take ownership of the session, so that its journal can be replaced. If
 * another process holds one of them, try again, at most as long as the store may wait. Initializes
 * *change.
 */
annal_status annal__replace_claim(struct change *change, annal_store *store, annal_slice id,
                                  bool sound, annal_error *err)
{
    *change = (struct change){.store = store, .frame = {.limit = FRAME_ENVELOPE_BYTES}};
    annal_status status = annal__context_check_writable(&store->context, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(id, err);
    if (status == ANNAL_OK)
        status = annal__commit_check(&store->commit, err);
    if (status < 0)
        return status;
    struct session *session = annal__session_get(&store->sessions, id, err);
    if (session == NULL)
        return ANNAL_ERR_NOMEM;
    change->session = session;
    change->deadline_us = annal__context_deadline(&store->context);
    int64_t pause_us = RETRY_US;
    for (;;) {
        status = annal__filelock_take(&store->context, &store->structure_lock, change->deadline_us,
                                      0, err);
        if (status == ANNAL_OK) {
            status = seize(change, sound, err);
            if (status == ANNAL_OK)
                return ANNAL_OK;
            annal__filelock_drop(&store->context, &store->structure_lock);
        }
        int64_t left_us = annal__context_may_wait(
            &store->context, change->deadline_us - annal__context_now_us(&store->context));
        if (status != ANNAL_ERR_BUSY || left_us <= 0) {
            change->session = NULL;
            return status;
        }
        annal__context_wait(&store->context, pause_us < left_us ? pause_us : left_us);
        pause_us = pause_us * 2 < RETRY_US_MOST ? pause_us * 2 : RETRY_US_MOST;
    }
}

/* First take ownership of the session, then sync all journals of this process, so that its log
 * contains nothing that the change needs (rule 1). */
annal_status annal__replace_begin(struct change *change, annal_store *store, annal_slice id,
                                  bool sound, annal_error *err)
{
    annal_status status = annal__replace_claim(change, store, id, sound, err);
    return status == ANNAL_OK ? annal_store_checkpoint(store, err) : status;
}

void annal__replace_end(struct change *change)
{
    struct session *session = change->session;
    annal__buf_done(&change->frame);
    annal__buf_done(&change->path);
    if (session == NULL)
        return;
    pthread_mutex_lock(&session->lock);
    /* so that the tasks of the keeper examine the session again */
    session->changed = atomic_fetch_add(&change->store->sessions.changes, 1) + 1;
    annal__session_let_go(&change->store->sessions, session);
    pthread_mutex_unlock(&session->lock);
    annal__filelock_drop(&change->store->context, &change->store->structure_lock);
    annal__wakeup_announce_all(&change->store->wakeup);
    annal__keeper_wake(&change->store->keeper.alarm);
}
