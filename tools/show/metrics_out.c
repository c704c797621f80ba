/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/metrics_out.h"

#include "journal/sys/metrics.h"
#include "tools/cli/out.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* The unit in which people see the values of a histogram. */
enum unit { UNIT_US, UNIT_BYTES, UNIT_COUNT };

struct histogram_row {
    const char *name;  /* name in JSON */
    const char *title; /* title for people */
    enum unit unit;
    const annal_histogram *histogram;
};

#define ROWS 7

static void collect_rows(const annal_metrics *metrics, struct histogram_row rows[ROWS])
{
    const struct histogram_row all[ROWS] = {
        {"sync_us", "sync of a group", UNIT_US, &metrics->sync_us},
        {"group_events", "events in a group", UNIT_COUNT, &metrics->group_events},
        {"group_bytes", "size of a group", UNIT_BYTES, &metrics->group_bytes},
        {"journal_sync_us", "sync of a journal", UNIT_US, &metrics->journal_sync_us},
        {"checkpoint_us", "checkpoint", UNIT_US, &metrics->checkpoint_us},
        {"checkpoint_lag_us", "checkpoint lag", UNIT_US, &metrics->checkpoint_lag_us},
        {"session_wait_us", "wait for a session", UNIT_US, &metrics->session_wait_us}};
    memcpy(rows, all, sizeof all);
}

static double written_per_payload_byte(const annal_metrics *metrics)
{
    return metrics->payload_bytes == 0 ? 0
                                       : (double)(metrics->log_bytes + metrics->journal_bytes) /
                                             (double)metrics->payload_bytes;
}

/* ---- JSON ---- */

static void print_histogram_json(const struct histogram_row *row)
{
    const annal_histogram *histogram = row->histogram;
    const char *name = row->name;
    printf(",\"%s_count\":%" PRIu64 ",\"%s_sum\":%" PRIu64 ",\"%s_p50\":%" PRIu64
           ",\"%s_p90\":%" PRIu64 ",\"%s_p99\":%" PRIu64 ",\"%s_max\":%" PRIu64 ",\"%s_buckets\":[",
           name, histogram->count, name, histogram->sum, name,
           annal__metrics_histogram_quantile(histogram, 0.5), name,
           annal__metrics_histogram_quantile(histogram, 0.9), name,
           annal__metrics_histogram_quantile(histogram, 0.99), name, histogram->max, name);
    const char *comma = "";
    for (size_t i = 0; i < ANNAL_HISTOGRAM_BUCKETS; i++) {
        if (histogram->buckets[i] == 0)
            continue;
        if (i + 1 < ANNAL_HISTOGRAM_BUCKETS)
            printf("%s{\"up_to\":%" PRIu64, comma, annal__metrics_histogram_bound(i));
        else
            printf("%s{\"up_to\":null", comma);
        printf(",\"count\":%" PRIu64 "}", histogram->buckets[i]);
        comma = ",";
    }
    fputs("]", stdout);
}

void metrics_print_json(const annal_metrics *metrics)
{
    struct histogram_row rows[ROWS];
    char real[REAL_BYTES];
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {{"appended_events", metrics->events},
                    {"payload_bytes", metrics->payload_bytes},
                    {"groups", metrics->groups},
                    {"log_bytes", metrics->log_bytes},
                    {"written_journal_bytes", metrics->journal_bytes},
                    {"syncs", metrics->syncs},
                    {"slow_syncs", metrics->slow_syncs},
                    {"refused_appends", metrics->refused},
                    {"unknown_appends", metrics->unknown},
                    {"stopped", metrics->stopped},
                    {"behind_sessions", metrics->behind},
                    {"checkpoints", metrics->checkpoints},
                    {"opens", metrics->opens},
                    {"refused_opens", metrics->refused_opens},
                    {"recoveries", metrics->recoveries},
                    {"recovered_groups", metrics->recovered_groups},
                    {"torn_bytes", metrics->torn_bytes}};
    out_json("{\"since\":!",
             metrics->since_us == 0 ? (annal_slice){0} : JSON_TIME(metrics->since_us));
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        printf(",\"%s\":%" PRIu64, counters[i].name, counters[i].value);
    printf(",\"written_bytes_per_payload_byte\":%s",
           table_real_text(real, written_per_payload_byte(metrics)));
    collect_rows(metrics, rows);
    for (int i = 0; i < ROWS; i++)
        print_histogram_json(&rows[i]);
    fputs("}\n", stdout);
}

/* ---- For people ---- */

static const char *human_value(char text[HUMAN_BYTES], enum unit unit, uint64_t value)
{
    if (unit == UNIT_BYTES)
        return human_bytes(text, value);
    if (unit == UNIT_COUNT)
        return human_count(text, value);
    if (value < 1000)
        snprintf(text, HUMAN_BYTES, "%" PRIu64 " us", value);
    else if (value < 1000000)
        snprintf(text, HUMAN_BYTES, "%.*f ms", value < 10000 ? 1 : 0, (double)value / 1000);
    else
        snprintf(text, HUMAN_BYTES, "%.*f s", value < 10000000 ? 1 : 0, (double)value / 1000000);
    return text;
}

/* Print a bar of one cell for each bucket, from the first to the last that is not empty. */
static void print_bars(const annal_histogram *histogram)
{
    static const char *const glyphs[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const ascii[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
    const char *const *cells = isatty(STDOUT_FILENO) ? glyphs : ascii;
    size_t first = ANNAL_HISTOGRAM_BUCKETS, last = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < ANNAL_HISTOGRAM_BUCKETS; i++) {
        uint64_t count = histogram->buckets[i];
        if (count > 0 && first == ANNAL_HISTOGRAM_BUCKETS)
            first = i;
        last = count > 0 ? i : last;
        most = count > most ? count : most;
    }
    for (size_t i = first; i <= last; i++) {
        double share = (double)histogram->buckets[i] / (double)most;
        fputs(cells[histogram->buckets[i] == 0 ? 0 : 1 + (int)(share * 7)], stdout);
    }
}

static void print_histogram(const struct histogram_row *row)
{
    static const double shares[] = {0.5, 0.9, 0.99};
    char text[HUMAN_BYTES];
    printf("  %-18s %12s", row->title, human_count(text, row->histogram->count));
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        printf(" %9s", human_value(text, row->unit,
                                   annal__metrics_histogram_quantile(row->histogram, shares[i])));
    printf(" %9s  ", human_value(text, row->unit, row->histogram->max));
    print_bars(row->histogram);
    fputc('\n', stdout);
}

static void print_remark(const char *what, uint64_t count)
{
    char text[HUMAN_BYTES];
    if (count > 0)
        printf("  %-18s %12s\n", what, human_count(text, count));
}

void metrics_print(const annal_metrics *metrics)
{
    struct histogram_row rows[ROWS];
    char text[HUMAN_BYTES];
    bool titled = false;
    if (metrics->since_us == 0)
        return;
    fputs("\nwritten since ", stdout);
    out_shown_time(metrics->since_us);
    printf("\n  %-18s %12s\n", "events", human_count(text, metrics->events));
    if (metrics->payload_bytes > 0)
        printf("  %-18s %12.2f  for each byte of data\n", "bytes written",
               written_per_payload_byte(metrics));
    print_remark("slow syncs", metrics->slow_syncs);
    print_remark("refused appends", metrics->refused);
    print_remark("unknown appends", metrics->unknown);
    print_remark("stopped by storage", metrics->stopped);
    print_remark("sessions lagging", metrics->behind);
    print_remark("refused sessions", metrics->refused_opens);
    print_remark("logs recovered", metrics->recoveries);
    print_remark("groups recovered", metrics->recovered_groups);
    print_remark("torn bytes cut", metrics->torn_bytes);
    collect_rows(metrics, rows);
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].histogram->count == 0)
            continue;
        if (!titled)
            printf("\n  %-18s %12s %9s %9s %9s %9s\n", "", "count", "half", "90 %", "99 %", "most");
        titled = true;
        print_histogram(&rows[i]);
    }
}
