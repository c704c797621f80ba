/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many hosts that ship to one PostgreSQL, in one process: a thread for each, with the connection
 * and the code of the real shipper (tools/ship/postgres.c). fleet.py starts the servers.
 *
 *     fleet ship URL HOSTS SECONDS RATE...   events/s of all hosts; the next one after SECONDS
 *     fleet renew URL HOSTS SECONDS          leases of the sessions home-<host>
 *
 * (1) A host has the same data in transit as a real host: the recorded events of one generated
 *     session, repeatedly, each time as a new session; the first session is in its middle (fleet.py
 *     created its head). Events arrive at an even rate. A host ships its events, one batch at a
 *     time, and then waits as ship.c does, so batches grow when the target is slow. When the target
 *     is unreachable, the host waits as ship.c does, and connects again.
 * (2) A moment after a batch a host builds rows of sessions and turns as rows.c does, but on its
 *     only connection: all missing rows when it begins, then the rows of its later batches.
 * (3) The lag of a batch is the age of its oldest event when it was committed. Only the second half
 *     of each step counts, so the figures belong to the rate and not to the change.
 * (4) Each rate prints one line of JSON. The program ends after the first rate that is not reached
 *     (events wait longer than LAG_MS_MAX, or a tenth of them is left over).
 */
#include "tests/bench/generate.h"

#include "journal/base/clock.h"
#include "tools/ship/home.h"
#include "tools/ship/ship.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    SESSION_EVENTS = 1000,
    HOST_SHIPMENTS = 4,
    BATCH_EVENTS = 50000,
    QUIET_MS = 30000,
    PAUSES = 3,       /* as in ship.c */
    MIN_AGE_MS = 300, /* as in rows.c, also the next two */
    ROWS_MS = 400,
    ROWS_AGAIN_MS = 1000,
    BACKOFF_MS = 250,
    BACKOFF_TRIES = 7,
    BACKOFF_MS_MAX = 30000,
    LOOK_S = 60,
    LAG_MS_MAX = 60000,
    CONNECT_MS = 1, /* between two hosts, at the beginning */
    STACK_BYTES = 256 << 10,
    BUCKETS = 2000 /* of 1 % each: up to 440 s */
};

/* From begin_us on, all hosts together create `rate` events per second; before, they had `made`. */
struct step {
    int64_t begin_us;
    double rate, made;
};

struct host {
    pthread_t thread;
    unsigned number;
    char store[24];
    struct ship_target *target;
    uint64_t begun, sent; /* numbers of events: shipped before of its first session, and in total */
    uint64_t looked_at;
    int64_t next_us, look_us;
    int64_t rows_us;  /* when to build rows; 0: they are built */
    bool rows_wanted; /* requested since rows_last */
    uint64_t rows_last;
    unsigned tries;
    struct shipment shipments[HOST_SHIPMENTS];
    char names[HOST_SHIPMENTS][40];
    annal_session_info *infos;
};

static annal_event recorded[SESSION_EVENTS];
static const char *url;
static unsigned host_count;
static _Atomic(const struct step *) current;
static atomic_bool over;

static atomic_uint connected;
static atomic_uint_fast64_t events, bytes, batches, aways, looks, row_calls, batch_times[BUCKETS],
    lags[BUCKETS], row_lags[BUCKETS];

/* ---- Measuring ---- */

static void count_time(atomic_uint_fast64_t *times, int64_t us)
{
    int bucket = us < 1 ? 0 : (int)(log((double)us) * 100.5);
    atomic_fetch_add(&times[bucket < BUCKETS ? bucket : BUCKETS - 1], 1);
}

static double quantile_ms(atomic_uint_fast64_t *times, double part)
{
    uint64_t all = 0, passed = 0;
    int bucket = 0;
    for (int i = 0; i < BUCKETS; i++)
        all += times[i];
    while (bucket < BUCKETS - 1 && (double)(passed += times[bucket]) < (double)all * part)
        bucket++;
    return all == 0 ? 0 : exp(bucket / 100.5) / 1000;
}

static void forget_times(void)
{
    for (int i = 0; i < BUCKETS; i++)
        batch_times[i] = lags[i] = row_lags[i] = 0;
}

static void rest_until(int64_t until_us)
{
    int64_t left_us = until_us - annal__clock_monotonic_us();
    if (left_us > 0)
        nanosleep(&(struct timespec){left_us / 1000000, left_us % 1000000 * 1000}, NULL);
}

static void fail(const char *what, const annal_error *err)
{
    fprintf(stderr, "fleet: %s: %s\n", what, err->message);
    exit(1);
}

/* ---- Recorded events ---- */

static char *keep(annal_slice text)
{
    char *kept = strndup(text.ptr != NULL ? text.ptr : "", text.len);
    if (kept == NULL)
        abort();
    return kept;
}

static void record(void)
{
    char path[] = "/tmp/annal-fleet-XXXXXX", command[100];
    annal_store *store = NULL;
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_error err = {0};
    if (mkdtemp(path) == NULL ||
        annal_store_open(path, &(annal_store_options){.create = true}, &store, &err) < 0 ||
        generate_session(store, 0, SESSION_EVENTS, 1, &err) < 0 ||
        annal_cursor_open(store, ANNAL_SLICE("sess_000"), 1, &cursor, &err) < 0)
        fail("record a session", &err);
    for (int i = 0; i < SESSION_EVENTS; i++) {
        if (annal_cursor_next(cursor, &event, &err) != ANNAL_OK)
            fail("read what was recorded", &err);
        recorded[i] = event;
        recorded[i].type.ptr = keep(event.type);
        recorded[i].id.ptr = keep(event.id);
        recorded[i].cause.ptr = keep(event.cause);
        recorded[i].data.ptr = keep(event.data);
    }
    annal_cursor_close(cursor);
    (void)annal_store_close(store, NULL);
    snprintf(command, sizeof command, "rm -r '%s'", path);
    if (system(command) != 0)
        fprintf(stderr, "fleet: %s is left\n", path);
}

/* ---- A host ---- */

static bool connect_host(struct host *host, annal_error *err)
{
    const struct ship_where where = {.url = url, .store = host->store, .quiet_ms = QUIET_MS};
    if (ship_postgres.open(&where, true, &host->target, err) < 0)
        return false;
    atomic_fetch_add(&connected, 1);
    return true;
}

/* The target is unreachable: as back_off() in ship.c. */
static void back_off(struct host *host, annal_error *err)
{
    if (err->status != ANNAL_ERR_BUSY && err->status != ANNAL_OK)
        fail(host->store, err);
    if (host->target != NULL) {
        ship_postgres.close(host->target);
        atomic_fetch_sub(&connected, 1);
    }
    host->target = NULL;
    atomic_fetch_add(&aways, 1);
    int ms = host->tries < BACKOFF_TRIES ? BACKOFF_MS << host->tries : BACKOFF_MS_MAX;
    host->tries++;
    host->next_us = annal__clock_monotonic_us() + (ms / 2 + rand() % (ms / 2 + 1)) * INT64_C(1000);
}

static annal_status count_head(void *arg, annal_slice session, const struct place *there,
                               annal_error *err)
{
    (void)session, (void)there, (void)err;
    ++*(uint64_t *)arg;
    return ANNAL_OK;
}

/* The number of its events so far, and the time of the next. */
static uint64_t made_by(const struct host *host, int64_t now_us, int64_t *out_next_us)
{
    const struct step *step = atomic_load(&current);
    double each = step->rate / host_count / 1e6;
    double phase = (double)host->number / host_count;
    double made = phase + (double)host->begun + step->made / host_count +
                  (double)(now_us - step->begin_us) * each;
    double wait_us = (floor(made) + 1 - made) / each;
    *out_next_us = now_us + (int64_t)(wait_us < 1e6 ? wait_us + 1 : 1e6);
    return (uint64_t)made;
}

/* The sessions of the next count events. */
static size_t choose_shipments(struct host *host, uint64_t count, struct shipment **out)
{
    size_t shipments = 0;
    for (uint64_t at = host->sent; at < host->sent + count && shipments < HOST_SHIPMENTS;
         shipments++) {
        struct shipment *shipment = &host->shipments[shipments];
        annal_session_info *info = &host->infos[shipments];
        snprintf(host->names[shipments], sizeof host->names[shipments], "run-%u-%" PRIu64,
                 host->number, at / SESSION_EVENTS);
        *info = (annal_session_info){.first_seq = 1, .created_us = recorded[0].ts_us};
        snprintf(info->session, sizeof info->session, "%s", host->names[shipments]);
        snprintf(info->file, sizeof info->file, "%08x%08" PRIx64, host->number, at);
        *shipment = (struct shipment){.session = host->names[shipments]};
        shipment->info = at % SESSION_EVENTS == 0 ? info : NULL;
        out[shipments] = shipment;
        at += SESSION_EVENTS - at % SESSION_EVENTS;
    }
    return shipments;
}

static annal_status put_events(struct host *host, struct shipment *shipment, uint64_t *at,
                               uint64_t end, annal_error *err)
{
    annal_status status = ANNAL_OK;
    shipment->next = shipment->head;
    while (*at < end && status >= 0) {
        annal_event event = recorded[*at % SESSION_EVENTS];
        event.seq = shipment->next.seq + 1;
        status = ship_postgres.put(host->target, shipment, &event, err);
        shipment->next = (struct place){event.seq, event.h, event.offset + event.length};
        atomic_fetch_add(&bytes, event.length);
        if (++*at % SESSION_EVENTS == 0)
            break;
    }
    return status;
}

static annal_status send_batch(struct host *host, uint64_t count, annal_error *err)
{
    struct shipment *shipments[HOST_SHIPMENTS];
    size_t shipment_count = choose_shipments(host, count, shipments);
    uint64_t at = host->sent, end = host->sent + count;
    annal_status status = ship_postgres.begin(host->target, shipments, shipment_count, err);
    if (status >= 0 && shipments[0]->head.seq != host->sent % SESSION_EVENTS) {
        fprintf(stderr, "fleet: session %s has %" PRIu64 " events at the target, not %" PRIu64 "\n",
                shipments[0]->session, shipments[0]->head.seq, host->sent % SESSION_EVENTS);
        exit(1);
    }
    for (size_t i = 0; i < shipment_count && status >= 0; i++)
        status = put_events(host, shipments[i], &at, end, err);
    if (status >= 0)
        status = ship_postgres.commit(host->target, shipments, shipment_count, err);
    if (status >= 0)
        host->sent = at;
    return status;
}

static void ship_some(struct host *host, uint64_t made)
{
    annal_error err = {0};
    uint64_t count = made - host->sent, sent = host->sent;
    const struct step *step = atomic_load(&current);
    int64_t begin_us = annal__clock_monotonic_us();
    if (send_batch(host, count < BATCH_EVENTS ? count : BATCH_EVENTS, &err) < 0) {
        back_off(host, &err);
        return;
    }
    int64_t end_us = annal__clock_monotonic_us();
    double oldest =
        ((double)(sent - host->begun) + 1 - (double)host->number / host_count) * host_count;
    count_time(lags, end_us - step->begin_us - (int64_t)((oldest - step->made) / step->rate * 1e6));
    count_time(batch_times, end_us - begin_us);
    atomic_fetch_add(&events, host->sent - sent);
    atomic_fetch_add(&batches, 1);
    host->tries = 0;
    int64_t pace_us = ship_postgres.pace_ms * INT64_C(1000),
            pause_us = (end_us - begin_us) * PAUSES;
    host->next_us = end_us + (pause_us > pace_us ? pause_us : pace_us);
    host->rows_wanted = true;
    if (host->rows_us == 0)
        host->rows_us = end_us + ROWS_MS * INT64_C(1000);
}

static void make_rows(struct host *host)
{
    annal_error err = {0};
    struct ship_rows left;
    if (host->rows_last == 0)
        host->rows_wanted = false;
    if (ship_postgres.database->make_rows(host->target, MIN_AGE_MS, &left, &err) < 0) {
        back_off(host, &err);
        return;
    }
    atomic_fetch_add(&row_calls, 1);
    count_time(row_lags, (int64_t)(left.seconds * 1e6));
    if (host->rows_last == 0)
        host->rows_last = left.last;
    bool made = left.first == 0 || left.first > host->rows_last;
    if (made)
        host->rows_last = 0;
    host->rows_us =
        made && !host->rows_wanted
            ? 0
            : annal__clock_monotonic_us() + (made ? ROWS_MS : ROWS_AGAIN_MS) * INT64_C(1000);
}

static void look_again(struct host *host)
{
    annal_error err = {0};
    host->look_us += LOOK_S * INT64_C(1000000);
    if (ship_postgres.heads(host->target, count_head, &host->looked_at, &err) < 0)
        back_off(host, &err);
    else
        atomic_fetch_add(&looks, 1);
}

static void *run_host(void *arg)
{
    struct host *host = arg;
    int64_t now_us = annal__clock_monotonic_us();
    host->next_us = now_us + host->number * CONNECT_MS * INT64_C(1000);
    host->look_us = host->next_us + host->number % LOOK_S * INT64_C(1000000);
    while (!over) {
        annal_error err = {0};
        int64_t event_us;
        rest_until(host->rows_us != 0 && host->rows_us < host->next_us ? host->rows_us
                                                                       : host->next_us);
        now_us = annal__clock_monotonic_us();
        if (host->target != NULL && host->rows_us != 0 && now_us >= host->rows_us)
            make_rows(host);
        if (now_us < host->next_us)
            continue;
        uint64_t made = made_by(host, now_us, &event_us);
        host->next_us = event_us;
        if (host->target == NULL && !connect_host(host, &err))
            back_off(host, &err);
        else if (made > host->sent)
            ship_some(host, made);
        else if (now_us >= host->look_us)
            look_again(host);
    }
    return NULL;
}

/* ---- All of them ---- */

static void start_hosts(struct host *hosts, void *(*run)(void *arg))
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0 || pthread_attr_setstacksize(&attr, STACK_BYTES) != 0)
        abort();
    for (unsigned i = 0; i < host_count; i++) {
        hosts[i].number = i;
        hosts[i].begun = hosts[i].sent = i * 7919ULL % SESSION_EVENTS;
        hosts[i].infos = calloc(HOST_SHIPMENTS, sizeof *hosts[i].infos);
        snprintf(hosts[i].store, sizeof hosts[i].store, "host%05u", i);
        if (hosts[i].infos == NULL ||
            pthread_create(&hosts[i].thread, &attr, run, &hosts[i]) != 0) {
            fprintf(stderr, "fleet: no thread for host %u\n", i);
            exit(1);
        }
    }
}

static bool print_step(const struct step *step, uint64_t events_before, double seconds)
{
    uint64_t shipped = events - events_before;
    double lag_ms = quantile_ms(lags, 0.99);
    bool reached = lag_ms < LAG_MS_MAX && (double)shipped > 0.9 * step->rate * seconds;
    printf("{\"rate\":%.0f,\"events_s\":%.0f,\"batches_s\":%.1f,\"bytes_s\":%.0f,"
           "\"batch_p50_ms\":%.1f,\"batch_p99_ms\":%.1f,\"lag_p50_ms\":%.0f,\"lag_p99_ms\":%.0f,"
           "\"rows_p99_ms\":%.0f,\"row_calls_s\":%.1f,\"connected\":%u,\"away\":%" PRIu64
           ",\"looks\":%" PRIu64 ",\"reached\":%s}\n",
           step->rate, (double)shipped / seconds, (double)batches / seconds,
           (double)bytes / seconds, quantile_ms(batch_times, 0.5), quantile_ms(batch_times, 0.99),
           quantile_ms(lags, 0.5), lag_ms, quantile_ms(row_lags, 0.99), (double)row_calls / seconds,
           connected, (uint64_t)aways, (uint64_t)looks, reached ? "true" : "false");
    fflush(stdout);
    return reached;
}

static bool run_step(struct step *step, const struct step *before, int seconds)
{
    step->begin_us = annal__clock_monotonic_us();
    step->made = before->made + before->rate * (double)(step->begin_us - before->begin_us) / 1e6;
    atomic_store(&current, step);
    sleep((unsigned)seconds / 2);
    uint64_t begun_events = events;
    int64_t half_us = annal__clock_monotonic_us();
    batches = bytes = aways = looks = row_calls = 0;
    forget_times();
    printf("{}\n"); /* fleet.py begins to count, too */
    fflush(stdout);
    sleep((unsigned)(seconds - seconds / 2));
    return print_step(step, begun_events, (double)(annal__clock_monotonic_us() - half_us) / 1e6);
}

static void run_ship(struct host *hosts, int seconds, char **rates, int count)
{
    static struct step steps[64];
    /* No events before all hosts are connected. */
    steps[0] = (struct step){.begin_us = annal__clock_monotonic_us(), .rate = 1e-3};
    atomic_store(&current, &steps[0]);
    start_hosts(hosts, run_host);
    while (connected < host_count)
        usleep(100000);
    printf("{\"connected\":%u,\"seconds\":%.1f}\n", connected,
           (double)(annal__clock_monotonic_us() - steps[0].begin_us) / 1e6);
    fflush(stdout);
    bool goes_on = true;
    for (int i = 0; i < count && i < 63 && goes_on; i++) {
        steps[i + 1].rate = strtod(rates[i], NULL);
        goes_on = run_step(&steps[i + 1], &steps[i], seconds);
    }
}

static void *renew_host(void *arg)
{
    struct host *host = arg;
    annal_error err = {0};
    struct home_lease lease = {.lease = {.epoch = 1, .seconds = 30}};
    snprintf(lease.session, sizeof lease.session, "home-%s", host->store);
    if (!connect_host(host, &err))
        fail(host->store, &err);
    while (!over) {
        int64_t begin_us = annal__clock_monotonic_us();
        if (ship_postgres.homes->renew(host->target, &lease, 1, &err) < 0)
            fail(host->store, &err);
        if (!lease.kept) {
            fprintf(stderr, "fleet: the lease of %s was not kept\n", lease.session);
            exit(1);
        }
        count_time(batch_times, annal__clock_monotonic_us() - begin_us);
        atomic_fetch_add(&batches, 1);
    }
    return NULL;
}

static void run_renew(struct host *hosts, int seconds)
{
    start_hosts(hosts, renew_host);
    while (connected < host_count)
        usleep(100000);
    batches = 0;
    forget_times();
    sleep((unsigned)seconds);
    printf("{\"renewals_s\":%.0f,\"p50_ms\":%.1f,\"p99_ms\":%.1f}\n", (double)batches / seconds,
           quantile_ms(batch_times, 0.5), quantile_ms(batch_times, 0.99));
}

int main(int argc, char **argv)
{
    bool is_renew = argc == 5 && strcmp(argv[1], "renew") == 0;
    if (!is_renew && (argc < 6 || strcmp(argv[1], "ship") != 0)) {
        fputs("usage: fleet ship URL HOSTS SECONDS RATE...\n"
              "       fleet renew URL HOSTS SECONDS\n",
              stderr);
        return 2;
    }
    url = argv[2];
    host_count = (unsigned)strtoul(argv[3], NULL, 10);
    int seconds = (int)strtol(argv[4], NULL, 10);
    struct rlimit files = {host_count + 1000, host_count + 1000};
    (void)setrlimit(RLIMIT_NOFILE, &files);
    struct host *hosts = calloc(host_count, sizeof *hosts);
    if (hosts == NULL || host_count == 0 || seconds < 1)
        return 2;
    if (is_renew) {
        run_renew(hosts, seconds);
    } else {
        record();
        run_ship(hosts, seconds, argv + 5, argc - 5);
    }
    over = true;
    fflush(stdout);
    _exit(0); /* hosts may wait for an answer */
}
