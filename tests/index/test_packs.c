/* SPDX-License-Identifier: Apache-2.0 */
#include "index/follow/plan.h"
#include "index/index.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char notes[] = "-- pack notes   version 1   database notes.db\n"
                            "CREATE TABLE notes (session TEXT, seq INTEGER, text TEXT,\n"
                            "    PRIMARY KEY (session, seq));\n"
                            "-- on note.added\n"
                            "INSERT INTO notes VALUES (:session, :seq, $text);\n";

static void write_file(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "store/%s", name);
    FILE *file = fopen(tmpdir_path(&f.dir, path), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void put_pack(const char *name, const char *text)
{
    mkdir(tmpdir_path(&f.dir, "store/packs"), 0700);
    write_file(name, text);
}

START_TEST(a_pack_dropped_into_the_store_is_filled_and_updated)
{
    fixture_append(&f, "s1", "note.added", "{\"text\":\"one\"}");
    put_pack("packs/notes.sql", notes);
    ck_sql(&f, "SELECT session, seq, text FROM notes", "s1|1|one\n");
    fixture_append(&f, "s2", "note.added", "{\"text\":\"two\"}");
    fixture_append(&f, "s1", "note.added", "{\"text\":\"three\"}");
    ck_sql(&f, "SELECT session, seq, text FROM notes.notes ORDER BY 1, 2",
           "s1|1|one\ns1|2|three\ns2|1|two\n");
    ck_sql(&f, "SELECT COUNT(*) FROM sessions", "2\n");
}
END_TEST

START_TEST(a_pack_whose_file_changes_is_rebuilt)
{
    fixture_append(&f, "s1", "note.added", "{\"text\":\"one\"}");
    put_pack("packs/notes.sql", notes);
    ck_sql(&f, "SELECT text FROM notes", "one\n");
    put_pack("packs/notes.sql", "-- pack notes   version 1   database notes.db\n"
                                "CREATE TABLE notes (session TEXT, loud TEXT);\n"
                                "-- on note.added\n"
                                "INSERT INTO notes VALUES (:session, upper($text));\n");
    ck_sql(&f, "SELECT loud FROM notes", "ONE\n");
    ck_assert_int_eq(unlink(tmpdir_path(&f.dir, "store/packs/notes.sql")), 0);
    annal_error err = {0};
    ck_assert_int_eq(
        annal_index_sql(f.index, ANNAL_SLICE("SELECT * FROM notes"), NULL, text_row, NULL, &err),
        ANNAL_ERR_SQL);
}
END_TEST

/* The plan covers the rest of a session; in the meantime the tables were emptied. */
START_TEST(a_plan_older_than_the_emptied_tables_is_not_executed)
{
    annal_index *other = NULL;
    struct pack_set *set = NULL;
    struct plan plan = {0};
    annal_index_progress progress = {0};
    put_pack("packs/notes.sql", notes);
    fixture_append(&f, "s1", "note.added", "{\"text\":\"one\"}");
    fixture_append(&f, "s2", "note.added", "{\"text\":\"two\"}");
    ck_sql(&f, "SELECT count(*) FROM notes", "2\n");
    fixture_append(&f, "s2", "note.added", "{\"text\":\"three\"}");
    ck_ok(annal__packs_get(f.index, &set, err));
    struct follower *follower = &annal__packs_next(f.index, set, NULL)->fills[0].follower;
    ck_ok(annal__plan_make(follower, NULL, 0, NULL, 1000, &plan, err));
    ck_assert_uint_eq(plan.count, 1);
    ck_ok(annal_index_open(f.store, NULL, &other, err));
    ck_ok(annal_pack_rebuild(other, "notes", NULL, err));
    annal_index_close(other);
    ck_assert_int_eq(
        annal__indexer_batch(follower, &plan, INT64_MAX, INT64_MAX, true, &progress, NULL),
        ANNAL_ERR_CONFLICT);
    annal__plan_done(&plan);
    annal__packs_put(f.index, set);
    ck_sql(&f, "SELECT count(*) FROM notes", "3\n");
}
END_TEST

START_TEST(a_pack_narrowed_to_fewer_sessions_drops_the_rows_of_the_others)
{
    fixture_append(&f, "a1", "note.added", "{\"text\":\"one\"}");
    fixture_append(&f, "b1", "note.added", "{\"text\":\"two\"}");
    put_pack("packs/notes.sql", notes);
    ck_sql(&f, "SELECT text FROM notes ORDER BY 1", "one\ntwo\n");
    char narrow[sizeof notes + 30];
    snprintf(narrow, sizeof narrow, "-- pack notes   version 1   database notes.db   sessions b*%s",
             strchr(notes, '\n'));
    put_pack("packs/notes.sql", narrow);
    ck_sql(&f, "SELECT text FROM notes", "two\n");
    put_pack("packs/notes.sql", notes);
    ck_sql(&f, "SELECT text FROM notes ORDER BY 1", "one\ntwo\n");
}
END_TEST

START_TEST(a_wrong_pack_does_not_affect_the_others)
{
    fixture_append(&f, "s1", "note.added", "{\"text\":\"one\"}");
    put_pack("packs/notes.sql", notes);
    put_pack("packs/wrong.sql", "-- pack wrong   version 1   database wrong.db\nNONSENSE;\n");
    put_pack("packs/enabled", "# comment\nnobody\ncore\n");
    put_pack("packs/again.sql", notes);
    put_pack("packs/core.sql", "-- pack core   version 1   database x.db\n");
    ck_sql(&f, "SELECT text FROM notes", "one\n");
    ck_assert_int_eq(unlink(tmpdir_path(&f.dir, "store/packs/enabled")), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&f.dir, "store/packs/enabled"), 0700), 0);
    ck_sql(&f, "SELECT text FROM notes", "one\n");
}
END_TEST

START_TEST(packs_keep_their_tables_when_another_pack_of_their_database_is_rebuilt)
{
    fixture_append(&f, "s1", "note.added", "{\"text\":\"one\"}");
    put_pack("packs/notes.sql", notes);
    put_pack("packs/counts.sql",
             "-- pack counts   version 1   database notes.db\n"
             "CREATE TABLE counts (session TEXT PRIMARY KEY, n INTEGER);\n"
             "-- on note.added\n"
             "INSERT INTO counts VALUES (:session, 1) ON CONFLICT DO UPDATE SET n = n + 1;\n");
    ck_sql(&f, "SELECT text, n FROM notes JOIN counts USING (session)", "one|1\n");
    put_pack("packs/counts.sql",
             "-- pack counts   version 2   database notes.db\n"
             "CREATE TABLE counts (session TEXT PRIMARY KEY, n INTEGER);\n"
             "-- on note.added\n"
             "INSERT INTO counts VALUES (:session, 10) ON CONFLICT DO UPDATE SET n = n + 10;\n");
    ck_sql(&f, "SELECT text, n FROM notes JOIN counts USING (session)", "one|10\n");
}
END_TEST

START_TEST(a_deleted_pack_database_is_rebuilt)
{
    put_pack("packs/notes.sql", notes);
    fixture_append(&f, "s1", "note.added", "{\"text\":\"one\"}");
    for (int i = 0; i < 3; i++) {
        ck_sql(&f, "SELECT text FROM notes", "one\n");
        ck_assert_int_eq(unlink(tmpdir_path(&f.dir, "store/notes.db")), 0);
        if (i == 1)
            unlink(tmpdir_path(&f.dir, "store/notes.db-wal"));
    }
    fixture_reopen(&f, NULL);
    ck_sql(&f, "SELECT text FROM notes", "one\n");
}
END_TEST

START_TEST(builtin_packs_are_enabled_and_disabled)
{
    annal_error why = {0};
    ck_ok(annal_pack_enable(f.store, "lionagi", NULL, err));
    ck_ok(annal_pack_enable(f.store, "teams", NULL, err));
    ck_ok(annal_pack_enable(f.store, "teams", NULL, err)); /* again: no new event */
    ck_sql(&f, "SELECT COUNT(*) FROM state.teams", "0\n");
    ck_sql(&f, "SELECT COUNT(*) FROM branches", "0\n");
    ck_ok(annal_pack_disable(f.store, "lionagi", err));
    ck_ok(annal_pack_disable(f.store, "teams", err));
    ck_assert_int_eq(annal_pack_disable(f.store, "teams", &why), ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(annal_pack_enable(f.store, "nobody", NULL, &why), ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(
        annal_index_sql(f.index, ANNAL_SLICE("SELECT * FROM teams"), NULL, text_row, NULL, &why),
        ANNAL_ERR_SQL);
}
END_TEST

START_TEST(enable_with_at_puts_the_database_there)
{
    const char *at = tmpdir_path(&f.dir, "elsewhere");
    ck_assert_int_eq(mkdir(at, 0700), 0);
    ck_ok(annal_pack_enable(f.store, "lionagi", at, err));
    ck_sql(&f, "SELECT COUNT(*) FROM branches", "0\n");
    ck_assert_int_eq(access(tmpdir_path(&f.dir, "elsewhere/state.db"), F_OK), 0);
}
END_TEST

static int text_info(void *arg, const annal_pack_info *info)
{
    char line[400];
    snprintf(line, sizeof line, "%s %u %d %llu %llu %llu %llu%s\n", info->name,
             info->source == NULL ? 0 : (unsigned)info->version, (int)info->state,
             (unsigned long long)info->sessions, (unsigned long long)info->events_applied,
             (unsigned long long)info->events_behind, (unsigned long long)info->findings,
             info->source == NULL ? "" : " own");
    text_add(arg, line, strlen(line));
    return 0;
}

START_TEST(index_packs_reports_the_state_of_each_pack)
{
    struct text text = {0};
    put_pack("packs/notes.sql", notes);
    put_pack("packs/wrong.sql", "-- pack wrong   version 1   database wrong.db\nNONSENSE;\n");
    fixture_append(&f, "s1", "note.added", "{\"text\":\"one\"}");
    ck_sql(&f, "SELECT COUNT(*) FROM notes", "1\n");
    fixture_append(&f, "s1", "note.added", "{\"text\":\"two\"}");
    fixture_append(&f, "s2", "note.added", "{\"text\":\"three\"}");
    ck_ok(annal_pack_each(f.index, text_info, &text, err));
    ck_assert_str_eq(text.ptr, "core 0 1 2 1 2 0\nnotes 1 1 1 1 2 0 own\nwrong 0 2 0 0 0 0 own\n");
    text.len = 0;
    ck_ok(annal_pack_rebuild(f.index, "notes", NULL, err));
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    ck_ok(annal_pack_each(f.index, text_info, &text, err));
    ck_assert_str_eq(text.ptr, "core 0 0 2 3 0 0\nnotes 1 0 2 3 0 0 own\nwrong 0 2 0 0 0 0 own\n");
    text.len = 0;
    put_pack("packs/notes.sql", "-- pack notes   version 2   database notes.db\n"
                                "CREATE TABLE loud (session TEXT, text TEXT);\n"
                                "-- on note.added\nINSERT INTO loud VALUES (:session, $text);\n");
    ck_ok(annal_pack_each(f.index, text_info, &text, err));
    ck_assert_str_eq(text.ptr, "core 0 0 2 3 0 0\nnotes 2 1 0 0 3 0 own\nwrong 0 2 0 0 0 0 own\n");
    annal_error why = {0};
    ck_assert_int_eq(annal_pack_rebuild(f.index, "wrong", NULL, &why), ANNAL_ERR_SQL);
    ck_assert_ptr_nonnull(strstr(why.message, "wrong.sql:2"));
    ck_assert_int_eq(annal_pack_rebuild(f.index, "nobody", NULL, &why), ANNAL_ERR_NOTFOUND);
    free(text.ptr);
}
END_TEST

static const char runs[] =
    "-- pack runs   version 1   database runs/*/state.db   in kept   sessions run_*\n"
    "CREATE TABLE run (id TEXT PRIMARY KEY, n INTEGER);\n"
    "-- on run.stepped\n"
    "INSERT INTO run VALUES (:session, 1) ON CONFLICT DO UPDATE SET n = n + 1;\n";

/* Limit the size of files of this process, as a full disk does. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(a_rebuild_fails_on_a_full_disk_and_the_next_catch_up_finishes_it)
{
    annal_error why = {0};
    char *data = malloc(3u << 20);
    memset(data, 'x', 3u << 20);
    memcpy(data, "{\"text\":\"", 9);
    memcpy(data + (3u << 20) - 3, "\"}", 3);
    fixture_append(&f, "s1", "note.added", data);
    put_pack("packs/notes.sql", notes);
    limit_files(1u << 20);
    ck_assert_int_eq(annal_pack_rebuild(f.index, "notes", NULL, &why), ANNAL_ERR_IO);
    limit_files(RLIM_INFINITY);
    ck_sql(&f, "SELECT session, seq FROM notes", "s1|1\n");
    ck_ok(annal_pack_rebuild(f.index, "notes", NULL, err));
    free(data);
}
END_TEST

START_TEST(a_pack_may_have_a_database_for_each_session)
{
    struct text text = {0};
    put_pack("packs/runs.sql", runs);
    fixture_append(&f, "run_a", "run.stepped", "{}");
    fixture_append(&f, "run_b", "run.stepped", "{}");
    fixture_append(&f, "run_b", "run.stepped", "{}");
    fixture_append(&f, "other", "run.stepped", "{}");
    const annal_sql_options of_b = {.session = ANNAL_SLICE("run_b")};
    ck_ok(annal_index_sql(f.index, ANNAL_SLICE("SELECT id, n FROM run"), &of_b, text_row, &text,
                          err));
    ck_assert_str_eq(text.ptr, "run_b|2\n");
    const char *other = tmpdir_path(&f.dir, "store/kept/runs/a/state.db");
    ck_assert_int_ne(access(other, F_OK), 0);
    const annal_catch_up_options all = {.every_database = true};
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, &all, err));
    ck_assert_int_eq(access(other, F_OK), 0);
    text.len = 0;
    ck_ok(annal_pack_each(f.index, text_info, &text, err));
    ck_assert_str_eq(text.ptr, "core 0 0 3 4 0 0\nruns 1 0 2 3 0 0 own\n");
    free(text.ptr);
}
END_TEST

/* Count the open files of this process whose path contains part. */
static unsigned open_files(const char *part)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        char link[40], path[400] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, path, sizeof path - 1) > 0)
            count += strstr(path, part) != NULL;
    }
    return count;
}

/* Otherwise a thousand runs would exceed the limit of open files. */
START_TEST(databases_of_sessions_are_closed_after_the_catch_up)
{
    const annal_catch_up_options all = {.every_database = true};
    put_pack("packs/runs.sql", runs);
    fixture_append(&f, "run_a", "run.stepped", "{}");
    fixture_append(&f, "run_b", "run.stepped", "{}");
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, &all, err));
    ck_ok(annal_pack_rebuild(f.index, "runs", NULL, err));
    ck_assert_uint_eq(open_files("/kept/runs/"), 0);
    ck_assert_uint_eq(open_files("/locks/kept_"), 0);
}
END_TEST

START_TEST(packs_catch_up_with_earlier_events_and_follow_new_events)
{
    sqlite3 *db = NULL;
    fixture_append(&f, "s1", "note.added", "{\"text\":\"before\"}");
    annal_index_close(f.index);
    ck_ok(annal_store_close(f.store, err));
    put_pack("packs/notes.sql", notes);
    ck_ok(annal_store_open(f.path, NULL, &f.store, err));
    const annal_index_options follow = {.follow = true};
    ck_ok(annal_index_open(f.store, &follow, &f.index, err));
    fixture_append(&f, "s2", "note.added", "{\"text\":\"after\"}");
    const char *path = tmpdir_path(&f.dir, "store/notes.db");
    int rows = 0;
    for (int i = 0; i < 600 && rows < 2; i++) { /* as another program sees it */
        usleep(5000);
        sqlite3_stmt *stmt = NULL;
        if (db == NULL && access(path, F_OK) == 0)
            ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
        if (db != NULL &&
            sqlite3_prepare_v2(db, "SELECT COUNT(*) FROM notes", -1, &stmt, NULL) == SQLITE_OK &&
            sqlite3_step(stmt) == SQLITE_ROW)
            rows = sqlite3_column_int(stmt, 0);
        sqlite3_finalize(stmt);
    }
    ck_assert_int_eq(rows, 2);
    sqlite3_close(db);
}
END_TEST

/* Insert a row without an event: it exists until the table is rebuilt. */
static void put_mark(void)
{
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(tmpdir_path(&f.dir, "store/notes.db"), &db), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(db, "INSERT INTO notes (session, seq) VALUES ('mark', 0)", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
}

/* Run SQL as a user of the stock shell does, on a connection of its own. */
static void write_as_a_user(const char *database, const char *sql)
{
    sqlite3 *db = NULL;
    char path[200];
    snprintf(path, sizeof path, "store/%s", database);
    ck_assert_int_eq(sqlite3_open(tmpdir_path(&f.dir, path), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_busy_timeout(db, 5000), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

START_TEST(a_database_that_a_user_puts_into_wal_mode_loses_nothing)
{
    put_pack("packs/mine.sql",
             "-- pack mine   version 1   database mine.db   sessions mine   writable\n"
             "CREATE TABLE mine (text TEXT);\n"
             "-- on mine.added\n"
             "INSERT INTO mine VALUES ($text);\n");
    fixture_append(&f, "mine", "mine.added", "{\"text\":\"one\"}");
    ck_sql(&f, "SELECT text FROM mine", "one\n");
    write_as_a_user("mine.db", "PRAGMA journal_mode = WAL; INSERT INTO mine VALUES ('two');");
    ck_sql(&f, "SELECT text FROM mine", "one\ntwo\n");
    write_as_a_user("mine.db", "INSERT INTO mine VALUES ('three');");
    fixture_append(&f, "mine", "mine.added", "{\"text\":\"four\"}");
    ck_sql(&f, "SELECT text FROM mine ORDER BY 1", "four\none\nthree\ntwo\n");
    ck_sql(&f, "SELECT COUNT(*) FROM events WHERE type = 'sql.applied'", "2\n");
}
END_TEST

START_TEST(columns_indexes_and_views_that_are_new_are_added_in_place)
{
    static const char *const handlers = "-- on note.added\n"
                                        "INSERT INTO notes (session, seq, text)\n"
                                        "    VALUES (:session, :seq, $text);\n";
    static const struct {
        const char *tables;
        bool anew;
    } steps[] = {
        {"CREATE TABLE notes (session TEXT, seq INTEGER, text TEXT, PRIMARY KEY (session, seq));",
         false},
        {"CREATE TABLE notes (session TEXT, seq INTEGER, text TEXT, mood TEXT DEFAULT 'calm',\n"
         "  n INTEGER NOT NULL DEFAULT 7, PRIMARY KEY (session, seq));",
         false},
        {"-- with a comment\nCREATE TABLE notes (session TEXT, seq INTEGER, text TEXT,\n"
         "  mood TEXT DEFAULT 'calm', n INTEGER NOT NULL DEFAULT 7, PRIMARY KEY (session, seq));\n"
         "CREATE INDEX by_text ON notes (text); CREATE VIEW v AS SELECT text FROM notes;\n"
         "CREATE TABLE other (a);",
         false},
        {"CREATE TABLE notes (session TEXT, seq INTEGER, text TEXT,\n"
         "  mood TEXT DEFAULT 'calm', n INTEGER NOT NULL DEFAULT 7, PRIMARY KEY (session, seq));\n"
         "CREATE INDEX by_text ON notes (text, n); CREATE VIEW v AS SELECT mood FROM notes;\n"
         "CREATE TABLE other (a);",
         false},
        {"CREATE TABLE notes (session TEXT, seq INTEGER, text TEXT,\n"
         "  mood TEXT DEFAULT 'wild', n INTEGER NOT NULL DEFAULT 7, PRIMARY KEY (session, seq));\n"
         "CREATE INDEX by_text ON notes (text, n); CREATE VIEW v AS SELECT mood FROM notes;\n"
         "CREATE TABLE other (a);",
         true}, /* another default */
        {"CREATE TABLE notes (session TEXT, seq INTEGER, text TEXT, mood TEXT DEFAULT 'wild',\n"
         "  n INTEGER NOT NULL DEFAULT 7, PRIMARY KEY (session, seq));",
         true}, /* a table is dropped */
        {"CREATE TABLE notes (session TEXT, seq INTEGER, text TEXT, mood TEXT DEFAULT 'wild',\n"
         "  n INTEGER NOT NULL DEFAULT 7, PRIMARY KEY (session, seq));\n"
         "CREATE TABLE kinds (a); INSERT INTO kinds VALUES (1);",
         true}, /* rows of the pack itself */
        {"CREATE TABLE notes (session TEXT, seq INTEGER, text TEXT, mood TEXT DEFAULT 'wild',\n"
         "  n INTEGER NOT NULL DEFAULT 7, PRIMARY KEY (session, seq));\n"
         "CREATE TABLE kinds (a); INSERT INTO kinds VALUES (1);"
         "CREATE TRIGGER t AFTER INSERT ON notes BEGIN SELECT 1; END;",
         true},
        {"CREATE TABLE notes (session TEXT, seq INTEGER, new TEXT, text TEXT, mood TEXT DEFAULT "
         "'wild',\n  n INTEGER NOT NULL DEFAULT 7, PRIMARY KEY (session, seq));\n"
         "CREATE TABLE kinds (a); INSERT INTO kinds VALUES (1);"
         "CREATE TRIGGER t AFTER INSERT ON notes BEGIN SELECT 1; END;",
         true}, /* a column between old columns */
    };
    fixture_append(&f, "s1", "note.added", "{\"text\":\"one\"}");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char text[1000];
        snprintf(text, sizeof text, "-- pack notes   version 1   database notes.db\n%s\n%s",
                 steps[i].tables, handlers);
        put_pack("packs/notes.sql", text);
        char *got = fixture_sql(&f, "SELECT count(*) FROM notes WHERE session = 'mark'");
        ck_assert_msg(strcmp(got, steps[i].anew || i == 0 ? "0\n" : "1\n") == 0, "step %zu", i);
        free(got);
        ck_sql(&f, "SELECT text FROM notes WHERE session = 's1'", "one\n");
        if (i == 1)
            ck_sql(&f, "SELECT DISTINCT mood, n FROM notes", "calm|7\n");
        if (steps[i].anew || i == 0)
            put_mark();
    }
}
END_TEST

START_TEST(tables_of_a_newer_version_of_a_pack_are_left_alone)
{
    struct text text = {0};
    fixture_append(&f, "s1", "note.added", "{\"text\":\"one\"}");
    put_pack("packs/notes.sql", "-- pack notes   version 2   database notes.db\n"
                                "CREATE TABLE notes (session TEXT, loud TEXT);\n"
                                "-- on note.added\n"
                                "INSERT INTO notes VALUES (:session, upper($text));\n");
    ck_sql(&f, "SELECT loud FROM notes", "ONE\n");
    put_pack("packs/notes.sql", notes);
    ck_sql(&f, "SELECT loud FROM notes", "ONE\n");
    fixture_append(&f, "s1", "note.added", "{\"text\":\"two\"}");
    ck_sql(&f, "SELECT loud FROM notes", "ONE\n");
    ck_ok(annal_pack_each(f.index, text_info, &text, err));
    ck_assert_ptr_nonnull(strstr(text.ptr, "notes 1 2 1 1 1 0 own"));
    free(text.ptr);
}
END_TEST

static int text_pack_finding(void *arg, const annal_pack_finding *finding)
{
    char line[400];
    snprintf(line, sizeof line, "%s %s %s%s\n", finding->pack,
             finding->table == NULL ? "-" : finding->table, finding->remark ? "remark: " : "",
             finding->what);
    text_add(arg, line, strlen(line));
    return 0;
}

START_TEST(verify_reports_tables_that_differ_from_the_events)
{
    struct text text = {0};
    put_pack("packs/notes.sql", notes);
    put_pack("packs/runs.sql", runs);
    text_add(&text, "", 0);
    ck_ok(annal_pack_verify(f.index, text_pack_finding, &text, err));
    ck_assert_int_ne(access(tmpdir_path(&f.dir, "store/notes.db"), F_OK), 0);
    fixture_append(&f, "s1", "note.added", "{\"text\":\"one\"}");
    fixture_append(&f, "run_a", "run.stepped", "{}");
    const annal_catch_up_options all = {.every_database = true};
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, &all, err));
    fixture_append(&f, "s1", "note.added", "{\"text\":\"not yet indexed\"}");
    ck_ok(annal_pack_verify(f.index, text_pack_finding, &text, err));
    ck_assert_str_eq(text.ptr, "");
    put_mark();
    ck_ok(annal_pack_verify(f.index, text_pack_finding, &text, err));
    ck_assert_str_eq(text.ptr, "notes notes its rows differ from what the events yield\n");
    ck_ok(annal_index_rebuild(f.index, NULL, err));
    text.len = 0;
    text_add(&text, "", 0);
    ck_ok(annal_pack_verify(f.index, text_pack_finding, &text, err));
    ck_assert_str_eq(text.ptr, "");
    free(text.ptr);
}
END_TEST

Suite *suite_packs(void)
{
    Suite *suite = suite_create("packs");
    TCase *tcase = suite_case(suite, "packs", fixture_setup, fixture_teardown);
    tcase_add_test(tcase, a_pack_dropped_into_the_store_is_filled_and_updated);
    tcase_add_test(tcase, a_pack_whose_file_changes_is_rebuilt);
    tcase_add_test(tcase, a_pack_narrowed_to_fewer_sessions_drops_the_rows_of_the_others);
    tcase_add_test(tcase, a_wrong_pack_does_not_affect_the_others);
    tcase_add_test(tcase, packs_keep_their_tables_when_another_pack_of_their_database_is_rebuilt);
    tcase_add_test(tcase, a_deleted_pack_database_is_rebuilt);
    tcase_add_test(tcase, builtin_packs_are_enabled_and_disabled);
    tcase_add_test(tcase, enable_with_at_puts_the_database_there);
    tcase_add_test(tcase, index_packs_reports_the_state_of_each_pack);
    tcase_add_test(tcase, a_rebuild_fails_on_a_full_disk_and_the_next_catch_up_finishes_it);
    tcase_add_test(tcase, a_pack_may_have_a_database_for_each_session);
    tcase_add_test(tcase, databases_of_sessions_are_closed_after_the_catch_up);
    tcase_add_test(tcase, packs_catch_up_with_earlier_events_and_follow_new_events);
    tcase_add_test(tcase, a_database_that_a_user_puts_into_wal_mode_loses_nothing);
    tcase_add_test(tcase, columns_indexes_and_views_that_are_new_are_added_in_place);
    tcase_add_test(tcase, a_plan_older_than_the_emptied_tables_is_not_executed);
    tcase_add_test(tcase, tables_of_a_newer_version_of_a_pack_are_left_alone);
    tcase_add_test(tcase, verify_reports_tables_that_differ_from_the_events);
    return suite;
}
