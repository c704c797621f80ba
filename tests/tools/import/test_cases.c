/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases/NAME.case: small logs, and what their store answers after the import. A file has lines
 *
 *   # what the case shows
 *   log KIND FILE       the lines of this log follow, up to the next log or question; for a FILE
 *                       that ends with .db, the SQL that creates it
 *   data KIND FILE      a log of tests/data/KIND; for a FILE.sql, the database that it creates
 *   ask SELECT …        a question to annal sql
 *   row …               a row of the answer, as CSV; the rows listed are the whole answer
 *
 * At the end the last logs are imported again, which must add no event.
 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <glob.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CASES ANNAL_SOURCE "/tests/tools/import/cases/*.case"

struct one_case {
    const char *name;
    char store[300];
    char *line;               /* the next one */
    char kind[32], path[600]; /* of the log that was imported last */
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

static void import_again(struct one_case *one)
{
    CLI(&cli, NULL, "import", one->kind, one->path, "--recheck", "--store", one->store);
    ck_assert_msg(cli.exit_status == 0, "%s: %s", one->name, cli.err);
}

static void make_database(const struct one_case *one, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    remove(one->path);
    ck_assert_int_eq(sqlite3_open(one->path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s: %s", one->name, why);
    sqlite3_close(db);
}

/* False: the next line begins no log. */
static bool import_log_of(struct one_case *one)
{
    char *kind = take(one, "log ");
    if (kind == NULL)
        return false;
    char *file = strchr(kind, ' ');
    ck_assert_ptr_nonnull(file);
    *file++ = '\0';
    char *log = one->line, *question = strstr(log, "\nask "), *next = strstr(log, "\nlog ");
    char *end = next != NULL && (question == NULL || next < question) ? next : question;
    ck_assert_msg(end != NULL, "%s: no question", one->name);
    one->line = end + 1;
    snprintf(one->kind, sizeof one->kind, "%s", kind);
    snprintf(one->path, sizeof one->path, "%s", tmpdir_path(&cli.dir, file));
    if (strcmp(file + strlen(file) - 3, ".db") == 0) {
        char *sql = strndup(log, (size_t)(one->line - log));
        make_database(one, sql);
        free(sql);
    } else {
        file_write(one->path, log, (size_t)(one->line - log));
    }
    import_again(one);
    return true;
}

/* The same for a log of tests/data. */
static bool import_data_of(struct one_case *one)
{
    char *kind = take(one, "data ");
    if (kind == NULL)
        return false;
    char *file = strchr(kind, ' ');
    ck_assert_ptr_nonnull(file);
    *file++ = '\0';
    snprintf(one->kind, sizeof one->kind, "%s", kind);
    snprintf(one->path, sizeof one->path, "%s/tests/data/%s/%s", ANNAL_SOURCE, kind, file);
    size_t len = strlen(file);
    if (strcmp(file + len - 4, ".sql") == 0) {
        char *sql = file_read(one->path, NULL);
        file[len - 4] = '\0';
        snprintf(one->path, sizeof one->path, "%s", tmpdir_path(&cli.dir, file));
        make_database(one, sql);
        free(sql);
    }
    import_again(one);
    return true;
}

static void assert_nothing_is_added(struct one_case *one)
{
    import_again(one);
    ck_assert_msg(strstr(cli.out, " 0 events added") != NULL, "%s: %s", one->name, cli.out);
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

START_TEST(each_case_gives_its_listed_answers)
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
        while (*one.line != '\0') {
            const char *question;
            if (import_log_of(&one) || import_data_of(&one))
                continue;
            question = take(&one, "ask ");
            ck_assert_msg(question != NULL, "%s: no log and no question: %s", one.name, one.line);
            ask(&one, question);
        }
        assert_nothing_is_added(&one);
        free(text);
    }
    globfree(&found);
}
END_TEST

Suite *suite_cases(void)
{
    Suite *suite = suite_create("cases");
    TCase *tc = suite_case(suite, "cases", cli_setup, cli_teardown);
    tcase_add_test(tc, each_case_gives_its_listed_answers);
    return suite;
}
