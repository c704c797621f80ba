/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdlib.h>
#include <string.h>

/* Session s1 of five events, of which the third is damaged. */
static void damaged_init(void)
{
    size_t len;
    CLI(&cli,
        "{\"n\":\"one\"}\n{\"n\":\"two\"}\n{\"n\":\"three\"}\n{\"n\":\"four\"}\n{\"n\":\"five\"}\n",
        "append", "s1", "--type", "n");
    char *journal = cli_journal(&cli, "s1", &len);
    memcpy(strstr(journal, "three"), "thref", 5);
    cli_journal_write(&cli, "s1", journal, len);
    free(journal);
}

START_TEST(repair_copies_sound_events_and_reports_the_gap)
{
    damaged_init();
    CLI(&cli, NULL, "repair", "s1", "--to", "s2");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_str_eq(cli.err, "");
    ck_assert_ptr_nonnull(strstr(cli.out, "s1: event 3: lost with "));
    ck_assert_ptr_nonnull(strstr(cli.out, "copied 4 events to session s2; 1 gap event in 1 place"));
    DONE(&cli, "cat", "s2");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"type\":\"annal.gap\",\"data\":{\"session\":\"s1\","
                                          "\"first_seq\":3,\"last_seq\":3,"));
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"seq\":5,"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"data\":{\"n\":\"five\"}"));
    DONE(&cli, "verify", "s2");
    DONE_WITH(&cli, "1", "append", "s2", "--type", "n");
    ck_assert_str_eq(cli.out, "{\"seq\":6}\n");
}
END_TEST

START_TEST(a_dry_run_writes_nothing_and_json_has_the_gaps_and_a_summary)
{
    damaged_init();
    CLI(&cli, NULL, "repair", "s1", "--dry-run", "--json");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(
        strstr(cli.out, "{\"session_id\":\"s1\",\"first_seq\":3,\"last_seq\":3,"));
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"session_id\":\"s1\",\"to\":null,\"events\":4,"
                                          "\"gaps\":1,\"gap_events\":1,"));
    ck_assert_int_eq(cli_journals(&cli), 1);
}
END_TEST

START_TEST(a_sound_session_is_copied_with_exit_status_0)
{
    CLI(&cli, "1\n2\n", "append", "s1", "--type", "n");
    DONE(&cli, "repair", "s1", "--to", "s2");
    ck_assert_str_eq(cli.out, "copied 2 events to session s2: all of them\n");
    CLI(&cli, NULL, "repair", "s1", "--to", "s2");
    cli_assert_refused(&cli, EXIT_REFUSED, "exists already");
    CLI(&cli, NULL, "repair", "s1");
    cli_assert_refused(&cli, EXIT_USAGE, "--to NEW");
    CLI(&cli, NULL, "repair", "s1", "--to", "../x");
    cli_assert_refused(&cli, EXIT_USAGE, "--to");
    CLI(&cli, NULL, "repair", "none", "--to", "s3");
    cli_assert_refused(&cli, EXIT_REFUSED, "there is no session 'none'");
}
END_TEST

Suite *suite_repair(void)
{
    Suite *suite = suite_create("repair");
    TCase *command = suite_case(suite, "command", cli_setup, cli_teardown);
    tcase_add_test(command, repair_copies_sound_events_and_reports_the_gap);
    tcase_add_test(command, a_dry_run_writes_nothing_and_json_has_the_gaps_and_a_summary);
    tcase_add_test(command, a_sound_session_is_copied_with_exit_status_0);
    return suite;
}
