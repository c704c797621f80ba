/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/past.h"

#include "tests/support/random.h"

#include <annal/index.h>
#include <annal/replay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLACES       20
#define COMPARE_EACH 5 /* compare every fifth of the sorted places */

struct opened {
    double wall_ms, cpu_ms;
    uint64_t folded;
    long rss_kb;
    uint8_t hash[ANNAL_STATE_HASH_BYTES]; /* of those that are compared */
};

struct place {
    uint64_t seq;
    struct opened opened;
};

static double ms_of(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static bool failed(const char *what, const annal_error *err)
{
    fprintf(stderr, "bench_replay: %s: %s\n", what, err->message);
    return false;
}

static bool open_store(const char *dir, annal_store **out_store, annal_index **out_index)
{
    annal_error err;
    const annal_store_options read_only = {.read_only = true};
    if (annal_store_open(dir, &read_only, out_store, &err) < 0 ||
        annal_index_open(*out_store, NULL, out_index, &err) < 0)
        return failed("open", &err);
    return true;
}

static int ignore_row(void *arg, const annal_row *row)
{
    (void)arg;
    (void)row;
    return 0;
}

/* ---- Opened, in a process of its own ---- */

static bool open_here(const char *dir, annal_slice session, uint64_t seq, bool with_hash,
                      struct opened *out_opened)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_state *state = NULL;
    annal_replay_info info;
    annal_error err;
    struct rusage usage;
    double wall = ms_of(CLOCK_MONOTONIC), cpu = ms_of(CLOCK_PROCESS_CPUTIME_ID);
    if (!open_store(dir, &store, &index))
        return false;
    const annal_moment at = {.kind = ANNAL_AT_SEQ, .seq = seq};
    const annal_slice sql = ANNAL_SLICE("SELECT events FROM sessions");
    if (annal_replay_open(index, session, at, NULL, &state, &info, &err) < 0 ||
        annal_state_sql(state, sql, NULL, ignore_row, NULL, &err) < 0)
        return failed("state", &err);
    out_opened->wall_ms = ms_of(CLOCK_MONOTONIC) - wall;
    out_opened->cpu_ms = ms_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    out_opened->folded = info.folded;
    getrusage(RUSAGE_SELF, &usage);
    out_opened->rss_kb = usage.ru_maxrss;
    if (with_hash && annal_state_hash(state, out_opened->hash, &err) < 0)
        return failed("hash", &err);
    annal_state_free(state);
    annal_index_close(index);
    return annal_store_close(store, NULL) == ANNAL_OK;
}

static bool open_apart(const char *dir, annal_slice session, bool with_hash, struct place *place)
{
    int ends[2], status = 0;
    fflush(stdout);
    if (pipe(ends) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        struct opened opened = {0};
        bool good = open_here(dir, session, place->seq, with_hash, &opened) &&
                    write(ends[1], &opened, sizeof opened) == (ssize_t)sizeof opened;
        _exit(good ? 0 : 1);
    }
    close(ends[1]);
    bool good = child > 0 && read(ends[0], &place->opened, sizeof place->opened) ==
                                 (ssize_t)sizeof place->opened;
    close(ends[0]);
    if (child > 0)
        waitpid(child, &status, 0);
    return good && status == 0;
}

/* ---- Compared ---- */

static bool is_compared(size_t at)
{
    return at % COMPARE_EACH == 0;
}

static bool compare_with_fold(annal_index *index, annal_slice session, const struct place *places,
                              size_t count)
{
    annal_travel *travel = NULL;
    annal_error err;
    uint8_t hash[ANNAL_STATE_HASH_BYTES];
    const annal_replay_options fold = {.no_snapshots = true};
    annal_moment at = {.kind = ANNAL_AT_SEQ};
    if (annal_travel_open(index, session, at, &fold, &travel, &err) < 0)
        return failed("fold", &err);
    for (size_t i = 0; i < count; i++) {
        if (!is_compared(i))
            continue;
        at.seq = places[i].seq;
        if (annal_travel_seek(travel, at, &err) < 0 ||
            annal_state_hash(annal_travel_state(travel, NULL), hash, &err) < 0)
            return failed("fold", &err);
        if (memcmp(hash, places[i].opened.hash, sizeof hash) != 0) {
            fprintf(stderr, "bench_replay: the state at %llu differs from folding\n",
                    (unsigned long long)places[i].seq);
            return false;
        }
    }
    annal_travel_close(travel);
    return true;
}

/* ---- All ---- */

struct sum {
    uint64_t count, bytes;
};

static int add_snapshot(void *arg, annal_slice session, const annal_snapshot_info *info,
                        const char *problem)
{
    struct sum *sum = arg;
    (void)session;
    sum->count += problem == NULL;
    sum->bytes += info->bytes;
    return 0;
}

static int by_seq(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    return (a->seq > b->seq) - (a->seq < b->seq);
}

static int by_wall(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    return (a->opened.wall_ms > b->opened.wall_ms) - (a->opened.wall_ms < b->opened.wall_ms);
}

static int by_cpu(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    return (a->opened.cpu_ms > b->opened.cpu_ms) - (a->opened.cpu_ms < b->opened.cpu_ms);
}

static void print_past(struct place *places)
{
    long rss_kb = 0;
    uint64_t folded = 0;
    for (size_t i = 0; i < PLACES; i++) {
        const struct opened *opened = &places[i].opened;
        rss_kb = opened->rss_kb > rss_kb ? opened->rss_kb : rss_kb;
        folded = opened->folded > folded ? opened->folded : folded;
    }
    qsort(places, PLACES, sizeof *places, by_wall);
    printf("\"past\":{\"ms\":%.1f,\"worst_ms\":%.1f,", places[PLACES / 2].opened.wall_ms,
           places[PLACES - 1].opened.wall_ms);
    qsort(places, PLACES, sizeof *places, by_cpu);
    printf("\"cpu_ms\":%.1f,\"worst_cpu_ms\":%.1f,\"most_folded\":%llu,\"rss_kb\":%ld}",
           places[PLACES / 2].opened.cpu_ms, places[PLACES - 1].opened.cpu_ms,
           (unsigned long long)folded, rss_kb);
}

bool past_measure(const char *dir, annal_slice session, uint64_t last_seq)
{
    struct random random = {20261120};
    struct place places[PLACES + 1] = {{0}}; /* the newest place is the last */
    struct sum sum = {0};
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_session_info info;
    annal_error err;
    for (size_t i = 0; i < PLACES; i++)
        places[i].seq = 1 + random_below(&random, last_seq);
    places[PLACES].seq = last_seq;
    qsort(places, PLACES, sizeof *places, by_seq);
    for (size_t i = 0; i <= PLACES; i++)
        if (!open_apart(dir, session, is_compared(i), &places[i]))
            return false;
    if (!open_store(dir, &store, &index) || !compare_with_fold(index, session, places, PLACES + 1))
        return false;
    if (annal_session_info_get(store, session, &info, &err) < 0 ||
        annal_snapshot_each(index, session, add_snapshot, &sum, &err) < 0)
        return failed("snapshots", &err);
    const struct opened *newest = &places[PLACES].opened;
    printf("\"newest\":{\"ms\":%.1f,\"cpu_ms\":%.1f,\"rss_kb\":%ld},", newest->wall_ms,
           newest->cpu_ms, newest->rss_kb);
    print_past(places);
    printf(",\"snapshots\":{\"count\":%llu,\"bytes\":%llu,\"to_journal\":%.4f}",
           (unsigned long long)sum.count, (unsigned long long)sum.bytes,
           (double)sum.bytes / (double)info.bytes);
    annal_index_close(index);
    return annal_store_close(store, NULL) == ANNAL_OK;
}
