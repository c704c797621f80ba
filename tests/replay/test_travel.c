/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/sys/snapshot.h"
#include "tests/snapshot/fold.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <annal/replay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static annal_moment at_seq(uint64_t seq)
{
    return (annal_moment){.kind = ANNAL_AT_SEQ, .seq = seq};
}

static uint64_t travel_seq(annal_travel *travel)
{
    uint64_t seq = UINT64_MAX;
    (void)annal_travel_state(travel, &seq);
    return seq;
}

/* Check that the travel shows the state after event seq. */
static void ck_here(annal_travel *travel, uint64_t seq)
{
    struct text text = {0};
    ck_assert_uint_eq(travel_seq(travel), seq);
    ck_ok(annal_state_json(annal_travel_state(travel, NULL), text_write, &text, err));
    char *folded = folded_json(&f, S, seq);
    ck_assert_str_eq(text.ptr, folded);
    free(folded);
    free(text.ptr);
}

static annal_travel *travel_open(annal_moment at)
{
    annal_travel *travel = NULL;
    ck_ok(annal_travel_open(f.index, S, at, NULL, &travel, err));
    return travel;
}

START_TEST(each_step_forward_and_back_shows_the_state_at_its_event)
{
    fixture_append_session(&f, "s");
    annal_travel *travel = travel_open(at_seq(0));
    for (uint64_t seq = 0; seq < 8; seq++) {
        ck_here(travel, seq);
        ck_ok(annal_travel_step(travel, 1, err));
    }
    ck_assert_int_eq(annal_travel_step(travel, 1, NULL), ANNAL_END);
    for (uint64_t seq = 8; seq > 0; seq--) {
        ck_here(travel, seq);
        ck_ok(annal_travel_step(travel, -1, err));
    }
    ck_here(travel, 0);
    ck_assert_int_eq(annal_travel_step(travel, -1, NULL), ANNAL_END);
    ck_assert_int_eq(annal_travel_step(travel, INT64_MIN, NULL), ANNAL_END);
    ck_here(travel, 0);
    annal_travel_close(travel);
}
END_TEST

static void wander(annal_travel *travel, uint64_t last, struct random *random, int moves)
{
    for (int i = 0; i < moves; i++) {
        uint64_t seq = travel_seq(travel), far = random_below(random, last + 1);
        int64_t step = (int64_t)random_below(random, 200) - 100;
        if (random_below(random, 3) == 0) {
            ck_ok(annal_travel_seek(travel, at_seq(far), err));
            ck_here(travel, far);
        } else if ((int64_t)seq + step < 0 || seq + (uint64_t)step > last) {
            ck_assert_int_eq(annal_travel_step(travel, step, NULL), ANNAL_END);
            ck_assert_uint_eq(travel_seq(travel), seq);
        } else {
            ck_ok(annal_travel_step(travel, step, err));
            ck_here(travel, seq + (uint64_t)step);
        }
    }
}

START_TEST(every_move_in_a_long_session_shows_the_right_state)
{
    struct random random = random_init(17);
    const unsigned events = full_or(3000, 1500);
    const int steps = (int)full_or(25, 10);
    append_turns(&f, "s", 1, events);
    annal_travel *travel = travel_open((annal_moment){0});
    wander(travel, events, &random, steps); /* without snapshots */
    ck_ok(annal__snapshot_catch_up(f.index, S, &(annal_snapshot_policy){.every_events = 350}, NULL,
                                   err));
    wander(travel, events, &random, steps);
    annal_travel_close(travel);
}
END_TEST

/* Through all keyframes, and beyond the window, before which no keyframes exist. */
START_TEST(many_steps_back_show_each_state)
{
    append_turns(&f, "s", 1, 1500);
    annal_travel *travel = travel_open((annal_moment){0});
    for (uint64_t seq = 1500; seq > 400; seq -= 50) {
        ck_here(travel, seq);
        for (int i = 0; i < 50; i++)
            ck_ok(annal_travel_step(travel, -1, err));
    }
    annal_travel_close(travel);
}
END_TEST

/* From keyframes that were left on the way, far before the window. */
START_TEST(a_long_leap_back_shows_the_state_at_its_event)
{
    static const uint64_t places[] = {4500, 2100, 4900, 2000};
    append_turns(&f, "s", 1, 5000);
    annal_travel *travel = travel_open((annal_moment){0});
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        ck_ok(annal_travel_seek(travel, at_seq(places[i]), err));
        ck_here(travel, places[i]);
    }
    annal_travel_close(travel);
}
END_TEST

START_TEST(a_moment_that_does_not_exist_changes_nothing)
{
    annal_travel *travel = NULL;
    fixture_append_session(&f, "s");
    ck_assert_int_eq(annal_travel_open(f.index, ANNAL_SLICE("no"), at_seq(0), NULL, &travel, NULL),
                     ANNAL_ERR_NOTFOUND);
    travel = travel_open(at_seq(5));
    ck_assert_int_eq(annal_travel_seek(travel, at_seq(9), NULL), ANNAL_ERR_NOTFOUND);
    ck_here(travel, 5);
    fixture_append(&f, "s", "a.one", "{}");
    ck_ok(annal_travel_seek(travel, at_seq(9), err)); /* now it does */
    ck_here(travel, 9);
    annal_travel_close(travel);
}
END_TEST

Suite *suite_travel(void)
{
    Suite *suite = suite_create("travel");
    TCase *tc = suite_case(suite, "travel", fixture_setup, fixture_teardown);
    tcase_add_test(tc, each_step_forward_and_back_shows_the_state_at_its_event);
    tcase_add_test(tc, every_move_in_a_long_session_shows_the_right_state);
    tcase_add_long_test(tc, many_steps_back_show_each_state);
    tcase_add_long_test(tc, a_long_leap_back_shows_the_state_at_its_event);
    tcase_add_test(tc, a_moment_that_does_not_exist_changes_nothing);
    return suite;
}
