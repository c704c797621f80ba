/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void setup(void)
{
    cli_setup();
    CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
}

START_TEST(a_stored_artifact_has_an_event_and_is_listed_and_printed)
{
    DONE_WITH(&cli, "abc", "artifact", "put", "s1", "-", "--media-type", "text/plain", "--json");
    ck_assert_str_eq(cli.out,
                     "{\"session_id\":\"s1\",\"seq\":2,\"type\":\"artifact.stored\",\"data\":{"
                     "\"media_type\":\"text/plain\",\"sha256\":\"" ABC "\",\"bytes\":3,"
                     "\"path\":\"artifacts/s1/" ABC ".zst\"}}\n");
    CLI(&cli, NULL, "artifact", "ls", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"session_id\":\"s1\",\"sha256\":\"" ABC "\","));
    CLI(&cli, NULL, "artifact", "get", "s1", ABC);
    ck_assert_str_eq(cli.out, "abc");
    CLI(&cli, NULL, "sql", "--json", "SELECT path, bytes FROM artifacts");
    ck_assert_str_eq(cli.out, "{\"path\":\"artifacts/s1/" ABC ".zst\",\"bytes\":3}\n");
    DONE(&cli, "verify");
    ck_assert_ptr_nonnull(strstr(cli.out, "artifacts: 1, checked against their hashes"));
}
END_TEST

START_TEST(a_damaged_or_missing_artifact_is_reported_and_never_printed)
{
    const char *path = tmpdir_path(&cli.dir, "store/artifacts/s1/" ABC ".zst");
    CLI(&cli, "abc", "artifact", "put", "s1", "-");
    file_write(path, "abc", 3);
    CLI(&cli, NULL, "artifact", "get", "s1", ABC);
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_str_eq(cli.out, "");
    CLI(&cli, NULL, "verify");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "s1: artifact "));
    ck_assert_int_eq(unlink(path), 0);
    CLI(&cli, NULL, "verify");
    ck_assert_ptr_nonnull(strstr(cli.out, ": an artifact is missing: artifacts/s1/"));
    CLI(&cli, NULL, "artifact", "get", "s1", ABC);
    cli_assert_refused(&cli, EXIT_REFUSED, "has no artifact");
}
END_TEST

START_TEST(a_sweep_and_a_deletion_remove_unreferenced_artifacts)
{
    const char *stray = tmpdir_path(&cli.dir, "store/artifacts/s1/" ABC ".zst");
    CLI(&cli, "xyz", "artifact", "put", "s1", "-");
    file_write(stray, "not named", 9);
    CLI(&cli, NULL, "artifact", "sweep");
    ck_assert_ptr_nonnull(strstr(cli.out, "removed 0 of 2"));
    CLI(&cli, NULL, "artifact", "sweep", "--older-than", "0s", "--dry-run");
    ck_assert_ptr_nonnull(strstr(cli.out, "would remove 1 of 2"));
    CLI(&cli, NULL, "artifact", "sweep", "--older-than", "0s");
    ck_assert_ptr_nonnull(strstr(cli.out, "removed 1 of 2"));
    DONE(&cli, "delete", "s1");
    CLI(&cli, NULL, "artifact", "ls", "--json");
    ck_assert_str_eq(cli.out, "");
}
END_TEST

Suite *suite_artifact(void)
{
    Suite *suite = suite_create("artifact");
    TCase *tcase = suite_case(suite, "artifact", setup, cli_teardown);
    tcase_add_test(tcase, a_stored_artifact_has_an_event_and_is_listed_and_printed);
    tcase_add_test(tcase, a_damaged_or_missing_artifact_is_reported_and_never_printed);
    tcase_add_test(tcase, a_sweep_and_a_deletion_remove_unreferenced_artifacts);
    return suite;
}
