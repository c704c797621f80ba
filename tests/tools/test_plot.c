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
    tcase_add_test(pictures, the_chart_of_a_store_is_one_self_contained_svg);
    tcase_add_test(pictures, names_are_escaped_in_the_svg_of_a_session);
    tcase_add_test(pictures, an_svg_replaces_a_file_whole_or_not_at_all);
    tcase_add_test(pictures, labels_of_an_svg_do_not_overlap);
    tcase_add_test(pictures, an_svg_shows_the_pauses_and_buckets_of_a_terminal_of_80_columns);
    tcase_add_long_test(pictures, a_timeline_of_100000_events_is_drawn_in_seconds);
    return suite;
}
