/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/buf.h"
#include "journal/base/json.h"
#include "journal/sys/artifact.h"
#include "tests/artifact/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What becomes of data; the reference's hash and path are left out. "" when nothing. */
static char *taken_out(const char *data, const char *field, uint64_t over, char sha256[65])
{
    annal_slice out = {0};
    ck_ok(annal__artifact_externalize(f.store, ANNAL_SLICE("s"), field, over, annal_slice_of(data),
                                      &out, err));
    char *text = strndup(out.ptr == NULL ? "" : out.ptr, out.len);
    annal_free(out.ptr);
    sha256[0] = '\0';
    char *hash = strstr(text, "\"sha256\":\"");
    if (hash != NULL) {
        char path[128];
        memcpy(sha256, hash + 10, 64);
        sha256[64] = '\0';
        snprintf(path, sizeof path, ",\"path\":\"artifacts/s/%s.zst\"", sha256);
        char *at = strstr(text, path);
        ck_assert_ptr_nonnull(at);
        memmove(at, at + strlen(path), strlen(at + strlen(path)) + 1);
        memmove(hash, hash + 76, strlen(hash + 76) + 1);
    }
    return text;
}

static void check(const char *data, const char *expected, const char *content)
{
    char sha256[65];
    char *got = taken_out(data, "output", 8, sha256);
    ck_assert_str_eq(got, expected);
    if (content != NULL) {
        annal_slice bytes;
        ck_ok(annal_artifact_get(f.store, ANNAL_SLICE("s"), annal_slice_of(sha256), 1000, &bytes,
                                 err));
        ck_assert_uint_eq(bytes.len, strlen(content));
        ck_assert_mem_eq(bytes.ptr, content, bytes.len);
        annal_free(bytes.ptr);
    }
    free(got);
}

START_TEST(a_large_string_becomes_a_reference_to_its_text)
{
    check("{ \"a\" : [1,{\"output\":2}], \"output\" : \"0123456789\" , \"z\":\"}\" }",
          "{ \"a\" : [1,{\"output\":2}], "
          "\"output_ref\":{\"bytes\":10,\"media_type\":\"text/plain\"} , \"z\":\"}\" }",
          "0123456789");
    check("{\"output\":\"a\\n\\\"\\\\\\u00e4\\u20ac\\ud83d\\ude00/\\/\"}",
          "{\"output_ref\":{\"bytes\":15,\"media_type\":\"text/plain\"}}",
          "a\n\"\\\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80//");
}
END_TEST

START_TEST(any_other_large_value_becomes_a_reference_to_its_json)
{
    check("{\"output\":{\"lines\": [1, 2]}}",
          "{\"output_ref\":{\"bytes\":17,\"media_type\":\"application/json\"}}",
          "{\"lines\": [1, 2]}");
    check("{\"output\":12345678901}",
          "{\"output_ref\":{\"bytes\":11,\"media_type\":\"application/json\"}}", "12345678901");
    check("{\"output\":\"half \\ud83d pair\"}",
          "{\"output_ref\":{\"bytes\":18,\"media_type\":\"application/json\"}}",
          "\"half \\ud83d pair\"");
}
END_TEST

START_TEST(small_values_other_members_and_plain_values_are_unchanged)
{
    check("{\"output\":\"01234567\"}", "", NULL);
    check("{\"output\":\"\\u0030\\u0031\\u0032\"}", "", NULL); /* long as JSON, short as text */
    check("{\"outpu\":\"0123456789\",\"outputs\":\"0123456789\"}", "", NULL);
    check("{\"in\":{\"output\":\"0123456789\"}}", "", NULL);
    check("[\"output\",\"0123456789\"]", "", NULL);
    check("\"output 0123456789\"", "", NULL);
    check("{\"output\":\"0123456789\",", "", NULL);
    check("{}                 ", "", NULL);
    check("{\"output\":\"0123456789\",\"output_ref\":{}}", "", NULL);
    ck_assert_uint_eq(fixture_count(&f, ""), 0);
}
END_TEST

START_TEST(equal_data_gives_equal_bytes_so_that_a_retry_is_recognized)
{
    annal_slice one, two;
    const annal_slice data = ANNAL_SLICE("{\"output\":\"0123456789\"}");
    ck_ok(annal__artifact_externalize(f.store, ANNAL_SLICE("s"), "output", 1, data, &one, err));
    ck_ok(annal__artifact_externalize(f.store, ANNAL_SLICE("s"), "output", 1, data, &two, err));
    ck_assert_uint_eq(one.len, two.len);
    ck_assert_mem_eq(one.ptr, two.ptr, one.len);
    annal_free(one.ptr);
    annal_free(two.ptr);
}
END_TEST

/* ---- Any JSON ---- */

static void put(struct buf *out, const char *text)
{
    ck_assert_int_eq(annal__buf_append(out, text, strlen(text)), ANNAL_OK);
}

static void put_value(struct buf *out, struct random *random, unsigned depth)
{
    static const char *const simple[] = {
        "0",        "-1.5e3", "true",        "null", "\"\"",       "\"a\\\"\"",
        "\"\\\\\"", "\"{[\"", "\"\\ud83d\"", "[]",   "\"output\"", "{\"output\":1}"};
    static const char *const spaces[] = {"", "", "", " ", "\n", "\t "};
    bool array = random_below(random, 2) == 0;
    put(out, spaces[random_below(random, 6)]);
    if (depth > 4 || random_below(random, 3) == 0) {
        put(out, simple[random_below(random, sizeof simple / sizeof *simple)]);
    } else {
        put(out, array ? "[" : "{");
        for (uint64_t i = 0, n = random_below(random, 4); i < n; i++) {
            put(out, i == 0 ? "" : ",");
            put(out, array ? "" : random_below(random, 2) == 0 ? "\"output\":" : " \"o\\\"\" : ");
            put_value(out, random, depth + 1);
        }
        put(out, array ? "]" : "}");
    }
    put(out, spaces[random_below(random, 6)]);
}

/* A value that is not a string is stored as written: put back, it gives the original data. */
START_TEST(externalizing_one_member_leaves_all_other_data_unchanged)
{
    struct random random = random_init(9);
    struct buf data = {0}, value = {0};
    for (int i = 0; i < 150; i++) {
        char sha256[65], expected[4000];
        annal__buf_clear(&data);
        annal__buf_clear(&value);
        put(&data, "{ \"a\":");
        put_value(&data, &random, 1);
        put(&data, ",\"output\":");
        size_t before = data.len;
        put(&value, random_below(&random, 2) == 0 ? "[ 1," : "{\"x\":");
        bool array = value.ptr[0] == '[';
        put_value(&value, &random, 1);
        put(&value, array ? "]" : "}");
        ck_assert_int_eq(annal__buf_append_slice(&data, annal__buf_slice(&value)), ANNAL_OK);
        put(&data, " , \"z\":");
        put_value(&data, &random, 1);
        put(&data, "}");
        ck_assert_int_eq(annal__json_check(annal__buf_slice(&data), 100, NULL), JSON_VALID);
        char *got = taken_out(annal__buf_cstr(&data), "output", 0, sha256);
        snprintf(expected, sizeof expected,
                 "%.*s\"output_ref\":{\"bytes\":%zu,\"media_type\":\"application/json\"}%s",
                 (int)(before - strlen("\"output\":")), data.ptr, value.len,
                 data.ptr + before + value.len);
        ck_assert_str_eq(got, expected);
        annal_slice content;
        ck_ok(annal_artifact_get(f.store, ANNAL_SLICE("s"), annal_slice_of(sha256), 9999, &content,
                                 err));
        ck_assert_uint_eq(content.len, value.len);
        ck_assert_mem_eq(content.ptr, value.ptr, value.len);
        annal_free(content.ptr);
        free(got);
    }
    annal__buf_done(&data);
    annal__buf_done(&value);
}
END_TEST

Suite *suite_externalize(void)
{
    Suite *suite = suite_create("externalize");
    TCase *tcase = suite_case(suite, "externalize", fixture_setup, fixture_teardown);
    tcase_add_test(tcase, a_large_string_becomes_a_reference_to_its_text);
    tcase_add_test(tcase, any_other_large_value_becomes_a_reference_to_its_json);
    tcase_add_test(tcase, small_values_other_members_and_plain_values_are_unchanged);
    tcase_add_test(tcase, equal_data_gives_equal_bytes_so_that_a_retry_is_recognized);
    tcase_add_test(tcase, externalizing_one_member_leaves_all_other_data_unchanged);
    return suite;
}
