/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soak [ROUNDS [SEED [FIRST [SECONDS]]]]: the kill test, with as many rounds as wanted.
 *
 * Store n of a seed always runs the same way, as far as the scheduler allows: level, ids and
 * moments depend on seed and n. The program prints its progress, with the arguments that repeat it.
 */
#include "tests/crash/kill.h"
#include "tests/support/runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STORE_ROUNDS 20
#define PRINT_EVERY  50 /* stores */

static struct {
    uint64_t rounds;
    uint64_t seed;
    uint64_t first;
    uint64_t seconds;
} wanted = {.rounds = 100000, .seed = 1, .seconds = UINT64_MAX};

static struct kill_counts counts;

/* the current store */
static struct {
    uint64_t number;
    annal_level level;
    annal_format format;
    bool with_ids;
} playing;

static uint64_t seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

static void print_failure(void)
{
    static const char *const levels[] = {
        [ANNAL_LEVEL_SYNC] = "sync", [ANNAL_LEVEL_BATCH] = "batch", [ANNAL_LEVEL_OS] = "os"};
    printf("soak: store %" PRIu64 " of seed %" PRIu64 " failed: level %s, %s, %s ids\n",
           playing.number, wanted.seed, levels[playing.level],
           playing.format == ANNAL_FORMAT_JSON ? "JSON" : "msgpack",
           playing.with_ids ? "with" : "without");
}

static void print_counts(uint64_t next, uint64_t begun)
{
    printf("soak: %" PRIu64 " of %" PRIu64 " rounds, %" PRIu64 " stores, %" PRIu64
           " kills, %" PRIu64 " acknowledged events, none lost; %" PRIu64
           " s; go on with: seed %" PRIu64 " first %" PRIu64 "\n",
           counts.rounds, wanted.rounds, counts.stores, counts.kills, counts.acknowledged,
           seconds_now() - begun, wanted.seed, next);
    fflush(stdout);
}

START_TEST(acknowledged_events_survive_any_number_of_kills)
{
    uint64_t begun = seconds_now();
    uint64_t store = wanted.first;
    for (; counts.rounds < wanted.rounds && seconds_now() - begun < wanted.seconds; store++) {
        /* The levels by weight: sync is what is promised most. */
        static const annal_level levels[] = {ANNAL_LEVEL_SYNC, ANNAL_LEVEL_SYNC, ANNAL_LEVEL_BATCH,
                                             ANNAL_LEVEL_OS};
        struct random random = {.state = wanted.seed * UINT64_C(0x9e3779b97f4a7c15) + store};
        playing.number = store;
        playing.level = levels[random_below(&random, 4)];
        playing.format = random_below(&random, 2) == 0 ? ANNAL_FORMAT_JSON : ANNAL_FORMAT_MSGPACK;
        playing.with_ids = random_below(&random, 2) == 0;
        kill_play(playing.level, playing.format, playing.with_ids, STORE_ROUNDS, &random, &counts);
        if (counts.stores % PRINT_EVERY == 0)
            print_counts(store + 1, begun);
    }
    print_counts(store, begun);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1)
        wanted.rounds = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        wanted.seed = strtoull(argv[2], NULL, 10);
    if (argc > 3)
        wanted.first = strtoull(argv[3], NULL, 10);
    if (argc > 4)
        wanted.seconds = strtoull(argv[4], NULL, 10);
    Suite *suite = suite_create("soak");
    TCase *kills = suite_case(suite, "kill", NULL, NULL);
    tcase_add_test(kills, acknowledged_events_survive_any_number_of_kills);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* no time limit, and it prints as it goes */
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (failed > 0)
        print_failure();
    return failed == 0 ? 0 : 1;
}
