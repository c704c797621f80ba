/* SPDX-License-Identifier: Apache-2.0 */
/* The first screens that a user sees: ls, search, report, diff. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tests/tools/screen.h"
#include "tools/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "019e44d4-6ecf-7c1d-96ab-582effc13411"

static const char work[] =
    "{\"type\":\"session.created\",\"ts\":\"2026-03-02T09:00:00Z\",\"data\":{\"title\":\"Tides\","
    "\"agent_id\":\"claude-code\",\"model\":\"m1\"}}\n"
    "{\"type\":\"message.added\",\"ts\":\"2026-03-02T09:00:00Z\",\"data\":{\"role\":\"user\","
    "\"content\":\"the pull of the moon, by request\"}}\n"
    "{\"type\":\"agent.turn.usage\",\"ts\":\"2026-03-02T09:00:06Z\",\"data\":{\"model\":\"m1\","
    "\"input_tokens\":1200,\"output_tokens\":34}}\n";

static void setup(void)
{
    cli_setup();
    DONE_WITH(&cli, work, "append", ID);
    DONE_WITH(
        &cli,
        "{\"type\":\"session.created\",\"data\":{\"agent_id\":\"codex\",\"title\":\"Moon\"}}\n"
        "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"a request\"}}\n",
        "append", "other");
}

#define ASSERT_OUT(text) ck_assert_msg(strstr(cli.out, text) != NULL, "no %s in %s", text, cli.out)
#define ASSERT_NOT(text) ck_assert_msg(strstr(cli.out, text) == NULL, "%s in %s", text, cli.out)

/* Assert what the command prints, and does not print, on a terminal. */
static void assert_screen(const char *const *words, const char *has, const char *has_not)
{
    static struct screen screen;
    screen_start(&screen, &cli, words);
    ck_assert_int_eq(screen_wait(&screen), 0);
    ck_assert_msg(strstr(screen.text, has) != NULL, "no %s in %s", has, screen.text);
    ck_assert_msg(strstr(screen.text, has_not) == NULL, "%s in %s", has_not, screen.text);
    screen_done(&screen);
}

START_TEST(on_a_terminal_cat_and_query_print_few_events_and_no_records)
{
    char lines[24 * 32] = "";
    for (int i = 1; i <= 24; i++)
        sprintf(lines + strlen(lines), "{\"type\":\"%s\",\"data\":\"<%d>\"}\n",
                i == 1 ? "import.record" : "n", i);
    DONE_WITH(&cli, lines, "append", "many");
    assert_screen((const char *[]){"cat", "many", NULL},
                  "annal: 1 import.record events are left out; --all prints them", "<1>");
    assert_screen((const char *[]){"tail", "many", NULL}, "<15>", "<14>");
    assert_screen((const char *[]){"query", NULL}, "these are the newest 20 events", "<4>");
    DONE(&cli, "cat", "many");
    ASSERT_OUT("<1>");
    DONE(&cli, "query");
    ASSERT_OUT("<1>");
    CLI(&cli, NULL, "completion");
    cli_assert_refused(&cli, EXIT_USAGE, "bash, zsh and fish");
    CLI(&cli, NULL, "report", "many", "--sort", "cost");
    cli_assert_refused(
        &cli, EXIT_USAGE,
        "annal report has no option '--sort' ('annal ls' has it): 'annal help report'");
    CLI(&cli, NULL, "show", "many", "--timeout", "1");
    cli_assert_refused(&cli, EXIT_USAGE,
                       "('annal import', 'annal watch', 'annal query' have it): 'annal help show'");
}
END_TEST

#define CALL(command)                                                                              \
    "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c\",\"tool\":\"Bash\",\"input\":{"          \
    "\"command\":\"git diff 368750cee35f31935640a34ad199e889fc60f1a8 --stat && git diff "          \
    "HEAD~1 -- tools/import/formats/claude-code.sql | head " command "\"}}}\n"

Suite *suite_first_look(void)
{
    Suite *suite = suite_create("first_look");
    TCase *all = suite_case(suite, "all", setup, cli_teardown);
    tcase_add_test(all, on_a_terminal_cat_and_query_print_few_events_and_no_records);
    return suite;
}
