/* SPDX-License-Identifier: Apache-2.0 */
/* When two errors are the same. */
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>

/* Outputs as text of SQL, with char(10) as \n, and the line that says what failed. */
static const struct {
    const char *output, *message;
} outputs[] = {
    {"'make: *** No rule'", "make: *** No rule"},
    {"'Exit code 1' || char(10) || 'port 8080 is in use'", "port 8080 is in use"},
    {"'Exit code: 2' || char(10) || 'Wall time: 1 s' || char(10) || 'Output:' || char(10) || "
     "'gone'",
     "gone"},
    {"'Error: cannot open x'", "Error: cannot open x"},
    {"'<tool_use_error>Not found</tool_use_error>'", "Not found"},
    {"char(27) || '[31mred' || char(27) || '[0m alert'", "red alert"},
    {"'Traceback (most recent call last):' || char(10) || '  File \"a.py\", line 3, in f' || "
     "char(10)"
     " || '    return x[1]' || char(10) || 'KeyError: 1'",
     "KeyError: 1"},
    {"'14:05'", "14:05"},
    {"'été'", "été"},
    {"'a < b and <i>c</i>'", "a < b and c"},
    {"''", ""},
};

START_TEST(the_message_is_the_line_that_says_what_failed)
{
    char sql[400], expected[100];
    snprintf(sql, sizeof sql, "SELECT annal_message(%s)", outputs[_i].output);
    snprintf(expected, sizeof expected, "%s\n", outputs[_i].message);
    ck_sql(&f, sql, expected);
}
END_TEST

START_TEST(a_message_ends_before_the_character_that_does_not_fit)
{
    ck_sql(&f,
           "SELECT length(CAST(annal_message(replace(hex(zeroblob(150)), '00', 'é') || 'x') AS "
           "BLOB)), length(CAST(annal_message('x' || replace(hex(zeroblob(150)), '00', 'é')) AS "
           "BLOB))",
           "300|299\n");
    ck_sql(&f, "SELECT annal_message(NULL) IS NULL, annal_pattern(NULL) IS NULL", "1|1\n");
}
END_TEST

static const struct {
    const char *text, *pattern;
} patterns[] = {
    {"port 8080 is in use", "port # is in use"},
    {"Cannot find module ''zod'' in /w/a.ts:12", "cannot find module # in #:#"},
    {"no \"x\" and `y`", "no # and #"},
    {"don''t open ''it''", "don't open #"},
    {"commit 0a1b2c3d4e", "commit #"},
    {"a  b\tc", "a b c"},
    {"''open", "'open"},
    {"TS2304: bad / path", "ts#: bad / path"},
};

START_TEST(a_pattern_leaves_out_what_differs)
{
    char sql[200], expected[100];
    snprintf(sql, sizeof sql, "SELECT annal_pattern('%s')", patterns[_i].text);
    snprintf(expected, sizeof expected, "%s\n", patterns[_i].pattern);
    ck_sql(&f, sql, expected);
}
END_TEST

Suite *suite_message(void)
{
    Suite *suite = suite_create("message");
    TCase *tcase = suite_case(suite, "messages of errors", fixture_setup, fixture_teardown);
    tcase_add_loop_test(tcase, the_message_is_the_line_that_says_what_failed, 0,
                        sizeof outputs / sizeof *outputs);
    tcase_add_test(tcase, a_message_ends_before_the_character_that_does_not_fit);
    tcase_add_loop_test(tcase, a_pattern_leaves_out_what_differs, 0,
                        sizeof patterns / sizeof *patterns);
    return suite;
}
