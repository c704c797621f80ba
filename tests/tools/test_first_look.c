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

static const char refused[] =
    "{\"type\":\"provider.failed\",\"ts\":\"2026-03-02T09:00:07Z\",\"data\":{\"provider\":\"p\","
    "\"error\":\"Invalid API key\"}}\n"
    "{\"type\":\"provider.failed\",\"ts\":\"2026-03-02T09:00:08Z\",\"data\":{\"provider\":\"p\","
    "\"error\":{}}}\n";

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

START_TEST(ls_shows_the_agent_on_a_narrow_terminal)
{
    static const char *const columns[] = {"80", "100"};
    for (int i = 0; i < 2; i++) {
        cli.columns = columns[i];
        DONE(&cli, "ls");
        ASSERT_OUT(" AGENT ");
        ASSERT_OUT("  claude-code  Tides");
        ck_assert_uint_le(strcspn(cli.out, "\n"), i == 0 ? 80 : 100);
    }
}
END_TEST

START_TEST(ls_counts_failed_requests_and_unreadable_lines_as_health)
{
    DONE_WITH(&cli, refused, "append", ID);
    DONE(&cli, "ls");
    ASSERT_OUT("  2 refused\n");
    DONE_WITH(&cli, "{\"reason\":\"x\",\"text\":\"y\"}\n", "append", ID, "--type",
              "import.unreadable");
    DONE(&cli, "ls");
    ASSERT_OUT("  1 unreadable\n");
    DONE(&cli, "ls", "--json", "--agent", "claude");
    ASSERT_OUT("\"findings\":0,\"failed_requests\":2,\"unreadable_lines\":1,");
}
END_TEST

START_TEST(a_report_lists_failed_requests)
{
    DONE(&cli, "report", ID);
    ASSERT_NOT("Requests that failed");
    DONE_WITH(&cli, refused, "append", ID);
    DONE(&cli, "report", ID);
    ASSERT_OUT("In all\nSESSIONS  CALLS  FAILED  INPUT  OUTPUT  COST\n"
               "       1      0       2  1,200      34     -\n");
    ASSERT_OUT("2026-03-02 09:00  p         no reason is given  019e44d4    5\n"
               "2026-03-02 09:00  p         Invalid API key     019e44d4    4\n");
    ASSERT_OUT("\n019e44d4      -      -       2   1,234     -");
}
END_TEST

START_TEST(a_report_shows_the_last_error_of_a_traceback)
{
    DONE_WITH(&cli,
              "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c\",\"tool\":\"Bash\"}}\n"
              "{\"type\":\"tool.failed\",\"data\":{\"call_id\":\"c\",\"output\":\"Exit code 1\\n"
              "Traceback (most recent call last):\\n  File \\\"a.py\\\", line 1\\n    low()\\n"
              "ValueError: low water\\n\\nDuring handling:\\n\\n"
              "Traceback (most recent call last):\\n  File \\\"b.py\\\", line 2\\n"
              "KeyError: 'tide'\\nbye\\n\"}}\n",
              "append", ID);
    cli.columns = "100";
    DONE(&cli, "report", ID);
    ASSERT_OUT("  KeyError: 'tide'  ");
    ASSERT_NOT("Traceback");
}
END_TEST

START_TEST(ls_and_report_explain_the_signs_of_their_costs)
{
    DONE(&cli, "report", ID);
    ASSERT_OUT("\n-   unknown: the log gives no cost, and no price is known\n"
               "No price is known for m1\n");
    ASSERT_NOT("~   ");
    DONE(&cli, "ls");
    ASSERT_NOT("No price is known");
    cli.columns = "100";
    DONE(&cli, "ls");
    ASSERT_OUT("No price is known for m1\n");
    DONE_WITH(&cli, "{\"model\":\"m1\",\"input\":0,\"output\":0}\n", "append", "prices", "--type",
              "price.set");
    DONE(&cli, "ls");
    ASSERT_OUT("  ~$0  ");
    ASSERT_OUT("\n~   computed from list prices");
    ASSERT_NOT("No price is known");
    DONE(&cli, "report", ID);
    ASSERT_OUT("  ~$0\n");
}
END_TEST

START_TEST(the_models_of_2026_have_a_price)
{
    static const char *const models[] = {
        "claude-fable-5", "claude-opus-4-7", "claude-opus-5-5-20260922",
        "gpt-5.4",        "gpt-5.5",         "gemini-3.5-flash"};
    char line[128] =
        "{\"model\":\"claude-fable-5\",\"input_tokens\":1000000,\"output_tokens\":10000}\n";
    DONE_WITH(&cli, line, "append", "priced", "--type", "agent.turn.usage");
    DONE(&cli, "ls");
    ASSERT_OUT("  ~$10.50  ");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        snprintf(
            line, sizeof line,
            "SELECT count(*) FROM list_prices WHERE tier = '' AND above = 0 AND '%s' GLOB model",
            models[i]);
        DONE(&cli, "sql", "--format", "csv", line);
        ck_assert_msg(strstr(cli.out, "\n1") != NULL, "%s: %s", models[i], cli.out);
    }
}
END_TEST

START_TEST(report_and_search_filter_by_agent_and_model_like_ls)
{
    DONE(&cli, "report", "--agent", "claude");
    ASSERT_OUT("Tides");
    ASSERT_NOT("Moon");
    DONE(&cli, "report", "--model", "m?");
    ASSERT_NOT("Moon");
    CLI(&cli, NULL, "report", "--agent", "pi");
    cli_assert_refused(&cli, EXIT_REFUSED, "no session matches");
    DONE(&cli, "search", "request", "--agent", "codex", "--events");
    ASSERT_OUT("other  seq 2  ");
    ASSERT_NOT(ID);
    CLI(&cli, NULL, "search", "request", "--agent", "codex", "--session", ID);
    cli_assert_refused(&cli, EXIT_REFUSED, "no session matches");
}
END_TEST

START_TEST(a_hit_names_agent_and_title_of_its_session)
{
    DONE(&cli, "search", "moon", "--events");
    ASSERT_OUT("message.added  user\n    claude-code  Tides\n    the pull of the [moon]");
    DONE(&cli, "search", "moon", "--json");
    ASSERT_OUT(",\"agent_id\":\"claude-code\",\"title\":\"Tides\",\"working_directory\":");
    cli.columns = "80";
    DONE(&cli, "search", "moon");
    ASSERT_OUT("\n019e44d4  ");
    DONE(&cli, "search", "moon", "--events");
    ck_assert_int_eq(strncmp(cli.out, "019e44d4  seq 2  ", 17), 0);
}
END_TEST

START_TEST(search_looks_for_the_words_of_a_phrase_that_it_cannot_find)
{
    CLI(&cli, NULL, "search", "pull request", "--events");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    ck_assert_str_eq(
        cli.err,
        "annal: no event contains the phrase: these events contain all words of the phrase\n");
    ASSERT_OUT("the [pull] of the moon, by [request]");
    CLI(&cli, NULL, "search", "pull kubernetes", "--events");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
}
END_TEST

START_TEST(a_report_lists_usage_without_a_time_under_the_day_of_its_file)
{
    DONE_WITH(
        &cli,
        "{\"type\":\"session.created\",\"ts\":\"2025-05-05T05:05:05Z\",\"data\":{\"time\":\"of "
        "the file\"}}\n"
        "{\"type\":\"agent.turn.usage\",\"ts\":\"2025-05-05T05:05:05Z\",\"data\":{\"input_"
        "tokens\":7,\"cost_usd\":0.5}}\n"
        "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c\",\"tool\":\"Sound\"}}\n"
        "{\"type\":\"tool.returned\",\"data\":{\"call_id\":\"c\"}}\n",
        "append", "timeless");
    DONE(&cli, "report", "timeless");
    ASSERT_OUT("\n2025-05-05         1      7       -       -  $0.50\n");
    ASSERT_OUT("\nSound      1       0       -     -       -\n");
    ASSERT_OUT("  $0.50       -  -\n");
    DONE(&cli, "ls");
    ASSERT_OUT("(file)");
}
END_TEST

START_TEST(a_range_includes_a_log_without_times_by_the_time_of_its_file)
{
    DONE_WITH(&cli,
              "{\"type\":\"session.created\",\"data\":{\"time\":\"of the file\"}}\n"
              "{\"type\":\"agent.turn.usage\",\"data\":{\"input_tokens\":7,\"cost_usd\":0.5}}\n",
              "append", "timeless");
    DONE(&cli, "report", "--since", "today");
    ASSERT_OUT("timeless");
    DONE(&cli, "ls", "--since", "today");
    ASSERT_OUT("timeless");
    DONE(&cli, "report", "--until", "2000-01-01");
    ASSERT_NOT("timeless");
    DONE(&cli, "ls", "--until", "2000-01-01");
    ASSERT_NOT("timeless");
}
END_TEST

START_TEST(a_report_adds_an_implausible_time_to_a_plausible_day)
{
    DONE_WITH(&cli,
              "{\"type\":\"agent.turn.usage\",\"ts\":\"1970-01-01T00:00:09Z\",\"data\":{\"input_"
              "tokens\":3}}\n"
              "{\"type\":\"agent.turn.usage\",\"ts\":\"2026-03-02T09:00:00Z\",\"data\":{\"input_"
              "tokens\":5}}\n"
              "{\"type\":\"agent.turn.usage\",\"ts\":\"2099-01-01T00:00:00Z\",\"data\":{\"input_"
              "tokens\":7}}\n",
              "append", "far");
    DONE(&cli, "report", "far", "--utc");
    ASSERT_OUT("\n2026-03-02         3     15       -       -     -\n");
    ASSERT_NOT("2099-");
    ASSERT_NOT("1970-");
}
END_TEST

START_TEST(an_import_reports_unreadable_lines_and_empty_files)
{
    static const char log[] = "{\"type\":\"n\"}\nno JSON\n\n{\"type\":\"m\"}\n{half\n";
    const char *path = tmpdir_path(&cli.dir, "damaged.jsonl");
    file_write(path, log, sizeof log - 1);
    DONE(&cli, "import", "jsonl", "--map", "type=$.type", path);
    ASSERT_OUT("\n2 lines could not be read, and are kept as import.unreadable:\n  2 in '");
    ASSERT_OUT("damaged.jsonl', the first is line 2\n");
    ASSERT_OUT("  jsonl      5  ");
    DONE(&cli, "import", "jsonl", "--map", "type=$.type", path, "--recheck", "--json");
    ASSERT_OUT(",\"unreadable\":{\"lines\":2,\"first\":2},\"skips");
    file_write(tmpdir_path(&cli.dir, "empty.jsonl"), "", 0);
    CLI(&cli, NULL, "import", "auto", tmpdir_path(&cli.dir, "empty.jsonl"));
    cli_assert_refused(&cli, EXIT_REFUSED, "empty.jsonl' is empty: left out");
}
END_TEST

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

START_TEST(diff_shows_calls_from_their_first_difference)
{
    DONE_WITH(&cli, CALL("one"), "append", "diff-a");
    DONE_WITH(&cli, CALL("two"), "append", "diff-b");
    cli.columns = "80";
    DONE(&cli, "diff", "diff-a", "diff-b");
    ASSERT_OUT("\u2026ude-code.sql | head one");
    ASSERT_OUT("\u2026ude-code.sql | head two");
}
END_TEST

Suite *suite_first_look(void)
{
    Suite *suite = suite_create("first_look");
    TCase *all = suite_case(suite, "all", setup, cli_teardown);
    tcase_add_test(all, ls_shows_the_agent_on_a_narrow_terminal);
    tcase_add_test(all, ls_counts_failed_requests_and_unreadable_lines_as_health);
    tcase_add_test(all, a_report_lists_failed_requests);
    tcase_add_test(all, a_report_shows_the_last_error_of_a_traceback);
    tcase_add_test(all, ls_and_report_explain_the_signs_of_their_costs);
    tcase_add_test(all, the_models_of_2026_have_a_price);
    tcase_add_test(all, report_and_search_filter_by_agent_and_model_like_ls);
    tcase_add_test(all, a_hit_names_agent_and_title_of_its_session);
    tcase_add_test(all, search_looks_for_the_words_of_a_phrase_that_it_cannot_find);
    tcase_add_test(all, a_report_lists_usage_without_a_time_under_the_day_of_its_file);
    tcase_add_test(all, a_range_includes_a_log_without_times_by_the_time_of_its_file);
    tcase_add_test(all, a_report_adds_an_implausible_time_to_a_plausible_day);
    tcase_add_test(all, an_import_reports_unreadable_lines_and_empty_files);
    tcase_add_test(all, on_a_terminal_cat_and_query_print_few_events_and_no_records);
    tcase_add_test(all, diff_shows_calls_from_their_first_difference);
    return suite;
}
