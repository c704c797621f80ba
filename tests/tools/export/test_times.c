/* SPDX-License-Identifier: Apache-2.0 */
/* Times of sessions whose events have no time, or times that do not nest. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <string.h>

#define AT(seconds, type, data)                                                                    \
    "{\"type\":\"" type "\",\"ts\":\"2026-01-01T00:00:0" seconds "Z\",\"data\":" data "}\n"
#define NO_TIME(type, data)                                                                        \
    "{\"type\":\"" type "\",\"ts\":\"1970-01-01T00:00:00.000001Z\",\"data\":" data "}\n"
#define SPAN(name, from, to)                                                                       \
    "\"name\":\"" name "\",\"kind\":1,\"startTimeUnixNano\":\"176722560" from                      \
    "000000000\",\"endTimeUnixNano\":\"176722560" to "000000000\""

static void ck_holds(const char *part)
{
    ck_assert_msg(strstr(cli.out, part) != NULL, "no %s in %s", part, cli.out);
}

START_TEST(a_turn_spans_the_times_of_its_children)
{
    CLI(&cli,
        AT("1", "turn.started", "{\"turn_id\":\"t\"}")
            AT("0", "tool.called", "{\"call_id\":\"a\",\"tool\":\"A\"}")
                AT("2", "tool.called", "{\"call_id\":\"b\",\"tool\":\"B\"}")
                    AT("3", "turn.completed", "{\"turn_id\":\"t\"}")
                        AT("5", "tool.returned", "{\"call_id\":\"a\"}") AT("9", "note", "1"),
        "append", "s");
    CLI(&cli, NULL, "export", "s", "--format", "otlp");
    cli_assert_done(&cli);
    ck_holds(SPAN("execute_tool A", "0", "5"));
    ck_holds(SPAN("execute_tool B", "2", "5")); /* it ends with its turn */
    ck_holds(SPAN("turn t", "0", "5"));
    ck_holds(SPAN("invoke_agent", "0", "9"));
}
END_TEST

START_TEST(a_span_of_an_event_without_a_time_takes_the_time_of_its_neighbour)
{
    CLI(&cli,
        NO_TIME("tool.called", "{\"call_id\":\"a\",\"tool\":\"A\"}")
            AT("2", "tool.returned", "{\"call_id\":\"a\"}")
                NO_TIME("tool.called", "{\"call_id\":\"b\",\"tool\":\"B\"}")
                    AT("4", "tool.returned", "{\"call_id\":\"b\"}"),
        "append", "s");
    CLI(&cli, NULL, "export", "s", "--format", "otlp");
    cli_assert_done(&cli);
    ck_holds(SPAN("execute_tool A", "2", "2"));
    ck_holds(SPAN("execute_tool B", "2", "4"));
    CLI(&cli, NULL, "replay", "s", "--events", "--gap", "0.001", "--speed", "100000");
    cli_assert_done(&cli);
    ck_assert_ptr_null(strstr(cli.out, "days later"));
}
END_TEST

START_TEST(ls_sorts_sessions_with_the_time_of_their_file_last)
{
    CLI(&cli, "{\"type\":\"session.created\",\"data\":{\"time\":\"of the file\"}}\n", "append",
        "guessed");
    CLI(&cli, AT("0", "note", "1"), "append", "told");
    CLI(&cli, NO_TIME("note", "1"), "append", "none");
    static const char *const sorts[] = {"active", "created"};
    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++) {
        CLI(&cli, NULL, "ls", "--sort", sorts[i]);
        cli_assert_done(&cli);
        ck_assert(strstr(cli.out, "\ntold") < strstr(cli.out, "\nguessed"));
        ck_assert(strstr(cli.out, "\ntold") < strstr(cli.out, "\nnone"));
        ck_assert_ptr_null(strstr(cli.out, "1970"));
    }
    CLI(&cli, NULL, "ls", "--since", "2020-01-01T00:00:00Z", "--json");
    cli_assert_done(&cli);
    ck_holds("\"told\"");
    ck_holds("\"guessed\""); /* its file is new */
    CLI(&cli, NULL, "ls", "--until", "2020-01-01T00:00:00Z", "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_null(strstr(cli.out, "\"guessed\""));
}
END_TEST

Suite *suite_times(void)
{
    Suite *suite = suite_create("times");
    TCase *tcase = suite_case(suite, "times", cli_setup, cli_teardown);
    tcase_add_test(tcase, a_turn_spans_the_times_of_its_children);
    tcase_add_test(tcase, a_span_of_an_event_without_a_time_takes_the_time_of_its_neighbour);
    tcase_add_test(tcase, ls_sorts_sessions_with_the_time_of_their_file_last);
    return suite;
}
