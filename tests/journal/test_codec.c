/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/codec.h"

#include "tests/support/journals.h"
#include "tests/support/runner.h"

static const struct frame_header header = {.version = FRAME_VERSION, .session = {"sess", 4}};

START_TEST(a_journal_belongs_to_the_session_that_its_header_names)
{
    struct frame_header newer = header;
    ck_ok(annal__codec_check_owner(&header, ANNAL_SLICE("sess"), err));
    ck_status(ANNAL_ERR_CORRUPT, annal__codec_check_owner(&header, ANNAL_SLICE("same"), err));
    ck_status(ANNAL_ERR_CORRUPT, annal__codec_check_owner(&header, ANNAL_SLICE("session"), err));
    /* A newer version may say it elsewhere; what it says where we look counts. */
    newer.version = FRAME_VERSION + 1;
    ck_status(ANNAL_ERR_CORRUPT, annal__codec_check_owner(&newer, ANNAL_SLICE("same"), err));
    newer.session.len = 0;
    ck_ok(annal__codec_check_owner(&newer, ANNAL_SLICE("same"), err));
    newer.version = FRAME_VERSION;
    ck_status(ANNAL_ERR_CORRUPT, annal__codec_check_owner(&newer, ANNAL_SLICE("same"), err));
}
END_TEST

START_TEST(a_first_frame_is_a_header_only_with_the_right_hash_and_kind)
{
    static const annal_draft draft = {.type = {"t", 1}, .data = {"1", 1}};
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        const struct codec *codec = annal__codecs[i];
        annal_draft event = draft;
        struct frame_place place = {1, 1, 0, 0};
        struct frame_header found;
        struct buf out = {0};
        uint64_t h = 0;
        event.data_format = codec->format;
        ck_assert_int_eq(codec->encode_header(&out, &header, &h), ANNAL_OK);
        ck_assert(annal__codec_first(codec, annal__buf_slice(&out), &found, &h));
        ck_assert(!annal__codec_first(codec, (annal_slice){out.ptr, 0}, &found, &h));
        ck_assert(!annal__codec_first(codec, (annal_slice){out.ptr, out.len - 1}, &found, &h));
        out.ptr[out.len - codec->trailer_bytes] ^= 1;
        ck_assert(!annal__codec_first(codec, annal__buf_slice(&out), &found, &h));
        annal__buf_clear(&out);
        ck_assert_int_eq(codec->encode_event(&out, &event, &place, &h), ANNAL_OK);
        ck_assert(annal__codec_proves(codec, annal__buf_slice(&out), 0, 0, &h));
        ck_assert(!annal__codec_first(codec, annal__buf_slice(&out), &found, &h));
        annal__buf_done(&out);
    }
}
END_TEST

START_TEST(the_shortest_event_has_the_length_that_its_codec_states)
{
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        const struct codec *codec = annal__codecs[i];
        annal_draft draft = {.type = {"t", 1}, .data = {"1", 1}, .data_format = codec->format};
        struct frame_place place = {1, 1, 0, 0};
        struct buf out = {0};
        annal_event event;
        uint64_t h = 0;
        ck_assert_int_eq(codec->encode_event(&out, &draft, &place, &h), ANNAL_OK);
        ck_assert_uint_eq(out.len, codec->event_bytes_min);
        ck_assert_uint_eq(codec->measure(annal__buf_slice(&out), 0, true), out.len);
        ck_assert(annal__codec_proves(codec, annal__buf_slice(&out), 0, 0, &h));
        ck_assert(codec->parse_event(annal__buf_slice(&out), &event));
        ck_assert(event.type.len == 1 && event.type.ptr[0] == 't');
        ck_assert(event.data.len == 1 && event.data.ptr[0] == '1');
        annal__buf_done(&out);
    }
}
END_TEST

START_TEST(an_unknown_format_has_no_codec)
{
    ck_assert_ptr_eq(annal__codec_of(ANNAL_FORMAT_JSON), &annal__codec_json);
    ck_assert_ptr_eq(annal__codec_of(ANNAL_FORMAT_MSGPACK), &annal__codec_msgpack);
    ck_assert_ptr_null(annal__codec_of(99));
}
END_TEST

Suite *suite_codec(void)
{
    Suite *suite = suite_create("codec");
    TCase *tests = suite_case(suite, "codec", NULL, NULL);
    tcase_add_test(tests, a_journal_belongs_to_the_session_that_its_header_names);
    tcase_add_test(tests, a_first_frame_is_a_header_only_with_the_right_hash_and_kind);
    tcase_add_test(tests, the_shortest_event_has_the_length_that_its_codec_states);
    tcase_add_test(tests, an_unknown_format_has_no_codec);
    return suite;
}
