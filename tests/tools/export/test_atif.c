/* SPDX-License-Identifier: Apache-2.0 */
/* annal export --format atif: trajectories, and what an import of them gives back. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

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
    return suite;
}
