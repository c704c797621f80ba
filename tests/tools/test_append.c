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

static const struct refusal bad_lines[] = {
    {"hello", "not valid JSON"},
    {"{\"type\":\"a\",\"data\":1", "not valid JSON"},
    {"{\"type\":\"a\",\"data\":1} {\"type\":\"b\",\"data\":2}", "line 1"},
    {"{\"type\":\"a\",\"data\":{\"text\":\"raw\nnewline\"}}", "line 1"},
    {"{\"type\":\"a\",\"data\":\"\xff\"}", "line 1"},
    {"{\"type\":\"a\",\"data\":\"\x01\"}", "line 1"},
    {"", "empty"},
    {"   ", "empty"},
    {"[1,2]", "not a JSON object"},
    {"42", "not a JSON object"},
    {"{}", "\"type\" is missing"},
    {"{\"data\":1}", "\"type\" is missing"},
    {"{\"type\":\"a\"}", "\"data\" is missing"},
    {"{\"type\":null,\"data\":1}", "\"type\" is missing"},
    {"{\"type\":7,\"data\":1}", "\"type\" is not a string"},
    {"{\"type\":\"\",\"data\":1}", "\"type\" is empty"},
    {"{\"type\":\"Upper\",\"data\":1}", "type"},
    {"{\"type\":\"a b\",\"data\":1}", "type"},
    {"{\"type\":\"a\",\"data\":1,\"seq\":5}", "\"seq\" is unknown"},
    {"{\"type\":\"a\",\"data\":1,\"data\":2}", "is given twice"},
    {"{\"type\":\"a\",\"data\":1,\"\\u0064ata\":2}", "is given twice"},
    {"{\"type\":\"a\",\"data\":1,\"id\":5}", "\"id\" is not a string"},
    {"{\"type\":\"a\",\"data\":1,\"id\":\"\"}", "\"id\" is empty"},
    {"{\"type\":\"a\",\"data\":1,\"id\":\"\\ud800\"}", "surrogate"},
    {"{\"type\":\"a\",\"data\":1,\"id\":\"two\\nlines\"}", "id"},
    {"{\"type\":\"a\",\"data\":1,\"cause\":\"nonsense\"}", "cause"},
    {"{\"type\":\"a\",\"data\":1,\"ts\":\"noon\"}", "time"},
    {"{\"type\":\"a\",\"data\":1,\"ts\":1700000000}", "\"ts\" is not a string"},
};

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

START_TEST(the_answer_says_why_a_store_could_not_be_opened)
{
    const char *place = tmpdir_path(&cli.dir, "typo/store");
    CLI(&cli, GOOD "\n", "append", "s1", "--store", place);
    cli_assert_refused(&cli, EXIT_REFUSED, "/typo does not exist; create it first");
    ck_answer("", "refused", "/typo does not exist; create it first");
    ck_assert_int_ne(access(tmpdir_path(&cli.dir, "typo"), F_OK), 0);
}
END_TEST

/* A mistyped --store must not spread a store over a project. */
START_TEST(a_directory_of_other_files_becomes_a_store_only_with_create)
{
    const char *log = tmpdir_path(&cli.dir, "log.jsonl");
    const char *const makers[][3] = {
        {"append", "s1"}, {"import", "pi", log}, {"pack", "enable", "teams"}};
    const char *const *verb = makers[_i];
    file_write(log, PI_LOG, strlen(PI_LOG));
    ck_assert_int_eq(mkdir(cli.store, 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "store/lost+found"), 0700), 0);
    file_write(tmpdir_path(&cli.dir, "store/main.c"), "", 0);
    CLI(&cli, GOOD "\n", verb[0], verb[1], verb[2]);
    cli_assert_refused(&cli, EXIT_REFUSED, "--create creates a store in the directory");
    ck_assert_int_ne(access(tmpdir_path(&cli.dir, "store/events"), F_OK), 0);
    const char *last = verb[2] == NULL ? "--create" : verb[2];
    CLI(&cli, GOOD "\n", verb[0], verb[1], last, verb[2] == NULL ? NULL : "--create");
    ck_assert_msg(cli.exit_status == EXIT_DONE, "%s", cli.err);
    CLI(&cli, GOOD "\n", verb[0], verb[1], verb[2]);
    ck_assert_msg(cli.exit_status == EXIT_DONE, "%s", cli.err);
}
END_TEST

START_TEST(keep_free_refuses_an_append_and_prints_its_limit)
{
    CLI(&cli, GOOD "\n", "append", "s1", "--keep-free", "1000000000");
    cli_assert_refused(&cli, EXIT_STORAGE, "1000000000.0 are kept free (--keep-free");
    ck_answer("", "refused", "1000000000.0 are kept free");
    DONE_WITH(&cli, GOOD "\n", "append", "s1", "--keep-free", "0");
    CLI(&cli, GOOD "\n", "append", "s1", "--keep-free", "1G");
    cli_assert_refused(&cli, EXIT_USAGE, "whole number of MiB");
}
END_TEST

START_TEST(a_bad_line_is_refused_with_a_single_sentence_and_nothing_is_written)
{
    char input[300];
    snprintf(input, sizeof input, "%s\n", bad_lines[_i].line);
    CLI(&cli, input, "append", "s1");
    cli_assert_refused(&cli, EXIT_REFUSED, bad_lines[_i].what);
    ck_assert_ptr_nonnull(strstr(cli.err, "line 1"));
    ck_answer("", "refused", bad_lines[_i].what);
    ck_assert_int_ne(access(cli.store, F_OK), 0);
}
END_TEST

START_TEST(a_type_that_is_not_accepted_is_wrong_usage_also_without_input)
{
    CLI(&cli, NULL, "append", "s1", "--type", "A");
    cli_assert_refused(&cli, EXIT_USAGE, "--type");
    ck_assert_int_ne(access(cli.store, F_OK), 0);
}
END_TEST

START_TEST(with_expect_seq_a_missing_store_is_not_created)
{
    CLI(&cli, GOOD "\n", "append", "s1", "--expect-seq", "3");
    cli_assert_refused(&cli, EXIT_REFUSED, "line 1: append to session 's1'");
    ck_assert_int_ne(access(cli.store, F_OK), 0);
    DONE_WITH(&cli, GOOD "\n", "append", "s1", "--expect-seq", "0");
}
END_TEST

START_TEST(lines_before_a_bad_line_are_appended_and_acknowledged)
{
    CLI(&cli, GOOD "\n" GOOD "\nnonsense\n" GOOD "\n", "append", "s1");
    cli_assert_refused(&cli, EXIT_REFUSED, "line 3");
    ck_answer("{\"seq\":1}\n{\"seq\":2}\n", "refused", "line 3: ");
    DONE_WITH(&cli, GOOD, "append", "s1");
    ck_assert_str_eq(cli.out, "{\"seq\":3}\n");
}
END_TEST

START_TEST(an_empty_input_creates_nothing)
{
    DONE(&cli, "append", "s1");
    ck_assert_str_eq(cli.out, "");
    ck_assert_int_ne(access(cli.store, F_OK), 0);
}
END_TEST

/* Spaces, escapes, big numbers, key order and repeated keys inside data are kept. */
static const char *const payloads[] = {
    "{\"b\": 1,  \"a\":\t[ 1 ,2]}",
    "\"\\u00e9\\ud83d\\ude00 \xf0\x9f\x98\x80 \\/ \\\" }{ ][\"",
    "123456789012345678901234567890.10e400",
    "{\"data\":{\"type\":\"x\",\"data\":[]},\"a\":1,\"a\":2}",
    "\"\\ud800\"",
    "[[[[]]],{},\"\",null,true,false,-0]",
    "null",
};

START_TEST(cat_prints_appended_data_byte_for_byte)
{
    char line[400];
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++) {
        snprintf(line, sizeof line, " { \"data\" : %s , \"type\":\"t\\u0065st\" } \r\n",
                 payloads[i]);
        DONE_WITH(&cli, line, "append", "s1");
        snprintf(line, sizeof line, "\t%s \n", payloads[i]);
        DONE_WITH(&cli, line, "append", "s1", "--type", "test");
        for (int seq = (int)i * 2 + 1; seq <= (int)i * 2 + 2; seq++) {
            char from[20];
            snprintf(from, sizeof from, "--from=%d", seq);
            snprintf(line, sizeof line, "\"type\":\"test\",\"data\":%s}\n", payloads[i]);
            DONE(&cli, "cat", "s1", from, "--raw");
            ck_assert_msg(strstr(cli.out, line) != NULL, "%s not in %s", line, cli.out);
        }
    }
}
END_TEST

START_TEST(cat_prints_the_appended_id_ts_and_cause)
{
    CLI(&cli,
        "{\"ts\":\"2026-01-06T08:24:00.5+01:00\",\"cause\":\"other:7\",\"id\":\"caf\\u00e9\","
        "\"type\":\"a\","
        "\"data\":1}\n{\"type\":\"b\",\"id\":null,\"ts\":null,\"cause\":null,\"data\":2}\n"
        "{\"type\":\"c\",\"ts\":\"1970-01-01T00:00:00Z\",\"data\":3}",
        "append", "s1");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "cat", "s1");
    ck_assert_ptr_nonnull(strstr(cli.out,
                                 "{\"seq\":1,\"ts\":\"2026-01-06T07:24:00.500000Z\","
                                 "\"type\":\"a\",\"id\":\"caf\xc3\xa9\",\"cause\":\"other:7\","
                                 "\"data\":1}\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"type\":\"b\",\"data\":2}\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"ts\":\"1970-01-01T00:00:00.000000Z\",\"type\":\"c\""));
}
END_TEST

START_TEST(the_same_id_again_is_the_same_event_and_with_other_bytes_a_conflict)
{
    const char *line = "{\"type\":\"a\",\"data\":1,\"id\":\"x\"}\n";
    CLI(&cli, line, "append", "s1");
    DONE_WITH(&cli, line, "append", "s1");
    ck_assert_str_eq(cli.out, "{\"seq\":1}\n");
    CLI(&cli, "{\"type\":\"a\",\"data\":2,\"id\":\"x\"}\n", "append", "s1");
    cli_assert_refused(&cli, EXIT_REFUSED, "line 1");
    ck_answer("", "refused", "id 'x' is taken");
    CLI(&cli, NULL, "query", "s1", "--count");
    ck_assert_str_eq(cli.out, "1\n");
}
END_TEST

START_TEST(expect_seq_applies_to_the_first_line_only)
{
    DONE_WITH(&cli, GOOD "\n" GOOD "\n", "append", "s1", "--expect-seq", "0");
    CLI(&cli, GOOD "\n", "append", "s1", "--expect-seq", "0");
    cli_assert_refused(&cli, EXIT_REFUSED, "line 1");
    ck_answer("", "refused", "the session ends at seq 2, not at 0");
    CLI(&cli, GOOD "\n", "append", "s1", "--expect-seq", "7");
    cli_assert_refused(&cli, EXIT_REFUSED, "line 1");
    DONE_WITH(&cli, GOOD "\n" GOOD "\n", "append", "s1", "--expect-seq", "2");
    ck_assert_str_eq(cli.out, "{\"seq\":3}\n{\"seq\":4}\n");
    CLI(&cli, GOOD "\n", "append", "s2", "--expect-seq", "1");
    cli_assert_refused(&cli, EXIT_REFUSED, "line 1");
    ck_assert_int_eq(cli_journals(&cli), 1);
}
END_TEST

START_TEST(every_level_acknowledges_and_keeps_ten_thousand_events_in_order)
{
    static const char *const levels[] = {"sync", "batch", "os"};
    enum { EVENTS = 10000 };
    char *input = malloc(EVENTS * 12);
    size_t len = 0, at = 0;
    for (int i = 1; i <= EVENTS; i++)
        len += (size_t)sprintf(input + len, "%d\n", i);
    CLI(&cli, input, "append", "s1", "--type", "n", "--level", levels[_i]);
    free(input);
    cli_assert_done(&cli);
    for (int i = 1; i <= EVENTS; i++) {
        char line[40];
        size_t bytes = (size_t)sprintf(line, "{\"seq\":%d}\n", i);
        ck_assert_msg(strncmp(cli.out + at, line, bytes) == 0, "ack %d is %.20s", i, cli.out + at);
        at += bytes;
    }
    CLI(&cli, NULL, "query", "s1", "--count");
    ck_assert_str_eq(cli.out, "10000\n");
    DONE(&cli, "verify");
}
END_TEST

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

START_TEST(a_file_where_the_store_should_be_is_a_storage_failure)
{
    file_write(cli.store, "x", 1);
    CLI(&cli, GOOD "\n", "append", "s1");
    cli_assert_refused(&cli, EXIT_STORAGE, cli.store);
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

START_TEST(an_append_creates_a_session_in_its_format_and_a_later_one_keeps_it)
{
    static const char event[] =
        "{\"type\":\"t\",\"id\":\"i\",\"ts\":\"2026-01-06T07:24:00.000001Z\","
        "\"data\":{\"n\":[1,2.5,1e400],\"text\":\"caf\xc3\xa9 \\ud800\"}}\n";
    DONE_WITH(&cli, event, "append", "j", "--format", "jsonl");
    DONE_WITH(&cli, event, "append", "m", "--format", "msgpack");
    CLI(&cli, event, "append", "m"); /* the same id: the event exists */
    ck_assert_str_eq(cli.out, "{\"seq\":1}\n");
    free(file_read(tmpdir_path(&cli.dir, "store/events/j.jsonl"), NULL));
    free(file_read(tmpdir_path(&cli.dir, "store/events/m.mpk"), NULL));
    CLI(&cli, NULL, "cat", "j");
    char *json = strdup(cli.out);
    CLI(&cli, NULL, "cat", "m");
    ck_assert_str_eq(cli.out, json);
    free(json);
    CLI(&cli, "{\"type\":\"t\",\"data\":1}\n", "append", "m", "--format", "jsonl");
    ck_answer("", "refused", "format of a session cannot change");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    CLI(&cli, NULL, "append", "m", "--format", "xml");
    cli_assert_refused(&cli, EXIT_USAGE, "jsonl or msgpack");
    DONE(&cli, "verify");
}
END_TEST

/* ---- Enabled packs ---- */

START_TEST(a_guard_of_an_enabled_pack_refuses_a_line_of_an_append)
{
    CLI(&cli, NULL, "pack", "enable", "teams");
    CLI(&cli,
        "{\"type\":\"note.added\",\"data\":{ \"n\" : 1 }}\n"
        "{\"type\":\"team.created\",\"data\":{\"name\":\"review\",\"members\":[\"ada\"]}}\n"
        "{\"type\":\"note.added\",\"data\":2}\n"
        "{\"type\":\"team.created\",\"data\":{\"name\":\"review\",\"members\":[\"ada\"]}}\n"
        "{\"type\":\"note.added\",\"data\":3}\n",
        "append", "team_t1");
    cli_assert_refused(&cli, EXIT_REFUSED, "line 4: the team exists already");
    ck_answer("{\"seq\":1}\n{\"seq\":2}\n{\"seq\":3}\n", "refused", "line 4: the team exists");
    CLI(&cli, NULL, "query", "team_t1", "--count");
    ck_assert_int_eq(atoi(cli.out), 3);
}
END_TEST

START_TEST(a_strict_append_refuses_what_does_not_fit_a_known_type)
{
    static const struct refusal lines[] = {
        {"{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c\"}}", "\\\"tool\\\" is missing"},
        {"{\"type\":\"tool.failed\",\"data\":{\"call_id\":\"c\",\"succes\":false}}",
         "\\\"succes\\\" is not a field of this type"},
        {"{\"type\":\"agent.turn.usage\",\"data\":{\"input_tokens\":1.5}}",
         "\\\"input_tokens\\\" is of kind number, and not integer"},
        {"{\"type\":\"turn_start\",\"data\":{\"turn_id\":null}}", "\\\"turn_id\\\" is missing"},
        {"{\"type\":\"message.added\",\"data\":[]}", "its data is not an object"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        CLI(&cli, lines[i].line, "append", "s1", "--strict");
        ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
        ck_assert_msg(strstr(cli.out, lines[i].what) != NULL, "%s: %s", lines[i].what, cli.out);
    }
    CLI(&cli,
        "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c\",\"tool\":\"t\",\"input\":7}}\n"
        "{\"type\":\"tool.failed\",\"data\":{\"call_id\":\"c\",\"success\":null,\"extra\":1}}\n"
        "{\"type\":\"agent.turn.usage\",\"data\":{\"cost_usd\":1}}\n"
        "{\"type\":\"session.paused\",\"data\":null}\n"
        "{\"type\":\"message.added\",\"data\":{\"id\":\"m\",\"role\":\"user\",\"content\":\"x\","
        "\"item\":true,\"phase\":1}}\n"
        "{\"type\":\"tool.called\",\"data\":{\"callId\":\"c\",\"call_id\":\"d\",\"tool\":\"t\","
        "\"item\":{\"tool\":\"name\"}}}\n"
        "{\"type\":\"my.own\",\"data\":{\"any\":1}}",
        "append", "s1", "--strict");
    ck_assert_str_eq(cli.err, "");
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"seq\":7}"));
}
END_TEST

START_TEST(an_append_of_a_turn_does_not_open_sessions_db)
{
    CLI(&cli,
        "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t\"}}\n"
        "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t\"}}\n",
        "append", "s1");
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, "{\"seq\":1}\n{\"seq\":2}\n");
    ck_assert_int_ne(access(tmpdir_path(&cli.dir, "store/sessions.db"), F_OK), 0);
}
END_TEST

START_TEST(a_long_input_leaves_a_snapshot)
{
    enum { LINES = 1100 };
    char *lines = malloc(LINES * sizeof GOOD + 1);
    size_t len = 0;
    for (int i = 0; i < LINES; i++)
        len += (size_t)sprintf(lines + len, GOOD "\n");
    CLI(&cli, lines, "append", "s1");
    ck_assert_int_eq(cli.exit_status, 0);
    CLI(&cli, NULL, "snapshot", "list", "s1", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"seq\":1000,"));
    CLI(&cli, NULL, "doctor", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "none is overdue"));
    free(lines);
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
    TCase *lines = suite_case(suite, "lines", cli_setup, cli_teardown);
    tcase_add_test(lines, the_answer_says_why_a_store_could_not_be_opened);
    tcase_add_loop_test(lines, a_directory_of_other_files_becomes_a_store_only_with_create, 0, 3);
    tcase_add_test(lines, keep_free_refuses_an_append_and_prints_its_limit);
    tcase_add_loop_test(lines, a_bad_line_is_refused_with_a_single_sentence_and_nothing_is_written,
                        0, sizeof bad_lines / sizeof bad_lines[0]);
    tcase_add_test(lines, a_type_that_is_not_accepted_is_wrong_usage_also_without_input);
    tcase_add_test(lines, with_expect_seq_a_missing_store_is_not_created);
    tcase_add_test(lines, lines_before_a_bad_line_are_appended_and_acknowledged);
    tcase_add_test(lines, an_empty_input_creates_nothing);
    tcase_add_test(lines, cat_prints_appended_data_byte_for_byte);
    tcase_add_test(lines, cat_prints_the_appended_id_ts_and_cause);

    TCase *sessions = suite_case(suite, "sessions", cli_setup, cli_teardown);
    tcase_add_test(sessions, the_same_id_again_is_the_same_event_and_with_other_bytes_a_conflict);
    tcase_add_test(sessions, expect_seq_applies_to_the_first_line_only);
    tcase_add_loop_test(sessions, every_level_acknowledges_and_keeps_ten_thousand_events_in_order,
                        0, 3);
    tcase_add_test(sessions, an_event_is_acknowledged_while_the_input_stays_open);
    tcase_add_test(sessions, an_append_creates_a_session_in_its_format_and_a_later_one_keeps_it);
    tcase_add_test(sessions, two_running_appends_alternate_on_one_session);
    tcase_add_test(sessions, an_append_whose_output_is_closed_appends_all_lines);

    TCase *storage = suite_case(suite, "storage", cli_setup, cli_teardown);
    tcase_add_test(storage, lines_whose_journal_was_replaced_are_unknown_and_the_exit_status_is_3);
    tcase_add_test(storage, lines_whose_log_was_removed_are_refused_and_not_appended);
    tcase_add_test(storage, a_full_disk_refuses_a_line_and_earlier_lines_have_their_seq);
    tcase_add_test(storage, a_store_of_another_user_is_reported_as_forbidden_and_not_as_missing);
    tcase_add_test(storage, a_read_only_directory_is_a_storage_failure_and_says_so);
    tcase_add_test(storage, a_file_where_the_store_should_be_is_a_storage_failure);

    TCase *packs = suite_case(suite, "packs", cli_setup, cli_teardown);
    tcase_add_test(storage, a_long_input_leaves_a_snapshot);
    tcase_add_test(storage, a_short_input_opens_no_index);
    tcase_add_test(packs, a_guard_of_an_enabled_pack_refuses_a_line_of_an_append);
    tcase_add_test(packs, a_strict_append_refuses_what_does_not_fit_a_known_type);
    tcase_add_test(packs, an_append_of_a_turn_does_not_open_sessions_db);
    return suite;
}
