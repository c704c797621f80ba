/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/hex.h"

#include "tests/support/runner.h"

#include <string.h>

static const uint8_t bytes[] = {0x00, 0x0f, 0xa5, 0xff};

START_TEST(bytes_come_back_from_their_digits)
{
    char text[2 * sizeof bytes + 1];
    uint8_t back[sizeof bytes];
    annal__hex_text(bytes, sizeof bytes, text);
    ck_assert_str_eq(text, "000fa5ff");
    ck_assert(annal__hex_fits(text, 8));
    ck_assert(annal__hex_read(text, sizeof back, back));
    ck_assert_mem_eq(back, bytes, sizeof bytes);
}
END_TEST

START_TEST(other_characters_and_lengths_are_refused)
{
    static const char *const others[] = {"000FA5FF", "000fa5f/", "000fa5f:", "000fa5f`",
                                         "000fa5fg"};
    uint8_t back[4];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ck_assert_msg(!annal__hex_read(others[i], 4, back), "%s", others[i]);
        ck_assert_msg(!annal__hex_fits(others[i], 8), "%s", others[i]);
    }
    ck_assert(!annal__hex_fits("000fa5f", 8));
    ck_assert(!annal__hex_fits("000fa5fff", 8));
}
END_TEST

START_TEST(a_buffer_receives_all_digits_or_stays_unchanged)
{
    struct buf out = {.limit = 11};
    const annal_slice slice = {(const char *)bytes, sizeof bytes};
    ck_assert_int_eq(annal__hex_append(&out, (annal_slice){0}), ANNAL_OK);
    ck_assert_int_eq(annal__hex_quote(&out, slice), ANNAL_OK);
    ck_assert_str_eq(annal__buf_cstr(&out), "\"000fa5ff\"");
    ck_assert_int_eq(annal__hex_append(&out, slice), ANNAL_ERR_LIMIT);
    ck_assert_uint_eq(out.len, 10);
    annal__buf_done(&out);
}
END_TEST

Suite *suite_hex(void)
{
    Suite *suite = suite_create("hex");
    TCase *tests = suite_case(suite, "hex", NULL, NULL);
    tcase_add_test(tests, bytes_come_back_from_their_digits);
    tcase_add_test(tests, other_characters_and_lengths_are_refused);
    tcase_add_test(tests, a_buffer_receives_all_digits_or_stays_unchanged);
    return suite;
}
