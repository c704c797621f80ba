/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned tables, on a terminal and off it; from SQL, which can fill any cell. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void begin(void)
{
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s");
    /* so that no command on a terminal draws how far the index is, as one on a slow machine does */
    DONE(&cli, "sql", "SELECT 1");
}

/* Run the command on a terminal of 30 columns and return its output. */
static char *run_on_terminal(const char *const *words)
{
    struct winsize size = {.ws_row = 10, .ws_col = 30};
    static char text[4000];
    size_t len = 0;
    int terminal, status;
    pid_t pid = forkpty(&terminal, NULL, NULL, &size);
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        setenv("TERM", "xterm", 1);
        cli_exec(&cli, words);
    }
    for (;;) {
        ssize_t count = read(terminal, text + len, sizeof text - 1 - len);
        if (count <= 0)
            break;
        len += (size_t)count;
    }
    text[len] = '\0';
    close(terminal);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    return text;
}

static const char *const wide[] = {"sql", "--format", "table",
                                   "SELECT 'abcdefghijklmnopqrstuvwxyz' AS letters, 'x' AS x,"
                                   " 'abcdefghijklmnop' AS more",
                                   NULL};

START_TEST(a_table_fits_the_terminal_and_its_heading_is_bold)
{
    begin();
    unsetenv("NO_COLOR");
    const char *text = run_on_terminal(wide);
    ck_assert_str_eq(text, "\033[1mletters       x  more\033[0m\r\n"
                           "abcdefghijk\u2026  x  abcdefghijkl\u2026\r\n");
    setenv("NO_COLOR", "1", 1);
    text = run_on_terminal(wide);
    ck_assert_int_eq(strncmp(text, "letters ", 8), 0);
    unsetenv("NO_COLOR");
}
END_TEST

START_TEST(on_a_terminal_sql_prints_wide_rows_as_a_line_per_column)
{
    const char *const words[] = {
        "sql", "SELECT 'abcdefghijklmnopqrstuvwxyz' AS letters, NULL AS x, 2 AS y", NULL};
    begin();
    setenv("NO_COLOR", "1", 1);
    ck_assert_str_eq(run_on_terminal(words), "letters  abcdefghijklmnopqrstu\r\n"
                                             "         vwxyz\r\n"
                                             "x        \r\n"
                                             "y        2\r\n\r\n");
    const char *const narrow[] = {"sql", "SELECT 1 AS one", NULL};
    ck_assert_str_eq(run_on_terminal(narrow), "one\r\n  1\r\n");
    unsetenv("NO_COLOR");
}
END_TEST

START_TEST(numbers_align_right_also_after_a_null)
{
    begin();
    DONE(&cli, "sql", "SELECT * FROM (VALUES (NULL, 'a'), (1000, 'b'), (2, NULL))");
    ck_assert_str_eq(cli.out, "column1  column2\n"
                              "         a\n"
                              "   1000  b\n"
                              "      2  \n");
}
END_TEST

START_TEST(off_a_terminal_nothing_is_coloured)
{
    begin();
    cli_run(&cli, NULL, wide);
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, "letters                     x  more\n"
                              "abcdefghijklmnopqrstuvwxyz  x  abcdefghijklmnop\n");
}
END_TEST

START_TEST(off_a_terminal_columns_sets_the_width)
{
    begin();
    cli.columns = "30";
    cli_run(&cli, NULL, wide);
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, "letters       x  more\n"
                              "abcdefghijk\u2026  x  abcdefghijkl\u2026\n");
}
END_TEST

START_TEST(characters_that_are_wide_or_combine_keep_the_columns)
{
    begin();
    DONE(&cli, "sql", "SELECT * FROM (VALUES ('\u65e5\u672c', 1), ('e\u0301', 2), ('abcd', 3))");
    ck_assert_str_eq(cli.out, "column1  column2\n"
                              "\u65e5\u672c           1\n"
                              "e\u0301              2\n"
                              "abcd           3\n");
}
END_TEST

START_TEST(a_table_longer_than_its_buffer_is_printed_whole)
{
    begin();
    DONE(&cli, "sql",
         "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
         " SELECT i FROM n");
    const char *at = strchr(cli.out, '\n') + 1;
    for (int i = 1; i <= 2000; i++) {
        ck_assert_int_eq(atoi(at), i);
        at = strchr(at, '\n') + 1;
    }
    ck_assert_str_eq(at, "");
}
END_TEST

START_TEST(numbers_keep_their_value_and_json_prints_blobs_as_digits)
{
    begin();
    DONE(&cli, "sql", "--json",
         "SELECT 0.1 AS a, 1e300 * 1e300 AS b, -9223372036854775808 AS c, x'00ff' AS d, 1e22 AS e,"
         " 0.1 + 0.2 AS f");
    ck_assert_str_eq(cli.out, "{\"a\":0.1,\"b\":null,\"c\":-9223372036854775808,\"d\":\"00ff\","
                              "\"e\":1e+22,\"f\":0.30000000000000004}\n");
    CLI(&cli, NULL, "sql", "SELECT x'00ff' AS d");
    ck_assert_str_eq(cli.out, "d\n(2 bytes)\n");
}
END_TEST

Suite *suite_table(void)
{
    Suite *suite = suite_create("table");
    TCase *printing = suite_case(suite, "printing", cli_setup, cli_teardown);
    tcase_add_test(printing, a_table_fits_the_terminal_and_its_heading_is_bold);
    tcase_add_test(printing, on_a_terminal_sql_prints_wide_rows_as_a_line_per_column);
    tcase_add_test(printing, numbers_align_right_also_after_a_null);
    tcase_add_test(printing, off_a_terminal_nothing_is_coloured);
    tcase_add_test(printing, off_a_terminal_columns_sets_the_width);
    tcase_add_test(printing, characters_that_are_wide_or_combine_keep_the_columns);
    tcase_add_test(printing, a_table_longer_than_its_buffer_is_printed_whole);
    tcase_add_test(printing, numbers_keep_their_value_and_json_prints_blobs_as_digits);
    return suite;
}
