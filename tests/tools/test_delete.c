/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENT "{\"type\":\"note.added\",\"data\":{\"n\":1}}\n"

START_TEST(a_deleted_session_is_missing_from_journals_and_tables)
{
    CLI(&cli, EVENT EVENT, "append", "s1");
    CLI(&cli, EVENT, "append", "s2");
    CLI(&cli, NULL, "snapshot", "s1");
    DONE(&cli, "delete", "s1");
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

START_TEST(delete_skips_a_missing_session_and_deletes_the_others)
{
    CLI(&cli, NULL, "delete", "s1");
    cli_assert_refused(&cli, EXIT_STORAGE, "no store at");
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

/* An open writer gives the session up on request; its next line begins a new session. */
START_TEST(delete_takes_a_session_from_the_process_that_writes_it)
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

/* Run it on a terminal and type an answer: returns the exit status and sets text to the screen. */
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

START_TEST(on_a_terminal_delete_asks_and_accepts_only_yes)
{
    char text[2000];
    CLI(&cli, EVENT, "append", "s1");
    CLI(&cli, EVENT, "append", "s2");
    ck_assert_int_eq(delete_on_a_terminal("\n", text, sizeof text), EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(text, "delete s1, s2 permanently? [y/N]"));
    ck_assert_ptr_nonnull(strstr(text, "nothing was deleted"));
    ck_assert_int_eq(cli_journals(&cli), 2);
    ck_assert_int_eq(delete_on_a_terminal("y\n", text, sizeof text), EXIT_DONE);
    ck_assert_int_eq(cli_journals(&cli), 0);
}
END_TEST

/* ---- Leftovers ---- */

/* No word of the other sessions begins like this. */
#define SECRET "qwxzv"

/* Append count messages to a session, with words that begin with word. */
static void append_words(const char *session, const char *word, unsigned from, unsigned count)
{
    char *text = malloc((size_t)400 * count);
    size_t len = 0;
    for (unsigned i = from; i < from + count; i++)
        len += (size_t)sprintf(
            text + len,
            "{\"type\":\"message.added\",\"data\":{\"id\":\"%s-%s%u\",\"role\":\"user\","
            "\"content\":{\"text\":\"%s%u said %sabc%u and %sabd%u\"},\"created_at\":%u}}\n",
            session, word, i, word, i, word, i, word, i, i);
    cli_run_bytes(&cli, text, len, (const char *[]){"append", session, NULL});
    cli_assert_done(&cli);
    free(text);
}

static void ck_no_secret(void)
{
    char name[400] = "";
    ck_assert_msg(grep_tree(cli.store, SECRET, name, sizeof name) == 0, "it is in %s", name);
}

/* Three sessions that grow in turn, so that they share pages; with tables, a snapshot, an artifact
 * and the search index. */
static void fill_store(void)
{
    CLI(&cli, NULL, "pack", "enable", "lionagi");
    for (unsigned round = 0; round < 3; round++) {
        append_words("a", "other", round * 60, 60);
        append_words("b", SECRET, round * 60, 60);
        append_words("c", "third", round * 60, 60);
        CLI(&cli, NULL, "search", SECRET "7");
        CLI(&cli, NULL, "sql", "SELECT count(*) FROM messages");
    }
    DONE(&cli, "snapshot", "b");
    file_write(tmpdir_path(&cli.dir, "artifact"), SECRET " artifact", 14);
    CLI(&cli, NULL, "artifact", "put", "b", tmpdir_path(&cli.dir, "artifact"));
    CLI(&cli, NULL, "search", "--count", SECRET "*");
    /* Leftover of an import of a bundle whose process was killed. */
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "store/.importing-0123456789abcdef"), 0700), 0);
    file_write(tmpdir_path(&cli.dir, "store/.importing-0123456789abcdef/b.jsonl"), SECRET,
               strlen(SECRET));
    ck_assert_uint_ge(grep_tree(cli.store, SECRET, NULL, 0), 5);
}

START_TEST(no_file_contains_content_of_a_deleted_session)
{
    fill_store();
    if (_i == 0) {
        DONE(&cli, "delete", "b");
    } else {
        CLI(&cli, "{\"type\":\"session.created\",\"data\":{},\"ts\":\"2020-01-01T00:00:00Z\"}\n",
            "append", "old");
        append_words("old", SECRET, 0, 20);
        CLI(&cli, NULL, "search", SECRET "7");
        DONE(&cli, "delete", "b", "old");
    }
    ck_no_secret();
    CLI(&cli, NULL, "search", "other59");
    ck_assert_ptr_nonnull(strstr(cli.out, "  seq 60"));
    CLI(&cli, NULL, "sql", "--format", "csv", "SELECT count(*) AS n FROM messages");
    ck_assert_ptr_nonnull(strstr(cli.out, "360"));
    DONE(&cli, "verify");
    ck_no_secret();
}
END_TEST

/* A process that keeps the store open after another process took its session. */
static pid_t start_owner(int *out_input, int *out_output)
{
    static const char line[] = "{\"type\":\"note.added\",\"data\":\"" SECRET "\"}\n";
    char answer[20];
    pid_t owner = cli_start(&cli, (const char *[]){"append", "s1", NULL}, out_input, out_output);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(write(*out_input, line, sizeof line - 1), sizeof line - 1);
        ck_assert_int_eq(read(*out_output, answer, 10), 10);
    }
    DONE_WITH(&cli, EVENT, "append", "s1");
    return owner;
}

static void end_owner(pid_t owner, int input, int output)
{
    int how;
    close(input);
    close(output);
    ck_assert_int_eq(waitpid(owner, &how, 0), owner);
}

START_TEST(a_process_with_an_open_store_keeps_no_content_of_a_deleted_session)
{
    int input, output;
    pid_t owner = start_owner(&input, &output);
    DONE(&cli, "delete", "s1");
    ck_no_secret();
    end_owner(owner, input, output);
    ck_no_secret();
}
END_TEST

START_TEST(delete_names_a_stopped_process_whose_log_is_wiped_when_it_continues_or_ends)
{
    int input, output, how;
    char holder[40];
    pid_t owner = start_owner(&input, &output);
    ck_assert_int_eq(kill(owner, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(owner, &how, WUNTRACED), owner);
    CLI(&cli, NULL, "delete", "--wait", "1", "s1");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    snprintf(holder, sizeof holder, "in commit log 00 of process %d", (int)owner);
    ck_assert_msg(strstr(cli.err, holder) != NULL, "%s", cli.err);
    ck_assert_uint_eq(grep_tree(cli.store, SECRET, NULL, 0), 1);
    kill(owner, _i == 0 ? SIGCONT : SIGKILL);
    for (int i = 0; _i == 0 && i < 500 && grep_tree(cli.store, SECRET, NULL, 0) > 0; i++)
        usleep(10000);
    end_owner(owner, input, output);
    if (_i == 1)
        CLI(&cli, NULL, "ls");
    ck_no_secret();
}
END_TEST

START_TEST(several_deletions_name_a_stopped_process_once)
{
    static const char created[] =
        "{\"type\":\"session.created\",\"data\":{},\"ts\":\"2020-01-01T00:00:00Z\"}\n";
    int input, output, how;
    unsigned told = 0;
    CLI(&cli, created, "append", "old1");
    DONE_WITH(&cli, created, "append", "old2");
    pid_t owner = start_owner(&input, &output);
    ck_assert_int_eq(kill(owner, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(owner, &how, WUNTRACED), owner);
    if (_i == 0)
        CLI(&cli, NULL, "delete", "--wait", "1", "old1", "old2");
    else
        CLI(&cli, NULL, "prune", "--wait", "1", "--keep-n", "0", "--delete-journals");
    ck_assert_msg(cli.exit_status == EXIT_DONE, "%s", cli.err);
    const char *at = cli.err;
    for (at = strstr(at, "may remain in commit log"); at != NULL; told++)
        at = strstr(at + 1, "may remain in commit log");
    ck_assert_msg(told == 1 && strstr(cli.err, "(stopped)") != NULL, "%s", cli.err);
    kill(owner, SIGCONT);
    end_owner(owner, input, output);
}
END_TEST

Suite *suite_delete(void)
{
    Suite *suite = suite_create("delete");
    TCase *delete = suite_case(suite, "delete", cli_setup, cli_teardown);
    tcase_add_test(delete, a_deleted_session_is_missing_from_journals_and_tables);
    tcase_add_test(delete, delete_skips_a_missing_session_and_deletes_the_others);
    tcase_add_test(delete, delete_takes_a_session_from_the_process_that_writes_it);
    tcase_add_test(delete, on_a_terminal_delete_asks_and_accepts_only_yes);
    tcase_add_loop_test(delete, no_file_contains_content_of_a_deleted_session, 0, 2);
    tcase_add_test(delete, a_process_with_an_open_store_keeps_no_content_of_a_deleted_session);
    tcase_add_loop_test(
        delete, delete_names_a_stopped_process_whose_log_is_wiped_when_it_continues_or_ends, 0, 2);
    tcase_add_loop_test(delete, several_deletions_name_a_stopped_process_once, 0, 2);
    return suite;
}
