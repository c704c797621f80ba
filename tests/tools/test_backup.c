/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *backup, *restored;

static void setup(void)
{
    cli_setup();
    backup = tmpdir_path(&cli.dir, "backup");
    restored = tmpdir_path(&cli.dir, "restored");
}

#define EVENT "{\"type\":\"note.added\",\"data\":{\"n\":1}}\n"

START_TEST(a_checked_backup_restores_the_store)
{
    CLI(&cli, EVENT EVENT, "append", "s1");
    DONE(&cli, "backup", backup);
    ck_assert_ptr_nonnull(strstr(cli.out, ": 1 session, 0 artifacts, "));
    DONE(&cli, "backup", "--check", backup, "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"sessions\":1,\"artifacts\":0,\"files\":1,"));
    DONE(&cli, "restore", backup, "--store", restored);
    CLI(&cli, NULL, "--store", restored, "query", "--count");
    ck_assert_str_eq(cli.out, "2\n");
    DONE(&cli, "--store", restored, "verify");
}
END_TEST

START_TEST(a_backup_and_a_restore_refuse_a_directory_that_is_not_empty)
{
    CLI(&cli, EVENT, "append", "s1");
    CLI(&cli, NULL, "backup", backup);
    CLI(&cli, NULL, "backup", backup);
    cli_assert_refused(&cli, EXIT_REFUSED, "is not empty");
    CLI(&cli, NULL, "restore", backup);
    cli_assert_refused(&cli, EXIT_REFUSED, "is not empty");
    CLI(&cli, NULL, "restore", restored);
    cli_assert_refused(&cli, EXIT_REFUSED, "does not contain a complete backup");
}
END_TEST

/* A backup comes from elsewhere: a link in it could lead to any file. */
START_TEST(a_link_below_a_backup_is_refused)
{
    char events[4096], elsewhere[4096];
    CLI(&cli, EVENT, "append", "s1");
    DONE(&cli, "backup", backup);
    snprintf(events, sizeof events, "%s/events", backup);
    snprintf(elsewhere, sizeof elsewhere, "%s-elsewhere", backup);
    ck_assert_int_eq(rename(events, elsewhere), 0);
    ck_assert_int_eq(symlink(elsewhere, events), 0);
    CLI(&cli, NULL, "backup", "--check", backup);
    ck_assert_int_ne(cli.exit_status, 0);
    ck_assert_msg(strstr(cli.err, "link") != NULL, "%s", cli.err);
    CLI(&cli, NULL, "restore", backup, "--store", restored);
    ck_assert_int_ne(cli.exit_status, 0);
    ck_assert_int_ne(access(restored, F_OK), 0);
}
END_TEST

/* Each writer is a process of its own that prints its acknowledgements; the test kills one. */
START_TEST(a_backup_beside_writers_contains_all_earlier_acknowledged_events)
{
    enum { WRITERS = 3 };
    pid_t pids[WRITERS];
    int inputs[WRITERS], outputs[WRITERS];
    unsigned acknowledged[WRITERS] = {0};
    char name[8], line[64];
    for (int i = 0; i < WRITERS; i++) {
        snprintf(name, sizeof name, "s%d", i);
        pids[i] = cli_start(&cli, (const char *[]){"append", name, NULL}, &inputs[i], &outputs[i]);
        for (int n = 0; n < 40; n++)
            ck_assert_int_eq(write(inputs[i], EVENT, strlen(EVENT)), (ssize_t)strlen(EVENT));
    }
    for (int i = 0; i < WRITERS; i++) {
        FILE *out = fdopen(outputs[i], "r");
        while (acknowledged[i] < 40 && fgets(line, sizeof line, out) != NULL)
            acknowledged[i]++;
        ck_assert_int_eq(write(inputs[i], EVENT EVENT EVENT, 3 * strlen(EVENT)),
                         (ssize_t)(3 * strlen(EVENT)));
        if (i == 0)
            kill(pids[0], SIGKILL);
    }
    DONE(&cli, "backup", backup);
    for (int i = 0; i < WRITERS; i++) {
        close(inputs[i]);
        ck_assert_int_eq(waitpid(pids[i], NULL, 0), pids[i]);
        close(outputs[i]);
    }
    DONE(&cli, "restore", backup, "--store", restored);
    for (int i = 0; i < WRITERS; i++) {
        snprintf(name, sizeof name, "s%d", i);
        CLI(&cli, NULL, "--store", restored, "query", name, "--count");
        ck_assert_uint_ge((unsigned)atoi(cli.out), acknowledged[i]);
    }
    DONE(&cli, "--store", restored, "verify");
}
END_TEST

Suite *suite_backup(void)
{
    Suite *suite = suite_create("backup");
    TCase *tcase = suite_case(suite, "backup", setup, cli_teardown);
    tcase_add_test(tcase, a_checked_backup_restores_the_store);
    tcase_add_test(tcase, a_backup_and_a_restore_refuse_a_directory_that_is_not_empty);
    tcase_add_test(tcase, a_link_below_a_backup_is_refused);
    tcase_add_test(tcase, a_backup_beside_writers_contains_all_earlier_acknowledged_events);
    return suite;
}
