/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables that somebody dropped, altered or damaged are rebuilt before they are asked, or the
 * question fails: a wrong answer is never given as a right one.
 */
#include "tests/packs/fixture.h"
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char calls[] = "-- pack calls   version 1   database calls.db\n"
                            "CREATE TABLE calls (session_id TEXT, seq INTEGER, tool TEXT);\n"
                            "CREATE INDEX calls_tool ON calls(tool);\n"
                            "CREATE TABLE untouched (n INTEGER);\n"
                            "INSERT INTO untouched VALUES (7);\n"
                            "CREATE VIEW all_calls AS SELECT count(*) AS n FROM calls;\n"
                            "-- on tool.called\n"
                            "INSERT INTO calls VALUES (:session, :seq, $tool);\n"
                            "-- forget\n"
                            "DELETE FROM calls WHERE session_id = :session;\n";

static void append_calls(const char *session, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        packs_append_past(&p, session, "tool.called", "{\"tool\":\"Bash\"}");
}

/* Two sessions, 14 calls, and the pack filled. */
static void init(void)
{
    packs_add(&p, "calls", calls);
    append_calls("sess_1", 6);
    append_calls("sess_2", 8);
    ck_packs(&p, "SELECT n FROM all_calls", "14\n");
}

static void shell(const char *database, const char *sql)
{
    ck_text(packs_shell(&p, database, sql), "");
}

/* What a user's shell does to the pack's database. */
static const char *const done_to_packs[] = {
    "DROP TABLE calls;",
    "DROP VIEW all_calls;",
    "DROP INDEX calls_tool;",
    "DROP TABLE untouched;",
    "DROP VIEW all_calls; ALTER TABLE calls DROP COLUMN seq;",
    "DROP VIEW all_calls; DROP TABLE IF EXISTS others; ALTER TABLE calls RENAME TO others;",
    "DROP TABLE calls; CREATE TABLE calls (session_id, seq, tool);",
    "DROP TABLE _cursor;",
    "DROP TABLE _findings;",
    "DROP TABLE _object;",
    "DROP TABLE _pack;",
    "DROP TABLE _stamp;",
    "DELETE FROM _stamp;",
};

static const char all_of_it[] =
    "SELECT (SELECT n FROM all_calls), (SELECT count(seq) FROM calls INDEXED BY calls_tool "
    "WHERE tool = 'Bash'), (SELECT n FROM untouched)";

/* By this process, whose connections are open, with nothing new, and behind a longer journal. */
START_TEST(tables_of_a_pack_that_were_dropped_or_altered_are_rebuilt_before_they_are_asked)
{
    init();
    shell("calls.db", done_to_packs[_i]);
    ck_packs(&p, all_of_it, "14|14|7\n");
    shell("calls.db", done_to_packs[_i]);
    append_calls("sess_2", 1);
    ck_packs(&p, all_of_it, "15|15|7\n");
    packs_close(&p);
    shell("calls.db", done_to_packs[_i]);
    packs_reopen(&p);
    append_calls("sess_1", 1);
    ck_packs(&p, all_of_it, "16|16|7\n");
}
END_TEST

/* What others add to the database of a pack. */
static const char *const added[] = {
    "CREATE TABLE notes (n);",
    "CREATE INDEX mine ON calls(seq);",
    "CREATE INDEX mine ON _stamp(abs(id));",
    "CREATE VIEW mine AS SELECT * FROM calls;",
    "CREATE TRIGGER mine AFTER INSERT ON calls BEGIN DELETE FROM untouched; END;",
    "CREATE TRIGGER mine AFTER UPDATE ON _stamp BEGIN DELETE FROM untouched; END;",
    /* also with a claim that the pack created it, or that the tables are of an older text */
    "CREATE TRIGGER mine AFTER UPDATE ON _stamp BEGIN DELETE FROM untouched; END; "
    "INSERT INTO _object VALUES ('calls', 'trigger', 'mine'); UPDATE _pack SET tables_hash = 1;",
    "DROP INDEX calls_tool; CREATE INDEX calls_tool ON _cursor(abs(seq)); UPDATE _pack SET "
    "tables_hash = 1;",
    "DROP VIEW all_calls; CREATE VIEW all_calls AS SELECT 99 AS n; UPDATE _pack SET "
    "tables_hash = 1;",
    "DROP VIEW all_calls; CREATE VIEW all_calls AS SELECT 99 AS n; UPDATE _pack SET "
    "tables_hash = 1, version = 9;",
};

START_TEST(sql_that_others_add_to_the_database_of_a_pack_never_runs)
{
    init();
    for (int again = 0; again < 2; again++) {
        shell("calls.db", added[_i]);
        append_calls("sess_1", 1);
        ck_packs(&p, all_of_it, again == 0 ? "15|15|7\n" : "16|16|7\n");
        ck_packs(&p,
                 "SELECT count(*) FROM calls.sqlite_schema WHERE name IN ('mine', 'notes') "
                 "OR name = 'calls_tool' AND sql LIKE '%_cursor%'",
                 "0\n");
    }
}
END_TEST

/* As another process has one. */
START_TEST(an_index_whose_tables_another_one_rebuilt_is_asked_whole)
{
    annal_index *first;
    init();
    first = p.index;
    ck_ok(annal_index_open(p.store, NULL, &p.index, err));
    shell("calls.db", "DROP TABLE calls;");
    append_calls("sess_2", 1);
    ck_packs(&p, all_of_it, "15|15|7\n");
    annal_index_close(p.index);
    p.index = first;
    append_calls("sess_1", 1);
    ck_packs(&p, all_of_it, "16|16|7\n");
}
END_TEST

static const char *const done_to_core[] = {
    "DROP TABLE tool_calls;",
    "DROP TABLE sessions;",
    "DROP TABLE event_index;",
    "DROP INDEX idx_event_index_type_time;",
    "DROP VIEW usage_by_day;",
    "DROP TABLE snapshots;",
    "DROP TABLE _counts;",
    "DROP TABLE _cursor;",
    "DROP TABLE _findings;",
    "DROP TABLE _stamp;",
    "ALTER TABLE sessions DROP COLUMN title;",
};

static const char all_of_core[] =
    "SELECT count(*), (SELECT sum(events) FROM sessions WHERE title IS NULL), (SELECT count(*) "
    "FROM event_index INDEXED BY idx_event_index_type_time WHERE type = 'tool.called'), "
    "(SELECT count(*) FROM snapshots), (SELECT count(*) FROM usage_by_day) FROM tool_calls";

START_TEST(core_tables_that_were_dropped_or_altered_are_rebuilt_before_they_are_asked)
{
    init();
    ck_packs(&p, all_of_core, "14|14|14|0|0\n");
    shell("sessions.db", done_to_core[_i]);
    ck_packs(&p, all_of_core, "14|14|14|0|0\n");
    shell("sessions.db", done_to_core[_i]);
    append_calls("sess_1", 1);
    ck_packs(&p, all_of_core, "15|15|15|0|0\n");
    packs_close(&p);
    shell("sessions.db", done_to_core[_i]);
    packs_reopen(&p);
    ck_packs(&p, all_of_core, "15|15|15|0|0\n");
}
END_TEST

/* A guard decides over what was dropped. */
START_TEST(a_guard_is_asked_over_tables_that_were_dropped_only_after_they_are_rebuilt)
{
    static const char tasks[] = "-- pack tasks   version 1   database tasks.db\n"
                                "CREATE TABLE tasks (id TEXT PRIMARY KEY, state TEXT);\n"
                                "-- on task.added   guarded \"it is there already\"\n"
                                "INSERT INTO tasks VALUES ($id, 'open');\n";
    packs_add(&p, "tasks", tasks);
    ck_append(&p, "s1", "task.added", "{\"id\":\"a\"}");
    ck_append(&p, "s2", "task.added", "{\"id\":\"b\"}");
    shell("tasks.db", "DROP TABLE tasks;");
    ck_refused(&p, "s2", "task.added", "{\"id\":\"a\"}", "it is there already");
    ck_append(&p, "s2", "task.added", "{\"id\":\"c\"}");
    ck_packs(&p, "SELECT group_concat(id) FROM tasks", "a,b,c\n");
}
END_TEST

/* Users write these; what waits there to become events is not lost with a table. */
START_TEST(a_table_that_users_dropped_from_a_writable_database_comes_back_with_what_they_wrote)
{
    static const char run[] = "prose_20261120-120000-abcdef";
    static const char database[] = "prose/runs/20261120-120000-abcdef/state.db";
    PACKS_ENABLE(&p, "prose");
    ck_append(&p, run, "run.started",
              "{\"id\":\"20261120-120000-abcdef\",\"program_path\":\"p.prose\"}");
    ck_append(&p, run, "binding.set", "{\"name\":\"a\",\"value\":\"x\"}");
    packs_close(&p);
    shell(database, "INSERT INTO bindings (name, kind, value, source_statement) "
                    "VALUES ('b', 'let', 'y', 's'); DROP TABLE bindings; DROP TABLE run;");
    packs_reopen(&p);
    ck_append(&p, run, "binding.set", "{\"name\":\"c\",\"value\":\"z\"}");
    ck_text(packs_shell(&p, database,
                        "SELECT group_concat(name), (SELECT count(*) FROM run) "
                        "FROM (SELECT name FROM bindings ORDER BY name);"),
            "a,b,c|1\n");
}
END_TEST

/* Each page in turn, but for the first: SQLite would not take the file for a database. */
START_TEST(pages_of_a_pack_that_are_damaged_are_rebuilt_or_the_question_fails)
{
    enum { PAGE = 4096 };
    size_t len = 0;
    unsigned healed = 0;
    init();
    append_calls("sess_1", 300);
    ck_packs(&p, "SELECT n FROM all_calls", "314\n");
    const char *path = tmpdir_path(&p.dir, "store/calls.db");
    for (size_t at = PAGE;; at += PAGE) {
        packs_close(&p);
        char *bytes = file_read(path, &len);
        if (at >= len) {
            free(bytes);
            break;
        }
        memset(bytes + at, 0, PAGE);
        file_write(path, bytes, len);
        free(bytes);
        packs_reopen(&p);
        for (unsigned again = 0; again < 2; again++) {
            annal_error err = {0};
            struct text text = {0};
            text_add(&text, "", 0);
            annal_status status = annal_index_sql(
                p.index,
                ANNAL_SLICE("SELECT n, (SELECT count(tool) FROM calls NOT INDEXED), "
                            "(SELECT n FROM untouched) FROM all_calls"),
                NULL, text_row, &text, &err);
            ck_assert_msg(again == 0 || status >= 0, "page at %zu: %s", at, err.message);
            ck_assert(status < 0 || strcmp(text.ptr, "314|314|7\n") == 0);
            healed += status >= 0;
            free(text.ptr);
        }
    }
    ck_assert_uint_ge(healed, 6);
    packs_reopen(&p);
}
END_TEST

Suite *suite_damage(void)
{
    Suite *suite = suite_create("damage");
    TCase *tcase = suite_case(suite, "damage", packs_setup, packs_teardown);
    tcase_add_loop_test(
        tcase, tables_of_a_pack_that_were_dropped_or_altered_are_rebuilt_before_they_are_asked, 0,
        (int)(sizeof done_to_packs / sizeof *done_to_packs));
    tcase_add_loop_test(tcase, sql_that_others_add_to_the_database_of_a_pack_never_runs, 0,
                        (int)(sizeof added / sizeof *added));
    tcase_add_test(tcase, an_index_whose_tables_another_one_rebuilt_is_asked_whole);
    tcase_add_loop_test(tcase,
                        core_tables_that_were_dropped_or_altered_are_rebuilt_before_they_are_asked,
                        0, (int)(sizeof done_to_core / sizeof *done_to_core));
    tcase_add_test(tcase,
                   a_guard_is_asked_over_tables_that_were_dropped_only_after_they_are_rebuilt);
    tcase_add_test(
        tcase, a_table_that_users_dropped_from_a_writable_database_comes_back_with_what_they_wrote);
    tcase_add_test(tcase, pages_of_a_pack_that_are_damaged_are_rebuilt_or_the_question_fails);
    return suite;
}
