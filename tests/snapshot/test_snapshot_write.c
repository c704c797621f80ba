/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/snapshot_write.h"
#include "snapshot/sys/snapshot.h"
#include "tests/snapshot/fold.h"
#include "tests/support/runner.h"

#include <stdlib.h>

/* Without a keeper appends do its work now and then: here they take no snapshots. */
static void setup(void)
{
    fixture_setup();
    fixture_reopen(&f, &(annal_index_options){.wait_ms = 120000, .no_snapshots = true});
}

static uint64_t catch_up(const annal_snapshot_policy *policy)
{
    uint64_t count = 77;
    ck_ok(annal__snapshot_catch_up(f.index, S, policy, &count, err));
    return count;
}

START_TEST(snapshots_are_at_the_boundaries_of_the_policy)
{
    fixture_append_many(&f, "s", 999, 0);
    ck_assert_uint_eq(catch_up(NULL), 0);
    ck_listed(&f, S, "");
    fixture_append_many(&f, "s", 1, 0);
    ck_assert_uint_eq(catch_up(NULL), 1);
    ck_listed(&f, S, "1000 ");
    fixture_append_many(&f, "s", 1, 0);
    ck_assert_uint_eq(catch_up(NULL), 0);
    fixture_append_many(&f, "s", 1499, 0);
    ck_assert_uint_eq(catch_up(NULL), 1);
    ck_listed(&f, S, "1000 2000 ");
    ck_newest(&f, S, UINT64_MAX, 2000);
}
END_TEST

/* Agents may note checkpoints; these do not decide when a snapshot is due. */
START_TEST(checkpoint_hints_do_not_change_when_a_snapshot_is_due)
{
    for (unsigned i = 0; i < 9; i++) {
        fixture_append_many(&f, "s", 100, 0);
        fixture_append(&f, "s", "checkpoint.noted", "{\"note\":\"5 tool calls\"}");
        ck_assert_uint_eq(catch_up(NULL), 0);
    }
    fixture_append_many(&f, "s", 90, 0);
    ck_assert_uint_eq(catch_up(NULL), 0);
    fixture_append(&f, "s", "checkpoint.noted", "{\"note\":\"30 seconds\"}");
    ck_assert_uint_eq(catch_up(NULL), 1);
    ck_listed(&f, S, "1000 ");
}
END_TEST

START_TEST(a_session_imported_at_once_gets_a_snapshot_at_every_due_place)
{
    fixture_append_many(&f, "s", 2500, 0);
    ck_assert_uint_eq(catch_up(NULL), 2);
    ck_listed(&f, S, "1000 2000 ");
    ck_newest(&f, S, 1999, 1000);
}
END_TEST

START_TEST(bytes_of_the_journal_make_a_snapshot_due)
{
    append_turns(&f, "s", 1, 300);
    ck_assert_uint_ge(catch_up(&(annal_snapshot_policy){.every_bytes = 30000}), 2);
}
END_TEST

START_TEST(a_snapshot_on_request_is_taken_once_at_the_end)
{
    annal_snapshot_info first, again;
    fixture_append_session(&f, "s");
    ck_ok(annal_snapshot_take(f.index, S, NULL, &first, err));
    ck_assert_uint_eq(first.seq, 8);
    ck_assert_uint_gt(first.raw_bytes, first.bytes);
    ck_assert_uint_eq(first.base_seq, 0);
    ck_ok(annal_snapshot_take(f.index, S, NULL, &again, err));
    ck_assert_int_eq(first.created_us, again.created_us);
    ck_listed(&f, S, "8 ");
    ck_newest(&f, S, UINT64_MAX, 8);
}
END_TEST

START_TEST(a_missing_session_has_no_snapshot_to_take)
{
    annal_snapshot_info info;
    uint64_t count;
    ck_assert_int_eq(annal_snapshot_take(f.index, S, NULL, &info, NULL), ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(annal__snapshot_catch_up(f.index, S, NULL, &count, NULL), ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(annal_snapshot_take(f.index, ANNAL_SLICE("../x"), NULL, &info, NULL),
                     ANNAL_ERR_INVALID);
}
END_TEST

struct sum {
    uint64_t bytes, raw_bytes, count;
};

static int add_up(void *arg, annal_slice session, const annal_snapshot_info *info,
                  const char *problem)
{
    (void)session;
    struct sum *sum = arg;
    ck_assert_ptr_null(problem);
    sum->bytes += info->bytes;
    sum->raw_bytes = info->raw_bytes;
    sum->count++;
    return 0;
}

/* Four times the events: if each were stored whole, sixteen times the bytes. */
START_TEST(all_snapshots_together_do_not_grow_with_the_square)
{
    const annal_snapshot_policy policy = {.every_events = 50};
    struct sum small = {0}, large = {0};
    append_turns(&f, "s", 1, 600);
    (void)catch_up(&policy);
    ck_ok(annal_snapshot_each(f.index, S, add_up, &small, err));
    append_turns(&f, "s", 1000, 1800);
    (void)catch_up(&policy);
    ck_ok(annal_snapshot_each(f.index, S, add_up, &large, err));
    ck_assert_uint_ge(small.count, 4);
    ck_assert_uint_ge(large.count, 2 * small.count);
    ck_assert_uint_lt(large.bytes, 7 * small.bytes);
}
END_TEST

START_TEST(a_fold_skips_damage_in_the_journal)
{
    append_turns(&f, "s", 1, 120);
    ck_ok(annal_store_checkpoint(f.store, err));
    size_t len;
    const char *path = tmpdir_path(&f.dir, "store/events/s.jsonl");
    char *bytes = file_read(path, &len);
    bytes[len / 2] ^= 1;
    file_write(path, bytes, len);
    free(bytes);
    (void)catch_up(&(annal_snapshot_policy){.every_events = 100});
    ck_newest(&f, S, UINT64_MAX, 100);
}
END_TEST

/* Numbers are multiples of the stride, and each is where folding says. */
START_TEST(snapshots_above_their_limit_of_bytes_are_thinned_and_the_rest_is_sound)
{
    const annal_snapshot_policy policy = {.every_events = 50, .bytes_max = 200000};
    struct sum sum = {0};
    for (unsigned i = 0; i < 6; i++) {
        append_turns(&f, "s", 1 + i * 1000, 600);
        (void)catch_up(&policy);
    }
    ck_ok(annal_snapshot_each(f.index, S, add_up, &sum, err));
    ck_assert_uint_le(sum.bytes, policy.bytes_max);
    ck_assert_uint_ge(sum.count, 3);
    ck_assert_uint_le(sum.count, 3600 / 50 / 2);
    uint64_t seq = 3600, last = UINT64_MAX;
    for (char *json; (json = loaded_json(&f, S, seq, &seq)) != NULL; seq--) {
        free(json);
        ck_newest(&f, S, seq, seq);
        ck_assert_uint_lt(seq, last);
        last = seq;
    }
}
END_TEST

START_TEST(snapshots_never_exceed_bytes_max)
{
    for (uint64_t most = 1000; most <= 256000; most *= 2) {
        const annal_snapshot_policy policy = {.every_events = 50, .bytes_max = most};
        ck_ok(annal_snapshot_drop(f.index, S, err));
        for (unsigned i = 0; i < 3; i++) {
            struct sum sum = {0};
            append_turns(&f, "s", 1 + (unsigned)most + i * 1000, 100);
            (void)catch_up(&policy);
            ck_ok(annal_snapshot_each(f.index, S, add_up, &sum, err));
            ck_assert_uint_le(sum.bytes, most);
        }
    }
}
END_TEST

START_TEST(a_too_large_snapshot_is_refused_and_retried_at_growing_distances)
{
    const annal_snapshot_policy tight = {.every_events = 10, .bytes_max = 1000};
    struct snapshot_writer writer;
    annal_snapshot_info info;
    append_turns(&f, "s", 1, 1000);
    ck_ok(annal__snapshot_write_init(&writer, f.index, S, &tight, false, 1000, NULL, err));
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK)
        status = annal__snapshot_write_step(&writer, NULL);
    ck_assert_int_eq(status, ANNAL_END);
    ck_assert_uint_eq(writer.patience, 256);
    ck_assert_uint_ge(writer.refused_seq, 900); /* 640 events after the previous attempt */
    annal__snapshot_write_done(&writer);
    ck_assert_int_eq(annal_snapshot_take(f.index, S, &tight, &info, NULL), ANNAL_ERR_LIMIT);
    ck_listed(&f, S, "");
    ck_ok(annal_snapshot_take(f.index, S, NULL, &info, err));
}
END_TEST

static const annal_snapshot_policy every_100 = {.every_events = 100};

/* Event 100 has a snapshot; snapshots at 200 and 300 are due. */
static void begin_behind_one_snapshot(struct snapshot_writer *writer)
{
    append_turns(&f, "s", 1, 150);
    ck_assert_uint_eq(catch_up(&every_100), 1);
    append_turns(&f, "s", 1000, 200);
    ck_ok(annal__snapshot_write_init(writer, f.index, S, &every_100, false, 1000, NULL, err));
}

/* A is on its way when B takes the same ones, and others that are stored against them. */
START_TEST(snapshots_taken_by_another_process_in_the_meantime_stay)
{
    struct snapshot_writer a;
    annal_status status = ANNAL_OK;
    begin_behind_one_snapshot(&a);

    ck_ok(annal_snapshot_drop(f.index, S, err));
    ck_assert_uint_eq(catch_up(&every_100), 3);
    annal_slice before = row_get(&f, 200);
    while (status == ANNAL_OK)
        status = annal__snapshot_write_step(&a, NULL);
    ck_assert_int_eq(status, ANNAL_END);
    ck_assert_uint_eq(a.taken, 0);
    annal__snapshot_write_done(&a);
    annal_slice after = row_get(&f, 200);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_mem_eq(before.ptr, after.ptr, before.len);
    ck_listed(&f, S, "100 200 300 ");
    annal_free(before.ptr);
    annal_free(after.ptr);
}
END_TEST

/* Writer A works while another process rebuilds the index, which drops the snapshot that A would
 * store against. */
START_TEST(no_snapshot_is_stored_against_a_deleted_snapshot)
{
    struct snapshot_writer a;
    annal_status status = ANNAL_OK;
    begin_behind_one_snapshot(&a);
    ck_ok(annal_snapshot_drop(f.index, S, err));
    while (status == ANNAL_OK)
        status = annal__snapshot_write_step(&a, NULL);
    ck_assert_int_eq(status, ANNAL_END);
    annal__snapshot_write_done(&a);
    ck_listed(&f, S, "100 200 300 ");
    ck_newest(&f, S, UINT64_MAX, 300); /* sound, and all below it */
}
END_TEST

Suite *suite_snapshot_write(void)
{
    Suite *suite = suite_create("snapshot_write");
    TCase *tc = suite_case(suite, "take", setup, fixture_teardown);
    tcase_add_test(tc, snapshots_are_at_the_boundaries_of_the_policy);
    tcase_add_test(tc, checkpoint_hints_do_not_change_when_a_snapshot_is_due);
    tcase_add_test(tc, a_session_imported_at_once_gets_a_snapshot_at_every_due_place);
    tcase_add_test(tc, bytes_of_the_journal_make_a_snapshot_due);
    tcase_add_test(tc, a_snapshot_on_request_is_taken_once_at_the_end);
    tcase_add_test(tc, a_missing_session_has_no_snapshot_to_take);
    tcase_add_test(tc, all_snapshots_together_do_not_grow_with_the_square);
    tcase_add_test(tc, snapshots_above_their_limit_of_bytes_are_thinned_and_the_rest_is_sound);
    tcase_add_test(tc, snapshots_never_exceed_bytes_max);
    tcase_add_test(tc, a_too_large_snapshot_is_refused_and_retried_at_growing_distances);
    tcase_add_test(tc, a_fold_skips_damage_in_the_journal);
    tcase_add_test(tc, snapshots_taken_by_another_process_in_the_meantime_stay);
    tcase_add_test(tc, no_snapshot_is_stored_against_a_deleted_snapshot);
    return suite;
}
