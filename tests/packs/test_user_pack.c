/* SPDX-License-Identifier: Apache-2.0 */
/* The example of docs/packs.md, word for word. */
#include "index/sys/pack.h"
#include "index/sys/state.h"
#include "journal/sys/delete.h"
#include "tests/packs/fixture.h"
#include "tests/support/runner.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Read the first block of SQL of the page; free() it. */
static char *example(void)
{
    char *page = file_read(SOURCE_DOCS "/packs.md", NULL);
    char *begin = strstr(page, "```sql\n");
    ck_assert_ptr_nonnull(begin);
    begin += strlen("```sql\n");
    char *text = strndup(begin, (size_t)(strstr(begin, "\n```") + 1 - begin));
    free(page);
    return text;
}

START_TEST(the_example_of_the_page_is_a_pack_of_30_lines_at_most)
{
    char *text = example();
    unsigned lines = 0;
    for (const char *c = text; *c != '\0'; c++)
        lines += *c == '\n';
    ck_assert_uint_le(lines, 30);
    annal_pack *pack = NULL;
    ck_ok(annal_pack_parse("docs/packs.md", annal_slice_of(text), &pack, err));
    ck_assert_str_eq(annal__pack_name(pack), "tools_per_day");
    annal_pack_free(pack);
    free(text);
}
END_TEST

START_TEST(the_example_counts_calls_by_tool_and_day)
{
    char *text = example();
    struct memory m;
    memory_init_text(&m, "sess_1", text);
    memory_apply(&m, "tool.called", "{\"tool\":\"Bash\"}");
    memory_apply(&m, "tool.called", "{\"tool\":\"Bash\"}");
    memory_apply(&m, "tool.called", "{}");
    memory_apply(&m, "tool.returned", "{\"tool\":\"Bash\"}");
    m.ts_us += 86400ll * 1000000;
    memory_apply(&m, "tool.called", "{\"tool\":\"Bash\"}");
    ck_memory(&m, "SELECT * FROM tools_per_day",
              "2026-01-06|?|1|1\n2026-01-06|Bash|2|1\n2026-01-07|Bash|1|1\n");
    ck_assert_uint_eq(annal__state_refused(m.state), 0);
    memory_done(&m);
    free(text);
}
END_TEST

static const char all_rows[] = "SELECT * FROM tools_per_day ORDER BY day, tool";

static const char *pack_path(void)
{
    return tmpdir_path(&p.dir, "store/packs/tools_per_day.sql");
}

/* Create a store with events and put text into it as a pack. */
static void init_with_pack(const char *text)
{
    p.past_us = 1767684240000000; /* 2026-01-06T07:24:00Z */
    packs_append_past(&p, "sess_1", "tool.called", "{\"tool\":\"Bash\"}");
    packs_append_past(&p, "sess_1", "note.added", "{\"tool\":\"Bash\"}");
    packs_append_past(&p, "sess_2", "tool.called", "{\"tool\":\"Bash\"}");
    packs_append_past(&p, "sess_2", "tool.called", "{\"tool\":\"Read\"}");
    ck_packs(&p, "SELECT count(*) FROM sessions", "2\n");
    packs_add(&p, "tools_per_day", text);
}

START_TEST(the_example_dropped_into_a_store_is_filled_and_updated)
{
    char *text = example();
    init_with_pack(text);
    ck_packs(&p, all_rows, "2026-01-06|Bash|2|2\n2026-01-06|Read|1|1\n");
    packs_append_past(&p, "sess_3", "tool.called", "{\"tool\":\"Read\"}");
    ck_packs(&p, all_rows, "2026-01-06|Bash|2|2\n2026-01-06|Read|2|2\n");
    ck_text(packs_shell(&p, "tools.db", all_rows), "2026-01-06|Bash|2|2\n2026-01-06|Read|2|2\n");
    free(text);
}
END_TEST

START_TEST(the_example_drops_the_rows_of_a_deleted_session)
{
    char *text = example();
    init_with_pack(text);
    ck_packs(&p, all_rows, "2026-01-06|Bash|2|2\n2026-01-06|Read|1|1\n");
    ck_ok(annal__replace_delete(p.store, ANNAL_SLICE("sess_2"), NULL, err));
    ck_packs(&p, all_rows, "2026-01-06|Bash|1|1\n");
    free(text);
}
END_TEST

START_TEST(a_changed_handler_of_the_example_rebuilds_its_tables)
{
    char *text = example();
    init_with_pack(text);
    ck_packs(&p, all_rows, "2026-01-06|Bash|2|2\n2026-01-06|Read|1|1\n");
    char *month = strstr(text, "substr(:ts, 1, 10)");
    ck_assert_ptr_nonnull(month);
    memcpy(month, "substr(:ts, 1,  7)", 18);
    file_write(pack_path(), text, strlen(text));
    ck_packs(&p, all_rows, "2026-01|Bash|2|2\n2026-01|Read|1|1\n");
    free(text);
}
END_TEST

/* Delete a row as another program; a rebuild would restore it. */
static void delete_row(void)
{
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(tmpdir_path(&p.dir, "store/tools.db"), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "DELETE FROM tool_days WHERE tool = 'Read'", 0, 0, 0),
                     SQLITE_OK);
    sqlite3_close(db);
}

START_TEST(a_changed_verb_of_the_example_keeps_its_tables)
{
    static const char verbs[] = "\n-- noun tool   \"tools\"\n"
                                "-- verb tool call   appends tool.called   session s   \"call\"\n"
                                "--   TOOL text tool \"which\"\n";
    char *text = example(), more[3000];
    init_with_pack(text);
    ck_packs(&p, all_rows, "2026-01-06|Bash|2|2\n2026-01-06|Read|1|1\n");
    delete_row();
    snprintf(more, sizeof more, "%s%s", text, verbs);
    file_write(pack_path(), more, strlen(more));
    ck_packs(&p, all_rows, "2026-01-06|Bash|2|2\n");
    strstr(more, "TOOL")[0] = 'P';
    file_write(pack_path(), more, strlen(more));
    ck_packs(&p, all_rows, "2026-01-06|Bash|2|2\n");
    memcpy(strstr(more, "substr(:ts, 1, 10)"), "substr(:ts, 1,  7)", 18);
    file_write(pack_path(), more, strlen(more));
    ck_packs(&p, all_rows, "2026-01|Bash|2|2\n2026-01|Read|1|1\n");
    free(text);
}
END_TEST

START_TEST(the_example_is_rebuilt_without_its_database_and_disabled_without_its_file)
{
    char *text = example();
    init_with_pack(text);
    ck_packs(&p, all_rows, "2026-01-06|Bash|2|2\n2026-01-06|Read|1|1\n");
    ck_assert_int_eq(unlink(tmpdir_path(&p.dir, "store/tools.db")), 0);
    ck_packs(&p, all_rows, "2026-01-06|Bash|2|2\n2026-01-06|Read|1|1\n");
    ck_ok(annal_pack_rebuild(p.index, "tools_per_day", NULL, err));
    ck_packs(&p, all_rows, "2026-01-06|Bash|2|2\n2026-01-06|Read|1|1\n");
    ck_assert_int_eq(unlink(pack_path()), 0);
    ck_fails(ANNAL_ERR_SQL, "tools_per_day",
             annal_index_sql(p.index, annal_slice_of(all_rows), NULL, NULL, NULL, err));
    free(text);
}
END_TEST

START_TEST(a_mistake_in_the_example_has_the_message_on_the_page)
{
    char *text = example();
    char *calls = strstr(text, "calls + 1");
    annal_pack *pack = NULL;
    annal_error err = {0};
    ck_assert_ptr_nonnull(calls);
    memcpy(calls, " call + 1", 9);
    ck_assert_int_eq(annal_pack_parse("tools_per_day.sql", annal_slice_of(text), &pack, &err),
                     ANNAL_ERR_SQL);
    char *page = file_read(SOURCE_DOCS "/packs.md", NULL);
    char shown[sizeof err.message + 10];
    snprintf(shown, sizeof shown, "annal: %s\n", err.message);
    ck_assert_msg(strstr(page, shown) != NULL, "the page does not show: %s", shown);
    free(page);
    free(text);
}
END_TEST

START_TEST(a_link_in_place_of_a_pack_database_is_refused)
{
    char *text = example();
    init_with_pack(text);
    const char *outside = tmpdir_path(&p.dir, "outside.db");
    FILE *file = fopen(outside, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_int_eq(symlink(outside, tmpdir_path(&p.dir, "store/tools.db")), 0);
    ck_fails(ANNAL_ERR_SQL, "no such table: tools_per_day",
             annal_index_sql(p.index, annal_slice_of(all_rows), NULL, text_row, NULL, err));
    size_t len = 1;
    free(file_read(outside, &len));
    ck_assert_uint_eq(len, 0);
    ck_assert_int_eq(unlink(tmpdir_path(&p.dir, "store/tools.db")), 0);
    ck_packs(&p, all_rows, "2026-01-06|Bash|2|2\n2026-01-06|Read|1|1\n");
    free(text);
}
END_TEST

#define ENDLESS "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"

START_TEST(an_event_with_an_endless_handler_is_a_finding)
{
    init_with_pack("-- pack spin   version 1   database spin.db\n"
                   "CREATE TABLE spun (n);\n"
                   "-- on note.added\n"
                   "INSERT INTO spun SELECT x FROM (" ENDLESS ") WHERE x < 0;\n"
                   "-- on tool.called\n"
                   "INSERT INTO spun VALUES (:seq);\n");
    ck_packs(&p, "SELECT count(*) FROM spun", "3\n");
    char *what = packs_shell(&p, "spin.db", "SELECT session_id, seq, what FROM _findings");
    ck_assert_ptr_nonnull(strstr(
        what,
        "sess_1|2|note.added: the statement was stopped, because it takes more than 100 million"));
    free(what);
}
END_TEST

/* Rows of 900 MB, of which SQLite keeps few in memory; then a single value of that size. */
START_TEST(an_event_whose_handler_writes_without_a_limit_is_a_finding)
{
    init_with_pack("-- pack fat   version 1   database fat.db\n"
                   "CREATE TABLE fat (n, b);\n"
                   "-- on note.added\n"
                   "INSERT INTO fat SELECT x, zeroblob(1000000) FROM (" ENDLESS " LIMIT 900);\n"
                   "-- on turn.started\n"
                   "INSERT INTO fat VALUES (:seq, zeroblob(900000000));\n"
                   "-- on tool.called\n"
                   "INSERT INTO fat VALUES (:seq, 'x');\n");
    packs_append_past(&p, "sess_9", "turn.started", "{}");
    ck_packs(&p, "SELECT count(*) FROM fat", "3\n");
    char *what = packs_shell(&p, "fat.db", "SELECT what FROM _findings ORDER BY session_id, seq");
    ck_assert_str_eq(what, "note.added: the statement was stopped, because it holds or writes more "
                           "than 256 MiB for one event\n"
                           "turn.started: a value is larger than 128 MiB\n");
    free(what);
}
END_TEST

START_TEST(a_stopped_event_that_was_not_appended_leaves_the_next_event_alone)
{
    packs_add(&p, "once",
              "-- pack once   version 1   database once.db\n"
              "CREATE TABLE t (v UNIQUE);\n"
              "-- on a.b   guarded \"it is taken\"\n"
              "INSERT OR ROLLBACK INTO t VALUES ($v);\n");
    ck_append(&p, "s", "a.b", "{\"v\":1}");
    ck_fails(ANNAL_ERR_LIMIT, "it rolled back", packs_append(&p, "s", "a.b", "{\"v\":1}", err));
    ck_append(&p, "s", "a.b", "{\"v\":2}");
    ck_packs(&p, "SELECT v FROM t ORDER BY v", "1\n2\n");
}
END_TEST

START_TEST(an_endless_creation_of_tables_is_refused)
{
    static const char text[] = "-- pack spin   version 1   database spin.db\n"
                               "CREATE TABLE spun AS\n"
                               "  SELECT x FROM (" ENDLESS ") WHERE x < 0;\n";
    annal_pack *pack = NULL;
    ck_fails(ANNAL_ERR_SQL,
             "spin.sql:2: the statement was stopped, because it takes more than 100 million "
             "instructions",
             annal_pack_parse("spin.sql", annal_slice_of(text), &pack, err));
}
END_TEST

START_TEST(a_dropped_table_or_column_is_rebuilt_with_its_rows)
{
    static const char *const harm[] = {"ALTER TABLE notes DROP COLUMN text", "DROP TABLE notes"};
    for (size_t i = 0; i < sizeof harm / sizeof *harm; i++) {
        packs_add(&p, "notes",
                  "-- pack notes   version 1   database notes.db\n"
                  "CREATE TABLE notes (id TEXT, text TEXT);\n"
                  "-- on note.added\n"
                  "INSERT INTO notes VALUES ($id, $text);\n");
        packs_append_past(&p, "s", "note.added", "{\"id\":\"a\",\"text\":\"one\"}");
        ck_packs(&p, "SELECT * FROM notes", "a|one\n");
        packs_close(&p);
        free(packs_shell(&p, "notes.db", harm[i]));
        packs_reopen(&p);
        packs_append_past(&p, "s", "note.added", "{\"id\":\"b\",\"text\":\"two\"}");
        ck_packs(&p, "SELECT * FROM notes ORDER BY id", "a|one\nb|two\n");
        packs_teardown();
        packs_setup();
    }
}
END_TEST

Suite *suite_user_pack(void)
{
    Suite *suite = suite_create("user_pack");
    TCase *tcase = suite_case(suite, "user_pack", packs_setup, packs_teardown);
    tcase_add_test(tcase, the_example_of_the_page_is_a_pack_of_30_lines_at_most);
    tcase_add_test(tcase, a_mistake_in_the_example_has_the_message_on_the_page);
    tcase_add_test(tcase, the_example_counts_calls_by_tool_and_day);
    tcase_add_test(tcase, the_example_dropped_into_a_store_is_filled_and_updated);
    tcase_add_test(tcase, the_example_drops_the_rows_of_a_deleted_session);
    tcase_add_test(tcase, a_changed_handler_of_the_example_rebuilds_its_tables);
    tcase_add_test(tcase, a_changed_verb_of_the_example_keeps_its_tables);
    tcase_add_test(tcase,
                   the_example_is_rebuilt_without_its_database_and_disabled_without_its_file);
    tcase_add_test(tcase, a_dropped_table_or_column_is_rebuilt_with_its_rows);
    tcase_add_test(tcase, a_link_in_place_of_a_pack_database_is_refused);
    TCase *endless = suite_case(suite, "endless", packs_setup, packs_teardown);
    tcase_add_test(endless, an_event_with_an_endless_handler_is_a_finding);
    tcase_add_test(endless, an_event_whose_handler_writes_without_a_limit_is_a_finding);
    tcase_add_test(endless, a_stopped_event_that_was_not_appended_leaves_the_next_event_alone);
    tcase_add_test(endless, an_endless_creation_of_tables_is_refused);
    return suite;
}
