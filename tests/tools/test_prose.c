/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/verbs/prose_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN "20260116-143052-a7b3c9"

static void init(void)
{
    DONE(&cli, "pack", "enable", "prose");
    DONE(&cli, "prose", "init", RUN);
}

static void ck_out(const char *part)
{
    cli_assert_done(&cli);
    ck_assert_msg(strstr(cli.out, part) != NULL, "%s", cli.out);
}

START_TEST(the_id_of_a_run_is_checked_or_generated)
{
    static const char *const wrong[] = {"",
                                        "x",
                                        "20260116-143052-a7b3c",
                                        "20260116-143052-a7b3c99",
                                        "20260116-143052-A7B3C9",
                                        "2026011a-143052-a7b3c9",
                                        "20260116_143052-a7b3c9"};
    char made[PROSE_RUN_BYTES + 1];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!prose_run_check(wrong[i]), "%s", wrong[i]);
    ck_assert(prose_run_check(RUN));
    ck_assert_int_eq(prose_run_new(made), 0);
    ck_assert_msg(prose_run_check(made), "%s", made);
}
END_TEST

START_TEST(the_folder_of_a_run_contains_its_database_and_a_copy_of_its_program)
{
    char path[600];
    CLI(&cli, NULL, "pack", "enable", "prose");
    CLI(&cli, "session \"x\"\n", "prose", "init", RUN, "--program", "-");
    ck_out("/prose/runs/" RUN "/state.db\n");
    snprintf(path, sizeof path, "%s/prose/runs/" RUN "/program.prose", cli.store);
    size_t len;
    ck_text(file_read(path, &len), "session \"x\"\n");
    CLI(&cli, NULL, "prose", "init", RUN);
    ck_assert_int_eq(cli.exit_status, 1);
    CLI(&cli, NULL, "prose", "init", "R1");
    ck_assert_int_eq(cli.exit_status, 2);
    CLI(&cli, NULL, "prose", "init");
    ck_out("Run: 20");
}
END_TEST

START_TEST(a_missing_directory_for_runs_is_created)
{
    DONE(&cli, "pack", "enable", "prose", "--at", tmpdir_path(&cli.dir, "new/.prose"));
    CLI(&cli, "session \"x\"\n", "prose", "init", RUN, "--program", "-");
    ck_out("/new/.prose/runs/" RUN "/state.db\n");
    ck_text(file_read(tmpdir_path(&cli.dir, "new/.prose/runs/" RUN "/program.prose"), NULL),
            "session \"x\"\n");
}
END_TEST

START_TEST(bind_prints_the_confirmation_of_the_document)
{
    init();
    CLI(&cli, NULL, "prose", "bind", RUN, "research", "AI safety");
    ck_out("Binding written: research\nLocation: ");
    ck_out(RUN "/state.db (bindings table, name='research', execution_id=NULL)\n");
    ck_assert_ptr_null(strstr(cli.out, "Execution ID"));
    CLI(&cli, NULL, "prose", "exec", RUN, "do process(chunk)");
    ck_out("execution 1 started\n");
    CLI(&cli, NULL, "prose", "bind", RUN, "result", "3 parts", "--execution", "1");
    ck_out("(bindings table, name='result', execution_id=1)\nExecution ID: 1\n");
    CLI(&cli, NULL, "prose", "get", RUN, "result", "--execution", "1", "--json");
    ck_out("\"value\":\"3 parts\"");
    CLI(&cli, NULL, "prose", "bind", RUN, "-", "nameless");
    ck_out("Binding written: anon_001\n");
    CLI(&cli, NULL, "prose", "bind", RUN, "result", "3 parts", "--execution", "9");
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "the execution is unknown"));
}
END_TEST

/* Bind a value of this many bytes from a file. */
static void bind_bytes(const char *name, size_t bytes)
{
    char *value = malloc(bytes + 1), path[600];
    memset(value, 'v', bytes);
    snprintf(path, sizeof path, "%s/value.md", cli.store);
    file_write(path, value, bytes);
    free(value);
    DONE(&cli, "prose", "bind", RUN, name, "--value-file", path);
}

START_TEST(a_value_over_100_kb_is_an_attachment_that_is_checked_and_restored)
{
    char path[600];
    init();
    bind_bytes("fits", (100 << 10) - 1);
    bind_bytes("large", (100 << 10) + 1);
    CLI(&cli, NULL, "sql", "--session", "prose_" RUN, "--json",
        "SELECT name, length(value) AS n, attachment_path FROM bindings");
    ck_out("{\"name\":\"fits\",\"n\":102399,\"attachment_path\":null}\n"
           "{\"name\":\"large\",\"n\":");
    ck_out("\"attachment_path\":\"attachments/large.md\"}\n");
    CLI(&cli, NULL, "prose", "attachments", RUN);
    ck_out("attachments/large.md: unchanged\n");
    snprintf(path, sizeof path, "%s/prose/runs/" RUN "/attachments/large.md", cli.store);
    file_write(path, "other", 5);
    CLI(&cli, NULL, "prose", "attachments", RUN);
    ck_assert_int_eq(cli.exit_status, 1);
    unlink(path);
    CLI(&cli, NULL, "prose", "attachments", RUN, "--restore");
    ck_out("restored\n");
    size_t len;
    free(file_read(path, &len));
    ck_assert_uint_eq(len, (100 << 10) + 1);
    /* No name leads out of the folder. */
    bind_bytes("../../x", (100 << 10) + 1);
    CLI(&cli, NULL, "sql", "--session", "prose_" RUN,
        "SELECT attachment_path FROM bindings WHERE name = '../../x'");
    ck_out("attachments/%2E%2E%2F.%2E%2Fx.md");
}
END_TEST

/* Move a file or folder of the run to out/, and put a link in its place. */
static void link_away(const char *name, const char *to)
{
    char place[400];
    snprintf(place, sizeof place, "%s/prose/runs/" RUN "%s", cli.store, name);
    ck_assert_msg(rename(place, to) == 0, "%s: %s", place, strerror(errno));
    ck_assert_int_eq(symlink(to, place), 0);
}

START_TEST(links_in_the_folder_of_a_run_are_not_followed)
{
    char out[300];
    init();
    snprintf(out, sizeof out, "%s", tmpdir_path(&cli.dir, "elsewhere"));
    bind_bytes("one", 110000);
    link_away("/attachments", out);
    CLI(&cli, NULL, "prose", "bind", RUN, "two", "--value-file",
        tmpdir_path(&cli.dir, "store/value.md"));
    cli_assert_refused(&cli, EXIT_STORAGE, "attachments' is a symbolic link");
    ck_assert_int_ne(access(tmpdir_path(&cli.dir, "elsewhere/two.md"), F_OK), 0);
    CLI(&cli, NULL, "prose", "attachments", RUN, "--restore");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "attachments/one.md: below a symbolic link\n"));
    ck_assert_ptr_nonnull(strstr(cli.err, "attachments' is a symbolic link"));
    cli_teardown();

    cli_setup();
    init();
    snprintf(out, sizeof out, "%s", tmpdir_path(&cli.dir, "elsewhere"));
    link_away("", out);
    CLI(&cli, NULL, "prose", "bind", RUN, "name", "value");
    ck_assert_int_ne(cli.exit_status, 0);
    ck_assert_msg(strstr(cli.err, RUN "' is a symbolic link") != NULL, "%s", cli.err);
}
END_TEST

START_TEST(a_refused_event_changes_neither_program_nor_attachments)
{
    char path[600];
    size_t len;
    CLI(&cli, NULL, "pack", "enable", "prose");
    DONE_WITH(&cli, "old\n", "prose", "init", RUN, "--program", "-");
    CLI(&cli, "new\n", "prose", "init", RUN, "--program", "-");
    cli_assert_refused(&cli, 1, "the run has been started before");
    snprintf(path, sizeof path, "%s/prose/runs/" RUN "/program.prose", cli.store);
    ck_text(file_read(path, &len), "old\n");
    char *value = calloc(1, (110 << 10) + 1);
    memset(value, 'v', 110 << 10);
    DONE_WITH(&cli, value, "prose", "bind", RUN, "c", "-", "--kind", "const");
    memset(value, 'w', 110 << 10);
    CLI(&cli, value, "prose", "bind", RUN, "c", "-");
    cli_assert_refused(&cli, 1, "the value of this name cannot change");
    free(value);
    CLI(&cli, NULL, "prose", "attachments", RUN);
    ck_out("attachments/c.md: unchanged\n");
}
END_TEST

START_TEST(two_names_have_two_files_also_with_a_dot_at_the_end)
{
    init();
    bind_bytes("x.43", 110 << 10);
    bind_bytes("x.", 110 << 10);
    CLI(&cli, NULL, "prose", "attachments", RUN);
    ck_out("attachments/x%2E.md: unchanged\nattachments/x%2E43.md: un");
}
END_TEST

START_TEST(a_path_that_users_wrote_is_not_restored_outside_of_attachments)
{
    char command[800], path[600];
    init();
    bind_bytes("large", 110 << 10);
    snprintf(command, sizeof command,
             "sqlite3 '%s/prose/runs/" RUN "/state.db' \"INSERT INTO attachments SELECT "
             "'attachments/../../out.md', sha256, bytes, NULL FROM attachments\"",
             cli.store);
    ck_assert_int_eq(system(command), 0);
    CLI(&cli, NULL, "prose", "attachments", RUN, "--restore");
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.out, "out.md: not under attachments/\n"));
    snprintf(path, sizeof path, "%s/prose/runs/out.md", cli.store);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(resume_prints_the_state_of_a_run)
{
    init();
    CLI(&cli, NULL, "prose", "parallel", RUN, "a", "b", "--strategy", "any");
    ck_out("parallel block p1 is execution 1\n");
    CLI(&cli, NULL, "prose", "branch", RUN, "p1", "a", "--failed", "timeout");
    CLI(&cli, NULL, "prose", "join", RUN, "p1");
    ck_assert_int_eq(cli.exit_status, 1);
    CLI(&cli, NULL, "prose", "bind", RUN, "x", "1");
    CLI(&cli, NULL, "prose", "remember", RUN, "captain", "m");
    CLI(&cli, NULL, "prose", "resume", RUN, "--json");
    ck_out("{\"what\":\"run\",\"execution_id\":null,\"name\":\"" RUN "\",\"status\":\"running\"");
    ck_out("\"what\":\"position\",\"execution_id\":3");
    ck_out("{\"what\":\"parallel\",\"execution_id\":1,\"name\":\"p1\",\"status\":\"executing\","
           "\"detail\":\"1 of 2 branches open\"}");
    ck_out("\"what\":\"binding\"");
    ck_out("\"what\":\"agent\"");
    CLI(&cli, NULL, "prose", "branch", RUN, "p1", "b");
    CLI(&cli, NULL, "prose", "join", RUN, "p1");
    ck_out("parallel block p1: completed\n");
    DONE(&cli, "prose", "complete-run", RUN);
    CLI(&cli, NULL, "prose", "continue", RUN);
    ck_assert_int_eq(cli.exit_status, 1);
    CLI(&cli, NULL, "prose", "remember", RUN, "captain", "m", "--scope", "project");
    ck_assert_int_eq(cli.exit_status, 3);
}
END_TEST

START_TEST(rows_written_with_the_shell_are_in_the_journal_after_a_sync)
{
    char command[800];
    init();
    snprintf(command, sizeof command,
             "sqlite3 '%s/prose/runs/" RUN "/state.db' \"INSERT INTO agents (name) VALUES ('a')\"",
             cli.store);
    ck_assert_int_eq(system(command), 0);
    CLI(&cli, NULL, "verify");
    ck_out("rows of users are not in the journal yet");
    DONE(&cli, "prose", "sync");
    CLI(&cli, NULL, "verify");
    ck_out("nothing found");
    ck_assert_ptr_null(strstr(cli.out, "users"));
    DONE(&cli, "pack", "rebuild", "prose");
    ck_out("rebuilt from 2 events");
    CLI(&cli, NULL, "verify");
    ck_out("nothing found");
    CLI(&cli, NULL, "cat", "prose_" RUN);
    ck_out("\"type\":\"sql.applied\"");
}
END_TEST

/* Treating the database as damaged would lose the rows of users. */
START_TEST(rows_of_users_stay_in_the_database_if_the_journal_cannot_be_written)
{
    char command[800];
    size_t len;
    init();
    CLI(&cli, NULL, "prose", "bind", RUN, "x", "1");
    DONE(&cli, "prose", "sync");
    char *journal = cli_journal(&cli, "prose_" RUN, &len);
    journal[len - 60] ^= 1;
    journal[len - 10] ^= 1;
    cli_journal_write(&cli, "prose_" RUN, journal, len);
    free(journal);
    snprintf(command, sizeof command,
             "sqlite3 '%s/prose/runs/" RUN "/state.db' \"INSERT INTO agents (name) VALUES ('a')\"",
             cli.store);
    ck_assert_int_eq(system(command), 0);
    CLI(&cli, NULL, "prose", "sync", RUN);
    ck_assert_msg(strstr(cli.err, "rows written by users were not turned into events") != NULL,
                  "%s", cli.err);
    snprintf(command, sizeof command,
             "sqlite3 '%s/prose/runs/" RUN "/state.db' \"SELECT name FROM agents\" | grep -qx a && "
             "! ls '%s/prose/runs/" RUN "' | grep -q foreign",
             cli.store, cli.store);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

Suite *suite_prose(void)
{
    Suite *suite = suite_create("prose");
    TCase *tcase = suite_case(suite, "prose", cli_setup, cli_teardown);
    tcase_add_test(tcase, the_id_of_a_run_is_checked_or_generated);
    tcase_add_test(tcase, the_folder_of_a_run_contains_its_database_and_a_copy_of_its_program);
    tcase_add_test(tcase, a_missing_directory_for_runs_is_created);
    tcase_add_test(tcase, bind_prints_the_confirmation_of_the_document);
    tcase_add_test(tcase, a_value_over_100_kb_is_an_attachment_that_is_checked_and_restored);
    tcase_add_test(tcase, links_in_the_folder_of_a_run_are_not_followed);
    tcase_add_test(tcase, a_refused_event_changes_neither_program_nor_attachments);
    tcase_add_test(tcase, two_names_have_two_files_also_with_a_dot_at_the_end);
    tcase_add_test(tcase, a_path_that_users_wrote_is_not_restored_outside_of_attachments);
    tcase_add_test(tcase, resume_prints_the_state_of_a_run);
    tcase_add_test(tcase, rows_written_with_the_shell_are_in_the_journal_after_a_sync);
    tcase_add_test(tcase, rows_of_users_stay_in_the_database_if_the_journal_cannot_be_written);
    return suite;
}
