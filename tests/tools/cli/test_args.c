/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"
#include "tools/cli/width.h"

#include <annal/base.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct refusal {
    const char *words[8];
    const char *what; /* part of the sentence on stderr */
};

static const struct refusal wrong_usage[] = {
    {{"appendd", "s"}, "did you mean 'append'?"},
    {{"shwo", "s"}, "did you mean 'show'?"},
    {{"rein"}, "did you mean 'reindex'?"},
    {{"frobnicate"}, "verb 'frobnicate' does not exist"},
    {{"append"}, "needs SESSION"},
    {{"append", "s", "t"}, "does not know what to do with 't'"},
    {{"ship", "s", "nats://u:secret@h"}, "does not know what to do with 'nats://'"},
    {{"append", "s", "--typ", "a"}, "did you mean '--type'?"},
    {{"append", "s", "--type"}, "needs a value"},
    {{"append", "s", "--type", ""}, "--type needs a value"},
    {{"append", "s", "--type", "A"}, "byte 1 of the type is not one of"},
    {{"query", "--type", ""}, "--type needs a value"},
    {{"query", "--type", "a", "--type="}, "--type needs a value"},
    {{"append", "s", "--type", "a", "--type", "b"}, "--type was given twice"},
    {{"ls", "--wait", "1", "--wait", "2"}, "--wait was given twice"},
    {{"--wait=1", "ls", "--wait=1"}, "--wait was given twice"},
    {{"--store", "a", "ls", "--store", "b"}, "--store was given twice"},
    {{"append", "s", "--level", "fsync"}, "sync, batch or os"},
    {{"append", "s", "--expect-seq", "-1"}, "whole number"},
    {{"append", "s", "--expect-seq", "1x"}, "whole number"},
    {{"append", "s", "--expect-seq", "99999999999999999999"}, "whole number"},
    {{"append", "s", "--wait", "soon"}, "whole number"},
    {{"append", "s", "-x"}, "two dashes"},
    {{"append", "../x"}, "../x"},
    {{"append", "a/b"}, "a/b"},
    {{"append", ".hidden"}, ".hidden"},
    {{"append", "--", "-dash"}, "-dash"},
    {{"append", ""}, "session"},
    {{"append", "a\nb"}, "session"},
    {{"cat", "../x"}, "../x"},
    {{"cat", "/234567890123456789012345678901234567890123456789012345678901"},
     "'/23456789012345678901234567890123456789012345678901234567890\u2026' is not a valid session "
     "id"},
    {{"show", "a b"}, "a b"},
    {{"cat", "s", "--from", "one"}, "whole number"},
    {{"query", "--seq", "9..1"}, "ends before it begins"},
    {{"query", "--seq", "a..b"}, "range"},
    {{"query", "--seq", ".."}, "range"},
    {{"query", "--since", "tomorrow"}, "--since"},
    {{"query", "--until", "5 minutes"}, "--until"},
    {{"query", "--format", "xml"}, "jsonl, csv, table or parquet"},
    {{"query", "--json", "--format", "csv"}, "cannot be used together"},
    {{"query", "--limit", "0"}, "--limit"},
    {{"query", "--type", ""}, "--type"},
    {{"query", "--count", "--format", "csv"}, "--format cannot be used with --count"},
    {{"ls", "--limit", "0"}, "--limit"},
    {{"query", "--count=yes"}, "takes no value"},
    {{"sql"}, "needs"},
    {{"help", "sho"}, "did you mean 'show'?"},
    {{"help", "--json"}, "--json"},
    {{"--jso", "ls"}, "did you mean '--json'?"},
    {{"--store"}, "needs a value"},
    {{"--store=", "ls"}, "--store"},
};

START_TEST(a_wrong_command_line_gets_one_sentence_and_exit_status_2_and_writes_nothing)
{
    cli_run(&cli, "{\"type\":\"a\",\"data\":1}\n", wrong_usage[_i].words);
    cli_assert_refused(&cli, EXIT_USAGE, wrong_usage[_i].what);
    ck_assert_str_eq(cli.out, "");
    ck_assert_int_eq(cli_journals(&cli), 0);
}
END_TEST

START_TEST(a_command_line_without_a_verb_is_refused_and_points_to_help)
{
    cli_run(&cli, NULL, (const char *[]){NULL});
    cli_assert_refused(&cli, EXIT_USAGE, "annal help");
}
END_TEST

START_TEST(every_verb_but_append_and_import_reports_a_missing_store)
{
    static const char *const verbs[][3] = {
        {"cat", "s"},        {"ls"},    {"show", "s"}, {"query"},
        {"sql", "SELECT 1"}, {"stats"}, {"verify"},    {"reindex"}};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        cli_run(&cli, NULL, verbs[i]);
        cli_assert_refused(&cli, EXIT_STORAGE, "no store at");
        ck_assert_str_eq(cli.out, "");
    }
}
END_TEST

START_TEST(every_verb_has_help_with_examples_in_both_spellings)
{
    for (int i = 0; commands[i] != NULL; i++) {
        DONE(&cli, "help", commands[i]->name);
        ck_assert_ptr_nonnull(strstr(cli.out, "usage: annal "));
        ck_assert_ptr_nonnull(strstr(cli.out, "examples:\n  annal ") != NULL
                                  ? cli.out
                                  : strstr(cli.out, "examples:\n  "));
        char *help = strdup(cli.out);
        DONE(&cli, commands[i]->name, "--help");
        ck_assert_str_eq(cli.out, help);
        free(help);
        CLI(&cli, NULL, "help");
        ck_assert_ptr_nonnull(strstr(cli.out, commands[i]->name));
    }
}
END_TEST

START_TEST(every_help_fits_a_terminal_of_80_columns)
{
    for (int i = 0; commands[i] != NULL; i++) {
        CLI(&cli, NULL, "help", commands[i]->name);
        for (char *line = strtok(cli.out, "\n"); line != NULL; line = strtok(NULL, "\n"))
            ck_assert_msg(width_of_text(line) <= 80, "annal help %s: %d columns, more than 80: %s",
                          commands[i]->name, width_of_text(line), line);
    }
}
END_TEST

/* A wrong value is wrong usage as well, but no option may be unknown. */
START_TEST(every_option_in_the_help_is_accepted_in_both_spellings)
{
    for (int i = 0; commands[i] != NULL; i++) {
        const struct option *option;
        for (int at = 0; (option = command_option(commands[i], &at)) != NULL;) {
            char word[80];
            snprintf(word, sizeof word, "--%s%s", option->name, option->value ? "=1" : "");
            DONE(&cli, commands[i]->name, word, "s", "--help");
            snprintf(word, sizeof word, "--%s", option->name);
            DONE(&cli, commands[i]->name, "s", "--help", word, "1");
        }
        if (commands[i]->no_store)
            continue;
        DONE(&cli, commands[i]->name, "--store=x", "--json", "--help");
        DONE(&cli, "--store", "x", "--json", commands[i]->name, "--help");
    }
}
END_TEST

/* Words before the cursor, and the words that bash would offer, each followed by a space. */
static const struct {
    const char *words, *offered;
} completions[] = {
    {"annal re", "replay report repair reindex restore "},
    {"annal pa", "pack "},
    {"annal pack ch", "check "},
    {"annal pack check --js", "--json "},
    {"annal query --se", "--seq "},
    {"annal query --type x", ""},
    {"annal help pack ch", "check "},
    {"annal help ta", "tail "},
    {"annal append sess", "sess_1 "},
    {"annal convert --format m", "msgpack "},
};

START_TEST(the_completion_offers_the_words_that_may_follow)
{
    char script[2048];
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "sess_1");
    snprintf(
        script, sizeof script,
        "annal() { '" ANNAL_COMMAND "' \"$@\"; }; . '" ANNAL_SOURCE
        "/tools/completion/annal.bash'; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1));"
        "ANNAL_STORE='%s'; _annal; out=\"${COMPREPLY[*]} \"; echo \"got:${out# }\"",
        completions[_i].words, cli.store);
    const char *path = tmpdir_path(&cli.dir, "script");
    file_write(path, script, strlen(script));
    char line[400], expected[400], command[600];
    snprintf(command, sizeof command, "bash %s", path);
    FILE *bash = popen(command, "r");
    ck_assert_ptr_nonnull(fgets(line, sizeof line, bash));
    ck_assert_int_eq(pclose(bash), 0);
    snprintf(expected, sizeof expected, "got:%s\n", completions[_i].offered);
    ck_assert_str_eq(line, expected);
}
END_TEST

START_TEST(the_option_store_wins_over_the_variable_and_the_variable_over_the_home)
{
    const char *line = "{\"type\":\"a\",\"data\":1}\n";
    const char *other = tmpdir_path(&cli.dir, "other");
    DONE_WITH(&cli, line, "--store", other, "append", "s");
    ck_assert_int_eq(cli_journals(&cli), 0);
    DONE(&cli, "cat", "s", "--store", other);
    cli.as_home = cli.dir.path;
    DONE_WITH(&cli, line, "append", "s");
    free(file_read(tmpdir_path(&cli.dir, ".local/share/annal/events/s.jsonl"), NULL));
}
END_TEST

START_TEST(version_prints_the_version)
{
    DONE(&cli, "--version");
    ck_assert_str_eq(cli.out, "annal " ANNAL_VERSION "\n");
    CLI(&cli, NULL, "version", "--json");
    ck_assert_str_eq(cli.out, "{\"version\":\"" ANNAL_VERSION "\"}\n");
}
END_TEST

Suite *suite_args(void)
{
    Suite *suite = suite_create("args");
    TCase *usage = suite_case(suite, "usage", cli_setup, cli_teardown);
    tcase_add_loop_test(usage,
                        a_wrong_command_line_gets_one_sentence_and_exit_status_2_and_writes_nothing,
                        0, sizeof wrong_usage / sizeof wrong_usage[0]);
    tcase_add_test(usage, a_command_line_without_a_verb_is_refused_and_points_to_help);
    tcase_add_test(usage, every_verb_but_append_and_import_reports_a_missing_store);
    tcase_add_test(usage, every_verb_has_help_with_examples_in_both_spellings);
    tcase_add_test(usage, every_help_fits_a_terminal_of_80_columns);
    tcase_add_test(usage, every_option_in_the_help_is_accepted_in_both_spellings);
    tcase_add_loop_test(usage, the_completion_offers_the_words_that_may_follow, 0,
                        sizeof completions / sizeof completions[0]);
    tcase_add_test(usage, the_option_store_wins_over_the_variable_and_the_variable_over_the_home);
    tcase_add_test(usage, version_prints_the_version);
    return suite;
}
