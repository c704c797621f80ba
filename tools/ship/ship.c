#include "tools/ship/home.h"
#include "tools/ship/rows.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/sys/artifact.h"
#include "tools/cli/command.h"
#include "tools/cli/out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum {
    BATCH_LANES = 512,
    BATCH_BYTES = 32 << 20,
    ROWS_AGAIN_MS = 100, /* while another process makes rows */
    LOOK_MS = 500,       /* how often to notice that nobody reads the output any more */
    DRAIN_EVENTS = 4096  /* of the tail, between two batches */
};
#define LOOK_AGAIN_US  ((int64_t)60000000) /* at all heads, while there is nothing to do */
#define TELL_US        ((int64_t)1000000)
#define PAUSES         3 /* between small batches: so many times as long as the last one took */
#define BACKOFF_MS     250
#define BACKOFF_MS_MAX 30000

/* An artifact that an event of the batch names. */
struct reference {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    char sha256[ANNAL_SHA256_TEXT_BYTES];
};

struct ship {
    const struct ship_options *options;
    struct lanes lanes;
    struct ship_target *target; /* NULL: it is away */
    annal_tail *tail;           /* with follow: says which sessions grew */

    struct lane *batch[BATCH_LANES];
    annal_session_info infos[BATCH_LANES];
    size_t count;
    uint64_t batch_events;
    uint64_t batch_bytes;
    struct reference *references;
    size_t reference_count;

    uint64_t events, bytes, batches; /* shipped */
    uint64_t told_events, told_rows; /* at the last line of --json */
    uint64_t stopped;                /* sessions in conflict or damaged, which were reported */
    int64_t begun_us, told_us;
    int64_t next_us;       /* when the next batch is due that is not full */
    int64_t look_us;       /* when to look at all heads again */
    int64_t renew_us;      /* when to renew leases (CLOCK_BOOTTIME) */
    int64_t third_us;      /* of the shortest lease; 0: not known yet */
    int64_t away_since_us; /* 0: it is not */
    unsigned tries;
    struct row_maker *maker; /* with follow */
    struct ship_rows rows;   /* whose rows are not made yet */
    uint64_t rows_last;      /* without follow: up to this batch they are made */
    int64_t shipped_us;      /* without follow: when all was shipped; 0: not yet */
    struct progress progress;
};

/* ---- A batch ---- */

static void tell_stop(struct ship *ship, struct lane *lane, const annal_error *err)
{
    if (lane->state == LANE_GONE || lane->told)
        return;
    lane->told = true;
    ship->stopped++;
    progress_hide(&ship->progress);
    say("%s", err->message);
}

/* Damage after which there are no more events in order; what comes before it is sent. */
static void stop_at_damage(struct ship *ship, struct lane *lane, const char *what)
{
    annal_error err;
    lane->state = LANE_DAMAGED;
    annal__fail(&err, ANNAL_ERR_CORRUPT,
                "session '%s' is damaged after event %" PRIu64 " (%s): what follows is not shipped",
                lane->session, lane->next.seq, what);
    tell_stop(ship, lane, &err);
}

static bool batch_is_full(const struct ship *ship)
{
    return ship->batch_events >= ship->options->batch_events || ship->batch_bytes >= BATCH_BYTES;
}

static annal_status note_reference(void *arg, annal_slice session, annal_slice sha256,
                                   annal_error *err)
{
    struct ship *ship = arg;
    struct reference *item =
        annal__array_add(&ship->references, &ship->reference_count, sizeof *item);
    if (item == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    snprintf(item->session, sizeof item->session, "%.*s", ANNAL_FMT(session));
    snprintf(item->sha256, sizeof item->sha256, "%.*s", ANNAL_FMT(sha256));
    return ANNAL_OK;
}

/* Rule 6. *out_has: the target has it now. */
static annal_status send_artifact(struct ship *ship, const struct reference *reference,
                                  bool *out_has, annal_error *err)
{
    const struct ship_kind *kind = ship->options->kind;
    annal_slice content = {0};
    annal_status status = kind->has(ship->target, reference->sha256, out_has, err);
    if (status < 0 || *out_has)
        return status;
    if (annal_artifact_get(ship->lanes.store, annal_slice_of(reference->session),
                           annal_slice_of(reference->sha256), SHIP_ARTIFACT_BYTES_MAX, &content,
                           NULL) < 0)
        return ANNAL_OK;
    status = kind->keep(ship->target, reference->sha256, content, err);
    *out_has = status >= 0;
    annal_free((void *)(uintptr_t)content.ptr);
    return status;
}

static int by_content(const void *a, const void *b)
{
    const struct reference *x = a, *y = b;
    return strcmp(x->sha256, y->sha256);
}

static annal_status send_artifacts(struct ship *ship, annal_error *err)
{
    const struct reference *all = ship->references;
    annal_status status = ANNAL_OK;
    bool has = false;
    if (ship->reference_count > 0)
        qsort(ship->references, ship->reference_count, sizeof *all, by_content);
    for (size_t i = 0; i < ship->reference_count && status >= 0; i++) {
        has = has && by_content(&all[i - 1], &all[i]) == 0;
        if (!has)
            status = send_artifact(ship, &all[i], &has, err);
    }
    return status;
}

/* ANNAL_END: the session has no more events now, or was stopped. */
static annal_status send_events(struct ship *ship, struct lane *lane, annal_cursor *cursor,
                                annal_error *err)
{
    annal_event event;
    while (!batch_is_full(ship)) {
        annal_status status = annal_cursor_next(cursor, &event, err);
        if (status == ANNAL_END || status == ANNAL_ERR_NOMEM)
            return status;
        annal_damage damage =
            status == ANNAL_DAMAGE ? annal_cursor_damage(cursor) : (annal_damage){0};
        if (status == ANNAL_DAMAGE && !damage.event_lost)
            continue;
        if (status != ANNAL_OK || event.seq != lane->next.seq + 1) {
            stop_at_damage(ship, lane,
                           status == ANNAL_DAMAGE ? damage.what
                           : status < 0           ? err->message
                                                  : "events are missing");
            return ANNAL_END;
        }
        status = ship->options->kind->put(ship->target, lane, &event, err);
        if (status >= 0 && ship->options->kind->keep != NULL)
            status = annal__artifact_references(event.data, note_reference, ship, err);
        if (status < 0)
            return status;
        lane->next = (struct place){event.seq, event.h, event.offset + event.length};
        ship->batch_events++;
        ship->batch_bytes += event.length;
    }
    return ANNAL_OK;
}

/* Rule 2 of home.h. */
static annal_status stop_away(struct ship *ship, struct lane *lane)
{
    annal_error err;
    lane->state = LANE_AWAY;
    annal__fail(&err, ANNAL_ERR_REFUSED,
                "session '%s' is not at home here: nothing of it is shipped; 'annal home status' "
                "says where it is",
                lane->session);
    tell_stop(ship, lane, &err);
    return ANNAL_END;
}

static annal_status send_lane(struct ship *ship, struct lane *lane, annal_error *err)
{
    annal_cursor *cursor = NULL;
    lane->next = lane->there;
    lane->state = LANE_GOING;
    if (lane->away)
        return stop_away(ship, lane);
    if (batch_is_full(ship) || !lane->has_head)
        return ANNAL_OK; /* somebody removed its head: it gets another one in the next batch */
    annal_status status = lane_open(&ship->lanes, lane, &cursor, err);
    if (status == ANNAL_END)
        tell_stop(ship, lane, err);
    else if (status == ANNAL_OK)
        status = send_events(ship, lane, cursor, err);
    annal_cursor_close(cursor);
    return status;
}

/* What the head of a lane is made of, if it has none. False: there is nothing to ship. */
static bool look_into(struct ship *ship, struct lane *lane, annal_session_info *info)
{
    annal_error err = {0};
    annal_lease lease = {0};
    lane->epoch = 0;
    if (annal_lease_get(ship->lanes.store, annal_slice_of(lane->session), &lease, NULL) == ANNAL_OK)
        lane->epoch = lease.epoch;
    lane->info = lane->has_head ? NULL : info;
    if (lane->has_head)
        return true;
    annal_status status =
        annal_session_info_get(ship->lanes.store, annal_slice_of(lane->session), info, &err);
    if (status == ANNAL_OK)
        return info->last_seq >= info->first_seq;
    lane->state = status == ANNAL_ERR_NOTFOUND ? LANE_GONE : LANE_DAMAGED;
    tell_stop(ship, lane, &err);
    return false;
}

/* The sessions that have waited longest. */
static void choose_lanes(struct ship *ship)
{
    struct lane *lane;
    ship->count = 0;
    ship->batch_events = ship->batch_bytes = 0;
    annal__free(ship->references);
    ship->references = NULL;
    ship->reference_count = 0;
    while (ship->count < BATCH_LANES && (lane = lane_take(&ship->lanes)) != NULL)
        if (look_into(ship, lane, &ship->infos[ship->count]))
            ship->batch[ship->count++] = lane;
}

static annal_status send_batch(struct ship *ship, bool *more, annal_error *err)
{
    const struct ship_kind *kind = ship->options->kind;
    annal_status status = kind->begin(ship->target, ship->batch, ship->count, err);
    for (size_t i = 0; status >= 0 && i < ship->count; i++) {
        status = send_lane(ship, ship->batch[i], err);
        more[i] = status != ANNAL_END;
    }
    if (status >= 0)
        status = send_artifacts(ship, err);
    if (status >= 0)
        status = kind->commit(ship->target, ship->batch, ship->count, err);
    return status < 0 ? status : ANNAL_OK;
}

/* Sessions that are not done wait again; first those whose turn did not come, so that a long one
 * keeps nobody waiting. */
static void wait_again(struct ship *ship, const bool *more, bool was_sent)
{
    for (size_t i = 0; i < ship->count; i++) {
        struct lane *lane = ship->batch[i];
        if (more[i] && (lane->next.seq != lane->there.seq) == was_sent)
            lane_wait(&ship->lanes, lane);
    }
}

/* Rule 3 of home.h, after the batch. What fails here is tried again at the next survey. */
static annal_status note_lost(struct ship *ship, annal_error *err)
{
    for (size_t i = 0; i < ship->count; i++) {
        const struct lane *lane = ship->batch[i];
        if (lane->state != LANE_AWAY)
            continue;
        progress_hide(&ship->progress);
        annal_status status = home_lost(ship->lanes.store, ship->options->kind->homes, ship->target,
                                        lane->session, lane->epoch, err);
        if (status == ANNAL_ERR_BUSY)
            return status;
        if (status < 0)
            say("%s", err->message);
    }
    return ANNAL_OK;
}

/* It has caught up. A target that is slow has many hosts or little power: it gets fewer batches,
 * and larger ones. */
static void pause_after(struct ship *ship, int64_t begun_us)
{
    int64_t now_us = annal__monotonic_us(), took_us = (now_us - begun_us) * PAUSES;
    int64_t pace_us = (int64_t)ship->options->kind->pace_ms * 1000;
    ship->next_us = now_us + (took_us > pace_us ? took_us : pace_us);
}

static annal_status ship_batch(struct ship *ship, annal_error *err)
{
    bool more[BATCH_LANES] = {false};
    int64_t begun_us = annal__monotonic_us();
    choose_lanes(ship);
    if (ship->count == 0)
        return ANNAL_OK;
    annal_status status = send_batch(ship, more, err);
    for (size_t i = 0; i < ship->count; i++) {
        struct lane *lane = ship->batch[i];
        lane->info = NULL;
        more[i] = more[i] || status < 0;
        if (status < 0)
            lane->next = lane->there;
        else if (!more[i] || lane->next.seq != lane->there.seq)
            lane->since_us = 0;
    }
    wait_again(ship, more, false);
    wait_again(ship, more, true);
    if (status < 0)
        return status;
    for (size_t i = 0; i < ship->count; i++)
        ship->batch[i]->there = ship->batch[i]->next;
    ship->events += ship->batch_events;
    ship->bytes += ship->batch_bytes;
    ship->batches++;
    row_maker_wake(ship->maker);
    if (ship->lanes.first == NULL)
        pause_after(ship, begun_us);
    return note_lost(ship, err);
}

/* ---- What it says ---- */

struct lag {
    uint64_t events;
    int64_t since_us;
};

static struct lag lag_of(const struct ship *ship)
{
    struct lag lag = {0};
    for (const struct lane *lane = ship->lanes.first; lane != NULL; lane = lane->behind) {
        if (lane->last_seq > lane->there.seq)
            lag.events += lane->last_seq - lane->there.seq;
        if (lag.since_us == 0 || lane->since_us < lag.since_us)
            lag.since_us = lane->since_us;
    }
    return lag;
}

static void print_json(struct ship *ship, int64_t now_us)
{
    struct lag lag = lag_of(ship);
    int64_t behind_us = lag.since_us != 0 ? now_us - lag.since_us : 0;
    int64_t end_us = ship->shipped_us != 0 ? ship->shipped_us : now_us;
    printf("{\"store\":");
    out_json_string(annal_slice_of(ship->options->target.store));
    printf(",\"events\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"batches\":%" PRIu64
           ",\"seconds\":%.3f,\"sessions\":%" PRIu64 ",\"sessions_stopped\":%" PRIu64
           ",\"events_behind\":%" PRIu64 ",\"seconds_behind\":%.3f,\"rows_behind\":%" PRIu64
           ",\"rows_seconds_behind\":%.3f,\"rows_seconds\":%.3f,\"away\":%s}\n",
           ship->events, ship->bytes, ship->batches, (double)(end_us - ship->begun_us) / 1e6,
           ship->lanes.here, ship->stopped, lag.events, (double)behind_us / 1e6, ship->rows.batches,
           ship->rows.seconds, (double)(now_us - end_us) / 1e6,
           ship->away_since_us != 0 ? "true" : "false");
}

/* The progress on a terminal; with follow and --json a line a second while something happens. */
static void tell(struct ship *ship)
{
    int64_t now_us = annal__monotonic_us();
    char detail[40];
    if (ship->maker != NULL)
        ship->rows = row_maker_look(ship->maker);
    if (ship->progress.on_terminal && ship->bytes < ship->progress.total) {
        progress_set(&ship->progress, ship->bytes, NULL);
    } else if (ship->progress.on_terminal) {
        ship->progress.total = 0; /* it has caught up: from now on what comes is counted */
        snprintf(detail, sizeof detail, "events, %" PRIu64 " behind", lag_of(ship).events);
        progress_set(&ship->progress, ship->events, detail);
    }
    if (!ship->options->json || !ship->options->follow || now_us - ship->told_us < TELL_US ||
        (ship->told_events == ship->events && ship->told_rows == ship->rows.batches &&
         ship->away_since_us == 0))
        return;
    ship->told_us = now_us;
    ship->told_events = ship->events;
    ship->told_rows = ship->rows.batches;
    print_json(ship, now_us);
    (void)out_flush();
}

static int finish(struct ship *ship, int exit_status)
{
    char events[HUMAN_BYTES], sessions[HUMAN_BYTES], bytes[HUMAN_BYTES];
    int64_t now_us = annal__monotonic_us();
    int64_t end_us = ship->shipped_us != 0 ? ship->shipped_us : now_us;
    progress_hide(&ship->progress);
    if (exit_status == EXIT_DONE && ship->options->json) {
        print_json(ship, now_us);
    } else if (exit_status == EXIT_DONE) {
        printf("shipped %s event%s (%s) in %.1f s; ", human_count(events, ship->events),
               ship->events == 1 ? "" : "s", human_bytes(bytes, ship->bytes),
               (double)(end_us - ship->begun_us) / 1e6);
        if (ship->stopped > 0)
            printf("%" PRIu64 " of %s session%s stopped", ship->stopped,
                   human_count(sessions, ship->lanes.here), ship->lanes.here == 1 ? "" : "s");
        else
            printf("the target has all of %s session%s", human_count(sessions, ship->lanes.here),
                   ship->lanes.here == 1 ? "" : "s");
        if (now_us - end_us >= 100000)
            printf("; their rows took %.1f s more", (double)(now_us - end_us) / 1e6);
        printf("\n");
    }
    return exit_status == EXIT_DONE && ship->stopped > 0 ? EXIT_REFUSED : exit_status;
}

/* ---- What grew ---- */

static annal_status note_growth(struct ship *ship, const annal_event *event, annal_error *err)
{
    annal_slice session = annal_tail_session(ship->tail);
    if (session.len == 0 || !lane_is_wanted(&ship->lanes, session))
        return ANNAL_OK;
    struct lane *lane = lane_of(&ship->lanes, session);
    if (lane == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    if (lane->state == LANE_GONE)
        lane->state = LANE_GOING;
    if (event != NULL)
        lane->last_seq = event->seq;
    /* What was shipped before the tail announced it comes with the same seq and hash. */
    if (lane->state == LANE_GOING && (event == NULL || event->seq > lane->there.seq ||
                                      (event->seq == lane->there.seq && event->h != lane->there.h)))
        lane_wait(&ship->lanes, lane);
    return ANNAL_OK;
}

/* Take what the tail has; wait up to wait_ms for the first. */
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
        status = note_growth(ship, status == ANNAL_OK ? &event : NULL, err);
        if (status < 0)
            return status;
    }
    return ANNAL_OK;
}

/* ---- A target that is away ---- */

static uint32_t with_jitter(uint32_t ms)
{
    uint32_t chance = 0;
    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) < 0)
        chance = (uint32_t)annal__monotonic_us();
    return ms / 2 + chance % (ms / 2 + 1);
}

/* With follow, only --json has readers. */
static bool is_unread(const struct ship *ship)
{
    return ship->options->follow && ship->options->json && out_reader_is_gone();
}

static annal_status rest(struct ship *ship, uint32_t ms, annal_error *err)
{
    int64_t until_us = annal__monotonic_us() + (int64_t)ms * 1000;
    for (int64_t left_us; (left_us = until_us - annal__monotonic_us()) > 0 && out_wanted();) {
        uint32_t wait_ms = left_us / 1000 < LOOK_MS ? (uint32_t)(left_us / 1000) + 1 : LOOK_MS;
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

/* It is away, as *err says: wait a little. Fails if that takes too long. */
static annal_status back_off(struct ship *ship, annal_error *err)
{
    int64_t now_us = annal__monotonic_us();
    uint32_t ms = BACKOFF_MS_MAX;
    ship->options->kind->close(ship->target);
    ship->target = NULL;
    if (ship->away_since_us == 0) {
        ship->away_since_us = now_us;
        ship->tries = 0;
        if (ship->options->follow) {
            progress_hide(&ship->progress);
            say("%s; trying again until it answers", err->message);
        }
    }
    if (!ship->options->follow &&
        now_us - ship->away_since_us >= (int64_t)ship->options->wait_ms * 1000)
        return err->status = ANNAL_ERR_IO;
    tell(ship);
    if (ship->tries < 7)
        ms = BACKOFF_MS << ship->tries;
    ship->tries++;
    if (ship->third_us > 0 && ms > ship->third_us / 1000)
        ms = (uint32_t)(ship->third_us / 1000);
    return rest(ship, with_jitter(ms), err);
}

static void note_back(struct ship *ship)
{
    if (ship->away_since_us == 0)
        return;
    if (ship->options->follow)
        say("the target answers again, after %.1f s",
            (double)(annal__monotonic_us() - ship->away_since_us) / 1e6);
    ship->away_since_us = 0;
}

/* ---- The whole ---- */

static annal_status look(struct ship *ship, annal_error *err)
{
    const struct ship_options *options = ship->options;
    annal_status status = ANNAL_OK;
    int64_t begun_us = annal__monotonic_us();
    if (ship->target == NULL)
        status = options->kind->open(&options->target, true, &ship->target, err);
    if (status >= 0)
        status = lanes_survey(&ship->lanes, options->kind, ship->target, err);
    int64_t now_us = annal__monotonic_us(), rest_us = (now_us - begun_us) * 50;
    ship->look_us = now_us + (rest_us > LOOK_AGAIN_US ? rest_us : LOOK_AGAIN_US);
    if (ship->batches == 0 && status >= 0)
        ship->progress.total = ship->lanes.bytes;
    if (status >= 0)
        row_maker_wake(ship->maker); /* what another shipper left */
    return status;
}

/* Small batches keep the pace of the target. */
static bool is_due(const struct ship *ship)
{
    const struct ship_options *options = ship->options;
    return ship->lanes.first != NULL &&
           (ship->tail == NULL || annal__monotonic_us() >= ship->next_us ||
            lag_of(ship).events >= options->batch_events);
}

static uint32_t until_due(const struct ship *ship)
{
    int64_t left_us = ship->next_us - annal__monotonic_us();
    if (ship->lanes.first == NULL || left_us > LOOK_MS * INT64_C(1000))
        return LOOK_MS;
    return left_us > 0 ? (uint32_t)(left_us / 1000) + 1 : 0;
}

/* Keep the homes that this store has. */
static annal_status renew(struct ship *ship, annal_error *err)
{
    const struct home_kind *homes = ship->options->kind->homes;
    if (homes == NULL || annal_lease_now() < ship->renew_us)
        return ANNAL_OK;
    int64_t now_us = annal_lease_now();
    annal_status status = home_renew(ship->lanes.store, homes, ship->target, &ship->third_us, err);
    if (status >= 0)
        ship->renew_us = now_us + home_pace(ship->third_us);
    return status;
}

/* Rule 7, without follow. ANNAL_END: the rows of all batches are made that were there when the
 * events had been shipped. */
static annal_status make_rows(struct ship *ship, annal_error *err)
{
    const struct ship_kind *kind = ship->options->kind;
    const uint64_t first = ship->rows.first;
    if (kind->make_rows == NULL)
        return ANNAL_END;
    if (ship->shipped_us == 0)
        ship->shipped_us = annal__monotonic_us();
    annal_status status = kind->make_rows(ship->target, &ship->rows, err);
    if (status < 0)
        return status;
    if (ship->rows_last == 0)
        ship->rows_last = ship->rows.last;
    if (ship->rows.first == 0 || ship->rows.first > ship->rows_last)
        return ANNAL_END;
    ship->progress.total = 0;
    progress_set(&ship->progress, ship->rows_last + 1 - ship->rows.first,
                 "batches whose rows are to be made");
    return ship->rows.first == first ? rest(ship, ROWS_AGAIN_MS, err) : ANNAL_OK;
}

/* One step: ANNAL_END when there is nothing more to do. */
static annal_status step(struct ship *ship, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (ship->target == NULL ||
        (ship->lanes.first == NULL && ship->tail != NULL && annal__monotonic_us() >= ship->look_us))
        status = look(ship, err);
    if (status >= 0 && ship->tail != NULL)
        status = renew(ship, err);
    bool due = is_due(ship);
    if (status >= 0 && due)
        status = ship_batch(ship, err);
    if (status < 0)
        return status;
    note_back(ship);
    tell(ship);
    if (ship->tail == NULL)
        return ship->lanes.first != NULL ? ANNAL_OK : make_rows(ship, err);
    status = drain(ship, due && ship->lanes.first != NULL ? 0 : until_due(ship), err);
    return status >= 0 && is_unread(ship) ? ANNAL_END : status;
}

int ship_run(annal_store *store, const struct ship_options *options)
{
    annal_error err = {0};
    annal_status status = ANNAL_OK;
    struct ship *ship = calloc(1, sizeof *ship);
    if (ship == NULL)
        return fail_storage("ship: out of memory");
    ship->options = options;
    ship->lanes = (struct lanes){.store = store, .glob = options->glob};
    ship->begun_us = annal__monotonic_us();
    progress_begin(&ship->progress, "ship", 0);
    /* Before the first survey: what is appended after that is announced. */
    if (options->follow)
        status = annal_tail_open(store, &(annal_tail_options){.from_now = true}, &ship->tail, &err);
    if (status >= 0 && options->follow)
        status = row_maker_start(options, &ship->maker, &err);
    while (status == ANNAL_OK) {
        status = step(ship, &err);
        if (status == ANNAL_ERR_BUSY)
            status = back_off(ship, &err);
    }
    if (status < 0)
        progress_hide(&ship->progress);
    row_maker_stop(ship->maker);
    int exit_status = finish(ship, status < 0 ? fail_error(&err) : EXIT_DONE);
    options->kind->close(ship->target);
    annal_tail_close(ship->tail);
    lanes_done(&ship->lanes);
    annal__free(ship->references);
    free(ship);
    return exit_status;
}
