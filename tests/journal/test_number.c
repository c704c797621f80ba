/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/number.h"

#include "tests/support/runner.h"

#include <annal/event.h>
#include <stdlib.h>
#include <string.h>

START_TEST(equal_numbers_become_the_same_digits)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        {"17", "17", true},
        {"1.0", "10e-1", true},
        {"1e+2", "100", true},
        {"0.0012", "12E-4", true},
        {"0.0", "0e7", true},
        {"-1.50", "-15e-1", true},
        {"1", "-1", false},
        {"0", "-0", false},
        {"0", "1", false},
        {"12", "13", false},
        {"12", "120", false},
        {"12", "1.2", false},
        {"12", "1.23e1", false},
        {"1e9999999999999999999", "1e9999999999999999998", false},
        {"1", "1e9999999999999999999", false},
        {"1e9999999999999999999", "1", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        annal_slice a = annal_slice_of(cases[i].a), b = annal_slice_of(cases[i].b);
        ck_assert_msg(annal__number_equal(a, b) == cases[i].equal, "%s %s", cases[i].a, cases[i].b);
        ck_assert_msg(annal__number_equal(b, a) == cases[i].equal, "%s %s", cases[i].b, cases[i].a);
    }
}
END_TEST

START_TEST(a_number_is_read_as_the_narrowest_kind_that_holds_it)
{
    static const struct {
        const char *text;
        enum number_kind kind;
    } cases[] = {
        {"0", NUMBER_UINT},
        {"18446744073709551615", NUMBER_UINT},
        {"18446744073709551616", NUMBER_OTHER},
        {"18446744073709551620", NUMBER_OTHER},
        {"-1", NUMBER_INT},
        {"-9223372036854775808", NUMBER_INT},
        {"-9223372036854775809", NUMBER_OTHER},
        {"-0", NUMBER_DOUBLE},
        {"0.1", NUMBER_DOUBLE},
        {"1e22", NUMBER_DOUBLE},
        {"1e400", NUMBER_OTHER},
        {"0.12345678901234567890", NUMBER_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct number number = annal__number_read(annal_slice_of(cases[i].text));
        ck_assert_msg(number.kind == cases[i].kind, "%s", cases[i].text);
    }
    ck_assert_int_eq(annal__number_read(ANNAL_SLICE("-9223372036854775808")).sint, INT64_MIN);
}
END_TEST

START_TEST(a_number_of_64_or_more_characters_is_kept_as_text)
{
    char text[64];
    memset(text, '0', sizeof text);
    text[0] = '1';
    text[1] = '.';
    ck_assert_int_eq(annal__number_read((annal_slice){text, 63}).kind, NUMBER_DOUBLE);
    ck_assert_int_eq(annal__number_read((annal_slice){text, 64}).kind, NUMBER_OTHER);
}
END_TEST

START_TEST(a_double_is_printed_as_the_shortest_text_that_gives_it_back)
{
    static const struct {
        double real;
        const char *text;
    } cases[] = {
        {1, "1.0"},
        {-0.0, "-0.0"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {5e-324, "4.94065645841247e-324"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[NUMBER_TEXT_BYTES];
        size_t length = annal__number_print(cases[i].real, text);
        ck_assert_str_eq(text, cases[i].text);
        ck_assert_uint_eq(length, strlen(text));
        ck_assert_double_eq(strtod(text, NULL), cases[i].real);
    }
}
END_TEST

Suite *suite_number(void)
{
    Suite *suite = suite_create("number");
    TCase *tests = suite_case(suite, "number", NULL, NULL);
    tcase_add_test(tests, equal_numbers_become_the_same_digits);
    tcase_add_test(tests, a_number_is_read_as_the_narrowest_kind_that_holds_it);
    tcase_add_test(tests, a_number_of_64_or_more_characters_is_kept_as_text);
    tcase_add_test(tests, a_double_is_printed_as_the_shortest_text_that_gives_it_back);
    return suite;
}
