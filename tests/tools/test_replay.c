/* SPDX-License-Identifier: Apache-2.0 */
/* replay with a damaged snapshot; tests/commands/replay.test has the rest. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdlib.h>
#include <string.h>

START_TEST(a_snapshot_that_is_damaged_is_a_finding_and_changes_no_answer)
{
    DONE_WITH(&cli, "{\"n\":1}\n{\"n\":2}\n", "append", "s", "--type", "n");
    CLI(&cli, NULL, "snapshot", "s");
    CLI(&cli, NULL, "replay", "s", "--json");
    char *sound = strdup(cli.out);
    cli_change_database(&cli, "sessions.db",
                        "UPDATE snapshots SET state = substr(state, 1, length(state) - 9) || "
                        "x'00' || substr(state, -8)");
    CLI(&cli, NULL, "replay", "s", "--json");
    ck_assert_str_eq(cli.out, sound);
    CLI(&cli, NULL, "verify");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "s: event 2 at byte 0: "));
    CLI(&cli, NULL, "verify", "--replay");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    free(sound);
}
END_TEST

Suite *suite_replay(void)
{
    Suite *suite = suite_create("replay");
    TCase *past = suite_case(suite, "past", cli_setup, cli_teardown);
    tcase_add_test(past, a_snapshot_that_is_damaged_is_a_finding_and_changes_no_answer);
    return suite;
}
