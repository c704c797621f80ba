/* SPDX-License-Identifier: Apache-2.0 */
/* visible_append(): the form of a text that is safe on a terminal. */
#include "tools/cli/visible.h"

#include "tests/support/runner.h"

#include <stdio.h>
#include <string.h>

/* Control characters of both kinds, marks of direction, and bytes that are not UTF-8. */
static const struct {
    const char *text, *shown;
} texts[] = {
    {"", ""},
    {"plain ~ text\n\ttab", "plain ~ text\n\ttab"},
    {"a\r\nb\r\n", "a\r\nb\r\n"},
    {"a\rb", "a\\u000db"},
    {"\r\r\n\r", "\\u000d\r\n\\u000d"},
    {"\033]0;title\a", "\\u001b]0;title\\u0007"},
    {"\b\v\f\x7f", "\\u0008\\u000b\\u000c\\u007f"},
    {"\xc2\x80\xc2\x9b"
     "31m\xc2\x9f\xc2\xa0",
     "\\u0080\\u009b31m\\u009f\xc2\xa0"},
    {"\u061c\u200e\u200f", "\\u061c\\u200e\\u200f"},
    {"\u200d\u2010\u2027\u2028\u2029\u202a\u202e\u202f",
     "\u200d\u2010\u2027\\u2028\\u2029\\u202a\\u202e\u202f"},
    {"\u2065\u2066\u2067\u2068\u2069\u206a", "\u2065\\u2066\\u2067\\u2068\\u2069\u206a"},
    {"caf\u00e9 \u6f6e \U0001f30a", "caf\u00e9 \u6f6e \U0001f30a"},
    {"\x9b\xff\xfe", "\\x9b\\xff\\xfe"},
    {"\xc0\x9b\xc1\xbf", "\\xc0\\x9b\\xc1\\xbf"}, /* longer than the shortest encoding */
    {"\xe0\x80\x9b\xf0\x80\x80\x9b", "\\xe0\\x80\\x9b\\xf0\\x80\\x80\\x9b"},
    {"\xed\xa0\x80\xed\x9f\xbf",
     "\\xed\\xa0\\x80\xed\x9f\xbf"}, /* a surrogate is not a character */
    {"\xf4\x90\x80\x80\xf4\x8f\xbf\xbf", "\\xf4\\x90\\x80\\x80\xf4\x8f\xbf\xbf"},
    {"\xf5\x80", "\\xf5\\x80"},
    {"\xe2\x80", "\\xe2\\x80"}, /* cut short */
    {"\xe2\x80"
     "a\xe2\033\xf0\x9f\x8c",
     "\\xe2\\x80"
     "a\\xe2\\u001b\\xf0\\x9f\\x8c"},
};

START_TEST(control_characters_are_shown_and_nothing_else_changes)
{
    struct buf out = {0};
    ck_assert_int_eq(visible_append(&out, annal_slice_of(texts[_i].text)), ANNAL_OK);
    ck_assert_str_eq(annal__buf_cstr(&out), texts[_i].shown);
    /* Visible text stays unchanged. */
    struct buf again = {0};
    ck_assert_int_eq(visible_append(&again, annal__buf_slice(&out)), ANNAL_OK);
    ck_assert_str_eq(annal__buf_cstr(&again), texts[_i].shown);
    annal__buf_done(&out);
    annal__buf_done(&again);
}
END_TEST

START_TEST(text_in_pieces_is_shown_as_the_whole_text_is)
{
    annal_slice text = annal_slice_of(texts[_i].text);
    for (size_t a = 0; a <= text.len; a++) {
        for (size_t b = a; b <= text.len; b++) {
            struct visible visible = {0};
            struct buf out = {0};
            const annal_slice pieces[] = {
                {text.ptr, a}, {text.ptr + a, b - a}, {text.ptr + b, text.len - b}};
            for (size_t i = 0; i < 3; i++)
                ck_assert_int_eq(visible_add(&visible, &out, pieces[i]), ANNAL_OK);
            ck_assert_int_eq(visible_end(&visible, &out), ANNAL_OK);
            ck_assert_str_eq(annal__buf_cstr(&out), texts[_i].shown);
            annal__buf_done(&out);
        }
    }
}
END_TEST

START_TEST(a_nul_is_shown_too)
{
    struct buf out = {0};
    ck_assert_int_eq(visible_append(&out, (annal_slice){"a\0b", 3}), ANNAL_OK);
    ck_assert_str_eq(annal__buf_cstr(&out), "a\\u0000b");
    annal__buf_done(&out);
}
END_TEST

Suite *suite_visible(void)
{
    Suite *suite = suite_create("visible");
    TCase *tests = suite_case(suite, "visible", NULL, NULL);
    int count = sizeof texts / sizeof *texts;
    tcase_add_loop_test(tests, control_characters_are_shown_and_nothing_else_changes, 0, count);
    tcase_add_loop_test(tests, text_in_pieces_is_shown_as_the_whole_text_is, 0, count);
    tcase_add_test(tests, a_nul_is_shown_too);
    return suite;
}
