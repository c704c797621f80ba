/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Find the number after "name": in the output of --json. */
static long long field(const char *name)
{
    char key[80];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(cli.out, key);
    ck_assert_msg(at != NULL, "no %s in %s", key, cli.out);
    return strtoll(at + strlen(key), NULL, 10);
}

START_TEST(stats_sums_the_writes_of_all_processes_with_units_in_the_names)
{
    CLI(&cli, "1\n2\n3\n", "append", "s1", "--type", "n");
    CLI(&cli, "4\n", "append", "s2", "--type", "n");
    CLI(&cli, NULL, "stats", "--json");
    cli_assert_done(&cli);
    ck_assert_int_eq(field("appended_events"), 4);
    ck_assert_int_eq(field("payload_bytes"), 4);
    /* On a busy machine, the first command may write its lines in up to three groups. */
    const long long groups = field("groups");
    ck_assert(groups >= 2 && groups <= 4);
    ck_assert_int_eq(field("group_events_count"), groups);
    ck_assert(field("group_events_max") >= 1 && field("group_events_max") <= 3);
    ck_assert_int_gt(field("sync_us_p50"), 0);
    ck_assert_int_ge(field("sync_us_max"), field("sync_us_p99"));
    ck_assert_int_gt(field("written_bytes_per_payload_byte"), 1);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"group_events_buckets\":[{\"up_to\":1,\"count\":"));
}
END_TEST

START_TEST(stats_for_people_is_plain_text_off_a_terminal)
{
    CLI(&cli, "1\n2\n", "append", "s1", "--type", "n");
    CLI(&cli, NULL, "stats");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "sync of a group"));
    for (const char *c = cli.out; *c != '\0'; c++)
        ck_assert_int_eq(*c & 0x80, 0);
}
END_TEST

START_TEST(stats_counts_a_store_without_metrics)
{
    CLI(&cli, "1\n", "append", "s1", "--type", "n");
    ck_assert_int_eq(unlink(tmpdir_path(&cli.dir, "store/locks/metrics")), 0);
    CLI(&cli, NULL, "stats", "--json");
    cli_assert_done(&cli);
    ck_assert_int_eq(field("events"), 1);
    ck_assert_int_eq(field("appended_events"), 0);
}
END_TEST

START_TEST(stats_reports_a_missing_database_and_does_not_create_it)
{
    CLI(&cli, "1\n2\n", "append", "s1", "--type", "n");
    unlink(tmpdir_path(&cli.dir, "store/sessions.db"));
    CLI(&cli, NULL, "stats");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "sessions.db does not exist yet"));
    ck_assert_ptr_nonnull(strstr(cli.out, "events         2"));
    ck_assert_int_ne(access(tmpdir_path(&cli.dir, "store/sessions.db"), F_OK), 0);
    CLI(&cli, NULL, "stats", "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"database\":\"sessions.db\",\"exists\":false"));
    ck_assert_int_ne(access(tmpdir_path(&cli.dir, "store/sessions.db"), F_OK), 0);
}
END_TEST

START_TEST(stats_prints_sizes_rows_statuses_and_settings_of_each_database)
{
    CLI(&cli, "{}\n", "append", "s1", "--type", "session.created");
    CLI(&cli, NULL, "pack", "enable", "lionagi");
    CLI(&cli, NULL, "ls");
    CLI(&cli, NULL, "sql", "SELECT count(*) FROM messages");
    CLI(&cli, NULL, "stats", "--json");
    cli_assert_done(&cli);
    ck_assert_int_eq(field("busy_timeout"), 10000);
    ck_assert_int_eq(field("foreign_keys"), 1);
    ck_assert_int_eq(field("wal_autocheckpoint"), 1000);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"journal_mode\":\"wal\""));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"synchronous\":\"NORMAL\""));
    ck_assert_ptr_nonnull(
        strstr(cli.out, "{\"database\":\"state.db\",\"table\":\"message_types\",\"rows\":6}"));
    ck_assert_ptr_nonnull(
        strstr(cli.out, "{\"database\":\"state.db\",\"status\":null,\"sessions\":1}"));
    ck_assert_ptr_nonnull(
        strstr(cli.out, "{\"database\":\"sessions.db\",\"status\":\"idle\",\"sessions\":1}"));
}
END_TEST

START_TEST(all_modes_of_a_checkpoint_print_busy_log_and_checkpointed)
{
    static const char *const modes[] = {"TRUNCATE", "PASSIVE", "RESTART", "FULL"};
    CLI(&cli, "{}\n", "append", "s1", "--type", "session.created");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        CLI(&cli, NULL, "ls");
        CLI(&cli, NULL, "checkpoint", "--mode", modes[i], "--json");
        cli_assert_done(&cli);
        ck_assert_int_eq(field("busy"), 0);
        ck_assert_int_ge(field("log"), 0);
        ck_assert_int_eq(field("checkpointed"), field("log"));
    }
    CLI(&cli, NULL, "checkpoint", "--mode", "SLOW");
    ck_assert_int_eq(cli.exit_status, 2);
    CLI(&cli, NULL, "vacuum");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "sql", "SELECT id FROM sessions");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "s1"));
}
END_TEST

Suite *suite_stats(void)
{
    Suite *suite = suite_create("stats");
    TCase *metrics = suite_case(suite, "metrics", cli_setup, cli_teardown);
    tcase_add_test(metrics, stats_sums_the_writes_of_all_processes_with_units_in_the_names);
    tcase_add_test(metrics, stats_for_people_is_plain_text_off_a_terminal);
    tcase_add_test(metrics, stats_counts_a_store_without_metrics);
    tcase_add_test(metrics, stats_reports_a_missing_database_and_does_not_create_it);
    tcase_add_test(metrics, stats_prints_sizes_rows_statuses_and_settings_of_each_database);
    tcase_add_test(metrics, all_modes_of_a_checkpoint_print_busy_log_and_checkpointed);
    return suite;
}
