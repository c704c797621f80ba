#include "tests/tools/cli.h"
#include "tools/command.h"

#include <check.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct cli cli;

static void setup(void)
{
    CLI_INIT(&cli);
}

static void teardown(void)
{
    cli_done(&cli);
}

#define EVENT "{\"type\":\"note.added\",\"data\":{\"n\":1}}\n"

START_TEST(what_is_deleted_says_so_and_is_gone_from_everywhere)
{
    CLI(&cli, EVENT EVENT, "append", "s1");
    CLI(&cli, EVENT, "append", "s2");
    CLI(&cli, NULL, "snapshot", "s1");
    CLI(&cli, NULL, "delete", "s1");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "deleted s1: 2 events, "));
    CLI(&cli, NULL, "sql", "--json",
        "SELECT (SELECT count(*) FROM event_index) AS e, (SELECT count(*) FROM sessions) AS s, "
        "(SELECT count(*) FROM snapshots) AS n");
    ck_assert_str_eq(cli.out, "{\"e\":1,\"s\":1,\"n\":0}\n");
    CLI(&cli, NULL, "cat", "s1");
    cli_assert_refused(&cli, EXIT_REFUSED, "there is no session 's1'");
    CLI(&cli, NULL, "verify");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    CLI(&cli, EVENT, "append", "s1");
    ck_assert_str_eq(cli.out, "{\"seq\":1}\n");
    CLI(&cli, NULL, "query", "--count");
    ck_assert_str_eq(cli.out, "2\n");
}
END_TEST

START_TEST(several_are_deleted_though_one_of_them_is_not_there)
{
    CLI(&cli, NULL, "delete", "s1");
    cli_assert_refused(&cli, EXIT_STORAGE, "there is no store");
    CLI(&cli, EVENT, "append", "s1");
    CLI(&cli, EVENT, "append", "s2");
    CLI(&cli, NULL, "--json", "delete", "s1", "none", "s2");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.err, "there is no session 'none'"));
    ck_assert_ptr_nonnull(
        strstr(cli.out, "{\"session_id\":\"s1\",\"deleted\":true,\"events\":1,\"bytes\":"));
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"session_id\":\"s2\",\"deleted\":true,"));
    ck_assert_int_eq(cli_journals(&cli), 0);
    CLI(&cli, NULL, "delete", "../s1");
    cli_assert_refused(&cli, EXIT_USAGE, "session id");
    CLI(&cli, NULL, "delete");
    cli_assert_refused(&cli, EXIT_USAGE, "SESSION");
}
END_TEST

/* A writer that stays open gives the session up when it is asked to; its next line begins it anew.
 * */
START_TEST(a_session_is_taken_from_the_process_that_writes_it)
{
    int input, output, how;
    char answers[100] = "";
    pid_t writer = cli_start(&cli, (const char *[]){"append", "s1", NULL}, &input, &output);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(write(input, EVENT, sizeof EVENT - 1), sizeof EVENT - 1);
        ck_assert_int_eq(read(output, answers + 10 * i, 10), 10);
    }
    ck_assert_str_eq(answers, "{\"seq\":1}\n{\"seq\":2}\n");
    CLI(&cli, NULL, "delete", "s1");
    ck_assert_ptr_nonnull(strstr(cli.out, "deleted s1: 2 events, "));
    ck_assert_int_eq(write(input, EVENT, sizeof EVENT - 1), sizeof EVENT - 1);
    ck_assert_int_eq(read(output, answers, 10), 10);
    ck_assert_int_eq(strncmp(answers, "{\"seq\":1}\n", 10), 0);
    close(input);
    close(output);
    ck_assert_int_eq(waitpid(writer, &how, 0), writer);
    ck_assert(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    CLI(&cli, NULL, "query", "--count", "s1");
    ck_assert_str_eq(cli.out, "1\n");
    CLI(&cli, NULL, "verify");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
}
END_TEST

/* On a terminal, with an answer typed; the exit status, and text what was shown. */
static int delete_on_a_terminal(const char *answer, char *text, size_t room)
{
    size_t len = 0;
    int terminal, how;
    pid_t pid = forkpty(&terminal, NULL, NULL, NULL);
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        cli_exec(&cli, (const char *[]){"delete", "s1", "s2", NULL});
    ck_assert_int_eq(write(terminal, answer, strlen(answer)), (ssize_t)strlen(answer));
    for (;;) {
        ssize_t count = read(terminal, text + len, room - 1 - len);
        if (count <= 0)
            break;
        len += (size_t)count;
    }
    text[len] = '\0';
    close(terminal);
    ck_assert_int_eq(waitpid(pid, &how, 0), pid);
    ck_assert(WIFEXITED(how));
    return WEXITSTATUS(how);
}

START_TEST(on_a_terminal_it_asks_and_takes_only_yes_for_yes)
{
    char text[2000];
    CLI(&cli, EVENT, "append", "s1");
    CLI(&cli, EVENT, "append", "s2");
    ck_assert_int_eq(delete_on_a_terminal("\n", text, sizeof text), EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(text, "delete s1, s2 for ever? [y/N]"));
    ck_assert_ptr_nonnull(strstr(text, "nothing was deleted"));
    ck_assert_int_eq(cli_journals(&cli), 2);
    ck_assert_int_eq(delete_on_a_terminal("y\n", text, sizeof text), EXIT_DONE);
    ck_assert_int_eq(cli_journals(&cli), 0);
}
END_TEST

Suite *suite_delete(void)
{
    Suite *suite = suite_create("delete");
    TCase *delete = tcase_create("delete");
    tcase_add_checked_fixture(delete, setup, teardown);
    tcase_set_timeout(delete, 60);
    tcase_add_test(delete, what_is_deleted_says_so_and_is_gone_from_everywhere);
    tcase_add_test(delete, several_are_deleted_though_one_of_them_is_not_there);
    tcase_add_test(delete, a_session_is_taken_from_the_process_that_writes_it);
    tcase_add_test(delete, on_a_terminal_it_asks_and_takes_only_yes_for_yes);
    suite_add_tcase(suite, delete);
    return suite;
}
