/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/base64.h"

#include "tests/support/runner.h"

#include <annal/event.h>

START_TEST(bytes_come_back_from_the_text_that_rfc_4648_gives)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf text = {0}, bytes = {0};
        ck_assert_int_eq(annal__base64_put(&text, annal_slice_of(cases[i][0])), ANNAL_OK);
        ck_assert_str_eq(annal__buf_cstr(&text), cases[i][1]);
        ck_assert(annal__base64_check(annal__buf_slice(&text)));
        ck_assert_int_eq(annal__base64_take(&bytes, annal__buf_slice(&text)), ANNAL_OK);
        ck_assert_str_eq(annal__buf_cstr(&bytes), cases[i][0]);
        annal__buf_done(&text);
        annal__buf_done(&bytes);
    }
}
END_TEST

START_TEST(text_that_no_bytes_encode_to_is_refused)
{
    static const annal_slice refused[] = {
        {"Zg=", 3},  {"Zg", 2},    {"Z===", 4}, {"====", 4},     {"Zh==", 4},
        {"Zm9=", 4}, {"Zm\0v", 4}, {"Zm9-", 4}, {"Zg==Zg==", 8},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        ck_assert_msg(!annal__base64_check(refused[i]), "%s", refused[i].ptr);
}
END_TEST

START_TEST(text_without_room_leaves_the_buffer_unchanged)
{
    struct buf out = {.limit = 7};
    ck_assert_int_eq(annal__base64_put(&out, ANNAL_SLICE("foobar")), ANNAL_ERR_LIMIT);
    ck_assert_uint_eq(out.len, 0);
    ck_assert_int_eq(annal__base64_take(&out, ANNAL_SLICE("Zm9vYmFyZm9v")), ANNAL_ERR_LIMIT);
    ck_assert_uint_eq(out.len, 0);
    annal__buf_done(&out);
}
END_TEST

Suite *suite_base64(void)
{
    Suite *suite = suite_create("base64");
    TCase *tests = suite_case(suite, "base64", NULL, NULL);
    tcase_add_test(tests, bytes_come_back_from_the_text_that_rfc_4648_gives);
    tcase_add_test(tests, text_that_no_bytes_encode_to_is_refused);
    tcase_add_test(tests, text_without_room_leaves_the_buffer_unchanged);
    return suite;
}
