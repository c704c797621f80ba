/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is stopped while it writes the index: readers answer from the existing tables, in
 * time. */
#include "index/index.h"
#include "index/sys/snapshot_rows.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"
#include "tests/support/stopped.h"

#include "journal/sys/seam.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_MS 80

static struct stopped stopped;

static void set_up(void)
{
    fixture_setup();
    fixture_append_session(&f, "s1");
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "8\n");
    fixture_append_session(&f, "s2");
}

static void tear_down(void)
{
    stopped_end(&stopped);
    fixture_teardown();
}

/* Stop in the middle of a transaction of SQLite, like the sqlite3 shell. */
static void begin_and_stop(void *arg)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(arg, &db) == SQLITE_OK &&
        sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK)
        raise(SIGSTOP);
}

/* Assert that a reader answers from the existing tables within the limit, and names the process. */
static void ck_answers(void)
{
    struct text text = {0};
    annal_lag lag = {0};
    annal_error err = {0};
    const annal_sql_options options = {.out_lag = &lag};
    int64_t begun_us = stopped_now_us();
    annal__store_limit_waits(f.store, LIMIT_MS);
    ck_assert_int_eq(annal_index_sql(f.index, ANNAL_SLICE("SELECT COUNT(*) FROM event_index"),
                                     &options, text_row, &text, &err),
                     ANNAL_OK);
    ck_in_time(begun_us, LIMIT_MS * 1000);
    ck_assert_str_eq(text.ptr, "8\n");
    ck_assert_uint_eq(lag.sessions, 1);
    ck_assert_msg(strstr(lag.message, stopped.who) != NULL, "%s", lag.message);
    free(text.ptr);
}

/* Assert that a catch-up without a time limit gives up within the limit of the store. */
static void ck_gives_up(void)
{
    annal_error err = {0};
    const annal_catch_up_options patient = {.timeout_ms = ANNAL_NO_TIMEOUT};
    int64_t begun_us = stopped_now_us();
    annal__store_limit_waits(f.store, LIMIT_MS);
    ck_assert_int_eq(annal_index_catch_up(f.index, (annal_slice){0}, &patient, &err),
                     ANNAL_ERR_BUSY);
    ck_assert_msg(strstr(err.message, stopped.who) != NULL, "%s", err.message);
    ck_in_time(begun_us, LIMIT_MS * 1000);
}

START_TEST(a_query_waits_for_a_stopped_owner_of_locks_index_up_to_its_limit_and_names_it)
{
    annal_error err = {0};
    const annal_catch_up_options patient = {.timeout_ms = ANNAL_NO_TIMEOUT};
    const char *lock = tmpdir_path(&f.dir, "store/locks/index");
    stopped_start_locked(&stopped, (const char *const[]){lock, NULL});
    ck_answers();
    ck_gives_up();
    ck_assert_int_eq(annal_index_rebuild(f.index, &patient, &err), ANNAL_ERR_BUSY);
    ck_assert_msg(strstr(err.message, stopped.who) != NULL, "%s", err.message);
}
END_TEST

START_TEST(a_query_waits_for_a_stopped_writer_of_sessions_db_up_to_its_limit_and_names_it)
{
    const char *db = tmpdir_path(&f.dir, "store/sessions.db");
    stopped_start(&stopped, begin_and_stop, (void *)db);
    ck_answers();
    ck_gives_up();
}
END_TEST

START_TEST(without_sessions_db_the_journals_answer_beside_a_stopped_owner_of_locks_index)
{
    struct text text = {0};
    annal_lag lag = {0};
    const annal_sql_options options = {.out_lag = &lag};
    const char *lock = tmpdir_path(&f.dir, "store/locks/index");
    annal_index_close(f.index);
    ck_assert_int_eq(unlink(tmpdir_path(&f.dir, "store/sessions.db")), 0);
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    stopped_start_locked(&stopped, (const char *const[]){lock, NULL});
    int64_t begun_us = stopped_now_us();
    annal__store_limit_waits(f.store, LIMIT_MS);
    ck_ok(annal_index_sql(f.index, ANNAL_SLICE("SELECT COUNT(*) FROM event_index"), &options,
                          text_row, &text, err));
    ck_in_time(begun_us, LIMIT_MS * 1000);
    ck_assert_str_eq(text.ptr, "16\n");
    ck_assert_uint_eq(lag.sessions, 0);
    free(text.ptr);
}
END_TEST

static int keep_problem(void *arg, const annal_maintenance *what)
{
    if (!what->done && strcmp(what->name, "sessions.db") == 0)
        snprintf(arg, 600, "%s", what->error->message);
    return 0;
}

START_TEST(a_query_names_in_time_a_process_stopped_while_it_creates_the_wal_index)
{
    annal_error err = {0};
    struct text text = {0};
    annal_index_close(f.index);
    ck_assert_int_eq(annal_index_open(f.store, NULL, &f.index, &err), ANNAL_OK);
    stopped_start_making_wal_index(&stopped, tmpdir_path(&f.dir, "store/sessions.db-shm"));
    int64_t begun_us = stopped_now_us();
    annal__store_limit_waits(f.store, LIMIT_MS);
    ck_assert_int_eq(annal_index_sql(f.index, ANNAL_SLICE("SELECT 1"), NULL, text_row, &text, &err),
                     ANNAL_ERR_BUSY);
    ck_in_time(begun_us, LIMIT_MS * 1000);
    ck_assert_msg(strstr(err.message, stopped.who) != NULL, "%s", err.message);
    char whole[600] = "";
    annal_status status =
        annal_index_wal_checkpoint(f.index, ANNAL_WAL_TRUNCATE, keep_problem, whole, &err);
    ck_assert_msg(status == ANNAL_OK && strstr(whole, stopped.who) != NULL, "%s", whole);
    stopped_end(&stopped);
    annal__store_limit_waits(f.store, UINT32_MAX);
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "16\n");
    free(text.ptr);
}
END_TEST

static int no_row(void *arg, const annal__snapshot_row *row)
{
    (void)arg;
    (void)row;
    return 0;
}

START_TEST(a_call_without_time_does_not_wait_although_the_index_may)
{
    annal_error err = {0};
    sqlite3 *db = NULL;
    struct stamp stamp;
    const annal_index_options options = {.wait_ms = 120000};
    const annal_catch_up_options hasty = {.timeout_ms = 1};
    annal_index_close(f.index);
    ck_assert_int_eq(annal_index_open(f.store, &options, &f.index, &err), ANNAL_OK);
    stopped_start_making_wal_index(&stopped, tmpdir_path(&f.dir, "store/sessions.db-shm"));
    int64_t begun_us = stopped_now_us();
    ck_assert_int_eq(annal__derived_borrow(&f.index->derived, 1, &db, &stamp, &err),
                     ANNAL_ERR_BUSY);
    ck_assert_msg(strstr(err.message, stopped.who) != NULL, "%s", err.message);
    ck_in_time(begun_us, 1000);
    begun_us = stopped_now_us();
    ck_assert_int_eq(annal__derived_begin(&f.index->derived, 0, &err), ANNAL_ERR_BUSY);
    ck_in_time(begun_us, 1000);
    begun_us = stopped_now_us();
    ck_assert_int_eq(annal__reader_snapshot_last(f.index, ANNAL_SLICE("s1"), no_row, NULL, &err),
                     ANNAL_ERR_BUSY);
    ck_in_time(begun_us, 1000);
    begun_us = stopped_now_us();
    ck_assert_int_eq(annal_index_catch_up(f.index, (annal_slice){0}, &hasty, &err), ANNAL_ERR_BUSY);
    ck_in_time(begun_us, 1000);
    stopped_end(&stopped);
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "16\n");
}
END_TEST

Suite *suite_stops(void)
{
    Suite *suite = suite_create("stops");
    TCase *cases = suite_case(suite, "stops", set_up, tear_down);
    tcase_add_test(cases,
                   a_query_waits_for_a_stopped_owner_of_locks_index_up_to_its_limit_and_names_it);
    tcase_add_test(cases,
                   a_query_waits_for_a_stopped_writer_of_sessions_db_up_to_its_limit_and_names_it);
    tcase_add_test(cases,
                   without_sessions_db_the_journals_answer_beside_a_stopped_owner_of_locks_index);
    tcase_add_test(cases, a_query_names_in_time_a_process_stopped_while_it_creates_the_wal_index);
    tcase_add_test(cases, a_call_without_time_does_not_wait_although_the_index_may);
    return suite;
}
