/* SPDX-License-Identifier: Apache-2.0 */
/* Stores that several users share: modes, and journals that one of them may not read. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534

static const char *in_store(const char *name)
{
    char inside[100];
    snprintf(inside, sizeof inside, "store/%s", name);
    return tmpdir_path(&cli.dir, inside);
}

static unsigned mode_of(const char *name)
{
    struct stat info;
    ck_assert_msg(lstat(in_store(name), &info) == 0, "%s", name);
    return (unsigned)info.st_mode & 07777;
}

START_TEST(new_files_are_for_the_group_that_may_write_the_directory_of_the_store)
{
    static const struct {
        mode_t store;
        unsigned file, directory;
    } cases[] = {{02770, 0660, 02770}, {0770, 0660, 0770}, {0700, 0600, 0700},
                 {0755, 0600, 0700},   {0750, 0600, 0700}, {01777, 0660, 0770}};
    static const char *const files[] = {"events/s1.jsonl", "sessions.db", "commit/00.log",
                                        "locks/index", "search.db"};
    mode_t mask = umask(077);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(mkdir(in_store(""), 0700), 0);
        ck_assert_int_eq(chmod(in_store(""), cases[i].store), 0);
        CLI(&cli, "{\"text\":\"tide\"}\n", "append", "s1", "--type", "message.user");
        ck_assert_int_eq(cli.exit_status, EXIT_DONE);
        DONE(&cli, "search", "tide");
        DONE(&cli, "ls");
        for (size_t f = 0; f < sizeof files / sizeof *files; f++)
            ck_assert_msg(mode_of(files[f]) == cases[i].file, "%o: %s is %o", cases[i].store,
                          files[f], mode_of(files[f]));
        ck_assert_uint_eq(mode_of("events"), cases[i].directory);
        ck_assert_int_eq(rename(in_store(""), tmpdir_path(&cli.dir, "old")), 0);
        char command[300];
        snprintf(command, sizeof command, "rm -rf %s", tmpdir_path(&cli.dir, "old"));
        ck_assert_int_eq(system(command), 0);
    }
    umask(mask);
}
END_TEST

START_TEST(a_session_that_may_not_be_read_is_named_and_the_others_are_answered)
{
    static const struct {
        const char *words[5];
        const char *answer;
    } questions[] = {
        {{"ls"}, "seen"},
        {{"query"}, "harbour"},
        {{"query", "--count"}, "1\n"},
        {{"sql", "--format", "jsonl", "SELECT count(*) AS n FROM events"}, "{\"n\":1}\n"},
        {{"search", "harbour"}, "harbour"},
        {{"report"}, "seen"},
        {{"export", "--format", "jsonl"}, "harbour"},
        {{"verify"}, "hidden"},
        {{"doctor"}, "hidden"},
    };
    char command[400];
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: only root can give a file to another user\n");
        return;
    }
    CLI(&cli, "{\"text\":\"harbour\"}\n", "append", "seen", "--type", "message.user");
    CLI(&cli, "{\"text\":\"secret\"}\n", "append", "hidden", "--type", "message.user");
    snprintf(command, sizeof command, "chown -R %d %s", NOBODY, cli.store);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(chown(in_store("events/hidden.jsonl"), 0, 0), 0);
    ck_assert_int_eq(chmod(cli.dir.path, 0755), 0);
    cli.as_nobody = true;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        cli_run(&cli, NULL, questions[i].words);
        if (cli.exit_status == EXIT_STORAGE && i == 0) {
            fprintf(stderr, "skipped: the command cannot be run as another user here\n");
            return;
        }
        ck_assert_msg(cli.exit_status == EXIT_REFUSED, "%s: %d %s", questions[i].words[0],
                      cli.exit_status, cli.err);
        ck_assert_msg(strstr(cli.out, questions[i].answer) != NULL, "%s: %s", questions[i].words[0],
                      cli.out);
        ck_assert_msg(strstr(cli.err, "'hidden'") != NULL || strstr(cli.out, "'hidden'") != NULL,
                      "%s: %s", questions[i].words[0], cli.err);
    }
}
END_TEST

Suite *suite_shared(void)
{
    Suite *suite = suite_create("shared");
    TCase *tests = suite_case(suite, "shared", cli_setup, cli_teardown);
    tcase_add_test(tests, new_files_are_for_the_group_that_may_write_the_directory_of_the_store);
    tcase_add_test(tests, a_session_that_may_not_be_read_is_named_and_the_others_are_answered);
    return suite;
}
