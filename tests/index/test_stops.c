/* A process that is stopped while it writes the index: readers answer from what is there, in time. */
#include "tests/index/fixture.h"

#include "journal/base/seam.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 80
#define SPARE_MS 1500 /* a busy machine; without a limit it would be the ten seconds of the store */

static struct fixture f;
static pid_t stopped;
static char who[64];

static void set_up(void)
{
    FIXTURE_INIT(&f);
    fixture_append_session(&f, "s1");
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "8\n");
    fixture_append_session(&f, "s2");
    alarm(60);
}

static void tear_down(void)
{
    kill(stopped, SIGKILL);
    ck_assert_int_eq(waitpid(stopped, NULL, 0), stopped);
    alarm(0);
    fixture_done(&f);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void wait_until_stopped(void)
{
    int how = 0;
    ck_assert_int_eq(waitpid(stopped, &how, WUNTRACED), stopped);
    ck_assert(WIFSTOPPED(how));
    snprintf(who, sizeof who, "process %ld (stopped)", (long)stopped);
}

static void stop_with_lock(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/locks/%s", f.path, name);
    stopped = fork();
    ck_assert_int_ge(stopped, 0);
    if (stopped == 0) {
        int fd = open(path, O_RDWR | O_CREAT, 0600);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            raise(SIGSTOP);
        _exit(1);
    }
    wait_until_stopped();
}

/* In the middle of a transaction of SQLite, as the sqlite3 shell would be. */
static void stop_with_transaction(const char *begin)
{
    char path[512];
    snprintf(path, sizeof path, "%s/sessions.db", f.path);
    stopped = fork();
    ck_assert_int_ge(stopped, 0);
    if (stopped == 0) {
        sqlite3 *db = NULL;
        if (sqlite3_open(path, &db) == SQLITE_OK &&
            sqlite3_exec(db, begin, NULL, NULL, NULL) == SQLITE_OK)
            raise(SIGSTOP);
        _exit(1);
    }
    wait_until_stopped();
}

/* A reader answers what is there, within the limit, and says who is in the way. */
static void ck_answers(void)
{
    struct text text = {0};
    annal_lag lag = {0};
    annal_error err = {0};
    const annal_sql_options options = {.out_lag = &lag};
    int64_t begun_ms = now_ms();
    annal__store_limit_waits(f.store, LIMIT_MS);
    ck_assert_int_eq(annal_sql(f.index, ANNAL_SLICE("SELECT COUNT(*) FROM event_index"), &options,
                               text_row, &text, &err),
                     ANNAL_OK);
    ck_assert_int_lt(now_ms() - begun_ms, LIMIT_MS + SPARE_MS);
    ck_assert_str_eq(text.ptr, "8\n");
    ck_assert_uint_eq(lag.sessions, 1);
    ck_assert_msg(strstr(lag.message, who) != NULL, "%s", lag.message);
    free(text.ptr);
}

/* And who would wait for as long as it takes does so for its own work only. */
static void ck_gives_up(void)
{
    annal_error err = {0};
    const annal_catch_up_options patient = {.timeout_ms = ANNAL_NO_TIMEOUT};
    int64_t begun_ms = now_ms();
    annal__store_limit_waits(f.store, LIMIT_MS);
    ck_assert_int_eq(annal_index_catch_up(f.index, (annal_slice){0}, &patient, &err),
                     ANNAL_ERR_BUSY);
    ck_assert_msg(strstr(err.message, who) != NULL, "%s", err.message);
    ck_assert_int_lt(now_ms() - begun_ms, LIMIT_MS + SPARE_MS);
}

START_TEST(a_stopped_holder_of_locks_index_is_named_and_waited_for_within_the_limit)
{
    annal_error err = {0};
    const annal_catch_up_options patient = {.timeout_ms = ANNAL_NO_TIMEOUT};
    stop_with_lock("index");
    ck_answers();
    ck_gives_up();
    ck_assert_int_eq(annal_index_rebuild(f.index, &patient, &err), ANNAL_ERR_BUSY);
    ck_assert_msg(strstr(err.message, who) != NULL, "%s", err.message);
}
END_TEST

START_TEST(a_stopped_program_that_writes_sessions_db_is_named_and_waited_for_within_the_limit)
{
    stop_with_transaction("BEGIN IMMEDIATE");
    ck_answers();
    ck_gives_up();
}
END_TEST

Suite *suite_stops(void)
{
    Suite *suite = suite_create("stops");
    TCase *cases = tcase_create("stops");
    suite_add_tcase(suite, cases);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, a_stopped_holder_of_locks_index_is_named_and_waited_for_within_the_limit);
    tcase_add_test(
        cases, a_stopped_program_that_writes_sessions_db_is_named_and_waited_for_within_the_limit);
    return suite;
}
