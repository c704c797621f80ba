/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the databases of packs: deleted, damaged, somebody else's, half made. */
#include "journal/sys/delete.h"
#include "tests/index/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include "index/index.h"
#include "journal/base/clock.h"
#include "journal/base/io.h"
#include "journal/store.h"
#include "journal/sys/seam.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char counts[] =
    "-- pack counts   version 1   database counts.db\n"
    "CREATE TABLE counts (session TEXT PRIMARY KEY, n INTEGER);\n"
    "-- on a.one, a.two, b.one\n"
    "INSERT INTO counts VALUES (:session, 1) ON CONFLICT DO UPDATE SET n = n + 1;\n";

static const char forgets[] = "-- forget\nDELETE FROM counts WHERE session = :session;\n";

static void put_pack(const char *text, const char *more)
{
    mkdir(tmpdir_path(&f.dir, "store/packs"), 0700);
    FILE *file = fopen(tmpdir_path(&f.dir, "store/packs/counts.sql"), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_ge(fputs(more, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static const char *db_path(void)
{
    return tmpdir_path(&f.dir, "store/counts.db");
}

static void write_over(const char *path, const char *bytes, long at)
{
    FILE *file = fopen(path, at < 0 ? "w" : "r+");
    ck_assert_ptr_nonnull(file);
    if (at > 0)
        ck_assert_int_eq(fseek(file, at, SEEK_SET), 0);
    ck_assert_int_ge(fputs(bytes, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(a_database_that_is_another_program_s_is_moved_aside)
{
    sqlite3 *db = NULL;
    fixture_append_many(&f, "s1", 5, 0);
    ck_assert_int_eq(sqlite3_open(db_path(), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "CREATE TABLE theirs (a)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    put_pack(counts, "");
    ck_sql(&f, "SELECT n FROM counts", "5\n");
    ck_assert_int_eq(access(tmpdir_path(&f.dir, "store/counts.db.foreign"), F_OK), 0);
}
END_TEST

START_TEST(a_database_that_is_damaged_is_made_anew)
{
    put_pack(counts, "");
    fixture_append_many(&f, "s1", 5, 0);
    ck_sql(&f, "SELECT n FROM counts", "5\n");
    annal_index_close(f.index);
    write_over(db_path(), "this is no database at all, whatever its name says", 0);
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    ck_sql(&f, "SELECT n FROM counts", "5\n");
}
END_TEST

START_TEST(a_directory_in_the_place_of_a_database_costs_only_its_packs)
{
    put_pack(counts, "");
    ck_assert_int_eq(mkdir(db_path(), 0700), 0);
    fixture_append_many(&f, "s1", 5, 0);
    ck_sql(&f, "SELECT count(*) FROM event_index", "5\n");
    ck_assert_int_eq(rmdir(db_path()), 0);
    ck_sql(&f, "SELECT n FROM counts", "5\n");
}
END_TEST

START_TEST(a_session_whose_journal_is_gone_leaves_the_tables)
{
    for (int i = 0; i < 2; i++) {
        put_pack(counts, i == 0 ? "" : forgets);
        fixture_append_many(&f, "s1", 5, 0);
        fixture_append_many(&f, "s2", 7, 0);
        fixture_append_many(&f, "s3", 9, 0);
        ck_sql(&f, "SELECT session, n FROM counts ORDER BY 1", "s1|5\ns2|7\ns3|9\n");
        ck_ok(annal__replace_delete(f.store, ANNAL_SLICE("s2"), NULL, err));
        fixture_append_many(&f, "s1", 1, 0);
        ck_sql(&f, "SELECT session, n FROM counts ORDER BY 1", "s1|6\ns3|9\n");
        fixture_append_many(&f, "s2", 2, 0);
        ck_sql(&f, "SELECT session, n FROM counts ORDER BY 1", "s1|6\ns2|2\ns3|9\n");
        fixture_teardown();
        fixture_setup();
    }
}
END_TEST

START_TEST(an_event_that_a_handler_cannot_take_is_a_finding_and_stops_nothing)
{
    put_pack("-- pack counts   version 1   database counts.db\n"
             "CREATE TABLE counts (session TEXT PRIMARY KEY, n INTEGER NOT NULL);\n"
             "-- on a.one\n"
             "INSERT INTO counts VALUES (:session, $n) ON CONFLICT DO UPDATE SET n = $n;\n",
             "");
    fixture_append(&f, "s1", "a.one", "{\"n\":1}");
    fixture_append(&f, "s1", "a.one", "{}");
    fixture_append(&f, "s1", "a.one", "{\"n\":3}");
    ck_sql(&f, "SELECT n FROM counts", "3\n");
    ck_sql(&f, "SELECT pack, session_id, seq, kind FROM counts._findings", "counts|s1|2|pack\n");
}
END_TEST

START_TEST(a_database_that_another_program_keeps_locked_hinders_no_append_and_no_other_question)
{
    sqlite3 *db = NULL;
    annal_lag lag = {0};
    struct text text = {0};
    put_pack(counts, "");
    fixture_append_many(&f, "s1", 5, 0);
    ck_sql(&f, "SELECT n FROM counts", "5\n");
    ck_assert_int_eq(sqlite3_open(db_path(), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    fixture_append_many(&f, "s1", 1, 0);
    const annal_sql_options options = {.timeout_ms = 100, .out_lag = &lag};
    ck_ok(annal_index_sql(f.index,
                          ANNAL_SLICE("SELECT n, (SELECT count(*) FROM event_index) FROM counts"),
                          &options, text_row, &text, err));
    ck_assert_str_eq(text.ptr, "5|6\n");
    ck_assert_uint_gt(lag.bytes, 0);
    ck_assert_ptr_nonnull(strstr(lag.message, "counts"));
    ck_assert_int_eq(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    ck_sql(&f, "SELECT n FROM counts", "6\n");
    free(text.ptr);
}
END_TEST

START_TEST(a_store_that_is_read_only_answers_with_and_without_a_database)
{
    for (int i = 0; i < 2; i++) {
        put_pack(counts, "");
        fixture_append_many(&f, "s1", 5, 0);
        if (i == 1)
            ck_sql(&f, "SELECT n FROM counts", "5\n");
        annal_index_close(f.index);
        ck_ok(annal_store_close(f.store, err));
        const annal_store_options options = {.read_only = true};
        ck_ok(annal_store_open(f.path, &options, &f.store, err));
        ck_ok(annal_index_open(f.store, NULL, &f.index, err));
        ck_sql(&f, "SELECT n FROM counts", "5\n");
        ck_assert_int_eq(access(db_path(), F_OK), i == 1 ? 0 : -1);
        fixture_teardown();
        fixture_setup();
    }
}
END_TEST

/* Another process that deletes the database, or a part of it, again and again. created_us: how long
 * creating it takes. */
static pid_t begin_deleting(uint64_t seed, uint64_t created_us)
{
    const char *paths[] = {db_path(), tmpdir_path(&f.dir, "store/counts.db-wal"),
                           tmpdir_path(&f.dir, "store/counts.db-shm")};
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    struct random random = random_init(seed);
    /* Deleted faster than this machine creates it, no database is ever whole. */
    const uint64_t least_us = many_or(30000, 1000000);
    const uint64_t pause_us = created_us > least_us ? created_us : least_us;
    for (;;) {
        uint64_t which = random_below(&random, 4);
        for (size_t i = 0; i < 3; i++)
            if (which == 3 || which == i)
                unlink(paths[i]);
        usleep((useconds_t)random_below(&random, pause_us));
    }
}

START_TEST(whenever_a_pack_database_is_deleted_every_answer_is_whole)
{
    put_pack(counts, "");
    fixture_append_many(&f, "s1", 50, 0);
    int64_t begun_us = annal__clock_monotonic_us();
    ck_sql(&f, "SELECT n FROM counts", "50\n");
    pid_t pid = begin_deleting(17, (uint64_t)(annal__clock_monotonic_us() - begun_us));
    for (unsigned i = 0; i < 40; i++) {
        char want[32];
        fixture_append_many(&f, "s1", 1, 0);
        snprintf(want, sizeof want, "%u\n", 51 + i);
        ck_sql(&f, "SELECT n FROM counts", want);
    }
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

/* How often the database is still to be deleted: at every such look at it. */
static unsigned deletions, every_look;

static int stat_and_delete(void *arg, const char *path, struct stat *info)
{
    static unsigned looks;
    if (deletions > 0 && strcmp(path, db_path()) == 0 && looks++ % every_look == 0) {
        deletions--;
        unlink(path);
    }
    return annal__system_io.stat(arg, path, info);
}

/* A busy machine gives another process more time to delete the database between two steps. */
START_TEST(a_question_continues_until_its_limit_however_often_a_pack_database_is_deleted)
{
    static struct io io;
    static const struct seams seams = {.io = &io, .clock = &annal__system_clock};
    const annal_store_options options = {.no_keeper = true};
    put_pack(counts, "");
    fixture_append_many(&f, "s1", 5, 0);
    annal_index_close(f.index);
    ck_ok(annal_store_close(f.store, err));
    io = annal__system_io;
    io.stat = stat_and_delete;
    ck_ok(annal__store_open(f.path, &options, &seams, &f.store, err));
    ck_ok(annal_index_open(f.store, &(annal_index_options){.wait_ms = 120000}, &f.index, err));
    ck_sql(&f, "SELECT n FROM counts", "5\n");
    deletions = _i == 0 ? 40 : 700; /* now and then, or so often that all tries in a row fail */
    every_look = _i == 0 ? 5 : 1;
    ck_sql(&f, "SELECT n FROM counts", "5\n");
    ck_assert_uint_eq(deletions, 0);
}
END_TEST

static int stop_after_first(void *arg, const annal_index_progress *progress)
{
    *(uint64_t *)arg = progress->events;
    return 1;
}

START_TEST(a_rebuild_that_is_stopped_goes_on_where_it_was)
{
    enum { SESSIONS = 3, EACH = 25000 };
    uint64_t first = 0, rest = 0;
    annal_error why = {0};
    put_pack(counts, "");
    for (int i = 0; i < SESSIONS; i++) {
        char session[8];
        snprintf(session, sizeof session, "s%d", i);
        fixture_append_many(&f, session, EACH, 0);
    }
    const annal_catch_up_options once = {.progress = stop_after_first, .arg = &first};
    ck_assert_int_eq(annal_pack_rebuild(f.index, "counts", &once, &why), ANNAL_END);
    ck_assert_uint_gt(first, 0);
    ck_assert_uint_lt(first, SESSIONS * EACH);
    fixture_reopen(&f, NULL); /* as another process would */
    const annal_catch_up_options on = {.progress = stop_after_first, .arg = &rest, .packs = true};
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    while (annal_index_catch_up(f.index, (annal_slice){0}, &on, &why) == ANNAL_END)
        first += rest;
    ck_assert_uint_eq(first, SESSIONS * EACH);
    ck_sql(&f, "SELECT session, n FROM counts ORDER BY 1", "s0|25000\ns1|25000\ns2|25000\n");
}
END_TEST

START_TEST(a_rebuild_that_is_killed_leaves_tables_that_become_whole)
{
    struct random random = random_init(23);
    put_pack(counts, "");
    fixture_append_many(&f, "s1", 6000, 0);
    fixture_append_many(&f, "s2", 6000, 0);
    ck_sql(&f, "SELECT session, n FROM counts ORDER BY 1", "s1|6000\ns2|6000\n");
    for (int i = 0; i < 12; i++) {
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            annal_store *store = NULL;
            annal_index *index = NULL;
            if (annal_store_open(f.path, NULL, &store, NULL) == ANNAL_OK &&
                annal_index_open(store, NULL, &index, NULL) == ANNAL_OK)
                (void)!annal_pack_rebuild(index, "counts", NULL, NULL);
            _exit(0);
        }
        usleep((useconds_t)random_below(&random, 60000));
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        ck_sql(&f, "SELECT session, n FROM counts ORDER BY 1", "s1|6000\ns2|6000\n");
    }
}
END_TEST

Suite *suite_pack_database(void)
{
    Suite *suite = suite_create("pack_database");
    TCase *tcase = suite_case(suite, "pack_database", fixture_setup, fixture_teardown);
    tcase_add_test(tcase, a_database_that_is_another_program_s_is_moved_aside);
    tcase_add_test(tcase, a_database_that_is_damaged_is_made_anew);
    tcase_add_test(tcase, a_directory_in_the_place_of_a_database_costs_only_its_packs);
    tcase_add_test(tcase, a_session_whose_journal_is_gone_leaves_the_tables);
    tcase_add_test(tcase, an_event_that_a_handler_cannot_take_is_a_finding_and_stops_nothing);
    tcase_add_test(
        tcase,
        a_database_that_another_program_keeps_locked_hinders_no_append_and_no_other_question);
    tcase_add_test(tcase, a_store_that_is_read_only_answers_with_and_without_a_database);
    tcase_add_test(tcase, whenever_a_pack_database_is_deleted_every_answer_is_whole);
    tcase_add_loop_test(
        tcase, a_question_continues_until_its_limit_however_often_a_pack_database_is_deleted, 0, 2);
    tcase_add_test(tcase, a_rebuild_that_is_stopped_goes_on_where_it_was);
    tcase_add_test(tcase, a_rebuild_that_is_killed_leaves_tables_that_become_whole);
    return suite;
}
