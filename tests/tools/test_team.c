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

START_TEST(a_message_is_received_once_and_listed)
{
    init();
    CLI(&cli, NULL, "team", "create", "review", "--id", "t1", "--member", "alice", "--member",
        "bob");
    ck_out("created team t1: review\n");
    CLI(&cli, NULL, "team", "send", "review", "what's the verdict?", "--from", "alice", "--to",
        "bob", "--id", "m1", "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"session_id\":\"team_t1\",\"seq\":2,"
                                          "\"type\":\"team.message\",\"data\":{"));
    CLI(&cli, NULL, "team", "inbox", "t1", "--as", "alice");
    ck_out("no new messages\n");
    CLI(&cli, NULL, "team", "inbox", "t1", "--as", "bob", "--peek");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "what's the verdict?"));
    CLI(&cli, NULL, "team", "receive", "t1", "--as", "bob", "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"id\":\"m1\""));
    CLI(&cli, NULL, "team", "inbox", "t1", "--as", "bob");
    ck_out("no new messages\n");
    ck_sql("SELECT recipient, read_by FROM team_messages",
           "{\"recipient\":\"bob\",\"read_by\":\"[\\\"bob\\\"]\"}\n");
    CLI(&cli, NULL, "team", "show", "t1");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "alice to bob  (m1, read by \"bob\")\n  what's the"));
}
END_TEST

START_TEST(strangers_may_send_with_a_warning_and_a_nameless_reader_marks_nothing)
{
    init();
    CLI(&cli, NULL, "team", "create", "n", "--id", "t1", "--member", "bob");
    CLI(&cli, NULL, "team", "send", "t1", "hi", "--from", "zed", "--to", "bob, eve");
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_ptr_nonnull(strstr(cli.err, "'zed' is not a member of team t1"));
    ck_assert_ptr_nonnull(strstr(cli.err, "'eve' is not a member of team t1"));
    ck_assert_ptr_null(strstr(cli.err, "'bob'"));
    CLI(&cli, NULL, "team", "send", "t1", "to all");
    cli_assert_done(&cli);
    ck_sql("SELECT sender, recipient FROM team_messages ORDER BY created_at",
           "{\"sender\":\"zed\",\"recipient\":\"bob,eve\"}\n"
           "{\"sender\":\"_cli\",\"recipient\":\"all\"}\n");
    for (int i = 0; i < 2; i++) {
        CLI(&cli, NULL, "team", "receive", "t1");
        cli_assert_done(&cli);
        ck_assert_ptr_nonnull(strstr(cli.out, "(2 messages)"));
    }
    ck_sql("SELECT count(*) AS n FROM x_team_reads", "{\"n\":0}\n");
}
END_TEST

START_TEST(a_team_is_selected_by_id_by_a_unique_prefix_or_by_name)
{
    init();
    CLI(&cli, NULL, "team", "create", "one", "--id", "ab1");
    CLI(&cli, NULL, "team", "create", "two", "--id", "ab2");
    CLI(&cli, NULL, "team", "create", "two", "--id", "c3");
    CLI(&cli, NULL, "team", "create", "ab2", "--id", "ab");
    static const struct {
        const char *word, *id;
    } found[] = {{"ab1", "ab1"}, {"one", "ab1"}, {"c", "c3"}, {"ab", "ab"}, {"ab2", "ab2"}};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        char start[40];
        snprintf(start, sizeof start, "{\"id\":\"%s\"", found[i].id);
        CLI(&cli, NULL, "team", "export", found[i].word);
        cli_assert_done(&cli);
        ck_assert_msg(strncmp(cli.out, start, strlen(start)) == 0, "%s: %s", found[i].word,
                      cli.out);
    }
    CLI(&cli, NULL, "team", "send", "two", "x");
    cli_assert_refused(&cli, EXIT_REFUSED, "'two' matches 2 teams: ab2 (two), c3 (two)");
    CLI(&cli, NULL, "team", "show", "a");
    cli_assert_refused(&cli, EXIT_REFUSED, "'a' matches 3 teams");
    CLI(&cli, NULL, "team", "show", "zzz");
    cli_assert_refused(&cli, EXIT_REFUSED, "team 'zzz' does not exist");
}
END_TEST

START_TEST(a_message_about_a_session_is_in_the_timeline_of_the_session)
{
    init();
    CLI(&cli, NULL, "lionagi", "session", "run-1");
    CLI(&cli, NULL, "team", "create", "n", "--id", "t1");
    CLI(&cli, NULL, "team", "send", "t1", "start", "--session", "run-1");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "lionagi", "message", "run-1", "\"working\"");
    CLI(&cli, NULL, "team", "send", "t1", "lost", "--session", "gone");
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_ptr_nonnull(strstr(cli.err, "session 'gone' does not exist"));
    CLI(&cli, NULL, "team", "timeline", "t1", "--json");
    cli_assert_done(&cli);
    const char *at = cli.out;
    static const char *const order[] = {"\"type\":\"session.created\"", "\"type\":\"team.created\"",
                                        "\"what\":\"start\"", "\"what\":\"working\"",
                                        "\"what\":\"lost\""};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        at = strstr(at, order[i]);
        ck_assert_msg(at != NULL, "%s: %s", order[i], cli.out);
    }
    ck_sql("SELECT team_id, session_id, messages FROM team_sessions",
           "{\"team_id\":\"t1\",\"session_id\":\"run-1\",\"messages\":1}\n");
}
END_TEST

START_TEST(members_archive_rename_and_delete_are_one_event_each)
{
    init();
    CLI(&cli, NULL, "team", "create", "n", "--id", "t1", "--member", "a");
    CLI(&cli, NULL, "team", "members", "t1", "--add", "b", "--add", "c", "--remove", "a", "--json");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "team", "members", "t1", "--json");
    ck_out("{\"member\":\"b\",\"sent\":0,\"unread\":0}\n"
           "{\"member\":\"c\",\"sent\":0,\"unread\":0}\n");
    CLI(&cli, NULL, "team", "rename", "t1", "m");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "team", "archive", "m", "--reason", "merged");
    ck_out("team m is archived\n");
    ck_sql("SELECT name, status, member_count FROM teams",
           "{\"name\":\"m\",\"status\":\"archived\",\"member_count\":2}\n");
    CLI(&cli, NULL, "team", "delete", "t1");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "team", "ls", "--json");
    ck_out("");
    CLI(&cli, NULL, "query", "team_t1", "--count");
    ck_out("5\n");
}
END_TEST

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

START_TEST(an_inbox_without_a_member_is_wrong_usage)
{
    init();
    CLI(&cli, NULL, "team", "create", "n", "--id", "t1");
    CLI(&cli, NULL, "team", "send", "t1", "hi");
    CLI(&cli, NULL, "team", "inbox", "t1", "--as", "");
    cli_assert_refused(&cli, 2, "--as needs the name of a member");
}
END_TEST

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

/* ---- JSON files ---- */

static const char team_file[] =
    "{\"id\":\"abc123\",\"name\":\"review-team\",\"members\":[\"alice\",\"bob\"],"
    "\"created_at\":\"2026-05-21T14:00:00+00:00\",\"messages\":["
    "{\"id\":\"m1\",\"from\":\"alice\",\"to\":[\"bob\"],\"content\":\"what's the verdict?\","
    "\"timestamp\":\"2026-05-21T15:00:00+00:00\",\"read_by\":{}},"
    "{\"id\":\"m2\",\"from\":\"bob\",\"to\":[\"*\"],\"content\":\"approve\","
    "\"timestamp\":\"2026-05-21T15:05:00+00:00\",\"read_by\":%s}%s]}";

static const char *write_team(const char *read_by, const char *more)
{
    char text[2000];
    const char *path = tmpdir_path(&cli.dir, "abc123.json");
    int len = snprintf(text, sizeof text, team_file, read_by, more);
    file_write(path, text, (size_t)len);
    return path;
}

START_TEST(a_second_import_of_a_team_adds_nothing)
{
    init();
    const char *path = write_team("{\"alice\":\"2026-05-21T15:06:00+00:00\"}", "");
    CLI(&cli, NULL, "team", "import", path, "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"teams\":1,\"skipped_teams\":0,\"messages\":2,"
                                          "\"skipped_messages\":0,\"reads\":0}"));
    CLI(&cli, NULL, "sql", "--json",
        "SELECT data ->> '$.source.file' AS file, data ->> '$.source.bytes' AS bytes, "
        "length(data ->> '$.source.sha256') AS sha256 FROM events WHERE type = 'team.imported'");
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"file\":\"abc123.json\",\"bytes\":"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"sha256\":64}"));
    static const char rows[] =
        "{\"member_count\":2,\"recipient\":\"bob\",\"read_by\":\"[]\"}\n"
        "{\"member_count\":2,\"recipient\":\"all\",\"read_by\":\"[\\\"alice\\\"]\"}\n";
    static const char select[] = "SELECT member_count, recipient, read_by FROM teams t JOIN "
                                 "team_messages m ON team_id = t.id ORDER BY m.created_at";
    ck_sql(select, rows);
    CLI(&cli, NULL, "team", "import", path, "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"teams\":0,\"skipped_teams\":1,\"messages\":0,"
                                          "\"skipped_messages\":2,\"reads\":0}"));
    ck_sql(select, rows);

    path = write_team("[\"alice\",\"bob\"]",
                      ",{\"id\":\"m3\",\"from\":\"alice\",\"to\":\"all\",\"content\":\"new\"}");
    CLI(&cli, NULL, "team", "import", path, "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"teams\":0,\"skipped_teams\":1,\"messages\":1,"
                                          "\"skipped_messages\":2,\"reads\":1}"));
    ck_sql("SELECT read_by FROM team_messages WHERE id = 'm2'",
           "{\"read_by\":\"[\\\"alice\\\",\\\"bob\\\"]\"}\n");
}
END_TEST

START_TEST(exported_teams_import_to_the_same_rows)
{
    static const char teams[] = "SELECT * FROM teams ORDER BY id";
    static const char messages[] = "SELECT * FROM team_messages ORDER BY id";
    static const char reads[] = "SELECT * FROM x_team_reads ORDER BY 1, 2";
    static const char *const selects[] = {teams, messages, reads};
    char *rows[3];
    init();
    CLI(&cli, NULL, "lionagi", "session", "run-1");
    CLI(&cli, NULL, "team", "import", write_team("[\"alice\"]", ""));
    CLI(&cli, NULL, "team", "create", "ä \"b\"", "--id", "t2", "--member", "x y", "--metadata",
        "{\"mode\":[1,null]}");
    CLI(&cli, NULL, "team", "send", "t2", "line\n\"two\"", "--from", "x y", "--summary", "s",
        "--session", "run-1", "--to", "x y,\\z", "--id", "m9");
    CLI(&cli, "{\"id\":\"m8\",\"sender\":\"a\",\"content\":\"c\",\"created_at\":1.0000001}\n",
        "append", "team_t2", "--type", "team.message");
    CLI(&cli, NULL, "team", "inbox", "t2", "--as", "x y");
    CLI(&cli, NULL, "team", "archive", "t2");
    cli_assert_done(&cli);
    const char *directory = tmpdir_path(&cli.dir, "teams");
    CLI(&cli, NULL, "team", "export", "--to", directory);
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "2 files in"));
    for (int i = 0; i < 3; i++) {
        CLI(&cli, NULL, "sql", "--json", selects[i]);
        rows[i] = strdup(cli.out);
    }
    cli.store = tmpdir_path(&cli.dir, "other");
    init();
    CLI(&cli, NULL, "lionagi", "session", "run-1");
    CLI(&cli, NULL, "team", "import", directory);
    cli_assert_done(&cli);
    for (int i = 0; i < 3; i++) {
        ck_sql(selects[i], rows[i]);
        free(rows[i]);
    }
}
END_TEST

START_TEST(a_team_is_not_exported_through_a_link)
{
    init();
    const char *directory = tmpdir_path(&cli.dir, "teams"), *theirs = tmpdir_path(&cli.dir, "f");
    CLI(&cli, NULL, "team", "create", "n", "--id", "t1");
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    file_write(theirs, "theirs", 6);
    ck_assert_int_eq(symlink(theirs, tmpdir_path(&cli.dir, "teams/t1.json")), 0);
    ck_assert_int_eq(symlink(theirs, tmpdir_path(&cli.dir, "teams/.new-t1.json")), 0);
    CLI(&cli, NULL, "team", "export", "--to", directory);
    cli_assert_refused(&cli, EXIT_STORAGE, "t1.json' is a symbolic link");
    ck_assert_int_eq(unlink(tmpdir_path(&cli.dir, "teams/t1.json")), 0);
    CLI(&cli, NULL, "team", "export", "--to", directory);
    cli_assert_done(&cli);
    size_t len;
    ck_text(file_read(theirs, &len), "theirs");
}
END_TEST

START_TEST(a_file_that_is_not_a_team_is_skipped_and_the_others_are_imported)
{
    static const struct {
        const char *name, *text;
    } files[] = {{"bad.json", "{\"id\":"},
                 {"e.json", "{\"id\":\"\"}"},
                 {"id.json", "{\"id\":\"../x\"}"},
                 {"l.json", "[]"},
                 {"n.json", "{\"id\":null}"},
                 {"no-id.json", "{\"name\":\"n\",\"messages\":[]}"},
                 {"z.json", " {\"id\":\"z\",\"members\":[\"a\",\"a\"]}\n"}};
    char path[300];
    init();
    const char *directory = tmpdir_path(&cli.dir, "files");
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, files[i].name);
        file_write(path, files[i].text, strlen(files[i].text));
    }
    CLI(&cli, NULL, "team", "import", "/nowhere", directory, "--json");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_int_eq(count_of(cli.err, "does not contain a JSON object"), 2);
    ck_assert_int_eq(count_of(cli.err, "the team has no id"), 3);
    ck_assert_ptr_nonnull(strstr(cli.err, "no-id.json': the team has no id"));
    ck_assert_ptr_nonnull(strstr(cli.err, "the id of the team is not a valid team id"));
    ck_assert_ptr_nonnull(strstr(cli.err, "read the file '/nowhere'"));
    ck_sql("SELECT id, name, members FROM teams",
           "{\"id\":\"z\",\"name\":\"z\",\"members\":\"[\\\"a\\\"]\"}\n");
}
END_TEST

START_TEST(an_imported_long_message_has_its_first_200_characters_as_summary)
{
    char text[900];
    init();
    const char *path = tmpdir_path(&cli.dir, "t.json");
    int len = snprintf(text, sizeof text,
                       "{\"id\":\"t\",\"messages\":[{\"id\":\"m1\",\"content\":\"one\\n%0300d\"},"
                       "{\"id\":\"m2\",\"content\":\"%0300d\",\"summary\":\"own\"},"
                       "{\"id\":\"m3\",\"content\":\"short\"}]}",
                       0, 0);
    file_write(path, text, (size_t)len);
    CLI(&cli, NULL, "team", "import", path);
    cli_assert_done(&cli);
    ck_sql("SELECT id, length(summary) AS n, summary = substr(content, 1, 200) || '…' AS same FROM "
           "team_messages ORDER BY id",
           "{\"id\":\"m1\",\"n\":201,\"same\":1}\n{\"id\":\"m2\",\"n\":3,\"same\":0}\n"
           "{\"id\":\"m3\",\"n\":null,\"same\":null}\n");
}
END_TEST

START_TEST(messages_with_the_same_id_in_two_files_stay_two)
{
    init();
    const char *path = write_team("{}", ""), *other = tmpdir_path(&cli.dir, "other.json");
    static const char text[] =
        "{\"id\":\"other\",\"messages\":[{\"id\":\"m1\",\"content\":\"x\"}]}";
    file_write(other, text, sizeof text - 1);
    for (int i = 0; i < 2; i++) {
        CLI(&cli, NULL, "team", "import", path, other);
        cli_assert_done(&cli);
        ck_sql("SELECT id, team_id FROM team_messages ORDER BY id",
               "{\"id\":\"m1\",\"team_id\":\"abc123\"}\n{\"id\":\"m2\",\"team_id\":\"abc123\"}\n"
               "{\"id\":\"other:m1\",\"team_id\":\"other\"}\n");
    }
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

START_TEST(a_session_starts_when_it_is_created_unless_started_sets_the_time)
{
    init();
    CLI(&cli, NULL, "lionagi", "session", "now");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "lionagi", "session", "past", "--created", "2026-01-06T07:24:00Z");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "lionagi", "session", "said", "--created", "2026-01-06T07:24:00Z", "--started",
        "2026-01-06T07:24:30Z");
    cli_assert_done(&cli);
    ck_sql("SELECT id, started_at - created_at AS after, abs(created_at - unixepoch()) < 100 AS "
           "new FROM state.sessions WHERE started_at IS NOT NULL ORDER BY id",
           "{\"id\":\"now\",\"after\":0,\"new\":1}\n{\"id\":\"past\",\"after\":0,\"new\":0}\n"
           "{\"id\":\"said\",\"after\":30,\"new\":0}\n");
    ck_sql("SELECT count(*) AS n FROM run_list WHERE duration_seconds IS NULL", "{\"n\":0}\n");
}
END_TEST

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

START_TEST(a_process_of_an_earlier_boot_counts_as_dead)
{
    init();
    CLI(&cli,
        "{\"status\":\"running\",\"started_at\":\"2026-01-06T07:24:00Z\",\"process\":{\"pid\":1,"
        "\"start\":1,\"pid_ns\":1,\"boot_id\":\"00000000-1111-2222-3333-444444444444\"}}\n",
        "append", "s", "--type", "session.created");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "doctor", "--transition-stale");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "the system was restarted since"));
}
END_TEST

START_TEST(without_its_packs_doctor_names_the_packs_to_enable)
{
    CLI(&cli, "{}\n", "append", "first", "--type", "n");
    CLI(&cli, NULL, "pack", "enable", "lionagi");
    CLI(&cli, NULL, "doctor", "--transition-stale");
    cli_assert_refused(&cli, EXIT_STORAGE, "annal pack enable teams");
    CLI(&cli, NULL, "doctor", "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_null(strstr(cli.out, "\"runs\""));
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
    tcase_add_test(teams, a_message_is_received_once_and_listed);
    tcase_add_test(teams, strangers_may_send_with_a_warning_and_a_nameless_reader_marks_nothing);
    tcase_add_test(teams, a_team_is_selected_by_id_by_a_unique_prefix_or_by_name);
    tcase_add_test(teams, an_inbox_without_a_member_is_wrong_usage);
    tcase_add_test(teams, concurrent_readers_of_an_inbox_receive_each_message_once);
    tcase_add_test(teams, a_message_about_a_session_is_in_the_timeline_of_the_session);
    tcase_add_test(teams, members_archive_rename_and_delete_are_one_event_each);

    TCase *files = suite_case(suite, "files", cli_setup, cli_teardown);
    tcase_add_test(files, a_second_import_of_a_team_adds_nothing);
    tcase_add_test(files, an_imported_long_message_has_its_first_200_characters_as_summary);
    tcase_add_test(files, a_team_is_not_exported_through_a_link);
    tcase_add_test(files, exported_teams_import_to_the_same_rows);
    tcase_add_test(files, a_file_that_is_not_a_team_is_skipped_and_the_others_are_imported);
    tcase_add_test(files, messages_with_the_same_id_in_two_files_stay_two);

    TCase *runs = suite_case(suite, "runs", cli_setup, cli_teardown);
    tcase_add_test(runs, a_session_starts_when_it_is_created_unless_started_sets_the_time);
    tcase_add_test(runs, only_a_stale_session_whose_process_is_dead_is_ended);
    tcase_add_test(runs, stale_hours_can_raise_the_threshold_of_a_kind_and_never_lower_it);
    tcase_add_test(runs, a_stale_session_that_another_process_took_over_is_not_ended);
    tcase_add_test(runs, a_stale_session_that_a_living_process_owns_is_not_ended);
    tcase_add_test(runs, a_process_of_an_earlier_boot_counts_as_dead);
    tcase_add_test(runs, without_its_packs_doctor_names_the_packs_to_enable);
    tcase_add_test(runs, run_health_is_one_of_six_levels);
    tcase_add_test(runs, the_worst_of_its_runs_decides_the_health_of_a_team);
    tcase_add_test(runs, runs_and_dashboard_show_status_and_health_side_by_side);
    return suite;
}
