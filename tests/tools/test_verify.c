/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <string.h>
#include <sys/stat.h>

/* SQLite 3.40 reports NULL in columns of such tables that contain no NULL. */
START_TEST(a_table_whose_key_is_not_its_first_columns_is_not_damaged)
{
    static const char pack[] =
        "-- pack keyed   version 1   database keyed.db\n"
        "CREATE TABLE \"key ed\" (session_id TEXT NOT NULL, \"a \"\"b\" INTEGER NOT NULL,\n"
        "  n TEXT NOT NULL, PRIMARY KEY (n, session_id)) WITHOUT ROWID;\n"
        "CREATE TABLE free (session_id TEXT, n TEXT PRIMARY KEY NOT NULL);\n"
        "-- on n\nINSERT INTO \"key ed\" VALUES (:session, :seq, $text);\n";
    ck_assert_int_eq(mkdir(cli.store, 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "store/packs"), 0700), 0);
    file_write(tmpdir_path(&cli.dir, "store/packs/keyed.sql"), pack, strlen(pack));
    DONE_WITH(&cli, "{\"text\":\"one\"}\n", "append", "s00", "--type", "n");
    DONE(&cli, "sql", "--json", "SELECT count(*) AS n FROM \"key ed\"");
    DONE(&cli, "verify");
    ck_assert_ptr_nonnull(strstr(cli.out, "nothing found\n"));
    cli_change_database(&cli, "keyed.db",
                        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = "
                        "replace(sql, 'KEY NOT NULL', 'KEY') WHERE name = 'free'; "
                        "PRAGMA writable_schema = RESET; INSERT INTO free (session_id) VALUES "
                        "('s00'); PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = "
                        "replace(sql, 'PRIMARY KEY)', 'PRIMARY KEY NOT NULL)') "
                        "WHERE name = 'free'; PRAGMA writable_schema = RESET");
    CLI(&cli, NULL, "verify");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "a NOT NULL column contains NULL"));
}
END_TEST

Suite *suite_verify(void)
{
    Suite *suite = suite_create("verify");
    TCase *command = suite_case(suite, "command", cli_setup, cli_teardown);
    tcase_add_test(command, a_table_whose_key_is_not_its_first_columns_is_not_damaged);
    return suite;
}
