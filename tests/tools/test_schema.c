/* SPDX-License-Identifier: Apache-2.0 */
/* annal schema: the tables and columns for SQL. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <string.h>

static void set_up(void)
{
    cli_setup();
    CLI(&cli, "{}\n", "append", "s1", "--type", "a");
}

#define ASSERT_OUT(part)                                                                           \
    ck_assert_msg(strstr(cli.out, part) != NULL, "'%s' is not in %s", part, cli.out)

START_TEST(the_tables_of_the_index_and_of_packs_are_listed_with_their_columns)
{
    DONE(&cli, "schema", "--json");
    ASSERT_OUT("{\"table\":\"events\",\"kind\":\"virtual\",\"columns\":[{\"name\":\"session_id\","
               "\"type\":\"TEXT\"},");
    ASSERT_OUT(
        "{\"table\":\"event_counts\",\"kind\":\"view\",\"columns\":[{\"name\":\"session_id\"");
    ck_assert_ptr_null(strstr(cli.out, "\"_"));
    ck_assert_ptr_null(strstr(cli.out, "state."));
    CLI(&cli, NULL, "pack", "enable", "teams");
    CLI(&cli, NULL, "schema", "--json");
    ASSERT_OUT("{\"table\":\"state.teams\",\"kind\":\"table\",\"columns\":[{\"name\":\"id\",");
    /* A view of that pack over tables of a disabled pack. */
    ASSERT_OUT("{\"table\":\"state.run_list\",\"kind\":\"view\",\"columns\":[]}");
    CLI(&cli, NULL, "schema");
    ASSERT_OUT("usage_by_day            view     day, sessions, requests, ");
}
END_TEST

START_TEST(schema_prints_a_row_for_each_column_of_a_table)
{
    DONE(&cli, "schema", "usage_by_model", "--json");
    ck_assert_ptr_eq(strstr(cli.out, "{\"column\":\"model\",\"type\":"), cli.out);
    CLI(&cli, NULL, "pack", "enable", "teams");
    CLI(&cli, NULL, "schema", "state.teams", "--json");
    ASSERT_OUT("{\"column\":\"id\",\"type\":\"TEXT\",\"key\":1}\n");
    CLI(&cli, NULL, "schema", "events", "--json");
    ASSERT_OUT("{\"column\":\"data\",\"type\":\"TEXT\",\"key\":null}\n");
    CLI(&cli, NULL, "schema", "nothing");
    cli_assert_refused(&cli, EXIT_REFUSED, "table 'nothing' does not exist");
}
END_TEST

START_TEST(sql_accepts_dot_tables_and_dot_schema)
{
    CLI(&cli, NULL, "sql", ".tables");
    ASSERT_OUT("usage_by_day ");
    CLI(&cli, NULL, "sql", ".schema sessions");
    ASSERT_OUT("total_tokens ");
    CLI(&cli, NULL, "sql", ".mode box");
    cli_assert_refused(&cli, EXIT_USAGE, "only .tables and .schema TABLE work here");
}
END_TEST

Suite *suite_schema(void)
{
    Suite *suite = suite_create("schema");
    TCase *all = suite_case(suite, "all", set_up, cli_teardown);
    tcase_add_test(all, the_tables_of_the_index_and_of_packs_are_listed_with_their_columns);
    tcase_add_test(all, schema_prints_a_row_for_each_column_of_a_table);
    tcase_add_test(all, sql_accepts_dot_tables_and_dot_schema);
    return suite;
}
