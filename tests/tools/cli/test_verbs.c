/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/json_walk.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/verbs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct field fields[] = {OPERAND("TEAM", FIELD_TEXT, NULL, "the team"),
                                      OPERAND_MAYBE("TEXT", FIELD_BODY, "content", "what to say"),
                                      OPTION("to", "NAME", FIELD_LIST, "to", "to whom"),
                                      OPTION("rank", "N", FIELD_NUMBER, "run.rank", "a number"),
                                      OPTION("meta", "JSON", FIELD_JSON, "meta", "more"),
                                      OPTION("file", "FILE", FIELD_FILE, "content", "its text"),
                                      OPTION("until", "TIME", FIELD_TIME, "until", "when"),
                                      OPTION_WITH("way", "WAY", FIELD_TEXT, "run.way", "how",
                                                  .preset = "\"all\"", .choices = "all|first"),
                                      FLAG("loud", "loud", "in capitals"),
                                      CONSTANT("source", "\"shell\""),
                                      FIELDS_END};

static int prepare(struct verb_call *call)
{
    if (args_get(call->args, "rank") != NULL)
        verb_set_text(call, "run.way", ANNAL_SLICE("first"));
    return 0;
}

static const struct command send = {.name = "send",
                                    .fields = fields,
                                    .type = "team.message",
                                    .session = "team_{TEAM}",
                                    .said = "{seq}: {TEAM} heard {content} {run.way} {nothing}{to}",
                                    .prepare = prepare,
                                    .run = verb_append};

static const struct command list = {
    .name = "list",
    .fields = fields,
    .sql = "SELECT ?1 AS a, typeof(?2) AS b, ?3 AS c, ?4 AS d, ?9 AS e",
    .params = 9,
    .run = verb_select};

/* The words after the verb, sorted as args_parse() sorts them. */
static void run_verb(const struct command *verb, bool json, const char *const *words)
{
    const char *out = tmpdir_path(&cli.dir, "out"), *err = tmpdir_path(&cli.dir, "err");
    const char *operands[8];
    struct args_value values[8];
    struct args args = {.command = verb,
                        .store = cli.store,
                        .wait_ms = WAIT_MS_USUAL,
                        .json = json,
                        .operands = operands,
                        .values = values};
    for (; *words != NULL; words++) {
        const struct option *option = NULL;
        for (int at = 0;
             strncmp(*words, "--", 2) == 0 && (option = command_option(verb, &at)) != NULL;) {
            if (strcmp(option->name, *words + 2) == 0)
                break;
        }
        if (option == NULL)
            operands[args.operand_count++] = *words;
        else
            values[args.value_count++] =
                (struct args_value){option, option->value ? *++words : NULL};
    }
    free(cli.out);
    free(cli.err);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
        dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
        int exit_status = verb->run(&args);
        fflush(stdout);
        _exit(exit_status);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    cli.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    cli.out = file_read(out, &cli.out_len);
    cli.err = file_read(err, &cli.err_len);
}

#define VERB(cli, verb, json, ...) run_verb(verb, json, (const char *[]){__VA_ARGS__, NULL})

static void init_with_store(void)
{
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
}

START_TEST(every_kind_of_field_becomes_its_member_of_data)
{
    init_with_store();
    VERB(&cli, &send, true, "t1", "hi \"you\"\n", "--rank", "-1.50e3", "--to", "ada", "--to", "b,c",
         "--meta", "{\"a\" :[1]}", "--until", "2026-01-06T07:24:00Z", "--way", "first", "--loud");
    cli_assert_done(&cli);
    ck_assert_str_eq(
        cli.out,
        "{\"session_id\":\"team_t1\",\"seq\":1,\"type\":\"team.message\",\"data\":"
        "{\"content\":\"hi \\\"you\\\"\\n\",\"to\":[\"ada\",\"b,c\"],\"run\":{\"rank\":-1.50e3,"
        "\"way\":\"first\"},\"meta\":{\"a\" :[1]},\"until\":\"2026-01-06T07:24:00.000000Z\","
        "\"loud\":true,\"source\":\"shell\"}}\n");
}
END_TEST

START_TEST(a_field_that_is_not_given_takes_its_default_or_is_left_out)
{
    init_with_store();
    VERB(&cli, &send, true, "t1");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(
        strstr(cli.out, "\"data\":{\"run\":{\"way\":\"all\"},\"source\":\"shell\"}}\n"));
}
END_TEST

START_TEST(without_json_a_verb_prints_its_sentence_filled_with_members_and_words)
{
    init_with_store();
    VERB(&cli, &send, false, "t1", "a\tb\\", "--rank", "1");
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, "1: t1 heard a b\\ first \n");
    VERB(&cli, &send, false, "t1", "x", "--to", "ada", "--to", "b\"c");
    ck_assert_str_eq(cli.out, "2: t1 heard x all ada, b\"c\n");
}
END_TEST

START_TEST(a_file_is_a_value_byte_for_byte)
{
    init_with_store();
    const char *path = tmpdir_path(&cli.dir, "text");
    file_write(path, "{ \"k\":\n 2 }\n", 12);
    char at[300];
    snprintf(at, sizeof at, "@%s", path);
    VERB(&cli, &send, true, "t1", "--file", path, "--meta", at);
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"meta\":{ \"k\":  2 } ,"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"content\":\"{ \\\"k\\\":\\n 2 }\\n\""));
    file_write(path, "\xff", 1);
    VERB(&cli, &send, true, "t1", "--file", path);
    cli_assert_refused(&cli, EXIT_REFUSED, "--file is not valid UTF-8");
    VERB(&cli, &send, true, "t1", "--meta", at);
    cli_assert_refused(&cli, EXIT_REFUSED, "does not contain a JSON value");
    VERB(&cli, &send, true, "t1", "--file", "/nowhere/x");
    cli_assert_refused(&cli, EXIT_REFUSED, "read the file '/nowhere/x': No such file");
}
END_TEST

START_TEST(a_value_of_another_kind_is_wrong_usage)
{
    static const struct {
        const char *words[4], *said;
    } wrong[] = {
        {{"t1", "--rank", "one"}, "--rank needs a number, not 'one'"},
        {{"t1", "--rank", "01"}, "--rank needs a number, not '01'"},
        {{"t1", "--rank", ""}, "--rank needs a number, not ''"},
        {{"t1", "--meta", "{"}, "--meta needs a JSON value, not '{'"},
        {{"t1", "--until", "some day"}, "not 'some day'"},
        {{"a/b"}, "'team_a/b' is not a valid session id"},
    };
    init_with_store();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        run_verb(&send, true, wrong[i].words);
        cli_assert_refused(&cli, EXIT_USAGE, wrong[i].said);
    }
    ck_assert_int_eq(cli_journals(&cli), 1);
}
END_TEST

START_TEST(a_verb_that_is_repeated_with_its_event_id_appends_once)
{
    init_with_store();
    VERB(&cli, &send, false, "t1", "hi", "--event-id", "e1", "--cause", "s1:1");
    cli_assert_done(&cli);
    VERB(&cli, &send, false, "t1", "hi", "--event-id", "e1", "--cause", "s1:1");
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, "1: t1 heard hi all \n");
    CLI(&cli, NULL, "query", "team_t1", "--count");
    ck_assert_str_eq(cli.out, "1\n");
}
END_TEST

START_TEST(a_select_gets_fields_as_its_parameters)
{
    init_with_store();
    VERB(&cli, &list, true, "t'1\\\"", "--to", "x", "--rank", "2.5", "--loud");
    cli_assert_done(&cli);
    ck_assert_str_eq(
        cli.out,
        "{\"a\":\"t'1\\\\\\\"\",\"b\":\"null\",\"c\":\"[\\\"x\\\"]\",\"d\":2.5,\"e\":1}\n");
}
END_TEST

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

static const struct {
    const char *words[5];
    const char *what;
} wrong_words[] = {
    {{"pack"}, "'annal help pack' lists the verbs of pack"},
    {{"pack", "chek"}, "did you mean 'pack check'?"},
    {{"pack", "frobnicate"}, "'annal help pack' lists them"},
    {{"pakc", "check"}, "did you mean 'pack'?"},
    {{"cas", "ls"}, "did you mean 'cast'?"},
    {{"pack", "check"}, "annal pack check needs PACK"},
    {{"pack", "check", "x", "--jsn"}, "annal pack check has no option '--jsn'"},
    {{"pack", "-x"}, "'annal help pack' lists them"},
    {{"help", "pack", "chek"}, "did you mean 'pack check'?"},
    {{"help", "ls", "all"}, "annal ls has no verbs"},
};

START_TEST(a_wrong_verb_of_two_words_gets_one_sentence)
{
    cli_run(&cli, NULL, wrong_words[_i].words);
    cli_assert_refused(&cli, EXIT_USAGE, wrong_words[_i].what);
    ck_assert_str_eq(cli.out, "");
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
                ck_assert_msg(strlen(line) <= 80, "%s: %s", text, line);
        }
    }
    free(help);
}
END_TEST

START_TEST(help_lists_the_nouns_of_packs_that_are_on)
{
    CLI(&cli, NULL, "help");
    ck_assert_ptr_null(strstr(cli.out, "\n  team "));
    ck_assert_ptr_nonnull(strstr(cli.out, "packs that are off: lionagi, teams, "));
    CLI(&cli, NULL, "pack", "enable", "teams");
    CLI(&cli, NULL, "help");
    ck_assert_ptr_nonnull(strstr(cli.out, "\n  team "));
    ck_assert_ptr_nonnull(strstr(cli.out, "packs that are off: lionagi, prose, "));
}
END_TEST

START_TEST(nouns_and_their_verbs_are_explained_in_both_spellings)
{
    DONE(&cli, "help", "pack");
    ck_assert_ptr_nonnull(strstr(cli.out, "  enable "));
    char *help = strdup(cli.out);
    CLI(&cli, NULL, "pack", "--help");
    ck_assert_str_eq(cli.out, help);
    free(help);
    CLI(&cli, NULL, "help", "pack", "enable");
    help = strdup(cli.out);
    CLI(&cli, NULL, "pack", "enable", "--help");
    ck_assert_str_eq(cli.out, help);
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

Suite *suite_verbs(void)
{
    Suite *suite = suite_create("verbs");
    TCase *tcase = suite_case(suite, "verbs", cli_setup, cli_teardown);
    tcase_add_test(tcase, every_kind_of_field_becomes_its_member_of_data);
    tcase_add_test(tcase, a_field_that_is_not_given_takes_its_default_or_is_left_out);
    tcase_add_test(tcase, without_json_a_verb_prints_its_sentence_filled_with_members_and_words);
    tcase_add_test(tcase, a_file_is_a_value_byte_for_byte);
    tcase_add_test(tcase, a_value_of_another_kind_is_wrong_usage);
    tcase_add_test(tcase, a_verb_that_is_repeated_with_its_event_id_appends_once);
    tcase_add_test(tcase, a_select_gets_fields_as_its_parameters);
    tcase_add_test(tcase, members_are_found_by_their_path);
    tcase_add_loop_test(tcase, a_wrong_verb_of_two_words_gets_one_sentence, 0,
                        sizeof wrong_words / sizeof wrong_words[0]);
    tcase_add_test(tcase, every_verb_of_two_words_has_help_that_fits_and_is_in_the_manual);
    tcase_add_test(tcase, nouns_and_their_verbs_are_explained_in_both_spellings);
    tcase_add_test(tcase, help_lists_the_nouns_of_packs_that_are_on);
    tcase_add_test(tcase, the_tables_of_the_verbs_are_sound);
    return suite;
}
