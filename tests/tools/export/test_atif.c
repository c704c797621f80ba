/* SPDX-License-Identifier: Apache-2.0 */
/* annal export --format atif, and FILE.sql: trajectories, and what an import of them gives back. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASSERT_OUT(part)                                                                           \
    ck_assert_msg(strstr(cli.out, part) != NULL, "'%s' is not in %s", part, cli.out)

static const char *const logs[] = {"kimi/session_3f0c2d1e/agents/main/wire.jsonl",
                                   "dsh/session.jsonl", "copilot-cli/events.jsonl",
                                   "atif/tides.json"};

START_TEST(a_trajectory_keeps_calls_results_failures_and_tokens)
{
    static const char *const asked =
        "SELECT id, input_tokens, output_tokens, cached_input_tokens, (SELECT group_concat(call_id "
        "|| ' ' || tool || ' ' || status || (result_seq > 0)) FROM (SELECT * FROM tool_calls t "
        "WHERE t.session_id = s.id ORDER BY seq)) AS calls FROM sessions s ORDER BY id";
    char log[600], back[600];
    snprintf(log, sizeof log, "%s/tests/data/%s", ANNAL_SOURCE, logs[_i]);
    snprintf(back, sizeof back, "%s", tmpdir_path(&cli.dir, "back"));
    DONE(&cli, "import", "auto", log);
    DONE(&cli, "sql", asked, "--json");
    char *before = strdup(cli.out);
    CLI(&cli, NULL, "export", "--format", "atif");
    ASSERT_OUT("{\"schema_version\":\"ATIF-v1.8\",\"session_id\":");
    char *document = strdup(cli.out), *next = document;
    for (int n = 0; *next != '\0'; n++) {
        char name[32];
        size_t len = strcspn(next, "\n") + 1;
        snprintf(name, sizeof name, "%d.json", n);
        file_write(tmpdir_path(&cli.dir, name), next, len);
        DONE(&cli, "import", "atif", tmpdir_path(&cli.dir, name), "--store", back);
        next += len;
    }
    DONE(&cli, "sql", asked, "--json", "--store", back);
    ck_assert_str_eq(cli.out, before);
    free(document);
    free(before);
}
END_TEST

START_TEST(a_session_without_a_message_has_no_trajectory)
{
    DONE_WITH(&cli, "{\"type\":\"a.b\",\"data\":{}}\n", "append", "s1");
    CLI(&cli, NULL, "export", "s1", "--format", "atif");
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_str_eq(cli.out, "");
    ck_assert_ptr_nonnull(strstr(cli.err, "has no messages and no calls"));
}
END_TEST

START_TEST(a_result_of_texts_and_values_is_an_observation)
{
    DONE_WITH(&cli,
              "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c\",\"tool\":\"A\"}}\n"
              "{\"type\":\"tool.returned\",\"data\":{\"call_id\":\"c\",\"output\":[\"a text\",7,"
              "{\"type\":\"image\"}]}}\n",
              "append", "s1");
    DONE(&cli, "export", "s1", "--format", "atif");
    ASSERT_OUT("\"content\":\"[\\\"a text\\\",7,{\\\"type\\\":\\\"image\\\"}]\"");
}
END_TEST

/* ---- Formats of a user ---- */

static const char *write_format(const char *sql)
{
    const char *path = tmpdir_path(&cli.dir, "mine.sql");
    file_write(path, sql, strlen(sql));
    return path;
}

START_TEST(a_file_with_a_select_is_a_format)
{
    const char *path = write_format(
        "-- exporter mine\n"
        "SELECT '# ' || md_line(json_quote(?1), 9) || ' ' || ?2 || ?3 || ?4 || char(10)\n"
        "UNION ALL\n"
        "SELECT CASE WHEN type = 'tool.called' THEN md_members(data -> '$.input') "
        "|| md_code(data -> '$.n', 5) || char(10) || md_output(data -> '$.output', 1, 'HINT') "
        "WHEN content_empty(data -> '$.content') THEN seq || char(10) "
        "ELSE md_content(data -> '$.content') END\n"
        "FROM history WHERE session_id = ?1 AND seq <= ?2");
    DONE_WITH(&cli,
              "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"a <b>\"}}\n"
              "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":[]}}\n"
              "{\"type\":\"tool.called\",\"data\":{\"input\":{\"x\":1},\"n\":\"`\",\"output\":"
              "\"1\\n2\\n3\"}}\n{\"type\":\"x.y\",\"data\":4}\n",
              "append", "s_1");
    DONE(&cli, "export", "s_1", "--format", path, "--at", "3", "--full");
    ck_assert_str_eq(cli.out,
                     "# s_1 301\n> a \\<b>\n\n2\n```text\nx: 1\n```\n`` ` ``\n```text\n1\n```"
                     "\n\n*2 lines cut: HINT*\n\n");
    DONE(&cli, "export", "s_1", "--format", path, "--at", "1", "--tree");
    ck_assert_str_eq(cli.out, "# s_1 110\n> a \\<b>\n\n");
}
END_TEST

START_TEST(a_format_that_writes_nothing_or_is_wrong_is_reported)
{
    DONE_WITH(&cli, "{\"type\":\"a.b\",\"data\":1}\n", "append", "s1");
    DONE_WITH(&cli, "{\"type\":\"a.b\",\"data\":1}\n", "append", "s2");
    CLI(&cli, NULL, "export", "s2", "--format", write_format("SELECT 1 WHERE ?1 = 's1'"));
    cli_assert_refused(&cli, EXIT_REFUSED,
                       "session 's2' has nothing that the format writes, so it is left out");
    CLI(&cli, NULL, "export", "--format", write_format("SELECT load_extension('x')"));
    ck_assert_int_eq(cli.exit_status, EXIT_USAGE);
    ck_assert_str_eq(cli.err, "annal: the function load_extension is not allowed in a statement "
                              "that only reads\n");
    CLI(&cli, NULL, "export", "--format", "no/such.sql");
    cli_assert_refused(&cli, EXIT_REFUSED, "read the format 'no/such.sql': No such file");
    CLI(&cli, NULL, "export", "--format", ".sql");
    cli_assert_refused(&cli, EXIT_USAGE, "atif or FILE.sql, not '.sql'");
}
END_TEST

START_TEST(a_trajectory_has_no_half_characters_and_keeps_a_result_without_a_call)
{
    DONE_WITH(
        &cli,
        "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"cut \\ud83d\"}}\n"
        "{\"type\":\"tool.returned\",\"data\":{\"call_id\":\"c9\",\"output\":{\"n\":1}}}\n",
        "append", "s1");
    DONE(&cli, "export", "s1", "--format", "atif");
    ASSERT_OUT("\"source\":\"user\",\"message\":\"cut \xef\xbf\xbd\"}");
    ASSERT_OUT("\"source\":\"system\",\"message\":\"\",\"observation\":{\"results\":[{\"content\":"
               "\"{\\\"n\\\":1}\"}]}");
    DONE(&cli, "export", "s1", "--format", "atif", "--at", "1");
    ck_assert_ptr_null(strstr(cli.out, "observation"));
}
END_TEST

START_TEST(the_tree_of_a_session_is_one_document)
{
    DONE(&cli, "import", "atif", ANNAL_SOURCE "/tests/data/atif/tides.json");
    DONE(&cli, "export", "traj-7", "--format", "atif", "--tree");
    ASSERT_OUT("\"subagent_trajectories\":[{\"schema_version\":\"ATIF-v1.8\",\"session_id\":"
               "\"traj-7\",\"trajectory_id\":\"traj-7-explore\"");
    ck_assert_str_eq(cli.out + strlen(cli.out) - 5, "}}]}\n");
    ck_assert_ptr_eq(strchr(cli.out, '\n'), cli.out + strlen(cli.out) - 1);
}
END_TEST

Suite *suite_atif(void)
{
    Suite *suite = suite_create("atif");
    TCase *tc = suite_case(suite, "atif", cli_setup, cli_teardown);
    tcase_add_loop_test(tc, a_trajectory_keeps_calls_results_failures_and_tokens, 0,
                        sizeof logs / sizeof *logs);
    tcase_add_test(tc, a_session_without_a_message_has_no_trajectory);
    tcase_add_test(tc, a_trajectory_has_no_half_characters_and_keeps_a_result_without_a_call);
    tcase_add_test(tc, the_tree_of_a_session_is_one_document);
    tcase_add_test(tc, a_result_of_texts_and_values_is_an_observation);
    tcase_add_test(tc, a_file_with_a_select_is_a_format);
    tcase_add_test(tc, a_format_that_writes_nothing_or_is_wrong_is_reported);
    return suite;
}
