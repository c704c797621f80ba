/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of starting a process. Each round opens a store, opens the index, appends twice and
 * closes both: in a new store, in a store where another process left its slot, and with a new
 * session in each round. Prints the best and the median of each step, in microseconds.
 *
 *     bench_start [ROUNDS [DIR]]
 *
 * The stores are created in DIR (default: /tmp), which should be on a disk.
 */
#include "journal/base/clock.h"

#include <annal/index.h>
#include <annal/journal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 10000, STEPS = 5 };

static const char *const steps[STEPS] = {"open", "index", "append", "again", "close"};

static void must(annal_status status, const annal_error *err)
{
    if (status == ANNAL_OK)
        return;
    fprintf(stderr, "%s: %s\n", annal_status_name(status), err->message);
    exit(1);
}

static void measure(const char *dir, const char *session, int64_t took_us[STEPS])
{
    annal_error err = {0};
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_writer *writer = NULL;
    const annal_draft draft = {.type = ANNAL_SLICE("note.added"), .data = ANNAL_SLICE("{\"n\":1}")};
    uint64_t seq;
    int64_t at[STEPS + 1] = {annal__clock_monotonic_us()};
    must(annal_store_open(dir, &(annal_store_options){.create = true}, &store, &err), &err);
    at[1] = annal__clock_monotonic_us();
    must(annal_index_open(store, NULL, &index, &err), &err);
    must(annal_writer_open(store, annal_slice_of(session), NULL, &writer, &err), &err);
    for (int i = 2; i < 4; i++) {
        at[i] = annal__clock_monotonic_us();
        must(annal_writer_append(writer, &draft, 1, NULL, &seq, &err), &err);
    }
    at[4] = annal__clock_monotonic_us();
    annal_writer_close(writer);
    annal_index_close(index);
    must(annal_store_close(store, &err), &err);
    at[5] = annal__clock_monotonic_us();
    for (int i = 0; i < STEPS; i++)
        took_us[i] = at[i + 1] - at[i];
}

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static int run(const char *name, const char *parent, unsigned rounds, bool new_store,
               bool new_session)
{
    static int64_t took_us[STEPS][ROUNDS_MAX];
    char dir[600], command[700], session[20] = "s";
    snprintf(dir, sizeof dir, "%s/annal-bench-start-XXXXXX", parent);
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }
    snprintf(command, sizeof command, "rm -rf '%s'/*", dir);
    for (unsigned i = 0; i < rounds; i++) {
        int64_t one[STEPS];
        if (new_store && system(command) != 0)
            return 1;
        if (new_session)
            snprintf(session, sizeof session, "s%u", i);
        measure(dir, session, one);
        for (int step = 0; step < STEPS; step++)
            took_us[step][i] = one[step];
    }
    printf("%-14s", name);
    for (int step = 0; step < STEPS; step++) {
        qsort(took_us[step], rounds, sizeof took_us[step][0], by_size);
        printf(" %7lld %7lld", (long long)took_us[step][0], (long long)took_us[step][rounds / 2]);
    }
    printf("\n");
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100;
    const char *parent = argc > 2 ? argv[2] : "/tmp";
    if (rounds == 0 || rounds > ROUNDS_MAX)
        rounds = ROUNDS_MAX;
    printf("%-14s", "us: best, median");
    for (int step = 0; step < STEPS; step++)
        printf(" %15s", steps[step]);
    printf("\n");
    return run("a new store", parent, rounds, true, false) |
           run("an empty slot", parent, rounds, false, false) |
           run("a new session", parent, rounds, false, true);
}
