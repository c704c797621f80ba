/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/policy.h"

#include "tests/support/runner.h"

struct example {
    uint64_t last, here;       /* seq */
    uint64_t last_at, here_at; /* offset */
    uint64_t waited_ms;
    bool due, by_time;
};

static const struct example examples[] = {
    {0, 0, 0, 100, 86400000, false, false}, /* nothing ever */
    {0, 999, 0, 9000, 0, false, false},
    {0, 1000, 0, 9000, 0, true, false},
    {1000, 1001, 9000, 9010, 0, false, false},
    {1000, 1999, 9000, 18000, 299999, false, false},
    {1000, 2000, 9000, 18000, 0, true, false},
    {0, 1, 0, 100, 299999, false, false},
    {0, 1, 0, 100, 300000, false, true},
    {7, 7, 900, 900, 86400000, false, false}, /* idle for a day, nothing new */
    {7, 8, 900, 900 + (8u << 20) - 1, 0, false, false},
    {7, 8, 900, 900 + (8u << 20), 0, true, false},
};

START_TEST(a_snapshot_is_due_after_a_number_of_events_bytes_or_minutes)
{
    const struct example *e = &examples[_i];
    annal_snapshot_policy policy = annal__policy_fill(NULL);
    struct snapshot_mark last = {e->last, e->last_at}, here = {e->here, e->here_at};
    ck_assert_int_eq(annal__policy_is_due(&policy, last, here), e->due);
    ck_assert_int_eq(annal__policy_is_due_by_time(&policy, last, here, e->waited_ms), e->by_time);
}
END_TEST

START_TEST(a_zero_in_a_policy_means_the_default)
{
    annal_snapshot_policy policy = annal__policy_fill(&(annal_snapshot_policy){.every_events = 5});
    ck_assert_uint_eq(policy.every_events, 5);
    ck_assert_uint_eq(policy.every_bytes, 8u << 20);
    ck_assert_uint_eq(policy.every_ms, 300000);
}
END_TEST

/* Walk to event end with lines of 100 bytes; returns how many snapshots that leaves. */
static unsigned walk(uint64_t end, uint64_t raw_bytes, uint64_t *out_newest)
{
    annal_snapshot_policy policy = annal__policy_fill(NULL);
    struct snapshot_mark last = {0}, due = {0}, here = {0}, goal = {end, end * 100};
    unsigned count = 0;
    for (here.seq = 1; here.seq <= end; here.seq++) {
        here.offset = here.seq * 100;
        if (!annal__policy_is_due(&policy, due, here))
            continue;
        due = here;
        if (!annal__policy_take_here(&policy, last, here, goal, raw_bytes))
            continue;
        last = here;
        count++;
    }
    *out_newest = last.seq;
    return count;
}

START_TEST(a_walk_takes_a_snapshot_at_every_due_place)
{
    static const struct {
        uint64_t end, newest;
        unsigned count;
    } walks[] = {
        {999, 0, 0}, {1000, 1000, 1}, {1001, 1000, 1}, {2500, 2000, 2}, {50000, 50000, 50}};
    uint64_t newest;
    for (size_t i = 0; i < sizeof walks / sizeof *walks; i++) {
        ck_assert_uint_eq(walk(walks[i].end, 0, &newest), walks[i].count);
        ck_assert_uint_eq(newest, walks[i].newest);
    }
}
END_TEST

START_TEST(a_walk_with_a_large_state_skips_places_but_not_the_newest)
{
    uint64_t newest;
    /* a quarter of 4 MB is what 10,000 events take */
    ck_assert_uint_eq(walk(55500, 4000000, &newest), 6);
    ck_assert_uint_eq(newest, 55000);
    ck_assert_uint_eq(walk(2500, 4000000, &newest), 1);
    ck_assert_uint_eq(newest, 2000);
}
END_TEST

/* The keeper's walk; *out_seqs gets the places. */
static unsigned hurry(uint64_t end, uint64_t seqs[64])
{
    annal_snapshot_policy policy = annal__policy_fill(NULL);
    struct snapshot_mark last = {0}, due = {0}, here = {0}, goal = {end, end};
    unsigned count = 0;
    for (here.seq = 1; here.seq <= end; here.seq++) {
        here.offset = here.seq;
        if (!annal__policy_is_due(&policy, due, here))
            continue;
        due = here;
        if (annal__policy_skips_in_hurry(&policy, last, here, goal))
            continue;
        last = here;
        seqs[count++ % 64] = here.seq;
    }
    return count;
}

START_TEST(a_lagging_keeper_takes_a_snapshot_every_16000_events_and_the_last_eight)
{
    uint64_t seqs[64];
    ck_assert_uint_eq(hurry(7999, seqs), 7);
    ck_assert_uint_eq(hurry(20500, seqs), 9);
    ck_assert_uint_eq(seqs[0], 11000);
    ck_assert_uint_eq(seqs[8], 20000);
    ck_assert_uint_eq(hurry(100500, seqs), 14);
    ck_assert_uint_eq(seqs[0], 16000);
    ck_assert_uint_eq(seqs[1], 32000);
    ck_assert_uint_eq(seqs[5], 91000);
    ck_assert_uint_eq(seqs[13], 100000);
    ck_assert_uint_le(hurry(1000000, seqs), 1000000 / 16000 + 12);
}
END_TEST

Suite *suite_policy(void)
{
    Suite *suite = suite_create("policy");
    TCase *tc = suite_case(suite, "policy", NULL, NULL);
    tcase_add_loop_test(tc, a_snapshot_is_due_after_a_number_of_events_bytes_or_minutes, 0,
                        (int)(sizeof examples / sizeof *examples));
    tcase_add_test(tc, a_zero_in_a_policy_means_the_default);
    tcase_add_test(tc, a_walk_takes_a_snapshot_at_every_due_place);
    tcase_add_test(tc, a_walk_with_a_large_state_skips_places_but_not_the_newest);
    tcase_add_test(tc, a_lagging_keeper_takes_a_snapshot_every_16000_events_and_the_last_eight);
    return suite;
}
