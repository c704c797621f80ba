/* SPDX-License-Identifier: Apache-2.0 */
/* cat, tail and query on a terminal: one line for each event. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tests/tools/screen.h"

#include <stdlib.h>
#include <string.h>

static const char talk[] =
    "{\"type\":\"turn.started\",\"ts\":\"2026-03-02T08:00:00Z\",\"data\":{\"turn_id\":\"t1\","
    "\"sequence\":1}}\n"
    "{\"type\":\"message.added\",\"ts\":\"2026-03-02T09:00:00Z\",\"data\":{\"role\":\"user\","
    "\"content\":\"Why is it\\nlate? It is printed an hour after the water was high, every day "
    "since the end of March.\"}}\n"
    "{\"type\":\"tool.called\",\"ts\":\"2026-03-02T10:00:00Z\",\"data\":{\"call_id\":\"c1\","
    "\"tool\":\"Grep\",\"input\":{\"pattern\":\"localtime\",\"path\":\"src\",\"n\":3}}}\n"
    "{\"type\":\"tool.called\",\"ts\":\"2026-03-02T10:00:00Z\",\"data\":{\"call_id\":\"c2\","
    "\"tool\":\"shell\",\"input\":\"{\\\"command\\\":[\\\"bash\\\",\\\"-lc\\\",\\\"make\\\"]}\"}}\n"
    "{\"type\":\"tool.returned\",\"ts\":\"2026-03-02T11:00:00Z\",\"data\":{\"call_id\":\"c1\","
    "\"output\":[{\"type\":\"text\",\"text\":\"2 files\"}]}}\n"
    "{\"type\":\"tool.failed\",\"ts\":\"2026-03-02T11:00:00Z\",\"data\":{\"call_id\":\"c2\","
    "\"exit_code\":2,\"output\":\"Exit code: 2\\nWall time: 0 seconds\\nOutput:\\nno rule\"}}\n"
    "{\"type\":\"message.added\",\"ts\":\"2026-03-03T12:00:00Z\",\"data\":{\"role\":"
    "\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"Hm.\"}]}}\n"
    "{\"type\":\"agent.turn.usage\",\"ts\":\"2026-03-03T13:00:00Z\",\"data\":{"
    "\"input_tokens\":1200,\"output_tokens\":34,\"cost_usd\":0.25}}\n"
    "{\"type\":\"my.own\",\"ts\":\"2026-03-03T13:00:00Z\",\"data\":{\"turn_id\":\"t1\",\"tide\":"
    "[1,2],\"source\":{\"kind\":\"x\"}}}\n";

static struct screen screen;

static void setup(void)
{
    cli_setup();
    setenv("NO_COLOR", "1", 1);
    unsetenv("TZ");
    DONE_WITH(&cli, talk, "append", "s");
}

static void teardown(void)
{
    unsetenv("NO_COLOR");
    unsetenv("TZ");
    cli_teardown();
}

static const char *run(const char *const *words)
{
    screen_start(&screen, &cli, words);
    ck_assert_int_eq(screen_wait(&screen), 0);
    screen_done(&screen);
    return screen.text;
}

#define RUN(...) run((const char *[]){__VA_ARGS__, NULL})

START_TEST(on_a_terminal_cat_prints_readable_lines)
{
    ck_assert_str_eq(
        RUN("cat", "s"),
        "2026-03-02\r\n"
        "     1  08:00:00  turn.started      1\r\n"
        "     2  09:00:00  message.added     user  Why is it late? It is printed an hour "
        "after the water was…\r\n"
        "     3  10:00:00  tool.called       Grep  localtime src\r\n"
        "     4  10:00:00  tool.called       shell  make\r\n"
        "     5  11:00:00  tool.returned     Grep  2 files\r\n"
        "     6  11:00:00  tool.failed       shell  exit 2  no rule\r\n"
        "2026-03-03\r\n"
        "     7  12:00:00  message.added     assistant  (thinks) Hm.\r\n"
        "     8  13:00:00  agent.turn.usage  1,200 in, 34 out, $0.25\r\n"
        "     9  13:00:00  my.own            tide: [1,2]\r\n");
}
END_TEST

START_TEST(query_and_tail_name_the_session_and_the_tool_of_a_lone_result)
{
    CLI(&cli, "{\"type\":\"note\",\"ts\":\"2026-03-04T08:00:00Z\",\"data\":1}\n", "append", "t");
    ck_assert_str_eq(RUN("query", "--type", "tool.failed", "--type", "note"),
                     "2026-03-02  s\r\n"
                     "     6  11:00:00  tool.failed       shell  exit 2  no rule\r\n"
                     "2026-03-04  t\r\n"
                     "     1  08:00:00  note              1\r\n");
    ck_assert_str_eq(RUN("tail", "t"), "2026-03-04\r\n"
                                       "     1  08:00:00  note              1\r\n");
}
END_TEST

START_TEST(with_json_a_terminal_receives_json)
{
    ck_assert_ptr_nonnull(strstr(RUN("cat", "s", "--json"), "{\"seq\":1,\"ts\":"));
    ck_assert_ptr_nonnull(strstr(RUN("query", "s", "--format", "jsonl"), "{\"session_id\":\"s\""));
    ck_assert_ptr_nonnull(strstr(RUN("tail", "s", "--json"), "{\"session_id\":\"s\",\"seq\":1"));
}
END_TEST

START_TEST(times_are_printed_and_read_in_the_local_zone)
{
    setenv("TZ", "XYZ-9:30", 1);
    ck_assert_ptr_nonnull(strstr(RUN("cat", "s"), "2026-03-02\r\n     1  17:30:00  turn"));
    ck_assert_ptr_nonnull(strstr(RUN("search", "printed"), "  seq 2  2026-03-02 18:30:00  "));
    ck_assert_ptr_nonnull(strstr(RUN("show", "s"), "2026-03-02 17:30:00"));
    ck_assert_ptr_nonnull(strstr(RUN("query", "s", "--format", "table"), "2026-03-02 17:30:00"));
    CLI(&cli, NULL, "query", "--count", "--since", "2026-03-02T17:31");
    ck_assert_str_eq(cli.out, "8\n");
    CLI(&cli, NULL, "query", "--count", "--since", "2026-03-03");
    ck_assert_str_eq(cli.out, "3\n");
    CLI(&cli, NULL, "query", "--count", "--since", "2026-03-02T08:01:00Z");
    ck_assert_str_eq(cli.out, "8\n");
    CLI(&cli, NULL, "query", "--count", "--since", "2026-03-02T09:01+01:00");
    ck_assert_str_eq(cli.out, "8\n");
    CLI(&cli, NULL, "cat", "s", "--last", "1");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"ts\":\"2026-03-03T13:00:00.000000Z\""));
}
END_TEST

START_TEST(today_and_yesterday_begin_at_midnight)
{
    CLI(&cli, "1\n", "append", "t", "--type", "n");
    CLI(&cli, NULL, "query", "--count", "--since", "yesterday");
    ck_assert_str_eq(cli.out, "1\n");
    CLI(&cli, NULL, "query", "--count", "--until", "today");
    ck_assert_str_eq(cli.out, "9\n");
    CLI(&cli, NULL, "query", "--count", "--since", "tomorrow");
    cli_assert_refused(&cli, 2, "today, yesterday");
}
END_TEST

Suite *suite_event_line(void)
{
    Suite *suite = suite_create("event_line");
    TCase *all = suite_case(suite, "all", setup, teardown);
    tcase_add_test(all, on_a_terminal_cat_prints_readable_lines);
    tcase_add_test(all, query_and_tail_name_the_session_and_the_tool_of_a_lone_result);
    tcase_add_test(all, with_json_a_terminal_receives_json);
    tcase_add_test(all, times_are_printed_and_read_in_the_local_zone);
    tcase_add_test(all, today_and_yesterday_begin_at_midnight);
    return suite;
}
