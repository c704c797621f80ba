/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/compare/report.h"

#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 64

bool report_add(struct report *report, const struct report_row *row)
{
    if (report->count == report->room) {
        size_t room = report->room * 2 + 16;
        struct report_row *rows = realloc(report->rows, room * sizeof *rows);
        if (rows == NULL)
            return false;
        report->rows = rows;
        report->room = room;
    }
    report->rows[report->count++] = *row;
    return true;
}

void report_done(struct report *report)
{
    free(report->rows);
    free(report->command);
    *report = (struct report){0};
}

/* ---- Figures of a row ---- */

static double divide(double a, double b)
{
    return b > 0 ? a / b : 0;
}

double row_rate(const struct report_row *row)
{
    return divide((double)row->result.events, row->result.seconds);
}

double row_settled_rate(const struct report_row *row)
{
    return divide((double)row->result.events, row->result.settled_seconds);
}

static double call_rate(const struct report_row *row)
{
    return divide((double)row->result.times.count, row->result.seconds);
}

double row_p50_us(const struct report_row *row)
{
    return (double)times_quantile_ns(&row->result.times, 0.5) / 1e3;
}

double row_p99_us(const struct report_row *row)
{
    return (double)times_quantile_ns(&row->result.times, 0.99) / 1e3;
}

static double max_us(const struct report_row *row)
{
    return (double)row->result.times.max_ns / 1e3;
}

double row_cpu_us(const struct report_row *row)
{
    return divide((double)(row->result.cpu_us + row->result.server_cpu_us),
                  (double)row->result.events);
}

static double device_ratio(const struct report_row *row)
{
    return row->result.device_known
               ? divide((double)row->result.device_bytes, (double)row->result.bytes)
               : 0;
}

static double disk_ratio(const struct report_row *row)
{
    if (row->contender->limit) /* its file was filled before */
        return 0;
    return divide((double)row->result.disk_bytes, (double)row->result.bytes);
}

static double memory_mib(const struct report_row *row)
{
    return (double)row->result.memory_bytes / (1 << 20);
}

/* ---- JSON ---- */

static void put_string(FILE *out, const char *string)
{
    fputc('"', out);
    for (; *string != '\0'; string++) {
        if (*string == '"' || *string == '\\')
            fputc('\\', out);
        fputc((unsigned char)*string < ' ' ? ' ' : *string, out);
    }
    fputc('"', out);
}

static void put_member(FILE *out, const char *name, const char *value)
{
    fprintf(out, "\"%s\":", name);
    put_string(out, value);
}

/* The contenders with a version that ran, each once. NULL after the last one. */
static const struct contender *const *next_version(const struct report *report,
                                                   const struct contender *const *at,
                                                   char version[BENCH_VERSION_BYTES])
{
    for (at = at == NULL ? contenders : at + 1; *at != NULL; at++) {
        bool ran = false;
        for (size_t i = 0; i < report->count && !ran; i++)
            ran = report->rows[i].contender == *at && !report->rows[i].result.skipped;
        if (ran && (*at)->version != NULL) {
            (*at)->version(version);
            return at;
        }
    }
    return NULL;
}

static void put_result(FILE *out, const struct run_result *result)
{
    fprintf(out,
            "\"events\":%llu,\"payload_bytes\":%llu,\"seconds\":%.6f,\"settled_seconds\":%.6f,"
            "\"calls\":%llu,\"cpu_us\":%llu,\"settled_cpu_us\":%llu,\"server_cpu_us\":%llu,"
            "\"disk_bytes\":%llu,\"memory_bytes\":%llu,\"free_bytes_before\":%llu,"
            "\"content\":\"%016llx\"",
            (unsigned long long)result->events, (unsigned long long)result->bytes, result->seconds,
            result->settled_seconds, (unsigned long long)result->times.count,
            (unsigned long long)result->cpu_us, (unsigned long long)result->cpu_settled_us,
            (unsigned long long)result->server_cpu_us, (unsigned long long)result->disk_bytes,
            (unsigned long long)result->memory_bytes, (unsigned long long)result->free_bytes,
            (unsigned long long)result->content);
    if (result->device_known)
        fprintf(out, ",\"device_bytes\":%llu", (unsigned long long)result->device_bytes);
}

static void put_row(FILE *out, const struct report_row *row)
{
    const struct run_result *result = &row->result;
    fputs("{", out);
    put_member(out, "workload", row->workload->name);
    fputs(",", out);
    put_member(out, "contender", row->contender->name);
    fprintf(out, ",\"run\":%u,\"durable\":%s,", row->run,
            row->contender->durable ? "true" : "false");
    fprintf(out,
            "\"processes\":%u,\"threads\":%u,\"sessions\":%u,\"batch\":%zu,"
            "\"events_before\":%llu,\"fixed_payload_bytes\":%zu,",
            row->workload->processes, row->workload->threads, row->workload->sessions,
            row->workload->batch, (unsigned long long)row->workload->preload,
            row->workload->fixed_bytes);
    if (result->error[0] != '\0')
        put_member(out, result->skipped ? "skipped" : "error", result->error);
    else
        put_result(out, result);
    if (result->error[0] == '\0')
        fprintf(out,
                ",\"events_per_s\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,"
                "\"max_us\":%.1f",
                row_rate(row), row_p50_us(row), row_p99_us(row),
                (double)times_quantile_ns(&result->times, 0.999) / 1e3, max_us(row));
    fputs("}", out);
}

static void put_versions(const struct report *report, FILE *out)
{
    char version[BENCH_VERSION_BYTES];
    const char *between = "";
    const struct contender *const *at = NULL;
    while ((at = next_version(report, at, version)) != NULL) {
        fputs(between, out);
        put_member(out, (*at)->name, version);
        between = ",";
    }
}

void report_json(const struct report *report, FILE *out)
{
    const struct machine *machine = &report->machine;
    fputs("{", out);
    put_member(out, "command", report->command);
    fprintf(out,
            ",\"seed\":%llu,\"mean_payload_bytes\":%.0f,\"making_cpu_us\":%.2f,"
            "\"page_cache_filled\":%s,",
            (unsigned long long)report->seed, report->mean_bytes, report->making_us,
            report->filled ? "true" : "false");
    fputs("\n\"machine\":{", out);
    put_member(out, "kernel", machine->kernel);
    fputs(",", out);
    put_member(out, "processor", machine->processor);
    fputs(",", out);
    put_member(out, "filesystem", machine->filesystem);
    fputs(",", out);
    put_member(out, "device", machine->device);
    fprintf(out, ",\"cores\":%u,\"memory_bytes\":%llu},\n\"versions\":{", machine->cores,
            (unsigned long long)machine->memory_bytes);
    put_versions(report, out);
    fputs("},\n\"runs\":[", out);
    for (size_t i = 0; i < report->count; i++) {
        fputs(i == 0 ? "\n" : ",\n", out);
        put_row(out, &report->rows[i]);
    }
    fputs("\n]}\n", out);
}

/* ---- Markdown ---- */

static bool counts(const struct report_row *row, const struct workload *workload,
                   const struct contender *contender)
{
    return row->workload == workload && row->contender == contender && row->result.error[0] == '\0';
}

double report_middle(const struct report *report, const struct workload *workload,
                     const struct contender *contender, figure_fn figure)
{
    double values[RUNS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < report->count && count < RUNS_MAX; i++)
        if (counts(&report->rows[i], workload, contender))
            values[count++] = figure(&report->rows[i]);
    return median(values, count);
}

static double largest(const struct report *report, const struct workload *workload,
                      const struct contender *contender, figure_fn figure)
{
    double most = 0;
    for (size_t i = 0; i < report->count; i++)
        if (counts(&report->rows[i], workload, contender) && figure(&report->rows[i]) > most)
            most = figure(&report->rows[i]);
    return most;
}

double report_best(const struct report *report, const struct workload *workload, enum whom whom)
{
    double most = 0;
    for (const struct contender *const *at = contenders; *at != NULL; at++) {
        bool wanted =
            whom == LIMITS ? (*at)->limit : (*at)->durable && !(*at)->limit && !(*at)->ours;
        double rate = wanted ? report_middle(report, workload, *at, row_rate) : 0;
        most = rate > most ? rate : most;
    }
    return most;
}

/* Digits that say something: 12,345 or 12.3 or 0.12. */
static const char *pretty(double value, char out[32])
{
    if (value <= 0)
        return "–";
    if (value < 10)
        snprintf(out, 32, "%.2f", value);
    else if (value < 100)
        snprintf(out, 32, "%.1f", value);
    else if (value < 1000)
        snprintf(out, 32, "%.0f", value);
    else if (value < 1e6)
        snprintf(out, 32, "%u,%03u", (unsigned)value / 1000, (unsigned)value % 1000);
    else
        snprintf(out, 32, "%u,%03u,%03u", (unsigned)value / 1000000, (unsigned)value / 1000 % 1000,
                 (unsigned)value % 1000);
    return out;
}

static void put_cell(FILE *out, double value)
{
    char text[32];
    fprintf(out, " %s |", pretty(value, text));
}

static void put_head(FILE *out, const struct workload *workload)
{
    unsigned columns = 10;
    fputs("| contender | events/s |", out);
    if (workload->kind == WORKLOAD_APPEND && workload->batch > 1) {
        fputs(" durable points/s |", out);
        columns++;
    }
    if (workload->settled && workload->kind == WORKLOAD_APPEND) {
        fputs(" events/s until caught up | of peer |", out);
        columns += 2;
    }
    fputs(" of raw | of best durable peer | p50 µs | p99 µs | max µs | CPU µs/event | device "
          "bytes | disk bytes | MiB | when acknowledged |\n| --- |",
          out);
    for (unsigned i = 0; i < columns; i++)
        fputs(" ---: |", out);
    fputs(" --- |\n", out);
}

static void put_contender(const struct report *report, const struct workload *workload,
                          const struct contender *contender, FILE *out)
{
    double rate = report_middle(report, workload, contender, row_rate);
    bool appends = workload->kind == WORKLOAD_APPEND;
    if (rate <= 0)
        return;
    fprintf(out, "| %s |", contender->name);
    put_cell(out, rate);
    if (appends && workload->batch > 1)
        put_cell(out, report_middle(report, workload, contender, call_rate));
    if (workload->settled && appends) {
        double settled = report_middle(report, workload, contender, row_settled_rate);
        put_cell(out, settled);
        put_cell(out, divide(settled, report_best(report, workload, PEERS)));
    }
    bool follows = workload->kind == WORKLOAD_FOLLOW; /* it is paced: rates say nothing */
    put_cell(out, follows ? 0 : divide(rate, report_best(report, workload, LIMITS)));
    put_cell(out, follows ? 0 : divide(rate, report_best(report, workload, PEERS)));
    put_cell(out, report_middle(report, workload, contender, row_p50_us));
    put_cell(out, report_middle(report, workload, contender, row_p99_us));
    put_cell(out, largest(report, workload, contender, max_us));
    put_cell(out, report_middle(report, workload, contender, row_cpu_us));
    put_cell(out, appends ? report_middle(report, workload, contender, device_ratio) : 0);
    put_cell(out, appends ? report_middle(report, workload, contender, disk_ratio) : 0);
    put_cell(out, largest(report, workload, contender, memory_mib));
    fprintf(out, " %s |\n", contender->promise);
}

/* Those that did not run, once each, with the reason. */
static void put_absent(const struct report *report, const struct workload *workload, FILE *out)
{
    const char *between = "\nNot here: ";
    for (size_t i = 0; i < report->count; i++) {
        const struct report_row *row = &report->rows[i];
        if (row->workload != workload || row->result.error[0] == '\0' ||
            (row->result.skipped && row->run > 1))
            continue;
        fprintf(out, "%s%s (%s%s)", between, row->contender->name,
                row->result.skipped ? "" : "FAILED: ", row->result.error);
        between = "; ";
    }
    if (*between == ';')
        fputs(".\n", out);
}

static void put_version_line(const struct report *report, FILE *out)
{
    char version[BENCH_VERSION_BYTES];
    const char *between = "Versions: ";
    const struct contender *const *at = NULL;
    while ((at = next_version(report, at, version)) != NULL) {
        fprintf(out, "%s%s %s", between, (*at)->name, version);
        between = ", ";
    }
    if (*between == ',')
        fputs(".\n\n", out);
}

static void put_preface(const struct report *report, FILE *out)
{
    const struct machine *machine = &report->machine;
    unsigned runs = 0;
    uint64_t most_free = 0;
    for (size_t i = 0; i < report->count; i++) {
        const struct report_row *row = &report->rows[i];
        runs = row->run > runs ? row->run : runs;
        most_free = row->result.free_bytes > most_free ? row->result.free_bytes : most_free;
    }
    fprintf(out,
            "# Beside what one would choose instead\n\n"
            "`%s`: medians of %u run%s, maxima over all of them. %s, %u cores, %.0f GB memory, %s, "
            "%s. Payloads of %.0f bytes on average, the same for all, seed %llu. Each run's "
            "events were read back and compared.\n\n",
            report->command, runs, runs == 1 ? "" : "s", machine->processor, machine->cores,
            (double)machine->memory_bytes / 1e9, machine->filesystem, machine->kernel,
            report->mean_bytes, (unsigned long long)report->seed);
    put_version_line(report, out);
    if (report->filled)
        fprintf(out,
                "Before each run free memory was taken for clean page cache; at most %.1f GB were "
                "left free. On a machine that gives free memory back to its host, a page that is "
                "used for the first time would slow all contenders alike.\n\n",
                (double)most_free / 1e9);
    else
        fputs("Memory was **not** filled with clean page cache before the runs: where the host "
              "takes free memory back, all of them may be slowed alike.\n\n",
              out);
    fprintf(out, "CPU is that of writers and servers; %.1f µs of it are the making of an event. ",
            report->making_us);
    fputs("Device bytes (what everybody wrote to the device until all was synced) and disk bytes "
          "are those for "
          "each payload byte. MiB: most anonymous memory, servers included.\n",
          out);
}

void report_markdown(const struct report *report, FILE *out)
{
    put_preface(report, out);
    for (size_t i = 0; i < report->count; i++) {
        const struct workload *workload = report->rows[i].workload;
        bool seen = false;
        for (size_t j = 0; j < i; j++)
            seen |= report->rows[j].workload == workload;
        if (seen)
            continue;
        fprintf(out, "\n## %s: %s\n\n", workload->name, workload->title);
        put_head(out, workload);
        for (const struct contender *const *at = contenders; *at != NULL; at++)
            put_contender(report, workload, *at, out);
        put_absent(report, workload, out);
    }
    report_goals(report, out);
}
