/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/allowed.h"
#include "index/db/connect.h"
#include "index/db/db.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include <sqlite3.h>

#include <stdlib.h>
#include <string.h>

#define TOKENIZER "fts3_tokenizer('simple', x'0010000000000000')"

static annal_status ask(const char *sql, annal_error *err)
{
    struct text text = {0};
    annal_status status = annal_index_sql(f.index, annal_slice_of(sql), NULL, text_row, &text, err);
    free(text.ptr);
    return status;
}

static void ck_refused(const char *sql, const char *message)
{
    annal_error err = {0};
    ck_assert_msg(ask(sql, &err) == ANNAL_ERR_SQL, "%s", sql);
    if (message != NULL)
        ck_assert_msg(strcmp(err.message, message) == 0, "%s: %s", sql, err.message);
}

/* The functions, pragmas and modules of this SQLite on a connection that annal has not changed. */
static sqlite3_stmt *of_sqlite(sqlite3 **out_db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    ck_assert_int_eq(sqlite3_open(":memory:", out_db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(*out_db, sql, -1, &stmt, NULL), SQLITE_OK);
    return stmt;
}

static const char *next_name(sqlite3_stmt *stmt)
{
    return sqlite3_step(stmt) == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
}

static void end(sqlite3 *db, sqlite3_stmt *stmt)
{
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

/* SQLite does not mark its JSON functions before 3.41, nor its percentiles. */
static bool is_harmless(const char *name, int flags)
{
    static const char *const unmarked[] = {"json", "->", "median", "percentile"};
    for (size_t i = 0; i < sizeof unmarked / sizeof *unmarked; i++)
        if (strncmp(name, unmarked[i], strlen(unmarked[i])) == 0)
            return true;
    return (flags & SQLITE_INNOCUOUS) != 0 && (flags & SQLITE_DIRECTONLY) == 0;
}

START_TEST(each_function_of_this_sqlite_is_listed_as_allowed_or_refused)
{
    sqlite3 *db;
    int refused = 0;
    sqlite3_stmt *stmt = of_sqlite(&db, "SELECT name, narg, flags FROM pragma_function_list");
    for (const char *name; (name = next_name(stmt)) != NULL;) {
        int count = sqlite3_column_int(stmt, 1);
        const char *values[] = {"", "NULL", "NULL, NULL", "NULL, NULL, NULL"};
        char *sql = sqlite3_mprintf("SELECT \"%w\"(%s)", name, values[count < 0 ? 2 : count & 3]);
        if (annal__allowed_function(name)) {
            ck_assert_msg(is_harmless(name, sqlite3_column_int(stmt, 2)), "%s", name);
        } else {
            ck_refused(sql, NULL);
            refused++;
        }
        sqlite3_free(sql);
    }
    end(db, stmt);
    ck_assert_int_ge(refused, 1);
    ck_assert(!annal__allowed_function("load_extension"));
    ck_assert(!annal__allowed_function("fts3_tokenizer"));
    ck_refused("SELECT load_extension('x')",
               "the function load_extension is not allowed in a statement that only reads");
}
END_TEST

START_TEST(each_function_of_annal_is_allowed)
{
    sqlite3 *plain, *db = NULL;
    sqlite3_stmt *names = NULL,
                 *known = of_sqlite(&plain, "SELECT 1 FROM pragma_function_list WHERE name = ?1");
    int ours = 0;
    ck_ok(annal__db_open(":memory:", SQLITE_OPEN_READWRITE, &db, err));
    ck_ok(annal__db_prepare(db, "SELECT DISTINCT name FROM pragma_function_list", &names, err));
    for (const char *name; (name = next_name(names)) != NULL;) {
        sqlite3_reset(known);
        sqlite3_bind_text(known, 1, name, -1, SQLITE_TRANSIENT);
        if (sqlite3_step(known) == SQLITE_ROW || strcmp(name, "fts3_tokenizer") == 0)
            continue;
        ck_assert_msg(annal__allowed_function(name), "%s", name);
        ours++;
    }
    ck_assert_int_ge(ours, 12);
    end(db, names);
    end(plain, known);
}
END_TEST

START_TEST(each_pragma_of_this_sqlite_reads_the_schema_or_is_refused)
{
    sqlite3 *db;
    int refused = 0;
    sqlite3_stmt *stmt = of_sqlite(&db, "SELECT name FROM pragma_pragma_list");
    for (const char *name; (name = next_name(stmt)) != NULL;) {
        char *pragma = sqlite3_mprintf("PRAGMA %s", name);
        char *table = sqlite3_mprintf("SELECT count(*) FROM Pragma_%s", name);
        if (!annal__allowed_pragma(name)) {
            ck_refused(pragma, NULL);
            ck_refused(table, NULL);
            refused++;
        }
        sqlite3_free(pragma);
        sqlite3_free(table);
    }
    end(db, stmt);
    ck_assert_int_ge(refused, 40);
    ck_refused("SELECT file FROM pragma_database_list",
               "the table pragma_database_list is not allowed in a statement that only reads");
    ck_refused("PRAGMA database_list",
               "PRAGMA database_list is not allowed in a statement that only reads");
}
END_TEST

START_TEST(each_virtual_table_of_this_sqlite_is_used_by_annal_or_disabled)
{
    sqlite3 *db, *ours = NULL;
    sqlite3_stmt *stmt = of_sqlite(&db, "SELECT name FROM pragma_module_list");
    ck_ok(annal__db_open(":memory:", SQLITE_OPEN_READWRITE, &ours, err));
    for (const char *name; (name = next_name(stmt)) != NULL;) {
        if (strncmp(name, "json_", 5) == 0 || strncmp(name, "pragma_", 7) == 0)
            continue;
        char *select = sqlite3_mprintf("SELECT count(*) FROM \"%w\"", name);
        char *create = sqlite3_mprintf("CREATE VIRTUAL TABLE t USING \"%w\"(x)", name);
        ck_refused(select, NULL);
        if (strncmp(name, "fts5", 4) != 0) {
            ck_assert_msg(sqlite3_exec(ours, create, NULL, NULL, NULL) != SQLITE_OK, "%s", name);
            ck_assert_ptr_nonnull(strstr(sqlite3_errmsg(ours), "no such module"));
        }
        sqlite3_free(select);
        sqlite3_free(create);
    }
    end(db, stmt);
    annal__db_close(ours);
}
END_TEST

START_TEST(no_connection_accepts_a_pointer_through_fts3_tokenizer)
{
    const char *path = tmpdir_path(&f.dir, "hostile.db");
    sqlite3 *db;
    sqlite3_stmt *stmt = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "CREATE VIEW v AS SELECT " TOKENIZER, NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);

    static const char *const asked[] = {("SELECT " TOKENIZER), "SELECT * FROM v",
                                        "SELECT fts3_tokenizer('simple', ?1)",
                                        "SELECT fts3_tokenizer('simple')"};
    ck_assert_int_eq(annal__connect_open(NULL, path, SQLITE_OPEN_READWRITE, &db), SQLITE_OK);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        if (sqlite3_prepare_v2(db, asked[i], -1, &stmt, NULL) != SQLITE_OK)
            continue;
        sqlite3_bind_blob(stmt, 1, "\0\020\0\0\0\0\0\0", 8, SQLITE_STATIC);
        ck_assert_msg(sqlite3_step(stmt) == SQLITE_ERROR, "%s", asked[i]);
        sqlite3_finalize(stmt);
    }
    end(db, NULL);
}
END_TEST

START_TEST(a_statement_is_compiled_once_for_all_values)
{
    sqlite3 *db;
    sqlite3_stmt *stmt = NULL;
    ck_assert_int_eq(annal__connect_open(NULL, ":memory:", SQLITE_OPEN_READWRITE, &db), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(db, "CREATE TABLE t (a TEXT COLLATE NOCASE PRIMARY KEY)", NULL, NULL, NULL),
        SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_prepare_v2(db, "SELECT a FROM t WHERE a LIKE ?1 LIMIT ?2", -1, &stmt, NULL),
        SQLITE_OK);
    for (int i = 1; i <= 3; i++) {
        sqlite3_bind_text(stmt, 1, i == 1 ? "a%" : "b%", 2, SQLITE_STATIC);
        sqlite3_bind_int(stmt, 2, i);
        ck_assert_int_eq(sqlite3_step(stmt), SQLITE_DONE);
        sqlite3_reset(stmt);
    }
    ck_assert_int_eq(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_REPREPARE, 0), 0);
    end(db, stmt);
}
END_TEST

START_TEST(no_statement_returns_an_address)
{
    const annal_value address = {.kind = ANNAL_VALUE_BLOB, .bytes = ANNAL_SLICE("\1\2\3\4\5\6\7")};
    annal_error err = {0};
    ck_refused("SELECT fts3_tokenizer('simple')",
               "the function fts3_tokenizer is not allowed in a statement that only reads");
    ck_assert_int_eq(annal_index_sql(f.index, ANNAL_SLICE("SELECT fts3_tokenizer('simple', ?1)"),
                                     &(annal_sql_options){.params = &address, .param_count = 1},
                                     text_row, NULL, &err),
                     ANNAL_ERR_SQL);
    ck_refused("EXPLAIN SELECT * FROM json_each('[]')", NULL);
    const annal_filter filter = {.where = ANNAL_SLICE("length(" TOKENIZER ") > 0")};
    annal_query *query = NULL;
    ck_assert_int_eq(annal_query_open(f.index, &filter, &query, &err), ANNAL_ERR_SQL);
    ck_assert_ptr_nonnull(strstr(
        err.message, "the function fts3_tokenizer is not allowed in a statement that only reads"));
}
END_TEST

START_TEST(reading_the_schema_and_json_is_allowed)
{
    ck_sql(&f, "SELECT name FROM pragma_table_info('sessions') WHERE cid = 0", "id\n");
    ck_sql(&f, "SELECT count(*) FROM json_each('[1,2]'), json_tree('[]')", "2\n");
    ck_sql(&f, "SELECT typeof(date('now')), abs(random()) >= 0, 'a' LIKE 'A', 'a' GLOB '?'",
           "text|1|1|1\n");
    ck_sql(&f, "SELECT sum(x) OVER (ORDER BY x), row_number() OVER () FROM (SELECT 1 AS x)",
           "1|1\n");
    ck_sql(&f, "SELECT count(*) > 0 FROM pragma_table_list", "1\n");
    ck_sql(&f, "SELECT '{\"a\":1}' ->> '$.a', annal_count(3)", "1|3\n");
}
END_TEST

Suite *suite_allowed(void)
{
    Suite *suite = suite_create("allowed");
    TCase *tcase = suite_case(suite, "allowed", fixture_setup, fixture_teardown);
    tcase_add_test(tcase, each_function_of_this_sqlite_is_listed_as_allowed_or_refused);
    tcase_add_test(tcase, each_function_of_annal_is_allowed);
    tcase_add_test(tcase, each_pragma_of_this_sqlite_reads_the_schema_or_is_refused);
    tcase_add_test(tcase, each_virtual_table_of_this_sqlite_is_used_by_annal_or_disabled);
    tcase_add_test(tcase, no_connection_accepts_a_pointer_through_fts3_tokenizer);
    tcase_add_test(tcase, a_statement_is_compiled_once_for_all_values);
    tcase_add_test(tcase, no_statement_returns_an_address);
    tcase_add_test(tcase, reading_the_schema_and_json_is_allowed);
    return suite;
}
