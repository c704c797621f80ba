/* SPDX-License-Identifier: Apache-2.0 */
/* Answers /metrics in OpenMetrics format: the work of the store, the load of the server, and the
 * lag of the shippers of this store. */
#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/sys/metrics.h"
#include "tools/cli/ship_lag.h"
#include "tools/serve/serve.h"

#include <annal/metrics.h>

#include <inttypes.h>
#include <stdatomic.h>

static annal_status put_counter(struct buf *out, const char *name, const char *help, uint64_t value)
{
    return annal__buf_printf(
        out, "# TYPE annal_%s counter\n# HELP annal_%s %s\nannal_%s_total %" PRIu64 "\n", name,
        name, help, name, value);
}

static annal_status put_gauge(struct buf *out, const char *name, const char *help, double value)
{
    return annal__buf_printf(out, "# TYPE annal_%s gauge\n# HELP annal_%s %s\nannal_%s %g\n", name,
                             name, help, name, value);
}

/* Print a histogram. unit is the factor from its values to the printed unit. */
static annal_status put_histogram(struct buf *out, const char *name, const char *help,
                                  const annal_histogram *histogram, double unit)
{
    uint64_t sum = 0;
    annal_status status =
        annal__buf_printf(out, "# TYPE annal_%s histogram\n# HELP annal_%s %s\n", name, name, help);
    for (size_t i = 0; status >= 0 && i < ANNAL_HISTOGRAM_BUCKETS - 1; i++) {
        sum += histogram->buckets[i];
        status = annal__buf_printf(out, "annal_%s_bucket{le=\"%g\"} %" PRIu64 "\n", name,
                                   (double)annal__metrics_histogram_bound(i) * unit, sum);
    }
    sum += histogram->buckets[ANNAL_HISTOGRAM_BUCKETS - 1];
    return status < 0
               ? status
               : annal__buf_printf(out,
                                   "annal_%s_bucket{le=\"+Inf\"} %" PRIu64
                                   "\nannal_%s_sum %g\nannal_%s_count %" PRIu64 "\n",
                                   name, sum, name, (double)histogram->sum * unit, name, sum);
}

static annal_status put_store(struct buf *out, const annal_metrics *metrics)
{
    const struct {
        const char *name, *help;
        uint64_t value;
    } counters[] = {
        {"appended_events", "Events appended by all processes", metrics->events},
        {"payload_bytes", "Bytes of the data of these events", metrics->payload_bytes},
        {"groups", "Writes of the commit log", metrics->groups},
        {"log_bytes", "Bytes written to commit logs", metrics->log_bytes},
        {"journal_bytes", "Bytes written to journals", metrics->journal_bytes},
        {"syncs", "Syncs of logs, journals and directories", metrics->syncs},
        {"slow_syncs", "Syncs that took longer than a second", metrics->slow_syncs},
        {"refused_appends", "Appends that were refused", metrics->refused},
        {"unknown_appends", "Appends with an unknown outcome", metrics->unknown},
        {"checkpoints", "Checkpoints", metrics->checkpoints},
        {"recoveries", "Commit logs of dead processes that were recovered", metrics->recoveries}};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < sizeof counters / sizeof *counters; i++)
        status = put_counter(out, counters[i].name, counters[i].help, counters[i].value);
    put_histogram(out, "sync_seconds", "Time for writing and syncing a group of events",
                  &metrics->sync_us, 1e-6);
    put_histogram(out, "group_events", "Events per sync", &metrics->group_events, 1);
    return put_histogram(out, "session_wait_seconds",
                         "Time spent waiting for a session of another process",
                         &metrics->session_wait_us, 1e-6);
}

/* ---- Shippers of this store ---- */

struct lags {
    struct ship_lag *all;
    size_t count;
};

static annal_status note_lag(void *arg, const struct ship_lag *lag)
{
    struct lags *lags = arg;
    struct ship_lag *added = annal__array_add(&lags->all, &lags->count, sizeof *added);
    if (added != NULL)
        *added = *lag;
    return added != NULL ? ANNAL_OK : ANNAL_ERR_NOMEM;
}

enum {
    LAG_EVENTS,
    LAG_EVENTS_BEHIND,
    LAG_SECONDS,
    LAG_ROWS_SECONDS,
    LAG_STOPPED,
    LAG_UNREACHABLE,
    LAG_SILENT,
    LAG_COUNT
};

static double of_lag(const struct ship_lag *lag, int which)
{
    const double values[LAG_COUNT] = {
        [LAG_EVENTS] = (double)lag->events,   [LAG_EVENTS_BEHIND] = (double)lag->events_behind,
        [LAG_SECONDS] = lag->seconds_behind,  [LAG_ROWS_SECONDS] = lag->rows_seconds_behind,
        [LAG_STOPPED] = (double)lag->stopped, [LAG_UNREACHABLE] = lag->away ? 1 : 0,
        [LAG_SILENT] = lag->silent_seconds,
    };
    return values[which];
}

/* Print a metric family for each member of struct ship_lag, with a line for each target; nothing if
 * the store has no shippers. */
static annal_status put_lags(struct buf *out, const struct lags *lags)
{
    static const struct {
        const char *name, *help;
    } families[LAG_COUNT] = {
        [LAG_EVENTS] = {"ship_events", "Events shipped since the shipper started"},
        [LAG_EVENTS_BEHIND] = {"ship_events_behind", "Events waiting to be shipped"},
        [LAG_SECONDS] = {"ship_seconds_behind", "Waiting time of the oldest unshipped event"},
        [LAG_ROWS_SECONDS] = {"ship_rows_seconds_behind", "Age of the oldest batch without rows"},
        [LAG_STOPPED] = {"ship_sessions_stopped", "Sessions that are not shipped"},
        [LAG_UNREACHABLE] = {"ship_away", "1 if the target is unreachable"},
        [LAG_SILENT] = {"ship_silent_seconds", "Time since the last report of the shipper"},
    };
    annal_status status = ANNAL_OK;
    for (int which = 0; status >= 0 && lags->count > 0 && which < LAG_COUNT; which++) {
        const char *name = families[which].name;
        bool is_counter = which == LAG_EVENTS;
        status = annal__buf_printf(out, "# TYPE annal_%s %s\n# HELP annal_%s %s\n", name,
                                   is_counter ? "counter" : "gauge", name, families[which].help);
        for (size_t i = 0; status >= 0 && i < lags->count; i++)
            status = annal__buf_printf(out, "annal_%s%s{target=\"%s\"} %.15g\n", name,
                                       is_counter ? "_total" : "", lags->all[i].target,
                                       of_lag(&lags->all[i], which));
    }
    return status;
}

void serve_metrics_get(struct serve *serve, struct request *request)
{
    annal_metrics metrics;
    struct lags lags = {0};
    struct buf *out = &request->answer;
    double up = (double)(annal__clock_monotonic_us() - serve->begun_us) * 1e-6;
    annal_store_metrics_get(serve->store, ANNAL_METRICS_OF_STORE, &metrics);
    bool good =
        put_store(out, &metrics) >= 0 &&
        put_gauge(out, "serve_up_seconds", "Uptime of the server", up) >= 0 &&
        put_gauge(out, "serve_streams", "Live streams", atomic_load(&serve->stream_count)) >= 0 &&
        put_gauge(out, "serve_connections", "Connections of this listener",
                  http_connections(request->http)) >= 0 &&
        put_gauge(out, "serve_waiting", "Waiting and running requests", pool_load(serve->pool)) >=
            0 &&
        ship_lag_each(serve->store, note_lag, &lags) >= 0 && put_lags(out, &lags) >= 0 &&
        annal__buf_append(out, "# EOF\n", 6) >= 0;
    annal__free(lags.all);
    request->status = 200;
    request->type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    if (!good)
        answer_no_memory(request);
}
