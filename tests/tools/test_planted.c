/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Databases and snapshots whose pages are right and whose schema is not: what a neighbour writes
 * who may write in the store. SQLite would run it for a statement of ours; so no command uses such
 * a database, the next one rebuilds it, and verify and doctor name it.
 */
#include "tests/snapshot/plant.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char notes[] = "-- pack notes   version 1   database notes.db\n"
                            "CREATE TABLE notes (session TEXT, text TEXT NOT NULL);\n"
                            "CREATE INDEX notes_session ON notes(session);\n"
                            "CREATE VIEW loud AS SELECT upper(text) AS text FROM notes;\n"
                            "CREATE TRIGGER once BEFORE INSERT ON notes\n"
                            "WHEN EXISTS (SELECT 1 FROM notes WHERE text = NEW.text) BEGIN\n"
                            "    SELECT RAISE(IGNORE);\n"
                            "END;\n"
                            "-- on message.added\n"
                            "INSERT INTO notes VALUES (:session, $content);\n";

static const char runs[] =
    "-- pack runs   version 1   database runs/*/state.db   in kept   sessions run_*\n"
    "CREATE TABLE run (id TEXT PRIMARY KEY, n INTEGER);\n"
    "-- on message.added\n"
    "INSERT INTO run VALUES (:session, 1) ON CONFLICT DO UPDATE SET n = n + 1;\n";

#define SESSION_DATABASE "kept/runs/a/state.db"
#define EDIT(table, old, new)                                                                      \
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '" old               \
    "', '" new "') WHERE name = '" table "'"

static const struct {
    const char *database, *sql;
} planted[] = {
    {"sessions.db", "ALTER TABLE sessions RENAME TO evil; "
                    "CREATE VIEW sessions AS SELECT * FROM evil WHERE 0"},
    {"sessions.db", "ALTER TABLE _stamp RENAME TO evil; CREATE VIEW _stamp AS SELECT * FROM evil"},
    {"sessions.db", "CREATE TRIGGER evil AFTER INSERT ON event_index BEGIN "
                    "DELETE FROM event_index; DELETE FROM turns; END"},
    {"sessions.db", "CREATE TRIGGER evil AFTER UPDATE ON _stamp BEGIN DELETE FROM sessions; END"},
    {"sessions.db", EDIT("event_index", "offset      INTEGER NOT NULL DEFAULT 0",
                         "offset      INTEGER NOT NULL CHECK (seq < 2)")},
    {"sessions.db", EDIT("event_counts", "n AS events", "99 AS events")},
    {"sessions.db", "CREATE INDEX evil ON event_index(abs(seq))"},
    {"sessions.db", "CREATE TABLE evil (a)"},
    {"notes.db", "DROP VIEW loud; CREATE VIEW loud AS SELECT 'evil' AS text"},
    {"notes.db", "CREATE VIEW evil AS SELECT * FROM notes"},
    {"notes.db", "CREATE TRIGGER evil AFTER INSERT ON notes BEGIN DELETE FROM notes; END"},
    {"notes.db", "CREATE TRIGGER evil AFTER INSERT ON _cursor BEGIN DELETE FROM notes; END"},
    {"notes.db", EDIT("notes", "text TEXT NOT NULL", "text TEXT AS (''evil'')")},
    {"notes.db", EDIT("once", "text = NEW.text", "1")},
    {"notes.db", "CREATE TABLE evil (a)"},
    {SESSION_DATABASE, "ALTER TABLE run RENAME TO evil; "
                       "CREATE VIEW run AS SELECT id, 99 AS n FROM evil"},
    {SESSION_DATABASE, "CREATE TRIGGER evil AFTER UPDATE ON run BEGIN DELETE FROM run; END"},
    {SESSION_DATABASE, EDIT("run", "n INTEGER", "n INTEGER CHECK (n < 2)")},
    {SESSION_DATABASE, "CREATE TABLE evil (a)"},
    {"search.db", "DROP VIEW texts; CREATE VIEW texts (id, text) AS SELECT id, 'evil' "
                  "FROM documents"},
    {"search.db", "CREATE TRIGGER evil AFTER INSERT ON documents BEGIN "
                  "DELETE FROM documents; END"},
    {"search.db", EDIT("documents", "role        TEXT NOT NULL", "role TEXT CHECK (seq < 2)")},
    {"search.db", EDIT("said_data", "block BLOB", "block BLOB CHECK (id < 0)")},
    {"search.db", "CREATE TABLE evil (a)"},
};

/* Questions about each database. */
static const struct {
    const char *database;
    const char *words[6];
} questions[] = {
    {"sessions.db", {"ls", "--json"}},
    {"sessions.db", {"sql", "SELECT id, events, total_turns FROM sessions ORDER BY id"}},
    {"sessions.db", {"sql", "SELECT sum(events) FROM event_counts"}},
    {"sessions.db", {"query", "--format", "csv"}},
    {"notes.db", {"sql", "SELECT session, text FROM notes ORDER BY 2"}},
    {"notes.db", {"sql", "SELECT text FROM loud ORDER BY 1"}},
    {SESSION_DATABASE, {"sql", "--session", "run_a", "SELECT id, n FROM run"}},
    {"search.db", {"search", "river"}},
};
#define QUESTIONS (sizeof questions / sizeof *questions)

static void put(const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "store/packs/%s", name);
    file_write(tmpdir_path(&cli.dir, path), text, strlen(text));
}

static void append(const char *session, const char *text)
{
    char line[200];
    snprintf(
        line, sizeof line,
        "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"the river %s\"}}"
        "\n",
        text);
    CLI(&cli, line, "append", session);
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
}

/* Ask question i if it is about this database. */
static bool ask(size_t i, const char *database)
{
    if (strcmp(questions[i].database, database) != 0)
        return false;
    cli_run(&cli, NULL, questions[i].words);
    return true;
}

static void ask_all(const char *database)
{
    for (size_t i = 0; i < QUESTIONS; i++)
        ask(i, database);
}

static void init(const char *database)
{
    append("s1", "one");
    append("run_a", "two");
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "store/packs"), 0700), 0);
    put("notes.sql", notes);
    put("runs.sql", runs);
    ask_all(database);
}

static void delete_database(const char *name)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        char path[80];
        snprintf(path, sizeof path, "store/%s%s", name, suffixes[i]);
        unlink(tmpdir_path(&cli.dir, path));
    }
}

static void ck_named(const char *verb, const char *database)
{
    char want[100];
    CLI(&cli, NULL, verb);
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    snprintf(want, sizeof want, "%s%s", database,
             strcmp(verb, "verify") == 0 ? ": damaged, " : " is damaged: ");
    ck_assert_msg(strstr(cli.out, want) != NULL &&
                      strstr(cli.out, "has an unexpected schema: ") != NULL,
                  "%s: %s", verb, cli.out);
}

/* With and without a new event: the index writes a new event. As usual, one of the two, for half of
 * the questions. */
START_TEST(planted_sql_changes_no_answer)
{
    const char *database = planted[_i].database;
    init(database);
    for (size_t i = full_or(0, (unsigned)_i % 4); i < 2 * QUESTIONS; i += full_or(1, 4)) {
        if (strcmp(questions[i / 2].database, database) != 0)
            continue;
        char text[20];
        snprintf(text, sizeof text, "no %zu", i);
        cli_change_database(&cli, database, planted[_i].sql);
        if (i % 2 == 1)
            append("run_a", text);
        ask(i / 2, database);
        ck_assert_int_eq(cli.exit_status, EXIT_DONE);
        char *answer = strdup(cli.out);
        delete_database(database);
        ask(i / 2, database);
        ck_assert_msg(strcmp(cli.out, answer) == 0, "question %zu: %s and %s", i, answer, cli.out);
        free(answer);
    }
}
END_TEST

START_TEST(verify_and_doctor_name_a_database_with_planted_sql)
{
    static const char *const verbs[] = {"verify", "doctor"};
    const char *database = planted[_i].database;
    if (full_or(0, (unsigned)_i % 2) == 1)
        return; /* the next test plants it as usual */
    init(database);
    for (size_t i = full_or(0, (unsigned)_i / 2 % 2); i < 2; i += full_or(1, 2)) {
        cli_change_database(&cli, database, planted[_i].sql);
        ck_named(verbs[i], database);
        ask_all(database);
        DONE(&cli, "verify");
    }
}
END_TEST

/* Nothing can be rebuilt there. */
START_TEST(planted_sql_in_a_read_only_store_changes_no_answer)
{
    const char *database = planted[_i].database;
    char *answers[QUESTIONS] = {NULL};
    char command[600];
    if (full_or(1, (unsigned)_i % 2) == 0)
        return; /* the test before plants it */
    init(database);
    for (size_t i = 0; i < QUESTIONS; i++)
        if (ask(i, database))
            answers[i] = strdup(cli.out);
    cli_change_database(&cli, database, planted[_i].sql);
    snprintf(command, sizeof command, "chmod 755 %s && chmod -R a+rX,a-w %s", cli.dir.path,
             cli.store);
    ck_assert_int_eq(system(command), 0);
    cli.as_nobody = geteuid() == 0;
    CLI(&cli, NULL, "version");
    bool can_read = cli.exit_status == EXIT_DONE; /* the directory above may be closed to others */
    for (size_t i = 0; i < QUESTIONS; i++) {
        if (can_read && ask(i, database)) {
            ck_assert_msg(strcmp(cli.out, answers[i]) == 0, "question %zu: %s%s", i, cli.out,
                          cli.err);
            ck_assert_ptr_nonnull(strstr(cli.err, "has an unexpected schema: "));
        }
        free(answers[i]);
    }
    cli.as_nobody = false;
    snprintf(command, sizeof command, "chmod -R u+w %s", cli.store);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* Run SQL of plants[] on a snapshot of the store. */
static void plant(const char *session, uint64_t seq, const char *sql)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    ck_assert_int_eq(annal_store_open(cli.store, NULL, &store, NULL), ANNAL_OK);
    ck_assert_int_eq(annal_index_open(store, NULL, &index, NULL), ANNAL_OK);
    plant_snapshot(index, annal_slice_of(session), seq, sql);
    annal_index_close(index);
    ck_assert_int_eq(annal_store_close(store, NULL), ANNAL_OK);
}

START_TEST(a_snapshot_with_planted_sql_changes_no_answer_and_is_named)
{
    static const char *const verbs[] = {"verify", "doctor"};
    append("s1", "one");
    append("s1", "two");
    DONE(&cli, "snapshot", "take", "s1");
    DONE(&cli, "replay", "s1");
    char *answer = strdup(cli.out);
    plant("s1", 2, plants[_i]);
    for (size_t i = 0; i < 2; i++) {
        CLI(&cli, NULL, verbs[i]);
        ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
        ck_assert_msg(strstr(cli.out, "its pages are not a state of this session") != NULL,
                      "%s: %s", verbs[i], cli.out);
    }
    CLI(&cli, NULL, "replay", "s1");
    ck_assert_str_eq(cli.out, answer);
    free(answer);
    DONE(&cli, "snapshot", "drop", "s1");
    DONE(&cli, "verify");
}
END_TEST

#define DATABASES (int)(sizeof planted / sizeof *planted)

Suite *suite_planted(void)
{
    Suite *suite = suite_create("planted");
    TCase *tcase = suite_case(suite, "planted", cli_setup, cli_teardown);
    tcase_add_loop_test(tcase, planted_sql_changes_no_answer, 0, DATABASES);
    tcase_add_loop_test(tcase, verify_and_doctor_name_a_database_with_planted_sql, 0, DATABASES);
    tcase_add_loop_test(tcase, planted_sql_in_a_read_only_store_changes_no_answer, 0, DATABASES);
    tcase_add_loop_test(tcase, a_snapshot_with_planted_sql_changes_no_answer_and_is_named, 0,
                        PLANTS);
    return suite;
}
