#include "tests/tools/cli.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number behind "name": on the line of --json that has it. */
static long long field(const struct cli *cli, const char *name)
{
    char key[80];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(cli->out, key);
    ck_assert_msg(at != NULL, "no %s in %s", key, cli->out);
    return strtoll(at + strlen(key), NULL, 10);
}

START_TEST(stats_measures_what_all_processes_wrote_with_units_in_the_names)
{
    struct cli cli;
    CLI_INIT(&cli);
    CLI(&cli, "1\n2\n3\n", "append", "s1", "--type", "n");
    CLI(&cli, "4\n", "append", "s2", "--type", "n");
    CLI(&cli, NULL, "stats", "--json");
    cli_assert_done(&cli);
    ck_assert_int_eq(field(&cli, "appended_events"), 4);
    ck_assert_int_eq(field(&cli, "payload_bytes"), 4);
    ck_assert_int_eq(field(&cli, "groups"), 2);
    ck_assert_int_eq(field(&cli, "group_events_count"), 2);
    ck_assert_int_eq(field(&cli, "group_events_max"), 3);
    ck_assert_int_gt(field(&cli, "sync_us_p50"), 0);
    ck_assert_int_ge(field(&cli, "sync_us_max"), field(&cli, "sync_us_p99"));
    ck_assert_int_gt(field(&cli, "written_bytes_per_payload_byte"), 1);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"group_events_buckets\":[{\"up_to\":1,\"count\":1},"
                                          "{\"up_to\":5,\"count\":1}]"));
    cli_done(&cli);
}
END_TEST

START_TEST(stats_for_people_is_plain_text_off_a_terminal)
{
    struct cli cli;
    CLI_INIT(&cli);
    CLI(&cli, "1\n2\n", "append", "s1", "--type", "n");
    CLI(&cli, NULL, "stats");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "sync of a group"));
    for (const char *c = cli.out; *c != '\0'; c++)
        ck_assert_int_eq(*c & 0x80, 0);
    cli_done(&cli);
}
END_TEST

START_TEST(a_store_without_metrics_is_counted_all_the_same)
{
    struct cli cli;
    CLI_INIT(&cli);
    CLI(&cli, "1\n", "append", "s1", "--type", "n");
    ck_assert_int_eq(unlink(tmpdir_path(&cli.dir, "store/locks/metrics")), 0);
    CLI(&cli, NULL, "stats", "--json");
    cli_assert_done(&cli);
    ck_assert_int_eq(field(&cli, "events"), 1);
    ck_assert_int_eq(field(&cli, "appended_events"), 0);
    cli_done(&cli);
}
END_TEST

Suite *suite_stats(void)
{
    Suite *suite = suite_create("stats");
    TCase *metrics = tcase_create("metrics");
    tcase_add_test(metrics, stats_measures_what_all_processes_wrote_with_units_in_the_names);
    tcase_add_test(metrics, stats_for_people_is_plain_text_off_a_terminal);
    tcase_add_test(metrics, a_store_without_metrics_is_counted_all_the_same);
    suite_add_tcase(suite, metrics);
    return suite;
}
