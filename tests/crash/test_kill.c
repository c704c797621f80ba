/* SPDX-License-Identifier: Apache-2.0 */
/* 200 rounds of kill.h; `make soak` plays as many as one likes. */
#include "tests/crash/kill.h"
#include "tests/support/runner.h"

#define ROUNDS 10 /* of each store */

/* Every third store is kept as msgpack. */
#define FORMAT_OF(store) ((store) % 3 == 1 ? ANNAL_FORMAT_MSGPACK : ANNAL_FORMAT_JSON)

START_TEST(events_acknowledged_at_level_sync_survive_kill_9)
{
    struct random random = random_init(11);
    struct kill_counts counts = {.stores = 0};
    for (int store = 0; store < 8; store++)
        kill_play(ANNAL_LEVEL_SYNC, FORMAT_OF(store), false, ROUNDS, &random, &counts);
}
END_TEST

START_TEST(an_append_with_an_id_exists_exactly_once_after_kill_9_and_a_retry)
{
    struct random random = random_init(12);
    struct kill_counts counts = {.stores = 0};
    for (int store = 0; store < 6; store++)
        kill_play(store < 2 ? ANNAL_LEVEL_BATCH : ANNAL_LEVEL_SYNC, FORMAT_OF(store), true, ROUNDS,
                  &random, &counts);
}
END_TEST

START_TEST(events_covered_by_annal_sync_survive_kill_9)
{
    struct random random = random_init(13);
    struct kill_counts counts = {.stores = 0};
    for (int store = 0; store < 2; store++)
        kill_play(ANNAL_LEVEL_BATCH, FORMAT_OF(store), false, ROUNDS, &random, &counts);
}
END_TEST

START_TEST(level_os_survives_kill_9)
{
    struct random random = random_init(14);
    struct kill_counts counts = {.stores = 0};
    for (int store = 0; store < 4; store++)
        kill_play(ANNAL_LEVEL_OS, FORMAT_OF(store), store % 2 == 0, ROUNDS, &random, &counts);
}
END_TEST

Suite *suite_kill(void)
{
    Suite *suite = suite_create("kill");
    TCase *kills = suite_case(suite, "kill", NULL, NULL);
    tcase_add_test(kills, events_acknowledged_at_level_sync_survive_kill_9);
    tcase_add_test(kills, an_append_with_an_id_exists_exactly_once_after_kill_9_and_a_retry);
    tcase_add_test(kills, events_covered_by_annal_sync_survive_kill_9);
    tcase_add_test(kills, level_os_survives_kill_9);
    return suite;
}
