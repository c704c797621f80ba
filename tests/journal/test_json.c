/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "tests/support/runner.h"

#include "journal/base/buf.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH 512

static json_fault check_bytes(const char *text, size_t len)
{
    /* A copy of just its size, so that a sanitizer sees a read beyond the end. */
    char *copy = malloc(len == 0 ? 1 : len);
    memcpy(copy, text, len);
    json_fault fault = annal__json_check((annal_slice){copy, len}, DEPTH, NULL);
    free(copy);
    return fault;
}

static json_fault check(const char *text)
{
    return check_bytes(text, strlen(text));
}

static const char *const valid[] = {
    "0",
    "-0",
    "-1",
    "10",
    "1.5",
    "1e5",
    "1E+5",
    "1e-5",
    "-0.0e00",
    "1e400",
    "123456789012345678901234567890",
    "true",
    "false",
    "null",
    "\"\"",
    "\"a\"",
    "[]",
    "{}",
    " [ ] ",
    "\t\r\n {\n} ",
    "[1,2,3]",
    "[[],{},\"\"]",
    "{\"a\":1,\"a\":2}",
    "{\"\":{\"\":[null]}}",
    "{ \"a\" : [ 1 , true ] , \"b\" : \"c\" }",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uABcd\"",
    "\"\x7f\"",
    "\"\xC2\x80\"",
    "\"\xDF\xBF\"",
    "\"\xE0\xA0\x80\"",
    "\"\xED\x9F\xBF\"",
    "\"\xEE\x80\x80\"",
    "\"\xEF\xBF\xBF\"",
    "\"\xF0\x90\x80\x80\"",
    "\"\xF4\x8F\xBF\xBF\"",
    "\"a string that is longer than two of the wide steps are\"",
    "\"a string with an escape in the second wide step: \\n and more\"",
};

START_TEST(text_that_the_grammar_allows_is_accepted)
{
    ck_assert_msg(check(valid[_i]) == JSON_VALID, "%s", valid[_i]);
}
END_TEST

static const char *const invalid[] = {
    "{",
    "[",
    "\"",
    "\"a",
    "-",
    "+1",
    ".5",
    "1.",
    "1.e5",
    "1e",
    "1e+",
    "00",
    "-01",
    "0x1",
    "1_0",
    "tru",
    "True",
    "nul",
    "nan",
    "NaN",
    "Infinity",
    "-Infinity",
    "'a'",
    "a",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1]]",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{,}",
    "{a:1}",
    "{1:1}",
    "{\"a\" 1}",
    "{\"a\":1 \"b\":2}",
    "{\"a\":1]",
    "[1}",
    "]",
    "}",
    ",",
    ":",
    "[\"a\":1]",
    "{\"a\",1}",
    "\"\\a\"",
    "\"\\\"",
    "\"\\",
    "\"\\u12\"",
    "\"\\u12g4\"",
    "\"\\u",
    "\"\\U1234\"",
    "\"\t\"",
    "\"\n\"",
    "\"\x1f\"",
    "\xEF\xBB\xBF{}",
    "\xC2\xA0[]",
    "/**/1",
    "// \n1",
    "[1]\f",
    "\v1",
    "{\"a\":1,\"b\"",
    "[\"a string that is longer than two wide steps\x01 is not one\"]",
};

START_TEST(text_that_the_grammar_forbids_is_refused)
{
    json_fault fault = check(invalid[_i]);
    ck_assert_msg(fault == JSON_SYNTAX || fault == JSON_TRAILING, "%s: %d", invalid[_i], fault);
}
END_TEST

static const char *const not_utf8[] = {
    "\x80",
    "\xBF",
    "\xC0\x80",
    "\xC1\xBF",
    "\xC2",
    "\xC2\x20",
    "\xC2\xC2",
    "\xE0\x9F\xBF",
    "\xE2\x82",
    "\xE2\x28\xA1",
    "\xED\xA0\x80",
    "\xED\xBF\xBF",
    "\xEF\xBF",
    "\xF0\x8F\xBF\xBF",
    "\xF0\x9F\x98",
    "\xF0\x28\x8C\xBC",
    "\xF4\x90\x80\x80",
    "\xF5\x80\x80\x80",
    "\xFE",
    "\xFF",
};

START_TEST(invalid_utf8_is_refused_at_any_place_in_a_string)
{
    for (size_t pad = 0; pad < 40; pad++) {
        char text[80] = "\"";
        memset(text + 1, 'x', pad);
        strcat(text, not_utf8[_i]);
        ck_assert_int_eq(check(text), JSON_UTF8); /* the text ends here */
        strcat(text, "\"");
        size_t offset = 0;
        ck_assert_int_eq(annal__json_check(annal_slice_of(text), DEPTH, &offset), JSON_UTF8);
        ck_assert_uint_eq(offset, pad + 1);
    }
}
END_TEST

START_TEST(every_character_of_unicode_but_the_surrogates_is_accepted)
{
    for (unsigned c = 0x80; c <= 0x10FFFF + 1; c++) {
        char text[8] = "\"";
        size_t len = 1;
        if (c >= 0x10000)
            text[len++] = (char)(0xF0 | c >> 18);
        if (c >= 0x800)
            text[len++] = (char)(c >= 0x10000 ? 0x80 | (c >> 12 & 0x3F) : 0xE0 | c >> 12);
        text[len++] = (char)(c >= 0x800 ? 0x80 | (c >> 6 & 0x3F) : 0xC0 | c >> 6);
        text[len++] = (char)(0x80 | (c & 0x3F));
        text[len++] = '"';
        bool is_character = !(c >= 0xD800 && c <= 0xDFFF) && c <= 0x10FFFF;
        json_fault fault = annal__json_check((annal_slice){text, len}, DEPTH, NULL);
        if (fault !=
            (is_character ? JSON_VALID : JSON_UTF8)) /* an assert each would take seconds */
            ck_abort_msg("U+%04X: %d", c, fault);
    }
}
END_TEST

START_TEST(a_raw_control_character_in_a_string_is_refused)
{
    for (int c = 0; c < 0x20; c++) {
        char text[] = "[\"0123456789abcdef0123456789\"]";
        text[2 + c % 26] = (char)c;
        size_t offset = 0;
        annal_slice slice = {text, sizeof text - 1};
        ck_assert_int_eq(annal__json_check(slice, DEPTH, &offset), JSON_SYNTAX);
        ck_assert_int_eq((int)offset, 2 + c % 26);
    }
}
END_TEST

/* A quote ends the string before its rest, and a backslash begins no escape here. */
START_TEST(of_the_printable_characters_only_quote_and_backslash_end_plain_text)
{
    for (int c = 0x20; c < 0x80; c++) {
        char text[] = "[\"0123456789abcdef0123456789\"]";
        text[2 + c % 10] = (char)c;
        ck_assert_int_eq(check(text), c == '"' || c == '\\' ? JSON_SYNTAX : JSON_VALID);
    }
}
END_TEST

START_TEST(a_nul_byte_does_not_end_the_text)
{
    ck_assert_int_eq(check_bytes("1\0", 2), JSON_TRAILING);
    ck_assert_int_eq(check_bytes("\0", 1), JSON_SYNTAX);
    ck_assert_int_eq(check_bytes("\"\0\"", 3), JSON_SYNTAX);
}
END_TEST

START_TEST(half_a_surrogate_pair_as_an_escape_is_accepted)
{
    ck_assert_int_eq(check("\"\\uD83D\""), JSON_VALID);
    ck_assert_int_eq(check("\"\\uDE00 \\uD83D\\uD83D\""), JSON_VALID);
}
END_TEST

START_TEST(a_missing_value_is_distinguished_from_a_bad_value)
{
    ck_assert_int_eq(annal__json_check((annal_slice){NULL, 0}, DEPTH, NULL), JSON_EMPTY);
    ck_assert_int_eq(check(""), JSON_EMPTY);
    ck_assert_int_eq(check(" \t\r\n"), JSON_EMPTY);
}
END_TEST

START_TEST(a_second_value_is_reported_as_trailing_with_its_offset)
{
    size_t offset = 0;
    ck_assert_int_eq(annal__json_check(ANNAL_SLICE("{} {}"), DEPTH, &offset), JSON_TRAILING);
    ck_assert_uint_eq(offset, 3);
    ck_assert_int_eq(check("1 2"), JSON_TRAILING);
    ck_assert_int_eq(check("01"), JSON_TRAILING);
}
END_TEST

static json_fault check_line(const char *text)
{
    size_t offset = 77;
    json_fault fault = annal__json_check_line(annal_slice_of(text), DEPTH, &offset);
    ck_assert_uint_eq(offset, fault == JSON_VALID || fault == JSON_BREAK ? 77 : strlen(text));
    return fault;
}

START_TEST(a_line_break_is_reported_only_if_nothing_else_is_wrong)
{
    static const char *const breaks[] = {
        "\n1",         "1\r",          "[\n]",
        "[1\n,2]",     "[1,\r 2]",     "{\t\n\"a\":1}",
        "{\"a\"\r:1}", "{\"a\": \n1}", "{\"a\":1,\n\"b\":[1\r\n]}"};
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        ck_assert_int_eq(check_line(breaks[i]), JSON_BREAK);
        ck_assert_int_eq(check(breaks[i]), JSON_VALID);
    }
    ck_assert_int_eq(check_line(" [ {\t\"a\\n\" : 1 } ] "), JSON_VALID);
    ck_assert_int_eq(check_line("[\n1"), JSON_SYNTAX);
    ck_assert_int_eq(check_line(" \n"), JSON_EMPTY);
}
END_TEST

START_TEST(valid_text_leaves_the_offset_unchanged)
{
    size_t offset = 77;
    ck_assert_int_eq(annal__json_check(ANNAL_SLICE("{}"), DEPTH, &offset), JSON_VALID);
    ck_assert_uint_eq(offset, 77);
}
END_TEST

static json_fault check_nested(unsigned levels, unsigned max_depth)
{
    struct buf text = {0};
    for (unsigned i = 0; i < levels; i++)
        annal__buf_append(&text, i % 3 == 0 ? "{\"a\":" : "[0,", i % 3 == 0 ? 5 : 3);
    annal__buf_append(&text, "1", 1);
    for (unsigned i = levels; i-- > 0;)
        annal__buf_append(&text, i % 3 == 0 ? "}" : "]", 1);
    json_fault fault = annal__json_check(annal__buf_slice(&text), max_depth, NULL);
    annal__buf_done(&text);
    return fault;
}

START_TEST(nesting_is_accepted_up_to_the_limit)
{
    ck_assert_int_eq(check_nested(0, 0), JSON_VALID);
    ck_assert_int_eq(check_nested(1, 0), JSON_DEPTH);
    ck_assert_int_eq(check_nested(512, 512), JSON_VALID);
    ck_assert_int_eq(check_nested(513, 512), JSON_DEPTH);
    ck_assert_int_eq(check_nested(JSON_DEPTH_MAX, JSON_DEPTH_MAX), JSON_VALID);
    ck_assert_int_eq(check_nested(JSON_DEPTH_MAX + 1, UINT32_MAX), JSON_DEPTH);
}
END_TEST

START_TEST(an_empty_bracket_counts_as_a_level)
{
    ck_assert_int_eq(annal__json_check(ANNAL_SLICE("[[]]"), 2, NULL), JSON_VALID);
    ck_assert_int_eq(annal__json_check(ANNAL_SLICE("[[]]"), 1, NULL), JSON_DEPTH);
    ck_assert_int_eq(annal__json_check(ANNAL_SLICE("[{},{},[]]"), 2, NULL), JSON_VALID);
}
END_TEST

START_TEST(every_fault_has_a_phrase)
{
    for (int i = JSON_VALID; i <= JSON_BREAK; i++)
        ck_assert_str_ne(annal__json_fault_text((json_fault)i), "no such fault");
    ck_assert_str_eq(annal__json_fault_text((json_fault)99), "no such fault");
}
END_TEST

static void assert_quoted(annal_slice text, const char *expected)
{
    struct buf out = {0};
    ck_assert_int_eq(annal__json_quote(&out, text), ANNAL_OK);
    ck_assert_str_eq(annal__buf_cstr(&out), expected);
    ck_assert_int_eq(annal__json_check(annal__buf_slice(&out), DEPTH, NULL), JSON_VALID);
    annal__buf_done(&out);
}

START_TEST(a_quoted_text_is_json_and_keeps_its_characters)
{
    assert_quoted((annal_slice){NULL, 0}, "\"\"");
    assert_quoted(ANNAL_SLICE("plain"), "\"plain\"");
    assert_quoted(ANNAL_SLICE("a\"b\\c/\b\f\n\r\t"), "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\"");
    assert_quoted(ANNAL_SLICE("\0\x01\x1f\x7f"), "\"\\u0000\\u0001\\u001f\x7f\"");
    assert_quoted(ANNAL_SLICE("é € 😀"), "\"é € 😀\"");
}
END_TEST

START_TEST(a_quoted_byte_that_is_not_utf8_becomes_the_replacement_character)
{
    assert_quoted(ANNAL_SLICE("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
    ck_assert(annal__json_is_utf8((annal_slice){NULL, 0}));
    ck_assert(annal__json_is_utf8(ANNAL_SLICE("a\0é € 😀")));
    ck_assert(!annal__json_is_utf8(ANNAL_SLICE("a\xFFz")));
    ck_assert(!annal__json_is_utf8(ANNAL_SLICE("cut \xE2\x82")));
    assert_quoted(ANNAL_SLICE("\xC3"), "\"\xEF\xBF\xBD\"");
}
END_TEST

START_TEST(a_quote_that_does_not_fit_leaves_the_buffer_unchanged)
{
    struct buf out = {.limit = 10};
    annal__buf_append(&out, "12345", 5);
    ck_assert_int_eq(annal__json_quote(&out, ANNAL_SLICE("abc\n")), ANNAL_ERR_LIMIT);
    ck_assert_uint_eq(out.len, 5);
    annal__buf_done(&out);
}
END_TEST

START_TEST(a_quote_that_fails_at_any_byte_leaves_the_buffer_unchanged)
{
    annal_slice text = ANNAL_SLICE("a\"\x01\xff\xc3\xa9z");
    struct buf whole = {0};
    ck_assert_int_eq(annal__json_quote(&whole, text), ANNAL_OK);
    for (size_t room = 1; room < whole.len; room++) {
        struct buf out = {.limit = room};
        ck_assert_int_eq(annal__json_quote(&out, text), ANNAL_ERR_LIMIT);
        ck_assert_uint_eq(out.len, 0);
        annal__buf_done(&out);
    }
    annal__buf_done(&whole);
}
END_TEST

START_TEST(an_empty_text_is_valid_utf8_and_quoted_as_two_quotes)
{
    struct buf out = {0};
    ck_assert_int_eq(annal__json_quote(&out, (annal_slice){NULL, 0}), ANNAL_OK);
    ck_assert_uint_eq(out.len, 2);
    ck_assert(annal__json_is_utf8((annal_slice){NULL, 0}));
    annal__buf_done(&out);
}
END_TEST

START_TEST(a_key_that_is_not_a_valid_string_is_refused)
{
    static const annal_slice texts[] = {ANNAL_SLICE("{\"a\\x\":1}"), ANNAL_SLICE("{\"a\xff\":1}"),
                                        ANNAL_SLICE("{\"a"), ANNAL_SLICE("{\"a\":1,\"b\x02\":1}")};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_int_ne(annal__json_check(texts[i], 8, NULL), JSON_VALID);
}
END_TEST

static void ck_member(const char *name, const char *raw)
{
    static const char object[] =
        "{ \"a\" : \"\\\\\" ,\"b\":\"\\\"\",\"c\":[\"x\\\\\\\"]\",{\"}\":1}],"
        "\"d\":\"\",\"e\":\"\\\\\\\\\",\"f\":{\"g\":\"end\"}}";
    annal_slice found = annal__json_member(ANNAL_SLICE(object), name);
    ck_assert_uint_eq(found.len, strlen(raw));
    ck_assert_mem_eq(found.ptr, raw, found.len);
}

START_TEST(a_member_is_found_after_strings_with_quotes_and_backslashes)
{
    ck_member("a", "\"\\\\\"");
    ck_member("b", "\"\\\"\"");
    ck_member("c", "[\"x\\\\\\\"]\",{\"}\":1}]");
    ck_member("d", "\"\"");
    ck_member("e", "\"\\\\\\\\\"");
    ck_member("f.g", "\"end\"");
    ck_assert_uint_eq(annal__json_member(ANNAL_SLICE("{\"a\":1}"), "b").len, 0);
}
END_TEST

START_TEST(json_is_put_with_its_values_quoted_or_unchanged)
{
    struct buf buf = {0};
    ck_assert_int_eq(annal__json_put(&buf, "{\"a\":?,\"b\":[#,#],\"c\":#}", ANNAL_SLICE("x\"?#"),
                                     ANNAL_SLICE("null"), JSON_I64(INT64_MIN),
                                     JSON_U64(UINT64_MAX)),
                     ANNAL_OK);
    ck_assert_str_eq(annal__buf_cstr(&buf), "{\"a\":\"x\\\"?#\",\"b\":[null,-9223372036854775808],"
                                            "\"c\":18446744073709551615}");
    annal__buf_clear(&buf);
    ck_assert_int_eq(annal__json_put(&buf, "[!,!,!]", annal_slice_of(NULL), ANNAL_SLICE(""),
                                     ANNAL_SLICE("a\n!")),
                     ANNAL_OK);
    ck_assert_str_eq(annal__buf_cstr(&buf), "[null,\"\",\"a\\n!\"]");
    buf.limit = buf.len + 2;
    ck_assert_int_eq(annal__json_put(&buf, "[?", ANNAL_SLICE("longer")), ANNAL_ERR_LIMIT);
    annal__buf_done(&buf);
}
END_TEST

Suite *suite_json(void)
{
    Suite *suite = suite_create("json");
    TCase *tests = suite_case(suite, "json", NULL, NULL);
    tcase_add_loop_test(tests, text_that_the_grammar_allows_is_accepted, 0,
                        sizeof valid / sizeof valid[0]);
    tcase_add_loop_test(tests, text_that_the_grammar_forbids_is_refused, 0,
                        sizeof invalid / sizeof invalid[0]);
    tcase_add_loop_test(tests, invalid_utf8_is_refused_at_any_place_in_a_string, 0,
                        sizeof not_utf8 / sizeof not_utf8[0]);
    tcase_add_test(tests, every_character_of_unicode_but_the_surrogates_is_accepted);
    tcase_add_test(tests, a_raw_control_character_in_a_string_is_refused);
    tcase_add_test(tests, of_the_printable_characters_only_quote_and_backslash_end_plain_text);
    tcase_add_test(tests, a_nul_byte_does_not_end_the_text);
    tcase_add_test(tests, half_a_surrogate_pair_as_an_escape_is_accepted);
    tcase_add_test(tests, a_missing_value_is_distinguished_from_a_bad_value);
    tcase_add_test(tests, a_second_value_is_reported_as_trailing_with_its_offset);
    tcase_add_test(tests, a_line_break_is_reported_only_if_nothing_else_is_wrong);
    tcase_add_test(tests, valid_text_leaves_the_offset_unchanged);
    tcase_add_test(tests, nesting_is_accepted_up_to_the_limit);
    tcase_add_test(tests, an_empty_bracket_counts_as_a_level);
    tcase_add_test(tests, every_fault_has_a_phrase);
    tcase_add_test(tests, a_quoted_text_is_json_and_keeps_its_characters);
    tcase_add_test(tests, a_quoted_byte_that_is_not_utf8_becomes_the_replacement_character);
    tcase_add_test(tests, a_quote_that_fails_at_any_byte_leaves_the_buffer_unchanged);
    tcase_add_test(tests, an_empty_text_is_valid_utf8_and_quoted_as_two_quotes);
    tcase_add_test(tests, a_key_that_is_not_a_valid_string_is_refused);
    tcase_add_test(tests, a_quote_that_does_not_fit_leaves_the_buffer_unchanged);
    tcase_add_test(tests, a_member_is_found_after_strings_with_quotes_and_backslashes);
    tcase_add_test(tests, json_is_put_with_its_values_quoted_or_unchanged);
    return suite;
}
