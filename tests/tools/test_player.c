/* SPDX-License-Identifier: Apache-2.0 */
/* replay --events: a conversation, its pace, and the keys of a terminal. */
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tests/tools/screen.h"
#include "tools/cli/command.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
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

static const char rendered[] =
    "                   2026-03-02\n"
    "      1  08:00:00  turn 1 begins\n"
    "      2  09:00:00  user\n"
    "                   Why is it late?\n"
    "                   Tell A🌊.\n"
    "      3  10:00:00  → Grep  local time src  ← 12 ms  1 2 3 4 5 6 7 8 9 10 (10 lines)\n"
    "      5  12:00:00  assistant\n"
    "                   (thinks) Hm.\n"
    "                   Summer \033[31mtime.\n"
    "                   [image]\n"
    "                   2026-03-03\n"
    "      6  13:00:00  turn ends: completed  tokens: 1,200 in, 34 out; so far 1 turn · 1,234 "
    "tokens · $0.25\n";

static struct screen screen;

static void setup(void)
{
    cli_setup();
    DONE_WITH(&cli, talk, "append", "s");
}

/* ---- As text ---- */

START_TEST(replay_events_into_a_pipe_prints_a_plain_conversation)
{
    DONE(&cli, "replay", "s", "--events");
    ck_assert_str_eq(cli.out, rendered);
    CLI(&cli, NULL, "replay", "s", "--events", "--full");
    ck_assert_ptr_nonnull(strstr(cli.out,
                                 "  → Grep  pattern: local time, path: src, n: 3\n"
                                 "      4  11:00:00  ← Grep  12 ms  1\n                   2\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "                   10\n"));
    ck_assert_ptr_null(strstr(cli.out, "more line"));
}
END_TEST

START_TEST(a_part_of_a_replay_includes_earlier_tokens_and_names)
{
    CLI(&cli, NULL, "append", "s");
    CLI(&cli, "{\"type\":\"agent.turn.usage\",\"data\":{\"input_tokens\":5,\"output_tokens\":1}}\n",
        "append", "s");
    DONE(&cli, "replay", "s", "--events", "--from", "4", "--to", "4");
    ck_assert_ptr_nonnull(strstr(cli.out, "      4  11:00:00  ← Grep  12 ms  1 2 3"));
    ck_assert_ptr_null(strstr(cli.out, "      3  "));
    ck_assert_ptr_null(strstr(cli.out, "      5  "));
    DONE(&cli, "replay", "s", "--events", "--type", "*", "--from", "2026-03-03T00:00:00Z");
    ck_assert_ptr_nonnull(strstr(cli.out, "      6  13:00:00  turn ends"));
    ck_assert_ptr_null(strstr(cli.out, "      5  "));
    ck_assert_ptr_nonnull(
        strstr(cli.out, "tokens: 5 in, 1 out; so far 1 turn · 1,240 tokens · $0.25\n"));
}
END_TEST

START_TEST(replay_events_prints_a_fork_as_one_history)
{
    DONE(&cli, "fork", "s", "--at", "4", "f");
    CLI(&cli, NULL, "replay", "s", "--events", "--to", "4");
    char *parent = strdup(cli.out);
    CLI(&cli, "{\"type\":\"my.own\",\"ts\":\"2026-03-02T12:00:00Z\",\"data\":1}\n", "append", "f");
    DONE(&cli, "replay", "f", "--events", "--to", "4");
    ck_assert_str_eq(cli.out, parent);
    free(parent);
    DONE(&cli, "replay", "f", "--events", "--from", "4");
    ck_assert_ptr_nonnull(strstr(cli.out, "      4  11:00:00  ← Grep"));
    ck_assert_ptr_nonnull(strstr(cli.out, "      5  12:00:00  my.own  1\n"));
}
END_TEST

/* An event whose data stays in the journal, and an event whose data is read after all. */
START_TEST(replay_events_cuts_a_long_event_and_json_contains_all_of_it)
{
    enum { LONG = 3 << 20, MIDDLE = 400000 };
    size_t len = 0;
    char *event = malloc(LONG + 200);
    len = (size_t)sprintf(event, "{\"role\":\"user\",\"content\":\"first\\n");
    memset(event + len, 'x', LONG);
    strcpy(event + len + LONG, "\"}\n");
    DONE_WITH(&cli, event, "append", "long", "--type", "message.added");
    strcpy(event + len + MIDDLE, "\"}\n");
    CLI(&cli, event, "append", "long", "--type", "message.added");
    DONE(&cli, "replay", "long", "--events");
    ck_assert_uint_lt(cli.out_len, 2000);
    ck_assert_ptr_nonnull(
        strstr(cli.out, "message.added  3.1 MB: {\"role\":\"user\",\"content\":"));
    ck_assert_ptr_nonnull(strstr(cli.out, "  user\n                   first\n"));
    DONE(&cli, "replay", "long", "--events", "--json");
    ck_assert_uint_gt(cli.out_len, LONG + MIDDLE);
    DONE(&cli, "show", "long", "--recovery");
    ck_assert_ptr_nonnull(strstr(cli.out, "last user            event 2, "));
    free(event);
}
END_TEST

START_TEST(with_json_replay_events_prints_json_lines)
{
    DONE(&cli, "replay", "s", "--events", "--json", "--from", "3", "--at", "4");
    ck_assert_ptr_eq(strstr(cli.out, "{\"session_id\":\"s\",\"seq\":3,\"timestamp\":"), cli.out);
    ck_assert_ptr_nonnull(strstr(cli.out, "\n{\"session_id\":\"s\",\"seq\":4,"));
    ck_assert_ptr_null(strstr(cli.out, "\"seq\":5"));
}
END_TEST

START_TEST(an_event_of_any_shape_is_printed_as_readable_text)
{
    static const char odd[] =
        "{\"type\":\"message.added\",\"data\":7}\n"
        "{\"type\":\"message.added\",\"data\":{\"role\":[1],\"content\":{\"a\":\"b\"}}}\n"
        "{\"type\":\"message.added\",\"data\":{\"content\":\"\\ud800 \\u009b\\u007f\"}}\n"
        "{\"type\":\"tool.called\",\"data\":[]}\n"
        "{\"type\":\"tool.failed\",\"data\":{\"call_id\":\"?\",\"error\":\"no\\nroom\"}}\n"
        "{\"type\":\"turn.completed\",\"data\":{\"input_tokens\":\"x\",\"cost_usd\":1e400}}\n"
        "{\"type\":\"agent.turn.usage\",\"data\":{\"input_tokens\":-3}}\n"
        "{\"type\":\"my.own\",\"data\":{\"a\":[1,2],\"b\":\"two\"}}\n";
    DONE_WITH(&cli, odd, "append", "odd");
    DONE(&cli, "replay", "odd", "--events", "--type", "*");
    ck_assert_ptr_nonnull(strstr(cli.out, "  message\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "  [1]\n                   [a: b]\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "                   \xef\xbf\xbd \xc2\x9b\x7f\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "  → ?  \n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "  ✗ ?  no room\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "tokens: -3 in, 0 out; so far 0 turns · -3 tokens\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "  my.own  a: [1,2], b: two\n"));
}
END_TEST

/* Write a random event, with or without tokens and a turn. */
static size_t put_random(struct random *random, char *to)
{
    static const char *const types[] = {"turn.started",     "turn.completed", "turn.failed",
                                        "agent.turn.usage", "turn_complete",  "note"};
    static const char *const odd[] = {"-4", "\"7\"", "null", "2.5", "[1]"};
    size_t len = (size_t)sprintf(
        to, "{\"type\":\"%s\",\"data\":{\"input_tokens\":", types[random_below(random, 6)]);
    if (random_below(random, 8) == 0)
        len += (size_t)sprintf(to + len, "%s", odd[random_below(random, 5)]);
    else
        len += (size_t)sprintf(to + len, "%u", (unsigned)random_below(random, 5000));
    len += (size_t)sprintf(to + len, ",\"output_tokens\":%u,\"cost_microusd\":%u",
                           (unsigned)random_below(random, 900),
                           10000 * (unsigned)random_below(random, 90));
    if (random_below(random, 10) != 0)
        len +=
            (size_t)sprintf(to + len, ",\"turn_id\":\"t%u\"", (unsigned)random_below(random, 60));
    return len + (size_t)sprintf(to + len, "}}\n");
}

START_TEST(running_totals_of_a_replay_equal_the_tables)
{
    enum { EVENTS = 400 };
    struct random random = random_init(20261120);
    char *events = malloc(EVENTS * 200), at[20];
    size_t len = 0;
    for (int i = 0; i < EVENTS; i++)
        len += put_random(&random, events + len);
    DONE_WITH(&cli, events, "append", "r");
    free(events);
    for (int i = 0; i < 8; i++) {
        snprintf(at, sizeof at, "%u", 30 + (unsigned)random_below(&random, EVENTS - 30));
        DONE(&cli, "replay", "r", "--events", "--type=*", "--to", at, "--from",
             i % 2 == 0 ? "1" : "20");
        char *last = NULL;
        for (char *next = cli.out; (next = strstr(next, "so far ")) != NULL; next++)
            last = next;
        ck_assert_ptr_nonnull(last);
        char *end = strchr(last, '\n'), *line = last;
        while (line > cli.out && line[-1] != '\n')
            line--;
        snprintf(at, sizeof at, "%lu", strtoul(line, NULL, 10)); /* a turn may have started since */
        char *said = strndup(last, (size_t)(end - last));
        DONE(&cli, "replay", "r", "--at", at, "--json", "--sql",
             "SELECT printf('so far %d turns · %,d tokens · $%.2f', total_turns, total_tokens,"
             " total_cost_usd) AS t FROM sessions");
        ck_assert_msg(strstr(cli.out, said) != NULL, "at %s: %s, and not %s", at, said, cli.out);
        free(said);
    }
}
END_TEST

START_TEST(options_of_replay_that_contradict_each_other_are_wrong_usage)
{
    CLI(&cli, NULL, "replay", "s", "--speed", "2");
    cli_assert_refused(&cli, EXIT_USAGE, "--speed needs --events");
    CLI(&cli, NULL, "replay", "s", "--events", "--speed", "0");
    cli_assert_refused(&cli, EXIT_USAGE, "--speed");
    CLI(&cli, NULL, "replay", "s", "--events", "--gap=-1");
    cli_assert_refused(&cli, EXIT_USAGE, "--gap");
    CLI(&cli, NULL, "replay", "s", "--events", "--at", "2", "--to", "3");
    cli_assert_refused(&cli, EXIT_USAGE, "--to");
    CLI(&cli, NULL, "replay", "s", "--events", "--from", "noon");
    cli_assert_refused(&cli, EXIT_USAGE, "--from");
    CLI(&cli, NULL, "replay", "s", "--events", "--to", "99");
    cli_assert_refused(&cli, EXIT_REFUSED, "99");
    DONE(&cli, "replay", "s", "--events", "--from", "5", "--to", "3");
    ck_assert_str_eq(cli.out, "");
}
END_TEST

START_TEST(replay_events_leaves_out_bookkeeping_unless_type_selects_it)
{
    static const char events[] =
        "{\"type\":\"import.record\",\"data\":{\"kind\":\"mode\"}}\n"
        "{\"type\":\"message.added\",\"data\":{\"role\":\"assistant\",\"content\":["
        "{\"type\":\"thinking\",\"thinking\":\"\"}]}}\n"
        "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"Go.\"}}\n"
        "{\"type\":\"agent.turn.usage\",\"data\":{\"input_tokens\":7}}\n";
    CLI(&cli, events, "append", "b");
    DONE(&cli, "replay", "b", "--events");
    ck_assert_ptr_nonnull(strstr(cli.out, "      3  "));
    ck_assert_ptr_null(strstr(cli.out, "      1  "));
    ck_assert_ptr_null(strstr(cli.out, "      2  "));
    ck_assert_ptr_null(strstr(cli.out, "      4  "));
    CLI(&cli, NULL, "replay", "b", "--events", "--type", "import.*");
    ck_assert_ptr_nonnull(strstr(cli.out, "  import.record  kind: mode\n"));
    ck_assert_ptr_null(strstr(cli.out, "      3  "));
}
END_TEST

START_TEST(a_cast_records_the_screen_and_its_times)
{
    DONE(&cli, "replay", "s", "--events", "--gap", "2", "--cast", tmpdir_path(&cli.dir, "s.cast"));
    ck_assert_str_eq(cli.out, "");
    size_t len;
    char *cast = file_read(tmpdir_path(&cli.dir, "s.cast"), &len);
    ck_assert_ptr_eq(strstr(cast, "{\"version\":2,\"width\":100,\"height\":30,\"title\":\"s\""),
                     cast);
    ck_assert_ptr_nonnull(strstr(cast, "\n[0.000000,\"o\",\"\\u001b[2m"));
    ck_assert_ptr_nonnull(strstr(cast, "\n[2.000000,\"o\",\""));
    ck_assert_ptr_nonnull(strstr(cast, "Why is it late?\\r\\n"));
    ck_assert_ptr_nonnull(strstr(cast, "Summer \\\\u001b[31mtime."));
    ck_assert_ptr_nonnull(strstr(cast, "\n[10.000000,\"o\",\""));
    free(cast);
    CLI(&cli, NULL, "replay", "s", "--events", "--json", "--cast", "x");
    cli_assert_refused(&cli, EXIT_USAGE, "--json and --cast cannot be used together");
}
END_TEST

/* ---- Pace ---- */

static double seconds_of(const char *const *words)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    cli_run(&cli, NULL, words);
    clock_gettime(CLOCK_MONOTONIC, &end);
    cli_assert_done(&cli);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

START_TEST(events_keep_their_distance_in_time_and_long_gaps_are_cut_and_marked)
{
    static const char events[] = "{\"type\":\"n\",\"ts\":\"2026-03-02T08:00:00.0Z\",\"data\":1}\n"
                                 "{\"type\":\"n\",\"ts\":\"2026-03-02T08:00:00.2Z\",\"data\":2}\n"
                                 "{\"type\":\"n\",\"ts\":\"2026-03-02T08:00:00.4Z\",\"data\":3}\n";
    DONE_WITH(&cli, events, "append", "n");
    double max = seconds_of((const char *[]){"replay", "n", "--events", NULL});
    char *all = strdup(cli.out);
    double as_it_was = seconds_of((const char *[]){"replay", "n", "--events", "--speed=1", NULL});
    ck_assert_str_eq(cli.out, all);
    ck_assert_double_ge(as_it_was, 0.4);
    ck_assert_double_lt(max, 600);
    free(all);
    double half = seconds_of((const char *[]){"replay", "n", "--events", "--speed=0.5", NULL});
    ck_assert_double_ge(half, 0.8);
    double cut =
        seconds_of((const char *[]){"replay", "s", "--events", "--speed=1", "--gap=0.01", NULL});
    ck_assert_double_lt(cut, 600);
    ck_assert_ptr_nonnull(strstr(cli.out, "                   … 60 min later\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "                   … 25.0 h later\n"));
}
END_TEST

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
    TCase *text = suite_case(suite, "text", setup, cli_teardown);
    tcase_add_test(text, replay_events_into_a_pipe_prints_a_plain_conversation);
    tcase_add_test(text, a_part_of_a_replay_includes_earlier_tokens_and_names);
    tcase_add_test(text, replay_events_prints_a_fork_as_one_history);
    tcase_add_test(text, replay_events_cuts_a_long_event_and_json_contains_all_of_it);
    tcase_add_test(text, with_json_replay_events_prints_json_lines);
    tcase_add_test(text, an_event_of_any_shape_is_printed_as_readable_text);
    tcase_add_test(text, running_totals_of_a_replay_equal_the_tables);
    tcase_add_test(text, options_of_replay_that_contradict_each_other_are_wrong_usage);
    tcase_add_test(text, replay_events_leaves_out_bookkeeping_unless_type_selects_it);
    tcase_add_test(text, a_cast_records_the_screen_and_its_times);
    tcase_add_test(text, events_keep_their_distance_in_time_and_long_gaps_are_cut_and_marked);
    tcase_add_test(text, a_slow_replay_into_a_pipe_ends_if_its_reader_closes_it);
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
