/* SPDX-License-Identifier: Apache-2.0 */
#include "index/pack/pack_fields.h"

#include "index/db/db.h"
#include "journal/base/buf.h"
#include "journal/base/json.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <stdlib.h>
#include <string.h>

#define NAMES "a\0b\0c\0a::b\0a::b::c\0d::a\0key_9\0"

static sqlite3 *db;
static sqlite3_stmt *show;
static struct pack_fields *fields, *few;
static struct pack_members members;

static int read_data(struct pack_fields *reader, annal_slice data)
{
    annal__pack_members_read(&members, data);
    return annal__pack_fields_read(reader, &members);
}

static void set_up(void)
{
    ck_assert_int_eq(
        annal__db_open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, NULL),
        ANNAL_OK);
    ck_assert_int_eq(annal__db_prepare(db, "SELECT typeof(?1) || ' ' || quote(?1)", &show, NULL),
                     ANNAL_OK);
    ck_assert_int_eq(annal__pack_fields_new(db, ANNAL_SLICE(NAMES), &fields, NULL), ANNAL_OK);
    ck_assert_int_eq(annal__pack_fields_new(db, ANNAL_SLICE("c\0a::b\0"), &few, NULL), ANNAL_OK);
}

static void tear_down(void)
{
    annal__pack_fields_free(fields);
    annal__pack_fields_free(few);
    sqlite3_finalize(show);
    annal__db_close(db);
}

/* Value that SQLite extracts. */
static char *expected(const char *data, const char *path)
{
    sqlite3_stmt *stmt = NULL;
    ck_assert_int_eq(
        annal__db_prepare(db, "SELECT typeof(?1 ->> ?2) || ' ' || quote(?1 ->> ?2)", &stmt, NULL),
        ANNAL_OK);
    sqlite3_bind_text(stmt, 1, data, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 2, path, -1, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
    char *text = strdup((const char *)sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    return text;
}

/* Compare the values with SQLite's, and the conditions with what SQL says of these values. */
static void ck_fields(const char *data)
{
    static const char *const paths[] = {"$.a",     "$.b",   "$.c",    "$.a.b",
                                        "$.a.b.c", "$.d.a", "$.key_9"};
    for (int i = 0; i < 7; i++) {
        annal__pack_fields_bind(fields, i, show, 1);
        ck_assert_int_eq(sqlite3_step(show), SQLITE_ROW);
        char *want = expected(data, paths[i]);
        const char *got = (const char *)sqlite3_column_text(show, 0);
        ck_assert_msg(strcmp(got, want) == 0, "%s of %s: %s, not %s", paths[i], data, got, want);
        ck_assert_int_eq(annal__pack_fields_is(fields, i, (annal_slice){NULL, 0}),
                         strcmp(want, "null NULL") != 0);
        ck_assert_int_eq(annal__pack_fields_is(fields, i, ANNAL_SLICE("word")),
                         strcmp(want, "text 'word'") == 0);
        free(want);
        sqlite3_reset(show);
        sqlite3_clear_bindings(show);
    }
}

/* Read the data alone, and after another section that needed only some of its members. */
static void check(const char *data)
{
    char *copy = strdup(data); /* a copy, so that a read after its end is an error */
    for (int shared = 0; shared < 2; shared++) {
        annal__pack_members_read(&members, (annal_slice){copy, strlen(data)});
        if (shared)
            ck_assert_int_eq(annal__pack_fields_read(few, &members), SQLITE_OK);
        annal__pack_fields_forget(few);
        ck_assert_int_eq(annal__pack_fields_read(fields, &members), SQLITE_OK);
        ck_fields(data);
        annal__pack_fields_forget(fields);
    }
    free(copy);
}

START_TEST(a_field_has_the_value_that_sqlite_extracts)
{
    static const char *const data[] = {
        "{}",
        "{\"a\":1,\"b\":\"text\",\"c\":null,\"key_9\":true}",
        "{\"a\":{\"b\":{\"c\":5}},\"d\":{\"a\":false}}",
        "{\"a\":{\"b\":7,\"b\":8},\"a\":9,\"b\":-0,\"b\":1}",
        "{\"a\":1,\"a\":{\"b\":2}}",
        "{\"d\":{\"a\":{}},\"b\":[1, 2],\"c\":{ \"x\" : 1 }}",
        "{\"a\":1.0,\"b\":1e3,\"c\":123456789012345678,\"key_9\":-123456789012345678}",
        "{\"a\":9223372036854775807,\"b\":9223372036854775808,\"c\":-9223372036854775808}",
        "{\"a\":\"line\\nline\",\"b\":\"\\u00e4\",\"c\":\"\\\"\"}",
        "{\"\\u0061\":1,\"b\":2}",
        " \t\n{ \"x\" : [ { \"a\" : \"}\" } , \"\\\\\" ] , \"a\" : \"z\" } ",
        "[{\"a\":1}]",
        "\"a\"",
        "17",
        "{\"a\":\"\",\"b\":\"\xc3\xa4\",\"c\":{}}",
        "{\"a\":1e400,\"b\":-1e400,\"c\":-0.0,\"d\":{\"a\":1e-400},\"key_9\":99999999999999999999}",
        "{\"a\":\"\\ud800\",\"b\":\"\\udc00\\ud83d\\ude00\",\"c\":\"x\\u0000y\",\"d\":{\"a\":\"\\/"
        "\"}}",
        "{\"a\":{\"b\":{\"c\":1.5,\"c\":2},\"b\":{\"c\":3}},\"a\":{\"b\":4},\"d\":[{\"a\":1}]}",
        "{\"a\":{\"\\u0062\":{\"c\":[ 1 ]}},\"d\":{\"\\u0061\":1,\"a\":2}}",
    };
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        check(data[i]);
}
END_TEST

static void put_value(struct buf *out, struct random *random, unsigned depth);

static void put(struct buf *out, const char *text)
{
    ck_assert_int_eq(annal__buf_append(out, text, strlen(text)), ANNAL_OK);
}

static void put_object(struct buf *out, struct random *random, unsigned depth)
{
    static const char *const keys[] = {"a", "b", "c", "d", "key_9", "ab", ""};
    uint64_t count = random_below(random, 5);
    put(out, random_below(random, 8) == 0 ? "{ " : "{");
    /* about as many members as are kept for other sections */
    uint64_t kept = depth == 0 && random_below(random, 9) == 0 ? PACK_MEMBERS_MAX - 2 : 0;
    for (uint64_t i = 0; i < kept; i++)
        put(out, count == 0 && i + 1 == kept ? "\"x\":1" : "\"x\":1,");
    for (uint64_t i = 0; i < count; i++) {
        put(out, i == 0 ? "\"" : ",\"");
        put(out, keys[random_below(random, 7)]);
        put(out, random_below(random, 8) == 0 ? "\" :\n" : "\":");
        put_value(out, random, depth + 1);
    }
    put(out, "}");
}

static void put_value(struct buf *out, struct random *random, unsigned depth)
{
    static const char *const simple[] = {"0",
                                         "-1",
                                         "true",
                                         "false",
                                         "null",
                                         "\"\"",
                                         "\"word\"",
                                         "12345678",
                                         "\"}\"",
                                         "1.5",
                                         "2e-3",
                                         "\"\\n\"",
                                         "\"\\\\\"",
                                         "[]",
                                         "[1,\"]\",{}]",
                                         "\"a\\\"b\"",
                                         "\"[{\"",
                                         "-7",
                                         "\"42\"",
                                         "[[]]",
                                         "\"\\\\u\"",
                                         "\"long long text without a mark\""};
    if (depth < 4 && random_below(random, 2) == 0)
        put_object(out, random, depth);
    else
        put(out, simple[random_below(random, sizeof simple / sizeof *simple)]);
}

START_TEST(fields_of_random_data_have_the_values_that_sqlite_extracts)
{
    struct random random = random_init(4);
    struct buf data = {0};
    for (int i = 0; i < 3000; i++) {
        annal__buf_clear(&data);
        put_object(&data, &random, 0);
        ck_assert_int_eq(annal__json_check(annal__buf_slice(&data), 100, NULL), JSON_VALID);
        check(annal__buf_cstr(&data));
    }
    annal__buf_done(&data);
}
END_TEST

/* More and deeper fields than a walk handles. */
START_TEST(any_number_of_fields_of_any_depth_is_read)
{
    struct buf names = {0}, data = {0};
    struct pack_fields *many = NULL;
    put(&data, "{");
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(annal__buf_printf(&names, "f%d", i), ANNAL_OK);
        ck_assert_int_eq(annal__buf_append(&names, "", 1), ANNAL_OK);
        ck_assert_int_eq(annal__buf_printf(&data, "\"f%d\":%d,", i, i * 3), ANNAL_OK);
    }
    static const char deep[] = "a::a::a::a::a::a::a::a::a::a";
    ck_assert_int_eq(annal__buf_append(&names, deep, sizeof deep), ANNAL_OK);
    put(&data, "\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}}}}}}");
    ck_assert_int_eq(annal__pack_fields_new(db, annal__buf_slice(&names), &many, NULL), ANNAL_OK);
    ck_assert_int_eq(read_data(many, annal__buf_slice(&data)), SQLITE_OK);
    for (int i = 0; i < 101; i++) {
        annal__pack_fields_bind(many, i, show, 1);
        ck_assert_int_eq(sqlite3_step(show), SQLITE_ROW);
        ck_assert_int_eq(atoi((const char *)sqlite3_column_text(show, 0) + strlen("integer ")),
                         i == 100 ? 1 : i * 3);
        sqlite3_reset(show);
    }
    annal__pack_fields_forget(many);
    annal__pack_fields_free(many);
    annal__buf_done(&names);
    annal__buf_done(&data);
}
END_TEST

START_TEST(a_section_without_fields_reads_no_data)
{
    struct pack_fields *none = fields;
    ck_assert_int_eq(annal__pack_fields_new(db, (annal_slice){NULL, 0}, &none, NULL), ANNAL_OK);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(read_data(none, ANNAL_SLICE("{}")), SQLITE_OK);
    annal__pack_fields_forget(none);
    annal__pack_fields_free(none);
}
END_TEST

Suite *suite_pack_fields(void)
{
    Suite *suite = suite_create("pack_fields");
    TCase *tcase = suite_case(suite, "fields", set_up, tear_down);
    tcase_add_test(tcase, a_field_has_the_value_that_sqlite_extracts);
    tcase_add_test(tcase, fields_of_random_data_have_the_values_that_sqlite_extracts);
    tcase_add_test(tcase, any_number_of_fields_of_any_depth_is_read);
    tcase_add_test(tcase, a_section_without_fields_reads_no_data);
    return suite;
}
