/* annal pack, and the packs of a store as the command sees them. */
#include "tests/tools/cli.h"
#include "tools/command.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char notes[] =
    "-- pack notes   version 1   database notes.db\n"
    "CREATE TABLE notes (session_id TEXT, seq INTEGER, text TEXT NOT NULL,\n"
    "                    PRIMARY KEY (session_id, seq));\n"
    "-- on note.added\n"
    "INSERT INTO notes VALUES (:session, :seq, $text);\n"
    "-- forget\n"
    "DELETE FROM notes WHERE session_id = :session;\n";

static void init_with_events(struct cli *cli)
{
    CLI_INIT(cli);
    CLI(cli, "{\"text\":\"one\"}\n{\"text\":\"two\"}\n", "append", "s1", "--type", "note.added");
    cli_assert_done(cli);
}

/* A pack of the user's, as STORE/packs/NAME.sql. */
static void drop(struct cli *cli, const char *name, const char *text)
{
    char path[300];
    mkdir(tmpdir_path(&cli->dir, "store/packs"), 0700);
    snprintf(path, sizeof path, "store/packs/%s.sql", name);
    file_write(tmpdir_path(&cli->dir, path), text, strlen(text));
}

START_TEST(check_says_what_a_pack_is_or_what_is_wrong_with_file_and_line)
{
    struct cli cli;
    CLI_INIT(&cli);
    const char *good = tmpdir_path(&cli.dir, "notes.sql"), *bad = tmpdir_path(&cli.dir, "bad.sql");
    char where[300];
    file_write(good, notes, strlen(notes));
    CLI(&cli, NULL, "pack", "check", good);
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out,
                     "pack notes, version 1, database notes.db: its statements are sound\n");
    CLI(&cli, NULL, "pack", "check", good, "--json");
    ck_assert_str_eq(cli.out, "{\"pack\":\"notes\",\"version\":1,\"database\":\"notes.db\"}\n");
    file_write(
        bad, "-- pack bad version 1 database b.db\n-- on a\nSELECT 1;\nINSERT INTO t VALUES (1);\n",
        76);
    CLI(&cli, NULL, "pack", "check", bad);
    snprintf(where, sizeof where, "%s:4: ", bad);
    cli_assert_refused(&cli, EXIT_REFUSED, where);
    CLI(&cli, NULL, "pack", "check", bad, good);
    cli_assert_refused(&cli, EXIT_REFUSED, where);
    ck_assert_ptr_nonnull(strstr(cli.out, "pack notes"));
    cli_done(&cli);
}
END_TEST

START_TEST(a_file_in_packs_is_on_and_its_tables_follow)
{
    struct cli cli;
    init_with_events(&cli);
    drop(&cli, "notes", notes);
    CLI(&cli, NULL, "sql", "--json", "SELECT seq, text FROM notes");
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, "{\"seq\":1,\"text\":\"one\"}\n{\"seq\":2,\"text\":\"two\"}\n");
    CLI(&cli, "{\"text\":\"three\"}\n", "append", "s2", "--type", "note.added");
    CLI(&cli, NULL, "sql", "--json", "SELECT count(*) AS n FROM notes.notes");
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, "{\"n\":3}\n");
    cli_done(&cli);
}
END_TEST

START_TEST(a_pack_is_enabled_once_and_disabled_once)
{
    struct cli cli;
    init_with_events(&cli);
    CLI(&cli, NULL, "pack", "enable", "teams");
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, "pack teams is enabled\n");
    CLI(&cli, NULL, "sql", "--json", "SELECT count(*) AS n FROM teams");
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, "{\"n\":0}\n");
    CLI(&cli, NULL, "pack", "enable", "teams", "--json");
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, "{\"name\":\"teams\",\"enabled\":true}\n");
    CLI(&cli, NULL, "pack", "disable", "teams");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "sql", "SELECT count(*) AS n FROM teams");
    cli_assert_refused(&cli, EXIT_REFUSED, "teams");
    CLI(&cli, NULL, "pack", "disable", "teams");
    cli_assert_refused(&cli, EXIT_REFUSED, "teams");
    CLI(&cli, NULL, "pack", "enable", "teems");
    cli_assert_refused(&cli, EXIT_REFUSED, "teems");
    cli_done(&cli);
}
END_TEST

START_TEST(enabling_a_pack_makes_the_store)
{
    struct cli cli;
    CLI_INIT(&cli);
    CLI(&cli, NULL, "pack", "disable", "teams");
    cli_assert_refused(&cli, EXIT_STORAGE, "there is no store");
    CLI(&cli, NULL, "pack", "enable", "teams");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "team", "create", "review", "--id", "t1", "--member", "ada");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "sql", "--json", "SELECT id, name, member_count FROM teams");
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, "{\"id\":\"t1\",\"name\":\"review\",\"member_count\":1}\n");
    cli_done(&cli);
}
END_TEST

Suite *suite_pack(void)
{
    Suite *suite = suite_create("pack");
    TCase *tcase = tcase_create("pack");
    tcase_add_test(tcase, check_says_what_a_pack_is_or_what_is_wrong_with_file_and_line);
    tcase_add_test(tcase, a_file_in_packs_is_on_and_its_tables_follow);
    tcase_add_test(tcase, a_pack_is_enabled_once_and_disabled_once);
    tcase_add_test(tcase, enabling_a_pack_makes_the_store);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return suite;
}
