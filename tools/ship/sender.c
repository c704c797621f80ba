/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/sender.h"

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

static void report_stop(struct sender *sender, struct shipment *shipment, const annal_error *err)
{
    if (shipment->state == SHIPMENT_GONE || shipment->is_reported)
        return;
    if (sender->progress == NULL) {
        shipment_queue(&sender->left, shipment);
        return;
    }
    shipment->is_reported = true;
    sender->shipments.stopped++;
    progress_hide(sender->progress);
    say("%s", err->message);
}

static bool batch_is_full(const struct sender *sender)
{
    return sender->batch_events >= sender->options->batch_events ||
           sender->batch_bytes >= BATCH_BYTES;
}

/* Send events until the batch is full. Returns ANNAL_END if the session has no more events or was
 * stopped. */
static annal_status send_events(struct sender *sender, struct shipment *shipment,
                                annal_cursor *cursor, annal_error *err)
{
    annal_event event;
    while (!batch_is_full(sender)) {
        annal_status status = shipment_read(shipment, cursor, &event, err);
        if (status == ANNAL_ERR_CORRUPT) {
            shipment->state = SHIPMENT_DAMAGED;
            report_stop(sender, shipment, err);
            return ANNAL_END;
        }
        if (status != ANNAL_OK)
            return status;
        status = sender->options->kind->put(sender->target, shipment, &event, err);
        if (status >= 0 && sender->options->kind->source != NULL)
            status =
                annal__artifact_references(event.data, references_note, &sender->references, err);
        if (status < 0)
            return status;
        shipment->next = (struct place){event.seq, event.h, event.offset + event.length};
        sender->batch_events++;
        sender->batch_bytes += event.length;
    }
    return ANNAL_OK;
}

/* Stop shipping a session whose home at the target is another store (home.h, rule 2). */
static annal_status stop_elsewhere(struct sender *sender, struct shipment *shipment)
{
    annal_error err;
    shipment->state = SHIPMENT_ELSEWHERE;
    annal__fail(&err, ANNAL_ERR_REFUSED,
                "session '%s' is not shipped: the home of the session is not this store; 'annal "
                "home status' prints the home",
                shipment->session);
    report_stop(sender, shipment, &err);
    return ANNAL_END;
}

static annal_status send_shipment(struct sender *sender, struct shipment *shipment,
                                  annal_error *err)
{
    annal_cursor *cursor = NULL;
    shipment->next = shipment->head;
    shipment->state = SHIPMENT_ACTIVE;
    if (shipment->is_elsewhere)
        return stop_elsewhere(sender, shipment);
    if (batch_is_full(sender) || !shipment->has_head)
        /* nothing of this session is in this batch: the batch is full, or another process removed
         * the target's record of the session's last event, and begin() of the next batch creates it
         * again */
        return ANNAL_OK;
    annal_status status = shipment_open(&sender->shipments, shipment, &cursor, err);
    if (status == ANNAL_END)
        report_stop(sender, shipment, err);
    if (status == ANNAL_OK && shipment->info != NULL && shipment->head.at == 0) {
        *shipment->info = annal__cursor_header(cursor);
        shipment->head.seq = shipment->next.seq = shipment->info->first_seq - 1;
    }
    if (status == ANNAL_OK)
        status = send_events(sender, shipment, cursor, err);
    annal_cursor_close(cursor);
    return status;
}

/* Check whether this target granted the lease. */
static bool is_giver(const struct sender *sender, const annal_lease *lease)
{
    const struct home_kind *homes = sender->options->kind->homes;
    return homes != NULL && strcmp(lease->giver, homes->name(sender->target)) == 0;
}

/* Check a shared session, once per survey. It is not shipped, because the target stores its events
 * before this store does. If the target lacks events of it, the target was restored from a
 * backup. */
static void look_at_shared(struct sender *sender, struct shipment *shipment)
{
    annal_error err = {0};
    annal_session_info info;
    struct place head = {0};
    annal_slice session = annal_slice_of(shipment->session);
    if (shipment->state == SHIPMENT_SHARED ||
        annal_session_info_get(sender->shipments.store, session, &info, &err) < 0 ||
        sender->options->kind->homes->head(sender->target, shipment->session, &head, &err) < 0)
        return;
    shipment->state = SHIPMENT_SHARED;
    if (info.last_seq <= head.seq) {
        shipment_resume(&sender->shipments, shipment);
        return;
    }
    annal__fail(&err, ANNAL_ERR_REFUSED,
                "session '%s' is shared, and the target has lost %" PRIu64
                " of its events: docs/cluster.md explains how to restore them",
                shipment->session, info.last_seq - head.seq);
    report_stop(sender, shipment, &err);
    if (!shipment->is_reported)
        /* leave the session to the first sender, which checks it again and prints the message */
        shipment->state = SHIPMENT_ACTIVE;
}

/* Check whether events of the session may be sent. If the target has no events of the session, the
 * header of its journal is read later, with its events. */
static bool look_into(struct sender *sender, struct shipment *shipment, annal_session_info *info)
{
    annal_lease lease = {0};
    shipment->epoch = 0;
    if (annal_lease_get(sender->shipments.store, annal_slice_of(shipment->session), &lease, NULL) ==
        ANNAL_OK)
        shipment->epoch = lease.epoch;
    if (lease.shared && is_giver(sender, &lease)) {
        look_at_shared(sender, shipment);
        return false;
    }
    *info = (annal_session_info){.first_seq = 1};
    shipment->info = shipment->has_head ? NULL : info;
    return true;
}

/* Choose the sessions for a batch: those that have been queued longest. */
static void choose_shipments(struct sender *sender)
{
    struct shipment *shipment;
    sender->count = 0;
    sender->batch_events = sender->batch_bytes = 0;
    references_clear(&sender->references);
    while (sender->count < BATCH_SESSIONS && (shipment = shipment_take(&sender->shipments)) != NULL)
        if (look_into(sender, shipment, &sender->infos[sender->count]))
            sender->batch[sender->count++] = shipment;
}

static annal_status send_batch(struct sender *sender, bool *more, annal_error *err)
{
    const struct ship_kind *kind = sender->options->kind;
    annal_status status = kind->begin(sender->target, sender->batch, sender->count, err);
    for (size_t i = 0; status >= 0 && i < sender->count; i++) {
        status = send_shipment(sender, sender->batch[i], err);
        more[i] = status != ANNAL_END;
    }
    if (status >= 0)
        status = references_send(&sender->references, sender->shipments.store, kind, sender->target,
                                 err);
    if (status >= 0)
        status = kind->commit(sender->target, sender->batch, sender->count, err);
    return status < 0 ? status : ANNAL_OK;
}

/* Queue sessions again whose events were not all sent. Sessions without a sent event are queued
 * first, so that a long session does not delay others. */
static void wait_again(struct sender *sender, const bool *more, bool was_sent)
{
    for (size_t i = 0; i < sender->count; i++) {
        struct shipment *shipment = sender->batch[i];
        if (more[i] && (shipment->next.seq != shipment->head.seq) == was_sent)
            shipment_queue(&sender->shipments, shipment);
    }
}

/* After a batch, save the events that were appended after a lease expired, of sessions whose home
 * is another store now (home.h, rule 3). A failure is retried at the next survey. */
static annal_status note_lost(struct sender *sender, annal_error *err)
{
    for (size_t i = 0; i < sender->count; i++) {
        const struct shipment *shipment = sender->batch[i];
        if (shipment->state != SHIPMENT_ELSEWHERE || sender->progress == NULL)
            continue;
        progress_hide(sender->progress);
        annal_status status = home_lost(sender->shipments.store, sender->options->kind->homes,
                                        sender->target, shipment->session, shipment->epoch, err);
        if (status == ANNAL_ERR_BUSY)
            return status;
        if (status < 0)
            say("%s", err->message);
    }
    return ANNAL_OK;
}

annal_status sender_batch(struct sender *sender, annal_error *err)
{
    bool more[BATCH_SESSIONS] = {false};
    choose_shipments(sender);
    if (sender->count == 0)
        return ANNAL_OK;
    annal_status status = send_batch(sender, more, err);
    for (size_t i = 0; i < sender->count; i++) {
        struct shipment *shipment = sender->batch[i];
        shipment->info = NULL;
        more[i] = more[i] || status < 0;
        if (status < 0)
            shipment->next = shipment->head;
        else if (!more[i] || shipment->next.seq != shipment->head.seq)
            shipment->since_us = 0;
    }
    wait_again(sender, more, false);
    wait_again(sender, more, true);
    if (status < 0)
        return status;
    for (size_t i = 0; i < sender->count; i++) {
        struct shipment *shipment = sender->batch[i];
        if (shipment->state == SHIPMENT_ACTIVE && shipment->next.seq != shipment->head.seq)
            shipment_resume(&sender->shipments, shipment);
        shipment->head = shipment->next;
    }
    sender->events += sender->batch_events;
    sender->bytes += sender->batch_bytes;
    sender->batches++;
    row_maker_wake(sender->maker);
    return note_lost(sender, err);
}

/* ---- The second sender ---- */

struct second {
    struct sender sender;
    pthread_t thread;
    atomic_bool over, done;
};

static void note_lag(struct sender *sender)
{
    const struct lag lag = shipments_lag(&sender->shipments);
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
    while (status >= 0 && sender->shipments.first != NULL && !second->over) {
        status = sender_batch(sender, &err);
        note_lag(sender);
    }
    options->kind->close(sender->target);
    second->done = true;
    return NULL;
}

/* Move the queue after its first `count` shipments to `to`. Neighbours in the queue are not
 * separated: they often have similar times, and two connections that insert into the same index
 * page block each other. */
static void give_rest(struct shipments *from, size_t count, struct shipments *to)
{
    struct shipment *last = from->first;
    while (--count > 0)
        last = last->next_queued;
    to->first = last->next_queued;
    to->last = from->last;
    from->last = last;
    last->next_queued = NULL;
}

struct second *sender_start_second(struct sender *sender)
{
    /* signals are blocked in the new thread, so that the first one handles them */
    sigset_t all, before;
    size_t waiting = 0;
    for (const struct shipment *shipment = sender->shipments.first; shipment != NULL;
         shipment = shipment->next_queued)
        waiting++;
    if (!sender->options->kind->takes_two || waiting < SECOND_SESSIONS)
        return NULL;
    struct second *second = calloc(1, sizeof *second);
    if (second == NULL)
        return NULL;
    second->sender.options = sender->options;
    second->sender.shipments.store = sender->shipments.store;
    second->sender.maker = sender->maker;
    give_rest(&sender->shipments, waiting / 2, &second->sender.shipments);
    note_lag(&second->sender);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&second->thread, NULL, send_on, second);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0)
        return second;
    struct shipment *shipment;
    while ((shipment = shipment_take(&second->sender.shipments)) != NULL)
        shipment_queue(&sender->shipments, shipment);
    free(second);
    return NULL;
}

const struct sender *sender_of_second(const struct second *second)
{
    static const struct sender none;
    return second != NULL ? &second->sender : &none;
}

bool sender_second_is_done(const struct second *second)
{
    return second->done;
}

void sender_stop_second(struct second *second)
{
    if (second != NULL)
        second->over = true;
}

void sender_join_second(struct second *second, struct sender *sender)
{
    struct shipment *shipment;
    if (second == NULL)
        return;
    struct sender *from = &second->sender;
    pthread_join(second->thread, NULL);
    while ((shipment = shipment_take(&from->shipments)) != NULL ||
           (shipment = shipment_take(&from->left)) != NULL)
        shipment_queue(&sender->shipments, shipment);
    sender->events += from->events;
    sender->bytes += from->bytes;
    sender->batches += from->batches;
    /* in the second sender, `stopped` is 0 or negative: it counts the sessions that were resumed */
    sender->shipments.stopped += from->shipments.stopped;
    sender_done(from);
    free(second);
}

void sender_done(struct sender *sender)
{
    references_clear(&sender->references);
}
