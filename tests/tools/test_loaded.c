/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that few verbs need: tools/load/library.h. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"
#include "tools/load/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

extern struct library library_archive;

/* The loader of the system takes the first file with that name; this file is empty. */
START_TEST(without_its_library_a_verb_is_refused_and_the_others_work)
{
    char name[100];
    snprintf(name, sizeof name, "libraries/%s", library_archive.file);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "libraries"), 0700), 0);
    file_write(tmpdir_path(&cli.dir, name), "", 0);
    setenv("LD_LIBRARY_PATH", tmpdir_path(&cli.dir, "libraries"), 1);
    cli.own_program = true;
    CLI(&cli, NULL, "export", "--format", "bundle");
    cli_assert_refused(&cli, EXIT_STORAGE, library_archive.file);
    ck_assert_uint_eq(cli.out_len, 0);
    DONE(&cli, "cat", "s1");
    unsetenv("LD_LIBRARY_PATH");
}
END_TEST

Suite *suite_loaded(void)
{
    Suite *suite = suite_create("loaded");
    TCase *tcase = suite_case(suite, "loaded", cli_setup, cli_teardown);
    tcase_add_test(tcase, without_its_library_a_verb_is_refused_and_the_others_work);
    return suite;
}
