/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detection: the logs of each kind, tests/data/KIND, are offered to the importer of every kind. A
 * new importer, tools/import/formats/KIND.sql, takes part without a change here.
 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/import/detect.h"
#include "tools/import/directory.h"
#include "tools/import/runs.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SURE_ENOUGH = 20 };

static annal_import *detector;
static int logs_seen;

/* NAME.sql is the text of a database. */
static const char *made_of_sql(const char *path)
{
    static char made[512];
    sqlite3 *db = NULL;
    char *sql = file_read(path, NULL);
    snprintf(made, sizeof made, "%s", tmpdir_path(&cli.dir, "log.db"));
    remove(made);
    ck_assert_int_eq(sqlite3_open(made, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    free(sql);
    return made;
}

static int sure_of(const char *kind, const char *path)
{
    struct importer importer;
    struct stat st;
    annal_error err = {0};
    int sure = 0;
    ck_assert(importer_find(kind, &importer));
    ck_assert_int_eq(stat(path, &st), 0);
    if (S_ISDIR(st.st_mode) && runs_is_importer(&importer))
        return run_is_here(path) ? 100 : 0;
    if (S_ISDIR(st.st_mode) && !directory_is_log(&importer, path))
        return 0;
    annal_status status = detect_how_sure(&detector, &importer, path, &sure, &err);
    ck_assert_msg(status >= 0, "%s as %s: %s", path, kind, err.message);
    return sure;
}

/* owner NULL: the kind is unknown. */
static void hold_against_all(const char *owner, const char *path)
{
    int own = owner != NULL ? sure_of(owner, path) : SURE_ENOUGH;
    ck_assert_msg(own >= SURE_ENOUGH, "%s: %s is not sure of its own log (%d)", path, owner, own);
    for (const struct importer_text *text = importer_texts; text->kind != NULL; text++) {
        int sure = owner != NULL && strcmp(text->kind, owner) == 0 ? 0 : sure_of(text->kind, path);
        ck_assert_msg(sure <= own / 2, "%s: %s is %d sure of it, %s %d", path, text->kind, sure,
                      owner != NULL ? owner : "no kind", own);
    }
    logs_seen++;
}

/* Visit every log below path; a directory may be a log itself. */
static void each_log(const char *owner, const char *path)
{
    struct dirent **names = NULL;
    struct stat st;
    size_t len = strlen(path);
    ck_assert_int_eq(stat(path, &st), 0);
    if (!S_ISDIR(st.st_mode)) {
        bool is_sql = strcmp(path + len - 4, ".sql") == 0;
        hold_against_all(owner, is_sql ? made_of_sql(path) : path);
        return;
    }
    if (owner != NULL && sure_of(owner, path) > 0) {
        hold_against_all(owner, path);
        return;
    }
    int count = scandir(path, &names, NULL, alphasort);
    ck_assert_int_ge(count, 0);
    for (int i = 0; i < count; i++) {
        char below[1024];
        snprintf(below, sizeof below, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            each_log(owner, below);
        free(names[i]);
    }
    free(names);
}

static const char *folder_of(const char *name)
{
    static char folder[1024];
    snprintf(folder, sizeof folder, "%s/tests/data/%s", ANNAL_SOURCE, name);
    return folder;
}

START_TEST(the_logs_of_each_kind_are_detected_as_that_kind_alone)
{
    for (const struct importer_text *text = importer_texts; text->kind != NULL; text++) {
        struct stat st;
        logs_seen = 0;
        if (stat(folder_of(text->kind), &st) == 0)
            each_log(text->kind, folder_of(text->kind));
        ck_assert_msg(logs_seen > 0, "%s has no log in tests/data/%s", text->kind, text->kind);
    }
    annal_import_close(detector);
    detector = NULL;
}
END_TEST

/* Programs that write the envelopes of a known kind with other messages in them. */
START_TEST(a_log_of_another_program_with_a_similar_envelope_is_of_unknown_kind)
{
    logs_seen = 0;
    each_log(NULL, ANNAL_SOURCE "/tests/tools/import/other_programs");
    ck_assert_int_gt(logs_seen, 0);
    annal_import_close(detector);
    detector = NULL;
}
END_TEST

Suite *suite_detect(void)
{
    Suite *suite = suite_create("detect");
    TCase *tc = suite_case(suite, "detect", cli_setup, cli_teardown);
    tcase_add_test(tc, the_logs_of_each_kind_are_detected_as_that_kind_alone);
    tcase_add_test(tc, a_log_of_another_program_with_a_similar_envelope_is_of_unknown_kind);
    return suite;
}
