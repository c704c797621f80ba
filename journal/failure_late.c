/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/failure_late.h"

#include "journal/base/error.h"
#include "journal/keeper_wake.h"

void annal__failure_set_late(struct session_table *sessions, struct session *session,
                             enum session_late late, const annal_error *why)
{
    if (session->late == LATE_NOT)
        atomic_fetch_add(&sessions->late, 1);
    bool news = session->late < late;
    if (news)
        session->late = late;
    annal_error refusal = {0};
    int os_errno = why->os_errno != 0 ? why->os_errno : session->refusal->os_errno;
    /* whether the fate of the session's events is unknown: it is from the time when another file
     * had the journal's name, until the journal was written again */
    bool unknown = why->status == ANNAL_ERR_UNKNOWN ||
                   (!news && session->refusal->status == ANNAL_ERR_UNKNOWN);
    annal__fail(&refusal, unknown ? ANNAL_ERR_UNKNOWN : ANNAL_ERR_IO,
                "session '%s': its events are durable in the commit log and %s: %.300s",
                session->id,
                session->late == LATE_BYTES
                    ? "not all in its journal yet; the session accepts more events when they are"
                    : "its journal will be written again",
                why->message);
    refusal.os_errno = os_errno;
    annal__session_set_refusal(session, &refusal);
    if (unknown)
        annal__session_doubt(session);
    if (news) {
        annal__metrics_add(sessions->metrics, METRIC_BEHIND, late == LATE_BYTES);
        annal__context_say(sessions->context, ANNAL_LOG_WARNING, "%s", session->refusal->message);
        annal__keeper_wake(sessions->alarm);
    }
}

bool annal__failure_is_late(struct session_table *sessions, annal_slice id)
{
    struct session *session = annal__session_get(sessions, id, NULL);
    if (session == NULL)
        return false;
    pthread_mutex_lock(&session->lock);
    bool late = session->late != LATE_NOT;
    pthread_mutex_unlock(&session->lock);
    return late;
}

/* If the session is late (its journal must be written again), return the status of the reason, and
 * the reason in *err. */
static annal_status find_late(void *arg, struct session *session, annal_error *err)
{
    (void)arg;
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&session->lock);
    if (session->late != LATE_NOT) {
        status = session->refusal->status;
        if (err != NULL)
            *err = *session->refusal;
    }
    pthread_mutex_unlock(&session->lock);
    return status;
}

annal_status annal__failure_refuse_late(struct session_table *sessions, annal_error *err)
{
    return annal__session_each(sessions, find_late, NULL, err);
}

static annal_status find_unknown(void *arg, struct session *session, annal_error *err)
{
    annal_error failure;
    annal_status status = find_late(arg, session, &failure);
    if (status != ANNAL_ERR_UNKNOWN)
        return ANNAL_OK;
    return annal__error_pass(err, status, &failure);
}

annal_status annal__failure_refuse_unknown(struct session_table *sessions, annal_error *err)
{
    if (atomic_load(&sessions->late) == 0)
        return ANNAL_OK;
    return annal__session_each(sessions, find_unknown, NULL, err);
}
