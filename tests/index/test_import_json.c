/* SPDX-License-Identifier: Apache-2.0 */
/* JSON functions of importers give the values of SQLite. */
#include "index/import/import_json.h"

#include "journal/base/buf.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <stdlib.h>
#include <string.h>

/* ?1 is the text, ?2 and ?3 are paths. The columns id and parent of json_each() differ between
 * versions of SQLite, and no importer uses them. */
static const char *const questions[] = {
    "SELECT quote(?1 -> ?2)",
    "SELECT typeof(?1 ->> ?2) || quote(?1 ->> ?2)",
    "SELECT json_type(?1) || coalesce(json_type(?1, ?2), '')",
    "SELECT json_array(?1 -> ?2, json_remove(?1, ?3), (?1 -> ?2) ->> ?3)",
    "SELECT quote(json_remove(?1, ?2, ?3)) || coalesce(json_remove(?1 -> ?2, ?3), '')",
    "SELECT group_concat(quote(key) || quote(value) || type || quote(atom) || "
    "fullkey || path || json || root || quote(value -> ?3), x'0a') FROM json_each(?1)",
    "SELECT group_concat(quote(key) || quote(value) || type || quote(atom) || "
    "fullkey || path || json || root, x'0a') FROM json_each(?1, ?2)",
    "SELECT json_group_array(value) FROM json_each(?1, ?2)",
    "SELECT group_concat(a.fullkey || b.fullkey) FROM json_each(?1) a, json_each(a.value) b "
    "WHERE a.type IN ('array', 'object')",
};
#define QUESTIONS (sizeof questions / sizeof *questions)

static const char *const paths[] = {"$",    "$.a",     "$.b",       "$.a.b",     "$.a[0]",
                                    "$[1]", "$.a.a.b", "$.\"a b\"", "$.a.\"a\"", "$[#-1]",
                                    "a",    "$.",      "$.n"};
#define PATHS (sizeof paths / sizeof *paths)

static sqlite3 *ours, *plain;
static struct import_json *json;
static sqlite3_stmt *ask_ours[QUESTIONS], *ask_plain[QUESTIONS];

static void set_up(void)
{
    ck_assert_int_eq(sqlite3_open(":memory:", &ours), SQLITE_OK);
    ck_assert_int_eq(sqlite3_open(":memory:", &plain), SQLITE_OK);
    json = annal__import_json_new(ours);
    ck_assert_ptr_nonnull(json);
    ck_assert_int_eq(annal__import_each_add(ours, json), SQLITE_OK);
    for (size_t i = 0; i < QUESTIONS; i++) {
        ck_assert_int_eq(sqlite3_prepare_v2(ours, questions[i], -1, &ask_ours[i], NULL), SQLITE_OK);
        ck_assert_int_eq(sqlite3_prepare_v2(plain, questions[i], -1, &ask_plain[i], NULL),
                         SQLITE_OK);
    }
}

static void tear_down(void)
{
    for (size_t i = 0; i < QUESTIONS; i++) {
        sqlite3_finalize(ask_ours[i]);
        sqlite3_finalize(ask_plain[i]);
    }
    sqlite3_close(ours);
    sqlite3_close(plain);
    annal__import_json_free(json);
}

static char *answer(sqlite3_stmt *stmt, const char *text, const char *path, const char *other)
{
    sqlite3_bind_text(stmt, 1, text, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 2, path, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 3, other, -1, SQLITE_STATIC);
    const char *found = sqlite3_step(stmt) == SQLITE_ROW
                            ? (const char *)sqlite3_column_text(stmt, 0)
                            : sqlite3_errmsg(sqlite3_db_handle(stmt));
    char *copy = strdup(found != NULL ? found : "NULL");
    sqlite3_reset(stmt);
    return copy;
}

static void check(const char *text, bool as_line)
{
    annal__import_json_begin(json);
    if (as_line)
        annal__import_json_line(json, 1, annal_slice_of(text));
    for (size_t at = 0; at < QUESTIONS * PATHS * PATHS; at++) {
        size_t question = at % QUESTIONS;
        const char *path = paths[at / QUESTIONS % PATHS], *other = paths[at / QUESTIONS / PATHS];
        /* SQLite 3.45 and later remove a second member of the same name with a second path. */
        if (path == other && strstr(questions[question], "json_remove(?1, ?2, ?3)") != NULL &&
            sqlite3_libversion_number() >= 3045000)
            continue;
        char *got = answer(ask_ours[question], text, path, other);
        char *want = answer(ask_plain[question], text, path, other);
        ck_assert_msg(strcmp(got, want) == 0, "%s of %s, %s, %s:\n%s, not\n%s", questions[question],
                      text, path, other, got, want);
        free(got);
        free(want);
    }
}

START_TEST(json_functions_return_the_values_of_sqlite)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "1",
        "-0",
        "null",
        "\"text\"",
        "\"\\u0041\\n\"",
        "true",
        "[1,[2,[3]],{\"a\":4}]",
        "{\"a\":1,\"b\":\"text\",\"a\":2}",
        " { \"a\" : [ 1 , 2 ] , \"b\" : { \"a b\" : \" x \" } } ",
        "{\"a\":{\"a\":{\"b\":5}},\"b\":false,\"a b\":null}",
        "{\"a\":{\"b\":1},\"b\":2}",
        "{\"a\":{\"a\":1,\"b\":{\"a\":7}},\"n\":[]}",
        "{\"b\":1,\"a\":2,\"n\":3}",
        "{\"a\":1.0,\"b\":1e400,\"n\":12345678901234567890}",
        "{\"a\":-9223372036854775808}",
        "{\"\\u0061\":1,\"a\":2,\"b\":3}",
        "{\"a\":\"\\ud800\",\"b\":\"\\ud83d\\ude00\",\"n\":\"\\u0000\"}",
        "{\"a\":\"\",\"\":1,\"b\":\"é\\\"\\\\\\/\\t\"}",
        "{\"a\":\"{\\\"b\\\":1}\",\"b\":\"[1]\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check(texts[i], false);
        check(texts[i], true);
    }
}
END_TEST

START_TEST(invalid_json_fails_as_in_sqlite)
{
    check("", false);
    check("{\"a\":1", false);
    check("{\"a\":1}{\"a\":2}", false);
}
END_TEST

static void put_value(struct buf *out, struct random *random, int depth)
{
    static const char *const scalars[] = {"1",    "-20",   "2.50",    "true",
                                          "null", "\"x\"", "\"\\n\"", "\"\""};
    static const char *const names[] = {"a", "b", "a b", "n", "a", "\\u0061"};
    uint64_t kind = random_below(random, depth < 4 ? 4 : 2), count = random_below(random, 4);
    if (kind < 2) {
        ck_assert_int_eq(annal__buf_printf(out, "%s", scalars[random_below(random, 8)]), ANNAL_OK);
        return;
    }
    ck_assert_int_eq(annal__buf_printf(out, kind == 2 ? "[" : "{"), ANNAL_OK);
    for (uint64_t i = 0; i < count; i++) {
        ck_assert_int_eq(annal__buf_printf(out, i == 0                        ? ""
                                                : random_below(random, 8) > 0 ? ","
                                                                              : " , "),
                         ANNAL_OK);
        /* A name with an escape is rare. */
        if (kind == 3)
            ck_assert_int_eq(
                annal__buf_printf(out, "\"%s\":",
                                  names[random_below(random, random_below(random, 9) > 0 ? 5 : 6)]),
                ANNAL_OK);
        put_value(out, random, depth + 1);
    }
    ck_assert_int_eq(annal__buf_printf(out, kind == 2 ? "]" : "}"), ANNAL_OK);
}

START_TEST(json_functions_return_the_values_of_sqlite_for_random_json)
{
    struct random random = random_init(0);
    struct buf text = {0};
    for (unsigned i = 0; i < full_or(5000, 30); i++) {
        annal__buf_clear(&text);
        put_value(&text, &random, 0);
        check(annal__buf_cstr(&text), i % 2 == 0);
    }
    annal__buf_done(&text);
}
END_TEST

/* Texts with more tokens than the limit are read by SQLite. */
START_TEST(a_text_with_more_values_than_the_limit_is_read)
{
    struct buf text = {0};
    ck_assert_int_eq(annal__buf_printf(&text, "{\"b\":[0"), ANNAL_OK);
    for (int i = 1; i < 70000; i++)
        ck_assert_int_eq(annal__buf_printf(&text, ",%d", i), ANNAL_OK);
    ck_assert_int_eq(annal__buf_printf(&text, "],\"a\":\"last\"}"), ANNAL_OK);
    const char *bytes = annal__buf_cstr(&text);
    annal__import_json_line(json, 1, annal__buf_slice(&text));
    char *got = answer(ask_ours[1], bytes, "$.a", "$");
    ck_assert_str_eq(got, "text'last'");
    free(got);
    annal__buf_done(&text);
}
END_TEST

Suite *suite_import_json(void)
{
    Suite *suite = suite_create("import_json");
    TCase *tcase = suite_case(suite, "import_json", set_up, tear_down);
    tcase_add_test(tcase, json_functions_return_the_values_of_sqlite);
    tcase_add_test(tcase, invalid_json_fails_as_in_sqlite);
    tcase_add_test(tcase, json_functions_return_the_values_of_sqlite_for_random_json);
    tcase_add_test(tcase, a_text_with_more_values_than_the_limit_is_read);
    return suite;
}
