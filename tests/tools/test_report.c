/* SPDX-License-Identifier: Apache-2.0 */
/* report: calls and costs of sessions, in four formats with the same numbers. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdlib.h>
#include <string.h>

#define ID "019e44d4-6ecf-7c1d-96ab-582effc13411"

static const char work[] =
    "{\"type\":\"session.created\",\"ts\":\"2026-03-02T09:00:00Z\",\"data\":{\"title\":\"Tides | "
    "late\",\"model\":\"m1\",\"created_at\":\"2026-03-02T09:00:00Z\"}}\n"
    "{\"type\":\"turn.started\",\"ts\":\"2026-03-02T09:00:00Z\",\"data\":{\"turn_id\":\"t1\"}}\n"
    "{\"type\":\"tool.called\",\"ts\":\"2026-03-02T09:00:01Z\",\"data\":{\"call_id\":\"c1\","
    "\"tool\":"
    "\"Bash\",\"input\":{\"command\":\"make\"}}}\n"
    "{\"type\":\"tool.failed\",\"ts\":\"2026-03-02T09:00:03Z\",\"data\":{\"call_id\":\"c1\","
    "\"output\":"
    "\"Exit code: 2\\nWall time: 1 s\\nOutput:\\nno <rule>\"}}\n"
    "{\"type\":\"tool.called\",\"ts\":\"2026-03-02T09:00:04Z\",\"data\":{\"call_id\":\"c2\","
    "\"tool\":"
    "\"Bash\",\"input\":{\"command\":\"ls\"}}}\n"
    "{\"type\":\"tool.returned\",\"ts\":\"2026-03-02T09:00:05Z\",\"data\":{\"call_id\":\"c2\","
    "\"output\":"
    "\"\"}}\n"
    "{\"type\":\"agent.turn.usage\",\"ts\":\"2026-03-02T09:00:06Z\",\"data\":{\"model\":\"m1\","
    "\"input_tokens\":1200,\"output_tokens\":34}}\n"
    "{\"type\":\"agent.turn.usage\",\"ts\":\"2026-03-03T09:00:00Z\",\"data\":{\"model\":\"m2\","
    "\"input_tokens\":10,\"output_tokens\":1,\"cost_usd\":0.25}}\n";

static void setup(void)
{
    cli_setup();
    CLI(&cli, work, "append", ID);
    cli_assert_done(&cli);
    CLI(&cli, "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"x\",\"tool\":\"Read\"}}\n",
        "append", "other");
}

#define ASSERT_OUT(text) ck_assert_msg(strstr(cli.out, text) != NULL, "no %s in %s", text, cli.out)

START_TEST(a_report_shows_calls_failures_and_costs)
{
    CLI(&cli, NULL, "report", ID);
    cli_assert_done(&cli);
    ASSERT_OUT("In all\nSESSIONS  CALLS  FAILED  INPUT  OUTPUT         COST\n"
               "       1      2       1  1,210      35  $0.25 of 1%\n");
    ASSERT_OUT("Tools\nTOOL  CALLS  FAILED  MEDIAN");
    ASSERT_OUT("\nBash      2       1   1.5 s");
    ASSERT_OUT("2026-03-02 09:00  Bash  make         no <rule>    019e44d4    3\n");
    ASSERT_OUT(
        "\n 2 s  Bash  make         019e44d4    3\n 1 s  Bash  ls           019e44d4    5\n");
    ASSERT_OUT("\nm1            1  1,200       -      34      -\n");
    ASSERT_OUT("\n2026-03-03         1     10       -       1  $0.25\n");
    ASSERT_OUT("\n019e44d4      1      2       1   1,245  $0.25 of 1%     1 d  Tides | late\n");
    ck_assert_ptr_null(strstr(cli.out, "Read"));
    CLI(&cli, NULL, "report", "--since", "2026-03-03T00:00Z", "--until", "2026-03-04T00:00Z");
    ASSERT_OUT("Tools\nnone\n");
    ASSERT_OUT("\nm2            1     10");
    ck_assert_ptr_null(strstr(cli.out, "\nm1 "));
}
END_TEST

START_TEST(a_report_of_a_session_includes_its_sub_agents)
{
    CLI(&cli, work, "append", ID ".agent-1");
    CLI(&cli, "1\n", "append", ID "-2", "--type", "n");
    CLI(&cli, NULL, "report", ID);
    ASSERT_OUT("In all\nSESSIONS  CALLS  FAILED  INPUT  OUTPUT         COST\n"
               "       2      4       2  2,420      70  $0.50 of 1%\n");
}
END_TEST

START_TEST(with_json_a_report_prints_whole_values_and_ids)
{
    CLI(&cli, NULL, "report", ID, "--json");
    cli_assert_done(&cli);
    ASSERT_OUT(
        "{\"section\":\"total\",\"sessions\":1,\"calls\":2,\"failed\":1,\"input_tokens\":1210,"
        "\"output_tokens\":35,\"cost_microusd\":250000,\"computed_microusd\":null,\"costed_share\":"
        "0.00");
    ASSERT_OUT("{\"section\":\"failures\",\"timestamp\":\"2026-03-02T09:00:03.000000Z\",\"tool\":"
               "\"Bash\",\"input\":\"make\",\"output\":\"no <rule>\",\"session_id\":\"" ID
               "\",\"seq\":3}\n");
    ASSERT_OUT(
        "{\"section\":\"models\",\"model\":\"m1\",\"requests\":1,\"input_tokens\":1200,"
        "\"cached_input_tokens\":null,\"output_tokens\":34,\"cost_microusd\":null,\"computed_"
        "microusd\":null,\"costed_share\":0}\n");
}
END_TEST

START_TEST(markdown_and_svg_show_the_same_numbers_and_escape_names)
{
    CLI(&cli, NULL, "report", ID, "--format", "markdown");
    cli_assert_done(&cli);
    ASSERT_OUT("## In all\n\n| SESSIONS | CALLS | FAILED | INPUT | OUTPUT | COST |\n"
               "| ---: | ---: | ---: | ---: | ---: | ---: |\n| 1 | 2 | 1 | 1,210 | 35 | \\$0.25 of "
               "1% |\n");
    ASSERT_OUT("| Bash | make | no \\<rule\\> | 019e44d4 | 3 |\n");
    ASSERT_OUT("| Tides \\| late |\n");
    CLI(&cli, NULL, "report", ID, "--format", "svg", "--to", tmpdir_path(&cli.dir, "r.svg"));
    cli_assert_done(&cli);
    char *svg = file_read(tmpdir_path(&cli.dir, "r.svg"), NULL);
    ck_assert_ptr_nonnull(strstr(svg, ">no &lt;rule&gt;</text>"));
    ck_assert_ptr_nonnull(strstr(svg, ">1,210</text>"));
    ck_assert_ptr_nonnull(strstr(svg, ">$0.25 of 1%</text>"));
    ck_assert_ptr_nonnull(strstr(svg, "</svg>\n"));
    free(svg);
}
END_TEST

Suite *suite_report(void)
{
    Suite *suite = suite_create("report");
    TCase *all = suite_case(suite, "all", setup, cli_teardown);
    tcase_add_test(all, a_report_shows_calls_failures_and_costs);
    tcase_add_test(all, a_report_of_a_session_includes_its_sub_agents);
    tcase_add_test(all, with_json_a_report_prints_whole_values_and_ids);
    tcase_add_test(all, markdown_and_svg_show_the_same_numbers_and_escape_names);
    return suite;
}
