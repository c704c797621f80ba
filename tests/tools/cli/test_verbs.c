/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the verbs; tests/commands/verbs.test and user_verbs.test have what they do. */
#include "journal/base/json_walk.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/verbs.h"
#include "tools/cli/width.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(members_are_found_by_their_path)
{
    annal_slice object =
        ANNAL_SLICE(" { \"a\" : {\"b\":[1,{\"c\":2}],\"d\":\"}\\\"\"} , \"e\":null } ");
    ck_assert_uint_eq(annal__json_member(object, "a.b").len, 11);
    ck_assert_int_eq(memcmp(annal__json_member(object, "a.d").ptr, "\"}\\\"\"", 5), 0);
    ck_assert_uint_eq(annal__json_member(object, "e").len, 4);
    ck_assert_ptr_null(annal__json_member(object, "f").ptr);
    ck_assert_ptr_null(annal__json_member(object, "e.x").ptr);
    ck_assert_ptr_null(annal__json_member(ANNAL_SLICE("7"), "e").ptr);
    ck_assert_ptr_null(annal__json_member(ANNAL_SLICE("{}"), "e").ptr);
}
END_TEST

/* Build the help of every verb of a noun, each after a form feed; free() it. */
static char *all_help(void)
{
    const char *out = tmpdir_path(&cli.dir, "help");
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
        for (size_t i = 0; noun_at(i) != NULL; i++) {
            for (const struct command *verb = noun_at(i)->verbs; verb->name != NULL; verb++) {
                putchar('\f');
                help_print_command(noun_at(i), verb);
            }
        }
        fflush(stdout);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return file_read(out, NULL);
}

START_TEST(every_verb_of_two_words_has_help_that_fits_and_is_in_the_manual)
{
    DONE(&cli, "help", "--man");
    char *help = all_help(), *pages = NULL, *lines = NULL;
    char *page = strtok_r(help, "\f", &pages);
    const struct noun *noun;
    for (size_t i = 0; (noun = noun_at(i)) != NULL; i++) {
        const struct command *verb = noun->verbs;
        for (; verb->name != NULL; verb++, page = strtok_r(NULL, "\f", &pages)) {
            char text[100];
            snprintf(text, sizeof text, "annal %s %s", noun->name, verb->name);
            ck_assert_ptr_nonnull(page);
            ck_assert_ptr_eq(strstr(page, text), page);
            char *examples = strstr(page, "examples:\n");
            ck_assert_msg(examples != NULL && strstr(examples, text) != NULL,
                          "%s: its example must begin with '%s'", text, text);
            ck_assert_ptr_nonnull(strstr(cli.out, text));
            for (char *line = strtok_r(page, "\n", &lines); line != NULL;
                 line = strtok_r(NULL, "\n", &lines))
                ck_assert_msg(width_of_text(line) <= 80, "%s: %d columns, more than 80: %s", text,
                              width_of_text(line), line);
        }
    }
    free(help);
}
END_TEST

/* Each table is complete: a session for each event, distinct names, existing parameters. */
START_TEST(the_tables_of_the_verbs_are_sound)
{
    const struct noun *noun;
    for (size_t i = 0; (noun = noun_at(i)) != NULL; i++) {
        for (const struct command *verb = noun->verbs; verb->name != NULL; verb++) {
            const struct option *option, *other;
            ck_assert_msg(verb->run != NULL && verb->examples != NULL,
                          "annal %s %s: needs a line 'example'", noun->name, verb->name);
            ck_assert_msg(noun_verb(noun, verb->name) == verb, "%s twice", verb->name);
            bool asks = verb->run == verb_select || verb->run == verb_lines ||
                        verb->run == verb_append_each || verb->run == verb_write_files;
            ck_assert_msg(asks == (verb->sql != NULL), "%s", verb->name);
            if (verb->run == verb_append)
                ck_assert_msg(verb->type != NULL &&
                                  (verb->session != NULL || verb->prepare != NULL),
                              "%s", verb->name);
            for (int at = 0; (option = command_option(verb, &at)) != NULL;) {
                for (int behind = at; (other = command_option(verb, &behind)) != NULL;)
                    ck_assert_msg(strcmp(option->name, other->name) != 0, "%s: --%s twice",
                                  verb->name, option->name);
            }
        }
    }
}
END_TEST

START_TEST(all_code_belongs_to_existing_verbs)
{
    for (size_t i = 0; verb_codes[i] != NULL; i++) {
        for (const struct verb_code *code = verb_codes[i]; code->noun != NULL; code++) {
            const struct noun *noun = noun_find(code->noun);
            ck_assert_msg(noun != NULL && noun_verb(noun, code->verb) != NULL, "%s %s", code->noun,
                          code->verb);
        }
    }
}
END_TEST

/* So the loaded packs make no difference. */
START_TEST(all_builtin_nouns_have_different_names)
{
    const struct noun *noun, *other;
    for (size_t i = 0; (noun = noun_at(i)) != NULL; i++) {
        ck_assert_msg(command_find(noun->name) == NULL, "%s", noun->name);
        for (size_t j = i + 1; (other = noun_at(j)) != NULL; j++)
            ck_assert_str_ne(noun->name, other->name);
        ck_assert_ptr_eq(noun_find(noun->name), noun);
    }
}
END_TEST

Suite *suite_verbs(void)
{
    Suite *suite = suite_create("verbs");
    TCase *tcase = suite_case(suite, "verbs", cli_setup, cli_teardown);
    tcase_add_test(tcase, members_are_found_by_their_path);
    tcase_add_test(tcase, every_verb_of_two_words_has_help_that_fits_and_is_in_the_manual);
    tcase_add_test(tcase, the_tables_of_the_verbs_are_sound);
    tcase_add_test(tcase, all_code_belongs_to_existing_verbs);
    tcase_add_test(tcase, all_builtin_nouns_have_different_names);
    return suite;
}
