/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and tables that users write into a writable database with the stock shell. */
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include "index/db/db.h"
#include "index/pack/applier.h"
#include "index/pack/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SESSION "prose_r1"

static const char PACK[] =
    "-- pack notes   version 1   database *.db   sessions prose_*   writable\n"
    "CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT, extra);\n"
    "CREATE TABLE names (name TEXT, scope INTEGER, value);\n"
    "CREATE UNIQUE INDEX names_key ON names(name, IFNULL(scope, -1));\n"
    "CREATE TABLE words (word TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID;\n"
    "-- on note.added\n"
    "INSERT INTO notes (id, text) VALUES ($id, $text);\n"
    "-- on name.set\n"
    "INSERT INTO names (name, value) VALUES ($name, $value)\n"
    "ON CONFLICT (name, IFNULL(scope, -1)) DO UPDATE SET value = excluded.value;\n";

static struct notes {
    struct fixture f;
    annal_pack *pack;
    const char *path; /* database file */
    sqlite3 *db;
    struct applier *applier;
    annal_position applied;
} notes;

static void run(sqlite3 *db, const char *sql)
{
    ck_ok(annal__db_exec(db, sql, err));
}

/* Create the tables as the filler of a database does: triggers off, tables, outbox. */
static void make_notes(sqlite3 *db)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    run(db, "BEGIN IMMEDIATE");
    ck_ok(annal__pack_make_tables(notes.pack, db, err));
    ck_ok(annal__outbox_make(db, err));
    run(db, "COMMIT");
}

static void setup(void)
{
    notes = (struct notes){0};
    fixture_init(&notes.f);
    notes.path = tmpdir_path(&notes.f.dir, "notes.db");
    ck_ok(annal__pack_read("notes.sql", annal_slice_of(PACK), &notes.pack, err));
    ck_ok(annal__db_open(notes.path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &notes.db, err));
    make_notes(notes.db);
    ck_ok(annal__applier_new(notes.db, (const annal_pack *const[]){notes.pack}, 1, &notes.applier,
                             err));
}

static void teardown(void)
{
    annal__applier_free(notes.applier);
    annal__db_close(notes.db);
    annal_pack_free(notes.pack);
    fixture_done(&notes.f);
}

/* Run SQL in the stock shell; sets *out_said to its stderr (may be NULL). */
static int shell(const char *sql)
{
    const char *script = tmpdir_path(&notes.f.dir, "script.sql");
    char command[1024];
    file_write(script, sql, strlen(sql));
    snprintf(command, sizeof command, "sqlite3 -bail '%s' < '%s' > '%s' 2>&1", notes.path, script,
             tmpdir_path(&notes.f.dir, "said"));
    return system(command);
}

static void ck_shell(const char *sql)
{
    int rc = shell(sql);
    size_t len;
    char *said = file_read(tmpdir_path(&notes.f.dir, "said"), &len);
    ck_assert_msg(rc == 0, "%s: %s", sql, said);
    free(said);
}

static void ck_shell_fails(const char *sql, const char *text)
{
    int rc = shell(sql);
    size_t len;
    char *said = file_read(tmpdir_path(&notes.f.dir, "said"), &len);
    ck_assert_msg(rc != 0 && strstr(said, text) != NULL, "%s: %s", sql, said);
    free(said);
}

/* Apply the events after the position to the tables. */
static void apply_rest(sqlite3 *db, struct applier *applier, annal_position *position)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    const char *refused = NULL;
    annal_status status;
    if (position->seq == 0)
        status = annal_cursor_open(notes.f.store, ANNAL_SLICE(SESSION), 1, &cursor, NULL);
    else
        status = annal_cursor_open_at(notes.f.store, ANNAL_SLICE(SESSION), position->seq,
                                      position->offset, position->h_before, &cursor, NULL);
    run(db, "BEGIN IMMEDIATE");
    while (status == ANNAL_OK && (status = annal_cursor_next(cursor, &event, NULL)) == ANNAL_OK)
        ck_ok(annal__applier_event(applier, ANNAL_SLICE(SESSION), &event, &refused, err));
    run(db, "COMMIT");
    if (cursor != NULL)
        *position = annal_cursor_position(cursor);
    annal_cursor_close(cursor);
}

/* Catch up as the engine does; returns whether it had to rebuild the tables. */
static bool catch_up(void)
{
    struct outbox_drained drained;
    const struct outbox_target target = {notes.f.store, ANNAL_SLICE(SESSION), notes.pack,
                                         notes.applied};
    run(notes.db, "BEGIN IMMEDIATE");
    ck_ok(annal__outbox_drain(notes.db, &target, &drained, err));
    if (drained.must_rebuild) {
        ck_ok(annal__outbox_drop(notes.db, err));
        run(notes.db, "DROP TABLE IF EXISTS notes; DROP TABLE IF EXISTS names;"
                      "DROP TABLE IF EXISTS words");
        ck_ok(annal__pack_make_tables(notes.pack, notes.db, err));
        ck_ok(annal__outbox_make(notes.db, err));
        notes.applied = (annal_position){0};
    }
    run(notes.db, "COMMIT");
    apply_rest(notes.db, notes.applier, &notes.applied);
    bool waits = true;
    ck_ok(annal__outbox_waits(notes.db, &waits, err));
    ck_assert(!waits);
    return drained.must_rebuild;
}

/* Dump every row of the tables of packs and users, and the users' schema, in a fixed order. */
static char *dump(sqlite3 *db)
{
    struct text text = {0};
    sqlite3_stmt *tables = NULL;
    text_add(&text, "", 0);
    ck_ok(annal__db_prepare(
        db,
        "SELECT name, (SELECT group_concat('quote(\"' || replace(name, '\"', '\"\"') || '\")', "
        "'||'',''||') FROM pragma_table_xinfo(l.name) WHERE hidden = 0) "
        "FROM pragma_table_list AS l WHERE schema = 'main' AND type = 'table' "
        "AND name NOT GLOB '_*' AND name NOT GLOB 'sqlite_*' ORDER BY 1",
        &tables, err));
    while (sqlite3_step(tables) == SQLITE_ROW) {
        char *sql = sqlite3_mprintf("SELECT %s FROM \"%w\" ORDER BY 1",
                                    sqlite3_column_text(tables, 1), sqlite3_column_text(tables, 0));
        text_add(&text, (const char *)sqlite3_column_text(tables, 0),
                 strlen((const char *)sqlite3_column_text(tables, 0)));
        text_add(&text, "\n", 1);
        ck_ok(annal__db_select(db, annal_slice_of(sql), NULL, text_row, &text, err));
        sqlite3_free(sql);
    }
    sqlite3_finalize(tables);
    ck_ok(annal__db_select(db,
                           ANNAL_SLICE("SELECT type, name, sql FROM sqlite_schema WHERE name NOT "
                                       "GLOB '_*' AND name NOT GLOB 'sqlite_*' ORDER BY 1, 2"),
                           NULL, text_row, &text, err));
    return text.ptr;
}

/* Assert that the tables equal a rebuild from the journal, in a file and in memory. */
static void ck_rebuild(void)
{
    sqlite3 *db = NULL;
    struct applier *applier = NULL;
    annal_position position = {0};
    ck_ok(annal__db_open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, err));
    make_notes(db);
    ck_ok(annal__applier_new(db, (const annal_pack *const[]){notes.pack}, 1, &applier, err));
    apply_rest(db, applier, &position);
    char *live = dump(notes.db);
    ck_text(dump(db), live);
    free(live);
    annal__applier_free(applier);
    annal__db_close(db);
}

static char *events(void)
{
    return fixture_sql(&notes.f, "SELECT type, data FROM events WHERE session_id = '" SESSION "'");
}

static void ck_events(const char *expected)
{
    char *got = events();
    char *out = got;
    for (char *c = got; *c != '\0';) { /* without the times */
        if (strncmp(c, ",\"at\":\"", 7) == 0)
            c = strchr(c + 7, '"') + 1;
        else
            *out++ = *c++;
    }
    *out = '\0';
    ck_assert_str_eq(got, expected);
    free(got);
}

START_TEST(a_row_written_with_the_shell_becomes_an_event_once)
{
    ck_shell("INSERT INTO notes (text) VALUES ('it''s \"this\"'); SELECT last_insert_rowid();"
             "UPDATE notes SET extra = 2.5 WHERE id = 1; DELETE FROM notes;");
    ck_assert(!catch_up());
    ck_assert(!catch_up());
    ck_events("sql.applied|{\"table\":\"notes\",\"op\":\"insert\",\"row\":{\"id\":1,\"text\":"
              "\"it's \\\"this\\\"\",\"extra\":null}}\n"
              "sql.applied|{\"table\":\"notes\",\"op\":\"update\",\"was\":{\"id\":1},\"row\":"
              "{\"id\":1,\"text\":\"it's \\\"this\\\"\",\"extra\":2.5}}\n"
              "sql.applied|{\"table\":\"notes\",\"op\":\"delete\",\"was\":{\"id\":1,\"text\":"
              "\"it's \\\"this\\\"\",\"extra\":2.5}}\n");
    ck_rebuild();
}
END_TEST

START_TEST(insert_or_replace_is_one_change_and_with_recursive_triggers_two)
{
    ck_shell("INSERT OR REPLACE INTO names (name, value) VALUES ('a', 1);"
             "INSERT OR REPLACE INTO names (name, value) VALUES ('a', 2);");
    catch_up();
    ck_sql(&notes.f, "SELECT COUNT(*) FROM events", "2\n");
    ck_rebuild();
    ck_shell("PRAGMA recursive_triggers = ON;"
             "INSERT OR REPLACE INTO names (name, value) VALUES ('a', 3);");
    catch_up();
    ck_sql(&notes.f, "SELECT data ->> '$.op' FROM events WHERE seq > 2", "delete\ninsert\n");
    ck_rebuild();
}
END_TEST

START_TEST(values_from_the_shell_are_restored_byte_for_byte)
{
    ck_shell(
        "INSERT INTO notes (text, extra) VALUES"
        "('', x''), (x'00ff', x'0001'), (CAST(x'6100620a' AS TEXT), CAST(x'fffe' AS TEXT)),"
        "(NULL, 9223372036854775807), ('\x7f\xc3\xa4\xf0\x9f\x98\x80', -9223372036854775808),"
        "(1e300 * 1e300, -1e300 * 1e300), (0.1, 0.1), (1, 3.141592653589793),"
        "('a', 5e-324), ('b', 1.7976931348623157e308), ('c', 123456789012345678.0), ('d', -0.0),"
        "(char(27) || char(1) || '\\u0041', 2.2250738585072011e-308), ('e', 1.0), ('f', 1e22);"
        "UPDATE notes SET extra = extra; DELETE FROM notes WHERE id IN (2, 3);");
    catch_up();
    ck_rebuild();
}
END_TEST

START_TEST(a_users_transaction_that_is_rolled_back_creates_no_event)
{
    ck_shell("BEGIN; INSERT INTO notes (text) VALUES ('no'); ROLLBACK;"
             "INSERT INTO notes (text) VALUES ('yes');");
    catch_up();
    ck_sql(&notes.f, "SELECT data ->> '$.row.text' FROM events", "yes\n");
    ck_rebuild();
}
END_TEST

START_TEST(writes_of_our_own_connection_are_not_captured)
{
    fixture_append(&notes.f, SESSION, "note.added", "{\"id\":7,\"text\":\"event\"}");
    ck_assert(!catch_up());
    ck_shell("INSERT INTO notes (text) VALUES ('row')");
    ck_assert(!catch_up());
    ck_events("note.added|{\"id\":7,\"text\":\"event\"}\n"
              "sql.applied|{\"table\":\"notes\",\"op\":\"insert\",\"row\":{\"id\":8,\"text\":"
              "\"row\",\"extra\":null}}\n");
    ck_rebuild();
}
END_TEST

/* The user's row was first in the tables, the event was first in the journal. */
START_TEST(an_event_between_two_drains_is_applied_in_the_order_of_the_journal)
{
    ck_shell("INSERT INTO names (name, value) VALUES ('a', 'user'), ('b', 'user')");
    fixture_append(&notes.f, SESSION, "name.set", "{\"name\":\"a\",\"value\":\"event\"}");
    fixture_append(&notes.f, SESSION, "name.set", "{\"name\":\"c\",\"value\":\"event\"}");
    ck_assert(catch_up());
    ck_rebuild();
    ck_shell("UPDATE names SET value = 'again' WHERE name = 'c'");
    ck_assert(!catch_up());
    ck_rebuild();
}
END_TEST

START_TEST(an_event_that_the_pack_ignores_causes_no_rebuild)
{
    ck_shell("INSERT INTO notes (text) VALUES ('row')");
    fixture_append(&notes.f, SESSION, "tool.called", "{}");
    ck_assert(!catch_up());
    ck_rebuild();
}
END_TEST

START_TEST(a_crash_between_journal_and_tables_repeats_no_change)
{
    ck_shell("INSERT INTO notes (text) VALUES ('a'), ('b')");
    for (int i = 0; i < 3; i++) {
        struct outbox_drained drained;
        const struct outbox_target target = {notes.f.store, ANNAL_SLICE(SESSION), notes.pack,
                                             notes.applied};
        run(notes.db, "BEGIN IMMEDIATE");
        ck_ok(annal__outbox_drain(notes.db, &target, &drained, err));
        ck_assert(!drained.must_rebuild);
        run(notes.db, "ROLLBACK");
        if (i == 1)
            ck_shell("INSERT INTO notes (text) VALUES ('c')");
    }
    ck_assert(!catch_up());
    ck_sql(&notes.f, "SELECT seq, data ->> '$.row.text' FROM events", "1|a\n2|b\n3|c\n");
    ck_rebuild();
}
END_TEST

START_TEST(more_changes_than_a_batch_holds_are_drained_in_order)
{
    ck_shell("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1500)"
             "INSERT INTO notes (text) SELECT 'note ' || i FROM c;"
             "UPDATE notes SET extra = 1 WHERE id % 100 = 0");
    ck_assert(!catch_up());
    ck_sql(&notes.f, "SELECT COUNT(*), MAX(seq) FROM events", "1515|1515\n");
    ck_rebuild();
}
END_TEST

/* An older copy of the file replaces the newer file, and users write to it. */
START_TEST(a_restored_copy_of_the_database_loses_no_event_of_the_journal)
{
    char command[1024];
    const char *copy = tmpdir_path(&notes.f.dir, "copy.db");
    ck_shell("INSERT INTO notes (text) VALUES ('a')");
    catch_up();
    annal_position then = notes.applied;
    snprintf(command, sizeof command, "cp '%s' '%s'", notes.path, copy);
    ck_assert_int_eq(system(command), 0);
    ck_shell("INSERT INTO notes (text) VALUES ('b')");
    catch_up();

    annal__applier_free(notes.applier);
    annal__db_close(notes.db);
    snprintf(command, sizeof command, "cp '%s' '%s'", copy, notes.path);
    ck_assert_int_eq(system(command), 0);
    ck_ok(annal__db_open(notes.path, SQLITE_OPEN_READWRITE, &notes.db, err));
    sqlite3_db_config(notes.db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    ck_ok(annal__applier_new(notes.db, (const annal_pack *const[]){notes.pack}, 1, &notes.applier,
                             err));
    notes.applied = then;
    ck_shell("INSERT INTO names (name, value) VALUES ('c', 1)");
    catch_up();
    ck_sql(&notes.f, "SELECT seq, data ->> '$.table' FROM events", "1|notes\n2|notes\n3|names\n");
    ck_rebuild();
}
END_TEST

START_TEST(a_users_table_is_adopted_with_its_rows)
{
    ck_shell("CREATE TABLE x_metrics (execution_id INTEGER REFERENCES notes(id), "
             "metric_name TEXT, metric_value REAL, recorded_at TEXT DEFAULT (datetime('now')));"
             "INSERT INTO x_metrics (execution_id, metric_value) VALUES (1, 0.5), (1, 0.5);"
             "INSERT INTO notes (text) VALUES ('n');");
    ck_assert(!catch_up());
    ck_sql(&notes.f, "SELECT type FROM events",
           "sql.applied\nschema.extended\nsql.applied\nsql.applied\n");
    ck_rebuild();
    /* Rows without a key, while VACUUM changes rowids. */
    ck_shell("INSERT INTO x_metrics (metric_value) VALUES (1), (2);"
             "DELETE FROM x_metrics WHERE metric_value = 1; VACUUM;"
             "UPDATE x_metrics SET metric_value = 3 WHERE metric_value = 2;"
             "DELETE FROM x_metrics WHERE rowid = 1");
    ck_assert(!catch_up());
    ck_rebuild();
    ck_shell("DROP TABLE x_metrics");
    ck_assert(!catch_up());
    ck_rebuild();
}
END_TEST

START_TEST(columns_indexes_views_and_triggers_of_users_are_adopted)
{
    ck_shell("INSERT INTO notes (text) VALUES ('a'), ('b'), ('c');"
             "ALTER TABLE notes ADD COLUMN token_count INTEGER;"
             "ALTER TABLE notes ADD COLUMN kind TEXT NOT NULL DEFAULT 'x, (y';"
             "ALTER TABLE names ADD COLUMN [odd \"name, ] CHECK (1 > 0);"
             "CREATE INDEX idx_notes_text ON notes(text);"
             "CREATE VIEW x_all AS SELECT text FROM notes;"
             "CREATE TABLE x_log (what TEXT);"
             "CREATE TRIGGER x_audit AFTER UPDATE ON notes BEGIN "
             "INSERT INTO x_log VALUES ('changed ' || NEW.id); END;"
             "UPDATE notes SET token_count = 17 WHERE id = 2;"
             "INSERT INTO notes (text, kind) VALUES ('d', 'other');");
    ck_assert(!catch_up());
    ck_sql(&notes.f,
           "SELECT data ->> '$.ddl' FROM events WHERE type = 'schema.extended' AND "
           "data ->> '$.kind' = 'column'",
           "ALTER TABLE \"notes\" ADD COLUMN token_count INTEGER\n"
           "ALTER TABLE \"notes\" ADD COLUMN kind TEXT NOT NULL DEFAULT 'x, (y'\n"
           "ALTER TABLE \"names\" ADD COLUMN [odd \"name, ] CHECK (1 > 0)\n");
    ck_rebuild();
    ck_shell("UPDATE notes SET token_count = 18, kind = 'k' WHERE id = 3;");
    ck_assert(!catch_up());
    ck_rebuild();
    ck_shell("DROP TRIGGER x_audit; DROP VIEW x_all; DROP INDEX idx_notes_text;"
             "DROP TRIGGER _outbox_insert_notes; DROP TRIGGER _outbox_update_notes;"
             "DROP TRIGGER _outbox_delete_notes;"
             "ALTER TABLE notes DROP COLUMN token_count;"
             "ALTER TABLE x_log RENAME COLUMN what TO that;"
             "CREATE VIEW x_all AS SELECT id FROM notes;");
    ck_assert(!catch_up());
    ck_rebuild();
    ck_shell("INSERT INTO notes (text) VALUES ('e'); INSERT INTO x_log VALUES ('f')");
    ck_assert(!catch_up());
    ck_rebuild();
}
END_TEST

START_TEST(tables_and_columns_of_users_survive_a_rebuild)
{
    ck_shell("CREATE TABLE x_a (a); INSERT INTO x_a VALUES (1);"
             "ALTER TABLE notes ADD COLUMN more DEFAULT 4;"
             "CREATE INDEX idx_more ON notes(more);");
    catch_up();
    ck_shell("INSERT INTO notes (text, more) VALUES ('a', 5); INSERT INTO x_a VALUES (2)");
    fixture_append(&notes.f, SESSION, "note.added", "{\"id\":7,\"text\":\"event\"}");
    ck_assert(catch_up());
    ck_rebuild();
    ck_shell("INSERT INTO x_a VALUES (3); INSERT INTO notes (more) VALUES (6)");
    ck_assert(!catch_up());
    ck_sql(&notes.f, "SELECT data ->> '$.row.a' FROM events WHERE data ->> '$.table' = 'x_a'",
           "1\n2\n3\n");
    ck_rebuild();
}
END_TEST

START_TEST(a_dropped_table_of_the_pack_is_rebuilt)
{
    ck_shell("INSERT INTO notes (text) VALUES ('a'); INSERT INTO words VALUES ('w', 1)");
    catch_up();
    ck_shell("DROP TABLE notes; UPDATE words SET n = 2");
    ck_assert(catch_up());
    ck_rebuild();
    ck_shell("UPDATE notes SET text = 'b'; UPDATE words SET word = 'v'");
    catch_up();
    ck_rebuild();
}
END_TEST

START_TEST(rows_without_a_rowid_or_with_a_null_key_are_identified)
{
    ck_shell("INSERT INTO words VALUES ('a', 1), ('b', 2); UPDATE words SET word = 'c' "
             "WHERE word = 'a'; DELETE FROM words WHERE word = 'b';"
             "CREATE TABLE x_k (k TEXT PRIMARY KEY, rowid, v);"
             "INSERT INTO x_k VALUES (NULL, 1, 'x'), (NULL, 2, 'y'), ('k', 3, 'z');");
    catch_up();
    ck_shell("UPDATE x_k SET v = 'yy' WHERE v = 'y'; UPDATE x_k SET k = 'kk' WHERE k = 'k';"
             "DELETE FROM x_k WHERE v = 'x'");
    ck_assert(!catch_up());
    ck_rebuild();
}
END_TEST

START_TEST(a_row_changed_by_another_trigger_is_captured_as_changed)
{
    ck_shell("CREATE TRIGGER x_t AFTER INSERT ON notes BEGIN "
             "UPDATE notes SET extra = 'by trigger' WHERE id = NEW.id; END;"
             "CREATE TRIGGER x_d AFTER INSERT ON words BEGIN "
             "DELETE FROM words WHERE word = NEW.word; END;");
    catch_up();
    ck_shell("INSERT INTO notes (text) VALUES ('a'); INSERT INTO words VALUES ('w', 1);");
    catch_up();
    ck_rebuild();
}
END_TEST

START_TEST(a_row_too_large_for_an_event_is_refused)
{
    ck_shell_fails("INSERT INTO notes (text, extra) VALUES ('a', zeroblob(44 * 1024 * 1024))",
                   "a row of notes may contain 44 MiB");
    /* Each control character takes six bytes as JSON. */
    ck_shell("INSERT INTO notes (text) VALUES (replace(hex(zeroblob(500000)), '00', "
             "char(1, 2)))");
    catch_up();
    ck_sql(&notes.f, "SELECT length(data) < 1400000 FROM events", "1\n");
    ck_rebuild();
    ck_shell("DELETE FROM notes; INSERT INTO notes (extra) VALUES "
             "(zeroblob(44 * 1024 * 1024 - 100))");
    catch_up();
    ck_sql(&notes.f, "SELECT seq, length(data) > 61000000 FROM events WHERE seq > 2", "3|1\n");
}
END_TEST

START_TEST(an_earlier_row_too_large_for_an_event_does_not_block_its_table)
{
    ck_shell("CREATE TABLE x_large (a); INSERT INTO x_large VALUES "
             "(zeroblob(46 * 1024 * 1024)), (1);");
    ck_assert(!catch_up());
    ck_sql(&notes.f, "SELECT data ->> '$.row' FROM events WHERE type = 'sql.applied'",
           "{\"a\":1}\n");
    /* Without a key, an update is as large as both rows. */
    ck_shell_fails("INSERT INTO x_large VALUES (zeroblob(30 * 1024 * 1024));"
                   "UPDATE x_large SET a = a WHERE length(a) = 30 * 1024 * 1024",
                   "a row of x_large may contain 44 MiB");
    ck_shell("INSERT INTO words VALUES ('w', zeroblob(30 * 1024 * 1024));"
             "UPDATE words SET n = zeroblob(31 * 1024 * 1024);");
    ck_assert(!catch_up());
}
END_TEST

START_TEST(malformed_outbox_events_are_findings_and_change_nothing)
{
    static const char *const wrong[][2] = {
        {"sql.applied", "{}"},
        {"sql.applied", "[1]"},
        {"sql.applied", "{\"table\":\"nothing\",\"op\":\"insert\",\"row\":{\"a\":1}}"},
        {"sql.applied", "{\"table\":\"_outbox_state\",\"op\":\"insert\",\"row\":{\"id\":1}}"},
        {"sql.applied", "{\"table\":\"sqlite_schema\",\"op\":\"delete\",\"was\":{\"name\":1}}"},
        {"sql.applied", "{\"table\":\"notes\",\"op\":\"insert\",\"row\":{}}"},
        {"sql.applied", "{\"table\":\"notes\",\"op\":\"insert\",\"row\":{\"nix\":1}}"},
        {"sql.applied", "{\"table\":\"notes\",\"op\":\"delete\"}"},
        {"sql.applied", "{\"table\":\"notes\",\"op\":\"merge\",\"row\":{\"id\":1}}"},
        {"sql.applied",
         "{\"table\":\"notes\",\"op\":\"insert\",\"row\":{\"id\":{\"blob\":\"?\"}}}"},
        {"sql.applied", "{\"table\":\"notes\",\"op\":\"insert\",\"row\":{\"id\":{\"x\":1}}}"},
        {"schema.extended", "{}"},
        {"schema.extended", "{\"ddl\":\"DROP TABLE _outbox\"}"},
        {"schema.extended", "{\"ddl\":\"ATTACH 'x' AS y\"}"},
        {"schema.extended", "{\"ddl\":\"PRAGMA user_version = 9\"}"},
        {"schema.extended", "{\"ddl\":\"CREATE TABLE x_a (a); DROP TABLE notes\"}"},
        {"schema.extended", "{\"ddl\":\"CREATE VIRTUAL TABLE x_f USING fts5(a)\"}"},
        {"schema.extended", "{\"ddl\":\"CREATE TABLE _x (a)\"}"},
        {"schema.extended", "{\"ddl\":\"CREATE TABLE x_t AS SELECT fts3_tokenizer('simple')\"}"},
    };
    char *before = dump(notes.db);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const annal_event event = {
            .seq = i + 1, .type = annal_slice_of(wrong[i][0]), .data = annal_slice_of(wrong[i][1])};
        const char *refused = NULL;
        run(notes.db, "BEGIN");
        ck_ok(annal__applier_event(notes.applier, ANNAL_SLICE(SESSION), &event, &refused, err));
        run(notes.db, "COMMIT");
        ck_assert_msg(refused != NULL, "%s %s", wrong[i][0], wrong[i][1]);
    }
    char *after = dump(notes.db);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
}
END_TEST

Suite *suite_outbox(void)
{
    Suite *suite = suite_create("outbox");
    TCase *writes = suite_case(suite, "writes", setup, teardown);
    tcase_add_test(writes, a_row_written_with_the_shell_becomes_an_event_once);
    tcase_add_test(writes, insert_or_replace_is_one_change_and_with_recursive_triggers_two);
    tcase_add_test(writes, values_from_the_shell_are_restored_byte_for_byte);
    tcase_add_test(writes, a_users_transaction_that_is_rolled_back_creates_no_event);
    tcase_add_test(writes, writes_of_our_own_connection_are_not_captured);
    tcase_add_test(writes, rows_without_a_rowid_or_with_a_null_key_are_identified);
    tcase_add_test(writes, a_row_changed_by_another_trigger_is_captured_as_changed);
    tcase_add_test(writes, a_row_too_large_for_an_event_is_refused);
    tcase_add_test(writes, an_earlier_row_too_large_for_an_event_does_not_block_its_table);
    tcase_add_test(writes, malformed_outbox_events_are_findings_and_change_nothing);
    TCase *order = suite_case(suite, "order", setup, teardown);
    tcase_add_test(order, an_event_between_two_drains_is_applied_in_the_order_of_the_journal);
    tcase_add_test(order, an_event_that_the_pack_ignores_causes_no_rebuild);
    tcase_add_test(order, a_crash_between_journal_and_tables_repeats_no_change);
    tcase_add_test(order, more_changes_than_a_batch_holds_are_drained_in_order);
    tcase_add_test(order, a_restored_copy_of_the_database_loses_no_event_of_the_journal);
    TCase *schema = suite_case(suite, "schema", setup, teardown);
    tcase_add_test(schema, a_users_table_is_adopted_with_its_rows);
    tcase_add_test(schema, columns_indexes_views_and_triggers_of_users_are_adopted);
    tcase_add_test(schema, tables_and_columns_of_users_survive_a_rebuild);
    tcase_add_test(schema, a_dropped_table_of_the_pack_is_rebuilt);
    return suite;
}
