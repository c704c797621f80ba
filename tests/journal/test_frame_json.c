/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/codec.h"

#include "tests/support/journals.h"
#include "tests/support/runner.h"

#include <stdlib.h>
#include <string.h>

static const struct codec *const json = &annal__codec_json;

static const struct frame_header header = {
    .session = {"sess_1", 6}, .file = {0x17, 0x5a, 0xff}, .created_us = 1767684240500000};

static const annal_draft draft = {.type = {"tool.called", 11},
                                  .id = {"c1", 2},
                                  .cause = {"sess_0:16", 9},
                                  .data = {"{\"a\":1}", 7}};

static annal_slice last_line(const struct buf *buf, size_t start)
{
    return (annal_slice){buf->ptr + start, buf->len - start};
}

START_TEST(a_line_has_the_fields_of_the_draft_in_the_documented_order)
{
    static const char expected[] =
        "{\"seq\":7,\"ts\":\"2026-01-06T07:24:00.500000Z\",\"type\":\"tool.called\",\"id\":\"c1\","
        "\"cause\":\"sess_0:16\",\"data\":{\"a\":1},\"h\":\"";
    struct buf out = {0};
    uint64_t h = 0, trailer = 0;
    annal_event event;
    ck_assert_int_eq(
        json->encode_event(&out, &draft, &(struct frame_place){7, 1767684240500000, 0, 3}, &h),
        ANNAL_OK);
    annal_slice line = last_line(&out, 0);
    ck_assert_uint_eq(line.len, sizeof expected - 1 + 16 + 3);
    ck_assert_int_eq(memcmp(line.ptr, expected, sizeof expected - 1), 0);
    ck_assert_int_eq(memcmp(line.ptr + line.len - 3, "\"}\n", 3), 0);
    ck_assert(json->trailer(line, &trailer));
    ck_assert_uint_eq(trailer, h);
    ck_assert_uint_eq(json->hash(line, 0, 3), h);
    ck_assert_uint_ne(json->hash(line, 0, 4), h);

    ck_assert(json->parse_event(line, &event));
    ck_assert_uint_eq(event.seq, 7);
    ck_assert_int_eq(event.ts_us, 1767684240500000);
    ck_assert_uint_eq(event.type.len, draft.type.len);
    ck_assert_uint_eq(event.id.len, draft.id.len);
    ck_assert_uint_eq(event.cause.len, draft.cause.len);
    ck_assert_uint_eq(event.data.len, draft.data.len);
    ck_assert_int_eq(memcmp(event.data.ptr, draft.data.ptr, draft.data.len), 0);
    annal__buf_done(&out);
}
END_TEST

START_TEST(a_line_is_appended_to_the_bytes_in_the_buffer)
{
    struct buf out = {0};
    uint64_t first = 0, second = 0;
    ck_assert_int_eq(json->encode_header(&out, &header, &first), ANNAL_OK);
    size_t start = out.len;
    ck_assert_int_eq(
        json->encode_event(&out, &draft, &(struct frame_place){1, 0, start, first}, &second),
        ANNAL_OK);
    ck_assert_uint_eq(json->hash(last_line(&out, start), start, first), second);
    ck_assert_uint_eq(json->hash((annal_slice){out.ptr, start}, 0, 0), first);
    annal__buf_done(&out);
}
END_TEST

START_TEST(a_header_names_its_session)
{
    struct buf out = {0};
    struct frame_header found;
    annal_event event;
    uint64_t h;
    char text[33];
    ck_assert_int_eq(json->encode_header(&out, &header, &h), ANNAL_OK);
    ck_assert(json->parse_header(last_line(&out, 0), &found));
    ck_assert_int_eq(memcmp(found.file, header.file, sizeof header.file), 0);
    ck_assert_int_eq(found.created_us, header.created_us);
    ck_assert_uint_eq(found.session.len, 6);
    ck_assert(!json->parse_event(last_line(&out, 0), &event));
    annal__codec_file_id_text(header.file, text);
    ck_assert_str_eq(text, "175aff00000000000000000000000000");
    annal__buf_done(&out);
}
END_TEST

START_TEST(a_header_may_name_the_replaced_journal_and_the_parent_of_a_fork)
{
    static const char fork[] =
        "{\"annal\":1,\"session\":\"child\",\"file\":\"175aff00000000000000000000000000\","
        "\"created\":\"2026-01-06T07:24:00.500000Z\",\"fork\":{\"session\":\"sess_0\",\"seq\":16,"
        "\"h\":\"00000000000000ff\"},\"replaces\":\"0100000000000000000000000000000a\""
        ",\"h\":\"0000000000000000\"}\n";
    struct frame_header replacement = header;
    struct frame_header found;
    struct buf out = {0};
    uint64_t h;
    replacement.is_replacement = true;
    replacement.replaces[15] = 0xab;
    ck_assert_int_eq(json->encode_header(&out, &replacement, &h), ANNAL_OK);
    ck_assert(json->parse_header(last_line(&out, 0), &found));
    ck_assert(found.is_replacement);
    ck_assert_uint_eq(found.replaces[15], 0xab);
    ck_assert_uint_eq(found.fork.len, 0);

    ck_assert(json->parse_header((annal_slice){fork, sizeof fork - 1}, &found));
    ck_assert_uint_eq(found.fork.len, 6);
    ck_assert_int_eq(memcmp(found.fork.ptr, "sess_0", 6), 0);
    ck_assert_uint_eq(found.replaces[0], 1);
    ck_assert_uint_eq(found.replaces[15], 10);
    /* A header that is cut at any byte and gets another trailer is invalid. */
    for (size_t cut = 1; cut < sizeof fork - FRAME_TRAILER_BYTES_MAX; cut++) {
        char line[sizeof fork];
        size_t kept = sizeof fork - 1 - FRAME_TRAILER_BYTES_MAX - cut;
        memcpy(line, fork, kept);
        memcpy(line + kept, fork + sizeof fork - 1 - FRAME_TRAILER_BYTES_MAX,
               FRAME_TRAILER_BYTES_MAX);
        bool whole =
            json->parse_header((annal_slice){line, kept + FRAME_TRAILER_BYTES_MAX}, &found);
        ck_assert_int_eq(whole,
                         cut == sizeof ",\"replaces\":\"0100000000000000000000000000000a\"" - 1);
    }
    annal__buf_done(&out);
}
END_TEST

#define H "\"h\":\"0123456789abcdef\"}\n"

START_TEST(a_foreign_line_is_not_parsed)
{
    static const char *const lines[] = {
        "",
        "\n",
        "," H,
        "{\"seq\":1," H,
        "{\"seq\":0,\"ts\":\"2026-01-06T07:24:00.500000Z\",\"type\":\"t\",\"data\":1," H,
        "{\"seq\":,\"ts\":\"2026-01-06T07:24:00.500000Z\",\"type\":\"t\",\"data\":1," H,
        "{\"seq\":1,\"ts\":\"2026-01-06T07:24:00Z\",\"type\":\"t\",\"data\":1," H,
        "{\"seq\":1,\"ts\":\"2026-01-06T07:24:00.500000Z\",\"type\":\"t\",\"data\":," H,
        "{\"seq\":1,\"ts\":\"2026-01-06T07:24:00.500000Z\",\"data\":1," H,
        "{\"seq\":1,\"ts\":\"2026-01-06T07:24:00.500000Z\",\"type\":\"t\",\"cause\":\"s:1\","
        "\"id\":\"i\",\"data\":1," H,
        "{ \"seq\":1,\"ts\":\"2026-01-06T07:24:00.500000Z\",\"type\":\"t\",\"data\":1," H,
        "{\"annal\":0,\"session\":\"s\",\"file\":\"175aff00000000000000000000000000\","
        "\"created\":\"2026-01-06T07:24:00.500000Z\",\"fork\":null," H,
        "{\"annal\":1,\"session\":\"s\",\"file\":\"175AFF00000000000000000000000000\","
        "\"created\":\"2026-01-06T07:24:00.500000Z\",\"fork\":null," H,
        "{\"annal\":1,\"session\":\"s\",\"file\":\"175a\","
        "\"created\":\"2026-01-06T07:24:00.500000Z\",\"fork\":null," H,
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        annal_event event;
        struct frame_header found;
        ck_assert_msg(!json->parse_event(annal_slice_of(lines[i]), &event), "%s", lines[i]);
        ck_assert_msg(!json->parse_header(annal_slice_of(lines[i]), &found), "%s", lines[i]);
    }
}
END_TEST

START_TEST(a_trailer_has_sixteen_lower_case_hex_digits)
{
    static const struct {
        const char *text;
        bool fits;
    } cases[] = {
        {",\"h\":\"0123456789abcdef\"}\n", true},
        {"x,\"h\":\"0123456789abcdef\"}\n", true},
        /* The newline is not looked at. */
        {",\"h\":\"0123456789abcdef\"} ", true},
        {",\"h\":\"0123456789ABCDEF\"}\n", false},
        {",\"h\":\"0123456789abcdeg\"}\n", false},
        {",\"h\":\"0123456789abcde\"}\n", false},
        {",\"g\":\"0123456789abcdef\"}\n", false},
        {",\"h\":\"0123456789abcdef\"]\n", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t h = 0;
        ck_assert_msg(json->trailer(annal_slice_of(cases[i].text), &h) == cases[i].fits, "%s",
                      cases[i].text);
        ck_assert_uint_eq(h, cases[i].fits ? UINT64_C(0x0123456789abcdef) : 0);
    }
}
END_TEST

START_TEST(no_other_byte_is_a_digit_of_a_trailer)
{
    char text[] = ",\"h\":\"0123456789abcdef\"}\n";
    for (size_t at = 6; at < 22; at++) {
        char before = text[at];
        for (unsigned byte = 1; byte < 256; byte++) {
            uint64_t h = 0;
            text[at] = (char)byte;
            bool fits = strchr("0123456789abcdef", (int)byte) != NULL;
            ck_assert_int_eq(json->trailer(annal_slice_of(text), &h), fits);
            ck_assert(!fits || h == strtoull(text + 6, NULL, 16));
        }
        text[at] = before;
    }
}
END_TEST

Suite *suite_frame_json(void)
{
    Suite *suite = suite_create("frame_json");
    TCase *tests = suite_case(suite, "frame", NULL, NULL);
    tcase_add_test(tests, a_line_has_the_fields_of_the_draft_in_the_documented_order);
    tcase_add_test(tests, a_line_is_appended_to_the_bytes_in_the_buffer);
    tcase_add_test(tests, a_header_names_its_session);
    tcase_add_test(tests, a_header_may_name_the_replaced_journal_and_the_parent_of_a_fork);
    tcase_add_test(tests, a_foreign_line_is_not_parsed);
    tcase_add_test(tests, a_trailer_has_sixteen_lower_case_hex_digits);
    tcase_add_test(tests, no_other_byte_is_a_digit_of_a_trailer);
    return suite;
}
