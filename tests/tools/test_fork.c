/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/buf.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdlib.h>
#include <string.h>

/* p has 5 events; f is a fork of p at 3 with an event of its own; g is a fork of f at its end. */
static void setup(void)
{
    cli_setup();
    CLI(&cli, "1\n2\n3\n4\n5\n", "append", "p", "--type", "n");
    CLI(&cli, NULL, "fork", "p", "--at", "3", "f");
    CLI(&cli, "70\n", "append", "f", "--type", "n");
    CLI(&cli, NULL, "fork", "f", "g", "--format", "msgpack", "--json");
}

/* Collect the data of the printed events, in order. */
static const char *numbers(void)
{
    static char text[200];
    text[0] = '\0';
    for (const char *at = cli.out; (at = strstr(at, "\"data\":")) != NULL; at++) {
        strncat(text, at + 7, strcspn(at + 7, "}"));
        strcat(text, " ");
    }
    return text;
}

START_TEST(fork_prints_how_many_events_are_shared)
{
    ck_assert_str_eq(cli.out, "{\"session_id\":\"g\",\"parent_session_id\":\"f\","
                              "\"forked_at_seq\":4,\"format\":\"msgpack\"}\n");
    DONE(&cli, "fork", "g", "--at", "2", "h");
    ck_assert_str_eq(cli.out, "h is a fork of g: 2 events in common\n");
    CLI(&cli, NULL, "fork", "p", "--at", "1", "i");
    ck_assert_str_eq(cli.out, "i is a fork of p: 1 event in common\n");
}
END_TEST

START_TEST(a_fork_is_read_and_queried_as_one_history)
{
    CLI(&cli, "90\n", "append", "g", "--type", "n");
    ck_assert_str_eq(cli.out, "{\"seq\":5}\n");
    DONE(&cli, "cat", "g");
    ck_assert_str_eq(numbers(), "1 2 3 70 90 ");
    CLI(&cli, NULL, "cat", "g", "--from", "4");
    ck_assert_str_eq(numbers(), "70 90 ");
    DONE(&cli, "query", "g", "--seq", "2..4");
    ck_assert_str_eq(numbers(), "2 3 70 ");
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"session_id\":\"g\",\"seq\":2,"));
    CLI(&cli, NULL, "query", "g", "--count");
    ck_assert_str_eq(cli.out, "5\n");
    CLI(&cli, NULL, "query", "--count");
    ck_assert_str_eq(cli.out, "7\n"); /* each event once */
    CLI(&cli, NULL, "tail", "g");
    ck_assert_str_eq(numbers(), "1 2 3 70 90 ");
    CLI(&cli, NULL, "replay", "g", "--at", "4", "--sql", "SELECT events FROM sessions", "--json");
    ck_assert_str_eq(cli.out, "{\"events\":4}\n");
    CLI(&cli, NULL, "sql",
        "SELECT origin, count(*) AS n FROM history WHERE session_id = 'g' "
        "GROUP BY 1 ORDER BY 1",
        "--format", "csv");
    ck_assert_str_eq(cli.out, "origin,n\r\nf,1\r\ng,1\r\np,3\r\n");
    DONE(&cli, "verify");
}
END_TEST

/* t has eight events, a second apart; k is a fork of t at 6 with a later event of its own. */
static void forked_in_time(void)
{
    struct buf lines = {0};
    for (int i = 1; i <= 8; i++)
        ck_assert_int_ge(
            annal__buf_printf(
                &lines, "{\"type\":\"n\",\"ts\":\"2026-01-01T00:00:0%dZ\",\"data\":%d}\n", i, i),
            0);
    ck_assert_ptr_nonnull(annal__buf_cstr(&lines));
    CLI(&cli, lines.ptr, "append", "t");
    CLI(&cli, NULL, "fork", "t", "--at", "6", "k");
    DONE_WITH(&cli, "{\"type\":\"n\",\"ts\":\"2026-01-01T00:01:00Z\",\"data\":70}\n", "append",
              "k");
    annal__buf_done(&lines);
}

START_TEST(times_in_a_fork_refer_to_its_whole_history)
{
    forked_in_time();
    CLI(&cli, NULL, "replay", "t", "--at", "3", "--hash");
    char *at_3 = strdup(cli.out);
    CLI(&cli, NULL, "replay", "k", "--at", "2026-01-01T00:00:03Z", "--hash");
    ck_assert_str_eq(cli.out, at_3);
    free(at_3);
    CLI(&cli, NULL, "replay", "k", "--events", "--json", "--from", "2026-01-01T00:00:03Z", "--to",
        "2026-01-01T00:00:05.5Z");
    ck_assert_str_eq(numbers(), "3 4 5 ");
    CLI(&cli, NULL, "replay", "k", "--events", "--json", "--from", "2026-01-01T00:00:06Z");
    ck_assert_str_eq(numbers(), "6 70 ");
    CLI(&cli, NULL, "diff", "k", "2026-01-01T00:00:02Z", "2026-01-01T00:00:59Z");
    ck_assert_ptr_nonnull(strstr(cli.out, "after seq 2 -> after seq 6: "));
    DONE(&cli, "replay", "k", "--at", "2026-01-01T00:00:04Z", "--verify");
    ck_assert_ptr_nonnull(strstr(cli.out, "4"));
}
END_TEST

START_TEST(show_and_ls_name_the_parents_of_forks)
{
    DONE(&cli, "show", "g");
    ck_assert_ptr_nonnull(strstr(cli.out, "fork of              f, up to event 4\n"
                                          "fork of              p, up to event 3\n"));
    CLI(&cli, NULL, "show", "p");
    ck_assert_ptr_null(strstr(cli.out, "fork of"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\nforks\n"));
    CLI(&cli, NULL, "show", "f", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, ",\"fork\":{\"session_id\":\"p\",\"seq\":3},\"lineage\":["
                                          "{\"session_id\":\"f\",\"from_seq\":4,\"to_seq\":null},"
                                          "{\"session_id\":\"p\",\"from_seq\":1,\"to_seq\":3}],"
                                          "\"forks\":[{\"session_id\":\"g\",\"forked_at_seq\":4,"));
    CLI(&cli, NULL, "ls");
    ck_assert_ptr_nonnull(strstr(cli.out, "FORK OF"));
    ck_assert_ptr_nonnull(strstr(cli.out, "p, 3"));
    CLI(&cli, NULL, "ls", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"fork_session_id\":\"f\",\"fork_seq\":4,"));
    DONE(&cli, "delete", "g", "f");
    CLI(&cli, NULL, "ls");
    ck_assert_ptr_null(strstr(cli.out, "FORK OF"));
}
END_TEST

START_TEST(a_fork_of_a_missing_session_or_event_is_refused)
{
    CLI(&cli, NULL, "fork", "p");
    ck_assert_int_eq(cli.exit_status, EXIT_USAGE);
    CLI(&cli, NULL, "fork", "p", "x", "--at", "0");
    cli_assert_refused(&cli, EXIT_USAGE, "--at needs a whole number of at least 1");
    CLI(&cli, NULL, "fork", "p", "f");
    cli_assert_refused(&cli, EXIT_REFUSED, "session 'f' already exists");
    CLI(&cli, NULL, "fork", "p", "x", "--at", "6");
    cli_assert_refused(&cli, EXIT_REFUSED, "ends at event 5");
    CLI(&cli, NULL, "fork", "none", "x");
    cli_assert_refused(&cli, EXIT_REFUSED, "there is no session 'none'");
    CLI(&cli, NULL, "delete", "p");
    cli_assert_refused(&cli, EXIT_REFUSED, "needed by its fork 'f'");
}
END_TEST

START_TEST(verify_reports_a_parent_with_another_history)
{
    size_t len = 0;
    DONE(&cli, "convert", "g", "--format", "jsonl");
    DONE(&cli, "verify");
    char *journal = cli_journal(&cli, "p", &len);
    DONE(&cli, "delete", "g", "f", "p");
    CLI(&cli, "1\n2\n3\n", "append", "p", "--type", "n");
    CLI(&cli, NULL, "fork", "p", "f");
    cli_journal_write(&cli, "p", journal, len); /* restores the earlier journal */
    CLI(&cli, NULL, "verify", "f");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "were replaced after the fork"));
    CLI(&cli, NULL, "cat", "f");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    CLI(&cli, NULL, "query", "f");
    cli_assert_refused(&cli, EXIT_REFUSED, "were replaced after the fork");
    CLI(&cli, NULL, "sql", "SELECT * FROM history WHERE session_id = 'f'");
    cli_assert_refused(&cli, EXIT_REFUSED, "were replaced after the fork");
    CLI(&cli, NULL, "fork", "f", "--at", "2", "stray");
    cli_assert_refused(&cli, EXIT_REFUSED, "were replaced after the fork");
    free(journal);
}
END_TEST

Suite *suite_fork(void)
{
    Suite *suite = suite_create("fork");
    TCase *tcase = suite_case(suite, "fork", setup, cli_teardown);
    tcase_add_test(tcase, fork_prints_how_many_events_are_shared);
    tcase_add_test(tcase, a_fork_is_read_and_queried_as_one_history);
    tcase_add_test(tcase, times_in_a_fork_refer_to_its_whole_history);
    tcase_add_test(tcase, show_and_ls_name_the_parents_of_forks);
    tcase_add_test(tcase, a_fork_of_a_missing_session_or_event_is_refused);
    tcase_add_test(tcase, verify_reports_a_parent_with_another_history);
    return suite;
}
