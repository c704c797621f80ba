/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/sender.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/sys/cursor.h"
#include "tools/cli/out.h"
#include "tools/ship/home.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---- A batch ---- */

static void tell_stop(struct sender *sender, struct lane *lane, const annal_error *err)
{
    if (lane->state == LANE_GONE || lane->told)
        return;
    if (sender->progress == NULL) {
        lane_wait(&sender->left, lane);
        return;
    }
    lane->told = true;
    sender->lanes.stopped++;
    progress_hide(sender->progress);
    say("%s", err->message);
}

static bool batch_is_full(const struct sender *sender)
{
    return sender->batch_events >= sender->options->batch_events ||
           sender->batch_bytes >= BATCH_BYTES;
}

/* ANNAL_END: the session has no more events now, or was stopped. */
static annal_status send_events(struct sender *sender, struct lane *lane, annal_cursor *cursor,
                                annal_error *err)
{
    annal_event event;
    while (!batch_is_full(sender)) {
        annal_status status = lane_read(lane, cursor, &event, err);
        if (status == ANNAL_ERR_CORRUPT) {
            lane->state = LANE_DAMAGED;
            tell_stop(sender, lane, err);
            return ANNAL_END;
        }
        if (status != ANNAL_OK)
            return status;
        status = sender->options->kind->put(sender->target, lane, &event, err);
        if (status >= 0 && sender->options->kind->keep != NULL)
            status =
                annal__artifact_references(event.data, reference_note, &sender->references, err);
        if (status < 0)
            return status;
        lane->next = (struct place){event.seq, event.h, event.offset + event.length};
        sender->batch_events++;
        sender->batch_bytes += event.length;
    }
    return ANNAL_OK;
}

/* Rule 2 of home.h. */
static annal_status stop_away(struct sender *sender, struct lane *lane)
{
    annal_error err;
    lane->state = LANE_AWAY;
    annal__fail(&err, ANNAL_ERR_REFUSED,
                "session '%s' is not at home here: nothing of it is shipped; 'annal home status' "
                "says where it is",
                lane->session);
    tell_stop(sender, lane, &err);
    return ANNAL_END;
}

static annal_status send_lane(struct sender *sender, struct lane *lane, annal_error *err)
{
    annal_cursor *cursor = NULL;
    lane->next = lane->there;
    lane->state = LANE_GOING;
    if (lane->away)
        return stop_away(sender, lane);
    if (batch_is_full(sender) || !lane->has_head)
        return ANNAL_OK; /* somebody removed its head: it gets another one in the next batch */
    annal_status status = lane_open(&sender->lanes, lane, &cursor, err);
    if (status == ANNAL_END)
        tell_stop(sender, lane, err);
    if (status == ANNAL_OK && lane->info != NULL && lane->there.at == 0) {
        *lane->info = annal__cursor_header(cursor);
        lane->there.seq = lane->next.seq = lane->info->first_seq - 1;
    }
    if (status == ANNAL_OK)
        status = send_events(sender, lane, cursor, err);
    annal_cursor_close(cursor);
    return status;
}

/* Whether a lease was given by this target. */
static bool is_giver(const struct sender *sender, const annal_lease *lease)
{
    const struct home_kind *homes = sender->options->kind->homes;
    return homes != NULL && strcmp(lease->giver, homes->name(sender->target)) == 0;
}

/* A shared session is not shipped: the target has its events before they are here. If it lacks
 * some, it was restored. One look after each survey. */
static void look_at_shared(struct sender *sender, struct lane *lane)
{
    annal_error err = {0};
    annal_session_info info;
    struct place head = {0};
    annal_slice session = annal_slice_of(lane->session);
    if (lane->state == LANE_SHARED ||
        annal_session_info_get(sender->lanes.store, session, &info, &err) < 0 ||
        sender->options->kind->homes->head(sender->target, lane->session, &head, &err) < 0)
        return;
    lane->state = LANE_SHARED;
    if (info.last_seq <= head.seq) {
        lane_go_on(&sender->lanes, lane);
        return;
    }
    annal__fail(&err, ANNAL_ERR_REFUSED,
                "session '%s' is shared, and the target has lost %" PRIu64
                " of its events: docs/cluster.md says how they come back",
                lane->session, info.last_seq - head.seq);
    tell_stop(sender, lane, &err);
    if (!lane->told)
        lane->state = LANE_GOING; /* to the other sender */
}

/* Whether it may be sent. What its head is made of, if it has none, is read with its events. */
static bool look_into(struct sender *sender, struct lane *lane, annal_session_info *info)
{
    annal_lease lease = {0};
    lane->epoch = 0;
    if (annal_lease_get(sender->lanes.store, annal_slice_of(lane->session), &lease, NULL) ==
        ANNAL_OK)
        lane->epoch = lease.epoch;
    if (lease.shared && is_giver(sender, &lease)) {
        look_at_shared(sender, lane);
        return false;
    }
    *info = (annal_session_info){.first_seq = 1};
    lane->info = lane->has_head ? NULL : info;
    return true;
}

/* The sessions that have waited longest. */
static void choose_lanes(struct sender *sender)
{
    struct lane *lane;
    sender->count = 0;
    sender->batch_events = sender->batch_bytes = 0;
    references_clear(&sender->references);
    while (sender->count < BATCH_LANES && (lane = lane_take(&sender->lanes)) != NULL)
        if (look_into(sender, lane, &sender->infos[sender->count]))
            sender->batch[sender->count++] = lane;
}

static annal_status send_batch(struct sender *sender, bool *more, annal_error *err)
{
    const struct ship_kind *kind = sender->options->kind;
    annal_status status = kind->begin(sender->target, sender->batch, sender->count, err);
    for (size_t i = 0; status >= 0 && i < sender->count; i++) {
        status = send_lane(sender, sender->batch[i], err);
        more[i] = status != ANNAL_END;
    }
    if (status >= 0)
        status =
            references_send(&sender->references, sender->lanes.store, kind, sender->target, err);
    if (status >= 0)
        status = kind->commit(sender->target, sender->batch, sender->count, err);
    return status < 0 ? status : ANNAL_OK;
}

/* Sessions that are not done wait again; first those whose turn did not come, so that a long one
 * keeps nobody waiting. */
static void wait_again(struct sender *sender, const bool *more, bool was_sent)
{
    for (size_t i = 0; i < sender->count; i++) {
        struct lane *lane = sender->batch[i];
        if (more[i] && (lane->next.seq != lane->there.seq) == was_sent)
            lane_wait(&sender->lanes, lane);
    }
}

/* Rule 3 of home.h, after the batch. What fails here is tried again at the next survey. */
static annal_status note_lost(struct sender *sender, annal_error *err)
{
    for (size_t i = 0; i < sender->count; i++) {
        const struct lane *lane = sender->batch[i];
        if (lane->state != LANE_AWAY || sender->progress == NULL)
            continue;
        progress_hide(sender->progress);
        annal_status status = home_lost(sender->lanes.store, sender->options->kind->homes,
                                        sender->target, lane->session, lane->epoch, err);
        if (status == ANNAL_ERR_BUSY)
            return status;
        if (status < 0)
            say("%s", err->message);
    }
    return ANNAL_OK;
}

annal_status sender_batch(struct sender *sender, annal_error *err)
{
    bool more[BATCH_LANES] = {false};
    choose_lanes(sender);
    if (sender->count == 0)
        return ANNAL_OK;
    annal_status status = send_batch(sender, more, err);
    for (size_t i = 0; i < sender->count; i++) {
        struct lane *lane = sender->batch[i];
        lane->info = NULL;
        more[i] = more[i] || status < 0;
        if (status < 0)
            lane->next = lane->there;
        else if (!more[i] || lane->next.seq != lane->there.seq)
            lane->since_us = 0;
    }
    wait_again(sender, more, false);
    wait_again(sender, more, true);
    if (status < 0)
        return status;
    for (size_t i = 0; i < sender->count; i++) {
        struct lane *lane = sender->batch[i];
        if (lane->state == LANE_GOING && lane->next.seq != lane->there.seq)
            lane_go_on(&sender->lanes, lane);
        lane->there = lane->next;
    }
    sender->events += sender->batch_events;
    sender->bytes += sender->batch_bytes;
    sender->batches++;
    row_maker_wake(sender->maker);
    return note_lost(sender, err);
}

/* ---- A second one ---- */

struct second {
    struct sender sender;
    pthread_t thread;
    atomic_bool over, done;
};

static void note_lag(struct sender *sender)
{
    const struct lag lag = lanes_lag(&sender->lanes);
    sender->behind = lag.events;
    sender->since_us = lag.since_us;
}

static void *send_on(void *arg)
{
    struct second *second = arg;
    struct sender *sender = &second->sender;
    const struct ship_options *options = sender->options;
    annal_error err = {0};
    annal_status status = options->kind->open(&options->target, true, &sender->target, &err);
    while (status >= 0 && sender->lanes.first != NULL && !second->over) {
        status = sender_batch(sender, &err);
        note_lag(sender);
    }
    options->kind->close(sender->target);
    second->done = true;
    return NULL;
}

/* Of the lanes that wait, those after the first so many. Neighbours stay together: they are often
 * of the same time, and two that insert into the same page of an index wait for each other. */
static void give_rest(struct lanes *from, size_t count, struct lanes *to)
{
    struct lane *last = from->first;
    while (--count > 0)
        last = last->next_waiting;
    to->first = last->next_waiting;
    to->last = from->last;
    from->last = last;
    last->next_waiting = NULL;
}

struct second *second_start(struct sender *sender)
{
    sigset_t all, before; /* signals are for the first thread */
    size_t waiting = 0;
    for (const struct lane *lane = sender->lanes.first; lane != NULL; lane = lane->next_waiting)
        waiting++;
    if (!sender->options->kind->takes_two || waiting < SECOND_LANES)
        return NULL;
    struct second *second = calloc(1, sizeof *second);
    if (second == NULL)
        return NULL;
    second->sender.options = sender->options;
    second->sender.lanes.store = sender->lanes.store;
    second->sender.maker = sender->maker;
    give_rest(&sender->lanes, waiting / 2, &second->sender.lanes);
    note_lag(&second->sender);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&second->thread, NULL, send_on, second);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0)
        return second;
    struct lane *lane;
    while ((lane = lane_take(&second->sender.lanes)) != NULL)
        lane_wait(&sender->lanes, lane);
    free(second);
    return NULL;
}

const struct sender *second_sender(const struct second *second)
{
    static const struct sender none;
    return second != NULL ? &second->sender : &none;
}

bool second_is_done(const struct second *second)
{
    return second->done;
}

void second_stop(struct second *second)
{
    if (second != NULL)
        second->over = true;
}

void second_join(struct second *second, struct sender *sender)
{
    struct lane *lane;
    if (second == NULL)
        return;
    struct sender *from = &second->sender;
    pthread_join(second->thread, NULL);
    while ((lane = lane_take(&from->lanes)) != NULL || (lane = lane_take(&from->left)) != NULL)
        lane_wait(&sender->lanes, lane);
    sender->events += from->events;
    sender->bytes += from->bytes;
    sender->batches += from->batches;
    sender->lanes.stopped += from->lanes.stopped; /* 0 or less */
    sender_done(from);
    free(second);
}

void sender_done(struct sender *sender)
{
    references_clear(&sender->references);
}
