/* SPDX-License-Identifier: Apache-2.0 */
/* annal import lionagi: runs, which are directories of files. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASSERT_OUT(cli, part)                                                                      \
    ck_assert_msg(strstr((cli)->out, part) != NULL, "'%s' is not in %s", part, (cli)->out)

static void put(const char *name, const char *text)
{
    file_write(tmpdir_path(&cli.dir, name), text, strlen(text));
}

static void make_run(const char *name, const char *manifest)
{
    char path[100];
    mkdir(tmpdir_path(&cli.dir, "runs"), 0700);
    snprintf(path, sizeof path, "runs/%s", name);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, path), 0700), 0);
    snprintf(path, sizeof path, "runs/%s/branches", name);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, path), 0700), 0);
    snprintf(path, sizeof path, "runs/%s/run.json", name);
    put(path, manifest);
}

static void import_all(void)
{
    DONE(&cli, "import", "lionagi", tmpdir_path(&cli.dir, "runs"));
}

static void ask(const char *sql)
{
    DONE(&cli, "sql", "--format", "csv", sql);
}

START_TEST(status_times_and_order_of_a_run_are_taken_from_manifest_and_branch)
{
    make_run("r1",
             "{\n \"kind\": \"flow\", \"status\": \"success\",\r\n"
             " \"started_at\": \"2026-05-20T10:00:00+00:00\", \"ended_at\": 1779271300.5,\n"
             " \"provider\": \"p\", \"model\": \"small\", \"playbook\": \"review\",\n"
             " \"branches\": [{\"id\": \"b1\", \"name\": \"main\", \"model\": \"large\"}]}\n");
    put("runs/r1/branches/b1.json",
        "{\"id\":\"b1\",\"created_at\":1779271200.25,\"user\":\"ada\",\"messages\":{"
        "\"collections\":[\n"
        "{\"id\":\"m2\",\"created_at\":1779271202.5,\"role\":\"user\",\"content\":{\"n\":1.10},"
        "\"embedding\":[0.5,1],\"metadata\":{\"lion_class\":"
        "\"lionagi.protocols.messages.instruction.Instruction\"}},\n"
        "{\"id\":\"m1\",\"created_at\":1779271201.5,\"role\":\"system\",\"content\":{}},\n"
        "{\"id\":\"m3\",\"created_at\":\"2026-05-20T10:00:03.5\",\"role\":\"assistant\","
        "\"content\":{}},\n"
        "{\"id\":\"m9\",\"created_at\":1,\"role\":\"assistant\",\"content\":{}}],\n"
        "\"progression\":{\"order\":[\"m1\",\"m2\",\"gone\",\"m3\"]}}}\n");
    import_all();
    CLI(&cli, NULL, "pack", "enable", "lionagi");
    ask("SELECT id, name, status, started_at, ended_at, updated_at, invocation_kind, "
        "playbook_name, source_kind, first_msg_id, last_msg_id FROM state.sessions");
    ASSERT_OUT(&cli, "\nr1,flow,completed,1779271200,1779271300.5,1779271300.5,flow,review,"
                     "imported_fs,m1,m3");
    ask("SELECT id, name, user, system_msg_id, node_metadata ->> '$.model', "
        "node_metadata ->> '$.provider' FROM branches");
    ASSERT_OUT(&cli, "\nb1,main,ada,m1,large,p");
    ask("SELECT ord, id, lion_class, created_at, hex(embedding), content "
        "FROM branch_messages ORDER BY ord");
    ASSERT_OUT(&cli, "\n0,m1,0,1779271201.5,,{}");
    ASSERT_OUT(&cli, "\n1,m2,2,1779271202.5,0000003F0000803F,\"{\"\"n\"\":1.10}\"");
    ASSERT_OUT(&cli, "\n2,m3,0,1779271203.5,,{}");
}
END_TEST

START_TEST(words_and_exit_codes_become_one_of_six_statuses)
{
    static const char *const manifests[][2] = {
        {"{\"status\":\"success\"}", "completed"},
        {"{\"status\":\"error\"}", "failed"},
        {"{\"status\":\"Timeout\"}", "timed_out"},
        {"{\"status\":\"canceled\"}", "cancelled"},
        {"{\"status\":\"running\"}", "running"},
        {"{\"status\":\"what\"}", "completed"},
        {"{\"exit_code\":0}", "completed"},
        {"{\"exit_code\":1}", "failed"},
        {"{\"exit_code\":124}", "timed_out"},
        {"{\"exit_code\":130}", "aborted"},
        {"{\"exit_code\":143}", "cancelled"},
        {"{\"exit_code\":7}", "failed"},
        {"{}", "completed"},
        {"{\"status\":null}", "completed"},
        {"{\"status\":\"aborted\",\"exit_code\":0}", "aborted"}};
    for (size_t i = 0; i < sizeof manifests / sizeof *manifests; i++) {
        char name[10];
        snprintf(name, sizeof name, "r%02u", (unsigned)i);
        make_run(name, manifests[i][0]);
    }
    import_all();
    CLI(&cli, NULL, "pack", "enable", "lionagi");
    ask("SELECT id, status, ended_at IS NOT NULL, started_at > 0 FROM state.sessions");
    for (size_t i = 0; i < sizeof manifests / sizeof *manifests; i++) {
        char row[50];
        snprintf(row, sizeof row, "\nr%02u,%s,%d,1", (unsigned)i, manifests[i][1],
                 strcmp(manifests[i][1], "running") != 0);
        ASSERT_OUT(&cli, row);
    }
}
END_TEST

START_TEST(a_second_import_of_runs_adds_what_is_new)
{
    make_run("r1", "{}");
    put("runs/r1/branches/b1.json",
        "{\"messages\":{\"collections\":[{\"id\":\"m1\",\"role\":\"user\",\"content\":{}}]}}");
    import_all();
    ASSERT_OUT(&cli, " 3 events added");
    import_all();
    ASSERT_OUT(&cli, " 0 events added");
    put("runs/r1/branches/b1.json",
        "{\"messages\":{\"collections\":[{\"id\":\"m1\",\"role\":\"user\",\"content\":{}},"
        "{\"id\":\"m2\",\"role\":\"user\",\"content\":{}}]}}");
    put("runs/r1/branches/b2.json", "{\"id\":\"b2\"}");
    import_all();
    ASSERT_OUT(&cli, " 2 events added");
}
END_TEST

START_TEST(a_file_that_is_not_json_is_kept_and_marked_unreadable)
{
    make_run("r1", "{\"status\": nothing");
    put("runs/r1/branches/b1.json", "[1,");
    import_all();
    DONE(&cli, "query", "--type", "import.unreadable", "--format", "jsonl");
    ASSERT_OUT(&cli, "nothing");
    ASSERT_OUT(&cli, "\"text\":\"[1,\"");
    CLI(&cli, NULL, "sql", "--format", "csv", "SELECT id, status FROM sessions");
    ASSERT_OUT(&cli, "r1,completed");
}
END_TEST

/* As after a power cut. */
START_TEST(bytes_after_a_zero_byte_are_kept)
{
    static const char branch[] = "{\"id\":\0\0\"behind\"}";
    make_run("r1", "{}");
    file_write(tmpdir_path(&cli.dir, "runs/r1/branches/b1.json"), branch, sizeof branch - 1);
    import_all();
    DONE(&cli, "query", "--type", "import.unreadable", "--format", "jsonl");
    ASSERT_OUT(&cli, "\"text\":\"{\\\"id\\\":\\u0000\\u0000\\\"behind\\\"}\"");
}
END_TEST

START_TEST(a_long_text_of_a_branch_becomes_an_artifact_and_the_others_are_imported)
{
    const size_t len = (size_t)65 << 20;
    char *bytes = malloc(len);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, 'x', len);
    memcpy(bytes, "{\"id\":\"", 7);
    memcpy(bytes + len - 2, "\"}", 2);
    make_run("r1", "{}");
    file_write(tmpdir_path(&cli.dir, "runs/r1/branches/large.json"), bytes, len);
    put("runs/r1/branches/small.json", "{\"id\":\"small\"}");
    free(bytes);
    import_all();
    ask("SELECT count(*) FROM events WHERE type = 'import.unreadable'");
    ASSERT_OUT(&cli, "\n0\r\n");
    ask("SELECT count(*) FROM events WHERE data LIKE '%\"sha256\":%'");
    ASSERT_OUT(&cli, "\n1\r\n");
    ask("SELECT count(*) FROM events WHERE id = 'branch:small'");
    ASSERT_OUT(&cli, "\n1\r\n");
    import_all();
    ASSERT_OUT(&cli, " 0 events added");
}
END_TEST

START_TEST(a_directory_without_runs_is_refused)
{
    mkdir(tmpdir_path(&cli.dir, "runs"), 0700);
    CLI(&cli, NULL, "import", "lionagi", tmpdir_path(&cli.dir, "runs"));
    cli_assert_refused(&cli, 1, "the path contains no log of kind lionagi");
    put("x.jsonl", "{}\n");
    CLI(&cli, NULL, "import", "lionagi", tmpdir_path(&cli.dir, "x.jsonl"));
    cli_assert_refused(&cli, 1, "neither the directory of a run nor the .json file of a branch");
}
END_TEST

Suite *suite_runs(void)
{
    Suite *suite = suite_create("runs");
    TCase *tcase = suite_case(suite, "runs", cli_setup, cli_teardown);
    tcase_add_test(tcase, status_times_and_order_of_a_run_are_taken_from_manifest_and_branch);
    tcase_add_test(tcase, words_and_exit_codes_become_one_of_six_statuses);
    tcase_add_test(tcase, a_second_import_of_runs_adds_what_is_new);
    tcase_add_test(tcase, a_file_that_is_not_json_is_kept_and_marked_unreadable);
    tcase_add_test(tcase, bytes_after_a_zero_byte_are_kept);
    tcase_add_test(tcase, a_long_text_of_a_branch_becomes_an_artifact_and_the_others_are_imported);
    tcase_add_test(tcase, a_directory_without_runs_is_refused);
    return suite;
}
