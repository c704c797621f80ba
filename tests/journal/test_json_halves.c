/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/json_halves.h"

#include "tests/support/runner.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text, *mended;
} texts[] = {
    {"\"plain\"", "\"plain\""},
    {"\"\\ud83d\\ude00\"", "\"\\ud83d\\ude00\""},
    {"\"\\ud83d\"", "\"\\ufffd\""},
    {"\"\\UD83D\\uD83Eade9\"", "\"\\UD83D\\ufffdade9\""}, /* \U is not an escape, and is kept */
    {"\"a\\udc00b\"", "\"a\\ufffdb\""},
    {"\"\\ud83d\\ud83d\\ude00\"", "\"\\ufffd\\ud83d\\ude00\""},
    {"\"\\ude00\\ud83d\"", "\"\\ufffd\\ufffd\""},
    {"\"\\ud83d\\n\"", "\"\\ufffd\\n\""},
    {"\"\\\\ud83d \\\\\\ud83d\"", "\"\\\\ud83d \\\\\\ufffd\""}, /* an escaped backslash before it */
    {"\"\\uDBFF\\uDFFF \\ud7ff \\ue000\"", "\"\\uDBFF\\uDFFF \\ud7ff \\ue000\""},
    {"{\"\\ud83d\":[\"\\udfff\"]}", "{\"\\ufffd\":[\"\\ufffd\"]}"},
};

START_TEST(a_lone_surrogate_is_replaced_and_pairs_stay)
{
    char *copy = strdup(texts[_i].text);
    ck_assert_uint_eq(annal__json_mend_halves(copy, strlen(copy), true), strlen(copy));
    ck_assert_str_eq(copy, texts[_i].mended);
    ck_assert(annal__json_has_halves(annal_slice_of(texts[_i].text)) ||
              strcmp(texts[_i].text, texts[_i].mended) == 0);
    free(copy);
}
END_TEST

/* As a text is printed in pieces, wherever they end. */
START_TEST(text_in_pieces_is_mended_like_the_whole_text)
{
    const char *text = texts[_i].text;
    for (size_t piece = 12; piece < 30; piece++) {
        char out[100] = "", copy[100];
        size_t at = 0, total = strlen(text), len;
        while (at < total) {
            len = total - at < piece ? total - at : piece;
            memcpy(copy, text + at, len);
            len = annal__json_mend_halves(copy, len, at + len == total);
            ck_assert_uint_gt(len, 0);
            strncat(out, copy, len);
            at += len;
        }
        ck_assert_str_eq(out, texts[_i].mended);
    }
}
END_TEST

START_TEST(a_decoded_surrogate_is_replaced_and_other_letters_stay)
{
    char text[] = "a\xED\xA0\xBD"
                  "b\xED\x9F\xBF\xED\xBF\xBF\xED";
    annal__json_text_mend_halves(text, strlen(text));
    ck_assert_str_eq(text, "a\xEF\xBF\xBD"
                           "b\xED\x9F\xBF\xEF\xBF\xBD\xED");
    annal__json_text_mend_halves(NULL, 0);
}
END_TEST

Suite *suite_json_halves(void)
{
    Suite *suite = suite_create("json_halves");
    TCase *tests = suite_case(suite, "json_halves", NULL, NULL);
    const int count = sizeof texts / sizeof texts[0];
    tcase_add_loop_test(tests, a_lone_surrogate_is_replaced_and_pairs_stay, 0, count);
    tcase_add_loop_test(tests, text_in_pieces_is_mended_like_the_whole_text, 0, count);
    tcase_add_test(tests, a_decoded_surrogate_is_replaced_and_other_letters_stay);
    return suite;
}
