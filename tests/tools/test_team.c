/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <annal/process.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A store with both packs of state.db enabled. */
static void init(void)
{
    CLI(&cli, "{}\n", "append", "first", "--type", "n");
    CLI(&cli, NULL, "pack", "enable", "lionagi");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "pack", "enable", "teams");
    cli_assert_done(&cli);
}

static void ck_out(const char *out)
{
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, out);
}

static void ck_sql(const char *select, const char *json)
{
    CLI(&cli, NULL, "sql", "--json", select);
    ck_out(json);
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

/* ---- Teams ---- */

enum { READERS = 6, MESSAGES = 8 };

static void read_all(int file, char *out, size_t size)
{
    size_t len = 0;
    ssize_t count;
    while ((count = read(file, out + len, size - 1 - len)) > 0)
        len += (size_t)count;
    out[len] = '\0';
    close(file);
}

START_TEST(concurrent_readers_of_an_inbox_receive_each_message_once)
{
    static const char *const words[] = {"team", "inbox", "t1", "--as", "bob", "--json", NULL};
    static char out[16384];
    int found[MESSAGES] = {0};
    pid_t pids[READERS];
    int outputs[READERS], input;
    init();
    CLI(&cli, NULL, "team", "create", "n", "--id", "t1", "--member", "bob");
    for (int i = 0; i < MESSAGES; i++) {
        char id[8];
        snprintf(id, sizeof id, "m%d", i);
        CLI(&cli, NULL, "team", "send", "t1", "x", "--id", id);
    }
    for (int i = 0; i < READERS; i++) {
        pids[i] = cli_start(&cli, words, &input, &outputs[i]);
        close(input);
    }
    for (int i = 0; i < READERS; i++) {
        int status = -1;
        read_all(outputs[i], out, sizeof out);
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(status == 0, "reader %d: %d", i, status);
        for (int m = 0; m < MESSAGES; m++) {
            char id[20];
            snprintf(id, sizeof id, "{\"id\":\"m%d\"", m);
            found[m] += strstr(out, id) != NULL;
        }
    }
    for (int m = 0; m < MESSAGES; m++)
        ck_assert_msg(found[m] == 1, "message %d was handed out %d times", m, found[m]);
}
END_TEST

/* ---- Runs ---- */

/* Start a process that waits to be killed. */
static pid_t start_process(char pid[20])
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    snprintf(pid, 20, "%d", (int)child);
    return child;
}

static void end_process(pid_t child)
{
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

/* Append a session of this kind with a last event of this age. */
static void start_session(const char *session, const char *kind, const char *age, const char *pid)
{
    CLI(&cli, NULL, "lionagi", "session", session, "--kind", kind, "--created", age, "--started",
        age, "--pid", pid);
    cli_assert_done(&cli);
}

START_TEST(only_a_stale_session_whose_process_is_dead_is_ended)
{
    char pid[20], own[20];
    init();
    pid_t child = start_process(pid);
    snprintf(own, sizeof own, "%d", (int)getpid());
    start_session("dead", "agent", "48h", pid);
    start_session("fresh", "agent", "1h", pid);
    start_session("long-flow", "flow", "9h", pid);
    start_session("alive", "agent", "48h", own);
    CLI(&cli, NULL, "lionagi", "session", "unknown", "--created", "48h", "--started", "48h");
    CLI(&cli, NULL, "doctor", "--transition-stale");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    end_process(child);

    CLI(&cli, NULL, "doctor", "--transition-stale", "--dry-run");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "would be failed dead: "));
    ck_sql("SELECT count(*) AS n FROM state.sessions WHERE status = 'running'", "{\"n\":5}\n");
    CLI(&cli, NULL, "doctor", "--transition-stale", "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"session_id\":\"dead\",\"result\":\"failed\","));
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"session_id\":\"alive\",\"result\":\"left alone\","
                                          "\"reason\":\"its process is alive\""));
    ck_assert_ptr_nonnull(
        strstr(cli.out, "{\"session_id\":\"unknown\",\"result\":\"left alone\","));
    ck_assert_ptr_null(strstr(cli.out, "fresh"));
    ck_assert_ptr_null(strstr(cli.out, "long-flow"));
    ck_sql("SELECT id, status_reason_code FROM state.sessions WHERE status = 'failed'",
           "{\"id\":\"dead\",\"status_reason_code\":\"session.stale.no_heartbeat\"}\n");
    ck_sql("SELECT t.from_status, t.to_status, t.source, a.action, a.target_id "
           "FROM status_transitions t JOIN admin_events a ON a.target_id = t.entity_id",
           "{\"from_status\":\"running\",\"to_status\":\"failed\",\"source\":\"admin\","
           "\"action\":\"transition\",\"target_id\":\"dead\"}\n");
    CLI(&cli, NULL, "doctor", "--transition-stale");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
}
END_TEST

START_TEST(stale_hours_can_raise_the_threshold_of_a_kind_and_never_lower_it)
{
    char pid[20];
    init();
    pid_t child = start_process(pid);
    start_session("agent-9h", "agent", "9h", pid);
    start_session("flow-9h", "flow", "9h", pid);
    end_process(child);
    CLI(&cli, NULL, "doctor", "--transition-stale", "--dry-run", "--stale-hours", "10");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    CLI(&cli, NULL, "doctor", "--transition-stale", "--dry-run", "--stale-hours", "0.5");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "agent-9h"));
    ck_assert_ptr_null(strstr(cli.out, "flow-9h"));
    CLI(&cli, NULL, "doctor", "--transition-stale", "--stale-hours", "six");
    cli_assert_refused(&cli, EXIT_USAGE, "--stale-hours needs a number");
    CLI(&cli, NULL, "doctor", "--dry-run");
    cli_assert_refused(&cli, EXIT_USAGE, "needs --transition-stale");
}
END_TEST

START_TEST(a_stale_session_that_another_process_took_over_is_not_ended)
{
    char pid[20], own[20];
    init();
    pid_t child = start_process(pid);
    snprintf(own, sizeof own, "%d", (int)getpid());
    start_session("s", "agent", "48h", pid);
    end_process(child);
    CLI(&cli, NULL, "lionagi", "open", "s", "--pid", own);
    cli_assert_done(&cli);
    CLI(&cli, NULL, "doctor", "--transition-stale");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "its process is alive"));
    CLI(&cli, NULL, "lionagi", "open", "s", "--pid", pid);
    cli_assert_refused(&cli, EXIT_REFUSED, "there is no process");
}
END_TEST

START_TEST(a_stale_session_that_a_living_process_owns_is_not_ended)
{
    static const char *const words[] = {"append", "s", "--type", "note.added", NULL};
    char pid[20], answer[100];
    int input, output;
    init();
    pid_t child = start_process(pid);
    start_session("s", "agent", "48h", pid);
    end_process(child);
    pid_t holder = cli_start(&cli, words, &input, &output);
    ck_assert_int_eq(write(input, "{}\n", 3), 3);
    ck_assert_int_gt(read(output, answer, sizeof answer), 0);
    CLI(&cli, NULL, "doctor", "--transition-stale");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "its process is dead, and process "));
    close(input);
    close(output);
    ck_assert_int_eq(waitpid(holder, NULL, 0), holder);
    CLI(&cli, NULL, "doctor", "--transition-stale");
    cli_assert_done(&cli);
}
END_TEST

/* Create a directory of a session's artifacts, with this file; NULL: without a file. */
static const char *make_artifacts(const char *name, const char *file, const char *text)
{
    char path[300];
    const char *directory = tmpdir_path(&cli.dir, name);
    snprintf(path, sizeof path, "%s/sub", name);
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, path), 0700), 0);
    snprintf(path, sizeof path, "%s/%s", name, file == NULL ? "" : file);
    if (file != NULL)
        file_write(tmpdir_path(&cli.dir, path), text, strlen(text));
    return directory;
}

static void start_running(const char *own)
{
    start_session("alive-20m", "agent", "20m", own);
    start_session("alive-2h", "agent", "2h", own);
    start_session("alive-7h", "agent", "7h", own);
    start_session("flow-7h", "flow", "7h", own);
    start_session("flow-13h", "flow", "13h", own);
    CLI(&cli, NULL, "lionagi", "session", "unknown-20m", "--started", "20m");
    CLI(&cli, NULL, "lionagi", "session", "unknown-2h", "--started", "2h");
    CLI(&cli, NULL, "lionagi", "session", "unknown-7h", "--started", "7h");
}

/* Sessions of a dead process, silent for a short time only. */
static void start_dead(const char *pid)
{
    start_session("dead-nothing", "agent", "20m", pid);
    start_session("dead-message", "agent", "20m", pid);
    CLI(&cli, NULL, "lionagi", "message", "dead-message", "\"hello\"");
    CLI(&cli, NULL, "lionagi", "session", "dead-artifacts", "--pid", pid, "--artifacts",
        make_artifacts("a1", NULL, NULL));
    CLI(&cli, NULL, "lionagi", "session", "dead-promised", "--pid", pid, "--artifacts",
        tmpdir_path(&cli.dir, "nowhere"));
}

static void start_and_end(const char *pid)
{
    char path[500];
    CLI(&cli, NULL, "lionagi", "session", "clean", "--status", "completed", "--pid", pid,
        "--artifacts", make_artifacts("a2", "report.md", "text"));
    CLI(&cli, NULL, "lionagi", "session", "locked", "--status", "completed", "--artifacts",
        make_artifacts("a3", "sub/run.lock", ""));
    CLI(&cli, NULL, "lionagi", "session", "locked-failed", "--status", "failed", "--artifacts",
        make_artifacts("a4", ".lock", "1234\n"));
    CLI(&cli, NULL, "lionagi", "session", "packages", "--status", "cancelled", "--artifacts",
        make_artifacts("a5", "Cargo.lock", "version = 3\n[[package]]\n"));
    snprintf(path, sizeof path, "../../../../../../../../../../../../../../../..%s",
             make_artifacts("a10", ".lock", ""));
    ck_assert_int_eq(access(path, F_OK), 0);
    CLI(&cli, NULL, "lionagi", "session", "relative", "--status", "completed", "--artifacts", path);
    cli_assert_done(&cli);
}

/* Sessions without a status, and sessions with a status that the tables do not know. */
static void start_otherwise(const char *own, const char *pid)
{
    static const char *const sessions[] = {"idle-alive", "idle-dead", "paused"};
    static const char *const names[] = {"a7", "a8", "a9"};
    char data[500];
    CLI(&cli, "{}\n", "append", "null", "--type", "session.created");
    snprintf(data, sizeof data, "{\"artifacts_path\":\"%s\"}\n",
             make_artifacts("a6", "x.lock", "1234 host"));
    CLI(&cli, data, "append", "null-locked", "--type", "session.created");
    for (size_t i = 0; i < 3; i++) {
        snprintf(data, sizeof data, "{\"status\":\"%.6s\",\"artifacts_path\":\"%s\"}\n",
                 i < 2 ? "idle" : "paused", make_artifacts(names[i], ".lock", ""));
        CLI(&cli, data, "append", sessions[i], "--type", "session.created");
        if (i < 2)
            CLI(&cli, NULL, "lionagi", "open", sessions[i], "--pid", i == 0 ? own : pid);
    }
    cli_assert_done(&cli);
}

START_TEST(run_health_is_one_of_six_levels)
{
    static const struct {
        const char *session, *health;
    } expected[] = {
        {"alive-20m", "healthy"},     {"alive-2h", "idle"},          {"alive-7h", "unresponsive"},
        {"clean", "healthy"},         {"dead-artifacts", "stale"},   {"dead-message", "stale"},
        {"dead-nothing", "orphaned"}, {"dead-promised", "orphaned"}, {"flow-13h", "unresponsive"},
        {"flow-7h", "idle"},          {"idle-alive", "healthy"},     {"idle-dead", "zombie"},
        {"locked", "zombie"},         {"locked-failed", "zombie"},   {"null", "healthy"},
        {"null-locked", "zombie"},    {"packages", "healthy"},       {"paused", "healthy"},
        {"relative", "healthy"},      {"unknown-20m", "healthy"},    {"unknown-2h", "idle"},
        {"unknown-7h", "stale"}};
    char own[20], pid[20], want[2000] = "";
    size_t len = 0;
    init();
    pid_t child = start_process(pid);
    snprintf(own, sizeof own, "%d", (int)getpid());
    start_running(own);
    start_dead(pid);
    start_and_end(pid);
    start_otherwise(own, pid);
    end_process(child);

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        len += (size_t)snprintf(want + len, sizeof want - len,
                                "{\"session_id\":\"%s\",\"h\":\"%s\"}\n", expected[i].session,
                                expected[i].health);
    ck_sql("SELECT session_id, effective_health AS h FROM run_list WHERE session_id <> 'first' "
           "ORDER BY 1",
           want);
    CLI(&cli, NULL, "team", "runs", "--health", "orphaned", "--json");
    cli_assert_done(&cli);
    ck_assert_int_eq(count_of(cli.out, "\n"), 2);
    CLI(&cli, NULL, "doctor", "--json");
    ck_assert_ptr_nonnull(
        strstr(cli.out, "12 sessions run, 3 of them stale, 2 orphaned, 2 unresponsive"));
}
END_TEST

START_TEST(the_worst_of_its_runs_decides_the_health_of_a_team)
{
    char own[20], pid[20];
    init();
    pid_t child = start_process(pid);
    snprintf(own, sizeof own, "%d", (int)getpid());
    start_running(own);
    start_dead(pid);
    CLI(&cli, NULL, "lionagi", "session", "locked", "--status", "completed", "--artifacts",
        make_artifacts("a3", ".lock", ""));
    end_process(child);
    CLI(&cli, NULL, "team", "create", "n", "--id", "t1");
    CLI(&cli, NULL, "team", "create", "none", "--id", "t2");
    CLI(&cli, NULL, "team", "send", "t1", "a", "--session", "alive-2h");
    CLI(&cli, NULL, "team", "send", "t1", "b", "--session", "dead-nothing");
    CLI(&cli, NULL, "team", "send", "t1", "c", "--session", "dead-message");
    CLI(&cli, NULL, "team", "health", "--by", "team", "--json");
    ck_out("{\"id\":\"t1\",\"effective_health\":\"orphaned\",\"runs\":3,\"idle\":1,"
           "\"unresponsive\":0,\"stale\":1,\"orphaned\":1,\"zombie\":0}\n"
           "{\"id\":\"t2\",\"effective_health\":\"healthy\",\"runs\":0,\"idle\":0,"
           "\"unresponsive\":0,\"stale\":0,\"orphaned\":0,\"zombie\":0}\n");
    CLI(&cli, NULL, "team", "health", "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_eq(strstr(cli.out, "{\"id\":\"all\",\"effective_health\":\"zombie\","), cli.out);
    ck_sql("SELECT group_concat(health, ' ') AS h FROM (SELECT health FROM health_levels ORDER BY "
           "severity)",
           "{\"h\":\"healthy idle unresponsive stale orphaned zombie\"}\n");
}
END_TEST

START_TEST(runs_and_dashboard_show_status_and_health_side_by_side)
{
    char own[20];
    init();
    snprintf(own, sizeof own, "%d", (int)getpid());
    start_session("a", "agent", "7h", own);
    start_session("b", "flow", "7h", own);
    start_session("c", "agent", "20m", own);
    start_session("d", "play", "3h", own);
    CLI(&cli, NULL, "lionagi", "message", "c", "\"hello\"");
    CLI(&cli, NULL, "lionagi", "transition", "d", "failed");
    CLI(&cli, NULL, "team", "create", "n");
    ck_sql("SELECT session_id, status, effective_health, message_count FROM run_list ORDER BY 1",
           "{\"session_id\":\"a\",\"status\":\"running\",\"effective_health\":\"unresponsive\","
           "\"message_count\":0}\n"
           "{\"session_id\":\"b\",\"status\":\"running\",\"effective_health\":\"idle\","
           "\"message_count\":0}\n"
           "{\"session_id\":\"c\",\"status\":\"running\",\"effective_health\":\"healthy\","
           "\"message_count\":1}\n"
           "{\"session_id\":\"d\",\"status\":\"failed\",\"effective_health\":\"healthy\","
           "\"message_count\":0}\n");
    CLI(&cli, NULL, "team", "dashboard", "--json");
    ck_out("{\"running\":3,\"stale\":1,\"failed_24h\":1,\"slow\":2,\"teams_active\":1}\n");
    CLI(&cli, NULL, "team", "runs", "--health", "unresponsive", "--json");
    cli_assert_done(&cli);
    ck_assert_int_eq(count_of(cli.out, "\n"), 1);
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"session_id\":\"a\","));
    CLI(&cli, NULL, "doctor", "--json");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out,
                                 "{\"check\":\"runs\",\"result\":\"warning\","
                                 "\"found\":\"3 sessions run, 0 of them stale, 0 orphaned, "
                                 "1 unresponsive\""));
}
END_TEST

Suite *suite_team(void)
{
    Suite *suite = suite_create("team");
    TCase *teams = suite_case(suite, "teams", cli_setup, cli_teardown);
    tcase_add_test(teams, concurrent_readers_of_an_inbox_receive_each_message_once);

    TCase *runs = suite_case(suite, "runs", cli_setup, cli_teardown);
    tcase_add_test(runs, only_a_stale_session_whose_process_is_dead_is_ended);
    tcase_add_test(runs, stale_hours_can_raise_the_threshold_of_a_kind_and_never_lower_it);
    tcase_add_test(runs, a_stale_session_that_another_process_took_over_is_not_ended);
    tcase_add_test(runs, a_stale_session_that_a_living_process_owns_is_not_ended);
    tcase_add_test(runs, run_health_is_one_of_six_levels);
    tcase_add_test(runs, the_worst_of_its_runs_decides_the_health_of_a_team);
    tcase_add_test(runs, runs_and_dashboard_show_status_and_health_side_by_side);
    return suite;
}
