/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/json_msgpack.h"

#include "journal/base/json.h"
#include "journal/base/msgpack.h"
#include "tests/support/failing_libc.h"
#include "tests/support/journals.h"
#include "tests/support/real_logs.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void to_msgpack(const char *json, struct buf *out)
{
    annal__buf_clear(out);
    ck_ok(annal__json_msgpack_from_json(annal_slice_of(json), out, err));
}

static void ck_json(const char *json, const char *expected)
{
    struct buf msgpack = {0}, back = {0};
    bool equal = false;
    to_msgpack(json, &msgpack);
    ck_ok(annal__json_msgpack_to_json(annal__buf_slice(&msgpack), &back, err));
    ck_assert_str_eq(annal__buf_cstr(&back), expected);
    ck_ok(annal__json_msgpack_equal(ANNAL_FORMAT_JSON, annal_slice_of(json), ANNAL_FORMAT_MSGPACK,
                                    annal__buf_slice(&msgpack), &equal, err));
    ck_assert_msg(equal, "%s", json);
    annal__buf_done(&msgpack);
    annal__buf_done(&back);
}

START_TEST(json_survives_a_round_trip_through_msgpack)
{
    static const char *const cases[][2] = {
        {"null", "null"},
        {" [ true , false ] ", "[true,false]"},
        {"\t[\r\n1\t,\n2.5e+1\r]\n", "[1,25.0]"},
        {"{}", "{}"},
        {"[[],{},[[]],{\"a\":{}}]", "[[],{},[[]],{\"a\":{}}]"},
        {"{\"b\":1,\"a\":2,\"b\":3}", "{\"b\":1,\"a\":2,\"b\":3}"},
        {"[0,127,128,-1,-32,-33,255,65536,4294967296]",
         "[0,127,128,-1,-32,-33,255,65536,4294967296]"},
        {"[18446744073709551615,-9223372036854775808]",
         "[18446744073709551615,-9223372036854775808]"},
        {"[1.0,-0,0.1,1e2,2.50,1E-7,-0.0]", "[1.0,-0.0,0.1,100.0,2.5,1e-07,-0.0]"},
        {"\"\\u0041\\/\\n\\u00e9\\ud83d\\ude00\\u0000\"",
         "\"A/\\n\xc3\xa9\xf0\x9f\x98\x80\\u0000\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_json(cases[i][0], cases[i][1]);
}
END_TEST

START_TEST(a_json_value_without_a_msgpack_form_is_kept_as_text)
{
    static const char *const leaves[] = {
        "18446744073709551616",
        "-9223372036854775809",
        "1e400",
        "1e-400",
        "3.14159265358979323846",
        "123456789012345678901234567890.5",
        "0.1000000000000000055511151231257827",
        "1e99999999999999999999",
        "\"\\ud800\"",
        "\"a\\udc00\\ud800b\\n\"",
        "\"\\ud800abcdef\"",
        "\"\\ud800\\nabcd\"",
        "\"\\ud800\\u0041\"",
    };
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        struct buf msgpack = {0};
        struct msgpack_value value;
        to_msgpack(leaves[i], &msgpack);
        annal_slice rest = annal__buf_slice(&msgpack);
        ck_assert(annal__msgpack_next(&rest, &value));
        ck_assert_msg(value.kind == UNPACKED_EXT && value.ext_type == DATA_EXT_JSON, "%s",
                      leaves[i]);
        ck_assert_uint_eq(rest.len, 0);
        annal__buf_done(&msgpack);
        ck_json(leaves[i], leaves[i]);
    }
    ck_json("{\"\\ud800\":1}", "{\"\\ud800\":1}");
}
END_TEST

/* What msgpack holds and JSON has no word for is spelled, and read again. */
START_TEST(bin_and_ext_survive_a_round_trip_through_json)
{
    struct buf msgpack = {0}, json = {0}, back = {0};
    ck_assert_int_eq(annal__msgpack_array(&msgpack, 5), ANNAL_OK);
    ck_assert_int_eq(annal__msgpack_bin(&msgpack, ANNAL_SLICE("\x00\xff"
                                                              "abc")),
                     ANNAL_OK);
    ck_assert_int_eq(annal__msgpack_bin(&msgpack, (annal_slice){NULL, 0}), ANNAL_OK);
    ck_assert_int_eq(annal__msgpack_ext(&msgpack, -1, ANNAL_SLICE("\x01\x02\x03\x04")), ANNAL_OK);
    ck_assert_int_eq(annal__msgpack_map(&msgpack, 1), ANNAL_OK);
    ck_assert_int_eq(annal__msgpack_str(&msgpack, ANNAL_SLICE("k")), ANNAL_OK);
    ck_assert_int_eq(annal__msgpack_ext(&msgpack, 75, ANNAL_SLICE("x")), ANNAL_OK);
    ck_assert_int_eq(annal__msgpack_uint(&msgpack, 7), ANNAL_OK);
    ck_ok(annal__json_msgpack_to_json(annal__buf_slice(&msgpack), &json, err));
    ck_assert_str_eq(
        annal__buf_cstr(&json),
        "[{\"$msgpack.bin\":\"AP9hYmM=\"},{\"$msgpack.bin\":\"\"},"
        "{\"$msgpack.ext\":[-1,\"AQIDBA==\"]},{\"k\":{\"$msgpack.ext\":[75,\"eA==\"]}},7]");
    ck_ok(annal__json_msgpack_from_json(annal__buf_slice(&json), &back, err));
    ck_assert_uint_eq(back.len, msgpack.len);
    ck_assert_mem_eq(back.ptr, msgpack.ptr, back.len);
    annal__buf_done(&msgpack);
    annal__buf_done(&json);
    annal__buf_done(&back);
}
END_TEST

START_TEST(an_object_that_resembles_the_form_of_bin_or_ext_stays_an_object)
{
    static const char *const same[] = {
        "{\"$msgpack.bin\":5}",
        "{\"$msgpack.bin\":\"A\"}",
        "{\"$msgpack.bin\":\"AB==\"}",
        "{\"$msgpack.bin\":\"AA==\",\"more\":1}",
        "{\"$msgpack.ext\":[74,\"AA==\"]}",
        "{\"$msgpack.ext\":[128,\"AA==\"]}",
        "{\"$msgpack.ext\":[-129,\"AA==\"]}",
        "{\"$msgpack.ext\":[\"1\",\"AA==\"]}",
        "{\"$msgpack.ext\":[1.0,\"AA==\"]}",
        "{\"$msgpack.ext\":[]}",
        "{\"$msgpack.ext\":{\"1\":\"AA==\"}}",
        "{\"$msgpack.ext\":[1,2]}",
        "{\"$msgpack.ext\":[1,\"A\"]}",
        "{\"$msgpack.ext\":[1,\"AA==\",2]}",
        "{\"$msgpack.ext\":[1]}",
        "{\"$msgpack.ext\":\"AA==\"}",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct buf msgpack = {0};
        to_msgpack(same[i], &msgpack);
        ck_assert_msg(msgpack.ptr[0] == '\x81' || msgpack.ptr[0] == '\x82', "%s", same[i]);
        annal__buf_done(&msgpack);
        ck_json(same[i], same[i]);
    }
    /* Escaped it is the same object. */
    ck_json("[{\"\\u0024msgpack.bin\":\"\\u0041A=\\u003d\"},[1]]",
            "[{\"$msgpack.bin\":\"AA==\"},[1]]");
    ck_json("[{\"$msgpack.ext\":[1,\"AA==\"]},[1,2]]", "[{\"$msgpack.ext\":[1,\"AA==\"]},[1,2]]");
}
END_TEST

START_TEST(msgpack_without_a_json_form_is_refused_with_a_reason)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *reason;
    } cases[] = {
        {"", 0, "not all of it"},
        {"\xc1", 1, "not msgpack"},
        {"\xcd\x01", 2, "not all of it"},
        {"\x91", 1, "not all of it"},
        {"\xdd\xff\xff\xff\xff", 5, "not all of it"},
        {"\x01\x02", 2, "several values"},
        {"\x81\x01\x02", 3, "a key that is not a str"},
        {"\x81\xc4\x01"
         "a\x02",
         5, "a key that is not a str"},
        {"\x81\xc7\x01\x4a"
         "7\x02",
         6, "a key that is not a str"},
        {"\x81\xc7\x00\x4a\x02", 5, "a key that is not a str"},
        {"\x81\xd4\x01\x22\x02", 5, "a key that is not a str"},
        {"\x81\xc1", 2, "not msgpack"},
        {"\x81\xa1"
         "a",
         3, "not all of it"},
        {"\x81\xac$msgpack.ext", 14, "not all of it"},
        {"\x81\xac$msgpack.ext\x92", 15, "not all of it"},
        {"\x81\xac$msgpack.ext\x92\x01", 16, "not all of it"},
        {"\x81\xac$msgpack.ext\x92\x01\xa4"
         "AA==",
         21, "how JSON spells"},
        {"\x81\xac$msgpack.ext\x92\xd0\x80\xa4"
         "AA==",
         22, "how JSON spells"},
        {"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", 9, "not finite"},
        {"\xca\x7f\x80\x00\x00", 5, "not finite"},
        {"\xa1\xff", 2, "not UTF-8"},
        {"\xd4\x4a{", 3, "no JSON text"},
        {"\xc7\x00\x4a", 3, "no JSON text"},
        {"\xd4\x4a ", 3, "no JSON text"},
        {"\xd4\x4a:", 3, "no JSON text"},
        {"\xd4\x4a-", 3, "no JSON text"},
        {"\xd5\x4a"
         "1 ",
         4, "no JSON text"},
        {"\xd5\x4a"
         "1\t",
         4, "no JSON text"},
        {"\xd5\x4a"
         "1\n",
         4, "no JSON text"},
        {"\xd5\x4a"
         "1\r",
         4, "no JSON text"},
        {"\x81\xac$msgpack.bin\xa4"
         "AA==",
         19, "how JSON spells"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out = {0};
        annal_error err = {0};
        annal_slice bytes = {cases[i].bytes, cases[i].len};
        ck_assert_int_eq(annal__json_msgpack_to_json(bytes, &out, &err), ANNAL_ERR_INVALID);
        ck_assert_msg(strstr(err.message, cases[i].reason) != NULL, "%s", err.message);
        ck_assert_uint_eq(out.len, 0);
        annal_draft draft = {
            .type = ANNAL_SLICE("t"), .data = bytes, .data_format = ANNAL_FORMAT_MSGPACK};
        ck_assert_int_eq(annal_draft_check(&draft, NULL), ANNAL_ERR_INVALID);
        annal__buf_done(&out);
    }
}
END_TEST

static annal_status nested(size_t arrays, annal_slice inner, annal_error *err)
{
    struct buf msgpack = {0}, json = {0};
    for (size_t i = 0; i < arrays; i++)
        ck_assert_int_eq(annal__msgpack_array(&msgpack, 1), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append_slice(&msgpack, inner), ANNAL_OK);
    annal_status status = annal__json_msgpack_to_json(annal__buf_slice(&msgpack), &json, err);
    annal__buf_done(&msgpack);
    annal__buf_done(&json);
    return status;
}

START_TEST(msgpack_may_be_as_deep_as_json)
{
    ck_ok(nested(ANNAL_DATA_DEPTH_MAX, ANNAL_SLICE("\x01"), err));
    ck_status(ANNAL_ERR_LIMIT, nested(ANNAL_DATA_DEPTH_MAX + 1, ANNAL_SLICE("\x01"), err));
    ck_ok(nested(ANNAL_DATA_DEPTH_MAX - 1, ANNAL_SLICE("\xc4\x00"), err));
    ck_status(ANNAL_ERR_LIMIT, nested(ANNAL_DATA_DEPTH_MAX, ANNAL_SLICE("\xc4\x00"), err));
    ck_ok(nested(ANNAL_DATA_DEPTH_MAX - 2, ANNAL_SLICE("\xd4\x01\x00"), err));
    ck_status(ANNAL_ERR_LIMIT, nested(ANNAL_DATA_DEPTH_MAX - 1, ANNAL_SLICE("\xd4\x01\x00"), err));
}
END_TEST

/* The limit of the buffer applies, and at most the limit of data. */
START_TEST(data_that_grows_beyond_the_limit_while_converted_is_refused)
{
    size_t room = ((size_t)12 << 20) + 5;
    char *bytes = malloc(room);
    struct buf out = {.limit = 100};
    ck_assert_ptr_nonnull(bytes);
    ck_status(ANNAL_ERR_LIMIT,
              annal__json_msgpack_from_json(
                  ANNAL_SLICE("[0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5]"), &out, err));
    ck_assert_uint_eq(out.len, 0);
    ck_assert_uint_eq(out.limit, 100);
    /* A control character takes 1 byte of msgpack and 6 of JSON. */
    out.limit = 0;
    memcpy(bytes, "\xdb\x00\xc0\x00\x00", 5);
    memset(bytes + 5, 1, room - 5);
    ck_status(ANNAL_ERR_LIMIT, annal__json_msgpack_to_json((annal_slice){bytes, room}, &out, err));
    ck_assert_uint_eq(out.len, 0);
    annal__buf_done(&out);
    free(bytes);
}
END_TEST

/* Which a map with such a key is not, if its value is another. */
START_TEST(a_map_that_resembles_the_form_of_bin_or_ext_is_converted_to_json)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *json;
    } cases[] = {
        {"\x81\xac$msgpack.ext\x01", 15, "{\"$msgpack.ext\":1}"},
        {"\x81\xac$msgpack.ext\x91\x01", 16, "{\"$msgpack.ext\":[1]}"},
        {"\x81\xac$msgpack.ext\x92\x01\x02", 17, "{\"$msgpack.ext\":[1,2]}"},
        {"\x81\xac$msgpack.ext\x92\x4a\xa0", 17, "{\"$msgpack.ext\":[74,\"\"]}"},
        {"\x81\xac$msgpack.ext\x92\xcc\x80\xa0", 18, "{\"$msgpack.ext\":[128,\"\"]}"},
        {"\x81\xac$msgpack.ext\x92\xd1\xff\x7f\xa0", 19, "{\"$msgpack.ext\":[-129,\"\"]}"},
        {"\x81\xac$msgpack.ext\x92\xc0\xa0", 17, "{\"$msgpack.ext\":[null,\"\"]}"},
        {"\x81\xac$msgpack.ext\x92\x01\xa1"
         "A",
         18, "{\"$msgpack.ext\":[1,\"A\"]}"},
        {"\x81\xac$msgpack.bin\x01", 15, "{\"$msgpack.bin\":1}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf json = {0};
        ck_ok(annal__json_msgpack_to_json((annal_slice){cases[i].bytes, cases[i].len}, &json, err));
        ck_assert_str_eq(annal__buf_cstr(&json), cases[i].json);
        annal__buf_done(&json);
    }
}
END_TEST

START_TEST(text_that_is_not_one_json_value_is_refused_with_a_reason)
{
    char deep[ANNAL_DATA_DEPTH_MAX + 1];
    struct buf out = {0};
    memset(deep, '[', sizeof deep);
    ck_status(ANNAL_ERR_INVALID, annal__json_msgpack_from_json(ANNAL_SLICE("[1"), &out, err));
    ck_status(ANNAL_ERR_LIMIT,
              annal__json_msgpack_from_json((annal_slice){deep, sizeof deep}, &out, err));
    ck_assert_uint_eq(out.len, 0);
    annal__buf_done(&out);
}
END_TEST

/* One of everything that data may hold, some of it too long for a buffer's first memory. */
static const char everything[] =
    "{\"a\":[true,null,1,-1,0.5,1e400,\"\\u00e9 and seventy bytes and more of text behind it, for "
    "which more memory is asked\",\"\\ud800\",[]],\"b\":{\"$msgpack.bin\":\"AAAA\"},\"c\":{"
    "\"$msgpack.ext\":[5,\"AAAA\"]},\"d\":{}}";

START_TEST(too_little_room_leaves_the_buffer_unchanged)
{
    struct buf msgpack = {0}, json = {0};
    to_msgpack(everything, &msgpack);
    ck_ok(annal__json_msgpack_to_json(annal__buf_slice(&msgpack), &json, err));
    for (size_t limit = 1; limit < msgpack.len; limit++) {
        struct buf out = {.limit = limit};
        ck_status(ANNAL_ERR_LIMIT,
                  annal__json_msgpack_from_json(ANNAL_SLICE(everything), &out, err));
        ck_assert_uint_eq(out.len, 0);
        annal__buf_done(&out);
    }
    for (size_t limit = 1; limit < json.len; limit++) {
        struct buf out = {.limit = limit};
        ck_status(ANNAL_ERR_LIMIT,
                  annal__json_msgpack_to_json(annal__buf_slice(&msgpack), &out, err));
        ck_assert_uint_eq(out.len, 0);
        annal__buf_done(&out);
    }
    annal__buf_done(&msgpack);
    annal__buf_done(&json);
}
END_TEST

/* Run every function that an event goes through. */
static annal_status go_through_all(bool *out_equal, annal_error *err)
{
    struct buf msgpack = {0}, json = {0}, shown = {0};
    annal_slice text = ANNAL_SLICE(everything);
    annal_status status = annal__json_msgpack_from_json(text, &msgpack, err);
    annal_event event = {
        .seq = 2, .format = ANNAL_FORMAT_MSGPACK, .data = annal__buf_slice(&msgpack)};
    if (status == ANNAL_OK)
        status = annal__json_msgpack_to_json(annal__buf_slice(&msgpack), &json, err);
    if (status == ANNAL_OK)
        status = annal__json_msgpack_show(&event, &shown, err);
    if (status == ANNAL_OK)
        status = annal__json_msgpack_equal(ANNAL_FORMAT_MSGPACK, annal__buf_slice(&msgpack),
                                           ANNAL_FORMAT_JSON, text, out_equal, err);
    annal__buf_done(&msgpack);
    annal__buf_done(&json);
    annal__buf_done(&shown);
    return status;
}

START_TEST(each_failed_allocation_is_reported_and_leaks_nothing)
{
    unsigned failed = 0;
    for (unsigned at = 1;; at++) {
        struct failing_libc plan = {.family = LIBC_HEAP, .fail_at = at};
        annal_error err = {0};
        bool equal = false;
        long before = failing_libc_blocks();
        failing_libc_arm(&plan);
        annal_status status = go_through_all(&equal, &err);
        failing_libc_arm(NULL);
        ck_assert_int_eq(failing_libc_blocks(), before);
        if (plan.failed[0] == '\0') {
            ck_assert_int_eq(status, ANNAL_OK);
            ck_assert(equal);
            break;
        }
        ck_assert_msg(status == ANNAL_ERR_NOMEM, "call %u: %s", at, err.message);
        ck_assert_ptr_nonnull(strstr(err.message, "memory"));
        failed++;
    }
    ck_assert_uint_gt(failed, 10);
}
END_TEST

START_TEST(msgpack_without_a_json_form_is_not_shown)
{
    struct buf json = {0};
    annal_event event = {.seq = 1, .format = ANNAL_FORMAT_MSGPACK, .data = ANNAL_SLICE("\xc1")};
    ck_assert_int_eq(annal__json_msgpack_show(&event, &json, NULL), ANNAL_DAMAGE);
    annal__buf_done(&json);
}
END_TEST

START_TEST(unreadable_data_equals_no_data_of_the_other_format)
{
    static const char *const cases[][2] = {{"nul", "\xc0"}, {"null", "\xc1"}, {"nul", "\xc1"}};
    for (size_t i = 0; i < 3; i++) {
        bool equal = true;
        ck_ok(annal__json_msgpack_equal(ANNAL_FORMAT_JSON, annal_slice_of(cases[i][0]),
                                        ANNAL_FORMAT_MSGPACK, annal_slice_of(cases[i][1]), &equal,
                                        err));
        ck_assert(!equal);
    }
}
END_TEST

START_TEST(data_is_equal_only_if_the_values_are_the_same)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        {"{\"a\":1}", " { \"a\" : 1 } ", true},
        {"\"\\u00e9\"", "\"\xc3\xa9\"", true},
        {"[1.50,1e3]", "[15e-1,1000]", true},
        {"{\"a\":1}", "[\"a\",1]", false},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", false},
        {"[1,2]", "[1]", false},
        {"[[1],2]", "[[1,2]]", false},
        {"0", "-0", false},
        {"1", "true", false},
        {"\"a\"", "\"b\"", false},
        {"\"\\ud800\"", "\"\\ud801\"", false},
        {"10000000000000000000000", "1e22", true},
        {"10000000000000000000001", "1e22", false},
        {"0.1", "0.10000000000000001", false},
        {"{\"a\":7} ", "{\"a\":7}", true},
        {"\"\\u0041\"", "\"A\\u0041\"", false},
        {"", "", true},
        {"nul", "nul", true},
        {"nul", "null", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool equal = !cases[i].equal;
        ck_ok(annal__json_msgpack_equal(ANNAL_FORMAT_JSON, annal_slice_of(cases[i].a),
                                        ANNAL_FORMAT_JSON, annal_slice_of(cases[i].b), &equal,
                                        err));
        ck_assert_msg(equal == cases[i].equal, "%s %s", cases[i].a, cases[i].b);
    }
}
END_TEST

static size_t values_seen;

static void ck_round_trip(annal_slice json, const char *path)
{
    struct buf msgpack = {0}, back = {0}, again = {0};
    bool equal = false;
    if (annal__json_check(json, ANNAL_DATA_DEPTH_MAX, NULL) != JSON_VALID)
        return;
    ck_ok(annal__json_msgpack_from_json(json, &msgpack, err));
    ck_ok(annal__json_msgpack_equal(ANNAL_FORMAT_JSON, json, ANNAL_FORMAT_MSGPACK,
                                    annal__buf_slice(&msgpack), &equal, err));
    ck_assert_msg(equal, "%s: %.*s", path, (int)(json.len < 200 ? json.len : 200), json.ptr);
    /* JSON that was converted from msgpack converts to the same msgpack again. */
    ck_ok(annal__json_msgpack_to_json(annal__buf_slice(&msgpack), &back, err));
    ck_ok(annal__json_msgpack_from_json(annal__buf_slice(&back), &again, err));
    ck_assert_uint_eq(again.len, msgpack.len);
    ck_assert_int_eq(memcmp(again.ptr, msgpack.ptr, again.len), 0);
    values_seen++;
    annal__buf_done(&msgpack);
    annal__buf_done(&back);
    annal__buf_done(&again);
}

static int walk_file(const char *path, const struct stat *st, int type)
{
    (void)st;
    if (type != FTW_F)
        return 0;
    size_t len = 0;
    char *bytes = file_read(path, &len);
    const char *end = bytes + len;
    if (strstr(path, ".jsonl") == NULL) {
        ck_round_trip((annal_slice){bytes, len}, path);
    } else {
        for (const char *at = bytes; at < end;) {
            const char *newline = memchr(at, '\n', (size_t)(end - at));
            size_t line = (size_t)((newline == NULL ? end : newline) - at);
            ck_round_trip((annal_slice){at, line}, path);
            at += line + 1;
        }
    }
    free(bytes);
    return 0;
}

START_TEST(every_value_of_real_logs_survives_a_round_trip)
{
    char *folder = real_logs(".");
    if (folder == NULL)
        return;
    values_seen = 0;
    ck_assert_int_eq(ftw(folder, walk_file, 8), 0);
    ck_assert_uint_gt(values_seen, 1000);
    printf("%zu values of real logs went to msgpack and came back\n", values_seen);
    free(folder);
}
END_TEST

Suite *suite_json_msgpack(void)
{
    Suite *suite = suite_create("json_msgpack");
    TCase *tests = suite_case(suite, "data", NULL, NULL);
    tcase_add_test(tests, json_survives_a_round_trip_through_msgpack);
    tcase_add_test(tests, a_json_value_without_a_msgpack_form_is_kept_as_text);
    tcase_add_test(tests, bin_and_ext_survive_a_round_trip_through_json);
    tcase_add_test(tests, an_object_that_resembles_the_form_of_bin_or_ext_stays_an_object);
    tcase_add_test(tests, msgpack_without_a_json_form_is_refused_with_a_reason);
    tcase_add_test(tests, msgpack_may_be_as_deep_as_json);
    tcase_add_test(tests, data_that_grows_beyond_the_limit_while_converted_is_refused);
    tcase_add_test(tests, a_map_that_resembles_the_form_of_bin_or_ext_is_converted_to_json);
    tcase_add_test(tests, text_that_is_not_one_json_value_is_refused_with_a_reason);
    tcase_add_test(tests, too_little_room_leaves_the_buffer_unchanged);
    tcase_add_test(tests, each_failed_allocation_is_reported_and_leaks_nothing);
    tcase_add_test(tests, msgpack_without_a_json_form_is_not_shown);
    tcase_add_test(tests, unreadable_data_equals_no_data_of_the_other_format);
    tcase_add_test(tests, data_is_equal_only_if_the_values_are_the_same);
    tcase_add_test(tests, every_value_of_real_logs_survives_a_round_trip);
    return suite;
}
