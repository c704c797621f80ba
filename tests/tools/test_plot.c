/* SPDX-License-Identifier: Apache-2.0 */
/* stats --plot: charts of a store, timelines of sessions. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EVENT(time, type, data) "{\"type\":\"" type "\",\"ts\":\"" time "\",\"data\":" data "}\n"

/* A turn after a long pause, with a failed call of a tool whose name contains markup. */
static const char session[] = EVENT("2026-03-02T09:10:00Z", "session.created",
                                    "{\"agent_id\":\"a1\",\"model\":\"m1\"}")
    EVENT("2026-03-02T10:38:10Z", "turn.started", "{\"turn_id\":\"t1\"}") EVENT(
        "2026-03-02T10:38:10Z", "message.added",
        "{\"id\":\"1\",\"role\":\"user\",\"content\":\"when is high water?\"}")
        EVENT("2026-03-02T10:38:20Z", "tool.called",
              "{\"call_id\":\"c1\",\"tool\":\"tide <b>&\\\"\\u001b[31m\\u0007\"}")
            EVENT("2026-03-02T10:39:40Z", "tool.failed", "{\"call_id\":\"c1\",\"success\":false}")
                EVENT("2026-03-02T10:39:50Z", "message.added",
                      "{\"id\":\"2\",\"role\":\"assistant\",\"content\":\"at six\"}")
                    EVENT("2026-03-02T10:39:55Z", "agent.turn.usage",
                          "{\"turn_id\":\"t1\",\"input_tokens\":1000,\"cached_input_tokens\":400,"
                          "\"output_tokens\":50,\"cost_usd\":0.25}")
                        EVENT("2026-03-02T10:40:02Z", "turn.completed",
                              "{\"turn_id\":\"t1\",\"input_tokens\":8,\"output_tokens\":2}")
                            EVENT("2026-03-02T10:40:02Z", "turn.completed",
                                  "{\"turn_id\":\"t1\",\"input_tokens\":8,\"output_tokens\":2}");

static const char later[] =
    EVENT("2026-03-05T00:00:00Z", "session.created", "{\"agent_id\":\"a1\",\"model\":\"m1\"}")
        EVENT("2026-03-05T23:59:59.999999Z", "agent.turn.usage",
              "{\"input_tokens\":250,\"output_tokens\":30,\"cost_usd\":1}");

static void begin(void)
{
    cli.columns = "60";
    DONE_WITH(&cli, session, "append", "s1");
}

static void assert_out(const char *want)
{
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, want);
}

static void assert_holds(const char *part)
{
    ck_assert_msg(strstr(cli.out, part) != NULL, "no '%s' in: %s", part, cli.out);
}

/* ---- SVG ---- */

/* Skip an entity such as "&amp;"; any other "&" fails the test. */
static const char *skip_entity(const char *at)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strncmp(at, known[i], strlen(known[i])) == 0)
            return at + strlen(known[i]);
    }
    ck_abort_msg("not an entity: %.40s", at);
    return NULL;
}

/* Read one tag, with attributes name="value", from its "<". Returns the text after it. */
static const char *read_tag(const char *at, char name[16], bool *ends, bool *empty)
{
    *ends = at[1] == '/';
    at += *ends ? 2 : 1;
    size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz");
    ck_assert_msg(len > 0 && len < 16, "not a name: %.40s", at);
    memcpy(name, at, len);
    name[len] = '\0';
    for (at += len; *at == ' ';) {
        at += 1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789");
        ck_assert_msg(strncmp(at, "=\"", 2) == 0, "not an attribute: %.40s", at);
        for (at += 2; *at != '"';) {
            ck_assert_msg(*at != '\0' && *at != '<', "an attribute without end");
            at = *at == '&' ? skip_entity(at) : at + 1;
        }
        at++;
    }
    *empty = *at == '/';
    at += *empty ? 1 : 0;
    ck_assert_msg(*at == '>', "a tag without end: %.40s", at);
    return at + 1;
}

/* Stricter than XML: accepts only the forms that annal writes. */
static void assert_well_formed(const char *svg)
{
    static const char head[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    char open[8][16], name[16];
    int depth = 0;
    ck_assert_msg(strncmp(svg, head, strlen(head)) == 0, "no head: %.60s", svg);
    for (const char *at = svg + strlen(head); *at != '\0';) {
        bool ends, empty;
        ck_assert_msg(*at == '\n' || ((unsigned char)*at >= 0x20 && *at != 0x7f), "control: %.20s",
                      at);
        if (*at == '&') {
            at = skip_entity(at);
        } else if (*at != '<') {
            ck_assert_msg(*at == '\n' || depth > 0, "text outside: %.40s", at);
            at++;
        } else {
            at = read_tag(at, name, &ends, &empty);
            ck_assert_msg(!ends || (depth > 0 && strcmp(open[depth - 1], name) == 0),
                          "</%s> ends nothing", name);
            depth -= ends;
            ck_assert_int_lt(depth, 8);
            if (!ends && !empty)
                strcpy(open[depth++], name);
        }
    }
    ck_assert_int_eq(depth, 0);
}

static char *read_svg(const char *path)
{
    size_t len;
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, "");
    char *svg = file_read(path, &len);
    assert_well_formed(svg);
    return svg;
}

static void assert_part(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no '%s' in: %.1500s", part, text);
}

START_TEST(a_store_is_drawn_as_bars_over_days)
{
    begin();
    CLI(&cli, later, "append", "s2");
    CLI(&cli, NULL, "stats", "--plot", "--by", "day");
    assert_out("events per day, 2026-03-02 to 2026-03-05 UTC: 11\n"
               "\n"
               "     10 ┤▃▃▃▃▃\n"
               "        │█████\n"
               "        │█████\n"
               "      5 ┤█████\n"
               "        │█████             ▂▂▂▂▂\n"
               "        │█████             █████\n"
               "        └────────────────────────\n"
               "         03-02       03-04\n"
               "\n"
               "tokens per day, 2026-03-02 to 2026-03-05 UTC\n"
               "\n"
               "        input 1,258, ▒ 400 from cache\n"
               "  1,200 ┤\n"
               "        │█████\n"
               "        │█████\n"
               "    600 ┤█████\n"
               "        │▒▒▒▒▒             ▂▂▂▂▂\n"
               "        │▒▒▒▒▒             █████\n"
               "        └────────────────────────\n"
               "         03-02       03-04\n"
               "\n"
               "        output 82\n"
               "     60 ┤▂▂▂▂▂\n"
               "        │█████\n"
               "        │█████\n"
               "     30 ┤█████             █████\n"
               "        │█████             █████\n"
               "        │█████             █████\n"
               "        └────────────────────────\n"
               "         03-02       03-04\n"
               "\n"
               "cost per day, 2026-03-02 to 2026-03-05 UTC: $1.25\n"
               "\n"
               "  $1.00 ┤                  █████\n"
               "        │                  █████\n"
               "        │                  █████\n"
               "  $0.50 ┤                  █████\n"
               "        │▄▄▄▄▄             █████\n"
               "        │█████             █████\n"
               "        └────────────────────────\n"
               "         03-02       03-04\n"
               "\n"
               "The cost covers 99 % of the tokens: the others have no price.\n");
}
END_TEST

START_TEST(a_session_is_drawn_as_a_timeline_without_its_pauses)
{
    begin();
    CLI(&cli, NULL, "stats", "--plot", "s1");
    assert_out("s1: 9 events, 2026-03-02T09:10:00Z to 10:40:02Z (1 h 30 min)\n"
               "\n"
               "          turns │  █████████████████████████│ 1\n"
               "           user │  █                        │ 1\n"
               "tide <b>&\"\033[31… │    ×××××××××××××××××××    │ 1\n"
               "         tokens │                         █▁│ 1,060\n"
               "       failures │                      ×    │ 1\n"
               "         pauses │ ┊                         │ 1, 1 h 28 min\n"
               "                 09:10:00           10:40:02\n"
               "\n"
               "                 × failed  ┊ pause, cut out\n");
}
END_TEST

START_TEST(a_chart_without_events_is_a_sentence)
{
    begin();
    CLI(&cli, NULL, "stats", "--plot", "--since", "2026-03-03", "--until", "2026-03-04");
    assert_out("No events since 2026-03-03T00:00:00Z and before "
               "2026-03-04T00:00:00Z.\n");
    CLI(&cli, NULL, "stats", "--plot", "s1", "--until", "2026-03-01");
    assert_out("No events before 2026-03-01T00:00:00Z.\n");
    CLI(&cli, NULL, "stats", "--plot", "--json", "--since", "2026-03-03");
    assert_out("");
    CLI(&cli, NULL, "delete", "s1", "--yes");
    CLI(&cli, NULL, "stats", "--plot");
    assert_out("No events.\n");
}
END_TEST

START_TEST(one_event_gives_a_chart)
{
    cli.columns = "60";
    CLI(&cli, EVENT("2026-03-02T09:10:00.25Z", "note.added", "{}"), "append", "s1");
    CLI(&cli, NULL, "stats", "--plot", "s1");
    assert_out("s1: 1 event, 2026-03-02T09:10:00.25Z\n"
               "\n"
               "  events │█                                 │ 1\n"
               "          09:10:00\n");
}
END_TEST

START_TEST(events_without_a_time_are_counted_and_not_drawn)
{
    begin();
    CLI(&cli, EVENT("1970-01-01T00:00:00.000001Z", "note.added", "{}"), "append", "s2");
    DONE(&cli, "stats", "--plot", "--by", "month");
    assert_holds("events per month, 2026-03-01 to 2026-03-31 UTC: 9\n");
    assert_holds("\nNot in the pictures: 1 event whose time is unknown or in the future.\n");
    CLI(&cli, NULL, "stats", "--plot", "s2");
    assert_out("The log of this session has no times.\n");
}
END_TEST

START_TEST(buckets_are_merged_to_fit_the_width)
{
    begin();
    CLI(&cli, later, "append", "s2");
    cli.columns = "30";
    DONE(&cli, "stats", "--plot", "--by", "hour");
    assert_holds("events per 5 hours, 2026-03-02 to 2026-03-05 UTC: 11\n");
}
END_TEST

START_TEST(the_timeline_of_a_fork_includes_shared_events)
{
    begin();
    DONE(&cli, "fork", "s1", "--at", "4", "f1");
    CLI(&cli,
        EVENT("2026-03-02T10:42:00Z", "tool.returned", "{\"call_id\":\"c1\"}")
            EVENT("2026-03-02T10:44:00Z", "turn.completed", "{\"turn_id\":\"t1\"}"),
        "append", "f1");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "stats", "--plot", "f1");
    assert_out("f1: 6 events, 2026-03-02T09:10:00Z to 10:44:00Z (1 h 34 min)\n"
               "\n"
               "          turns │  █████████████████████████│ 1\n"
               "           user │  █                        │ 1\n"
               "tide <b>&\"\033[31… │  █████████████████        │ 1\n"
               "         pauses │ ┊                         │ 1, 1 h 28 min\n"
               "                 09:10:00           10:44:00\n"
               "\n"
               "                 ┊ pause, cut out\n");
}
END_TEST

/* Pauses lie between times, not between neighbouring events. */
START_TEST(an_event_within_a_pause_divides_the_pause)
{
    CLI(&cli,
        EVENT("2026-03-02T09:00:00Z", "n", "1") EVENT("2026-03-02T12:00:00Z", "n", "1")
            EVENT("2026-03-02T10:30:00Z", "n", "1") EVENT("2026-03-02T11:56:00Z", "n", "1")
                EVENT("2026-03-02T08:00:00Z", "n", "1"),
        "append", "s1");
    CLI(&cli, NULL, "stats", "--plot", "--json", "s1");
    assert_out("{\"plot\":\"session\",\"session_id\":\"s1\",\"events\":5,\"untimed_events\":0,"
               "\"from\":\"2026-03-02T08:00:00.000000Z\",\"to\":\"2026-03-02T12:00:00.000000Z\"}\n"
               "{\"plot\":\"pause\",\"from\":\"2026-03-02T08:00:00.000000Z\","
               "\"to\":\"2026-03-02T09:00:00.000000Z\"}\n"
               "{\"plot\":\"pause\",\"from\":\"2026-03-02T09:00:00.000000Z\","
               "\"to\":\"2026-03-02T10:30:00.000000Z\"}\n"
               "{\"plot\":\"pause\",\"from\":\"2026-03-02T10:30:00.000000Z\","
               "\"to\":\"2026-03-02T11:56:00.000000Z\"}\n");
}
END_TEST

START_TEST(a_part_of_a_timeline_includes_turns_and_calls_that_overlap_it)
{
    begin();
    CLI(&cli, NULL, "stats", "--plot", "s1", "--since", "2026-03-02T10:39:00Z", "--until",
        "2026-03-02T10:39:55Z");
    assert_out("s1: 2 events, 2026-03-02T10:39:40Z to 10:39:50Z (10 s)\n"
               "\n"
               "          turns │███████████████████████████│ 1\n"
               "tide <b>&\"\033[31… │×                          │ 1\n"
               "       failures │×                          │ 1\n"
               "                 10:39:40           10:39:50\n"
               "\n"
               "                 × failed\n");
}
END_TEST

START_TEST(a_call_without_a_result_is_a_mark_and_negative_tokens_are_subtracted)
{
    begin();
    CLI(&cli,
        EVENT("2026-03-02T10:40:10Z", "tool.called", "{\"call_id\":\"c2\",\"tool\":\"Read\"}")
            EVENT("2026-03-02T10:40:20Z", "agent.turn.usage", "{\"input_tokens\":-60}"),
        "append", "s1");
    CLI(&cli, NULL, "stats", "--plot", "s1");
    assert_out("s1:\n"
               "11 events, 2026-03-02T09:10:00Z to 10:40:20Z (1 h 30 min)\n"
               "\n"
               "          turns │  ██████████████████████   │ 1\n"
               "           user │  █                        │ 1\n"
               "           Read │                         ○ │ 1\n"
               "tide <b>&\"\033[31… │   ×××××××××××××××××       │ 1\n"
               "         tokens │                      █▁   │ 1,000\n"
               "       failures │                   ×       │ 1\n"
               "         pauses │ ┊                         │ 1, 1 h 28 min\n"
               "                 09:10:00           10:40:20\n"
               "\n"
               "                 × failed  ○ no result  ┊ pause, cut out\n");
}
END_TEST

START_TEST(weeks_begin_on_monday_and_months_end_in_time)
{
    CLI(&cli,
        EVENT("2024-02-29T23:59:59.999999Z", "n", "1") EVENT("2024-03-01T00:00:00Z", "n", "1")
            EVENT("2024-03-03T23:00:00Z", "n", "1") EVENT("2024-03-04T00:00:00Z", "n", "1")
                EVENT("2024-12-31T23:00:00Z", "n", "1") EVENT("2025-01-01T00:00:00Z", "n", "1"),
        "append", "s1");
    CLI(&cli, NULL, "stats", "--plot", "--json", "--by", "week");
    assert_out("{\"plot\":\"events\",\"by\":\"week\",\"begin\":\"2024-02-26T00:00:00."
               "000000Z\",\"events\":3}\n"
               "{\"plot\":\"events\",\"by\":\"week\",\"begin\":\"2024-03-04T00:00:00."
               "000000Z\",\"events\":1}\n"
               "{\"plot\":\"events\",\"by\":\"week\",\"begin\":\"2024-12-30T00:00:00."
               "000000Z\",\"events\":2}\n");
    CLI(&cli, NULL, "stats", "--plot", "--json", "--by", "month");
    assert_out("{\"plot\":\"events\",\"by\":\"month\",\"begin\":\"2024-02-01T00:00:00."
               "000000Z\",\"events\":1}\n"
               "{\"plot\":\"events\",\"by\":\"month\",\"begin\":\"2024-03-01T00:00:00."
               "000000Z\",\"events\":3}\n"
               "{\"plot\":\"events\",\"by\":\"month\",\"begin\":\"2024-12-01T00:00:00."
               "000000Z\",\"events\":1}\n"
               "{\"plot\":\"events\",\"by\":\"month\",\"begin\":\"2025-01-01T00:00:00."
               "000000Z\",\"events\":1}\n");
    cli.columns = "60";
    CLI(&cli, NULL, "stats", "--plot");
    assert_out("events per week, 2024-02-26 to 2025-01-05 UTC: 6\n"
               "\n"
               "      4 ┤\n"
               "        │▄\n"
               "        │█\n"
               "      2 ┤█                                           █\n"
               "        │█▄                                          █\n"
               "        │██                                          █\n"
               "        └─────────────────────────────────────────────\n"
               "         02-26  04-15  06-03  07-22  09-09  10-28\n");
}
END_TEST

/* Years 0 to 9999: few columns for many hours. */
START_TEST(an_event_with_a_wrong_time_costs_no_memory)
{
    cli.columns = "60";
    CLI(&cli,
        EVENT("1990-01-01T00:00:00Z", "n", "1") EVENT("9999-12-31T23:59:59.999999Z", "n", "1"),
        "append", "s1");
    DONE(&cli, "stats", "--plot");
    assert_holds("events per hour, 1990-01-01 UTC: 1\n");
    assert_holds("Not in the pictures: 1 event whose time is unknown or in the future.\n");
    DONE(&cli, "stats", "--plot", "--by", "hour", "--until", "9999-12-31T23:59:59.9999999Z");
    assert_holds(" months, 1990-01-01 to 9999-12-31 UTC: 1\n");
    DONE(&cli, "stats", "--plot", "--by", "month", "--until", "9999-12-31T23:59:59.9999999Z");
    assert_holds(" months, 1990-01-01 to 9999-12-31 UTC: 1\n");
    DONE(&cli, "stats", "--plot", "s1");
    assert_holds("│ 1, 2925591 d 23 h\n");
}
END_TEST

START_TEST(with_json_a_chart_is_printed_as_numbers)
{
    begin();
    CLI(&cli, later, "append", "s2");
    CLI(&cli, NULL, "stats", "--plot", "--json", "--by", "week");
    assert_out("{\"plot\":\"events\",\"by\":\"week\",\"begin\":\"2026-03-02T00:00:00."
               "000000Z\",\"events\":11}\n"
               "{\"plot\":\"usage\",\"by\":\"week\",\"begin\":\"2026-03-02T00:00:00."
               "000000Z\",\"input_tokens\":1258,\"output_tokens\":82,\"cached_input_tokens\":"
               "400,\"cache_write_tokens\":0,\"cost_microusd\":1250000}\n");
    CLI(&cli, NULL, "stats", "--plot", "--json", "s1");
    assert_out("{\"plot\":\"session\",\"session_id\":\"s1\",\"events\":9,\"untimed_events\":0,"
               "\"from\":\"2026-03-02T09:10:00.000000Z\",\"to\":\"2026-03-02T10:40:02.000000Z\"}\n"
               "{\"plot\":\"pause\",\"from\":\"2026-03-02T09:10:00.000000Z\",\"to\":\"2026-03-"
               "02T10:38:10.000000Z\"}\n"
               "{\"plot\":\"turn\",\"name\":\"t1\",\"from\":\"2026-03-02T10:38:10.000000Z\",\"to\":"
               "\"2026-03-02T10:40:02.000000Z\",\"failed\":false,\"open\":false}\n"
               "{\"plot\":\"call\",\"name\":\"tide "
               "<b>&\\\"\\u001b[31m\\u0007\",\"from\":\"2026-03-02T10:38:20.000000Z\",\"to\":"
               "\"2026-03-02T10:39:40.000000Z\",\"failed\":true,\"open\":false}\n"
               "{\"plot\":\"failure\",\"name\":\"tide "
               "<b>&\\\"\\u001b[31m\\u0007\",\"from\":\"2026-03-02T10:39:40.000000Z\",\"to\":"
               "\"2026-03-02T10:39:40.000000Z\",\"failed\":true,\"open\":false}\n"
               "{\"plot\":\"user\",\"name\":null,\"from\":\"2026-03-02T10:38:10.000000Z\",\"to\":"
               "\"2026-03-02T10:38:10.000000Z\",\"failed\":false,\"open\":false}\n"
               "{\"plot\":\"tokens\",\"name\":null,\"from\":\"2026-03-02T10:39:55.000000Z\",\"to\":"
               "\"2026-03-02T10:39:55.000000Z\",\"failed\":false,\"open\":false,\"input_tokens\":"
               "1000,\"output_tokens\":50}\n"
               "{\"plot\":\"tokens\",\"name\":null,\"from\":\"2026-03-02T10:40:02.000000Z\",\"to\":"
               "\"2026-03-02T10:40:02.000000Z\",\"failed\":false,\"open\":false,\"input_tokens\":8,"
               "\"output_tokens\":2}\n");
}
END_TEST

START_TEST(invalid_options_of_a_chart_are_refused)
{
    begin();
    CLI(&cli, NULL, "stats", "--by", "day");
    cli_assert_refused(&cli, EXIT_USAGE, "--by needs --plot");
    CLI(&cli, NULL, "stats", "s1");
    cli_assert_refused(&cli, EXIT_USAGE, "annal show s1");
    CLI(&cli, NULL, "stats", "--plot", "--by", "year");
    cli_assert_refused(&cli, EXIT_USAGE, "--by must be hour, day, week or month");
    CLI(&cli, NULL, "stats", "--plot", "--by", "day", "s1");
    cli_assert_refused(&cli, EXIT_USAGE, "--by needs a picture of the store");
    CLI(&cli, NULL, "stats", "--svg", "a.svg");
    cli_assert_refused(&cli, EXIT_USAGE, "--svg needs --plot");
    CLI(&cli, NULL, "stats", "--plot", "--svg", "");
    cli_assert_refused(&cli, EXIT_USAGE, "--svg needs a value");
    CLI(&cli, NULL, "stats", "--plot", "--svg", "-", "--json");
    cli_assert_refused(&cli, EXIT_USAGE, "both write to standard output");
    CLI(&cli, NULL, "stats", "--plot", "--since", "soon");
    cli_assert_refused(&cli, EXIT_USAGE, "--since");
    CLI(&cli, NULL, "stats", "--plot", "--since", "2026-03-04", "--until", "2026-03-03");
    cli_assert_refused(&cli, EXIT_USAGE, "is after --until");
    CLI(&cli, NULL, "stats", "--plot", "../s1");
    cli_assert_refused(&cli, EXIT_USAGE, "session");
    CLI(&cli, NULL, "stats", "--plot", "s9");
    cli_assert_refused(&cli, EXIT_REFUSED, "s9");
}
END_TEST

START_TEST(the_chart_of_a_store_is_one_self_contained_svg)
{
    begin();
    const char *path = tmpdir_path(&cli.dir, "a.svg");
    CLI(&cli, later, "append", "s2");
    CLI(&cli, NULL, "stats", "--plot", "--by", "day", "--svg", path);
    char *svg = read_svg(path);
    assert_part(svg, "events per day, 2026-03-02 to 2026-03-05 UTC: 11</text>");
    assert_part(svg, ">input 1,258</text>");
    assert_part(svg, ">400 from cache</text>");
    assert_part(svg, "<title>2026-03-02: 1,008 input, 400 from cache</title>");
    assert_part(svg, "<title>2026-03-05: $1.00 cost</title>");
    assert_part(svg, "@media (prefers-color-scheme:dark)");
    ck_assert_ptr_null(strstr(svg, "href"));
    free(svg);
}
END_TEST

START_TEST(names_are_escaped_in_the_svg_of_a_session)
{
    begin();
    const char *path = tmpdir_path(&cli.dir, "a.svg");
    CLI(&cli,
        EVENT("2026-03-02T10:41:00Z", "tool.called",
              "{\"call_id\":\"c2\",\"tool\":\"</text><script>\\ufffe\\u0085 caf\u00e9\"}"),
        "append", "s1");
    CLI(&cli, NULL, "stats", "--plot", "s1", "--svg", path);
    char *svg = read_svg(path);
    assert_part(svg, ">tide &lt;b&gt;&amp;&quot;?[31m?</text>");
    assert_part(svg, "<title>tide &lt;b&gt;&amp;&quot;?[31m?, 2026-03-02T10:38:20Z to 10:39:40Z "
                     "(1 min 20 s), failed</title>");
    assert_part(svg, "&lt;/text&gt;&lt;script&gt;?? caf\u00e9, 2026-03-02T10:41:00Z, no result");
    assert_part(svg, "<title>pause, 2026-03-02T09:10:00Z to 10:38:10Z (1 h 28 min)</title>");
    ck_assert_ptr_null(strstr(svg, "<script"));
    free(svg);
}
END_TEST

START_TEST(an_svg_replaces_a_file_whole_or_not_at_all)
{
    begin();
    const char *path = tmpdir_path(&cli.dir, "a.svg");
    file_write(path, "what was there before", 21);
    CLI(&cli, NULL, "stats", "--plot", "s1", "--svg", path, "--since", "2027-01-01");
    char *svg = read_svg(path);
    assert_part(svg, ">No events since 2027-01-01T00:00:00Z.</text>");
    free(svg);
    CLI(&cli, NULL, "stats", "--plot", "s1", "--svg", tmpdir_path(&cli.dir, "no/a.svg"));
    cli_assert_refused(&cli, EXIT_STORAGE, "no/a.svg': No such file or directory");
    CLI(&cli, NULL, "stats", "--plot", "--svg", tmpdir_path(&cli.dir, "store"));
    cli_assert_refused(&cli, EXIT_STORAGE, "store': Is a directory");
    DONE(&cli, "stats", "--plot", "s1", "--svg", "-");
    assert_well_formed(cli.out);
}
END_TEST

/* 100,000 events: turns with a call, its result and 16 notes, an event per second, for an hour of
 * each day. */
START_TEST(a_timeline_of_100000_events_is_drawn_in_seconds)
{
    enum { TURNS = 5000, NOTES = 16, TURN_BYTES = 3000 };
    static const char *const types[] = {"turn.started", "tool.called", "tool.returned",
                                        "turn.completed"};
    char *lines = malloc((size_t)TURNS * TURN_BYTES), *to = lines;
    ck_assert_ptr_nonnull(lines);
    for (int i = 0; i < TURNS * (4 + NOTES); i++) {
        int turn = i / (4 + NOTES), part = i % (4 + NOTES), s = turn % 3600;
        to += sprintf(to,
                      "{\"type\":\"%s\",\"ts\":\"2026-03-%02dT09:%02d:%02d.%02dZ\",\"data\":{"
                      "\"turn_id\":\"t%d\",\"call_id\":\"c%d\",\"tool\":\"tool%d\"%s}}\n",
                      part < 4 ? types[part] : "note.added", 1 + turn / 3600, s / 60, s % 60, part,
                      turn, turn, turn % 20,
                      part == 3 ? ",\"input_tokens\":40,\"output_tokens\":2" : "");
    }
    cli.columns = "100";
    DONE_WITH(&cli, lines, "append", "s1");
    CLI(&cli, NULL, "stats", "--plot", "s1", "--wait", "120"); /* fills the index */
    struct timespec begun, ended;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    CLI(&cli, NULL, "stats", "--plot", "s1");
    clock_gettime(CLOCK_MONOTONIC, &ended);
    cli_assert_done(&cli);
    assert_holds("s1: 100,000 events, 2026-03-01T09:00:00Z to 2026-03-02T09:23:19Z");
    assert_holds("others (9)");
    assert_holds("│ 210 k\n"); /* tokens: (40 + 2) x 5,000 */
    assert_holds("│ 1, 23 h\n");
    ck_assert_int_lt(ended.tv_sec - begun.tv_sec, 20); /* seconds, with sanitizers */
    const char *path = tmpdir_path(&cli.dir, "a.svg");
    CLI(&cli, NULL, "stats", "--plot", "s1", "--svg", path);
    char *svg = read_svg(path);
    ck_assert_uint_lt(strlen(svg), 2 << 20);
    free(svg);
    free(lines);
}
END_TEST

/* Labels are 74 wide; a label that cannot be centred begins at its place. */
START_TEST(labels_of_an_svg_do_not_overlap)
{
    CLI(&cli, EVENT("2025-01-20T00:00:00Z", "n", "1") EVENT("2025-11-26T00:00:00Z", "n", "2"),
        "append", "s");
    const char *path = tmpdir_path(&cli.dir, "l.svg");
    for (int by = 0; by < 3; by++) {
        CLI(&cli, NULL, "stats", "--plot", "--by", (const char *[]){"day", "week", "month"}[by],
            "--svg", path);
        char *svg = read_svg(path);
        double free_from = 0, x;
        int labels = 0, seen;
        for (const char *at = svg; (at = strstr(at, "<text x=\"")) != NULL; at++) {
            const char *text = strchr(at, '>');
            ck_assert_int_eq(sscanf(at, "<text x=\"%lf\" y=\"%*f\"%n", &x, &seen), 1);
            if (memmem(at, (size_t)(text - at), "axis", 4) == NULL ||
                memchr(text, '-', strcspn(text, "<")) == NULL)
                continue; /* not a date */
            x -= strncmp(at + seen, " text-anchor=\"middle\"", 20) == 0 ? 37 : 0;
            ck_assert_double_ge(x, free_from);
            free_from = x + 73.8;
            labels++;
        }
        ck_assert_int_ge(labels, 4);
        free(svg);
    }
}
END_TEST

START_TEST(an_svg_shows_the_pauses_and_buckets_of_a_terminal_of_80_columns)
{
    char input[3000], *pauses;
    size_t len = 0;
    for (int day = 1; day <= 12; day++)
        len += (size_t)sprintf(input + len, EVENT("2026-0%d-%02dT00:00:00Z", "n", "1"), 1 + day / 6,
                               day * 2);
    CLI(&cli, input, "append", "p");
    cli.columns = "80";
    const char *path = tmpdir_path(&cli.dir, "p.svg");
    CLI(&cli, NULL, "stats", "--plot", "p", "--svg", path);
    char *svg = read_svg(path);
    CLI(&cli, NULL, "stats", "--plot", "p");
    pauses = strstr(cli.out, "pauses │");
    ck_assert_ptr_nonnull(pauses);
    pauses = strstr(pauses, "│ ") + strlen("│ ");
    while (strstr(pauses, "│ ") != NULL && strstr(pauses, "│ ") < strchr(pauses, '\n'))
        pauses = strstr(pauses, "│ ") + strlen("│ ");
    *strchr(pauses, '\n') = '\0';
    assert_part(svg, pauses);
    free(svg);
    CLI(&cli, NULL, "stats", "--plot", "--since", "2020-01-01", "--svg", path);
    svg = read_svg(path);
    CLI(&cli, NULL, "stats", "--plot", "--since", "2020-01-01");
    *strchr(cli.out, '\n') = '\0';
    assert_part(svg, cli.out);
    free(svg);
}
END_TEST

Suite *suite_plot(void)
{
    Suite *suite = suite_create("plot");
    TCase *pictures = suite_case(suite, "pictures", cli_setup, cli_teardown);
    tcase_add_test(pictures, a_store_is_drawn_as_bars_over_days);
    tcase_add_test(pictures, a_session_is_drawn_as_a_timeline_without_its_pauses);
    tcase_add_test(pictures, a_chart_without_events_is_a_sentence);
    tcase_add_test(pictures, one_event_gives_a_chart);
    tcase_add_test(pictures, events_without_a_time_are_counted_and_not_drawn);
    tcase_add_test(pictures, buckets_are_merged_to_fit_the_width);
    tcase_add_test(pictures, the_timeline_of_a_fork_includes_shared_events);
    tcase_add_test(pictures, an_event_within_a_pause_divides_the_pause);
    tcase_add_test(pictures, a_part_of_a_timeline_includes_turns_and_calls_that_overlap_it);
    tcase_add_test(pictures, a_call_without_a_result_is_a_mark_and_negative_tokens_are_subtracted);
    tcase_add_test(pictures, weeks_begin_on_monday_and_months_end_in_time);
    tcase_add_test(pictures, an_event_with_a_wrong_time_costs_no_memory);
    tcase_add_test(pictures, with_json_a_chart_is_printed_as_numbers);
    tcase_add_test(pictures, invalid_options_of_a_chart_are_refused);
    tcase_add_test(pictures, the_chart_of_a_store_is_one_self_contained_svg);
    tcase_add_test(pictures, names_are_escaped_in_the_svg_of_a_session);
    tcase_add_test(pictures, an_svg_replaces_a_file_whole_or_not_at_all);
    tcase_add_test(pictures, labels_of_an_svg_do_not_overlap);
    tcase_add_test(pictures, an_svg_shows_the_pauses_and_buckets_of_a_terminal_of_80_columns);
    tcase_add_long_test(pictures, a_timeline_of_100000_events_is_drawn_in_seconds);
    return suite;
}
