/* SPDX-License-Identifier: Apache-2.0 */
/* Completion in fish and zsh; bash is in test_args.c. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words before the cursor, and which words that begin like the last one are offered: fish 4 also
 * offers words that have its letters further apart. */
static const struct {
    const char *words, *offered;
} completions[] = {
    {"annal re", "reindex repair replay report restore "},
    {"annal pack ch", "check "},
    {"annal help ta", "tail "},
    {"annal query --se", "--seq "},
    {"annal append sess", "sess_1 "},
    {"annal append sess_1 --level o", "os "},
};

START_TEST(fish_offers_the_words_that_may_follow)
{
    const char *words = completions[_i].words;
    char script[2048], line[400] = "";
    if (system("command -v fish >/dev/null") != 0) {
        printf("skipped: there is no fish\n");
        return;
    }
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "sess_1");
    snprintf(script, sizeof script,
             "function annal; '" ANNAL_COMMAND "' $argv; end; source '" ANNAL_SOURCE
             "/tools/completion/annal.fish'; set -x ANNAL_STORE '%s'; "
             "string join -- ' ' (complete -C '%s' | string match -- '%s*' | sort) ''",
             cli.store, words, strrchr(words, ' ') + 1);
    const char *path = tmpdir_path(&cli.dir, "script");
    file_write(path, script, strlen(script));
    snprintf(script, sizeof script, "HOME='%s' fish --no-config '%s'", cli.dir.path, path);
    FILE *fish = popen(script, "r");
    ck_assert_ptr_nonnull(fgets(line, sizeof line, fish));
    ck_assert_int_eq(pclose(fish), 0);
    line[strcspn(line, "\n")] = '\0';
    ck_assert_str_eq(line, completions[_i].offered);
}
END_TEST

START_TEST(zsh_reads_its_completion)
{
    if (system("command -v zsh >/dev/null") != 0) {
        printf("skipped: there is no zsh\n");
        return;
    }
    ck_assert_int_eq(system("zsh -n '" ANNAL_SOURCE "/tools/completion/_annal'"), 0);
}
END_TEST

Suite *suite_completion(void)
{
    Suite *suite = suite_create("completion");
    TCase *all = suite_case(suite, "all", cli_setup, cli_teardown);
    tcase_add_loop_test(all, fish_offers_the_words_that_may_follow, 0,
                        sizeof completions / sizeof completions[0]);
    tcase_add_test(all, zsh_reads_its_completion);
    return suite;
}
