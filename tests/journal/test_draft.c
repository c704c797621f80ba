/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/journals.h"
#include "tests/support/runner.h"

#include <string.h>

static annal_draft draft_of(annal_slice type)
{
    return (annal_draft){.type = type, .data = ANNAL_SLICE("1")};
}

/* Those beside the ends of each range too. */
START_TEST(ids_and_types_accept_only_the_documented_bytes)
{
    for (int c = 0; c < 256; c++) {
        const char id[2] = {'x', (char)c};
        bool lower =
            (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c > 0 && strchr("._-", c) != NULL);
        bool upper = c >= 'A' && c <= 'Z';
        annal_draft draft = draft_of((annal_slice){id, 2});
        ck_status(lower || upper ? ANNAL_OK : ANNAL_ERR_INVALID,
                  annal_session_id_check((annal_slice){id, 2}, err));
        ck_status(lower ? ANNAL_OK : ANNAL_ERR_INVALID, annal_draft_check(&draft, err));
    }
}
END_TEST

START_TEST(a_cause_names_a_session_and_a_number_and_nothing_else)
{
    static const struct {
        const char *cause;
        bool fits;
    } cases[] = {
        {"s:1", true},    {"s:18446744073709551615", true},
        {"s", false},     {":1", false},
        {"s:", false},    {"s:184467440737095516150", false},
        {"s:1x", false},  {"s:/", false},
        {"s t:1", false}, {"s:t:1", false},
        {"s::", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        annal_draft draft = draft_of(ANNAL_SLICE("t"));
        draft.cause = annal_slice_of(cases[i].cause);
        annal_error err = {0};
        annal_status status = annal_draft_check(&draft, &err);
        ck_assert_msg((status == ANNAL_OK) == cases[i].fits, "%s: %s", cases[i].cause, err.message);
    }
}
END_TEST

START_TEST(data_with_a_line_break_is_refused_with_its_place)
{
    static const struct {
        const char *data, *says;
    } cases[] = {
        {"[1,\n2]", "data contains a line break at byte 3; write the JSON on one line"},
        {"[1]\r", "data contains a line break at byte 3; write the JSON on one line"},
        {"[1]\r\n", "data contains a line break at byte 4; write the JSON on one line"},
        {"[1,\n2", "data is not one JSON value: not valid JSON at byte 5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        annal_draft draft = draft_of(ANNAL_SLICE("t"));
        draft.data = annal_slice_of(cases[i].data);
        annal_error err = {0};
        ck_assert_int_eq(annal_draft_check(&draft, &err), ANNAL_ERR_INVALID);
        ck_assert_str_eq(err.message, cases[i].says);
    }
}
END_TEST

Suite *suite_draft(void)
{
    Suite *suite = suite_create("draft");
    TCase *tests = suite_case(suite, "draft", NULL, NULL);
    tcase_add_test(tests, ids_and_types_accept_only_the_documented_bytes);
    tcase_add_test(tests, a_cause_names_a_session_and_a_number_and_nothing_else);
    tcase_add_test(tests, data_with_a_line_break_is_refused_with_its_place);
    return suite;
}
