/* SPDX-License-Identifier: Apache-2.0 */
/* annal pack, and the effect of packs on other verbs. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

START_TEST(a_failed_line_of_a_pack_test_is_reported_and_the_next_ones_run)
{
    static const char pack[] =
        "-- pack t   version 1   database t.db\n"
        "CREATE TABLE t (session_id TEXT, a);\n"
        "-- on a   guarded \"no more than two\"\n"
        "INSERT INTO t SELECT :session, $x WHERE (SELECT count(*) FROM t) < 2;\n"
        "-- on b\nINSERT INTO t SELECT :session, count(*) FROM t;\n"
        "-- forget\nDELETE FROM t WHERE session_id = :session;\n";
    static const char good[] = "-- cases\npack t.sql\nin s\n\n== good\n> a {\"x\":\"1\\n2\"}\n"
                               "> a {\"x\":\"\"}\n! a {}\n  more than\n"
                               "? SELECT a\n  FROM t\n1⏎2\n(empty)\n\n"
                               "watch SELECT count(*) FROM t\n= c {}\nfindings 0\nrebuild\n";
    static const char bad[] =
        "pack t.sql\nin z\n\n== bad\n> a {}\n? SELECT a FROM t\n1\n\n"
        "! a {}\n  no more\n! a {}\n  other words\n> a {}\n"
        "watch SELECT count(*) FROM t\n= b {}\nin a\n~ b {}\nin z\n~ b {}\nrebuild\n"
        "findings 3\nfrob\n? SELECT b FROM t\n\n== fine\n";
    const char *file = tmpdir_path(&cli.dir, "t.test");
    file_write(tmpdir_path(&cli.dir, "t.sql"), pack, sizeof pack - 1);
    file_write(file, good, sizeof good - 1);
    DONE(&cli, "pack", "test", file);
    ck_assert_ptr_nonnull(strstr(cli.out, "t.test: 1 cases, 0 failed\n"));
    file_write(file, bad, sizeof bad - 1);
    CLI(&cli, NULL, "pack", "test", file, "--json");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"cases\":2,\"failed\":1}\n"));
    static const char *const said[] = {
        "t.test:6: other rows\nannal:     expected: 1\nannal:     got: NULL\n",
        "t.test:10: expected a refusal, 'no more', and got: appended",
        "t.test:12: expected a refusal, 'other words', and got: no more than two",
        "t.test:13: no more than two",
        "t.test:15: the event changed the rows\nannal:     expected: 2\nannal:     got: 3\n",
        "t.test:20: a rebuild gives other rows",
        "t.test:21: expected 3 findings, got",
        "t.test:22: 'frob' does not begin",
        "t.test:23: SQL: no such column: b",
        "t.test:4: this case failed: bad\n"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        ck_assert_msg(strstr(cli.err, said[i]) != NULL, "%s: %s", said[i], cli.err);
    file_write(file, "== a\n\n\0> b {}\n", 14);
    CLI(&cli, NULL, "pack", "test", file);
    cli_assert_refused(&cli, EXIT_REFUSED, "t.test:3: a NUL byte: a test file must be");
    file_write(tmpdir_path(&cli.dir, "t.sql"), pack, sizeof pack);
    CLI(&cli, NULL, "pack", "check", tmpdir_path(&cli.dir, "t.sql"));
    cli_assert_refused(&cli, EXIT_REFUSED, "t.sql:9: a NUL byte: a pack must be a text file");
    file_write(file, "in s\n", 5);
    CLI(&cli, NULL, "pack", "test", file);
    cli_assert_refused(&cli, EXIT_REFUSED, "has no case");
}
END_TEST

Suite *suite_pack(void)
{
    Suite *suite = suite_create("pack");
    TCase *tcase = suite_case(suite, "pack", cli_setup, cli_teardown);
    tcase_add_test(tcase, a_failed_line_of_a_pack_test_is_reported_and_the_next_ones_run);
    return suite;
}
