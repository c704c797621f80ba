/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SESSIONS 12

/* Append SESSIONS sessions; damage a byte of the journals that damaged lists. */
static void sessions_init(const char *damaged)
{
    char name[8];
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(name, sizeof name, "s%02d", i);
        DONE_WITH(&cli, "{\"text\":\"one\"}\n{\"text\":\"two\"}\n{\"text\":\"three\"}\n", "append",
                  name, "--type", "n");
        if (strstr(damaged, name) == NULL)
            continue;
        size_t len;
        char *journal = cli_journal(&cli, name, &len);
        *strstr(journal, "two") = 'T';
        cli_journal_write(&cli, name, journal, len);
        free(journal);
    }
}

START_TEST(findings_are_in_the_order_of_sessions_with_any_number_of_jobs)
{
    static const char *const jobs[] = {"--jobs=1", "--jobs=2", "--jobs=16"};
    char *first = NULL;
    sessions_init("s00 s03 s07 s11");
    CLI(&cli, NULL, "ls"); /* creates an index */
    for (int i = 0; i < 3; i++) {
        CLI(&cli, NULL, "verify", jobs[i]);
        ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
        ck_assert_str_eq(cli.err, "");
        const char *at = cli.out;
        for (int session = 0; session < SESSIONS; session++) {
            char line[60];
            if (session != 0 && session != 3 && session != 7 && session != 11)
                continue;
            snprintf(line, sizeof line, "s%02d: event 2 at byte ", session);
            at = strstr(at, line);
            ck_assert_msg(at != NULL, "no '%s' in its place: %s", line, cli.out);
            snprintf(line, sizeof line, "s%02d: 'annal repair s%02d --to NEW'", session, session);
            at = strstr(at, line);
            ck_assert_msg(at != NULL, "no '%s' in its place: %s", line, cli.out);
        }
        ck_assert_ptr_nonnull(strstr(cli.out, "verified 12 sessions, 32 events, "));
        if (first == NULL)
            first = strdup(cli.out);
        ck_assert_str_eq(cli.out, first);
    }
    free(first);
    CLI(&cli, NULL, "verify", "--jobs=0");
    cli_assert_refused(&cli, EXIT_USAGE, "--jobs");
}
END_TEST

/* More findings than are buffered for a session, and more index rows than a page holds. */
START_TEST(verify_lists_every_damaged_event_of_a_session)
{
    enum { EVENTS = 900 };
    size_t len, found = 0;
    char *input = malloc(EVENTS * 8), *at = input;
    for (int i = 1; i <= EVENTS; i++)
        at += sprintf(at, "[\"x\"]\n");
    CLI(&cli, input, "append", "s1", "--type", "n");
    CLI(&cli, NULL, "reindex");
    DONE(&cli, "verify");
    char *journal = cli_journal(&cli, "s1", &len);
    int line = 0;
    for (char *x = journal; (x = strstr(x, "[\"x\"]")) != NULL; x++)
        if (line++ % 2 == 0)
            x[2] = 'y';
    cli_journal_write(&cli, "s1", journal, len);
    CLI(&cli, NULL, "verify", "s1", "--json");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    for (const char *c = cli.out; (c = strstr(c, "\"what\"")) != NULL; c++)
        found++;
    ck_assert_uint_ge(found, EVENTS / 2);
    free(journal);
    free(input);
}
END_TEST

/* Cut whole lines, so that the journal is sound; the index follows it. */
START_TEST(a_snapshot_proves_that_lines_were_cut_from_the_end)
{
    size_t len;
    CLI(&cli, "1\n2\n3\n4\n5\n", "append", "s1", "--type", "n");
    CLI(&cli, NULL, "snapshot", "s1");
    DONE(&cli, "verify");
    ck_assert_ptr_null(strstr(cli.out, "snapshot"));
    char *journal = cli_journal(&cli, "s1", &len);
    for (int lines = 0; lines < 3; len--)
        lines += len > 0 && journal[len - 1] == '\n';
    cli_journal_write(&cli, "s1", journal, len + 1);
    free(journal);
    CLI(&cli, NULL, "ls");
    DONE(&cli, "verify");
    ck_assert_msg(strstr(cli.out,
                         "s1: (no finding) a snapshot was taken after event 5, which is missing in "
                         "the journal") != NULL,
                  "%s", cli.out);
    DONE(&cli, "verify", "--replay", "--json");
    ck_assert_msg(strstr(cli.out, "\"seq\":5,\"remark\":true,") != NULL, "%s", cli.out);
}
END_TEST

START_TEST(a_damaged_line_before_a_snapshot_is_not_reported_as_cut)
{
    size_t len;
    CLI(&cli, "1\n2\n3\n4\n5\n", "append", "s1", "--type", "n");
    CLI(&cli, NULL, "snapshot", "s1");
    CLI(&cli, "6\n", "append", "s1", "--type", "n");
    char *journal = cli_journal(&cli, "s1", &len);
    char *line = strstr(journal, "\"seq\":5");
    ck_assert_ptr_nonnull(line);
    *strchr(line, '\n') = ' ';
    cli_journal_write(&cli, "s1", journal, len);
    free(journal);
    CLI(&cli, NULL, "verify", "s1");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_msg(strstr(cli.out, "which is missing in the journal") == NULL, "%s", cli.out);
}
END_TEST

START_TEST(a_damaged_commit_log_is_a_finding_and_an_open_log_is_not)
{
    int input, output;
    char ack[40];
    pid_t pid =
        cli_start(&cli, (const char *[]){"append", "s1", "--type", "n", NULL}, &input, &output);
    ck_assert_int_eq(write(input, "1\n", 2), 2);
    ck_assert_int_gt(read(output, ack, sizeof ack), 0);
    DONE(&cli, "verify", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"unreleased_groups\":1,"));
    DONE(&cli, "verify");
    ck_assert_ptr_nonnull(strstr(cli.out, "commit logs: 1 groups of events"));
    close(input);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    close(output);
    const char *log = tmpdir_path(&cli.dir, "store/commit/00.log");
    size_t len;
    char *bytes = file_read(log, &len);
    memset(bytes, 'x', 512);
    memset(bytes + len - 4096, 'x', 4096);
    file_write(log, bytes, len);
    free(bytes);
    CLI(&cli, NULL, "verify");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "commit log 00: its first block is damaged"));
}
END_TEST

START_TEST(an_unreadable_session_is_a_storage_failure_and_the_others_are_verified)
{
    char name[8];
    sessions_init("s05");
    snprintf(name, sizeof name, "s04");
    ck_assert_int_eq(unlink(tmpdir_path(&cli.dir, "store/events/s04.jsonl")), 0);
    ck_assert_int_eq(symlink("/dev/null", tmpdir_path(&cli.dir, "store/events/s04.jsonl")), 0);
    CLI(&cli, NULL, "verify", "s03", "s05");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "s05: event 2"));
    CLI(&cli, NULL, "verify", name);
    cli_assert_refused(&cli, EXIT_STORAGE, "s04");
}
END_TEST

/* SQLite 3.40 reports NULL in columns of such tables that contain no NULL. */
START_TEST(a_table_whose_key_is_not_its_first_columns_is_not_damaged)
{
    static const char pack[] =
        "-- pack keyed   version 1   database keyed.db\n"
        "CREATE TABLE \"key ed\" (session_id TEXT NOT NULL, \"a \"\"b\" INTEGER NOT NULL,\n"
        "  n TEXT NOT NULL, PRIMARY KEY (n, session_id)) WITHOUT ROWID;\n"
        "CREATE TABLE free (session_id TEXT, n TEXT PRIMARY KEY NOT NULL);\n"
        "-- on n\nINSERT INTO \"key ed\" VALUES (:session, :seq, $text);\n";
    ck_assert_int_eq(mkdir(cli.store, 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "store/packs"), 0700), 0);
    file_write(tmpdir_path(&cli.dir, "store/packs/keyed.sql"), pack, strlen(pack));
    sessions_init("");
    DONE(&cli, "sql", "--json", "SELECT count(*) AS n FROM \"key ed\"");
    DONE(&cli, "verify");
    ck_assert_ptr_nonnull(strstr(cli.out, "nothing found\n"));
    cli_change_database(&cli, "keyed.db",
                        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = "
                        "replace(sql, 'KEY NOT NULL', 'KEY') WHERE name = 'free'; "
                        "PRAGMA writable_schema = RESET; INSERT INTO free (session_id) VALUES "
                        "('s00'); PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = "
                        "replace(sql, 'PRIMARY KEY)', 'PRIMARY KEY NOT NULL)') "
                        "WHERE name = 'free'; PRAGMA writable_schema = RESET");
    CLI(&cli, NULL, "verify");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "a NOT NULL column contains NULL"));
}
END_TEST

Suite *suite_verify(void)
{
    Suite *suite = suite_create("verify");
    TCase *command = suite_case(suite, "command", cli_setup, cli_teardown);
    tcase_add_test(command, findings_are_in_the_order_of_sessions_with_any_number_of_jobs);
    tcase_add_test(command, verify_lists_every_damaged_event_of_a_session);
    tcase_add_test(command, a_snapshot_proves_that_lines_were_cut_from_the_end);
    tcase_add_test(command, a_damaged_line_before_a_snapshot_is_not_reported_as_cut);
    tcase_add_test(command, a_damaged_commit_log_is_a_finding_and_an_open_log_is_not);
    tcase_add_test(command, a_table_whose_key_is_not_its_first_columns_is_not_damaged);
    tcase_add_test(command, an_unreadable_session_is_a_storage_failure_and_the_others_are_verified);
    return suite;
}
