/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the sessions of a store with their last events at a target (heads). */
#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/sys/cursor.h"
#include "tools/cli/must.h"
#include "tools/ship/ship.h"
#include "tools/ship/walk.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct shipment *)a)->session, ((const struct shipment *)b)->session);
}

bool shipment_is_wanted(const struct shipments *shipments, annal_slice session)
{
    char text[ANNAL_SESSION_ID_BYTES_MAX + 1];
    if (session.len >= sizeof text)
        return false;
    memcpy(text, session.ptr, session.len);
    text[session.len] = '\0';
    return shipments->glob == NULL || fnmatch(shipments->glob, text, FNM_NOESCAPE) == 0;
}

static struct shipment *shipment_new(annal_slice session)
{
    struct shipment *shipment = annal__zalloc(sizeof *shipment);
    char *name = annal__strndup(session.ptr, session.len);
    if (shipment == NULL || name == NULL) {
        annal__free(shipment);
        annal__free(name);
        return NULL;
    }
    shipment->session = name;
    return shipment;
}

static void shipment_free(void *arg)
{
    struct shipment *shipment = arg;
    annal__free((void *)(uintptr_t)shipment->session);
    annal__free(shipment);
}

struct shipment *shipment_try(struct shipments *shipments, annal_slice session)
{
    struct shipment *made = shipment_new(session);
    struct shipment **found = made != NULL ? tsearch(made, &shipments->tree, compare) : NULL;
    if (found == NULL || *found != made) {
        if (made != NULL)
            shipment_free(made);
        return found != NULL ? *found : NULL;
    }
    shipments->count++;
    return made;
}

struct shipment *shipment_of(struct shipments *shipments, annal_slice session)
{
    struct shipment *shipment = shipment_try(shipments, session);
    must_true(shipment != NULL);
    return shipment;
}

struct shipment *shipment_find(const struct shipments *shipments, annal_slice session)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(session));
    struct shipment *const *found =
        tfind(&(struct shipment){.session = name}, &shipments->tree, compare);
    return found != NULL ? *found : NULL;
}

void shipments_done(struct shipments *shipments)
{
    tdestroy(shipments->tree, shipment_free);
    *shipments = (struct shipments){0};
}

/* ---- The queue ---- */

void shipment_queue(struct shipments *shipments, struct shipment *shipment)
{
    if (shipment->is_queued)
        return;
    shipment->is_queued = true;
    shipment->next_queued = NULL;
    if (shipment->since_us == 0)
        shipment->since_us = annal__clock_monotonic_us();
    if (shipments->last != NULL)
        shipments->last->next_queued = shipment;
    else
        shipments->first = shipment;
    shipments->last = shipment;
}

struct shipment *shipment_take(struct shipments *shipments)
{
    struct shipment *shipment = shipments->first;
    if (shipment == NULL)
        return NULL;
    shipments->first = shipment->next_queued;
    if (shipments->first == NULL)
        shipments->last = NULL;
    shipment->is_queued = false;
    return shipment;
}

void shipment_resume(struct shipments *shipments, struct shipment *shipment)
{
    shipments->stopped -= shipment->is_reported;
    shipment->is_reported = false;
}

struct lag shipments_lag(const struct shipments *shipments)
{
    struct lag lag = {0};
    for (const struct shipment *shipment = shipments->first; shipment != NULL;
         shipment = shipment->next_queued) {
        if (shipment->last_seq > shipment->head.seq)
            lag.events += shipment->last_seq - shipment->head.seq;
        if (lag.since_us == 0 || shipment->since_us < lag.since_us)
            lag.since_us = shipment->since_us;
    }
    return lag;
}

/* ---- Visiting all shipments ---- */

struct walk {
    int (*fn)(void *arg, struct shipment *shipment);
    void *arg;
    int answer;
};

static void visit(const void *node, VISIT which, void *closure)
{
    struct walk *walk = closure;
    if ((which == postorder || which == leaf) && walk->answer == 0)
        walk->answer = walk->fn(walk->arg, *(struct shipment *const *)node);
}

int shipments_each(struct shipments *shipments, int (*fn)(void *arg, struct shipment *shipment),
                   void *arg)
{
    struct walk walk = {fn, arg, 0};
    twalk_r(shipments->tree, visit, &walk);
    return walk.answer;
}

/* ---- The survey ---- */

static int forget_head(void *arg, struct shipment *shipment)
{
    (void)arg;
    shipment->head = (struct place){0};
    shipment->has_head = false;
    shipment->key = 0;
    /* the local journal counts as missing until the survey of the store finds it */
    shipment->state = SHIPMENT_GONE;
    return 0;
}

static annal_status take_head(void *arg, annal_slice session, const struct place *there,
                              annal_error *err)
{
    struct shipments *shipments = arg;
    bool is_full = shipments->count >= SHIPMENTS_MAX && shipment_find(shipments, session) == NULL;
    if (shipments->reported++ >= SHIPMENTS_REPORTED_MAX ||
        (is_full && shipment_is_wanted(shipments, session)))
        return annal__fail(err, ANNAL_ERR_LIMIT,
                           "ship: the target reports more than %d sessions of this store",
                           is_full ? SHIPMENTS_MAX : SHIPMENTS_REPORTED_MAX);
    if (!shipment_is_wanted(shipments, session))
        return ANNAL_OK;
    struct shipment *shipment = shipment_of(shipments, session);
    shipment->head = *there;
    shipment->has_head = true;
    if (shipment->key == 0)
        shipment->state = SHIPMENT_GONE;
    return ANNAL_OK;
}

/* Return whether the journal has events after the last event at the target, or ends with a
 * different event. */
static bool is_behind(const struct shipment *shipment, const annal_session_info *info)
{
    if (shipment->has_head)
        return shipment->head.seq != info->last_seq ||
               (shipment->head.at != 0 && shipment->head.h != info->last_h);
    return info->first_seq <= info->last_seq;
}

static annal_status learn_end(const struct shipments *shipments, struct shipment *shipment,
                              bool *out_behind)
{
    annal_session_info info;
    annal_status status =
        annal_session_info_get(shipments->store, annal_slice_of(shipment->session), &info, NULL);
    *out_behind = status != ANNAL_OK || is_behind(shipment, &info);
    if (status == ANNAL_OK)
        shipment->last_seq = info.last_seq;
    return status;
}

/*
 * Add one session of the store to the shipments, and queue it if its end differs from its last
 * event at the target; an annal_session_fn. The journal of a session without events at the target
 * is opened only when it is sent.
 */
static int look_at(void *arg, annal_slice session, uint64_t bytes)
{
    struct shipments *shipments = arg;
    if (!shipment_is_wanted(shipments, session))
        return 0;
    struct shipment *shipment = shipment_of(shipments, session);
    bool behind = true;
    if (shipment->has_head && learn_end(shipments, shipment, &behind) == ANNAL_ERR_NOTFOUND)
        return 0;
    shipment->state = SHIPMENT_ACTIVE;
    shipments->here++;
    if (!behind)
        return 0;
    if (shipment->last_seq == 0)
        shipment->last_seq = 1; /* the session has events, but their number is not known yet */
    shipments->bytes += bytes > shipment->head.at ? bytes - shipment->head.at : 0;
    shipment_queue(shipments, shipment);
    return 0;
}

/* Count a session as shipped again if it is not queued: the store no longer has it, or it equals
 * the target's copy. */
static int resume_unless_queued(void *arg, struct shipment *shipment)
{
    if (!shipment->is_queued)
        shipment_resume(arg, shipment);
    return 0;
}

annal_status shipments_survey(struct shipments *shipments, const struct ship_kind *kind,
                              struct ship_target *target, annal_error *err)
{
    shipments->bytes = shipments->here = shipments->reported = 0;
    while (shipment_take(shipments) != NULL)
        ;
    (void)shipments_each(shipments, forget_head, NULL);
    annal_status status = kind->heads(target, take_head, shipments, err);
    if (status >= 0)
        status = annal_session_each(shipments->store, look_at, shipments, err);
    if (status >= 0)
        (void)shipments_each(shipments, resume_unless_queued, shipments);
    return status;
}

static int learn_end_of_new(void *arg, struct shipment *shipment)
{
    struct shipments *shipments = arg;
    bool ignored;
    if (shipment->is_queued && !shipment->has_head) {
        shipment->last_seq = 0;
        (void)learn_end(shipments, shipment, &ignored);
    }
    return 0;
}

void shipments_learn_ends(struct shipments *shipments)
{
    (void)shipments_each(shipments, learn_end_of_new, shipments);
}

/* ---- Opening ---- */

static annal_status stop(struct shipment *shipment, enum shipment_state state)
{
    shipment->state = state;
    return ANNAL_END;
}

/* Write to err how the journal differs from the target's last event. */
static annal_status explain_conflict(struct shipments *shipments, struct shipment *shipment,
                                     annal_error *err)
{
    annal_session_info info;
    annal_slice session = annal_slice_of(shipment->session);
    if (annal_session_info_get(shipments->store, session, &info, NULL) == ANNAL_OK &&
        info.last_seq < shipment->head.seq)
        annal__fail(err, ANNAL_ERR_CONFLICT,
                    "session '%s' ends with event %" PRIu64
                    " in this store, but with event %" PRIu64
                    " at the target: the session is not shipped",
                    shipment->session, info.last_seq, shipment->head.seq);
    else
        annal__fail(
            err, ANNAL_ERR_CONFLICT,
            "session '%s' has a different history at the target, which ends with event %" PRIu64
            " (%016" PRIx64 "): the session is not shipped",
            shipment->session, shipment->head.seq, shipment->head.h);
    return stop(shipment, SHIPMENT_CONFLICT);
}

annal_status shipment_open(struct shipments *shipments, struct shipment *shipment,
                           annal_cursor **out_cursor, annal_error *err)
{
    annal_slice session = annal_slice_of(shipment->session);
    annal_status status =
        annal_cursor_open_at(shipments->store, session, shipment->head.seq + 1, shipment->head.at,
                             shipment->head.h, out_cursor, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return stop(shipment, SHIPMENT_GONE);
    if (status == ANNAL_ERR_CONFLICT)
        return explain_conflict(shipments, shipment, err);
    if (status < 0 && status != ANNAL_ERR_NOMEM)
        return stop(shipment, SHIPMENT_DAMAGED);
    return status;
}

/* Damage is reported only if it makes an event unreadable; the events before the damage are
 * sent. */
annal_status shipment_read(const struct shipment *shipment, annal_cursor *cursor,
                           annal_event *out_event, annal_error *err)
{
    annal_damage damage = {0};
    annal_error why = {0};
    annal_status status;
    while ((status = annal__cursor_next_json(cursor, out_event, &why)) == ANNAL_DAMAGE &&
           !(damage = annal_cursor_damage(cursor)).event_lost)
        ;
    if (status == ANNAL_END || (status == ANNAL_OK && out_event->seq == shipment->next.seq + 1))
        return status;
    if (status == ANNAL_ERR_NOMEM)
        return annal__fail(err, status, "%s", why.message);
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "session '%s' is damaged after event %" PRIu64
                       " (%s): later events are not shipped",
                       shipment->session, shipment->next.seq,
                       status == ANNAL_DAMAGE ? damage.what
                       : status < 0           ? why.message
                                              : "events are missing");
}
