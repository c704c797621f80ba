/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/home.h"
#include "tools/ship/sender.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "tools/cli/command.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/ship_lag.h"

#include <inttypes.h>
#include <sys/random.h>
#include <time.h>

enum {
    ROWS_AGAIN_MS = 100, /* pause in ms while another process builds rows */
    /* pause in ms while this sender has no session to send, but the second sender has */
    SECOND_MS = 10,
    LOOK_MS = 500,      /* interval in ms of the checks whether the output was closed */
    DRAIN_EVENTS = 4096 /* maximum number of events taken from the tail between two batches */
};
/* time in us between two surveys (comparisons of all sessions with the target) while no session is
 * queued */
#define LOOK_AGAIN_US ((int64_t)60000000)
#define REPORT_US     ((int64_t)1000000)
/* pause after a small batch, as a multiple of the duration of the last batch */
#define PAUSES         3
#define BACKOFF_MS     250u
#define BACKOFF_MS_MAX 30000

struct ship {
    const struct ship_options *options;
    struct sender sender;
    /* second sender while it ships half of the sessions, else NULL */
    struct second *second;
    annal_tail *tail; /* with follow: reports sessions with new events */
    /* totals of events and rows in the last line that --json printed */
    uint64_t reported_events, reported_rows;
    int64_t begun_us, reported_us;
    int64_t next_us; /* time in us before which no batch is sent that is not full */
    /* time in us of the next survey, which compares all sessions with the target */
    int64_t look_us;
    int64_t renew_us; /* time of the next renewal of leases, in us (CLOCK_BOOTTIME) */
    int64_t third_us; /* a third of the shortest lease, in us; 0 if unknown */
    /* time since which the target is unreachable; 0 while it is reachable */
    int64_t unreachable_since_us;
    unsigned tries;
    struct ship_rows rows; /* batches whose rows are not built yet, at the last check */
    /* without follow: number of the last batch for whose rows the command waits before it ends */
    uint64_t rows_last;
    /* the highest number of a first batch without rows until now: less is no progress */
    uint64_t rows_first;
    int64_t rows_us;    /* time of the last progress in building rows */
    int64_t shipped_us; /* without follow: time when the last event was shipped; 0 before */
    struct progress progress;
    /* descriptor of the lag file, which shows how many events are not shipped yet (ship_lag.h); -1
     * if it could not be created */
    int lag_fd;
    int64_t lag_written_us; /* time when the lag file was written; 0 if it must be written again */
    struct ship_lag lag;
};

static void join_second(struct ship *ship)
{
    sender_join_second(ship->second, &ship->sender);
    ship->second = NULL;
}

/* ---- Output ---- */

/* Totals of both senders. */
struct counts {
    uint64_t events, bytes, batches, behind;
};

static struct counts count_both(const struct ship *ship)
{
    const struct sender *first = &ship->sender, *second = sender_of_second(ship->second);
    return (struct counts){.events = first->events + second->events,
                           .bytes = first->bytes + second->bytes,
                           .batches = first->batches + second->batches,
                           .behind = shipments_lag(&first->shipments).events + second->behind};
}

static double seconds_behind(const struct ship *ship, int64_t now_us)
{
    int64_t since_us = shipments_lag(&ship->sender.shipments).since_us;
    int64_t second_us = sender_of_second(ship->second)->since_us;
    if (since_us == 0 || (second_us != 0 && second_us < since_us))
        since_us = second_us;
    return since_us != 0 ? (double)(now_us - since_us) / 1e6 : 0;
}

static void print_json(struct ship *ship, int64_t now_us)
{
    const struct counts counts = count_both(ship);
    int64_t end_us = ship->shipped_us != 0 ? ship->shipped_us : now_us;
    out_json("{\"store\":?", annal_slice_of(ship->options->target.store));
    printf(",\"events\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"batches\":%" PRIu64
           ",\"seconds\":%.3f,\"sessions\":%" PRIu64 ",\"sessions_stopped\":%" PRIu64
           ",\"events_behind\":%" PRIu64 ",\"seconds_behind\":%.3f,\"rows_behind\":%" PRIu64
           ",\"rows_seconds_behind\":%.3f,\"rows_seconds\":%.3f,\"away\":%s}\n",
           counts.events, counts.bytes, counts.batches, (double)(end_us - ship->begun_us) / 1e6,
           ship->sender.shipments.here, ship->sender.shipments.stopped, counts.behind,
           seconds_behind(ship, now_us), ship->rows.batches, ship->rows.seconds,
           (double)(now_us - end_us) / 1e6, ship->unreachable_since_us != 0 ? "true" : "false");
}

static void write_lag(struct ship *ship, int64_t now_us)
{
    if (ship->lag_fd < 0)
        return;
    const struct counts counts = count_both(ship);
    ship->lag_written_us = now_us;
    ship->lag.events = counts.events;
    ship->lag.events_behind = counts.behind;
    ship->lag.seconds_behind = seconds_behind(ship, now_us);
    ship->lag.rows_seconds_behind = ship->rows.seconds;
    ship->lag.stopped = ship->sender.shipments.stopped;
    ship->lag.away = ship->unreachable_since_us != 0;
    ship_lag_write(ship->lag_fd, &ship->lag);
}

/* Show progress on a terminal, and write the lag file, which shows how many events are not shipped
 * yet. With follow and --json, print at most one line a second. */
static void report(struct ship *ship)
{
    int64_t now_us = annal__clock_monotonic_us();
    char detail[40];
    const struct counts counts = count_both(ship);
    if (ship->sender.maker != NULL)
        ship->rows = row_maker_look(ship->sender.maker);
    if (now_us - ship->lag_written_us >= REPORT_US)
        write_lag(ship, now_us);
    if (ship->progress.on_terminal && counts.bytes < ship->progress.total) {
        progress_set(&ship->progress, counts.bytes, NULL);
    } else if (ship->progress.on_terminal) {
        /* everything that existed at the start is shipped: from now on, count new events */
        ship->progress.total = 0;
        snprintf(detail, sizeof detail, "events, %" PRIu64 " behind", counts.behind);
        progress_set(&ship->progress, counts.events, detail);
    }
    if (!ship->options->json || !ship->options->follow || now_us - ship->reported_us < REPORT_US ||
        (ship->reported_events == counts.events && ship->reported_rows == ship->rows.batches &&
         ship->unreachable_since_us == 0))
        return;
    ship->reported_us = now_us;
    ship->reported_events = counts.events;
    ship->reported_rows = ship->rows.batches;
    print_json(ship, now_us);
    (void)out_flush();
}

static bool rows_are_made(const struct ship *ship)
{
    return ship->rows.first == 0 || ship->rows.first > ship->rows_last;
}

static int finish(struct ship *ship, int exit_status)
{
    char events[HUMAN_BYTES], sessions[HUMAN_BYTES], bytes[HUMAN_BYTES];
    int64_t now_us = annal__clock_monotonic_us();
    int64_t end_us = ship->shipped_us != 0 ? ship->shipped_us : now_us;
    progress_hide(&ship->progress);
    if (exit_status == EXIT_DONE && ship->options->json) {
        print_json(ship, now_us);
    } else if (exit_status == EXIT_DONE) {
        printf("shipped %s event%s (%s) in %.1f s; ", human_count(events, ship->sender.events),
               ship->sender.events == 1 ? "" : "s", human_bytes(bytes, ship->sender.bytes),
               (double)(end_us - ship->begun_us) / 1e6);
        if (ship->sender.shipments.stopped > 0)
            printf("%" PRIu64 " of %s session%s stopped", ship->sender.shipments.stopped,
                   human_count(sessions, ship->sender.shipments.here),
                   ship->sender.shipments.here == 1 ? "" : "s");
        else
            printf("the target has all of %s session%s",
                   human_count(sessions, ship->sender.shipments.here),
                   ship->sender.shipments.here == 1 ? "" : "s");
        if (now_us - end_us >= 100000)
            printf(rows_are_made(ship)
                       ? "; building the rows took %.1f s more"
                       : "; gave up after %.1f s: another process has not built the rows",
                   (double)(now_us - end_us) / 1e6);
        printf("\n");
    }
    return exit_status == EXIT_DONE && ship->sender.shipments.stopped > 0 ? EXIT_REFUSED
                                                                          : exit_status;
}

/* ---- New events ---- */

static void note_growth(struct ship *ship, const annal_event *event)
{
    annal_slice session = annal_tail_session(ship->tail);
    if (session.len == 0 || !shipment_is_wanted(&ship->sender.shipments, session))
        return;
    struct shipment *shipment = shipment_of(&ship->sender.shipments, session);
    if (shipment->state == SHIPMENT_GONE)
        shipment->state = SHIPMENT_ACTIVE;
    if (event != NULL)
        shipment->last_seq = event->seq;
    /* the tail also reports events that this process has shipped already; their seq and hash are
     * those of the last event at the target */
    if (shipment->state == SHIPMENT_ACTIVE &&
        (event == NULL || event->seq > shipment->head.seq ||
         (event->seq == shipment->head.seq && event->h != shipment->head.h)))
        shipment_queue(&ship->sender.shipments, shipment);
}

/* Read what the tail reports, up to DRAIN_EVENTS events; wait up to wait_ms for the first. */
static annal_status drain(struct ship *ship, uint32_t wait_ms, annal_error *err)
{
    annal_event event;
    for (int i = 0; i < DRAIN_EVENTS; i++) {
        annal_status status = annal_tail_next(ship->tail, i == 0 ? wait_ms : 0, &event, err);
        if (status == ANNAL_END)
            return ANNAL_OK;
        bool of_one = annal_tail_session(ship->tail).len > 0 &&
                      (status == ANNAL_ERR_CORRUPT || status == ANNAL_ERR_UNSUPPORTED);
        if (status < 0 && !of_one)
            return status;
        note_growth(ship, status == ANNAL_OK ? &event : NULL);
    }
    return ANNAL_OK;
}

/* ---- An unreachable target ---- */

static uint32_t with_jitter(uint32_t ms)
{
    uint32_t chance = 0;
    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) < 0)
        chance = (uint32_t)annal__clock_monotonic_us();
    return ms / 2 + chance % (ms / 2 + 1);
}

/* Return whether the reader of the output is gone. With follow, only --json prints to it. */
static bool is_unread(const struct ship *ship)
{
    return ship->options->follow && ship->options->json && out_reader_is_gone();
}

static annal_status pause_for(struct ship *ship, uint32_t ms, annal_error *err)
{
    int64_t until_us = annal__clock_monotonic_us() + (int64_t)ms * 1000;
    for (int64_t left_us; (left_us = until_us - annal__clock_monotonic_us()) > 0 && out_wanted();) {
        uint32_t wait_ms = left_us / 1000 < LOOK_MS ? (uint32_t)(left_us / 1000) + 1 : LOOK_MS;
        report(ship);
        if (ship->tail == NULL) {
            nanosleep(&(struct timespec){.tv_nsec = (long)wait_ms * 1000000}, NULL);
            continue;
        }
        annal_status status = drain(ship, wait_ms, err);
        if (status < 0)
            return status;
        if (is_unread(ship))
            return ANNAL_END;
    }
    return ANNAL_OK;
}

/* Wait before the next attempt, because the target is unreachable or full (*err). Fails when the
 * time of --wait is over. */
static annal_status back_off(struct ship *ship, annal_error *err)
{
    int64_t now_us = annal__clock_monotonic_us();
    uint32_t ms = BACKOFF_MS_MAX;
    sender_stop_second(ship->second);
    join_second(ship);
    ship->options->kind->close(ship->sender.target);
    ship->sender.target = NULL;
    if (ship->unreachable_since_us == 0) {
        ship->unreachable_since_us = now_us;
        ship->tries = 0;
        if (ship->options->follow) {
            progress_hide(&ship->progress);
            say("%s; retrying until the target answers", err->message);
        }
    }
    if (!ship->options->follow &&
        now_us - ship->unreachable_since_us >= (int64_t)ship->options->wait_ms * 1000)
        return err->status = ANNAL_ERR_IO;
    if (ship->tries < 7)
        ms = BACKOFF_MS << ship->tries;
    ship->tries++;
    if (ship->third_us > 0 && ms > ship->third_us / 1000)
        ms = (uint32_t)(ship->third_us / 1000);
    return pause_for(ship, with_jitter(ms), err);
}

static void note_back(struct ship *ship)
{
    if (ship->unreachable_since_us == 0)
        return;
    if (ship->options->follow)
        say("the target answers again, after %.1f s",
            (double)(annal__clock_monotonic_us() - ship->unreachable_since_us) / 1e6);
    ship->unreachable_since_us = 0;
}

/* ---- The main loop ---- */

static annal_status look(struct ship *ship, annal_error *err)
{
    const struct ship_options *options = ship->options;
    annal_status status = ANNAL_OK;
    int64_t begun_us = annal__clock_monotonic_us();
    if (ship->sender.target == NULL)
        status = options->kind->open(&options->target, true, &ship->sender.target, err);
    if (status >= 0)
        status = shipments_survey(&ship->sender.shipments, options->kind, ship->sender.target, err);
    int64_t now_us = annal__clock_monotonic_us(), rest_us = (now_us - begun_us) * 50;
    ship->look_us = now_us + (rest_us > LOOK_AGAIN_US ? rest_us : LOOK_AGAIN_US);
    if (ship->sender.batches == 0 && status >= 0)
        ship->progress.total = ship->sender.shipments.bytes;
    if (status >= 0) {
        /* build the rows of batches that another shipper committed, and left without rows */
        row_maker_wake(ship->sender.maker);
        ship->second = sender_start_second(&ship->sender);
    }
    return status;
}

/* Set a pause after everything was sent: at least the pace of the target, and longer if the target
 * was slow, because it may serve many hosts. It then gets fewer and larger batches. */
static void pause_after(struct ship *ship, int64_t begun_us)
{
    int64_t now_us = annal__clock_monotonic_us(), took_us = (now_us - begun_us) * PAUSES;
    int64_t pace_us = (int64_t)ship->options->kind->pace_ms * 1000;
    ship->lag_written_us = 0; /* 0: write the lag file at the next report */
    ship->next_us = now_us + (took_us > pace_us ? took_us : pace_us);
}

static annal_status ship_batch(struct ship *ship, annal_error *err)
{
    int64_t begun_us = annal__clock_monotonic_us();
    if (ship->lag.events_behind == 0)
        /* write now: the events of this batch count as not shipped until it is committed */
        write_lag(ship, begun_us);
    annal_status status = sender_batch(&ship->sender, err);
    if (status >= 0 && ship->sender.shipments.first == NULL)
        pause_after(ship, begun_us);
    return status;
}

/* Return whether to send a batch now. A batch that is not full waits until next_us. */
static bool is_due(const struct ship *ship)
{
    const struct ship_options *options = ship->options;
    return ship->sender.shipments.first != NULL &&
           (ship->tail == NULL || ship->second != NULL ||
            annal__clock_monotonic_us() >= ship->next_us ||
            shipments_lag(&ship->sender.shipments).events >= options->batch_events);
}

static uint32_t until_due(const struct ship *ship)
{
    int64_t left_us = ship->next_us - annal__clock_monotonic_us();
    if (ship->sender.shipments.first == NULL || left_us > LOOK_MS * INT64_C(1000))
        return LOOK_MS;
    return left_us > 0 ? (uint32_t)(left_us / 1000) + 1 : 0;
}

/* Renew the leases of this store when their time has come. */
static annal_status renew(struct ship *ship, annal_error *err)
{
    const struct home_kind *homes = ship->options->kind->homes;
    if (homes == NULL || annal_lease_now() < ship->renew_us)
        return ANNAL_OK;
    int64_t now_us = annal_lease_now();
    annal_status status =
        home_renew(ship->sender.shipments.store, homes, ship->sender.target, &ship->third_us, err);
    if (status >= 0)
        ship->renew_us = now_us + home_pace(ship->third_us);
    return status;
}

/* Without follow: build rows after the last event was shipped (ship.h, rule 7). Returns ANNAL_END
 * when all batches that existed at that time have rows, or when another process that builds rows
 * makes no progress. */
static annal_status make_rows(struct ship *ship, annal_error *err)
{
    const struct ship_kind *kind = ship->options->kind;
    if (kind->database == NULL)
        return ANNAL_END;
    if (ship->shipped_us == 0)
        ship->shipped_us = annal__clock_monotonic_us();
    annal_status status = kind->database->make_rows(ship->sender.target, 0, &ship->rows, err);
    if (status < 0)
        return status;
    if (ship->rows_last == 0)
        ship->rows_last = ship->rows.last;
    bool is_further = ship->rows.first > ship->rows_first;
    if (is_further) {
        ship->rows_first = ship->rows.first;
        ship->rows_us = annal__clock_monotonic_us();
    }
    if (rows_are_made(ship) || annal__clock_monotonic_us() - ship->rows_us >=
                                   (int64_t)ship->options->target.quiet_ms * 1000)
        return ANNAL_END;
    ship->progress.total = 0;
    progress_set(&ship->progress, ship->rows_last + 1 - ship->rows.first, "batches without rows");
    return is_further ? ANNAL_OK : pause_for(ship, ROWS_AGAIN_MS, err);
}

/* Wait a moment for the second sender. In that time its shipments must not be changed, so the tail
 * is not read, but leases are renewed. */
static annal_status wait_for_second(struct ship *ship)
{
    if (sender_second_is_done(ship->second))
        join_second(ship);
    else if (ship->sender.shipments.first == NULL)
        nanosleep(&(struct timespec){.tv_nsec = SECOND_MS * 1000000L}, NULL);
    return ANNAL_OK;
}

/* Do one step. Returns ANNAL_END when nothing is left to do. */
static annal_status step(struct ship *ship, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (ship->sender.target == NULL ||
        (ship->sender.shipments.first == NULL && ship->second == NULL && ship->tail != NULL &&
         annal__clock_monotonic_us() >= ship->look_us))
        status = look(ship, err);
    if (status >= 0 && ship->tail != NULL)
        status = renew(ship, err);
    bool due = is_due(ship);
    if (status >= 0 && due)
        status = ship_batch(ship, err);
    if (status < 0)
        return status;
    note_back(ship);
    report(ship);
    if (ship->second != NULL)
        return wait_for_second(ship);
    if (ship->tail == NULL)
        return ship->sender.shipments.first != NULL ? ANNAL_OK : make_rows(ship, err);
    status = drain(ship, due && ship->sender.shipments.first != NULL ? 0 : until_due(ship), err);
    return status >= 0 && is_unread(ship) ? ANNAL_END : status;
}

int ship_run(annal_store *store, const struct ship_options *options)
{
    annal_error err = {0};
    annal_status status = ANNAL_OK;
    struct ship *ship = must_zalloc(sizeof *ship);
    ship->options = ship->sender.options = options;
    ship->sender.progress = &ship->progress;
    ship->sender.shipments = (struct shipments){.store = store, .glob = options->glob};
    ship->begun_us = annal__clock_monotonic_us();
    ship->lag_fd = ship_lag_open(store, options->target.url, options->target.store, &ship->lag);
    progress_begin(&ship->progress, "ship", 0);
    /* Open the tail before the first survey, so that it reports every event appended after the
     * survey. */
    if (options->follow)
        status = annal_tail_open(store, &(annal_tail_options){.from_now = true}, &ship->tail, &err);
    if (status >= 0 && options->follow)
        status = row_maker_start(options, &ship->sender.maker, &err);
    while (status == ANNAL_OK) {
        status = step(ship, &err);
        /* a full disk is a temporary failure: another program may free space */
        bool is_full = status < 0 && annal__error_is_no_space(&err);
        if (status == ANNAL_ERR_BUSY || (options->follow && is_full))
            status = back_off(ship, &err);
    }
    if (status < 0)
        progress_hide(&ship->progress);
    sender_stop_second(ship->second);
    join_second(ship);
    row_maker_stop(ship->sender.maker);
    ship_lag_close(store, options->target.url, options->target.store, ship->lag_fd);
    int exit_status = finish(ship, status < 0 ? fail_error(&err) : EXIT_DONE);
    options->kind->close(ship->sender.target);
    annal_tail_close(ship->tail);
    shipments_done(&ship->sender.shipments);
    sender_done(&ship->sender);
    annal__free(ship);
    return exit_status;
}
