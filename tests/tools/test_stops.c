/* SPDX-License-Identifier: Apache-2.0 */
/* The command beside a process that is stopped with every lock of the store. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include "tests/support/stopped.h"

#include <stdio.h>
#include <string.h>

static struct stopped stopped;

static void set_up(void)
{
    cli_setup();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    DONE(&cli, "ls");
}

static void tear_down(void)
{
    stopped_end(&stopped);
    cli_teardown();
}

static void stop_with_all_locks(void)
{
    static const char *const locks[] = {"claim", "recovery", "structure", "index", "search"};
    enum { LOCKS = sizeof locks / sizeof *locks };
    char paths[LOCKS][512];
    const char *list[LOCKS + 1] = {NULL};
    for (size_t i = 0; i < LOCKS; i++) {
        snprintf(paths[i], sizeof *paths, "%s/locks/%s", cli.store, locks[i]);
        list[i] = paths[i];
    }
    stopped_start_locked(&stopped, list);
}

START_TEST(readers_answer_from_existing_files_without_a_lock)
{
    stop_with_all_locks();
    int64_t begun_us = stopped_now_us();
    DONE(&cli, "cat", "s1");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"data\":1"));
    CLI(&cli, NULL, "ls", "--json", "--wait", "0");
    ck_assert_int_eq(cli.exit_status, 0);
    CLI(&cli, NULL, "doctor", "--wait", "0");
    ck_assert_ptr_nonnull(strstr(cli.out, "journals"));
    ck_in_time(begun_us, 0);
}
END_TEST

START_TEST(a_blocked_append_is_refused_in_time_and_names_the_process)
{
    stop_with_all_locks();
    int64_t begun_us = stopped_now_us();
    CLI(&cli, "{\"type\":\"a\",\"data\":2}\n", "append", "s1", "--wait", "1");
    ck_in_time(begun_us, 1000000);
    int64_t took_us = stopped_now_us() - begun_us;
    cli_assert_refused(&cli, 1, stopped.who);
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"refused\":"));
    ck_assert_int_ge(took_us, 900000); /* a tenth remains for the work */
}
END_TEST

START_TEST(an_index_that_has_no_session_yet_is_not_taken_for_an_empty_store)
{
    char lock[512];
    DONE(&cli, "delete", "--yes", "s1");
    CLI(&cli, NULL, "ls");
    ck_assert_ptr_nonnull(strstr(cli.err, "no sessions yet"));
    snprintf(lock, sizeof lock, "%s/locks/index", cli.store);
    stopped_start_locked(&stopped, (const char *const[]){lock, NULL});
    CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s2");
    CLI(&cli, NULL, "ls", "--wait", "0");
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_msg(strstr(cli.err, stopped.who) != NULL && strstr(cli.err, "no sessions") == NULL,
                  "%s", cli.err);
}
END_TEST

Suite *suite_stops(void)
{
    Suite *suite = suite_create("stops");
    TCase *cases = suite_case(suite, "stops", set_up, tear_down);
    tcase_add_test(cases, readers_answer_from_existing_files_without_a_lock);
    tcase_add_test(cases, a_blocked_append_is_refused_in_time_and_names_the_process);
    tcase_add_test(cases, an_index_that_has_no_session_yet_is_not_taken_for_an_empty_store);
    return suite;
}
