/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/buf.h"

#include "tests/support/runner.h"

#include <string.h>

START_TEST(a_buffer_grows_and_keeps_its_bytes)
{
    struct buf buf = {0};
    for (unsigned i = 0; i < 10000; i++)
        ck_assert_int_eq(annal__buf_append(&buf, &(char){(char)i}, 1), ANNAL_OK);
    ck_assert_uint_eq(buf.len, 10000);
    for (unsigned i = 0; i < 10000; i++) {
        if (buf.ptr[i] != (char)i)
            ck_abort_msg("byte %u", i);
    }
    annal__buf_done(&buf);
}
END_TEST

START_TEST(a_buffer_holds_exactly_its_limit_and_not_a_byte_more)
{
    struct buf buf = {.limit = 100};
    ck_assert_int_eq(annal__buf_append_zeros(&buf, 99), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append(&buf, "ab", 2), ANNAL_ERR_LIMIT);
    ck_assert_uint_eq(buf.len, 99);
    annal__buf_cut(&buf, 99);
    ck_assert_int_eq(annal__buf_append(&buf, "a", 1), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append(&buf, "b", 1), ANNAL_ERR_LIMIT);
    ck_assert_int_eq(annal__buf_reserve(&buf, SIZE_MAX), ANNAL_ERR_LIMIT);
    ck_assert_int_eq(annal__buf_append_zeros(&buf, 1), ANNAL_ERR_LIMIT);
    ck_assert_int_eq(annal__buf_printf(&buf, "%d", 1), ANNAL_ERR_LIMIT);
    ck_assert_ptr_null(annal__buf_cstr(&buf));
    ck_assert_int_eq(buf.ptr[99], 'a');
    ck_assert_uint_eq(buf.len, 100);
    annal__buf_done(&buf);
}
END_TEST

/* buf.h (1) */
START_TEST(a_failed_append_is_remembered_until_the_buffer_is_cut_or_cleared)
{
    struct buf buf = {.limit = 10};
    ck_assert_int_eq(annal__buf_append(&buf, "12345678", 8), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append_zeros(&buf, 3), ANNAL_ERR_LIMIT);
    ck_assert_int_eq(annal__buf_append(&buf, "9", 1), ANNAL_ERR_LIMIT);
    ck_assert_int_eq(annal__buf_append(&buf, "", 0), ANNAL_ERR_LIMIT);
    ck_assert_int_eq(annal__buf_printf(&buf, "9"), ANNAL_ERR_LIMIT);
    ck_assert_ptr_null(annal__buf_cstr(&buf));
    ck_assert_uint_eq(buf.len, 8);
    annal__buf_cut(&buf, 2);
    ck_assert_str_eq(annal__buf_cstr(&buf), "12");
    ck_assert_int_eq(annal__buf_printf(&buf, "%010d", 0), ANNAL_ERR_LIMIT);
    annal__buf_consume(&buf, 1);
    ck_assert_int_eq(annal__buf_append(&buf, "3", 1), ANNAL_ERR_LIMIT);
    annal__buf_consume(&buf, 1);
    ck_assert_str_eq(annal__buf_cstr(&buf), "");
    ck_assert_int_eq(annal__buf_append_zeros(&buf, 11), ANNAL_ERR_LIMIT);
    annal__buf_clear(&buf);
    ck_assert_int_eq(annal__buf_append(&buf, "1234567890", 10), ANNAL_OK);
    annal__buf_done(&buf);
}
END_TEST

START_TEST(a_buffer_without_a_limit_of_its_own_has_the_default_limit)
{
    struct buf buf = {0};
    ck_assert_int_eq(annal__buf_reserve(&buf, BUF_LIMIT_DEFAULT + 1), ANNAL_ERR_LIMIT);
    ck_assert_ptr_null(buf.ptr);
}
END_TEST

START_TEST(print_appends_the_text_of_printf)
{
    struct buf buf = {0};
    ck_assert_int_eq(annal__buf_printf(&buf, "%s-%d", "a", 1), ANNAL_OK);
    ck_assert_int_eq(annal__buf_printf(&buf, "%0500d", 7), ANNAL_OK);
    ck_assert_uint_eq(buf.len, 503);
    ck_assert_str_eq(annal__buf_cstr(&buf) + 500, "007");
    ck_assert_int_eq(strncmp(buf.ptr, "a-1000", 6), 0);
    annal__buf_done(&buf);
}
END_TEST

START_TEST(consume_drops_from_the_front)
{
    struct buf buf = {0};
    annal__buf_append_slice(&buf, ANNAL_SLICE("abcdef"));
    annal__buf_consume(&buf, 2);
    ck_assert_str_eq(annal__buf_cstr(&buf), "cdef");
    annal__buf_consume(&buf, 0);
    ck_assert_uint_eq(buf.len, 4);
    annal__buf_consume(&buf, 9);
    ck_assert_uint_eq(buf.len, 0);
    annal__buf_done(&buf);
}
END_TEST

START_TEST(the_final_nul_is_not_counted_and_later_overwritten)
{
    struct buf buf = {0};
    ck_assert_str_eq(annal__buf_cstr(&buf), "");
    annal__buf_append(&buf, "x", 1);
    ck_assert_str_eq(annal__buf_cstr(&buf), "x");
    annal__buf_append(&buf, "y", 1);
    ck_assert_str_eq(annal__buf_cstr(&buf), "xy");
    ck_assert_uint_eq(annal__buf_slice(&buf).len, 2);
    annal__buf_done(&buf);
}
END_TEST

START_TEST(clear_keeps_the_memory_and_done_leaves_a_usable_buffer)
{
    struct buf buf = {.limit = 1000};
    annal__buf_append(&buf, "abc", 3);
    const char *memory = buf.ptr;
    annal__buf_clear(&buf);
    ck_assert_uint_eq(buf.len, 0);
    annal__buf_append(&buf, "abc", 3);
    ck_assert_ptr_eq(buf.ptr, memory);
    annal__buf_done(&buf);
    ck_assert_uint_eq(buf.len, 0);
    ck_assert_int_eq(annal__buf_append(&buf, "abc", 3), ANNAL_OK);
    annal__buf_done(&buf);
    annal__buf_done(&buf);
}
END_TEST

START_TEST(an_append_of_no_bytes_from_null_succeeds)
{
    struct buf buf = {0};
    ck_assert_int_eq(annal__buf_append(&buf, NULL, 0), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append_slice(&buf, (annal_slice){NULL, 0}), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append_zeros(&buf, 0), ANNAL_OK);
    ck_assert_uint_eq(buf.len, 0);
    annal__buf_done(&buf);
}
END_TEST

Suite *suite_buf(void)
{
    Suite *suite = suite_create("buf");
    TCase *tests = suite_case(suite, "buf", NULL, NULL);
    tcase_add_test(tests, a_buffer_grows_and_keeps_its_bytes);
    tcase_add_test(tests, a_buffer_holds_exactly_its_limit_and_not_a_byte_more);
    tcase_add_test(tests, a_failed_append_is_remembered_until_the_buffer_is_cut_or_cleared);
    tcase_add_test(tests, a_buffer_without_a_limit_of_its_own_has_the_default_limit);
    tcase_add_test(tests, print_appends_the_text_of_printf);
    tcase_add_test(tests, consume_drops_from_the_front);
    tcase_add_test(tests, the_final_nul_is_not_counted_and_later_overwritten);
    tcase_add_test(tests, clear_keeps_the_memory_and_done_leaves_a_usable_buffer);
    tcase_add_test(tests, an_append_of_no_bytes_from_null_succeeds);
    return suite;
}
