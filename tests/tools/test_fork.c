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
    tcase_add_test(tcase, verify_reports_a_parent_with_another_history);
    return suite;
}
