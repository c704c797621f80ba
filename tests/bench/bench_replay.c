/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of reading, compared with the least possible cost, pread of the same bytes without a
 * hash; and the cost of past states.
 *
 *   bench_replay [--past] DIR [ROUNDS]
 *
 * DIR is a store of bench_generate; sess_000 is read.
 *   read     in order, every hash checked: from the page cache (warm) and from the disk (cold)
 *   places   50 events at a random place, 10,000 times: with one cursor that seeks, and with a new
 *            cursor for each place
 *   last     the last 50 events, with a new cursor
 *   newest   the state after the last event, with one query; take the snapshots before
 *   past     the same at 20 random places: medians and the worst
 *   snapshots  their number and size, also as a share of the journal
 * Cases take turns in rounds, so that other programs on a shared machine disturb all of them
 * equally. Prints one JSON object: medians. --past omits the cases of reading.
 */
#include "tests/bench/generate.h"
#include "tests/bench/past.h"
#include "tests/support/random.h"

#include <annal/journal.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 101
#define BARE_BYTES ((size_t)1 << 20)
#define PLACES     10000u
#define RUN        50u /* events at each place */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void die(const char *what, const annal_error *err)
{
    fprintf(stderr, "bench_replay: %s: %s\n", what, err == NULL ? "failed" : err->message);
    exit(3);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Of sorted values. */
static double quantile(double *values, size_t count, double share)
{
    qsort(values, count, sizeof *values, compare);
    return values[(size_t)(share * (double)(count - 1))];
}

struct bench {
    annal_store *store;
    annal_slice session;
    int fd; /* of its journal */
    uint64_t bytes;
    uint64_t events;
    uint64_t *offsets; /* of event seq; the last one is the end of the journal */
};

/* ---- In order ---- */

static double read_bare(const struct bench *bench, char *buffer)
{
    double start = now_s();
    uint64_t at = 0;
    ssize_t got;
    while ((got = pread(bench->fd, buffer, BARE_BYTES, (off_t)at)) > 0)
        at += (uint64_t)got;
    if (at != bench->bytes)
        die("pread", NULL);
    return now_s() - start;
}

static annal_cursor *open_cursor(const struct bench *bench, uint64_t seq)
{
    annal_cursor *cursor = NULL;
    annal_error err;
    if (annal_cursor_open(bench->store, bench->session, seq, &cursor, &err) < 0)
        die("open", &err);
    return cursor;
}

static void next(annal_cursor *cursor, annal_event *event, uint64_t seq)
{
    annal_error err = {0};
    if (annal_cursor_next(cursor, event, &err) != ANNAL_OK || event->seq != seq)
        die("read", &err);
}

static double read_all(const struct bench *bench)
{
    double start = now_s();
    annal_cursor *cursor = open_cursor(bench, 1);
    for (uint64_t seq = 1; seq <= bench->events; seq++) {
        annal_event event;
        next(cursor, &event, seq);
    }
    annal_cursor_close(cursor);
    return now_s() - start;
}

static void measure_order(const struct bench *bench, const char *name, bool cold, size_t rounds)
{
    double bare[ROUNDS_MAX], ours[ROUNDS_MAX], ratio[ROUNDS_MAX];
    char *buffer = malloc(BARE_BYTES);
    if (buffer == NULL)
        die("memory", NULL);
    memset(buffer, 1, BARE_BYTES);
    for (size_t i = 0; i < rounds; i++) {
        if (cold)
            posix_fadvise(bench->fd, 0, 0, POSIX_FADV_DONTNEED);
        bare[i] = (double)bench->bytes / read_bare(bench, buffer) / 1e9;
        if (cold)
            posix_fadvise(bench->fd, 0, 0, POSIX_FADV_DONTNEED);
        double seconds = read_all(bench);
        ours[i] = (double)bench->bytes / seconds / 1e9;
        ratio[i] = ours[i] / bare[i];
    }
    free(buffer);
    double rate = quantile(ours, rounds, 0.5);
    printf("\"%s\":{\"bare_gb_s\":%.2f,\"gb_s\":%.2f,\"events_s\":%.0f,\"to_bare\":%.2f}", name,
           quantile(bare, rounds, 0.5), rate,
           rate * 1e9 / (double)bench->bytes * (double)bench->events, quantile(ratio, rounds, 0.5));
}

/* ---- Places ---- */

static void places_bare(const struct bench *bench, uint64_t first, char *buffer)
{
    uint64_t from = bench->offsets[first], to = bench->offsets[first + RUN];
    if (pread(bench->fd, buffer, to - from, (off_t)from) != (ssize_t)(to - from))
        die("pread", NULL);
}

static void read_run(annal_cursor *cursor, uint64_t first)
{
    for (uint64_t seq = first; seq < first + RUN; seq++) {
        annal_event event;
        next(cursor, &event, seq);
    }
}

struct times {
    double bare[PLACES], seek[PLACES], open[PLACES];
};

static void measure_places(const struct bench *bench)
{
    struct random random = {20261120};
    struct times *times = malloc(sizeof *times);
    char *buffer = malloc(RUN * (size_t)(1 << 20));
    annal_cursor *cursor = open_cursor(bench, 1);
    if (times == NULL || buffer == NULL)
        die("memory", NULL);
    for (size_t i = 0; i < PLACES; i++) {
        uint64_t first = 1 + random_below(&random, bench->events - RUN);
        double start = now_s();
        places_bare(bench, first, buffer);
        times->bare[i] = now_s() - start;

        first = 1 + random_below(&random, bench->events - RUN);
        annal_error err;
        start = now_s();
        if (annal_cursor_seek(cursor, first, &err) < 0)
            die("seek", &err);
        read_run(cursor, first);
        times->seek[i] = now_s() - start;

        first = 1 + random_below(&random, bench->events - RUN);
        start = now_s();
        annal_cursor *fresh = open_cursor(bench, first);
        read_run(fresh, first);
        annal_cursor_close(fresh);
        times->open[i] = now_s() - start;
    }
    annal_cursor_close(cursor);
    free(buffer);
    double bare = quantile(times->bare, PLACES, 0.5), seek = quantile(times->seek, PLACES, 0.5);
    printf("\"places\":{\"bare_us\":%.1f,\"seek_us\":%.1f,\"seek_p99_us\":%.1f,\"open_us\":%.1f,"
           "\"to_bare\":%.2f}",
           bare * 1e6, seek * 1e6, quantile(times->seek, PLACES, 0.99) * 1e6,
           quantile(times->open, PLACES, 0.5) * 1e6, seek / bare);
    free(times);
}

static void measure_last(const struct bench *bench, size_t rounds)
{
    double times[ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++) {
        annal_error err;
        double start = now_s();
        annal_cursor *cursor = open_cursor(bench, 0);
        if (annal_cursor_last(cursor, RUN, &err) < 0)
            die("last", &err);
        read_run(cursor, bench->events - RUN + 1);
        annal_cursor_close(cursor);
        times[i] = now_s() - start;
    }
    printf("\"last\":{\"us\":%.1f}", quantile(times, rounds, 0.5) * 1e6);
}

/* ---- All ---- */

static void find_offsets(struct bench *bench)
{
    annal_cursor *cursor = open_cursor(bench, 1);
    bench->offsets = calloc(bench->events + 2, sizeof *bench->offsets);
    if (bench->offsets == NULL)
        die("memory", NULL);
    for (uint64_t seq = 1; seq <= bench->events; seq++) {
        annal_event event;
        next(cursor, &event, seq);
        bench->offsets[seq] = event.offset;
        bench->offsets[seq + 1] = event.offset + event.length;
    }
    annal_cursor_close(cursor);
}

static void measure_reading(struct bench *bench, size_t rounds)
{
    find_offsets(bench);
    putchar(',');
    measure_order(bench, "warm", false, rounds);
    putchar(',');
    measure_order(bench, "cold", true, rounds);
    putchar(',');
    measure_places(bench);
    putchar(',');
    measure_last(bench, rounds);
}

int main(int argc, char **argv)
{
    char path[4096], name[GENERATE_NAME_BYTES];
    annal_error err;
    annal_session_info info;
    struct bench bench = {.session = annal_slice_of(generate_name(0, name))};
    bool past_only = argc > 1 && strcmp(argv[1], "--past") == 0;
    argv += past_only;
    argc -= past_only;
    if (argc < 2) {
        fputs("usage: bench_replay [--past] DIR [ROUNDS]\n", stderr);
        return 2;
    }
    size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 9;
    if (rounds < 1 || rounds > ROUNDS_MAX)
        rounds = 9;
    if (annal_store_open(argv[1], &(annal_store_options){.read_only = true}, &bench.store, &err) <
            0 ||
        annal_session_info_get(bench.store, bench.session, &info, &err) < 0)
        die("open", &err);
    snprintf(path, sizeof path, "%s/events/%s.jsonl", argv[1], name);
    bench.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (bench.fd < 0)
        die(path, NULL);
    bench.bytes = info.bytes;
    bench.events = info.last_seq;

    printf("{\"events\":%llu,\"bytes\":%llu,", (unsigned long long)bench.events,
           (unsigned long long)bench.bytes);
    bool good = past_measure(argv[1], bench.session, bench.events);
    if (good && !past_only)
        measure_reading(&bench, rounds);
    puts("}");
    free(bench.offsets);
    close(bench.fd);
    return annal_store_close(bench.store, NULL) == ANNAL_OK && good ? 0 : 3;
}
