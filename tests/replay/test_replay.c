/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/snapshot_rows.h"
#include "snapshot/sys/snapshot.h"
#include "tests/snapshot/fold.h"
#include "tests/support/random.h"
#include "tests/support/real_logs.h"
#include "tests/support/runner.h"
#include "tools/import/import.h"

#include <annal/replay.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const annal_snapshot_policy every_100 = {.every_events = 100};

static void take(void)
{
    annal_snapshot_info info;
    ck_ok(annal_snapshot_take(f.index, S, &every_100, &info, err));
}

static annal_moment at_seq(uint64_t seq)
{
    return (annal_moment){.kind = ANNAL_AT_SEQ, .seq = seq};
}

static annal_moment at_time(int64_t time_us)
{
    return (annal_moment){.kind = ANNAL_AT_TIME, .time_us = time_us};
}

/* The state at a moment as JSON; free() it. out_info may be NULL. */
static char *replay(annal_slice session, annal_moment at, bool no_snapshots,
                    annal_replay_info *out_info)
{
    annal_state *state = NULL;
    struct text text = {0};
    const annal_replay_options options = {.no_snapshots = no_snapshots};
    ck_ok(annal_replay_open(f.index, session, at, &options, &state, out_info, err));
    ck_ok(annal_state_json(state, text_write, &text, err));
    annal_state_free(state);
    return text.ptr;
}

/* With snapshots, without them, and folded from event 1 by hand. */
static void ck_same(annal_slice session, uint64_t seq)
{
    annal_replay_info info;
    char *quick = replay(session, at_seq(seq), false, &info);
    char *slow = replay(session, at_seq(seq), true, NULL);
    char *folded = folded_json(&f, session, seq);
    ck_assert_uint_eq(info.seq, seq);
    ck_assert_uint_eq(info.snapshot_seq + info.folded + info.damaged, seq);
    ck_assert_str_eq(quick, slow);
    ck_assert_str_eq(quick, folded);
    free(quick);
    free(slow);
    free(folded);
}

START_TEST(every_past_state_is_the_same_with_all_snapshots_with_some_and_with_none)
{
    fixture_append_session(&f, "s");
    append_turns(&f, "s", 1, 52);
    const annal_snapshot_policy every_7 = {.every_events = 7};
    ck_ok(annal__snapshot_catch_up(f.index, S, &every_7, NULL, err));
    for (uint64_t seq = 0; seq <= 60; seq++)
        ck_same(S, seq);
    ck_ok(annal__snapshot_rows_delete(f.index, S, &(uint64_t){21}, 1, 1000, err));
    for (uint64_t seq = 20; seq <= 40; seq++)
        ck_same(S, seq);
    ck_ok(annal_snapshot_drop(f.index, S, err));
    ck_same(S, 60);
}
END_TEST

/* Written pages go to a temporary file several times. */
START_TEST(a_long_fold_gives_the_same_as_one_in_memory)
{
    append_turns(&f, "s", 1, 9000);
    char *long_fold = replay(S, at_seq(9000), true, NULL);
    char *in_memory = folded_json(&f, S, 9000);
    ck_assert_str_eq(long_fold, in_memory);
    free(long_fold);
    free(in_memory);
}
END_TEST

/* Pages of the snapshot are fetched and overwritten repeatedly. */
START_TEST(a_long_fold_over_a_snapshot_gives_the_same_as_one_in_memory)
{
    annal_replay_info info;
    append_turns(&f, "s", 1, 3000);
    take();
    append_turns(&f, "s", 1000, 9000); /* includes some turns of the first part */
    char *long_fold = replay(S, at_seq(12000), false, &info);
    char *in_memory = folded_json(&f, S, 12000);
    ck_assert_uint_eq(info.snapshot_seq, 3000);
    ck_assert_uint_eq(info.folded, 9000);
    ck_assert_str_eq(long_fold, in_memory);
    free(long_fold);
    free(in_memory);
}
END_TEST

START_TEST(replay_begins_with_the_newest_snapshot_up_to_the_moment)
{
    annal_replay_info info;
    append_turns(&f, "s", 1, 350);
    take(); /* 100 200 300 350 */
    free(replay(S, at_seq(299), false, &info));
    ck_assert_uint_eq(info.snapshot_seq, 200);
    ck_assert_uint_eq(info.folded, 99);
    free(replay(S, at_seq(300), false, &info));
    ck_assert_uint_eq(info.snapshot_seq, 300);
    ck_assert_uint_eq(info.folded, 0);
    free(replay(S, at_seq(300), true, &info));
    ck_assert_uint_eq(info.snapshot_seq, 0);
    append_turns(&f, "s", 1000, 5);
    free(replay(S, (annal_moment){.kind = ANNAL_AT_END}, false, &info));
    ck_assert_uint_eq(info.seq, 355);
    ck_assert_uint_eq(info.snapshot_seq, 350);
}
END_TEST

START_TEST(a_replayed_state_can_be_queried_and_extended)
{
    annal_state *state = NULL;
    annal_cursor *cursor = NULL;
    annal_event event;
    struct text text = {0};
    append_turns(&f, "s", 1, 210);
    take();
    ck_ok(annal_replay_open(f.index, S, at_seq(205), NULL, &state, NULL, err));
    ck_ok(annal_state_sql(state, ANNAL_SLICE("SELECT COUNT(*) FROM turns"), NULL, text_row, &text,
                          err));
    ck_assert_str_eq(text.ptr, "103\n");
    ck_ok(annal_cursor_open(f.store, S, 206, &cursor, err));
    while (annal_cursor_next(cursor, &event, NULL) == ANNAL_OK)
        ck_ok(annal_state_apply(state, &event, err));
    annal_cursor_close(cursor);
    free(text.ptr);
    text = (struct text){0};
    ck_ok(annal_state_json(state, text_write, &text, err));
    char *folded = folded_json(&f, S, 210);
    ck_assert_str_eq(text.ptr, folded);
    free(folded);
    free(text.ptr);
    annal_state_free(state);
}
END_TEST

START_TEST(a_moment_after_the_last_event_or_without_a_session_is_not_found)
{
    annal_state *state = NULL;
    uint64_t seq;
    append_turns(&f, "s", 1, 10);
    ck_assert_int_eq(annal_replay_open(f.index, S, at_seq(11), NULL, &state, NULL, NULL),
                     ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(
        annal_replay_open(f.index, ANNAL_SLICE("no"), at_seq(1), NULL, &state, NULL, NULL),
        ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(annal_replay_seq(f.index, ANNAL_SLICE("no"), at_time(5), &seq, NULL),
                     ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(annal_replay_seq(f.index, ANNAL_SLICE("../x"), at_time(5), &seq, NULL),
                     ANNAL_ERR_INVALID);
    ck_assert_ptr_null(state);
}
END_TEST

/* ---- Logs of agents ---- */

#define LOG_BYTES_MAX ((off_t)full_or(3 << 20, 1 << 19))

static void import(const char *kind, const char *folder, const char *name)
{
    char *path = NULL;
    struct importer importer;
    struct import_report report = {0};
    ck_assert(importer_find(kind, &importer));
    ck_assert_int_ge(asprintf(&path, "%s/%s", folder, name), 0);
    ck_ok(import_file(f.store, &importer, path, NULL, &report, err));
    import_report_done(&report);
    free(path);
}

/* Compare a few seqs of one session, with a snapshot every 50 events. */
static int sample(void *arg, annal_slice session, uint64_t bytes)
{
    const annal_snapshot_policy every_50 = {.every_events = 50};
    annal_replay_verify_result result;
    uint64_t last;
    (void)bytes;
    ck_ok(annal__snapshot_catch_up(f.index, session, &every_50, NULL, err));
    ck_ok(annal_replay_seq(f.index, session, (annal_moment){0}, &last, err));
    for (int i = 0; i < 4; i++)
        ck_same(session, 1 + random_below(arg, last));
    ck_same(session, last);
    ck_ok(annal_replay_verify(f.index, session, NULL, &result, err));
    ck_assert_uint_eq(result.findings, 0);
    return 0;
}

static const char *const kinds[] = {"codex", "claude-code"};

/* The kind's logs, up to LOG_BYTES_MAX in all. */
static void import_folder(const char *kind, const char *folder)
{
    struct dirent **names = NULL;
    off_t bytes = 0;
    int count = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        struct stat file;
        char *path = NULL;
        ck_assert_int_ge(asprintf(&path, "%s/%s", folder, names[i]->d_name), 0);
        const char *suffix = strrchr(names[i]->d_name, '.');
        if (suffix != NULL && strcmp(suffix, ".jsonl") == 0 && stat(path, &file) == 0 &&
            bytes + file.st_size <= LOG_BYTES_MAX) {
            bytes += file.st_size;
            import(kind, folder, names[i]->d_name);
        }
        free(path);
        free(names[i]);
    }
    free(names);
}

START_TEST(past_states_of_real_logs_do_not_depend_on_snapshots)
{
    struct random random = random_init(8);
    char *folder = real_logs(kinds[_i]);
    if (folder == NULL)
        return;
    import_folder(kinds[_i], folder);
    ck_assert_int_eq(annal_session_each(f.store, sample, &random, NULL), 0);
    free(folder);
}
END_TEST

START_TEST(past_states_of_the_logs_of_this_project_do_not_depend_on_snapshots)
{
    struct random random = random_init(9);
    char *folder = NULL;
    ck_assert_int_ge(asprintf(&folder, "%s/%s", TEST_DATA, kinds[_i]), 0);
    import_folder(kinds[_i], folder);
    ck_assert_int_eq(annal_session_each(f.store, sample, &random, NULL), 0);
    free(folder);
}
END_TEST

/* ---- Times ---- */

#define T0 1767684240000000

/* ts of events 1 to 5, in seconds; not in order */
static const int seconds[] = {10, 30, 20, 40, 35};

static const struct {
    int64_t time_us;
    uint64_t seq;
} times[] = {{T0 + 9999999, 0},  {T0 + 10000000, 1}, {T0 + 20000000, 3},
             {T0 + 30000000, 3}, {T0 + 34999999, 3}, {T0 + 35000000, 5},
             {T0 + 40000000, 5}, {INT64_MAX, 5},     {INT64_MIN, 0}};

static void append_out_of_order(void)
{
    for (size_t i = 0; i < 5; i++)
        fixture_append_at(&f, "s", "a.one", "{}", T0 + seconds[i] * 1000000LL);
}

START_TEST(the_state_at_a_time_is_the_state_at_the_last_seq_with_a_ts_up_to_it)
{
    uint64_t seq = 77;
    append_out_of_order();
    ck_ok(annal_replay_seq(f.index, S, at_time(times[_i].time_us), &seq, err));
    ck_assert_uint_eq(seq, times[_i].seq);
    char *by_time = replay(S, at_time(times[_i].time_us), false, NULL);
    char *by_seq = replay(S, at_seq(seq), true, NULL);
    ck_assert_str_eq(by_time, by_seq);
    free(by_time);
    free(by_seq);
}
END_TEST

START_TEST(a_time_in_a_fork_covers_its_whole_history)
{
    static const struct {
        int64_t after_us;
        uint64_t seq;
    } moments[] = {{-1, 0},      {0, 1},        {2500000, 3},  {3000000, 4}, {5000000, 6},
                   {7000000, 6}, {60000000, 7}, {60000001, 8}, {90000000, 9}};
    fixture_append_many(&f, "s", 8, T0);
    ck_ok(annal_session_fork(f.store, S, 6, ANNAL_SLICE("k"), NULL, NULL, err));
    fixture_append_at(&f, "k", "a.one", "{}", T0 + 60000000);
    fixture_append_at(&f, "k", "a.one", "{}", T0 + 60000001);
    ck_ok(annal_session_fork(f.store, ANNAL_SLICE("k"), 8, ANNAL_SLICE("l"), NULL, NULL, err));
    fixture_append_at(&f, "l", "a.one", "{}", T0 + 90000000);
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        annal_travel *travel = NULL;
        uint64_t seq = 77;
        annal_moment at = at_time(T0 + moments[i].after_us);
        ck_ok(annal_replay_seq(f.index, ANNAL_SLICE("l"), at, &seq, err));
        ck_assert_uint_eq(seq, moments[i].seq);
        char *by_time = replay(ANNAL_SLICE("l"), at, false, NULL);
        char *by_seq = replay(ANNAL_SLICE("l"), at_seq(seq), true, NULL);
        ck_assert_str_eq(by_time, by_seq);
        free(by_time);
        free(by_seq);
        ck_ok(annal_travel_open(f.index, ANNAL_SLICE("l"), (annal_moment){0}, NULL, &travel, err));
        ck_ok(annal_travel_seek(travel, at, err));
        ck_assert_ptr_nonnull(annal_travel_state(travel, &seq));
        ck_assert_uint_eq(seq, moments[i].seq);
        annal_travel_close(travel);
    }
}
END_TEST

START_TEST(a_time_is_found_in_the_journal_when_the_index_cannot_catch_up)
{
    fixture_reopen(&f, &(annal_index_options){.wait_ms = 20});
    append_out_of_order();
    ck_ok(annal_index_catch_up(f.index, S, NULL, err));
    fixture_append_at(&f, "s", "a.one", "{}", T0 + 15000000);
    int lock = open(tmpdir_path(&f.dir, "store/locks/index"), O_RDWR, 0600);
    ck_assert_int_eq(flock(lock, LOCK_EX), 0);
    uint64_t seq = 0;
    ck_ok(annal_replay_seq(f.index, S, at_time(T0 + 15000000), &seq, err));
    ck_assert_uint_eq(seq, 6);
    close(lock);
}
END_TEST

START_TEST(a_read_only_store_is_replayed_to_its_last_event)
{
    annal_store *store = f.store;
    annal_index *index = f.index;
    uint64_t seq = 0;
    append_turns(&f, "s", 1, 210);
    take();
    append_turns(&f, "s", 1000, 5); /* not indexed */
    char *expected = folded_json(&f, S, 215);
    ck_ok(annal_store_open(f.path, &(annal_store_options){.read_only = true}, &f.store, err));
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    ck_ok(annal_replay_seq(f.index, S, at_time(INT64_MAX), &seq, err));
    ck_assert_uint_eq(seq, 215);
    annal_replay_info info;
    char *json = replay(S, (annal_moment){0}, false, &info);
    ck_assert_uint_eq(info.snapshot_seq, 210);
    ck_assert_str_eq(json, expected);
    annal_index_close(f.index);
    ck_ok(annal_store_close(f.store, err));
    f.store = store;
    f.index = index;
    free(json);
    free(expected);
}
END_TEST

/* ---- Reducers ---- */

struct seen {
    uint64_t count, first, last, stop_at;
};

static annal_status see(void *arg, const annal_event *event, annal_error *err)
{
    struct seen *seen = arg;
    (void)err;
    seen->count++;
    if (seen->first == 0)
        seen->first = event->seq;
    seen->last = event->seq;
    return event->seq == seen->stop_at ? ANNAL_ERR_LIMIT : ANNAL_OK;
}

START_TEST(a_reducer_gets_the_events_of_a_range_in_order)
{
    struct seen all = {0}, some = {0}, stopped = {.stop_at = 5};
    append_turns(&f, "s", 1, 20);
    ck_ok(annal_replay_fold(f.store, S, 0, 0, see, &all, NULL, err));
    ck_assert_uint_eq(all.count, 20);
    ck_ok(annal_replay_fold(f.store, S, 7, 9, see, &some, NULL, err));
    ck_assert_uint_eq(some.count, 3);
    ck_assert_uint_eq(some.first, 7);
    ck_assert_uint_eq(some.last, 9);
    ck_assert_int_eq(annal_replay_fold(f.store, S, 1, 0, see, &stopped, NULL, NULL),
                     ANNAL_ERR_LIMIT);
    ck_assert_uint_eq(stopped.count, 5);
    ck_assert_int_eq(annal_replay_fold(f.store, ANNAL_SLICE("no"), 1, 0, see, &all, NULL, NULL),
                     ANNAL_ERR_NOTFOUND);
}
END_TEST

/* Change one byte of the journal. */
static void damage(double where)
{
    size_t len;
    const char *path = tmpdir_path(&f.dir, "store/events/s.jsonl");
    char *bytes = file_read(path, &len);
    bytes[(size_t)((double)len * where)] ^= 1;
    file_write(path, bytes, len);
    free(bytes);
}

START_TEST(a_damaged_event_changes_nothing_and_those_after_it_do)
{
    struct seen seen = {0};
    uint64_t damaged = 0;
    append_turns(&f, "s", 1, 120);
    ck_ok(annal_store_checkpoint(f.store, err));
    damage(0.5);
    ck_ok(annal_replay_fold(f.store, S, 1, 0, see, &seen, &damaged, err));
    ck_assert_uint_eq(seen.count + damaged, 120);
    ck_assert_uint_eq(seen.last, 120);
    ck_ok(annal__snapshot_catch_up(f.index, S, &every_100, NULL, err));
    ck_same(S, 120);
    ck_same(S, 110);
}
END_TEST

/* ---- Verify ---- */

struct findings {
    unsigned count;
    uint64_t seq;
};

static void note(void *arg, const annal_replay_finding *finding)
{
    struct findings *findings = arg;
    findings->count++;
    findings->seq = finding->seq;
    ck_assert_int_eq(strncmp(finding->session.ptr, "s", finding->session.len), 0);
    ck_assert_ptr_nonnull(finding->what);
}

START_TEST(verify_compares_every_snapshot_with_the_events)
{
    annal_replay_verify_result result;
    struct findings findings = {0};
    append_turns(&f, "s", 1, 350);
    take();
    ck_ok(annal_replay_verify(f.index, S,
                              &(annal_replay_verify_options){.finding = note, .arg = &findings},
                              &result, err));
    ck_assert_uint_eq(result.events, 350);
    ck_assert_uint_eq(result.snapshots, 4);
    ck_assert_uint_eq(result.findings, 0);
    ck_assert_uint_eq(findings.count, 0);
}
END_TEST

START_TEST(verify_names_a_snapshot_that_is_damaged)
{
    annal_replay_verify_result result;
    struct findings findings = {0};
    append_turns(&f, "s", 1, 250);
    take();
    annal_slice row = row_get(&f, 250);
    row_put(&f, 250, (annal_slice){row.ptr, row.len - 1});
    ck_ok(annal_replay_verify(f.index, S,
                              &(annal_replay_verify_options){.finding = note, .arg = &findings},
                              &result, err));
    ck_assert_uint_eq(result.findings, 1);
    ck_assert_uint_eq(findings.seq, 250);
    ck_assert_uint_eq(result.snapshots, 2);
    annal_free(row.ptr);
}
END_TEST

/* The event was sound when the snapshot was taken, and is not now. */
START_TEST(verify_names_a_snapshot_that_differs_from_its_events)
{
    annal_replay_verify_result result;
    struct findings findings = {0};
    append_turns(&f, "s", 1, 250);
    take();
    ck_ok(annal_store_checkpoint(f.store, err));
    damage(0.6);
    ck_ok(annal_replay_verify(f.index, S,
                              &(annal_replay_verify_options){.finding = note, .arg = &findings},
                              &result, err));
    ck_assert_uint_eq(result.findings, 3); /* 200, 250, and the answer */
    ck_assert_uint_eq(findings.seq, 250);
}
END_TEST

Suite *suite_replay(void)
{
    Suite *suite = suite_create("replay");
    TCase *tc = suite_case(suite, "replay", fixture_setup, fixture_teardown);
    tcase_add_test(tc, every_past_state_is_the_same_with_all_snapshots_with_some_and_with_none);
    tcase_add_test(tc, a_long_fold_gives_the_same_as_one_in_memory);
    tcase_add_test(tc, a_long_fold_over_a_snapshot_gives_the_same_as_one_in_memory);
    tcase_add_test(tc, replay_begins_with_the_newest_snapshot_up_to_the_moment);
    tcase_add_test(tc, a_replayed_state_can_be_queried_and_extended);
    tcase_add_test(tc, a_moment_after_the_last_event_or_without_a_session_is_not_found);
    tcase_add_loop_test(tc, past_states_of_real_logs_do_not_depend_on_snapshots, 0, 2);
    tcase_add_loop_test(tc, past_states_of_the_logs_of_this_project_do_not_depend_on_snapshots, 0,
                        2);
    tcase_add_loop_test(tc, the_state_at_a_time_is_the_state_at_the_last_seq_with_a_ts_up_to_it, 0,
                        (int)(sizeof times / sizeof *times));
    tcase_add_test(tc, a_time_in_a_fork_covers_its_whole_history);
    tcase_add_test(tc, a_time_is_found_in_the_journal_when_the_index_cannot_catch_up);
    tcase_add_test(tc, a_read_only_store_is_replayed_to_its_last_event);
    tcase_add_test(tc, a_reducer_gets_the_events_of_a_range_in_order);
    tcase_add_test(tc, a_damaged_event_changes_nothing_and_those_after_it_do);
    tcase_add_test(tc, verify_compares_every_snapshot_with_the_events);
    tcase_add_test(tc, verify_names_a_snapshot_that_is_damaged);
    tcase_add_test(tc, verify_names_a_snapshot_that_differs_from_its_events);
    return suite;
}
