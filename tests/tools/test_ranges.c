/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A range means the same everywhere: [since, until), in the zone of the reader.
 *
 * Each verb counts the events of a range in its own way. All must give the same numbers, and the
 * numbers of neighbouring ranges must add up to the number of the whole.
 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SESSIONS = 3, EVENTS_EACH = 16 };

#define USAGE(ts, tokens)                                                                          \
    "{\"type\":\"agent.turn.usage\",\"ts\":\"" ts "\",\"data\":{\"model\":\"claude-opus-4-5\","    \
    "\"input_tokens\":" tokens ",\"output_tokens\":0}}\n"
#define ASSERT_OUT(text) ck_assert_msg(strstr(cli.out, text) != NULL, "no %s in %s", text, cli.out)

/* An event with tokens every 97 minutes, around the night in which summer time ends. */
static void put_events(void)
{
    char lines[EVENTS_EACH * 200], name[16];
    for (int session = 0; session < SESSIONS; session++) {
        size_t len = 0;
        for (int i = 0; i < EVENTS_EACH; i++) {
            char ts[32];
            time_t at = 1792864800 + (i * SESSIONS + session) * 97 * 60; /* 2026-10-24T18:00Z */
            struct tm tm;
            gmtime_r(&at, &tm);
            strftime(ts, sizeof ts, "%Y-%m-%dT%H:%M:%SZ", &tm);
            len +=
                (size_t)snprintf(lines + len, sizeof lines - len,
                                 "{\"type\":\"agent.turn.usage\",\"ts\":\"%s\",\"data\":{\"model\":"
                                 "\"claude-opus-4-5\",\"input_tokens\":%d,\"output_tokens\":1}}\n",
                                 ts, 1 << (i % 8));
        }
        snprintf(name, sizeof name, "s%d", session);
        CLI(&cli, lines, "append", name);
        cli_assert_done(&cli);
    }
}

static void setup(void)
{
    cli_setup();
    put_events();
}

/* ---- The numbers of a range ---- */

/* Sum a member over all lines that contain a text. */
static int64_t sum_of(const char *with, const char *member)
{
    int64_t sum = 0;
    char key[40];
    snprintf(key, sizeof key, "\"%s\":", member);
    for (const char *line = cli.out; *line != '\0'; line += strcspn(line, "\n") + 1) {
        size_t len = strcspn(line, "\n");
        const char *at = strstr(line, key), *named = strstr(line, with);
        if (at != NULL && at < line + len && named != NULL && named < line + len)
            sum += strtoll(at + strlen(key), NULL, 10);
    }
    return sum;
}

static int64_t lines_of_output(void)
{
    int64_t count = 0;
    for (const char *at = cli.out; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    return count;
}

static const char *zone, *since, *until;

/* Run a verb with the zone and the range; a bound of NULL is left out. */
static void ask(const char *verb, const char *option, const char *value)
{
    const char *words[16] = {verb, "--json"};
    int count = 2;
    const char *const given[][2] = {{"--since", since}, {"--until", until}, {"--zone", zone}};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        if (given[i][1] == NULL)
            continue;
        words[count++] = given[i][0];
        words[count++] = given[i][1];
    }
    if (option != NULL)
        words[count++] = option;
    if (value != NULL)
        words[count++] = value;
    cli_run(&cli, NULL, words);
    cli_assert_done(&cli);
}

struct numbers {
    int64_t events, tokens;
};

/* Assert that search and SQL find this number of events in the range. */
static void assert_found(int64_t events)
{
    char sql[300];
    const char *words[] = {"search",
                           "claude",
                           "--events",
                           "--json",
                           "--type",
                           "agent.turn.usage",
                           "--limit",
                           "1000",
                           "--since",
                           since,
                           "--until",
                           until,
                           zone == NULL ? NULL : "--zone",
                           zone,
                           NULL};
    cli_run(&cli, NULL, words);
    ck_assert_int_eq(cli.exit_status, events > 0 ? EXIT_DONE : EXIT_REFUSED);
    ck_assert_int_eq(lines_of_output(), events);
    snprintf(sql, sizeof sql,
             "SELECT count(*) AS n FROM events WHERE timestamp >= annal_instant('%s') "
             "AND timestamp < annal_instant('%s')",
             since, until);
    CLI(&cli, NULL, "sql", sql, "--json", zone == NULL ? NULL : "--zone", zone);
    cli_assert_done(&cli);
    ck_assert_int_eq(sum_of("", "n"), events);
}

static struct numbers count_range(void)
{
    struct numbers numbers;
    ask("query", NULL, NULL);
    numbers.events = lines_of_output();
    numbers.tokens = sum_of("", "input_tokens") + sum_of("", "output_tokens");
    ask("query", "--group-by", "hour");
    ck_assert_int_eq(sum_of("", "events"), numbers.events);
    ask("query", "--group-by", "week");
    ck_assert_int_eq(sum_of("", "events"), numbers.events);
    ask("report", NULL, NULL);
    static const char *const sections[] = {"\"total\"", "\"models\"", "\"days\""};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        ck_assert_int_eq(sum_of(sections[i], "input_tokens") + sum_of(sections[i], "output_tokens"),
                         numbers.tokens);
    ck_assert_int_eq(sum_of("\"section\":\"sessions\"", "total_tokens"), numbers.tokens);
    if (since != NULL || until != NULL) { /* a chart without a range leaves such times out */
        ask("stats", "--plot", NULL);
        ck_assert_int_eq(sum_of("\"plot\":\"events\"", "events"), numbers.events);
        ck_assert_int_eq(sum_of("\"usage\"", "input_tokens") + sum_of("\"usage\"", "output_tokens"),
                         numbers.tokens);
    }
    ask("ls", NULL, NULL);
    ck_assert_int_eq(lines_of_output() > 0, numbers.events > 0);
    return numbers;
}

static const struct {
    const char *zone;
    const char *bounds[6];
} partitions[] = {
    {"UTC", {"2026-10-24", "2026-10-25", "2026-10-26", "2026-10-28"}},
    {"CET-1CEST,M3.5.0,M10.5.0/3",
     {"2026-10-24", "2026-10-25", "2026-10-25T02:30", "2026-10-26", "2026-10-28"}},
    {"+05:45", {"2026-10-24", "2026-10-25T01:47:30", "2026-10-25T23:59:59.999999", "2026-10-29"}}};

START_TEST(all_verbs_count_a_range_alike_and_neighbouring_ranges_add_up)
{
    const char *const *bounds = partitions[_i].bounds;
    struct numbers sum = {0}, part;
    zone = partitions[_i].zone;
    if (strchr(zone, ',') != NULL) {
        setenv("TZ", zone, 1); /* the zones of the system may be missing */
        zone = NULL;
    }
    for (int i = 0; bounds[i + 1] != NULL; i++) {
        since = bounds[i];
        until = bounds[i + 1];
        part = count_range();
        ck_assert_int_gt(part.events, 0);
        assert_found(part.events);
        sum.events += part.events;
        sum.tokens += part.tokens;
    }
    since = "2026-10-24";
    until = "2026-10-29";
    part = count_range();
    ck_assert_int_eq(part.events, SESSIONS * EVENTS_EACH);
    ck_assert_int_eq(sum.events, part.events);
    ck_assert_int_eq(sum.tokens, part.tokens);
}
END_TEST

/* Implausible times: an event of 2099, and an event of the year 1. */
START_TEST(an_open_range_contains_no_event_with_an_implausible_time)
{
    static const struct {
        const char *since, *until;
        int64_t events, tokens;
    } cases[] = {{"2026-10-01", NULL, 1, 1000},    {NULL, "2026-10-01", 1, 10},
                 {"2026-09-01", NULL, 2, 1010},    {NULL, NULL, 4, 1001011 + 100000},
                 {"2099-01-01", NULL, 1, 1000000}, {"2026-10-01", "2100-01-01", 2, 1001000},
                 {NULL, "1960-01-01", 1, 100001},  {"0001-01-01", "2026-10-01", 2, 100011}};
    CLI(&cli, NULL, "delete", "s0", "s1", "s2", "--yes");
    cli_assert_done(&cli);
    CLI(&cli,
        USAGE("2026-09-30T12:00:00Z", "10") USAGE("2099-01-01T12:00:00Z", "1000000")
            USAGE("2026-10-01T12:00:00Z", "1000") USAGE("0001-01-01T12:00:00Z", "100001"),
        "append", "odd");
    cli_assert_done(&cli);
    zone = "UTC";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        since = cases[i].since;
        until = cases[i].until;
        struct numbers numbers = count_range();
        ck_assert_int_eq(numbers.events, cases[i].events);
        ck_assert_int_eq(numbers.tokens, cases[i].tokens);
        ask("query", "--count", NULL);
        ck_assert_int_eq(strtoll(strpbrk(cli.out, "0123456789"), NULL, 10), cases[i].events);
        ask("search", "--type=agent.turn.usage", "--match=claude");
        ck_assert_int_eq(lines_of_output(), cases[i].events);
    }
}
END_TEST

static const char months[] =
    USAGE("2026-09-30T12:00:00Z", "1") USAGE("2026-10-01T12:00:00Z", "1000")
        USAGE("2026-11-01T12:00:00Z", "100000") USAGE("2026-11-01T00:00:00Z", "10000000");

START_TEST(until_a_day_excludes_that_day)
{
    CLI(&cli, months, "append", "x");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "report", "x", "--utc", "--since", "2026-10-01", "--until", "2026-11-01",
        "--json");
    ck_assert_int_eq(sum_of("\"total\"", "input_tokens"), 1000);
    ck_assert_int_eq(sum_of("\"section\":\"sessions\"", "total_tokens"), 1000);
    CLI(&cli, NULL, "report", "x", "--utc", "--by", "month", "--json");
    ASSERT_OUT("\"month\":\"2026-10\",\"requests\":1,\"input_tokens\":1000,");
    ASSERT_OUT("\"month\":\"2026-11\",\"requests\":2,\"input_tokens\":10100000,");
    CLI(&cli, NULL, "report", "x", "--zone", "-01:00", "--by", "week", "--json");
    ASSERT_OUT("\"week\":\"2026-W40\",\"requests\":2,\"input_tokens\":1001,");
    ASSERT_OUT("\"week\":\"2026-W44\",\"requests\":2,\"input_tokens\":10100000,");
    CLI(&cli, NULL, "report", "x", "--zone", "-01:00", "--by", "month");
    ASSERT_OUT("Tokens and cost by month (-01:00)\n");
    ASSERT_OUT("2026-10");
}
END_TEST

#define CHEAP(ts)                                                                                  \
    "{\"type\":\"agent.turn.usage\",\"ts\":\"" ts "\",\"data\":{\"model\":\"cheap\","              \
    "\"input_tokens\":5,\"output_tokens\":0}}\n"

START_TEST(ls_and_report_give_the_same_computed_cost)
{
    CLI(&cli, "{\"model\":\"cheap\",\"input\":0.1,\"output\":0}", "append", "prices", "--type",
        "price.set");
    cli_assert_done(&cli);
    CLI(&cli,
        CHEAP("2026-09-01T12:00:00Z") CHEAP("2026-09-02T12:00:00Z") CHEAP("2026-09-03T12:00:00Z"),
        "append", "c");
    cli_assert_done(&cli); /* 0.5 microdollars on each of three days */
    CLI(&cli, NULL, "ls", "--until", "2026-09-10", "--json");
    ASSERT_OUT("\"computed_cost_usd\":2e-06");
    CLI(&cli, NULL, "report", "c", "--json");
    ASSERT_OUT("\"computed_microusd\":2,");
}
END_TEST

START_TEST(hours_follow_the_zone_and_a_repeated_hour_counts_as_two)
{
    CLI(&cli, USAGE("2026-10-24T18:20:00Z", "1"), "append", "z");
    CLI(&cli, NULL, "query", "z", "--group-by", "hour", "--json", "--zone", "+05:45");
    ck_assert_str_eq(cli.out, "{\"hour\":\"2026-10-25T00\",\"events\":1}\n");
    CLI(&cli, NULL, "query", "z", "--count", "--zone", "+05:45", "--since", "2026-10-25");
    ck_assert_str_eq(cli.out, "1\n");
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    CLI(&cli, USAGE("2026-10-25T00:30:00Z", "1") USAGE("2026-10-25T01:30:00Z", "2"), "append", "y");
    CLI(&cli, NULL, "query", "y", "--group-by", "hour", "--json");
    ck_assert_str_eq(cli.out, "{\"hour\":\"2026-10-25T02+01:00\",\"events\":1}\n"
                              "{\"hour\":\"2026-10-25T02+02:00\",\"events\":1}\n");
    CLI(&cli, NULL, "query", "y", "--group-by", "day", "--where", "seq > 1", "--json");
    ck_assert_str_eq(cli.out, "{\"day\":\"2026-10-25\",\"events\":1}\n");
    CLI(&cli, NULL, "sql",
        "SELECT annal_period(timestamp, 'week') AS week FROM events WHERE "
        "timestamp >= annal_instant('2026-10-25T02:30') AND session_id = 'y'");
    ck_assert_ptr_nonnull(strstr(cli.out, "2026-W43"));
}
END_TEST

START_TEST(a_zone_that_does_not_exist_and_a_range_that_ends_first_are_wrong_usage)
{
    CLI(&cli, NULL, "ls", "--zone", "Europe/Atlantis");
    cli_assert_refused(&cli, EXIT_USAGE, "--zone needs a zone that the system knows");
    CLI(&cli, NULL, "ls", "--zone", "../etc/passwd");
    cli_assert_refused(&cli, EXIT_USAGE, "--zone needs a zone that the system knows");
    CLI(&cli, NULL, "ls", "--zone", "+25:00");
    cli_assert_refused(&cli, EXIT_USAGE, "--zone needs a zone that the system knows");
    CLI(&cli, NULL, "ls", "--utc", "--zone", "UTC");
    cli_assert_refused(&cli, EXIT_USAGE, "--utc and --zone cannot be used together");
    CLI(&cli, NULL, "query", "--since", "today", "--until", "yesterday");
    cli_assert_refused(&cli, EXIT_USAGE, "--since today is after --until yesterday");
}
END_TEST

Suite *suite_ranges(void)
{
    Suite *suite = suite_create("ranges");
    TCase *tests = suite_case(suite, "ranges", setup, cli_teardown);
    tcase_add_loop_test(tests, all_verbs_count_a_range_alike_and_neighbouring_ranges_add_up, 0,
                        sizeof partitions / sizeof partitions[0]);
    tcase_add_test(tests, an_open_range_contains_no_event_with_an_implausible_time);
    tcase_add_test(tests, until_a_day_excludes_that_day);
    tcase_add_test(tests, ls_and_report_give_the_same_computed_cost);
    tcase_add_test(tests, hours_follow_the_zone_and_a_repeated_hour_counts_as_two);
    tcase_add_test(tests, a_zone_that_does_not_exist_and_a_range_that_ends_first_are_wrong_usage);
    return suite;
}
