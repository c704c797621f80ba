/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the logs of agents is written into the sessions: tools/import/changes.h. */
#include "journal/base/buf.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROJECT ".claude/projects/p"
#define LOG     PROJECT "/s-1.jsonl"
#define OTHER   ".claude/projects/q/s-2.jsonl"

/* ---- A home directory ---- */

static void setup(void)
{
    static const char *const variables[] = {"CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME",
                                            "XDG_CONFIG_HOME", "OPENCODE_DB"};
    static char home[500];
    cli_setup();
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    snprintf(home, sizeof home, "%s/home", cli.dir.path);
    ck_assert_int_eq(mkdir(home, 0755), 0);
    cli.as_home = home;
}

/* PATH below the home directory, and the directories above it. */
static const char *at_home(const char *path)
{
    static char whole[700];
    snprintf(whole, sizeof whole, "%s/%s", cli.as_home, path);
    for (char *slash = strchr(whole + strlen(cli.as_home) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(whole, 0755);
        *slash = '/';
    }
    return whole;
}

/* Write a log with these lines of its session, which is the name of the file. */
static void write_log(const char *path, int from, int until)
{
    char session[40];
    FILE *file = fopen(at_home(path), "w");
    ck_assert_ptr_nonnull(file);
    snprintf(session, sizeof session, "%.3s", strrchr(path, '/') + 1);
    for (int i = from; i < until; i++)
        fprintf(file,
                "{\"type\":\"user\",\"uuid\":\"u%d\",\"sessionId\":\"%s\",\"timestamp\":"
                "\"2026-03-01T10:00:%02d.000Z\",\"message\":{\"role\":\"user\",\"content\":"
                "\"what is number %02d\"}}\n",
                i, session, i % 60, i);
    ck_assert_int_eq(fclose(file), 0);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(at_home(path), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void import(void)
{
    CLI(&cli, NULL, "import");
    ck_assert_int_le(cli.exit_status, 1);
}

/* Assert that the answer of the SQL is this text, with a heading and '|' between columns. */
static void assert_answer(const char *sql, const char *expected)
{
    DONE(&cli, "sql", sql);
    const char *answer = strchr(cli.out, '\n');
    ck_assert_ptr_nonnull(answer);
    ck_assert_msg(strncmp(answer + 1, expected, strlen(expected)) == 0 &&
                      answer[1 + strlen(expected)] == '\n',
                  "'%s' answered '%s'", sql, answer + 1);
}

/* Assert that these are the events about logs, in order. */
static void assert_told(const char *expected)
{
    assert_answer("SELECT coalesce(group_concat(type, ' '), '-') FROM (SELECT substr(type, 8) AS "
                  "type FROM events WHERE type GLOB 'source.*' ORDER BY session_id, seq)",
                  expected);
}

static void assert_prints(const char *what)
{
    ck_assert_msg(strstr(cli.out, what) != NULL, "no '%s' in: %s", what, cli.out);
}

/* ---- The events ---- */

START_TEST(a_deleted_log_is_noted_once_and_again_after_it_returned)
{
    write_log(LOG, 0, 9);
    write_log(OTHER, 20, 29);
    import();
    assert_told("-");
    ck_assert_int_eq(unlink(at_home(LOG)), 0);
    import();
    import();
    assert_told("deleted");
    assert_answer("SELECT bytes_before || ' ' || bytes_after || ' ' || generation || ' ' || kind "
                  "FROM source_events",
                  "1269 0 1 claude-code");
    assert_answer("SELECT iif(abs(julianday(noticed_at) - julianday('now')) < 0.1 AND path LIKE "
                  "'%/p/s-1.jsonl', 'yes', 'no') FROM source_events",
                  "yes");
    assert_answer("SELECT state FROM source_states", "deleted");
    write_log(LOG, 0, 9);
    import();
    import();
    assert_told("deleted returned");
    assert_answer("SELECT state FROM source_states", "returned");
    ck_assert_int_eq(unlink(at_home(LOG)), 0);
    ck_assert_int_eq(unlink(at_home(OTHER)), 0);
    import(); /* which finds no log at all */
    import();
    assert_told("deleted returned deleted deleted");
    CLI(&cli, NULL, "verify");
    ck_assert_int_eq(cli.exit_status, 0);
}
END_TEST

START_TEST(a_log_cut_short_shrank_and_one_with_other_bytes_was_replaced)
{
    write_log(LOG, 0, 9);
    import();
    write_log(LOG, 0, 12); /* it grew */
    import();
    assert_told("-");
    ck_assert_int_eq(truncate(at_home(LOG), 500), 0);
    import();
    import();
    assert_told("shrank");
    assert_answer("SELECT bytes_before || ' ' || bytes_after || ' ' || generation FROM "
                  "source_events",
                  "1694 500 1");
    write_log(LOG, 30, 32);
    import();
    import();
    assert_told("shrank replaced");
    write_text(LOG, "");
    import();
    import();
    assert_told("shrank replaced shrank");
    assert_answer("SELECT state FROM source_states", "shrank");
}
END_TEST

START_TEST(a_change_is_noted_once_also_if_the_mark_of_its_copy_is_lost)
{
    const struct timespec now[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
    char path[900] = "";
    int marked = 0;
    write_log(LOG, 0, 9);
    import();
    write_log(LOG, 30, 39);
    import();
    assert_told("replaced");
    DIR *directory = opendir(at_home(".local/share/annal/sources"));
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        struct stat st;
        snprintf(path, sizeof path, "%s/.local/share/annal/sources/%s", cli.as_home, entry->d_name);
        if (strncmp(entry->d_name, "s-1.", 4) != 0 || stat(path, &st) < 0 || st.st_mtime != 0)
            continue;
        marked++;
        ck_assert_int_eq(utimensat(AT_FDCWD, path, now, 0), 0);
    }
    closedir(directory);
    ck_assert_int_eq(marked, 1);
    import();
    assert_told("replaced");
}
END_TEST

START_TEST(a_document_is_written_anew_by_its_agent_and_shrinks_only_by_more_than_a_tenth)
{
    static const char head[] =
        "{\n  \"sessionId\": \"aaaa\",\n  \"projectHash\": \"01\",\n  \"lastUpdated\": "
        "\"2026-03-01T10:00:02.000Z\",\n  \"startTime\": \"2026-03-01T10:00:00.000Z\",\n"
        "  \"messages\": [\n    {\"id\": \"1\", \"timestamp\": \"2026-03-01T10:00:01.000Z\", "
        "\"type\": \"user\", \"content\": \"%s\"}\n  ]\n}\n";
    char text[2000], words[1001];
    const char *path = ".gemini/tmp/0123/chats/session-1.json";
    memset(words, 'w', sizeof words - 1);
    words[1000] = '\0';
    snprintf(text, sizeof text, head, words);
    write_text(path, text);
    import();
    words[990] = '\0';
    words[0] = 'x';
    snprintf(text, sizeof text, head, words);
    write_text(path, text);
    import();
    assert_told("-");
    words[300] = '\0';
    snprintf(text, sizeof text, head, words);
    write_text(path, text);
    import();
    assert_told("shrank");
}
END_TEST

START_TEST(an_event_about_a_log_changes_neither_times_nor_numbers_of_its_session)
{
    static const char sql[] =
        "SELECT last_activity_at || ' ' || updated_at || ' ' || created_at || ' ' || total_turns "
        "|| ' ' || title || ' ' || status || ' ' || coalesce(total_tokens, '-') || ' ' || "
        "(SELECT max(timestamp) FROM event_index e WHERE e.session_id = s.id) FROM sessions s "
        "WHERE id = 's-1'";
    char before[400];
    write_log(LOG, 0, 9);
    write_log(OTHER, 20, 29);
    import();
    DONE(&cli, "sql", sql);
    snprintf(before, sizeof before, "%s", strchr(cli.out, '\n') + 1);
    before[strcspn(before, "\n")] = '\0';
    ck_assert_int_eq(unlink(at_home(LOG)), 0);
    import();
    assert_told("deleted");
    assert_answer(sql, before);
    DONE(&cli, "ls", "--json");
    ck_assert_int_eq(strncmp(cli.out, "{\"session_id\":\"s-2\"", 19), 0); /* it was active last */
    CLI(&cli, NULL, "ls", "--since", "1d", "--json");
    ck_assert_uint_eq(cli.out_len, 0);
    for (const char *const *format =
             (const char *const[]){"markdown", "jsonl", "otlp", "html", NULL};
         *format != NULL; format++) {
        CLI(&cli, NULL, "export", "s-1", "--format", *format);
        ck_assert_msg(cli.exit_status == 0, "%s: %s", *format, cli.err);
    }
    DONE(&cli, "replay", "s-1", "--json");
}
END_TEST

START_TEST(a_log_on_a_file_system_that_is_not_mounted_is_not_deleted)
{
    const struct timespec past[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000}};
    char aside[700], projects[700];
    write_log(LOG, 0, 9);
    import();
    snprintf(aside, sizeof aside, "%s", at_home("aside"));
    snprintf(projects, sizeof projects, "%s", at_home(".claude/projects"));
    ck_assert_int_eq(rename(projects, aside), 0);
    ck_assert_int_eq(mkdir(projects, 0755), 0); /* the directory below the mount */
    ck_assert_int_eq(utimensat(AT_FDCWD, projects, past, 0), 0);
    import();
    assert_told("-");
    DONE(&cli, "ls", "--lost", "--json");
    ck_assert_str_eq(cli.out, "");
    ck_assert_int_eq(rmdir(projects), 0); /* the same is a deletion where it was done now */
    ck_assert_int_eq(mkdir(projects, 0755), 0);
    import();
    assert_told("deleted");
    ck_assert_int_eq(rmdir(projects), 0);
    ck_assert_int_eq(rename(aside, projects), 0);
    import();
    assert_told("deleted returned");
}
END_TEST

START_TEST(a_session_whose_log_was_moved_is_not_lost)
{
    char moved[700];
    write_log(LOG, 0, 9);
    import();
    snprintf(moved, sizeof moved, "%s", at_home(".claude/projects/moved"));
    ck_assert_int_eq(rename(at_home(PROJECT), moved), 0);
    write_log(".claude/projects/moved/s-1.jsonl", 0, 10);
    import();
    assert_told("deleted");
    assert_answer("SELECT coalesce(max(state), '-') FROM source_states", "-");
    DONE(&cli, "ls", "--lost", "--json");
    ck_assert_str_eq(cli.out, "");
    ck_assert_int_eq(unlink(at_home(".claude/projects/moved/s-1.jsonl")), 0);
    import();
    assert_told("deleted deleted");
    assert_answer("SELECT state FROM source_states", "deleted");
    DONE(&cli, "ls", "--lost", "--json");
    assert_prints("{\"session_id\":\"s-1\"");
}
END_TEST

START_TEST(a_log_in_a_directory_without_permission_is_not_deleted)
{
    write_log(LOG, 0, 9);
    cli.as_nobody = geteuid() == 0;
    ck_assert_int_eq(chmod(cli.dir.path, 0755), 0);
    ck_assert_int_eq(chmod(cli.as_home, 0777), 0);
    import();
    ck_assert_int_eq(chmod(at_home(".claude"), 0), 0);
    import();
    ck_assert_int_eq(chmod(at_home(".claude"), 0755), 0);
    assert_told("-");
}
END_TEST

START_TEST(a_log_of_another_host_is_left_alone)
{
    write_log(LOG, 0, 9);
    import();
    DONE_WITH(&cli,
              "{\"type\":\"session.created\",\"data\":{\"source_host\":\"a pier\",\"source_path\":"
              "\"/logs/a.jsonl\"}}\n",
              "append", "there");
    import();
    assert_told("-");
    DONE(&cli, "ls", "--lost", "--json");
    ck_assert_str_eq(cli.out, "");
    DONE_WITH(&cli, "{\"type\":\"source.deleted\",\"data\":{\"path\":\"/logs/a.jsonl\"}}\n",
              "append", "there"); /* its own host said it */
    DONE(&cli, "ls", "--lost", "--json");
    assert_prints("{\"session_id\":\"there\"");
}
END_TEST

START_TEST(a_deleted_session_is_not_created_again_for_its_deleted_log)
{
    write_log(LOG, 0, 9);
    write_log(OTHER, 20, 29);
    import();
    DONE(&cli, "delete", "s-1", "--yes");
    ck_assert_int_eq(unlink(at_home(LOG)), 0);
    import();
    assert_told("-");
    DONE(&cli, "ls", "--json");
    ck_assert_ptr_null(strstr(cli.out, "\"s-1\""));
    ck_assert_int_eq(unlink(at_home(OTHER)), 0);
    import();
    assert_told("deleted");
    DONE(&cli, "delete", "s-2", "--yes");
    assert_answer("SELECT count(*) || '' FROM source_events", "0");
}
END_TEST

/* ---- What is printed ---- */

START_TEST(ls_lists_lost_sessions_and_the_command_that_restores_the_first)
{
    write_log(LOG, 0, 9);
    write_log(OTHER, 20, 29);
    import();
    DONE(&cli, "ls", "--lost", "--json");
    ck_assert_str_eq(cli.out, "");
    ck_assert_int_eq(unlink(at_home(LOG)), 0);
    DONE(&cli, "ls", "--lost"); /* nothing has noticed it yet */
    assert_prints("annal source restore s-1 ");
    ck_assert_ptr_null(strstr(cli.out, "s-2"));
    import();
    DONE(&cli, "ls", "--lost", "--json");
    assert_prints("{\"session_id\":\"s-1\"");
    assert_prints("\"source_state\":\"deleted\"");
    ck_assert_ptr_null(strstr(cli.out, "source restore"));
    DONE(&cli, "ls");
    assert_prints("log deleted");
    DONE(&cli, "show", "s-1", "--json");
    assert_prints("\"source_state\":\"deleted\"");
    DONE(&cli, "source", "restore", "s-1");
    DONE(&cli, "ls", "--lost", "--json");
    ck_assert_str_eq(cli.out, "");
    import();
    assert_told("deleted returned");
}
END_TEST

START_TEST(report_sums_up_the_logs_by_kind)
{
    write_log(LOG, 0, 9);
    write_log(OTHER, 20, 29);
    import();
    ck_assert_int_eq(truncate(at_home(OTHER), 162), 0);
    ck_assert_int_eq(unlink(at_home(LOG)), 0);
    import();
    DONE(&cli, "report", "--sources", "--json");
    assert_prints("{\"section\":\"total\",\"kinds\":1,\"sources\":2,\"bytes\":1431,\"copies\":3,");
    assert_prints("{\"section\":\"kinds\",\"kind\":\"claude-code\",\"sources\":2,");
    assert_prints("\"gone\":1,\"shrank\":1,\"replaced\":0}");
    CLI(&cli, NULL, "report", "--sources", "s-1");
    cli_assert_refused(&cli, 2, "omit SESSION");
    CLI(&cli, NULL, "report", "--sources", "--since", "1d");
    ck_assert_int_eq(cli.exit_status, 2);
}
END_TEST

START_TEST(doctor_says_which_bytes_of_which_log_are_not_imported)
{
    write_log(LOG, 0, 9);
    import();
    CLI(&cli, NULL, "doctor");
    ck_assert_ptr_null(strstr(cli.out, "not imported"));
    write_log(LOG, 0, 11);
    CLI(&cli, NULL, "doctor");
    assert_prints("source       283 B not imported, written until ");
    assert_prints("sources      1 log with 283 B not imported yet, the oldest of ");
    import();
    CLI(&cli, NULL, "doctor");
    ck_assert_ptr_null(strstr(cli.out, "not imported"));
}
END_TEST

/* ---- annal watch ---- */

static void wait_until_told(const char *expected)
{
    char line[100];
    snprintf(line, sizeof line, "\n%s\n", expected);
    for (;;) { /* the test's own limit ends it */
        CLI(&cli, NULL, "sql",
            "SELECT coalesce(group_concat(type, ' '), '-') AS t FROM (SELECT substr(type, 8) AS "
            "type FROM events WHERE type GLOB 'source.*' ORDER BY seq)");
        if (strstr(cli.out, line) != NULL)
            return;
        poll(NULL, 0, 50);
    }
}

START_TEST(a_watch_notes_what_happens_to_logs_also_before_it_was_killed)
{
    int input, output, how;
    const char *const words[] = {"watch", NULL};
    write_log(LOG, 0, 9);
    import();
    write_log(OTHER, 20, 29);
    pid_t watch = cli_start(&cli, words, &input, &output);
    do
        DONE(&cli, "source", "ls", "--json");
    while (strstr(cli.out, "\"s-2\"") == NULL);
    ck_assert_int_eq(unlink(at_home(LOG)), 0);
    ck_assert_int_eq(unlink(at_home(OTHER)), 0);
    write_log(OTHER, 20, 29); /* it was never gone */
    wait_until_told("deleted");
    kill(watch, SIGKILL);
    ck_assert_int_eq(waitpid(watch, &how, 0), watch);
    close(input);
    close(output);
    watch = cli_start(&cli, words, &input, &output);
    write_log(LOG, 0, 9);
    wait_until_told("deleted returned");
    kill(watch, SIGTERM);
    ck_assert_int_eq(waitpid(watch, &how, 0), watch);
    close(input);
    close(output);
    import();
    assert_told("deleted returned");
}
END_TEST

Suite *suite_changes(void)
{
    Suite *suite = suite_create("changes");
    TCase *tc = suite_case(suite, "changes", setup, cli_teardown);
    tcase_add_test(tc, a_deleted_log_is_noted_once_and_again_after_it_returned);
    tcase_add_test(tc, a_log_cut_short_shrank_and_one_with_other_bytes_was_replaced);
    tcase_add_test(tc, a_change_is_noted_once_also_if_the_mark_of_its_copy_is_lost);
    tcase_add_test(tc,
                   a_document_is_written_anew_by_its_agent_and_shrinks_only_by_more_than_a_tenth);
    tcase_add_test(tc, an_event_about_a_log_changes_neither_times_nor_numbers_of_its_session);
    tcase_add_test(tc, a_log_on_a_file_system_that_is_not_mounted_is_not_deleted);
    tcase_add_test(tc, a_session_whose_log_was_moved_is_not_lost);
    tcase_add_test(tc, a_log_in_a_directory_without_permission_is_not_deleted);
    tcase_add_test(tc, a_log_of_another_host_is_left_alone);
    tcase_add_test(tc, a_deleted_session_is_not_created_again_for_its_deleted_log);
    tcase_add_test(tc, ls_lists_lost_sessions_and_the_command_that_restores_the_first);
    tcase_add_test(tc, report_sums_up_the_logs_by_kind);
    tcase_add_test(tc, doctor_says_which_bytes_of_which_log_are_not_imported);
    tcase_add_test(tc, a_watch_notes_what_happens_to_logs_also_before_it_was_killed);
    return suite;
}
