/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/commit_stop.h"

#include "journal/base/error.h"
#include "journal/base/futex.h"

#include <limits.h>

void annal__commit_tell(struct group *group, uint32_t bits, int sleepers)
{
    atomic_fetch_or(&group->word, bits);
    annal__futex_wake_some(&group->word, sleepers);
}

annal_status annal__commit_refuse(const struct commit *commit, annal_error *err)
{
    /* the store has not stopped: a thread is refusing groups; after that it accepts appends */
    if (!commit->failed) {
        if (err != NULL)
            *err = commit->failure;
        return commit->failure.status;
    }
    return annal__fail(
        err, ANNAL_ERR_CLOSED,
        "the store accepts no more work until it is opened again, because of this failure: %.300s",
        commit->failure.message);
}

annal_status annal__commit_check(struct commit *commit, annal_error *err)
{
    pthread_mutex_lock(&commit->lock);
    annal_status status = commit->failed ? annal__commit_refuse(commit, err) : ANNAL_OK;
    pthread_mutex_unlock(&commit->lock);
    return status;
}

void annal__commit_stop(struct commit *commit, const annal_error *failure)
{
    if (!commit->failed)
        commit->failure = *failure;
    commit->failed = true;
    if (commit->flying != NULL && commit->flying->number > commit->durable) {
        commit->flying->outcome =
            failure->status == ANNAL_ERR_CLOSED ? ANNAL_ERR_CLOSED : ANNAL_ERR_UNKNOWN;
        commit->flying->failure = *failure;
        if (commit->last == NULL) {
            commit->last = commit->flying;
            commit->last->references++;
        }
        annal__commit_tell(commit->flying, GROUP_DONE, INT_MAX);
    }
    /* No byte of the current group was written, and none will be. */
    commit->current->outcome = ANNAL_ERR_CLOSED;
    annal__commit_tell(commit->current, GROUP_DONE, INT_MAX);
    pthread_cond_broadcast(&commit->turn);
}

void annal__commit_announce_stop(struct commit *commit, const annal_error *failure)
{
    annal__metrics_add(commit->metrics, METRIC_STOPPED, 1);
    annal__context_say(
        commit->context, ANNAL_LOG_WARNING,
        "%s: the store accepts no more work until it is opened again; sessions can still be read",
        failure->message);
}

void annal__commit_fail(struct commit *commit, const annal_error *failure)
{
    pthread_mutex_lock(&commit->lock);
    bool news = !commit->failed;
    annal__commit_stop(commit, failure);
    pthread_mutex_unlock(&commit->lock);
    if (news)
        annal__commit_announce_stop(commit, failure);
}
