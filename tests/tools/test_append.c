/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct refusal {
    const char *line;
    const char *what;
};

#define GOOD "{\"type\":\"note.added\",\"data\":{\"n\":1}}"
#define PI_LOG                                                                                     \
    "{\"type\":\"session\",\"id\":\"s1\",\"cwd\":\"/\"}\n"                                         \
    "{\"type\":\"message\",\"id\":\"p1\",\"message\":{\"role\":\"user\",\"content\":\"Tides?\"}}"  \
    "\n"

/* Assert that stdout is the earlier answers and then a last answer, an object whose only member
 * contains what. */
static void ck_answer(const char *before, const char *kind, const char *what)
{
    char begin[40], plain[80];
    size_t length = strlen(before);
    snprintf(begin, sizeof begin, "{\"%s\":\"", kind);
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(what, "\""), what);
    ck_assert_msg(strncmp(cli.out, before, length) == 0, "stdout: %s", cli.out);
    const char *answer = cli.out + length;
    ck_assert_msg(strncmp(answer, begin, strlen(begin)) == 0, "stdout: %s", cli.out);
    ck_assert_msg(strstr(answer, plain) != NULL, "no '%s' in: %s", plain, cli.out);
    ck_assert_msg(strchr(answer, '\n') == cli.out + cli.out_len - 1 &&
                      strcmp(cli.out + cli.out_len - 3, "\"}\n") == 0,
                  "stdout: %s", cli.out);
}

START_TEST(an_event_is_acknowledged_while_the_input_stays_open)
{
    int input, output, status;
    char ack[40] = "";
    pid_t pid = cli_start(&cli, (const char *[]){"append", "s1", NULL}, &input, &output);
    for (int i = 1; i <= 3; i++) {
        char want[40];
        snprintf(want, sizeof want, "{\"seq\":%d}\n", i);
        ck_assert_int_eq(write(input, GOOD "\n", sizeof GOOD), sizeof GOOD);
        ssize_t len = read(output, ack, sizeof ack - 1);
        ck_assert_int_gt(len, 0);
        ack[len] = '\0';
        ck_assert_str_eq(ack, want);
    }
    close(input);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    close(output);
}
END_TEST

START_TEST(two_running_appends_alternate_on_one_session)
{
    int input, output, status;
    char ack[40];
    pid_t pid = cli_start(&cli, (const char *[]){"append", "s1", NULL}, &input, &output);
    ck_assert_int_eq(write(input, GOOD "\n", sizeof GOOD), sizeof GOOD);
    ck_assert_int_gt(read(output, ack, sizeof ack), 0);
    DONE_WITH(&cli, GOOD "\n", "append", "s1");
    ck_assert_str_eq(cli.out, "{\"seq\":2}\n");
    ck_assert_int_eq(write(input, GOOD "\n", sizeof GOOD), sizeof GOOD);
    ssize_t len = read(output, ack, sizeof ack);
    ck_assert_int_eq(len, 10);
    ck_assert_int_eq(memcmp(ack, "{\"seq\":3}\n", 10), 0);
    close(input);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    close(output);
}
END_TEST

START_TEST(a_store_of_another_user_is_reported_as_forbidden_and_not_as_missing)
{
    DONE_WITH(&cli, GOOD "\n", "append", "s1");
    if (geteuid() == 0)
        ck_assert_int_eq(chmod(cli.dir.path, 0755), 0);
    else
        ck_assert_int_eq(chmod(cli.store, 0), 0);
    cli.as_nobody = geteuid() == 0;
    CLI(&cli, NULL, "version");
    if (cli.exit_status == 0) {
        CLI(&cli, NULL, "cat", "s1");
        cli_assert_refused(&cli, EXIT_STORAGE, "Permission denied");
        CLI(&cli, GOOD "\n", "append", "s1", "--expect-seq", "1");
        cli_assert_refused(&cli, EXIT_STORAGE, "Permission denied");
    } else {
        fprintf(stderr, "skipped: the command cannot be run as another user here\n");
    }
    ck_assert_int_eq(chmod(cli.store, 0700), 0);
}
END_TEST

START_TEST(a_read_only_directory_is_a_storage_failure_and_says_so)
{
    ck_assert_int_eq(mkdir(cli.store, 0555), 0);
    if (geteuid() == 0) {
        ck_assert_int_eq(chmod(cli.dir.path, 0755), 0);
        cli.as_nobody = true;
    }
    CLI(&cli, GOOD "\n", "append", "s1");
    if (cli.exit_status == 126 || cli.exit_status == 127) {
        fprintf(stderr, "skipped: the command cannot be run as another user here\n");
    } else {
        cli_assert_refused(&cli, EXIT_STORAGE, cli.store);
        ck_answer("", "refused", "create directory");
        ck_assert_int_eq(cli_journals(&cli), 0);
    }
}
END_TEST

/* `annal append s1` that has appended one event and waits for more. */
struct running {
    pid_t pid;
    int input, output;
    char answers[4000];
};

static void start(struct running *run)
{
    run->pid = cli_start(&cli, (const char *[]){"append", "s1", NULL}, &run->input, &run->output);
    ck_assert_int_eq(write(run->input, GOOD "\n", sizeof GOOD), sizeof GOOD);
    ck_assert_int_eq(read(run->output, run->answers, sizeof run->answers), 10);
}

/* Give it these lines and read its answers; storage fails in the meantime. */
static void finish(struct running *run, const char *lines, size_t bytes)
{
    int status;
    size_t len = 0;
    for (size_t at = 0; at < bytes;) {
        ssize_t done = write(run->input, lines + at, bytes - at);
        ck_assert_int_gt(done, 0);
        at += (size_t)done;
    }
    close(run->input);
    for (ssize_t got = 1; got > 0 && len < sizeof run->answers - 1; len += (size_t)got)
        got = read(run->output, run->answers + len, sizeof run->answers - 1 - len);
    run->answers[len] = '\0';
    close(run->output);
    ck_assert_int_eq(waitpid(run->pid, &status, 0), run->pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STORAGE);
}

static unsigned count(const char *text, const char *word)
{
    unsigned found = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        found++;
    return found;
}

static void ck_events(unsigned expected)
{
    char number[20];
    snprintf(number, sizeof number, "%u\n", expected);
    CLI(&cli, NULL, "query", "s1", "--count");
    ck_assert_str_eq(cli.out, number);
}

/* Its bytes may be in either file. */
START_TEST(lines_whose_journal_was_replaced_are_unknown_and_the_exit_status_is_3)
{
    struct running run;
    size_t len;
    start(&run);
    char *journal = cli_journal(&cli, "s1", &len);
    const char *copy = tmpdir_path(&cli.dir, "copy");
    file_write(copy, journal, len);
    free(journal);
    ck_assert_int_eq(rename(copy, tmpdir_path(&cli.dir, "store/events/s1.jsonl")), 0);
    finish(&run, GOOD "\n", sizeof GOOD);
    ck_assert_msg(strncmp(run.answers, "{\"unknown\":\"", 12) == 0, "%s", run.answers);
    ck_assert_uint_eq(count(run.answers, "\n"), 1);
}
END_TEST

START_TEST(lines_whose_log_was_removed_are_refused_and_not_appended)
{
    struct running run;
    start(&run);
    ck_assert_int_eq(unlink(tmpdir_path(&cli.dir, "store/commit/00.log")), 0);
    finish(&run, GOOD "\n" GOOD "\n", 2 * sizeof GOOD);
    ck_assert_msg(strncmp(run.answers, "{\"refused\":\"", 12) == 0, "%s", run.answers);
    ck_assert_ptr_nonnull(strstr(run.answers, "00.log"));
    ck_assert_uint_eq(count(run.answers, "\n"), count(run.answers, "{\"refused\""));
    ck_events(1);
}
END_TEST

/* A log that cannot grow, for one large event. */
START_TEST(a_full_disk_refuses_a_line_and_earlier_lines_have_their_seq)
{
    enum { LARGE = 3 << 20 };
    struct running run;
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN); /* the command too: its writes then fail */
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = LARGE;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    start(&run);
    limit.rlim_cur = before;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);

    char *lines = malloc(LARGE + 200);
    int len = sprintf(lines, GOOD "\n{\"type\":\"n\",\"data\":\"");
    memset(lines + len, 'x', LARGE);
    memcpy(lines + len + LARGE, "\"}\n", 3);
    finish(&run, lines, (size_t)len + LARGE + 3);
    free(lines);
    /* The second line may have been synced alone, before the large line was read. */
    unsigned kept = count(run.answers, "{\"seq\":2}");
    ck_assert_uint_eq(count(run.answers, "{\"refused\":\""), 2 - kept);
    ck_assert_uint_eq(count(run.answers, "\n"), 2);
    ck_events(1 + kept);
    DONE(&cli, "verify");
}
END_TEST

START_TEST(an_append_whose_output_is_closed_appends_all_lines)
{
    int input, output, status;
    pid_t pid = cli_start(&cli, (const char *[]){"append", "s1", NULL}, &input, &output);
    close(output);
    ck_assert_int_eq(write(input, GOOD "\n" GOOD "\n", 2 * sizeof GOOD), 2 * sizeof GOOD);
    close(input);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    CLI(&cli, NULL, "query", "s1", "--count");
    ck_assert_str_eq(cli.out, "2\n");
}
END_TEST

START_TEST(a_short_input_opens_no_index)
{
    CLI(&cli, GOOD "\n" GOOD "\n", "append", "s1");
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_int_ne(access(tmpdir_path(&cli.dir, "store/sessions.db"), F_OK), 0);
}
END_TEST

Suite *suite_append(void)
{
    Suite *suite = suite_create("append");
    TCase *sessions = suite_case(suite, "sessions", cli_setup, cli_teardown);
    tcase_add_test(sessions, an_event_is_acknowledged_while_the_input_stays_open);
    tcase_add_test(sessions, two_running_appends_alternate_on_one_session);
    tcase_add_test(sessions, an_append_whose_output_is_closed_appends_all_lines);

    TCase *storage = suite_case(suite, "storage", cli_setup, cli_teardown);
    tcase_add_test(storage, lines_whose_journal_was_replaced_are_unknown_and_the_exit_status_is_3);
    tcase_add_test(storage, lines_whose_log_was_removed_are_refused_and_not_appended);
    tcase_add_test(storage, a_full_disk_refuses_a_line_and_earlier_lines_have_their_seq);
    tcase_add_test(storage, a_store_of_another_user_is_reported_as_forbidden_and_not_as_missing);
    tcase_add_test(storage, a_read_only_directory_is_a_storage_failure_and_says_so);
    tcase_add_test(storage, a_short_input_opens_no_index);
    return suite;
}
