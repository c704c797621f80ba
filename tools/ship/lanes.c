/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions of a store beside their heads at a target. */
#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/sys/cursor.h"
#include "tools/ship/ship.h"
#include "tools/ship/walk.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct lane *)a)->session, ((const struct lane *)b)->session);
}

bool lane_is_wanted(const struct lanes *lanes, annal_slice session)
{
    char text[ANNAL_SESSION_ID_BYTES_MAX + 1];
    if (session.len >= sizeof text)
        return false;
    memcpy(text, session.ptr, session.len);
    text[session.len] = '\0';
    return lanes->glob == NULL || fnmatch(lanes->glob, text, FNM_NOESCAPE) == 0;
}

static struct lane *lane_new(annal_slice session)
{
    struct lane *lane = annal__zalloc(sizeof *lane);
    char *name = annal__strndup(session.ptr, session.len);
    if (lane == NULL || name == NULL) {
        annal__free(lane);
        annal__free(name);
        return NULL;
    }
    lane->session = name;
    return lane;
}

static void lane_free(void *arg)
{
    struct lane *lane = arg;
    annal__free((void *)(uintptr_t)lane->session);
    annal__free(lane);
}

struct lane *lane_of(struct lanes *lanes, annal_slice session)
{
    struct lane *made = lane_new(session);
    struct lane **found = made != NULL ? tsearch(made, &lanes->tree, compare) : NULL;
    if (found == NULL || *found != made) {
        if (made != NULL)
            lane_free(made);
        return found != NULL ? *found : NULL;
    }
    lanes->count++;
    return made;
}

struct lane *lane_find(const struct lanes *lanes, annal_slice session)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(session));
    struct lane *const *found = tfind(&(struct lane){.session = name}, &lanes->tree, compare);
    return found != NULL ? *found : NULL;
}

void lanes_done(struct lanes *lanes)
{
    tdestroy(lanes->tree, lane_free);
    *lanes = (struct lanes){0};
}

/* ---- The queue ---- */

void lane_wait(struct lanes *lanes, struct lane *lane)
{
    if (lane->waits)
        return;
    lane->waits = true;
    lane->next_waiting = NULL;
    if (lane->since_us == 0)
        lane->since_us = annal__monotonic_us();
    if (lanes->last != NULL)
        lanes->last->next_waiting = lane;
    else
        lanes->first = lane;
    lanes->last = lane;
}

struct lane *lane_take(struct lanes *lanes)
{
    struct lane *lane = lanes->first;
    if (lane == NULL)
        return NULL;
    lanes->first = lane->next_waiting;
    if (lanes->first == NULL)
        lanes->last = NULL;
    lane->waits = false;
    return lane;
}

void lane_go_on(struct lanes *lanes, struct lane *lane)
{
    lanes->stopped -= lane->told;
    lane->told = false;
}

struct lag lanes_lag(const struct lanes *lanes)
{
    struct lag lag = {0};
    for (const struct lane *lane = lanes->first; lane != NULL; lane = lane->next_waiting) {
        if (lane->last_seq > lane->there.seq)
            lag.events += lane->last_seq - lane->there.seq;
        if (lag.since_us == 0 || lane->since_us < lag.since_us)
            lag.since_us = lane->since_us;
    }
    return lag;
}

/* ---- Walking ---- */

struct walk {
    int (*fn)(void *arg, struct lane *lane);
    void *arg;
    int answer;
};

static void visit(const void *node, VISIT which, void *closure)
{
    struct walk *walk = closure;
    if ((which == postorder || which == leaf) && walk->answer == 0)
        walk->answer = walk->fn(walk->arg, *(struct lane *const *)node);
}

int lanes_each(struct lanes *lanes, int (*fn)(void *arg, struct lane *lane), void *arg)
{
    struct walk walk = {fn, arg, 0};
    twalk_r(lanes->tree, visit, &walk);
    return walk.answer;
}

/* ---- The survey ---- */

static int forget_head(void *arg, struct lane *lane)
{
    (void)arg;
    lane->there = (struct place){0};
    lane->has_head = false;
    lane->key = 0;
    lane->state = LANE_GONE; /* until its journal is found */
    return 0;
}

static annal_status take_head(void *arg, annal_slice session, const struct place *there,
                              annal_error *err)
{
    struct lanes *lanes = arg;
    if (!lane_is_wanted(lanes, session))
        return ANNAL_OK;
    if (lanes->count >= LANES_MAX && lane_find(lanes, session) == NULL)
        return annal__fail(err, ANNAL_ERR_LIMIT,
                           "ship: the target says that it has more than %d sessions of this store",
                           LANES_MAX);
    struct lane *lane = lane_of(lanes, session);
    if (lane == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    lane->there = *there;
    lane->has_head = true;
    if (lane->key == 0)
        lane->state = LANE_GONE;
    return ANNAL_OK;
}

struct survey {
    struct lanes *lanes;
    annal_error *err;
    annal_status status;
};

/* Whether the session has events after its head, or does not end with it. */
static bool is_behind(const struct lane *lane, const annal_session_info *info)
{
    if (lane->has_head)
        return lane->there.seq != info->last_seq ||
               (lane->there.at != 0 && lane->there.h != info->last_h);
    return info->first_seq <= info->last_seq;
}

static annal_status learn_end(const struct lanes *lanes, struct lane *lane, bool *out_behind)
{
    annal_session_info info;
    annal_status status =
        annal_session_info_get(lanes->store, annal_slice_of(lane->session), &info, NULL);
    *out_behind = status != ANNAL_OK || is_behind(lane, &info);
    if (status == ANNAL_OK)
        lane->last_seq = info.last_seq;
    return status;
}

/* What the target does not have at all is opened when its turn comes. */
static int look_at(void *arg, annal_slice session, uint64_t bytes)
{
    struct survey *survey = arg;
    struct lanes *lanes = survey->lanes;
    if (!lane_is_wanted(lanes, session))
        return 0;
    struct lane *lane = lane_of(lanes, session);
    if (lane == NULL) {
        survey->status = annal__fail(survey->err, ANNAL_ERR_NOMEM, "ship: out of memory");
        return 1;
    }
    bool behind = true;
    if (lane->has_head && learn_end(lanes, lane, &behind) == ANNAL_ERR_NOTFOUND)
        return 0;
    lane->state = LANE_GOING;
    lanes->here++;
    if (!behind)
        return 0;
    if (lane->last_seq == 0)
        lane->last_seq = 1; /* at least */
    lanes->bytes += bytes > lane->there.at ? bytes - lane->there.at : 0;
    lane_wait(lanes, lane);
    return 0;
}

/* It is not here any more, or equal. */
static int go_on_unless_it_waits(void *arg, struct lane *lane)
{
    if (!lane->waits)
        lane_go_on(arg, lane);
    return 0;
}

annal_status lanes_survey(struct lanes *lanes, const struct ship_kind *kind,
                          struct ship_target *target, annal_error *err)
{
    struct survey survey = {.lanes = lanes, .err = err};
    lanes->bytes = lanes->here = 0;
    while (lane_take(lanes) != NULL)
        ;
    (void)lanes_each(lanes, forget_head, NULL);
    annal_status status = kind->heads(target, take_head, lanes, err);
    if (status >= 0)
        status = annal_store_sessions(lanes->store, look_at, &survey, err);
    if (status < 0 || survey.status < 0)
        return status < 0 ? status : survey.status;
    (void)lanes_each(lanes, go_on_unless_it_waits, lanes);
    return ANNAL_OK;
}

static int learn_end_of_new(void *arg, struct lane *lane)
{
    struct lanes *lanes = arg;
    bool ignored;
    if (lane->waits && !lane->has_head) {
        lane->last_seq = 0;
        (void)learn_end(lanes, lane, &ignored);
    }
    return 0;
}

void lanes_learn_ends(struct lanes *lanes)
{
    (void)lanes_each(lanes, learn_end_of_new, lanes);
}

/* ---- Opening ---- */

static annal_status stop(struct lane *lane, enum lane_state state)
{
    lane->state = state;
    return ANNAL_END;
}

/* The journal does not contain the head: in which way not. */
static annal_status explain_conflict(struct lanes *lanes, struct lane *lane, annal_error *err)
{
    annal_session_info info;
    annal_slice session = annal_slice_of(lane->session);
    if (annal_session_info_get(lanes->store, session, &info, NULL) == ANNAL_OK &&
        info.last_seq < lane->there.seq)
        annal__fail(err, ANNAL_ERR_CONFLICT,
                    "session '%s' ends with event %" PRIu64 " here, and with event %" PRIu64
                    " at the target: nothing of it is shipped",
                    lane->session, info.last_seq, lane->there.seq);
    else
        annal__fail(err, ANNAL_ERR_CONFLICT,
                    "session '%s' has another history at the target, which ends with event %" PRIu64
                    " (%016" PRIx64 "): nothing of it is shipped",
                    lane->session, lane->there.seq, lane->there.h);
    return stop(lane, LANE_CONFLICT);
}

annal_status lane_open(struct lanes *lanes, struct lane *lane, annal_cursor **out_cursor,
                       annal_error *err)
{
    annal_slice session = annal_slice_of(lane->session);
    annal_status status = annal_cursor_open_at(lanes->store, session, lane->there.seq + 1,
                                               lane->there.at, lane->there.h, out_cursor, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return stop(lane, LANE_GONE);
    if (status == ANNAL_ERR_CONFLICT)
        return explain_conflict(lanes, lane, err);
    if (status < 0 && status != ANNAL_ERR_NOMEM)
        return stop(lane, LANE_DAMAGED);
    return status;
}

/* Damage after which there are no more events in order; what comes before it is sent. */
annal_status lane_read(const struct lane *lane, annal_cursor *cursor, annal_event *out_event,
                       annal_error *err)
{
    annal_damage damage = {0};
    annal_error why = {0};
    annal_status status;
    while ((status = annal__cursor_next_json(cursor, out_event, &why)) == ANNAL_DAMAGE &&
           !(damage = annal_cursor_damage(cursor)).event_lost)
        ;
    if (status == ANNAL_END || (status == ANNAL_OK && out_event->seq == lane->next.seq + 1))
        return status;
    if (status == ANNAL_ERR_NOMEM)
        return annal__fail(err, status, "%s", why.message);
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "session '%s' is damaged after event %" PRIu64
                       " (%s): what follows is not shipped",
                       lane->session, lane->next.seq,
                       status == ANNAL_DAMAGE ? damage.what
                       : status < 0           ? why.message
                                              : "events are missing");
}
