/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases/NAME.case: a small log, and what its store answers after the import. A file has lines
 *
 *   # what the case shows
 *   log KIND FILE       the lines of this log follow, up to the first question
 *   ask SELECT …        a question to annal sql
 *   row …               a row of the answer, as CSV; there are no others
 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CASES ANNAL_SOURCE "/tests/tools/import/cases/*.case"

struct one_case {
    const char *name;
    char store[300];
    char *line; /* the next one */
};

/* The line after this mark, ended with '\0'; NULL if the next line has another mark. */
static char *take(struct one_case *one, const char *mark)
{
    size_t len = strlen(mark);
    char *line = one->line;
    if (strncmp(line, mark, len) != 0)
        return NULL;
    char *end = strchr(line, '\n');
    ck_assert_msg(end != NULL, "%s: the last line does not end", one->name);
    *end = '\0';
    one->line = end + 1;
    return line + len;
}

static void import_log_of(struct one_case *one)
{
    char *kind = take(one, "log ");
    ck_assert_msg(kind != NULL, "%s: no line 'log KIND FILE'", one->name);
    char *file = strchr(kind, ' ');
    ck_assert_ptr_nonnull(file);
    *file++ = '\0';
    const char *log = one->line;
    char *end = strstr(log, "\nask ");
    ck_assert_msg(end != NULL, "%s: no question", one->name);
    one->line = end + 1;
    char *path = strdup(tmpdir_path(&cli.dir, file));
    file_write(path, log, (size_t)(one->line - log));
    CLI(&cli, NULL, "import", kind, path, "--store", one->store);
    ck_assert_msg(cli.exit_status == 0, "%s: %s", one->name, cli.err);
    free(path);
}

static void ask(struct one_case *one, const char *question)
{
    char wanted[4096] = "";
    const char *row;
    CLI(&cli, NULL, "sql", question, "--format", "csv", "--store", one->store);
    ck_assert_msg(cli.exit_status == 0, "%s: %s", one->name, cli.err);
    while ((row = take(one, "row ")) != NULL || (row = take(one, "row")) != NULL) {
        strcat(wanted, row);
        strcat(wanted, "\r\n");
        ck_assert_uint_lt(strlen(wanted), sizeof wanted / 2);
    }
    const char *rows = strstr(cli.out, "\r\n");
    ck_assert_msg(rows != NULL && strcmp(rows + 2, wanted) == 0, "%s\n%s\nanswer:\n%swanted:\n%s",
                  one->name, question, cli.out, wanted);
}

START_TEST(each_case_gives_the_answers_that_it_lists)
{
    glob_t found = {0};
    ck_assert_int_eq(glob(CASES, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        size_t len;
        char *text = file_read(found.gl_pathv[i], &len);
        struct one_case one = {.name = strrchr(found.gl_pathv[i], '/') + 1, .line = text};
        snprintf(one.store, sizeof one.store, "%s/store-%zu", cli.dir.path, i);
        while (take(&one, "#") != NULL)
            continue;
        import_log_of(&one);
        for (const char *question; (question = take(&one, "ask ")) != NULL;)
            ask(&one, question);
        ck_assert_msg(*one.line == '\0', "%s: a line that is no question: %s", one.name, one.line);
        free(text);
    }
    globfree(&found);
}
END_TEST

Suite *suite_cases(void)
{
    Suite *suite = suite_create("cases");
    TCase *tc = suite_case(suite, "cases", cli_setup, cli_teardown);
    tcase_add_test(tc, each_case_gives_the_answers_that_it_lists);
    return suite;
}
