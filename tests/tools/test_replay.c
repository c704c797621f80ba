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

static void assert_sql(const char *at, const char *want)
{
    DONE(&cli, "replay", "s", "--json", "--at", at, "--sql",
         "SELECT title, total_tokens AS n, (SELECT count(*) FROM turns) AS t FROM sessions");
    ck_assert_str_eq(cli.out, want);
}

START_TEST(replay_prints_the_state_at_any_seq_and_any_time)
{
    begin();
    assert_sql("0", "");
    assert_sql("1", "{\"title\":\"One\",\"n\":null,\"t\":0}\n");
    assert_sql("2", "{\"title\":\"One\",\"n\":null,\"t\":1}\n");
    assert_sql("4", "{\"title\":\"Two\",\"n\":7,\"t\":1}\n");
    assert_sql("2026-01-06T09:59:59Z", "{\"title\":\"One\",\"n\":7,\"t\":1}\n");
    assert_sql("2026-01-06T07:00:00Z", "{\"title\":\"One\",\"n\":null,\"t\":0}\n");
    assert_sql("2026-01-01", "");
    assert_sql("1h", "{\"title\":\"Two\",\"n\":7,\"t\":1}\n");
    CLI(&cli, NULL, "replay", "s", "--at", "5");
    cli_assert_refused(&cli, EXIT_REFUSED, "5");
    CLI(&cli, NULL, "replay", "nobody");
    cli_assert_refused(&cli, EXIT_REFUSED, "nobody");
    CLI(&cli, NULL, "replay", "s", "--at", "noon");
    cli_assert_refused(&cli, EXIT_USAGE, "--at");
    CLI(&cli, NULL, "replay", "s", "--sql", "DELETE FROM turns");
    cli_assert_refused(&cli, EXIT_REFUSED, "annal: ");
}
END_TEST

START_TEST(replay_prints_the_state_for_people_and_for_programs)
{
    begin();
    DONE(&cli, "replay", "s", "--at", "3");
    ck_assert_ptr_nonnull(strstr(cli.out, "after seq            3\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "title                One\n"));
    DONE(&cli, "replay", "s", "--json");
    ck_assert_int_eq(strncmp(cli.out, "{\"sessions\":[{\"id\":\"s\",", 23), 0);
    DONE(&cli, "replay", "s", "--at", "2", "--events", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"session_id\":\"s\",\"seq\":2,\"timestamp\":"));
    ck_assert_ptr_null(strstr(cli.out, "\"seq\":3"));
}
END_TEST

START_TEST(the_tables_of_any_pack_are_replayed)
{
    CLI(&cli,
        "{\"type\":\"team.created\",\"data\":{\"name\":\"reviewers\",\"members\":[\"ann\",\"bob\"]}"
        "}\n"
        "{\"type\":\"note\",\"data\":{}}\n",
        "append", "team_a");
    cli_assert_done(&cli);
    DONE(&cli, "replay", "team_a", "--pack", "teams", "--json", "--sql",
         "SELECT id, name FROM teams");
    ck_assert_str_eq(cli.out, "{\"id\":\"a\",\"name\":\"reviewers\"}\n");
    DONE(&cli, "replay", "team_a", "--pack", "teams", "--at", "0", "--sql",
         "SELECT id, name FROM teams");
    DONE(&cli, "replay", "team_a", "--pack", "teams");
    ck_assert_ptr_nonnull(strstr(cli.out, "\nteams\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "reviewers"));
    DONE(&cli, "snapshot", "team_a");
    CLI(&cli, NULL, "replay", "team_a", "--pack",
        "teams"); /* a snapshot of core makes no difference */
    cli_assert_done(&cli);
    CLI(&cli, NULL, "replay", "team_a", "--pack", "nobody");
    cli_assert_refused(&cli, EXIT_REFUSED, "nobody");
}
END_TEST

START_TEST(replay_gives_the_same_state_with_and_without_snapshots)
{
    begin();
    DONE(&cli, "snapshot", "s");
    ck_assert_ptr_nonnull(strstr(cli.out, "s: snapshot at seq 4, "));
    CLI(&cli, history, "append", "s");
    DONE(&cli, "snapshot", "s", "--json");
    ck_assert_int_eq(strncmp(cli.out, "{\"session_id\":\"s\",\"seq\":8,", 26), 0);
    for (int seq = 0; seq <= 8; seq++) {
        char at[20];
        snprintf(at, sizeof at, "--at=%d", seq);
        DONE(&cli, "replay", "s", at, "--json", "--no-snapshots");
        char *folded = strdup(cli.out);
        DONE(&cli, "replay", "s", at, "--json");
        ck_assert_str_eq(cli.out, folded);
        free(folded);
    }
    DONE(&cli, "verify", "--replay");
    CLI(&cli, NULL, "show", "s", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"snapshots\":[{\"seq\":4,"));
}
END_TEST

/* The hash equals sha256sum of the output of --json. */
START_TEST(equal_states_have_equal_hashes_with_and_without_snapshots)
{
    char two[64], four[64];
    begin();
    DONE(&cli, "replay", "s", "--at", "2", "--hash");
    ck_assert_uint_eq(cli.out_len, 65);
    memcpy(two, cli.out, 64);
    CLI(&cli, NULL, "replay", "s", "--hash");
    memcpy(four, cli.out, 64);
    ck_assert_int_ne(memcmp(two, four, 64), 0);
    CLI(&cli, NULL, "snapshot", "s");
    CLI(&cli, NULL, "replay", "s", "--hash", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"seq\":4,\"hash\":\""));
    ck_assert_int_eq(memcmp(strstr(cli.out, "hash") + 7, four, 64), 0);
    DONE(&cli, "replay", "s", "--verify");
    ck_assert_ptr_nonnull(
        strstr(cli.out, "s: 4 events folded, 1 snapshots compared, all give the same state\n"));
    ck_assert_int_eq(memcmp(strstr(cli.out, "after seq 4 ") + 12, four, 64), 0);
    DONE(&cli, "replay", "s", "--verify", "--at", "2", "--json");
    ck_assert_int_eq(memcmp(strstr(cli.out, "hash") + 7, two, 64), 0);
    CLI(&cli, NULL, "replay", "s", "--verify", "--hash");
    cli_assert_refused(&cli, EXIT_USAGE, "cannot be used together");
    CLI(&cli, NULL, "replay", "s", "--verify", "--pack", "teams");
    cli_assert_refused(&cli, EXIT_USAGE, "--pack");
}
END_TEST

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

START_TEST(snapshots_are_listed_taken_and_dropped)
{
    begin();
    DONE(&cli, "snapshot", "list", "--json");
    ck_assert_str_eq(cli.out, "");
    DONE(&cli, "snapshot", "take", "s");
    DONE(&cli, "snapshot", "list", "--json");
    ck_assert_int_eq(strncmp(cli.out, "{\"session_id\":\"s\",\"seq\":4,\"bytes\":", 34), 0);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"base_seq\":null,"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"problem\":null}\n"));
    DONE(&cli, "snapshot", "list", "s");
    ck_assert_ptr_nonnull(strstr(cli.out, "SEQ"));
    CLI(&cli, NULL, "snapshot", "drop");
    ck_assert_int_eq(cli.exit_status, 2);
    CLI(&cli, NULL, "snapshot", "drop", "s", "--all");
    ck_assert_int_eq(cli.exit_status, 2);
    DONE(&cli, "snapshot", "drop", "s");
    CLI(&cli, NULL, "snapshot", "s"); /* the form without a verb */
    cli_assert_done(&cli);
    DONE(&cli, "snapshot", "drop", "--all");
    DONE(&cli, "snapshot", "list");
    ck_assert_ptr_null(strstr(cli.out, "PROBLEM\ns"));
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

static void ck_sessions(const char *const *lines, size_t count)
{
    const char *at = cli.out;
    for (size_t i = 0; i < count; i++) {
        char start[64];
        snprintf(start, sizeof start, "{\"session_id\":\"%.1s\",\"seq\":%s,", lines[i],
                 lines[i] + 2);
        ck_assert_msg(strncmp(at, start, strlen(start)) == 0, "%s and not %s", at, start);
        at = strchr(at, '\n') + 1;
    }
    ck_assert_str_eq(at, "");
}

static void append_one(const char *session, const char *type)
{
    DONE_WITH(&cli, "{}\n", "append", session, "--type", type);
}

START_TEST(tail_prints_several_sessions_by_time_and_type)
{
    append_one("a", "x.one");
    append_one("b", "x.two");
    append_one("a", "y.one");
    append_one("c", "x.one");
    DONE(&cli, "tail", "--all");
    ck_sessions((const char *[]){"a 1", "b 1", "a 2", "c 1"}, 4);
    DONE(&cli, "tail", "--all", "--type", "x.*", "--last", "2");
    ck_sessions((const char *[]){"b 1", "c 1"}, 2);
    DONE(&cli, "tail", "c", "a", "--from", "2020-01-01");
    ck_sessions((const char *[]){"a 1", "a 2", "c 1"}, 3);
    DONE(&cli, "tail", "--all", "--from", "now");
    ck_assert_str_eq(cli.out, "");
    CLI(&cli, NULL, "tail", "a", "nobody");
    cli_assert_refused(&cli, EXIT_REFUSED, "nobody");
    CLI(&cli, NULL, "tail");
    cli_assert_refused(&cli, EXIT_USAGE, "--all");
    CLI(&cli, NULL, "tail", "a", "--all");
    cli_assert_refused(&cli, EXIT_USAGE, "--all");
    CLI(&cli, NULL, "tail", "--all", "--from", "3");
    cli_assert_refused(&cli, EXIT_USAGE, "one SESSION");
    CLI(&cli, NULL, "tail", "a", "--from", "3", "--last", "1");
    cli_assert_refused(&cli, EXIT_USAGE, "--last");
}
END_TEST

START_TEST(a_tail_with_a_cursor_continues_where_it_stopped)
{
    append_one("a", "x.one");
    append_one("b", "x.one");
    DONE(&cli, "tail", "--all", "--cursor", "bill");
    ck_sessions((const char *[]){"a 1", "b 1"}, 2);
    append_one("b", "x.one");
    append_one("c", "x.one");
    DONE(&cli, "cursor", "show", "bill", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"session_id\":\"b\",\"seq\":1,\"behind\":1}\n"));
    DONE(&cli, "tail", "--all", "--cursor", "bill", "--last", "1");
    ck_sessions((const char *[]){"b 2", "c 1"}, 2);
    DONE(&cli, "tail", "--all", "--cursor", "bill");
    ck_assert_str_eq(cli.out, "");
    DONE(&cli, "cursor", "list", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"name\":\"bill\",\"committed_at\":\""));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"sessions\":3,\"state\":\"free\"}\n"));
    CLI(&cli, NULL, "doctor");
    ck_assert_ptr_nonnull(strstr(cli.out, "1 for readers of tails"));
    DONE(&cli, "cursor", "drop", "bill");
    CLI(&cli, NULL, "cursor", "drop", "bill");
    cli_assert_refused(&cli, EXIT_REFUSED, "bill");
    CLI(&cli, NULL, "tail", "a", "--cursor", "../x");
    cli_assert_refused(&cli, EXIT_USAGE, "--cursor '../x' is not a valid id");
}
END_TEST

Suite *suite_replay(void)
{
    Suite *suite = suite_create("replay");
    TCase *past = suite_case(suite, "past", cli_setup, cli_teardown);
    tcase_add_test(past, the_tables_of_any_pack_are_replayed);
    tcase_add_test(past, replay_prints_the_state_at_any_seq_and_any_time);
    tcase_add_test(past, replay_prints_the_state_for_people_and_for_programs);
    tcase_add_test(past, replay_gives_the_same_state_with_and_without_snapshots);
    tcase_add_test(past, equal_states_have_equal_hashes_with_and_without_snapshots);
    tcase_add_test(past, replay_verify_reports_a_snapshot_that_differs_from_its_events);
    tcase_add_test(past, snapshots_are_listed_taken_and_dropped);
    tcase_add_test(past, a_long_replay_takes_overdue_snapshots);
    tcase_add_test(past, a_snapshot_that_is_damaged_is_a_finding_and_changes_no_answer);
    TCase *live = suite_case(suite, "live", cli_setup, cli_teardown);
    tcase_add_test(live, tail_prints_history_and_then_each_new_event);
    tcase_add_test(live, tail_waits_for_a_missing_session);
    tcase_add_test(live, tail_prints_several_sessions_by_time_and_type);
    tcase_add_test(live, a_tail_with_a_cursor_continues_where_it_stopped);
    return suite;
}
