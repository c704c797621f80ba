/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void setup(void)
{
    cli_setup();
    CLI(&cli,
        "{\"type\":\"note.added\",\"id\":\"a\",\"data\":{\"n\":1}}\n"
        "{\"type\":\"note.added\",\"data\":[1,2,3]}\n",
        "append", "s1");
}

START_TEST(a_converted_session_gives_the_same_answers)
{
    CLI(&cli, NULL, "cat", "s1");
    char *before = strdup(cli.out);
    DONE(&cli, "convert", "s1", "--format", "msgpack");
    ck_assert_ptr_nonnull(
        strstr(cli.out, "converted s1 to msgpack: 2 events compared, all the same; "));
    ck_assert_int_eq(access(tmpdir_path(&cli.dir, "store/events/s1.mpk"), F_OK), 0);
    ck_assert_int_eq(access(tmpdir_path(&cli.dir, "store/events/s1.jsonl"), F_OK), -1);
    CLI(&cli, NULL, "cat", "s1");
    ck_assert_str_eq(cli.out, before);
    CLI(&cli, NULL, "query", "--count", "s1");
    ck_assert_str_eq(cli.out, "2\n");
    CLI(&cli, NULL, "verify");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    CLI(&cli, NULL, "convert", "s1", "--format", "msgpack");
    ck_assert_str_eq(cli.out, "s1 is msgpack already\n");
    CLI(&cli, NULL, "--json", "convert", "s1", "--format", "jsonl");
    ck_assert_ptr_nonnull(strstr(
        cli.out,
        "{\"session_id\":\"s1\",\"format\":\"jsonl\",\"events_compared\":2,\"bytes_before\":"));
    CLI(&cli, NULL, "cat", "s1");
    ck_assert_str_eq(cli.out, before);
    free(before);
}
END_TEST

/* The snapshot belongs to the replaced journal; no process has dropped it. */
START_TEST(a_snapshot_left_by_an_interrupted_conversion_is_not_damage)
{
    static const char *const files[] = {"sessions.db", "sessions.db-wal"};
    char *bytes[2];
    size_t len[2];
    CLI(&cli, NULL, "snapshot", "s1");
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "store/%s", files[i]);
        bytes[i] = file_read(tmpdir_path(&cli.dir, name), &len[i]);
    }
    CLI(&cli, NULL, "convert", "s1", "--format", "msgpack");
    unlink(tmpdir_path(&cli.dir, "store/sessions.db-shm"));
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "store/%s", files[i]);
        file_write(tmpdir_path(&cli.dir, name), bytes[i], len[i]);
        free(bytes[i]);
    }
    CLI(&cli, NULL, "snapshot", "list", "s1", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "the snapshot belongs to a different journal"));
    DONE(&cli, "verify");
    ck_assert_ptr_nonnull(strstr(cli.out, "nothing found"));
    CLI(&cli, NULL, "verify", "--replay");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    CLI(&cli, NULL, "snapshot", "s1"); /* the next snapshot removes the stale one */
    CLI(&cli, NULL, "snapshot", "list", "s1", "--json");
    ck_assert_ptr_null(strstr(cli.out, "a different journal"));
}
END_TEST

START_TEST(a_conversion_of_a_missing_or_damaged_session_is_refused)
{
    size_t len;
    CLI(&cli, NULL, "convert", "s1");
    cli_assert_refused(&cli, EXIT_USAGE, "--format");
    CLI(&cli, NULL, "convert", "s1", "--format", "xml");
    cli_assert_refused(&cli, EXIT_USAGE, "xml");
    CLI(&cli, NULL, "convert", "none", "--format", "msgpack");
    cli_assert_refused(&cli, EXIT_REFUSED, "there is no session 'none'");
    char *bytes = cli_journal(&cli, "s1", &len);
    bytes[len / 2] ^= 1;
    cli_journal_write(&cli, "s1", bytes, len);
    free(bytes);
    CLI(&cli, NULL, "convert", "s1", "--format", "msgpack");
    cli_assert_refused(&cli, EXIT_REFUSED, "annal repair s1 --to NEW");
}
END_TEST

Suite *suite_convert(void)
{
    Suite *suite = suite_create("convert");
    TCase *convert = suite_case(suite, "convert", setup, cli_teardown);
    tcase_add_test(convert, a_converted_session_gives_the_same_answers);
    tcase_add_test(convert, a_snapshot_left_by_an_interrupted_conversion_is_not_damage);
    tcase_add_test(convert, a_conversion_of_a_missing_or_damaged_session_is_refused);
    return suite;
}
