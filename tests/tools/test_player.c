/* SPDX-License-Identifier: Apache-2.0 */
/* replay --events on a terminal and into a pipe; tests/commands/replay_events.test has the rest. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tests/tools/screen.h"
#include "tools/cli/command.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A small session, with an hour between its events. */
static const char talk[] =
    "{\"type\":\"turn.started\",\"ts\":\"2026-03-02T08:00:00Z\",\"data\":{\"turn_id\":\"t1\","
    "\"sequence\":1}}\n"
    "{\"type\":\"message.added\",\"ts\":\"2026-03-02T09:00:00Z\",\"data\":{\"role\":\"user\","
    "\"content\":\"Why is it late?\\nTell \\u0041\\ud83c\\udf0a.\"}}\n"
    "{\"type\":\"tool.called\",\"ts\":\"2026-03-02T10:00:00Z\",\"data\":{\"call_id\":\"c1\","
    "\"tool\":\"Grep\",\"input\":{\"pattern\":\"local\\ntime\",\"path\":\"src\",\"n\":3}}}\n"
    "{\"type\":\"tool.returned\",\"ts\":\"2026-03-02T11:00:00Z\",\"data\":{\"call_id\":\"c1\","
    "\"output\":\"1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n\",\"duration_ms\":12}}\n"
    "{\"type\":\"message.added\",\"ts\":\"2026-03-02T12:00:00Z\",\"data\":{\"role\":"
    "\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"Hm.\"},"
    "{\"type\":\"text\",\"text\":\"Summer \\u001b[31mtime.\"},{\"type\":\"image\",\"n\":1}]}}\n"
    "{\"type\":\"turn.completed\",\"ts\":\"2026-03-03T13:00:00Z\",\"data\":{\"turn_id\":\"t1\","
    "\"input_tokens\":1200,\"output_tokens\":34,\"cost_usd\":0.25}}\n";

static struct screen screen;

static void setup(void)
{
    cli_setup();
    DONE_WITH(&cli, talk, "append", "s");
}

START_TEST(a_slow_replay_into_a_pipe_ends_if_its_reader_closes_it)
{
    int input, output, status;
    char byte;
    pid_t pid =
        cli_start(&cli, (const char *[]){"replay", "s", "--events", "--speed=1", "--gap=0", NULL},
                  &input, &output);
    ck_assert_int_eq(read(output, &byte, 1), 1);
    close(output);
    close(input);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* ---- On a terminal ---- */

static void play(void)
{
    SCREEN(&screen, &cli, "replay", "s", "--events", "--gap", "0");
    screen_expect(&screen, "turn 1 begins");
    screen_expect(&screen, "▶ 1x  event 1 of 6  2026-03-02 08:00:00  1 turn · 0 tokens");
    ck_assert(screen_is_raw(&screen));
}

START_TEST(keys_step_forward_and_back_and_change_the_speed)
{
    play();
    screen_type(&screen, " ");
    screen_expect(&screen, "⏸ 1x  event 1 of 6");
    screen_type(&screen, "\r");
    screen_expect(&screen, "Why is it late?");
    screen_expect(&screen, "⏸ 1x  event 2 of 6");
    screen_type(&screen, "\033[C\033[C\033[C\033[C");
    screen_expect(&screen, "Grep");
    screen_expect(&screen, "Summer \\u001b[31mtime.");
    screen_expect(&screen, "event 6 of 6  2026-03-03 13:00:00  1 turn · 1,234 tokens · $0.25");
    screen_type(&screen, "\033[D");
    screen_expect(&screen, "↑ back to event 5");
    screen_expect(&screen, "Summer ");
    screen_expect(&screen, "event 5 of 6  2026-03-02 12:00:00  1 turn · 0 tokens");
    screen_type(&screen, "p\033OD");
    screen_expect(&screen, "↑ back to event 3");
    screen_expect(&screen, "→ ");
    screen_expect(&screen, "event 3 of 6");
    screen_type(&screen, "++-");
    screen_expect(&screen, "⏸ 2x  event 3");
    screen_expect(&screen, "⏸ 4x  event 3");
    screen_expect(&screen, "⏸ 2x  event 3");
    screen_type(&screen, "\033[C\r\n");
    screen_expect(&screen, "event 6 of 6  2026-03-03 13:00:00  1 turn · 1,234 tokens · $0.25");
    screen_type(&screen, "q");
    ck_assert_int_eq(screen_wait(&screen), 0);
    screen_assert_restored(&screen);
    screen_done(&screen);
}
END_TEST

START_TEST(the_back_key_has_no_effect_at_the_first_event)
{
    play();
    screen_type(&screen, "\033[D\033[D\r");
    screen_expect(&screen, "Why is it late?");
    screen_expect(&screen, "event 2 of 6");
    screen_type(&screen, "q");
    ck_assert_int_eq(screen_wait(&screen), 0);
    ck_assert_ptr_null(strstr(screen.text, "back to"));
    screen_done(&screen);
}
END_TEST

START_TEST(keys_go_to_turns_failures_texts_and_events)
{
    CLI(&cli,
        "{\"type\":\"tool.failed\",\"data\":{\"call_id\":\"c9\",\"output\":\"no harbour\"}}\n"
        "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"Again.\"}}\n"
        "{\"type\":\"import.record\",\"data\":{\"kind\":\"mode\"}}\n",
        "append", "s");
    SCREEN(&screen, &cli, "replay", "s", "--events", "--gap", "0");
    screen_expect(&screen, "▶ 1x  event 1 of 9");
    screen_type(&screen, "n");
    screen_expect(&screen, "↓ on to event 2");
    screen_expect(&screen, "Why is it late?");
    screen_expect(&screen, "⏸ 1x  event 2 of 9");
    screen_type(&screen, "f");
    screen_expect(&screen, "↓ on to event 7");
    screen_expect(&screen, "no harbour");
    screen_type(&screen, "n");
    screen_expect(&screen, "↓ on to event 8");
    screen_type(&screen, "N");
    screen_expect(&screen, "↑ back to event 2");
    screen_type(&screen, "/HARxx\177\177bour\r");
    screen_expect(&screen, "search: HARbour");
    screen_expect(&screen, "↓ on to event 7");
    screen_type(&screen, "/\r");
    screen_expect(&screen, "no such event after this event");
    screen_type(&screen, "g1\r");
    screen_expect(&screen, "↑ back to event 1");
    screen_type(&screen, "g5\r");
    screen_expect(&screen, "↓ on to event 5");
    screen_type(&screen, "timport.*\r\r");
    screen_expect(&screen, "  kind: mode");
    screen_type(&screen, "/\033");
    screen_expect(&screen, "⏸ 1x  event 9 of 9");
    screen_type(&screen, "?");
    screen_expect(&screen, "next, last message of the user");
    screen_type(&screen, "q");
    ck_assert_int_eq(screen_wait(&screen), 0);
    screen_assert_restored(&screen);
    screen_done(&screen);
}
END_TEST

/* Of 100 columns, 80 are to the right of the gutter. */
START_TEST(texts_are_wrapped_at_words_to_the_right_of_the_gutter)
{
    CLI(&cli,
        "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"The tables are "
        "printed from a list of times in UTC, and high water is shown an hour late.\\n    "
        "Summer\"}}\n",
        "append", "w");
    SCREEN(&screen, &cli, "replay", "w", "--events", "--speed", "max");
    ck_assert_int_eq(screen_wait(&screen), 0);
    ck_assert_ptr_nonnull(strstr(screen.text,
                                 "  The tables are printed from a list of times in UTC, and "
                                 "high water is shown an\r\n"
                                 "                   hour late.\r\n"
                                 "                       Summer\r\n"));
    screen_done(&screen);
}
END_TEST

START_TEST(replay_prints_colours_only_on_a_terminal)
{
    play();
    ck_assert_ptr_nonnull(strstr(screen.text, "\033[1mturn 1 begins"));
    screen_type(&screen, "q");
    ck_assert_int_eq(screen_wait(&screen), 0);
    screen_done(&screen);
    CLI(&cli, NULL, "replay", "s", "--events");
    ck_assert_ptr_null(strstr(cli.out, "\033[1m"));
    ck_assert_ptr_null(strstr(cli.out, "\033[0m"));
}
END_TEST

START_TEST(on_a_terminal_replay_with_json_prints_only_json)
{
    SCREEN(&screen, &cli, "replay", "s", "--events", "--json", "--gap", "0");
    screen_expect(&screen, "{\"session_id\":\"s\",\"seq\":1,");
    ck_assert(!screen_is_raw(&screen));
    ck_assert_ptr_null(strchr(screen.text, '\033'));
    screen_type(&screen, "\003");
    ck_assert_int_eq(WTERMSIG(screen_wait(&screen)), SIGINT);
    screen_done(&screen);
}
END_TEST

START_TEST(on_a_terminal_a_replay_runs_to_its_end_without_keys)
{
    SCREEN(&screen, &cli, "replay", "s", "--events", "--speed", "max");
    screen_expect(&screen, "turn ends: completed");
    ck_assert_int_eq(screen_wait(&screen), 0);
    screen_assert_restored(&screen);
    screen_done(&screen);
}
END_TEST

START_TEST(a_signal_that_ends_a_replay_restores_the_terminal)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    int signal_number = ending[_i];
    play();
    if (signal_number == SIGINT)
        screen_type(&screen, "\003");
    else
        ck_assert_int_eq(kill(screen.command, signal_number), 0);
    int status = screen_wait(&screen);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), signal_number);
    screen_assert_restored(&screen);
    screen_done(&screen);
}
END_TEST

START_TEST(a_stopped_replay_restores_the_terminal_and_continues_later)
{
    play();
    for (int i = 0; i < 3; i++) {
        screen_type(&screen, "\032"); /* Ctrl-Z */
        int status = screen_wait(&screen);
        ck_assert(WIFSTOPPED(status));
        screen_assert_restored(&screen);
        screen_continue(&screen);
        screen_expect(&screen, "event ");
        ck_assert(screen_is_raw(&screen));
        screen_type(&screen, "\r");
        screen_expect(&screen, "⏸");
    }
    screen_expect(&screen, "event 4 of 6");
    screen_type(&screen, "q");
    ck_assert_int_eq(screen_wait(&screen), 0);
    screen_assert_restored(&screen);
    screen_done(&screen);
}
END_TEST

Suite *suite_player(void)
{
    Suite *suite = suite_create("player");
    TCase *pipe = suite_case(suite, "pipe", setup, cli_teardown);
    tcase_add_test(pipe, a_slow_replay_into_a_pipe_ends_if_its_reader_closes_it);
    TCase *terminal = suite_case(suite, "terminal", setup, cli_teardown);
    tcase_add_test(terminal, keys_step_forward_and_back_and_change_the_speed);
    tcase_add_test(terminal, the_back_key_has_no_effect_at_the_first_event);
    tcase_add_test(terminal, replay_prints_colours_only_on_a_terminal);
    tcase_add_test(terminal, keys_go_to_turns_failures_texts_and_events);
    tcase_add_test(terminal, texts_are_wrapped_at_words_to_the_right_of_the_gutter);
    tcase_add_test(terminal, on_a_terminal_replay_with_json_prints_only_json);
    tcase_add_test(terminal, on_a_terminal_a_replay_runs_to_its_end_without_keys);
    tcase_add_loop_test(terminal, a_signal_that_ends_a_replay_restores_the_terminal, 0, 4);
    tcase_add_test(terminal, a_stopped_replay_restores_the_terminal_and_continues_later);
    return suite;
}
