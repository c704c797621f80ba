/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/index/json_patch.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <stdlib.h>
#include <string.h>

static void setup(void)
{
    cli_setup();
    CLI(&cli,
        "{\"type\":\"session.created\",\"data\":{\"model\":\"m\"},\"ts\":\"2026-01-06T07:24:00Z\"}"
        "\n"
        "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t1\"},\"ts\":\"2026-01-06T07:24:01Z\"}"
        "\n"
        "{\"type\":\"turn.completed\",\"data\":{\"turn_id\":\"t1\",\"input_tokens\":5},"
        "\"ts\":\"2026-01-06T07:24:02Z\"}\n"
        "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t2\"},\"ts\":\"2026-01-06T07:24:03Z\"}"
        "\n",
        "append", "s");
    ck_assert_int_eq(cli.exit_status, 0);
}

START_TEST(diff_shows_people_each_row_that_changed_and_its_columns)
{
    DONE(&cli, "diff", "s", "2", "4");
    ck_assert_int_eq(strncmp(cli.out, "~ sessions id=\"s\"\n", 18), 0);
    ck_assert_ptr_nonnull(strstr(cli.out, "    events: 2 -> 4\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\n~ turns id=\"s:t1\"\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "    status: \"started\" -> \"completed\"\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\n+ turns id=\"s:t2\"\n"));
    ck_assert_ptr_nonnull(
        strstr(cli.out, "after seq 2 -> after seq 4: 3 inserted, 2 updated, 0 deleted\n"));
    CLI(&cli, NULL, "diff", "s", "4", "2");
    ck_assert_ptr_nonnull(strstr(cli.out, "\n- turns id=\"s:t2\"\n"));
    CLI(&cli, NULL, "diff", "s", "3", "3");
    ck_assert_str_eq(cli.out, "after seq 3 -> after seq 3: no difference\n");
}
END_TEST

START_TEST(diff_by_times_equals_diff_by_the_matching_seqs)
{
    CLI(&cli, NULL, "diff", "s", "2", "3", "--json");
    char *by_seq = strdup(cli.out);
    DONE(&cli, "diff", "s", "2026-01-06T07:24:01Z", "2026-01-06T07:24:02.5Z", "--json");
    ck_assert_str_eq(cli.out, by_seq);
    const char begin[] = "{\"table\":\"sessions\",\"change\":\"updated\",\"key\":{\"id\":\"s\"},"
                         "\"before\":{\"";
    ck_assert_int_eq(strncmp(by_seq, begin, strlen(begin)), 0);
    free(by_seq);
}
END_TEST

START_TEST(the_patch_turns_one_state_into_the_other)
{
    static const char *const pairs[][2] = {
        {"0", "4"}, {"4", "0"}, {"1", "3"}, {"3", "2"}, {"2", "2"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CLI(&cli, NULL, "replay", "s", "--at", pairs[i][0], "--json");
        char *before = strndup(cli.out, cli.out_len - 1);
        CLI(&cli, NULL, "replay", "s", "--at", pairs[i][1], "--json");
        char *after = strndup(cli.out, cli.out_len - 1);
        DONE(&cli, "diff", "s", pairs[i][0], pairs[i][1], "--patch");
        cli.out[cli.out_len - 1] = '\0';
        ck_text(json_patched(before, cli.out), after);
        free(before);
        free(after);
    }
}
END_TEST

START_TEST(diff_and_replay_print_the_same_digits)
{
    static const char *const costs[] = {"\"cost_usd\":2.0", "\"cost_usd\":0.1"};
    CLI(&cli,
        "{\"type\":\"turn.completed\",\"data\":{\"turn_id\":\"t2\",\"cost_usd\":2}}\n"
        "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t3\"}}\n"
        "{\"type\":\"turn.completed\",\"data\":{\"turn_id\":\"t3\",\"cost_usd\":0.1}}\n",
        "append", "s");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "replay", "s", "--json");
    for (size_t i = 0; i < 2; i++)
        ck_assert_ptr_nonnull(strstr(cli.out, costs[i]));
    DONE(&cli, "diff", "s", "4", "7", "--json");
    for (size_t i = 0; i < 2; i++)
        ck_assert_ptr_nonnull(strstr(cli.out, costs[i]));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"total_cost_usd\":null"));
}
END_TEST

START_TEST(diff_refuses_a_seq_or_time_outside_of_the_session)
{
    CLI(&cli, NULL, "diff", "s", "2", "5");
    cli_assert_refused(&cli, 1, "no event 5");
    CLI(&cli, NULL, "diff", "s", "2", "noon");
    cli_assert_refused(&cli, 2, "B needs a seq");
    CLI(&cli, NULL, "diff", "nobody", "0", "0");
    cli_assert_refused(&cli, 1, "nobody");
    CLI(&cli, NULL, "diff", "s", "2", "3", "--json", "--patch");
    cli_assert_refused(&cli, 2, "--patch");
    CLI(&cli, NULL, "diff", "s", "2", "3", "--pack", "nobody");
    cli_assert_refused(&cli, 1, "nobody");
}
END_TEST

#define CALL(id, command)                                                                          \
    "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"" id "\",\"tool\":\"Bash\",\"input\":{"     \
    "\"command\":\"" command "\"}}}\n"
#define RETURN(id, type) "{\"type\":\"tool." type "\",\"data\":{\"call_id\":\"" id "\"}}\n"

START_TEST(two_sessions_are_compared)
{
    CLI(&cli, CALL("1", "ls") RETURN("1", "returned") CALL("2", "make") RETURN("2", "failed"),
        "append", "first-try");
    CLI(&cli, CALL("8", "ls") RETURN("8", "returned") CALL("9", "make all"), "append",
        "second-try");
    CLI(&cli, NULL, "diff", "firs", "second-try", "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"section\":\"tools\",\"tool\":\"Bash\",\"calls_a\":2,"
                                          "\"calls_b\":1,\"failed_a\":1,\"failed_b\":0,"));
    ck_assert_ptr_nonnull(strstr(cli.out,
                                 "\"session_id\":\"first-try\",\"call\":2,\"tool\":\"Bash\","
                                 "\"input\":\"make\",\"seq\":3}\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"session_id\":\"second-try\",\"call\":2,\"tool\":"
                                          "\"Bash\",\"input\":\"make all\",\"seq\":3}\n"));
    CLI(&cli, NULL, "diff", "first-try", "nobody");
    ck_assert_int_eq(cli.exit_status, 1);
    CLI(&cli, NULL, "diff", "first-try", "second-try", "1");
    cli_assert_refused(&cli, 2, "A needs a seq");
}
END_TEST

Suite *suite_diff(void)
{
    Suite *suite = suite_create("diff");
    TCase *tc = suite_case(suite, "diff", setup, cli_teardown);
    tcase_add_test(tc, diff_shows_people_each_row_that_changed_and_its_columns);
    tcase_add_test(tc, diff_by_times_equals_diff_by_the_matching_seqs);
    tcase_add_test(tc, the_patch_turns_one_state_into_the_other);
    tcase_add_test(tc, diff_and_replay_print_the_same_digits);
    tcase_add_test(tc, diff_refuses_a_seq_or_time_outside_of_the_session);
    tcase_add_test(tc, two_sessions_are_compared);
    return suite;
}
