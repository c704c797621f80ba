/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/reduction_rows.h"
#include "tests/snapshot/fold.h"
#include "tests/support/runner.h"

#include <annal/reduce.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A reducer that remembers everything: a hash over all that it was given, and how often it was
 * called. */
struct sum {
    uint64_t events;
    uint64_t hash;
    char root[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

struct calls {
    unsigned inits, applies, saves, loads, frees;
    bool load_fails;
    uint64_t apply_fails_at;
    bool says_why;
};

static struct calls calls;

static void setup(void)
{
    calls = (struct calls){0};
    fixture_setup();
}

static annal_status sum_init(void *arg, annal_slice session, void **out_state, annal_error *err)
{
    struct sum *sum = calloc(1, sizeof *sum);
    (void)err;
    ((struct calls *)arg)->inits++;
    memcpy(sum->root, session.ptr, session.len);
    *out_state = sum;
    return ANNAL_OK;
}

static void add(struct sum *sum, annal_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        sum->hash = (sum->hash ^ (unsigned char)bytes.ptr[i]) * UINT64_C(0x100000001b3);
}

static annal_status sum_apply(void *arg, void *state, const annal_event *event, annal_error *err)
{
    struct calls *counted = arg;
    struct sum *sum = state;
    if (event->seq == counted->apply_fails_at) {
        if (counted->says_why)
            *err = (annal_error){.status = ANNAL_ERR_LIMIT, .message = "too much"};
        return ANNAL_ERR_LIMIT;
    }
    ck_assert_uint_eq(event->seq, sum->events + 1);
    counted->applies++;
    sum->events++;
    add(sum, event->type);
    add(sum, event->data);
    return ANNAL_OK;
}

static annal_status sum_save(void *arg, const void *state, annal_write_fn write, void *write_arg,
                             annal_error *err)
{
    (void)err;
    ((struct calls *)arg)->saves++;
    int verdict = write(write_arg, state, 8);
    if (verdict == 0)
        verdict = write(write_arg, (const char *)state + 8, sizeof(struct sum) - 8);
    return (annal_status)verdict;
}

static annal_status sum_load(void *arg, annal_slice session, annal_slice bytes, void **out_state,
                             annal_error *err)
{
    struct calls *counted = arg;
    struct sum *sum = malloc(sizeof *sum);
    (void)err;
    counted->loads++;
    ck_assert_uint_eq(bytes.len, sizeof *sum);
    memcpy(sum, bytes.ptr, sizeof *sum);
    ck_assert_int_eq(strncmp(sum->root, session.ptr, session.len), 0);
    if (counted->load_fails) {
        free(sum);
        return ANNAL_ERR_CORRUPT;
    }
    *out_state = sum;
    return ANNAL_OK;
}

static void sum_free(void *arg, void *state)
{
    ((struct calls *)arg)->frees++;
    free(state);
}

static annal_reducer reducer = {.name = "sum",
                                .version = 1,
                                .init = sum_init,
                                .apply = sum_apply,
                                .save = sum_save,
                                .load = sum_load,
                                .free = sum_free,
                                .arg = &calls};

static annal_moment at_seq(uint64_t seq)
{
    return (annal_moment){.kind = ANNAL_AT_SEQ, .seq = seq};
}

static struct sum reduce(annal_slice session, uint64_t seq, const annal_reduce_options *options,
                         annal_replay_info *out_info)
{
    void *state = NULL;
    calls = (struct calls){.load_fails = calls.load_fails};
    ck_ok(annal_replay_reduce(f.index, session, &reducer, at_seq(seq), options, &state, out_info,
                              err));
    struct sum sum = *(struct sum *)state;
    reducer.free(reducer.arg, state);
    ck_assert_uint_eq(sum.events, seq);
    ck_assert_uint_eq(calls.inits + calls.loads, 1 + calls.load_fails * calls.loads);
    return sum;
}

static const annal_reduce_options from_event_1 = {.no_snapshots = true};
static const annal_reduce_options every_50 = {.policy.every_events = 50};

static void ck_same(annal_slice session, uint64_t seq)
{
    struct sum quick = reduce(session, seq, &every_50, NULL);
    struct sum slow = reduce(session, seq, &from_event_1, NULL);
    ck_assert_mem_eq(&quick, &slow, sizeof quick);
}

START_TEST(a_reduction_starts_from_the_newest_saved_copy)
{
    annal_replay_info info;
    append_turns(&f, "s", 1, 320);
    reduce(S, 320, &every_50, &info);
    ck_assert_uint_eq(calls.saves, 6);
    ck_assert_uint_eq(info.snapshot_seq, 0);
    ck_assert_uint_eq(info.folded, 320);
    reduce(S, 320, &every_50, &info);
    ck_assert_uint_eq(info.snapshot_seq, 300);
    ck_assert_uint_eq(calls.applies, 20);
    ck_assert_uint_eq(calls.saves, 0);
    reduce(S, 199, &every_50, &info);
    ck_assert_uint_eq(info.snapshot_seq, 150);
    for (uint64_t seq = 0; seq <= 320; seq += 16)
        ck_same(S, seq);
    append_turns(&f, "s", 1000, 5);
    ck_same(S, 325);
}
END_TEST

START_TEST(copies_of_another_version_or_another_reducer_are_not_used)
{
    annal_replay_info info;
    append_turns(&f, "s", 1, 120);
    reduce(S, 120, &every_50, NULL);
    reducer.version = 2;
    reduce(S, 120, &every_50, &info);
    ck_assert_uint_eq(info.snapshot_seq, 0);
    reducer.version = 1;
    reduce(S, 120, &every_50, &info);
    ck_assert_uint_eq(info.snapshot_seq, 0); /* the copies of version 2 took their place */
    reducer.name = "other";
    reduce(S, 120, &every_50, &info);
    ck_assert_uint_eq(info.snapshot_seq, 0);
    reducer.name = "sum";
    reduce(S, 120, &every_50, &info);
    ck_assert_uint_eq(info.snapshot_seq, 100);
}
END_TEST

START_TEST(a_fork_uses_the_copies_of_its_ancestors_up_to_its_fork_point)
{
    annal_replay_info info;
    append_turns(&f, "s", 1, 220);
    reduce(S, 220, &every_50, NULL);
    ck_ok(annal_session_fork(f.store, S, 170, ANNAL_SLICE("child"), NULL, NULL, err));
    append_turns(&f, "child", 5000, 100);
    struct sum there = reduce(ANNAL_SLICE("child"), 170, &every_50, &info);
    ck_assert_uint_eq(info.snapshot_seq, 150);
    struct sum here = reduce(S, 170, &from_event_1, NULL);
    ck_assert_mem_eq(&there, &here, sizeof here);
    ck_assert_str_eq(there.root, "s");
    for (uint64_t seq = 140; seq <= 270; seq += 13)
        ck_same(ANNAL_SLICE("child"), seq);
    reduce(ANNAL_SLICE("child"), 270, &every_50, &info);
    ck_assert_uint_eq(info.snapshot_seq, 250);
    ck_same(S, 220);
}
END_TEST

START_TEST(a_damaged_or_foreign_copy_is_skipped)
{
    annal_replay_info info;
    annal__reduction_row row;
    uint64_t every;
    append_turns(&f, "s", 1, 120);
    reduce(S, 120, &every_50, NULL);
    ck_ok(annal__reduction_newest(f.index, S, ANNAL_SLICE("sum"), 1, 120, &row, err));
    ck_assert_uint_eq(row.seq, 100);
    char *bytes = malloc(row.state.len);
    memcpy(bytes, row.state.ptr, row.state.len);
    annal_free(row.state.ptr);
    row.state.ptr = bytes;
    bytes[row.state.len - 1] ^= 1;
    ck_ok(annal__reduction_put(f.index, &row, 1 << 20, 1000, &every, err));
    reduce(S, 120, &every_50, &info);
    ck_assert_uint_eq(info.snapshot_seq, 50);
    bytes[row.state.len - 1] ^= 1;
    row.h ^= 1;
    ck_ok(annal__reduction_put(f.index, &row, 1 << 20, 1000, &every, err));
    reduce(S, 120, &every_50, &info);
    ck_assert_uint_eq(info.snapshot_seq, 50);
    free(bytes);
    calls.load_fails = true;
    reduce(S, 120, &every_50, &info);
    ck_assert_uint_eq(info.snapshot_seq, 0);
    ck_assert_uint_gt(calls.loads, 0);
}
END_TEST

START_TEST(copies_stay_below_their_limit_and_evenly_spread)
{
    const annal_reduce_options tight = {.policy = {.every_events = 10, .bytes_max = 1000}};
    annal_replay_info info;
    append_turns(&f, "s", 1, 1000);
    reduce(S, 1000, &tight, NULL);
    ck_sql(
        &f,
        "SELECT sum(length(state)) <= 1000, count(*) > 3, count(DISTINCT every) FROM _reductions",
        "1|1|1\n");
    char *every = fixture_sql(&f, "SELECT max(every) FROM _reductions");
    uint64_t distance = strtoull(every, NULL, 10);
    free(every);
    ck_assert_uint_ge(distance, 20);
    for (uint64_t seq = distance * 2; seq <= 1000; seq += 77) {
        const annal_reduce_options look = {.policy = {.every_events = 5000, .bytes_max = 1 << 20}};
        reduce(S, seq, &look, &info);
        ck_assert_uint_le(info.folded, 2 * distance);
        ck_assert_uint_eq(calls.saves, 0);
    }
}
END_TEST

/* Put rows of 20 bytes at 100, 200, ..., with a limit for all together. */
static void put_rows(unsigned count, uint64_t bytes_max)
{
    uint64_t every = 0;
    for (unsigned i = 1; i <= count; i++) {
        annal__reduction_row row = {.session = S,
                                    .reducer = ANNAL_SLICE("r"),
                                    .version = 1,
                                    .every = 100,
                                    .seq = 100ull * i,
                                    .state = ANNAL_SLICE("12345678901234567890")};
        ck_ok(annal__reduction_put(f.index, &row, bytes_max, 1000, &every, err));
    }
}

START_TEST(copies_are_thinned_to_the_limit_and_a_too_large_copy_is_refused)
{
    annal__reduction_row large = {.session = S,
                                  .reducer = ANNAL_SLICE("r"),
                                  .version = 1,
                                  .every = 100,
                                  .seq = 2000,
                                  .state = ANNAL_SLICE("1234567890123456789012345678901234567890"
                                                       "123456789012345678901")};
    uint64_t every = 0;
    put_rows(16, 60);
    ck_sql(&f, "SELECT count(*), max(seq), max(every) FROM _reductions", "3|1600|800\n");
    ck_assert_int_eq(annal__reduction_put(f.index, &large, 60, 1000, &every, NULL),
                     ANNAL_ERR_LIMIT);
    ck_sql(&f, "SELECT count(*), max(seq) FROM _reductions", "3|1600\n");
}
END_TEST

START_TEST(a_too_large_copy_is_retried_at_growing_distances)
{
    const annal_reduce_options none = {.policy = {.every_events = 10, .bytes_max = 1}};
    append_turns(&f, "s", 1, 1000);
    reduce(S, 1000, &none, NULL);
    ck_assert_uint_eq(calls.saves, 6); /* at 10, 30, 70, 150, 310, 630 */
    ck_sql(&f, "SELECT count(*) FROM _reductions", "0\n");
}
END_TEST

START_TEST(the_status_of_a_failed_reducer_function_is_returned)
{
    void *state = NULL;
    annal_error why = {0};
    append_turns(&f, "s", 1, 20);
    calls.apply_fails_at = 7;
    ck_assert_int_eq(
        annal_replay_reduce(f.index, S, &reducer, at_seq(20), NULL, &state, NULL, &why),
        ANNAL_ERR_LIMIT);
    ck_assert_str_eq(why.message, "apply of reducer 'sum' failed");
    ck_assert_uint_eq(calls.frees, 1);
    ck_assert_ptr_null(state);
    calls.says_why = true;
    ck_assert_int_eq(
        annal_replay_reduce(f.index, S, &reducer, at_seq(20), NULL, &state, NULL, &why),
        ANNAL_ERR_LIMIT);
    ck_assert_str_eq(why.message, "too much");
    annal_reducer nameless = reducer;
    nameless.name = "a b";
    ck_assert_int_eq(
        annal_replay_reduce(f.index, S, &nameless, at_seq(20), NULL, &state, NULL, NULL),
        ANNAL_ERR_INVALID);
    nameless = reducer;
    nameless.apply = NULL;
    ck_assert_int_eq(
        annal_replay_reduce(f.index, S, &nameless, at_seq(20), NULL, &state, NULL, NULL),
        ANNAL_ERR_INVALID);
    ck_assert_int_eq(annal_replay_reduce(f.index, ANNAL_SLICE("no"), &reducer, at_seq(0), NULL,
                                         &state, NULL, NULL),
                     ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(
        annal_replay_reduce(f.index, S, &reducer, at_seq(21), NULL, &state, NULL, NULL),
        ANNAL_ERR_NOTFOUND);
}
END_TEST

START_TEST(deleted_copies_are_saved_again_after_the_index_is_rebuilt)
{
    annal_replay_info info;
    append_turns(&f, "s", 1, 120);
    reduce(S, 120, &every_50, NULL);
    annal_index_close(f.index);
    ck_assert_int_eq(unlink(tmpdir_path(&f.dir, "store/sessions.db")), 0);
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    reduce(S, 120, &every_50, &info);
    ck_assert_uint_eq(info.snapshot_seq, 0);
    reduce(S, 120, &every_50, &info);
    ck_assert_uint_eq(info.snapshot_seq, 100);
}
END_TEST

Suite *suite_reducer(void)
{
    Suite *suite = suite_create("reducer");
    TCase *tc = suite_case(suite, "reducer", setup, fixture_teardown);
    tcase_add_test(tc, a_reduction_starts_from_the_newest_saved_copy);
    tcase_add_test(tc, copies_of_another_version_or_another_reducer_are_not_used);
    tcase_add_test(tc, a_fork_uses_the_copies_of_its_ancestors_up_to_its_fork_point);
    tcase_add_test(tc, a_damaged_or_foreign_copy_is_skipped);
    tcase_add_test(tc, copies_stay_below_their_limit_and_evenly_spread);
    tcase_add_test(tc, copies_are_thinned_to_the_limit_and_a_too_large_copy_is_refused);
    tcase_add_test(tc, a_too_large_copy_is_retried_at_growing_distances);
    tcase_add_test(tc, the_status_of_a_failed_reducer_function_is_returned);
    tcase_add_test(tc, deleted_copies_are_saved_again_after_the_index_is_rebuilt);
    return suite;
}
