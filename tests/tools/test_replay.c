/* SPDX-License-Identifier: Apache-2.0 */
/* replay, tail, snapshot. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char history[] =
    "{\"type\":\"session.created\",\"ts\":\"2026-01-06T07:00:00Z\",\"data\":{\"title\":\"One\"}}\n"
    "{\"type\":\"turn.started\",\"ts\":\"2026-01-06T08:00:00Z\",\"data\":{\"turn_id\":\"t1\"}}\n"
    "{\"type\":\"turn.completed\",\"ts\":\"2026-01-06T09:00:00Z\",\"data\":{\"turn_id\":\"t1\","
    "\"input_tokens\":5,\"output_tokens\":2}}\n"
    "{\"type\":\"session.updated\",\"ts\":\"2026-01-06T10:00:00Z\",\"data\":{\"title\":\"Two\"}}\n";

static void begin(void)
{
    DONE_WITH(&cli, history, "append", "s");
}

/* The event was damaged after the snapshot. */
START_TEST(replay_verify_reports_a_snapshot_that_differs_from_its_events)
{
    size_t len;
    begin();
    CLI(&cli, NULL, "snapshot", "s");
    CLI(&cli, NULL, "checkpoint");
    char *journal = cli_journal(&cli, "s", &len);
    char *turn = strstr(journal, "turn.started");
    ck_assert_ptr_nonnull(turn);
    turn[5] ^= 1;
    cli_journal_write(&cli, "s", journal, len);
    free(journal);
    CLI(&cli, NULL, "replay", "s", "--verify");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_int_eq(
        strncmp(cli.out, "s: at seq 4: it gives another state than folding the events does: ", 65),
        0);
    ck_assert_ptr_nonnull(strstr(cli.out, "something differs\n"));
}
END_TEST

START_TEST(a_long_replay_takes_overdue_snapshots)
{
    enum { EVENTS = 2500 };
    char *input = malloc(EVENTS * 10);
    size_t len = 0;
    begin();
    for (int i = 1; i <= EVENTS; i++)
        len += (size_t)sprintf(input + len, "%d\n", i);
    CLI(&cli, input, "append", "s", "--type", "n");
    free(input);
    CLI(&cli, NULL, "snapshot", "drop", "s");
    CLI(&cli, NULL, "replay", "s", "--json", "--no-snapshots");
    char *folded = strdup(cli.out);
    CLI(&cli, NULL, "sql", "SELECT count(*) AS n FROM snapshots", "--json");
    ck_assert_str_eq(cli.out, "{\"n\":0}\n");
    CLI(&cli, NULL, "replay", "s", "--json");
    ck_assert_str_eq(cli.out, folded);
    CLI(&cli, NULL, "sql", "SELECT count(*) AS n FROM snapshots", "--json");
    ck_assert_str_eq(cli.out, "{\"n\":2}\n");
    CLI(&cli, NULL, "replay", "s", "--json");
    ck_assert_str_eq(cli.out, folded);
    DONE(&cli, "verify", "--replay");
    free(folded);
}
END_TEST

START_TEST(a_snapshot_that_is_damaged_is_a_finding_and_changes_no_answer)
{
    begin();
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
    ck_assert_ptr_nonnull(strstr(cli.out, "s: event 4 at byte 0: "));
    CLI(&cli, NULL, "verify", "--replay");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    free(sound);
}
END_TEST

/* Read one line; the test fails after a minute. */
static void read_line(int from, char *line, size_t size)
{
    size_t len = 0;
    while (len == 0 || line[len - 1] != '\n') {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        ck_assert_int_eq(poll(&ready, 1, 60000), 1);
        ck_assert_uint_lt(len, size - 1);
        ck_assert_int_eq(read(from, line + len, 1), 1);
        len++;
    }
    line[len] = '\0';
}

START_TEST(tail_prints_history_and_then_each_new_event)
{
    int input, output, status;
    char line[300], want[80];
    begin();
    DONE(&cli, "tail", "s", "--from", "4");
    ck_assert_int_eq(strncmp(cli.out, "{\"session_id\":\"s\",\"seq\":4,\"timestamp\":", 38), 0);
    CLI(&cli, NULL, "tail", "nobody");
    cli_assert_refused(&cli, EXIT_REFUSED, "nobody");

    pid_t pid = cli_start(&cli, (const char *[]){"tail", "s", "--follow", NULL}, &input, &output);
    for (int seq = 1; seq <= 10; seq++) {
        if (seq > 4)
            CLI(&cli, "{\"n\":1}\n", "append", "s", "--type", "n");
        snprintf(want, sizeof want, "{\"session_id\":\"s\",\"seq\":%d,", seq);
        read_line(output, line, sizeof line);
        ck_assert_int_eq(strncmp(line, want, strlen(want)), 0);
    }
    close(output);
    close(input);
    ck_assert_int_eq(waitpid(pid, &status, 0),
                     pid); /* it notices that its reader closed the pipe */
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(tail_waits_for_a_missing_session)
{
    int input, output, status;
    char line[300];
    begin();
    pid_t pid = cli_start(&cli, (const char *[]){"tail", "new", "--follow", NULL}, &input, &output);
    usleep(100000);
    CLI(&cli, "1\n", "append", "new", "--type", "n");
    read_line(output, line, sizeof line);
    ck_assert_int_eq(strncmp(line, "{\"session_id\":\"new\",\"seq\":1,", 28), 0);
    ck_assert_int_eq(kill(pid, SIGINT), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    close(output);
    close(input);
}
END_TEST

/* ---- Tails of several sessions ---- */

Suite *suite_replay(void)
{
    Suite *suite = suite_create("replay");
    TCase *past = suite_case(suite, "past", cli_setup, cli_teardown);
    tcase_add_test(past, replay_verify_reports_a_snapshot_that_differs_from_its_events);
    tcase_add_test(past, a_long_replay_takes_overdue_snapshots);
    tcase_add_test(past, a_snapshot_that_is_damaged_is_a_finding_and_changes_no_answer);
    TCase *live = suite_case(suite, "live", cli_setup, cli_teardown);
    tcase_add_test(live, tail_prints_history_and_then_each_new_event);
    tcase_add_test(live, tail_waits_for_a_missing_session);
    return suite;
}
