/* SPDX-License-Identifier: Apache-2.0 */
/* show --recovery in a store of another user; tests/commands/recovery.test has the rest. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

START_TEST(recovery_works_on_a_read_only_store)
{
    char command[600];
    CLI(&cli, "{\"call_id\":\"c2\",\"tool\":\"Write\"}\n", "append", "s", "--type", "tool.called");
    snprintf(command, sizeof command, "chmod 755 %s && chmod -R a+rX,a-w %s", cli.dir.path,
             cli.store);
    ck_assert_int_eq(system(command), 0);
    cli.as_nobody = geteuid() == 0;
    CLI(&cli, NULL, "version");
    if (cli.exit_status == 0) { /* else another user may not run the built program */
        CLI(&cli, NULL, "show", "s", "--recovery");
        ck_assert_int_eq(cli.exit_status, 0);
        ck_assert_ptr_nonnull(strstr(cli.out, "durable up to        event 1, "));
        ck_assert_ptr_nonnull(strstr(cli.out, "c2        1  Write "));
    }
    snprintf(command, sizeof command, "chmod -R u+w %s", cli.store);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

Suite *suite_recovery_print(void)
{
    Suite *suite = suite_create("recovery_print");
    TCase *tcase = suite_case(suite, "recovery", cli_setup, cli_teardown);
    tcase_add_test(tcase, recovery_works_on_a_read_only_store);
    return suite;
}
