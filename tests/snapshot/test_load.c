/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/pack.h"
#include "journal/store.h"
#include "snapshot/container.h"
#include "snapshot/sys/snapshot.h"
#include "tests/snapshot/fold.h"
#include "tests/snapshot/plant.h"
#include "tests/support/failing_io.h"
#include "tests/support/runner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const annal_snapshot_policy every_100 = {.every_events = 100};

static void take(void)
{
    annal_snapshot_info info;
    ck_ok(annal_snapshot_take(f.index, S, &every_100, &info, err));
}

START_TEST(a_load_uses_the_newest_snapshot_up_to_a_seq)
{
    append_turns(&f, "s", 1, 350);
    ck_newest(&f, S, UINT64_MAX, 0);
    take();
    ck_listed(&f, S, "100 200 300 350 ");
    ck_newest(&f, S, 99, 0);
    ck_newest(&f, S, 100, 100);
    ck_newest(&f, S, 299, 200);
    ck_newest(&f, S, UINT64_MAX, 350);
}
END_TEST

START_TEST(a_flipped_byte_makes_a_load_use_an_older_snapshot_or_changes_nothing)
{
    append_turns(&f, "s", 1, 210);
    take(); /* 100, 200, 210; the last is stored against 200 */
    annal_slice row = row_get(&f, 210);
    char *flipped = malloc(row.len);
    char *sound = folded_json(&f, S, 210), *older = folded_json(&f, S, 200);
    for (size_t i = 0; i < row.len; i += i < SNAPSHOT_HEADER_BYTES + 20 ? 1 : 29) {
        uint64_t seq = 0;
        memcpy(flipped, row.ptr, row.len);
        flipped[i] ^= 0x40;
        row_put(&f, 210, (annal_slice){flipped, row.len});
        char *loaded = loaded_json(&f, S, UINT64_MAX, &seq);
        ck_assert_ptr_nonnull(loaded);
        ck_assert_str_eq(loaded, seq == 210 ? sound : older);
        ck_assert(i >= SNAPSHOT_HEADER_BYTES || seq == 200);
        free(loaded);
    }
    free(flipped);
    free(sound);
    free(older);
    annal_free(row.ptr);
}
END_TEST

START_TEST(a_truncated_row_makes_a_load_use_an_older_snapshot)
{
    append_turns(&f, "s", 1, 210);
    take();
    annal_slice row = row_get(&f, 210);
    for (size_t len = 0; len < row.len; len += 1 + len / 8) {
        uint64_t seq = 0;
        row_put(&f, 210, (annal_slice){row.ptr, len});
        char *loaded = loaded_json(&f, S, UINT64_MAX, &seq);
        ck_assert_uint_eq(seq, 200);
        free(loaded);
    }
    annal_free(row.ptr);
}
END_TEST

START_TEST(a_damaged_base_invalidates_the_snapshots_stored_against_it)
{
    append_turns(&f, "s", 1, 700);
    take(); /* numbers 1 to 7: 6 is stored against 4, 7 against 6, 5 against 4 */
    annal_slice row = row_get(&f, 600);
    char *flipped = malloc(row.len);
    memcpy(flipped, row.ptr, row.len);
    flipped[row.len - 1] ^= 1;
    row_put(&f, 600, (annal_slice){flipped, row.len});
    ck_listed(&f, S, "100 200 300 400 500 600! 700! ");
    ck_newest(&f, S, UINT64_MAX, 500);
    append_turns(&f, "s", 1000, 100);
    take(); /* what did not count is taken again */
    ck_listed(&f, S, "100 200 300 400 500 600 700 800 ");
    ck_newest(&f, S, UINT64_MAX, 800);
    free(flipped);
    annal_free(row.ptr);
}
END_TEST

START_TEST(a_snapshot_of_a_deleted_and_restarted_session_is_ignored)
{
    append_turns(&f, "s", 1, 120);
    take();
    annal_slice row = row_get(&f, 100);
    ck_ok(annal_store_close((annal_index_close(f.index), f.store), err));
    ck_assert_int_eq(unlink(tmpdir_path(&f.dir, "store/events/s.jsonl")), 0);
    fixture_open(&f);
    append_turns(&f, "s", 1, 120); /* the same events, in another journal */
    row_put(&f, 100, row);
    ck_listed(&f, S, "100! 120! ");
    ck_newest(&f, S, UINT64_MAX, 0);
    take();
    ck_listed(&f, S, "100 120 ");
    ck_newest(&f, S, UINT64_MAX, 120);
    annal_free(row.ptr);
}
END_TEST

START_TEST(a_snapshot_is_valid_only_for_the_packs_of_its_creation)
{
    annal_pack *core = NULL, *mine = NULL;
    annal_state *state = NULL;
    annal_cursor *cursor = NULL;
    append_turns(&f, "s", 1, 120);
    take();
    ck_ok(annal__pack_core(&core, err));
    ck_ok(annal_pack_parse("mine",
                           ANNAL_SLICE("-- pack mine   version 1   database state.db\n"
                                       "CREATE TABLE marks (seq INTEGER PRIMARY KEY);\n"
                                       "-- on turn.started\n"
                                       "INSERT INTO marks (seq) VALUES (:seq);\n"),
                           &mine, err));
    const annal_pack *both[] = {core, mine};
    ck_ok(annal__load_begin(f.index, S, UINT64_MAX, both, 2, &state, &cursor, err));
    ck_assert_uint_eq(annal_state_seq(state), 0);
    annal_state_free(state);
    annal_cursor_close(cursor);
    ck_ok(annal__load_begin(f.index, S, UINT64_MAX, both, 1, &state, &cursor, err));
    ck_assert_uint_eq(annal_state_seq(state), 120);
    annal_state_free(state);
    annal_cursor_close(cursor);
    annal_pack_free(mine);
    annal_pack_free(core);
}
END_TEST

/* The last one has no base: whoever plants it can store it whole. */
START_TEST(a_snapshot_with_planted_sql_is_ignored_and_replaced)
{
    append_turns(&f, "s", 1, 210);
    take();
    plant_snapshot(f.index, S, 210, plants[_i]);
    ck_listed(&f, S, "100 200 210! ");
    ck_newest(&f, S, UINT64_MAX, 200);
    append_turns(&f, "s", 1000, 10);
    take();
    ck_listed(&f, S, "100 200 220 ");
    ck_newest(&f, S, UINT64_MAX, 220);
}
END_TEST

START_TEST(a_snapshot_in_the_row_of_another_seq_is_ignored)
{
    append_turns(&f, "s", 1, 210);
    take();
    annal_slice row = row_get(&f, 200);
    row_put(&f, 210, row);
    ck_newest(&f, S, UINT64_MAX, 200);
    annal_free(row.ptr);
}
END_TEST

START_TEST(dropping_removes_all_snapshots_of_one_session_only)
{
    append_turns(&f, "s", 1, 120);
    append_turns(&f, "t", 1, 120);
    take();
    annal_snapshot_info info;
    ck_ok(annal_snapshot_take(f.index, ANNAL_SLICE("t"), NULL, &info, err));
    ck_ok(annal_snapshot_drop(f.index, S, err));
    ck_listed(&f, S, "");
    ck_listed(&f, ANNAL_SLICE("t"), "120 ");
    ck_ok(annal_snapshot_drop(f.index, (annal_slice){0}, err));
    ck_listed(&f, (annal_slice){0}, "");
}
END_TEST

START_TEST(a_missing_sessions_db_means_no_snapshots_and_no_failure)
{
    append_turns(&f, "s", 1, 120);
    take();
    ck_ok(annal_index_rebuild(f.index, NULL, err));
    ck_newest(&f, S, UINT64_MAX, 0);
    take();
    ck_newest(&f, S, UINT64_MAX, 120);
}
END_TEST

static void fork_at(const char *parent, uint64_t seq, const char *child)
{
    ck_ok(annal_session_fork(f.store, annal_slice_of(parent), seq, annal_slice_of(child), NULL,
                             NULL, err));
}

START_TEST(a_fork_uses_the_snapshots_of_its_ancestors_up_to_its_fork_point)
{
    const annal_slice t = ANNAL_SLICE("t"), u = ANNAL_SLICE("u");
    append_turns(&f, "s", 1, 350);
    take(); /* 100 200 300 350 */
    fork_at("s", 250, "t");
    append_turns(&f, "t", 1000, 10);
    fork_at("t", 260, "u");
    append_turns(&f, "u", 2000, 10);
    ck_newest(&f, t, UINT64_MAX, 200);
    ck_newest(&f, t, 199, 100);
    ck_newest(&f, u, UINT64_MAX, 200);
    fork_at("s", 300, "v"); /* at a snapshot */
    ck_newest(&f, ANNAL_SLICE("v"), UINT64_MAX, 300);
}
END_TEST

START_TEST(a_fork_has_its_own_snapshots_after_its_fork_point)
{
    const annal_slice t = ANNAL_SLICE("t");
    annal_snapshot_info info;
    append_turns(&f, "s", 1, 250);
    take();
    fork_at("s", 230, "t");
    ck_assert_int_eq(annal_snapshot_take(f.index, t, &every_100, &info, NULL), ANNAL_ERR_NOTFOUND);
    append_turns(&f, "t", 1000, 220);
    ck_ok(annal_snapshot_take(f.index, t, &every_100, &info, err));
    ck_assert_uint_eq(info.seq, 450);
    ck_newest(&f, t, UINT64_MAX, 450);
    ck_newest(&f, t, 230, 200);
    ck_listed(&f, S, "100 200 250 ");
    append_turns(&f, "t", 2000, 220);
    ck_ok(annal_snapshot_take(f.index, t, &every_100, &info, err));
    ck_newest(&f, t, UINT64_MAX, 670);
    ck_newest(&f, t, 460, 450);
}
END_TEST

static int ck_sound(void *arg, annal_slice session, const annal_snapshot_info *info,
                    const char *problem)
{
    (void)session;
    ck_assert_msg(problem == NULL && !info->stale, "at %u: %s", *(unsigned *)arg, problem);
    return 0;
}

START_TEST(an_unreadable_journal_does_not_make_a_snapshot_stale)
{
    static struct failing_io disk; /* the fixture closes the store */
    failing_io_init(&disk);
    disk.by_table = true;
    const struct seams seams = {&disk.io, &annal__system_clock, NULL};
    const annal_store_options options = {.no_keeper = true};
    append_turns(&f, "s", 1, 210);
    take();
    annal_index_close(f.index);
    ck_ok(annal_store_close(f.store, err));
    ck_ok(annal__store_open(f.path, &options, &seams, &f.store, err));
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        disk.calls = 0;
        disk.fail_at = at;
        annal_status status = annal_snapshot_each(f.index, S, ck_sound, &at, NULL);
        failed = disk.calls >= at;
        ck_assert(failed || status == ANNAL_OK);
    }
    disk.fail_at = 0;
}
END_TEST

Suite *suite_load(void)
{
    Suite *suite = suite_create("load");
    TCase *tc = suite_case(suite, "load", fixture_setup, fixture_teardown);
    tcase_add_test(tc, a_load_uses_the_newest_snapshot_up_to_a_seq);
    tcase_add_test(tc, a_flipped_byte_makes_a_load_use_an_older_snapshot_or_changes_nothing);
    tcase_add_test(tc, a_truncated_row_makes_a_load_use_an_older_snapshot);
    tcase_add_test(tc, a_damaged_base_invalidates_the_snapshots_stored_against_it);
    tcase_add_test(tc, a_snapshot_of_a_deleted_and_restarted_session_is_ignored);
    tcase_add_test(tc, a_snapshot_is_valid_only_for_the_packs_of_its_creation);
    tcase_add_loop_test(tc, a_snapshot_with_planted_sql_is_ignored_and_replaced, 0, PLANTS);
    tcase_add_test(tc, a_snapshot_in_the_row_of_another_seq_is_ignored);
    tcase_add_test(tc, an_unreadable_journal_does_not_make_a_snapshot_stale);
    tcase_add_test(tc, dropping_removes_all_snapshots_of_one_session_only);
    tcase_add_test(tc, a_fork_uses_the_snapshots_of_its_ancestors_up_to_its_fork_point);
    tcase_add_test(tc, a_fork_has_its_own_snapshots_after_its_fork_point);
    tcase_add_test(tc, a_missing_sessions_db_means_no_snapshots_and_no_failure);
    return suite;
}
