/* SPDX-License-Identifier: Apache-2.0 */
/* annal pack, and the effect of packs on other verbs. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char notes[] =
    "-- pack notes   version 1   database notes.db\n"
    "CREATE TABLE notes (session_id TEXT, seq INTEGER, text TEXT NOT NULL,\n"
    "                    PRIMARY KEY (session_id, seq));\n"
    "-- on note.added\n"
    "INSERT INTO notes VALUES (:session, :seq, $text);\n"
    "-- forget\n"
    "DELETE FROM notes WHERE session_id = :session;\n";

static void init_with_events(void)
{
    DONE_WITH(&cli, "{\"text\":\"one\"}\n{\"text\":\"two\"}\n", "append", "s1", "--type",
              "note.added");
}

/* Write a pack of the user: STORE/packs/NAME.sql. */
static void drop(const char *name, const char *text)
{
    char path[300];
    mkdir(tmpdir_path(&cli.dir, "store/packs"), 0700);
    snprintf(path, sizeof path, "store/packs/%s.sql", name);
    file_write(tmpdir_path(&cli.dir, path), text, strlen(text));
}

START_TEST(check_describes_a_pack_or_its_mistake_with_file_and_line)
{
    const char *good = tmpdir_path(&cli.dir, "notes.sql"), *bad = tmpdir_path(&cli.dir, "bad.sql");
    char where[300];
    file_write(good, notes, strlen(notes));
    DONE(&cli, "pack", "check", good);
    ck_assert_str_eq(cli.out,
                     "pack notes, version 1, database notes.db: its statements are correct\n");
    CLI(&cli, NULL, "pack", "check", good, "--json");
    ck_assert_str_eq(cli.out, "{\"name\":\"notes\",\"version\":1,\"database\":\"notes.db\"}\n");
    file_write(
        bad, "-- pack bad version 1 database b.db\n-- on a\nSELECT 1;\nINSERT INTO t VALUES (1);\n",
        76);
    CLI(&cli, NULL, "pack", "check", bad);
    snprintf(where, sizeof where, "%s:4: ", bad);
    cli_assert_refused(&cli, EXIT_REFUSED, where);
    CLI(&cli, NULL, "pack", "check", bad, good);
    cli_assert_refused(&cli, EXIT_REFUSED, where);
    ck_assert_ptr_nonnull(strstr(cli.out, "pack notes"));
}
END_TEST

static const char claims[] =
    "-- pack claims   version 1   database claims.db\n"
    "CREATE TABLE claims (session_id TEXT, task TEXT, PRIMARY KEY (session_id, task));\n"
    "-- on task.claimed   guarded \"the task is taken\"\n"
    "INSERT INTO claims VALUES (:session, $task);\n"
    "-- forget\n"
    "DELETE FROM claims WHERE session_id = :session;\n";

/* Assert that the command ended with 1 and named the event on stdout or stderr. */
static void ck_names(const char *event)
{
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_msg(strstr(cli.err, event) != NULL || strstr(cli.out, event) != NULL, "no %s: %s%s",
                  event, cli.out, cli.err);
}

START_TEST(every_command_counts_events_past_a_guard_alike)
{
    static const char claim[] = "{\"task\":\"t\"}\n{\"task\":\"t\"}\n";
    DONE_WITH(&cli, claim, "append", "s1", "--type", "task.claimed");
    DONE_WITH(&cli, claim, "append", "s2", "--type", "task.claimed");
    DONE_WITH(&cli, "1\n", "append", "s3", "--type", "other");
    drop("claims", claims);
    for (int caught_up = 0; caught_up < 2; caught_up++) {
        CLI(&cli, NULL, "verify");
        ck_names("event 2 of session 's1': task.claimed was appended although its guard refuses "
                 "it: the task is taken");
        ck_names("event 2 of session 's2'");
        ck_assert_ptr_nonnull(strstr(cli.out, ": 2 findings\n"));
        CLI(&cli, NULL, "doctor");
        ck_names("2 in 2 sessions: s1 s2\n");
    }
    CLI(&cli, NULL, "ls");
    ck_names("session 's2', event 2 at byte ");
    ck_assert_ptr_nonnull(strstr(strstr(cli.out, "  1 finding\n") + 1, "  1 finding\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "  ok\n"));
    CLI(&cli, NULL, "report");
    ck_names("session 's2', event 2 at byte ");
    CLI(&cli, NULL, "report", "s3");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    CLI(&cli, NULL, "show", "s1");
    ck_names("session 's1', event 2 at byte ");
    DONE(&cli, "show", "s3");
    DONE(&cli, "stats");
    ck_assert_ptr_nonnull(strstr(cli.out, "findings       2\n"));
}
END_TEST

/* No earlier command has filled the tables. */
START_TEST(ls_and_doctor_update_pack_tables_before_they_count)
{
    static const char claim[] = "{\"task\":\"t\"}\n{\"task\":\"t\"}\n";
    static const char *const verbs[] = {"ls", "doctor", "report"};
    init_with_events();
    for (size_t i = 0; i < 3; i++) {
        char session[8];
        snprintf(session, sizeof session, "c%zu", i);
        drop("claims", "-- pack claims   version 1   database claims.db\n");
        DONE_WITH(&cli, claim, "append", session, "--type", "task.claimed");
        drop("claims", claims);
        CLI(&cli, NULL, verbs[i]);
        ck_names(session);
    }
}
END_TEST

START_TEST(every_command_reports_a_pack_that_does_not_run)
{
    init_with_events();
    drop("notes", "");
    CLI(&cli, NULL, "verify");
    ck_names("pack notes: the pack is not run: ");
    CLI(&cli, NULL, "ls");
    ck_names("1 finding of packs: ");
    CLI(&cli, NULL, "doctor");
    ck_names("1 in 0 sessions, 1 by packs");
    CLI(&cli, NULL, "ls", "--agent", "nobody");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
}
END_TEST

START_TEST(a_file_in_packs_is_an_enabled_pack_and_its_tables_are_filled)
{
    init_with_events();
    drop("notes", notes);
    DONE(&cli, "sql", "--json", "SELECT seq, text FROM notes");
    ck_assert_str_eq(cli.out, "{\"seq\":1,\"text\":\"one\"}\n{\"seq\":2,\"text\":\"two\"}\n");
    CLI(&cli, "{\"text\":\"three\"}\n", "append", "s2", "--type", "note.added");
    DONE(&cli, "sql", "--json", "SELECT count(*) AS n FROM notes.notes");
    ck_assert_str_eq(cli.out, "{\"n\":3}\n");
}
END_TEST

START_TEST(a_pack_is_enabled_once_and_disabled_once)
{
    init_with_events();
    DONE(&cli, "pack", "enable", "teams");
    ck_assert_str_eq(cli.out, "pack teams is enabled\n");
    DONE(&cli, "sql", "--json", "SELECT count(*) AS n FROM teams");
    ck_assert_str_eq(cli.out, "{\"n\":0}\n");
    DONE(&cli, "pack", "enable", "teams", "--json");
    ck_assert_str_eq(cli.out, "{\"name\":\"teams\",\"enabled\":true}\n");
    DONE(&cli, "pack", "disable", "teams");
    CLI(&cli, NULL, "sql", "SELECT count(*) AS n FROM teams");
    cli_assert_refused(&cli, EXIT_REFUSED, "teams");
    CLI(&cli, NULL, "pack", "disable", "teams");
    cli_assert_refused(&cli, EXIT_REFUSED, "teams");
    CLI(&cli, NULL, "pack", "enable", "teems");
    cli_assert_refused(&cli, EXIT_REFUSED, "teems");
}
END_TEST

START_TEST(enabling_a_pack_creates_the_store_and_its_verbs_need_it_enabled)
{
    CLI(&cli, NULL, "pack", "disable", "teams");
    cli_assert_refused(&cli, EXIT_STORAGE, "no store at");
    DONE(&cli, "pack", "enable", "lionagi");
    CLI(&cli, NULL, "team", "create", "review", "--id", "t1", "--member", "ada");
    cli_assert_refused(&cli, EXIT_STORAGE,
                       "pack teams is not enabled in this store: run 'annal pack enable teams'");
    CLI(&cli, NULL, "team", "ls");
    cli_assert_refused(&cli, EXIT_STORAGE, "annal pack enable teams");
    ck_assert_int_eq(cli_journals(&cli), 0);
    DONE(&cli, "pack", "enable", "teams");
    DONE(&cli, "team", "create", "review", "--id", "t1", "--member", "ada");
    DONE(&cli, "sql", "--json", "SELECT id, name, member_count FROM teams");
    ck_assert_str_eq(cli.out, "{\"id\":\"t1\",\"name\":\"review\",\"member_count\":1}\n");
}
END_TEST

START_TEST(list_prints_the_state_of_each_pack)
{
    init_with_events();
    drop("notes", notes);
    CLI(&cli, "{}\n", "append", "s2", "--type",
        "note.added"); /* without text: the handler fails on it */
    CLI(&cli, NULL, "sql", "SELECT 1 FROM notes");
    DONE(&cli, "pack", "list", "--json");
    ck_assert_ptr_eq(strstr(cli.out, "{\"name\":\"core\",\"version\":"), cli.out);
    const char *row = strstr(cli.out, "{\"name\":\"notes\"");
    ck_assert_ptr_nonnull(row);
    ck_assert_msg(strstr(row, "\"sessions\":2,\"events\":3,\"behind\":0,\"findings\":1,") != NULL,
                  "%s", row);
    CLI(&cli, "{\"text\":\"x\"}\n", "append", "s2", "--type", "note.added");
    DONE(&cli, "pack", "list");
    ck_assert_ptr_nonnull(strstr(cli.out, "building"));
}
END_TEST

START_TEST(a_newly_enabled_pack_is_not_listed_as_failed)
{
    init_with_events();
    CLI(&cli, NULL, "pack", "enable", "lionagi");
    DONE(&cli, "pack", "list", "--json");
    const char *row = strstr(cli.out, "{\"name\":\"lionagi\"");
    ck_assert_ptr_nonnull(row);
    ck_assert_msg(strstr(row, "\"state\":\"building\"") != NULL, "%s", row);
    ck_assert_msg(strstr(row, "\"error\":null") != NULL, "%s", row);
}
END_TEST

START_TEST(a_wrong_pack_is_reported_with_its_line_and_the_others_run)
{
    init_with_events();
    drop("notes", notes);
    drop("bad",
         "-- pack bad version 1 database b.db\nCREATE TABLE b (x);\n-- on a\nDELETE FROM c;\n");
    CLI(&cli, NULL, "pack", "list");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.err, "bad.sql:4"));
    ck_assert_ptr_nonnull(strstr(cli.out, "failed"));
    CLI(&cli, NULL, "sql", "--json", "SELECT count(*) AS n FROM notes");
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_str_eq(cli.out, "{\"n\":2}\n");
    ck_assert_ptr_nonnull(strstr(cli.err, "bad.sql:4"));
    CLI(&cli, NULL, "pack", "check", "bad");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
}
END_TEST

START_TEST(check_of_a_name_counts_findings_and_violated_foreign_keys)
{
    init_with_events();
    drop("keys", "-- pack keys version 1 database keys.db\n"
                 "CREATE TABLE a (id TEXT PRIMARY KEY);\n"
                 "CREATE TABLE b (a TEXT REFERENCES a(id));\n"
                 "-- on note.added\nINSERT INTO b VALUES ($text);\n");
    CLI(&cli, NULL, "pack", "check", "keys", "--json");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_str_eq(cli.out,
                     "{\"name\":\"keys\",\"version\":1,\"findings\":0,\"foreign_keys\":2}\n");
    ck_assert_str_eq(cli.err, "annal: b: 2 rows name rows of a that are missing\n");
    drop("notes", notes);
    DONE(&cli, "pack", "check", "notes");
    CLI(&cli, "{}\n", "append", "s2", "--type", "note.added");
    CLI(&cli, NULL, "pack", "check", "notes");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_str_eq(cli.out,
                     "pack notes, version 1: 1 finding, 0 foreign keys without a target\n");
    DONE(&cli, "pack", "check", "core");
    CLI(&cli, NULL, "pack", "check", "nothing");
    cli_assert_refused(&cli, EXIT_REFUSED, "'nothing' is neither a pack");
}
END_TEST

START_TEST(check_of_a_name_accepts_any_name_of_a_database)
{
    init_with_events();
    drop("by-day", "-- pack by-day version 1 database by-day.db\n"
                   "CREATE TABLE c (text TEXT);\n"
                   "-- on note.added\nINSERT INTO c VALUES ($text);\n");
    CLI(&cli, NULL, "pack", "enable", "prose-user");
    DONE(&cli, "pack", "check", "by-day", "prose-user");
}
END_TEST

START_TEST(pack_rebuild_fills_the_tables_again)
{
    init_with_events();
    drop("notes", notes);
    CLI(&cli, NULL, "sql", "SELECT 1");
    DONE(&cli, "pack", "rebuild", "notes");
    ck_assert_str_eq(cli.out, "pack notes: tables rebuilt from 2 events\n");
    CLI(&cli, NULL, "sql", "--json", "SELECT count(*) AS n FROM notes");
    ck_assert_str_eq(cli.out, "{\"n\":2}\n");
    CLI(&cli, NULL, "pack", "rebuild", "nothing");
    cli_assert_refused(&cli, EXIT_REFUSED, "nothing");
}
END_TEST

START_TEST(doctor_reports_a_pack_that_does_not_run)
{
    init_with_events();
    drop("notes", notes);
    CLI(&cli, NULL, "sql", "SELECT count(*) FROM notes");
    CLI(&cli, NULL, "doctor");
    ck_assert_ptr_null(strstr(cli.out, "is not run"));
    drop("bad", "-- pack bad version 1 database b.db\n-- on a\nINSERT INTO t VALUES (1);\n");
    CLI(&cli, NULL, "doctor");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "bad is not run: "));
    ck_assert_ptr_nonnull(strstr(cli.out, "bad.sql:3: "));
}
END_TEST

START_TEST(a_failed_line_of_a_pack_test_is_reported_and_the_next_ones_run)
{
    static const char pack[] =
        "-- pack t   version 1   database t.db\n"
        "CREATE TABLE t (session_id TEXT, a);\n"
        "-- on a   guarded \"no more than two\"\n"
        "INSERT INTO t SELECT :session, $x WHERE (SELECT count(*) FROM t) < 2;\n"
        "-- on b\nINSERT INTO t SELECT :session, count(*) FROM t;\n"
        "-- forget\nDELETE FROM t WHERE session_id = :session;\n";
    static const char good[] = "-- cases\npack t.sql\nin s\n\n== good\n> a {\"x\":\"1\\n2\"}\n"
                               "> a {\"x\":\"\"}\n! a {}\n  more than\n"
                               "? SELECT a\n  FROM t\n1⏎2\n(empty)\n\n"
                               "watch SELECT count(*) FROM t\n= c {}\nfindings 0\nrebuild\n";
    static const char bad[] =
        "pack t.sql\nin z\n\n== bad\n> a {}\n? SELECT a FROM t\n1\n\n"
        "! a {}\n  no more\n! a {}\n  other words\n> a {}\n"
        "watch SELECT count(*) FROM t\n= b {}\nin a\n~ b {}\nin z\n~ b {}\nrebuild\n"
        "findings 3\nfrob\n? SELECT b FROM t\n\n== fine\n";
    const char *file = tmpdir_path(&cli.dir, "t.test");
    file_write(tmpdir_path(&cli.dir, "t.sql"), pack, sizeof pack - 1);
    file_write(file, good, sizeof good - 1);
    DONE(&cli, "pack", "test", file);
    ck_assert_ptr_nonnull(strstr(cli.out, "t.test: 1 cases, 0 failed\n"));
    file_write(file, bad, sizeof bad - 1);
    CLI(&cli, NULL, "pack", "test", file, "--json");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"cases\":2,\"failed\":1}\n"));
    static const char *const said[] = {
        "t.test:6: other rows\nannal:     expected: 1\nannal:     got: NULL\n",
        "t.test:10: expected a refusal, 'no more', and got: appended",
        "t.test:12: expected a refusal, 'other words', and got: no more than two",
        "t.test:13: no more than two",
        "t.test:15: the event changed the rows\nannal:     expected: 2\nannal:     got: 3\n",
        "t.test:20: a rebuild gives other rows",
        "t.test:21: expected 3 findings, got",
        "t.test:22: 'frob' does not begin",
        "t.test:23: SQL: no such column: b",
        "t.test:4: this case failed: bad\n"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        ck_assert_msg(strstr(cli.err, said[i]) != NULL, "%s: %s", said[i], cli.err);
    file_write(file, "== a\n\n\0> b {}\n", 14);
    CLI(&cli, NULL, "pack", "test", file);
    cli_assert_refused(&cli, EXIT_REFUSED, "t.test:3: a NUL byte: a test file must be");
    file_write(tmpdir_path(&cli.dir, "t.sql"), pack, sizeof pack);
    CLI(&cli, NULL, "pack", "check", tmpdir_path(&cli.dir, "t.sql"));
    cli_assert_refused(&cli, EXIT_REFUSED, "t.sql:9: a NUL byte: a pack must be a text file");
    file_write(file, "in s\n", 5);
    CLI(&cli, NULL, "pack", "test", file);
    cli_assert_refused(&cli, EXIT_REFUSED, "has no case");
}
END_TEST

Suite *suite_pack(void)
{
    Suite *suite = suite_create("pack");
    TCase *tcase = suite_case(suite, "pack", cli_setup, cli_teardown);
    tcase_add_test(tcase, every_command_counts_events_past_a_guard_alike);
    tcase_add_test(tcase, ls_and_doctor_update_pack_tables_before_they_count);
    tcase_add_test(tcase, every_command_reports_a_pack_that_does_not_run);
    tcase_add_test(tcase, check_describes_a_pack_or_its_mistake_with_file_and_line);
    tcase_add_test(tcase, a_file_in_packs_is_an_enabled_pack_and_its_tables_are_filled);
    tcase_add_test(tcase, a_pack_is_enabled_once_and_disabled_once);
    tcase_add_test(tcase, enabling_a_pack_creates_the_store_and_its_verbs_need_it_enabled);
    tcase_add_test(tcase, list_prints_the_state_of_each_pack);
    tcase_add_test(tcase, a_newly_enabled_pack_is_not_listed_as_failed);
    tcase_add_test(tcase, a_wrong_pack_is_reported_with_its_line_and_the_others_run);
    tcase_add_test(tcase, check_of_a_name_counts_findings_and_violated_foreign_keys);
    tcase_add_test(tcase, check_of_a_name_accepts_any_name_of_a_database);
    tcase_add_test(tcase, pack_rebuild_fills_the_tables_again);
    tcase_add_test(tcase, doctor_reports_a_pack_that_does_not_run);
    tcase_add_test(tcase, a_failed_line_of_a_pack_test_is_reported_and_the_next_ones_run);
    return suite;
}
