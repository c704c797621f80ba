/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include <stdlib.h>
#include <string.h>

#define OF(list) " FROM (SELECT value AS x FROM json_each('" list "'))"

START_TEST(percentiles_interpolate_between_two_values)
{
    ck_sql(&f, "SELECT median(x)" OF("[3, 1, 2]"), "2\n");
    ck_sql(&f, "SELECT median(x)" OF("[4, 1, 2, 3]"), "2.5\n");
    ck_sql(&f, "SELECT percentile(x, 0), percentile(x, 25), percentile(x, 100)" OF("[1, 2, 4, 8]"),
           "1|1.75|8\n");
    ck_sql(&f, "SELECT percentile(x, 90)" OF("[0, 10]"), "9\n");
    ck_sql(&f,
           "WITH RECURSIVE n(x) AS (SELECT 1001 UNION ALL SELECT x - 1 FROM n WHERE x > 1) "
           "SELECT median(x), percentile(x, 10) FROM n",
           "501|101\n");
}
END_TEST

START_TEST(stddev_is_the_deviation_of_a_sample)
{
    ck_sql(&f, "SELECT stddev(x)" OF("[2, 4, 4, 4, 5, 5, 7, 9]"), "2.13809\n");
    ck_sql(&f, "SELECT stddev(x)" OF("[1000000000001, 1000000000002, 1000000000003]"), "1\n");
    ck_sql(&f, "SELECT stddev(x) IS NULL" OF("[7]"), "1\n");
}
END_TEST

START_TEST(aggregates_skip_nulls_and_give_null_without_values)
{
    ck_sql(&f, "SELECT median(x), percentile(x, 50), stddev(x)" OF("[null, 5, null, 7]"),
           "6|6|1.41421\n");
    ck_sql(&f, "SELECT median(x) IS NULL, percentile(x, 1) IS NULL" OF("[null]"), "1|1\n");
    ck_sql(&f, "SELECT median(x) IS NULL" OF("[]"), "1\n");
}
END_TEST

static void ck_error(const char *sql, const char *message)
{
    struct text text = {0};
    annal_error err = {0};
    annal_status status =
        annal_index_sql(f.index, annal_slice_of(sql), NULL, text_row, &text, &err);
    free(text.ptr);
    ck_assert_msg(status == ANNAL_ERR_SQL && strstr(err.message, message) != NULL, "%s: %s", sql,
                  err.message);
}

START_TEST(text_and_wrong_percents_are_errors)
{
    ck_error("SELECT median(x)" OF("[1, \"a\", 2]"), "accept only numbers");
    ck_error("SELECT percentile(x, 101)" OF("[1, 2]"), "from 0 to 100");
    ck_error("SELECT percentile(x, -1)" OF("[1, 2]"), "from 0 to 100");
    ck_error("SELECT percentile(x, 'a')" OF("[1, 2]"), "from 0 to 100");
    ck_error("SELECT percentile(x, NULL)" OF("[1, 2]"), "from 0 to 100");
    ck_error("SELECT percentile(x, x)" OF("[1, 2]"), "must be one number");
}
END_TEST

Suite *suite_statistics(void)
{
    Suite *suite = suite_create("statistics");
    TCase *all = suite_case(suite, "all", fixture_setup, fixture_teardown);
    tcase_add_test(all, percentiles_interpolate_between_two_values);
    tcase_add_test(all, stddev_is_the_deviation_of_a_sample);
    tcase_add_test(all, aggregates_skip_nulls_and_give_null_without_values);
    tcase_add_test(all, text_and_wrong_percents_are_errors);
    return suite;
}
