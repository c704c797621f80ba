/* SPDX-License-Identifier: Apache-2.0 */
#include "index/index.h"
#include "journal/store.h"
#include "snapshot/missing.h"
#include "snapshot/sys/snapshot.h"
#include "tests/snapshot/fold.h"
#include "tests/support/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static annal_snapshots *snapshots;

static void open_task(const annal_snapshot_policy *policy)
{
    ck_ok(annal_snapshots_open(f.index, policy, &snapshots, err));
}

static void setup(void)
{
    fixture_setup();
    snapshots = NULL;
}

static void teardown(void)
{
    annal_snapshots_close(snapshots);
    fixture_teardown();
}

/* 0: the session has no snapshot. */
static uint64_t last_listed(void)
{
    char *seqs = listed(&f, S), *end = strrchr(seqs, ' ');
    if (end != NULL)
        *end = '\0';
    const char *last = strrchr(seqs, ' ');
    uint64_t seq = strtoull(last == NULL ? seqs : last, NULL, 10);
    free(seqs);
    return seq;
}

/* Rounds of the keeper until the session's newest snapshot is at seq. */
static void keep_until(uint64_t seq)
{
    uint64_t got = 0;
    for (int i = 0; i < 15000 && last_listed() != seq; i++) {
        ck_ok(annal_store_keep(f.store, err));
        usleep(20000);
    }
    free(loaded_json(&f, S, UINT64_MAX, &got));
    ck_assert_uint_eq(got, seq);
}

START_TEST(the_keeper_takes_due_snapshots)
{
    open_task(NULL);
    append_turns(&f, "s", 1, 2500);
    keep_until(2000);
    ck_listed(&f, S, "1000 2000 ");
    ck_newest(&f, S, UINT64_MAX, 2000);
}
END_TEST

START_TEST(a_burst_is_followed_by_the_newest_snapshots_first)
{
    open_task(&(annal_snapshot_policy){.every_events = 100});
    append_turns(&f, "s", 1, 4050);
    keep_until(4000);
    char *seqs = listed(&f, S);
    size_t places = 0;
    for (const char *at = seqs; (at = strchr(at, ' ')) != NULL; at++)
        places++;
    ck_assert_uint_le(places, 20);
    free(seqs);
    ck_ok(annal_snapshot_drop(f.index, S, err));
    uint64_t count = 0;
    ck_ok(annal__snapshot_catch_up(f.index, S, &(annal_snapshot_policy){.every_events = 100},
                                   &count, err));
    ck_assert_uint_eq(count, 40);
}
END_TEST

START_TEST(a_single_event_waits_for_the_time_of_the_policy)
{
    open_task(&(annal_snapshot_policy){.every_ms = 1200});
    append_turns(&f, "s", 1, 1);
    usleep(1050000);
    ck_ok(annal_store_keep(f.store, err)); /* sees it */
    ck_ok(annal_store_keep(f.store, err));
    ck_listed(&f, S, "");
    keep_until(1);
    for (int i = 0; i < 3; i++) { /* idle, nothing new */
        usleep(500000);
        ck_ok(annal_store_keep(f.store, err));
    }
    ck_listed(&f, S, "1 ");
}
END_TEST

START_TEST(closing_takes_due_snapshots)
{
    open_task(&(annal_snapshot_policy){.every_events = 100});
    append_turns(&f, "s", 1, 250);
    append_turns(&f, "t", 1, 99);
    annal_snapshots_close(snapshots);
    snapshots = NULL;
    ck_listed(&f, S, "100 200 ");
    ck_listed(&f, ANNAL_SLICE("t"), "");
}
END_TEST

START_TEST(the_task_continues_after_the_existing_snapshots)
{
    const annal_snapshot_policy policy = {.every_events = 100};
    for (unsigned i = 1; i <= 3; i++) {
        open_task(&policy);
        append_turns(&f, "s", i * 1000, 150);
        annal_snapshots_close(snapshots);
        snapshots = NULL;
    }
    ck_listed(&f, S, "100 200 300 400 ");
    ck_newest(&f, S, UINT64_MAX, 400);
}
END_TEST

START_TEST(the_task_retries_later_while_another_process_writes_the_index)
{
    open_task(&(annal_snapshot_policy){.every_events = 100});
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err)); /* makes sessions.db */
    int lock = open(tmpdir_path(&f.dir, "store/locks/index"), O_RDWR | O_CREAT, 0600);
    ck_assert_int_eq(flock(lock, LOCK_EX), 0);
    append_turns(&f, "s", 1, 150);
    usleep(1050000);
    ck_ok(annal_store_keep(f.store, err));
    ck_listed(&f, S, "");
    close(lock);
    keep_until(100);
}
END_TEST

/* A run of the task without waiting until it is due. */
static annal_status run_once(void)
{
    const struct keeper *keeper = &f.store->keeper;
    const annal__keeper_task *task = &keeper->tasks[keeper->task_count - 1].task;
    ck_assert_str_eq(task->name, "take snapshots");
    return task->run(task->arg, NULL);
}

/* Run until the first snapshot is taken: on a slow machine one run is too short for that. */
static void run_until_taken(void)
{
    char *seqs = listed(&f, S);
    for (int i = 0; i < 200 && seqs[0] == '\0'; i++) {
        free(seqs);
        ck_assert_int_eq(run_once(), ANNAL_END); /* 50 events wait */
        seqs = listed(&f, S);
    }
    ck_assert_str_eq(seqs, "100 ");
    free(seqs);
}

START_TEST(a_lagging_index_delays_snapshots_for_a_limited_time)
{
    open_task(&(annal_snapshot_policy){.every_events = 100, .every_ms = 5000});
    append_turns(&f, "s", 1, 150);
    f.index->lags = true;
    ck_assert_int_eq(run_once(), ANNAL_END);
    ck_listed(&f, S, "");
    usleep(500000); /* a tenth of five seconds */
    run_until_taken();
}
END_TEST

START_TEST(a_due_checkpoint_does_not_wait_for_snapshots)
{
    open_task(&(annal_snapshot_policy){.every_events = 100});
    append_turns(&f, "s", 1, 150);
    f.store->commit.full = f.store->commit.released + 1;
    ck_assert_int_eq(run_once(), ANNAL_END);
    ck_listed(&f, S, "");
    f.store->commit.full = f.store->commit.released;
    run_until_taken();
}
END_TEST

/* What is listed as soon as there is something, or after ten seconds. */
static char *listed_soon(annal_slice session)
{
    char *seqs = listed(&f, session);
    for (int i = 0; i < 30000 && seqs[0] == '\0'; i++) {
        free(seqs);
        usleep(10000);
        seqs = listed(&f, session);
    }
    return seqs;
}

/* The keeper's thread, the index and two writers at once. */
START_TEST(beside_live_writers_every_snapshot_is_sound)
{
    annal_index_close(f.index);
    ck_ok(annal_store_close(f.store, err));
    ck_ok(annal_store_open(f.path, NULL, &f.store, err));
    ck_ok(annal_index_open(f.store, &(annal_index_options){.follow = true}, &f.index, err));
    open_task(&(annal_snapshot_policy){.every_events = 100, .every_ms = 100});
    for (unsigned i = 0; i < 30; i++) {
        append_turns(&f, "s", 1 + i * 1000, 60);
        append_turns(&f, "t", 1 + i * 1000, 30);
        usleep(50000);
    }
    free(listed_soon(S));
    free(listed_soon(ANNAL_SLICE("t")));
    annal_snapshots_close(snapshots);
    snapshots = NULL;
    char *of_s = listed(&f, S), *of_t = listed(&f, ANNAL_SLICE("t"));
    ck_assert_str_ne(of_s, "");
    ck_assert_str_ne(of_t, "");
    ck_assert_ptr_null(strchr(of_s, '!'));
    ck_assert_ptr_null(strchr(of_t, '!'));
    for (uint64_t seq = 300; seq <= 1800; seq += 500) {
        uint64_t got = 0;
        free(loaded_json(&f, S, seq, &got));
        ck_newest(&f, S, seq, got);
    }
    free(of_s);
    free(of_t);
}
END_TEST

START_TEST(a_read_only_store_takes_no_snapshot)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_snapshots *none = NULL;
    append_turns(&f, "s", 1, 10);
    ck_ok(annal_index_catch_up(f.index, S, NULL, err));
    ck_ok(annal_store_open(f.path, &(annal_store_options){.read_only = true}, &store, err));
    ck_ok(annal_index_open(store, NULL, &index, err));
    ck_assert_int_eq(annal_snapshots_open(index, NULL, &none, NULL), ANNAL_ERR_READONLY);
    annal_index_close(index);
    ck_ok(annal_store_close(store, err));
}
END_TEST

/* ---- Without being asked for ---- */

static void reopen_on(bool with_index, const struct seams *seams)
{
    const annal_store_options options = {.no_keeper = true};
    annal_index_close(f.index);
    f.index = NULL;
    ck_ok(annal_store_close(f.store, err));
    ck_ok(annal__store_open(f.path, &options, seams, &f.store, err));
    if (with_index)
        ck_ok(annal_index_open(f.store, NULL, &f.index, err));
}

static void reopen(bool with_index, const struct clock *clock)
{
    reopen_on(with_index, &(struct seams){.io = &annal__system_io, .clock = clock});
}

static int add_overdue(void *arg, const annal__snapshot_overdue *overdue)
{
    char line[100];
    snprintf(line, sizeof line, "%.*s %u ", ANNAL_FMT(overdue->session), (unsigned)overdue->events);
    text_add(arg, line, strlen(line));
    return 0;
}

#define ck_overdue(policy, expected)                                                               \
    do {                                                                                           \
        struct text text_ = {0};                                                                   \
        text_add(&text_, "", 0);                                                                   \
        ck_ok(annal__due_each(f.index, policy, add_overdue, &text_, err));                         \
        ck_assert_str_eq(text_.ptr, expected);                                                     \
        free(text_.ptr);                                                                           \
    } while (0)

START_TEST(an_open_index_takes_snapshots_by_itself)
{
    append_turns(&f, "s", 1, 2500);
    append_turns(&f, "t", 1, 999);
    reopen(true, &annal__system_clock);
    uint64_t got = 0; /* one at least, and more where there is time */
    free(loaded_json(&f, S, UINT64_MAX, &got));
    ck_assert(got == 1000 || got == 2000);
    ck_listed(&f, ANNAL_SLICE("t"), "");
    ck_ok(annal__snapshot_catch_up(f.index, S, NULL, NULL, err));
    ck_overdue(NULL, "");
    fixture_reopen(&f, &(annal_index_options){.no_snapshots = true});
    append_turns(&f, "t", 1000, 2);
    fixture_reopen(&f, NULL);
    ck_listed(&f, ANNAL_SLICE("t"), "");
    ck_overdue(NULL, "t 1001 ");
}
END_TEST

START_TEST(another_policy_replaces_the_default_policy)
{
    open_task(&(annal_snapshot_policy){.every_events = 5000});
    append_turns(&f, "s", 1, 2500);
    annal_snapshots_close(snapshots);
    snapshots = NULL;
    fixture_reopen(&f, NULL);
    ck_listed(&f, S, "");
}
END_TEST

/* An annal_session_fn. */
static int add_session(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    text_add(arg, session.ptr, session.len);
    text_add(arg, " ", 1);
    return 0;
}

/* The time that is to pass between two looks is over. */
static void let_look(void)
{
    (void)!unlink(tmpdir_path(&f.dir, "store/locks/snapshots"));
}

START_TEST(the_next_program_with_an_index_takes_overdue_snapshots)
{
    reopen(false, &annal__system_clock);
    append_turns(&f, "s", 1, 2500);
    reopen(true, &annal__system_clock);
    ck_overdue(NULL, "s 2500 ");
    ck_assert_int_ne(access(tmpdir_path(&f.dir, "store/sessions.db"), F_OK), 0);
    char *seqs = NULL;
    for (int i = 1; i <= 20 && (seqs == NULL || strcmp(seqs, "1000 2000 ") != 0); i++) {
        free(seqs);
        append_turns(&f, "t", (unsigned)i, 1); /* a process has 50 ms for one more at least */
        let_look();
        reopen(true, &annal__system_clock);
        seqs = listed(&f, S);
        ck_assert_str_ne(seqs, "");
    }
    ck_assert_str_eq(seqs, "1000 2000 ");
    free(seqs);
    ck_overdue(NULL, "");
}
END_TEST

static int64_t wall_now_us;

static int64_t wall_of_test(void *arg)
{
    (void)arg;
    return wall_now_us;
}

static const annal_snapshot_policy every_ten = {
    .every_events = 10, .every_bytes = UINT64_MAX, .every_ms = UINT64_MAX};

/* Search for up to us microseconds, an hour after the last search if `later`; returns the result as
 * text. */
static char *looked(int64_t us, bool later)
{
    struct text seen = {0};
    text_add(&seen, "", 0);
    wall_now_us += later ? 3600000000 : 0;
    annal__missing_look(f.index, &every_ten, us, add_session, &seen);
    return seen.ptr;
}

#define ck_looked(us, later, expected)                                                             \
    do {                                                                                           \
        char *seen_ = looked(us, later);                                                           \
        ck_assert_str_eq(seen_, expected);                                                         \
        free(seen_);                                                                               \
    } while (0)

static bool is_full;

static ssize_t write_unless_full(void *arg, int fd, const void *bytes, size_t len, uint64_t offset)
{
    errno = ENOSPC;
    return is_full ? -1 : annal__system_io.pwrite(arg, fd, bytes, len, offset);
}

static void append_four(void)
{
    static struct clock clock; /* the store keeps pointers to these */
    static struct io io;
    wall_now_us = annal__system_clock.wall_us(NULL);
    clock = annal__system_clock;
    clock.wall_us = wall_of_test;
    io = annal__system_io;
    io.pwrite = write_unless_full;
    is_full = false;
    reopen_on(true, &(struct seams){.io = &io, .clock = &clock});
    append_turns(&f, "a", 1, 10);
    append_turns(&f, "b", 1, 10);
    append_turns(&f, "c", 1, 9);
    append_turns(&f, "d", 1, 10);
}

START_TEST(the_search_for_overdue_snapshots_takes_turns_and_resumes)
{
    append_four();
    ck_looked(0, true, "a ");      /* one at least, however long the list took */
    ck_looked(5000000, false, ""); /* it is not its turn */
    ck_looked(0, true, "b ");
    ck_looked(0, true, "");
    ck_looked(0, true, "d ");
    ck_looked(5000000, true, "a b d ");
}
END_TEST

START_TEST(a_turn_that_is_torn_or_in_the_future_is_taken_again)
{
    append_four();
    for (const char *const *line =
             (const char *const[]){"", "99", "\n", "x b\n", "5 b\n", "00000000000000000001 b",
                                   "09000000000000000000 \n", NULL};
         *line != NULL; line++) {
        file_write(tmpdir_path(&f.dir, "store/locks/snapshots"), *line, strlen(*line));
        ck_looked(5000000, false, "a b d ");
    }
    file_write(tmpdir_path(&f.dir, "store/locks/snapshots"), "00000000000000000001 b\nd\n", 25);
    ck_looked(5000000, false, "b d ");
}
END_TEST

START_TEST(no_process_searches_when_the_turn_cannot_be_written)
{
    append_four();
    is_full = true;
    ck_looked(5000000, true, "");
    is_full = false;
    ck_looked(5000000, true, "a b d ");
}
END_TEST

START_TEST(the_second_of_two_indexes_continues_after_the_first_closes)
{
    annal_index *second = NULL;
    reopen(true, &annal__system_clock);
    ck_ok(annal_index_open(f.store, NULL, &second, err));
    annal_index_close(f.index);
    f.index = second;
    append_turns(&f, "s", 1, 1000);
    keep_until(1000);
}
END_TEST

START_TEST(the_keeper_wakes_for_the_remaining_index)
{
    annal_index *second = NULL;
    annal_index_close(f.index);
    ck_ok(annal_store_close(f.store, err));
    ck_ok(annal_store_open(f.path, NULL, &f.store, err));
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    ck_ok(annal_index_open(f.store, NULL, &second, err));
    annal_index_close(f.index);
    f.index = second;
    append_turns(&f, "s", 1, 1000);
    char *seqs = listed(&f, S);
    for (int i = 0; i < 30000 && *seqs == '\0'; i++) {
        free(seqs);
        usleep(10000);
        seqs = listed(&f, S);
    }
    ck_assert_str_eq(seqs, "1000 ");
    free(seqs);
}
END_TEST

START_TEST(another_policy_suspends_the_default_policy_of_another_index)
{
    annal_index *second = NULL;
    reopen(true, &annal__system_clock);
    ck_ok(annal_index_open(f.store, NULL, &second, err));
    open_task(&(annal_snapshot_policy){.every_events = 700});
    append_turns(&f, "s", 1, 1100);
    keep_until(700);
    annal_index_close(second); /* it gave way, and takes none at the end */
    annal_snapshots_close(snapshots);
    snapshots = NULL;
    ck_listed(&f, S, "700 ");
}
END_TEST

START_TEST(closing_another_policy_resumes_the_default_policy_of_another_index)
{
    annal_index *second = NULL;
    reopen(true, &annal__system_clock);
    ck_ok(annal_index_open(f.store, NULL, &second, err));
    open_task(&(annal_snapshot_policy){.every_events = 5000});
    append_turns(&f, "s", 1, 1000);
    annal_snapshots_close(snapshots);
    snapshots = NULL;
    ck_listed(&f, S, "");
    keep_until(1000);
    annal_index_close(second);
}
END_TEST

static int64_t six_minutes_ago(void *arg)
{
    return annal__system_clock.wall_us(arg) - 360000000;
}

START_TEST(an_event_that_waited_five_minutes_is_covered_by_the_next_process)
{
    struct clock past = annal__system_clock;
    past.wall_us = six_minutes_ago;
    reopen(true, &past);
    append_turns(&f, "s", 1, 3);
    reopen(true, &annal__system_clock);
    ck_listed(&f, S, "");
    ck_overdue(NULL, "s 3 ");
    append_turns(&f, "t", 1, 1);
    let_look();
    reopen(true, &annal__system_clock);
    ck_listed(&f, S, "3 ");
    ck_listed(&f, ANNAL_SLICE("t"), "");
    append_turns(&f, "s", 10, 1); /* waits only now */
    let_look();
    reopen(true, &annal__system_clock);
    ck_listed(&f, S, "3 ");
    ck_overdue(NULL, "");
}
END_TEST

START_TEST(a_too_large_snapshot_is_not_retried_by_every_process)
{
    const annal_snapshot_policy tight = {.every_events = 100, .bytes_max = 200};
    open_task(&tight);
    append_turns(&f, "s", 1, 150);
    ck_overdue(&tight, "s 150 ");
    annal_snapshots_close(snapshots);
    snapshots = NULL;
    ck_listed(&f, S, "");
    ck_overdue(&tight, "");
    append_turns(&f, "s", 1000, 349);
    ck_overdue(&tight, "");
    append_turns(&f, "s", 2000, 1); /* four times as far on as where it did not fit */
    ck_overdue(&tight, "s 400 ");
}
END_TEST

Suite *suite_snapshot_task(void)
{
    Suite *suite = suite_create("snapshot_task");
    TCase *tc = suite_case(suite, "snapshot_task", setup, teardown);
    tcase_add_test(tc, the_keeper_takes_due_snapshots);
    tcase_add_test(tc, a_burst_is_followed_by_the_newest_snapshots_first);
    tcase_add_test(tc, a_single_event_waits_for_the_time_of_the_policy);
    tcase_add_test(tc, closing_takes_due_snapshots);
    tcase_add_test(tc, the_task_continues_after_the_existing_snapshots);
    tcase_add_test(tc, the_task_retries_later_while_another_process_writes_the_index);
    tcase_add_test(tc, a_lagging_index_delays_snapshots_for_a_limited_time);
    tcase_add_test(tc, a_due_checkpoint_does_not_wait_for_snapshots);
    tcase_add_test(tc, beside_live_writers_every_snapshot_is_sound);
    tcase_add_test(tc, a_read_only_store_takes_no_snapshot);
    tcase_add_test(tc, an_open_index_takes_snapshots_by_itself);
    tcase_add_test(tc, another_policy_replaces_the_default_policy);
    tcase_add_test(tc, the_next_program_with_an_index_takes_overdue_snapshots);
    tcase_add_test(tc, the_search_for_overdue_snapshots_takes_turns_and_resumes);
    tcase_add_test(tc, a_turn_that_is_torn_or_in_the_future_is_taken_again);
    tcase_add_test(tc, no_process_searches_when_the_turn_cannot_be_written);
    tcase_add_test(tc, the_second_of_two_indexes_continues_after_the_first_closes);
    tcase_add_test(tc, the_keeper_wakes_for_the_remaining_index);
    tcase_add_test(tc, another_policy_suspends_the_default_policy_of_another_index);
    tcase_add_test(tc, closing_another_policy_resumes_the_default_policy_of_another_index);
    tcase_add_test(tc, an_event_that_waited_five_minutes_is_covered_by_the_next_process);
    tcase_add_test(tc, a_too_large_snapshot_is_not_retried_by_every_process);
    return suite;
}
