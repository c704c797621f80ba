/* SPDX-License-Identifier: Apache-2.0 */
/* annal source: logs that are databases or directories. */
#include "index/sys/row_text.h"
#include "journal/base/buf.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"
#include "tools/source/copies_files.h"

#include <sqlite3.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA ANNAL_SOURCE "/tests/data/"

/* ---- Databases ---- */

static const char *log_path(void)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/log.db", cli.dir.path);
    return path;
}

static const char *to_path(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/to-%s.db", cli.dir.path, name);
    return path;
}

static void must(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s: %s", sql, why);
    sqlite3_close(db);
}

static int64_t ask(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(db));
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int64_t answer = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return answer;
}

/* Append each row of a database as text, with the types of its values, and the schema. */
static void dump(const char *path, struct buf *out)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *tables = NULL;
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db,
                                        "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL "
                                        "AND name NOT GLOB 'words_*' ORDER BY name",
                                        -1, &tables, NULL),
                     SQLITE_OK);
    while (sqlite3_step(tables) == SQLITE_ROW) {
        sqlite3_stmt *rows = NULL;
        char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", sqlite3_column_text(tables, 0));
        annal__buf_printf(out, "%s\n", (const char *)sqlite3_column_text(tables, 1));
        bool is_table = sqlite3_prepare_v2(db, sql, -1, &rows, NULL) == SQLITE_OK;
        while (is_table && sqlite3_step(rows) == SQLITE_ROW)
            for (int i = 0; i < sqlite3_column_count(rows); i++) {
                annal__buf_printf(out, "%d ", sqlite3_column_type(rows, i));
                const void *bytes = sqlite3_column_blob(rows, i);
                annal__buf_append(out, bytes != NULL ? bytes : "",
                                  (size_t)sqlite3_column_bytes(rows, i));
                annal__buf_append(out, "\n", 1);
            }
        sqlite3_finalize(rows);
        sqlite3_free(sql);
    }
    sqlite3_finalize(tables);
    sqlite3_close(db);
}

static void assert_same(const char *one, const char *other)
{
    struct buf a = {0}, b = {0};
    dump(one, &a);
    dump(other, &b);
    ck_assert_msg(a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0, "%.*s\n--- and\n%.*s",
                  (int)a.len, a.ptr, (int)b.len, b.ptr);
    annal__buf_done(&a);
    annal__buf_done(&b);
}

/* Tables that the importer does not know are said on stderr. */
static void import_log(void)
{
    CLI(&cli, NULL, "import", "crush", log_path(), "--recheck");
    ck_assert_msg(cli.exit_status == EXIT_DONE, "%s", cli.err);
}

static int generations(const char *session)
{
    int count = 0;
    DONE(&cli, "source", "generations", session, "--json");
    for (const char *line = cli.out; (line = strchr(line, '\n')) != NULL; line++)
        count++;
    return count;
}

/* A database with two sessions of Crush, whose rows have what is hard to write as text. */
#define ODD                                                                                        \
    "PRAGMA user_version = 7; PRAGMA application_id = 99;"                                         \
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT,"              \
    "    message_count INTEGER, prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL,"      \
    "    updated_at INTEGER, created_at INTEGER);"                                                 \
    "CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT,"          \
    "    model TEXT, created_at INTEGER, updated_at INTEGER, finished_at INTEGER);"                \
    "CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER);"    \
    "CREATE TABLE \"odd \"\" one\" (a, \"b \"\"\", session_id TEXT, c AS (a || 1), UNIQUE (a));"   \
    "CREATE TABLE without (k TEXT, n INTEGER, session_id TEXT, PRIMARY KEY (n, k)) WITHOUT ROWID;" \
    "CREATE TABLE secrets (token TEXT);"                                                           \
    "CREATE VIRTUAL TABLE words USING fts5 (parts, content=messages, content_rowid=rowid);"        \
    "CREATE INDEX of_session ON messages (session_id) WHERE role <> 'x';"                          \
    "CREATE VIEW roles AS SELECT role FROM messages;"                                              \
    "CREATE TRIGGER added AFTER INSERT ON messages BEGIN"                                          \
    "    UPDATE sessions SET message_count = message_count + 1 WHERE id = NEW.session_id;"         \
    "    INSERT INTO words (rowid, parts) VALUES (NEW.rowid, NEW.parts); END;"                     \
    "INSERT INTO goose_db_version (version_id) VALUES (20250424), (20250425);"                     \
    "INSERT INTO sessions VALUES ('s-1', NULL, 'It''s', 0, 1, 2, 0.1, 1772442858, 1772442846);"    \
    "INSERT INTO messages VALUES ('m1', 's-1', 'user',"                                            \
    "    '[{\"type\":\"text\",\"data\":{\"text\":\"wind\"}}]', NULL, 1772442846, 1772442846, 0);"

#define ODD_ROWS                                                                                   \
    "INSERT INTO \"odd \"\" one\" VALUES"                                                          \
    "    (1, x'00ff', 's-1'), (1.5, '', 's-1'), (0.1, x'', 's-1'), (9e999, -9e999, 's-1'),"        \
    "    (9223372036854775807, 1.0, 's-1'), (NULL, 'first', 's-1'), (NULL, 'second', 's-1'),"      \
    "    (CAST(x'6100620a' AS TEXT), CAST(x'ff2722' AS TEXT), 's-1'), ('\t\r\n', "                 \
    "'\xf0\x9f\x8c\x8a', 's-1');"                                                                  \
    "INSERT INTO without VALUES ('k', 1, 's-1'), ('', 2, 's-1');"

START_TEST(a_session_of_a_database_is_restored_into_a_new_database)
{
    must(log_path(), ODD ODD_ROWS);
    import_log();
    DONE(&cli, "source", "ls", "--json");
    ck_assert_msg(strstr(cli.out, "\"state\":\"kept\"") != NULL, "%s", cli.out);
    must(log_path(), "INSERT INTO sessions (id) VALUES ('s-2'); INSERT INTO secrets VALUES ('x');"
                     "INSERT INTO messages (id, session_id) VALUES ('m2', 's-2')");
    import_log();
    DONE(&cli, "source", "restore", "s-1", "--to", to_path("1"));
    ck_assert_ptr_nonnull(strstr(cli.out, "a database with the rows of session 's-1'"));
    must(log_path(), "DELETE FROM messages WHERE id = 'm2'; DELETE FROM secrets;"
                     "DELETE FROM sessions WHERE id = 's-2'");
    assert_same(log_path(), to_path("1"));
    ck_assert_int_eq(ask(to_path("1"), "PRAGMA user_version"), 7);
    ck_assert_int_eq(ask(to_path("1"), "PRAGMA application_id"), 99);
    ck_assert_int_eq(ask(to_path("1"), "SELECT seq FROM sqlite_sequence"), 2);
    ck_assert_int_eq(ask(to_path("1"), "SELECT count(*) FROM words('wind')"), 1);
    /* its triggers work for the program */
    must(to_path("1"), "INSERT INTO messages VALUES ('m3', 's-1', 'user', 'gale', NULL, 1, 1, 0)");
    ck_assert_int_eq(ask(to_path("1"), "SELECT count(*) FROM words('gale')"), 1);
    CLI(&cli, NULL, "source", "restore", "s-1");
    cli_assert_refused(&cli, EXIT_REFUSED, "is restored into a new database; --to FILE says where");
    ck_assert_int_eq(unlink(log_path()), 0);
    DONE(&cli, "source", "ls", "--lost", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "[\"s-1\"]"));
    ck_assert_ptr_nonnull(strstr(cli.out, "[\"s-2\"]"));
    DONE(&cli, "source", "restore", "s-2"); /* in its place */
    ck_assert_int_eq(ask(log_path(), "SELECT count(*) FROM messages WHERE id = 'm2'"), 1);
    ck_assert_int_eq(ask(log_path(), "SELECT count(*) FROM messages"), 1);
}
END_TEST

START_TEST(a_database_of_utf_16_is_restored_with_its_encoding)
{
    must(log_path(),
         "PRAGMA encoding = 'UTF-16le';" ODD
         "INSERT INTO \"odd \"\" one\" VALUES ('\xc3\xa9\n', CAST(x'61000000' AS TEXT), 's-1')");
    import_log();
    DONE(&cli, "source", "restore", "s-1", "--to", to_path("1"));
    assert_same(log_path(), to_path("1"));
    ck_assert_int_eq(ask(to_path("1"), "SELECT encoding = 'UTF-16le' FROM pragma_encoding"), 1);
}
END_TEST

START_TEST(a_session_that_grows_stays_one_generation_and_a_lost_row_begins_another)
{
    must(log_path(), ODD ODD_ROWS);
    import_log();
    must(log_path(), "INSERT INTO messages VALUES ('m2', 's-1', 'user', '[]', NULL, 9, 9, 0);"
                     "UPDATE messages SET parts = parts || '    ' WHERE id = 'm1';"
                     "UPDATE sessions SET updated_at = updated_at + 1;"
                     "UPDATE without SET n = 3 WHERE n = 2 AND 0");
    import_log();
    import_log();
    ck_assert_int_eq(generations("s-1"), 1);
    DONE(&cli, "source", "restore", "s-1", "--to", to_path("1"));
    assert_same(log_path(), to_path("1"));
    must(log_path(), "DELETE FROM messages WHERE id = 'm1';" /* and one more than before */
                     "INSERT INTO messages VALUES ('m3', 's-1', 'user', '[{}]', NULL, 9, 9, 0);"
                     "INSERT INTO messages VALUES ('m4', 's-1', 'user', '[{}]', NULL, 9, 9, 0);");
    import_log();
    ck_assert_int_eq(generations("s-1"), 2);
    must(log_path(), "UPDATE messages SET parts = '[]' WHERE id = 'm3'"); /* became shorter */
    import_log();
    ck_assert_int_eq(generations("s-1"), 3);
    DONE(&cli, "source", "restore", "s-1", "--to", to_path("3"));
    assert_same(log_path(), to_path("3"));
    DONE(&cli, "source", "restore", "s-1", "--generation", "1", "--to", to_path("one"));
    assert_same(to_path("1"), strcpy((char[600]){0}, to_path("one")));
    DONE(&cli, "verify");
    DONE(&cli, "delete", "s-1");
    CLI(&cli, NULL, "source", "ls", "s-1");
    cli_assert_refused(&cli, EXIT_REFUSED, "no copy");
    CLI(&cli, NULL, "import", "crush", log_path(), "--recheck");
    CLI(&cli, NULL, "source", "ls", "s-1");
    cli_assert_refused(&cli, EXIT_REFUSED, "no copy");
}
END_TEST

START_TEST(a_row_that_changes_often_does_not_fill_the_store)
{
    char sql[400];
    must(log_path(), ODD);
    for (int i = 0; i < 6; i++) {
        snprintf(sql, sizeof sql,
                 "UPDATE messages SET parts = '[{\"type\":\"text\",\"data\":{\"text\":\"'"
                 " || hex(zeroblob(20000 + %d)) || '\"}}]'",
                 i);
        must(log_path(), sql);
        import_log();
    }
    ck_assert_int_eq(generations("s-1"), 2);
    DONE(&cli, "source", "restore", "s-1", "--to", to_path("1"));
    assert_same(log_path(), to_path("1"));
}
END_TEST

/* Import a database of the test data, restore its sessions, and put their rows together again. */
static void restore_kind(const char *kind, const char *name, const char *lacks)
{
    char path[600], sql[700];
    struct buf all = {0};
    sqlite3 *db = NULL;
    sqlite3_stmt *tables = NULL;
    int sessions = 0;
    snprintf(path, sizeof path, DATA "%s/%s.sql", kind, name);
    char *text = file_read(path, NULL);
    (void)unlink(log_path());
    must(log_path(), text);
    free(text);
    DONE(&cli, "import", kind, log_path());
    ck_assert_msg(strstr(cli.out, "not copied") == NULL, "%s: %s", name, cli.out);
    if (strcmp(kind, "cursor") == 0) /* of no chat */
        must(log_path(), "DELETE FROM cursorDiskKV WHERE key = 'checkpointId:x'");
    ck_assert_int_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    snprintf(sql, sizeof sql, "ATTACH '%s' AS whole", log_path());
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db,
                                        "SELECT name FROM whole.sqlite_schema "
                                        "WHERE type = 'table' AND name NOT GLOB 'sqlite_*'",
                                        -1, &tables, NULL),
                     SQLITE_OK);
    DONE(&cli, "source", "ls", "--json");
    annal__buf_append(&all, cli.out, cli.out_len + 1);
    for (const char *row = all.ptr; (row = strstr(row, "\"sessions\":[\"")) != NULL; sessions++) {
        char id[200] = {0};
        row += 13;
        memcpy(id, row, strcspn(row, "\""));
        DONE(&cli, "source", "restore", id, "--to", to_path(id));
        snprintf(sql, sizeof sql, "ATTACH '%s' AS part%d", to_path(id), sessions);
        ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    }
    ck_assert_int_gt(sessions, 0);
    while (sqlite3_step(tables) == SQLITE_ROW) {
        struct buf both = {0};
        const char *table = (const char *)sqlite3_column_text(tables, 0);
        sqlite3_stmt *count = NULL;
        annal__buf_printf(
            &both, "SELECT count(*) FROM (SELECT * FROM whole.%s EXCEPT SELECT * FROM (", table);
        for (int i = 0; i < sessions; i++)
            annal__buf_printf(&both, "%sSELECT * FROM part%d.%s", i > 0 ? " UNION ALL " : "", i,
                              table);
        annal__buf_printf(&both, "))");
        ck_assert_msg(sqlite3_prepare_v2(db, annal__buf_cstr(&both), -1, &count, NULL) == SQLITE_OK,
                      "%s: %s", both.ptr, sqlite3_errmsg(db));
        ck_assert_int_eq(sqlite3_step(count), SQLITE_ROW);
        ck_assert_msg((sqlite3_column_int(count, 0) > 0) == (strcmp(table, lacks) == 0),
                      "%s: table %s", name, table);
        sqlite3_finalize(count);
        annal__buf_done(&both);
    }
    sqlite3_finalize(tables);
    sqlite3_close(db);
    annal__buf_done(&all);
}

static const struct {
    const char *kind, *name, *lacks;
} databases[] = {{"opencode", "opencode.db", ""},
                 {"opencode", "opencode2.db", ""},
                 {"opencode", "opencode-both.db", ""},
                 {"goose", "sessions.db", ""},
                 {"goose", "accumulated.db", ""},
                 {"openai-agents", "agents.db", ""},
                 {"crush", "crush.db", ""},
                 {"cursor", "state.vscdb", "ItemTable"},
                 {"langgraph", "checkpoints.sqlite", ""}};
enum { DATABASES = sizeof databases / sizeof *databases };

START_TEST(the_copies_of_all_sessions_have_each_row_of_a_database)
{
    restore_kind(databases[_i].kind, databases[_i].name, databases[_i].lacks);
}
END_TEST

/* ---- Texts from outside ---- */

#define TEXT_HEAD(table, other)                                                                    \
    "{\"annal_rows\":1,\"encoding\":\"UTF-8\",\"user_version\":0,\"application_id\":0,\"tables\":" \
    "[\"" table "\"],\"others\":[" other "]}\n"
#define T           "CREATE TABLE t (a)"
#define ROW(values) "\"t\",\"1\"\t\"" values "\"\n"

static const struct {
    const char *text;
    bool good;
} texts[] = {
    {TEXT_HEAD(T, "") ROW("1,'x'"), true},
    {TEXT_HEAD(T, "\"CREATE INDEX i ON t (lower(a))\"") ROW("1,'x'"), true},
    {TEXT_HEAD(T, "") ROW("1,'x'") ROW("1,CAST(X'00' AS TEXT)"), true},
    {"", false},
    {"{}\n", false},
    {"{\"annal_rows\":2}\n", false},
    {"{\"annal_rows\":1,\"encoding\":\"UTF-8\",\"tables\":[],\"others\":[]}\n", false},
    {TEXT_HEAD(T, "") "\"t\",\"1\"\t\"1,'x'\"", false}, /* without its end */
    {TEXT_HEAD(T, "") ROW("1"), false},
    {TEXT_HEAD(T, "") ROW("1,2,3"), false},
    {TEXT_HEAD(T, "") "\"u\",\"1\"\t\"1,2\"\n", false},
    {TEXT_HEAD(T, "") "1\t\"1,2\"\n", false},
    {TEXT_HEAD(T, "") "\"sqlite_schema\",\"1\"\t\"1,1,1,1,1,1\"\n", false},
    {TEXT_HEAD(T, "") ROW("1,2); DROP TABLE t; --"), false},
    {TEXT_HEAD(T, "") ROW("1,(SELECT 1)"), false},
    {TEXT_HEAD("CREATE TABLE t AS SELECT 1 AS a", ""), false},
    {TEXT_HEAD(T, "") ROW("1,load_extension('x')"), false},
    {TEXT_HEAD(T, "") ROW("1,readfile('/etc/passwd')"), false},
    {TEXT_HEAD("ATTACH '/tmp/annal-never' AS x", ""), false},
    {TEXT_HEAD("CREATE TABLE t AS WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a FROM r) "
               "SELECT a FROM r",
               ""),
     false},
    {TEXT_HEAD("CREATE TABLE t (a); CREATE TABLE u (a)", ""), false},
    {TEXT_HEAD("CREATE TEMP TABLE t (a)", ""), false},
    {TEXT_HEAD("CREATE VIRTUAL TABLE t USING dbstat", ""), false},
    {TEXT_HEAD("PRAGMA writable_schema = 1", ""), false},
    {TEXT_HEAD(T, "\"DROP TABLE t\""), false},
    {TEXT_HEAD(T, "1"), false},
};
enum { TEXTS = sizeof texts / sizeof *texts };

static FILE *text_file(const char *text)
{
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    rewind(file);
    return file;
}

START_TEST(a_text_that_does_more_than_create_and_fill_tables_is_refused)
{
    annal_error err = {0};
    FILE *file = text_file(texts[_i].text);
    close(open(to_path("1"), O_CREAT | O_WRONLY, 0600));
    annal_status status = annal__row_text_build(file, to_path("1"), &err);
    ck_assert_msg((status == ANNAL_OK) == texts[_i].good, "%s: %d %s", texts[_i].text, status,
                  err.message);
    ck_assert(status == ANNAL_OK || (status == ANNAL_ERR_CORRUPT && err.message[0] != '\0'));
    ck_assert_int_ne(access("/tmp/annal-never", F_OK), 0);
    fclose(file);
}
END_TEST

#define FILES "{\"annal_files\":1}\n"
#define A_FILE(name)                                                                               \
    "\"" name "\"\t{\"mode\":420,\"mtime_ns\":1700000000000000000,\"text\":\"x\"}\n"

static const char *const files_texts[] = {
    "",
    "{}\n",
    FILES A_FILE("../outside"),
    FILES A_FILE("/tmp/annal-never"),
    FILES A_FILE("a/../../outside"),
    FILES A_FILE(""),
    FILES A_FILE("a\\u0000b"),
    FILES A_FILE("link/outside"),
    FILES "\"a\"\t{\"mode\":420,\"text\":\"x\"}\n",
    FILES "\"a\"\t{\"mode\":420,\"mtime_ns\":1,\"base64\":\"*\"}\n",
    FILES "\"a\"\n",
    FILES "a\t{}\n",
};
enum { FILES_TEXTS = sizeof files_texts / sizeof *files_texts };

START_TEST(files_are_written_only_below_their_directory)
{
    annal_error err = {0};
    char root[600], path[700];
    uint64_t count = 0;
    FILE *file = text_file(files_texts[_i]);
    snprintf(root, sizeof root, "%s/root", cli.dir.path);
    ck_assert_int_eq(mkdir(root, 0700), 0);
    snprintf(path, sizeof path, "%s/link", root);
    ck_assert_int_eq(symlink(cli.dir.path, path), 0);
    ck_assert_int_lt(copies_files_restore(file, root, true, &count, &err), 0);
    ck_assert_int_ne(err.message[0], '\0');
    snprintf(path, sizeof path, "%s/outside", cli.dir.path);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_ne(access("/tmp/annal-never", F_OK), 0);
    fclose(file);
}
END_TEST

/* ---- Directories ---- */

static void shell(const char *command)
{
    char text[900];
    snprintf(text, sizeof text, "cd '%s' && %s", cli.dir.path, command);
    ck_assert_msg(system(text) == 0, "%s", text);
}

static const struct {
    const char *kind, *from, *name, *session;
} directories[] = {
    {"openhands", DATA "openhands/tides", "tides", "7c1d52a0-3f0e-4b52-9a61-0d6c2f4be811"},
    {"cline", DATA "cline/1772442846000", "1772442846000", "1772442846000"}};
enum { DIRECTORIES = sizeof directories / sizeof *directories };

START_TEST(the_files_of_a_directory_are_restored_in_their_places)
{
    char command[700], log[600];
    const char *session = directories[_i].session, *name = directories[_i].name;
    snprintf(log, sizeof log, "%s/%s", cli.dir.path, name);
    snprintf(command, sizeof command, "cp -r '%s' . && chmod -R u+w . && cp -rp %s before",
             directories[_i].from, name);
    shell(command);
    CLI(&cli, NULL, "import", directories[_i].kind, log);
    ck_assert_msg(strstr(cli.out, "not copied") == NULL, "%s", cli.out);
    DONE(&cli, "source", "ls", "--json");
    ck_assert_msg(strstr(cli.out, "\"state\":\"kept\"") != NULL, "%s", cli.out);
    DONE(&cli, "source", "restore", session); /* they are the same */
    snprintf(command, sizeof command, "for f in %s/*.json; do :; done; printf '\\377 ' > $f", name);
    shell(command);
    DONE(&cli, "source", "ls", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"state\":\"changed\""));
    CLI(&cli, NULL, "source", "restore", session);
    cli_assert_refused(&cli, EXIT_REFUSED, "was written later than this copy of it");
    CLI(&cli, NULL, "import", directories[_i].kind, log, "--recheck");
    ck_assert_int_eq(generations(session), 2);
    snprintf(command, sizeof command, "cp -rp %s after && rm -r %s", name, name);
    shell(command);
    DONE(&cli, "source", "restore", session);
    snprintf(command, sizeof command, "diff -r %s after", name);
    shell(command);
    DONE(&cli, "source", "restore", session, "--generation", "1", "--force");
    snprintf(command, sizeof command,
             "diff -r %s before && test \"$(stat -c '%%a %%Y' %s/*)\" = \"$(stat -c '%%a %%Y' "
             "before/*)\"",
             name, name);
    shell(command);
    DONE(&cli, "verify");
}
END_TEST

START_TEST(an_import_counts_the_sessions_that_it_does_not_copy)
{
    char path[600];
    char *sql = file_read(ANNAL_SOURCE "/tools/import/formats/crush.sql", NULL);
    char *section = strstr(sql, "\n-- copies\n");
    ck_assert_ptr_nonnull(section);
    section[4] = 'X';
    snprintf(path, sizeof path, "%s/mine.sql", cli.dir.path);
    FILE *file = fopen(path, "w");
    fputs(sql, file);
    fclose(file);
    free(sql);
    must(log_path(), ODD "INSERT INTO sessions (id, created_at) VALUES ('s-2', 1772442846)");
    CLI(&cli, NULL, "import", path, log_path());
    ck_assert_msg(strstr(cli.out, "3 sessions are not copied for 'annal source'") != NULL, "%s",
                  cli.out);
    CLI(&cli, NULL, "import", path, log_path(), "--recheck", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, ",\"uncopied\":3"));
    DONE(&cli, "source", "ls", "--json");
    ck_assert_str_eq(cli.out, "");
}
END_TEST

Suite *suite_source_forms(void)
{
    Suite *suite = suite_create("source_forms");
    TCase *tc = suite_case(suite, "source_forms", cli_setup, cli_teardown);
    tcase_add_test(tc, a_session_of_a_database_is_restored_into_a_new_database);
    tcase_add_test(tc, a_database_of_utf_16_is_restored_with_its_encoding);
    tcase_add_test(tc, a_session_that_grows_stays_one_generation_and_a_lost_row_begins_another);
    tcase_add_test(tc, a_row_that_changes_often_does_not_fill_the_store);
    tcase_add_loop_test(tc, the_copies_of_all_sessions_have_each_row_of_a_database, 0, DATABASES);
    tcase_add_loop_test(tc, a_text_that_does_more_than_create_and_fill_tables_is_refused, 0, TEXTS);
    tcase_add_loop_test(tc, files_are_written_only_below_their_directory, 0, FILES_TEXTS);
    tcase_add_loop_test(tc, the_files_of_a_directory_are_restored_in_their_places, 0, DIRECTORIES);
    tcase_add_test(tc, an_import_counts_the_sessions_that_it_does_not_copy);
    return suite;
}
