#include "journal/base/msgpack.h"
#include "journal/data.h"
#include "journal/scan.h"

#include "tests/support/journals.h"
#include "tests/support/tmpdir.h"

#include <check.h>
#include <fcntl.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct codec *const codec = &annal__codec_msgpack;

static const struct frame_header header = {
    .session = {"sess_1", 6}, .file = {0x17, 0x5a, 0xff}, .created_us = 1767684240500000};

static const annal_draft draft = {.type = {"tool.called", 11},
                                  .id = {"c1", 2},
                                  .cause = {"sess_0:16", 9},
                                  .data = {"\x81\xa1"
                                           "a\x01",
                                           4},
                                  .data_format = ANNAL_FORMAT_MSGPACK};

/* A journal that grows frame by frame. */
struct journal {
    struct buf bytes;
    uint64_t seq;
    uint64_t h;
};

static void put_header(struct journal *journal)
{
    *journal = (struct journal){0};
    ck_assert_int_eq(codec->encode_header(&journal->bytes, &header, &journal->h), ANNAL_OK);
}

static void put_event(struct journal *journal, annal_slice data)
{
    annal_draft event = draft;
    struct frame_place place = {++journal->seq, (int64_t)journal->seq, journal->bytes.len,
                                journal->h};
    event.data = data;
    ck_assert_int_eq(codec->encode_event(&journal->bytes, &event, &place, &journal->h), ANNAL_OK);
}

START_TEST(a_frame_says_what_the_draft_said_byte_for_byte)
{
    static const char expected[] = "\x99\xce\x00\x00\x00\x43\xcf\x00\x00\x00\x00\x00\x00\x00\x07"
                                   "\xd3\x00\x06\x47\xb3\x0f\x3a\xe5\x20"
                                   "\xab"
                                   "tool.called\xa2"
                                   "c1\xa9"
                                   "sess_0:16\x81\xa1"
                                   "a\x01\xce\x00\x00\x00\x43\xcf";
    struct buf out = {0};
    uint64_t h = 0, trailer = 0;
    annal_event event;
    struct frame_place place = {7, 1767684240500000, 100, 3};
    ck_assert_int_eq(codec->encode_event(&out, &draft, &place, &h), ANNAL_OK);
    annal_slice frame = annal__buf_slice(&out);
    ck_assert_uint_eq(frame.len, 0x43);
    ck_assert_mem_eq(frame.ptr, expected, sizeof expected - 1);
    ck_assert(codec->trailer(frame, &trailer));
    ck_assert_uint_eq(trailer, h);
    ck_assert_uint_eq(codec->hash(frame, 100, 3), h);
    ck_assert_uint_ne(codec->hash(frame, 100, 4), h);
    ck_assert_uint_ne(codec->hash(frame, 101, 3), h);
    ck_assert_uint_eq(codec->measure(frame, 0, false), frame.len);

    ck_assert(codec->parse_event(frame, &event));
    ck_assert_uint_eq(event.seq, 7);
    ck_assert_int_eq(event.ts_us, 1767684240500000);
    ck_assert_mem_eq(event.type.ptr, "tool.called", 11);
    ck_assert_mem_eq(event.id.ptr, "c1", 2);
    ck_assert_mem_eq(event.cause.ptr, "sess_0:16", 9);
    ck_assert_uint_eq(event.data.len, 4);
    ck_assert_int_eq(event.format, ANNAL_FORMAT_MSGPACK);
    annal__buf_done(&out);
}
END_TEST

START_TEST(a_header_says_whose_journal_it_is_and_what_it_replaces)
{
    struct frame_header replacement = header, found;
    struct buf out = {0};
    annal_event event;
    uint64_t h;
    ck_assert_int_eq(codec->encode_header(&out, &header, &h), ANNAL_OK);
    ck_assert(annal__frame_first(codec, annal__buf_slice(&out), &found, &h));
    ck_assert_mem_eq(found.file, header.file, sizeof header.file);
    ck_assert_int_eq(found.created_us, header.created_us);
    ck_assert_uint_eq(found.session.len, 6);
    ck_assert(!found.is_replacement);
    ck_assert(!codec->parse_event(annal__buf_slice(&out), &event));
    annal__buf_clear(&out);
    replacement.is_replacement = true;
    replacement.replaces[15] = 0xab;
    ck_assert_int_eq(codec->encode_header(&out, &replacement, &h), ANNAL_OK);
    ck_assert(codec->parse_header(annal__buf_slice(&out), &found));
    ck_assert(found.is_replacement);
    ck_assert_uint_eq(found.replaces[15], 0xab);
    annal__buf_done(&out);
}
END_TEST

/* With a library that knows nothing of us. */
START_TEST(any_msgpack_library_can_iterate_a_journal)
{
    struct journal journal;
    msgpack_unpacker unpacker;
    msgpack_unpacked result;
    size_t arrays = 0;
    put_header(&journal);
    for (int i = 0; i < 20; i++)
        put_event(&journal, draft.data);
    ck_assert(msgpack_unpacker_init(&unpacker, 64));
    msgpack_unpacked_init(&result);
    for (size_t at = 0; at < journal.bytes.len; at++) { /* a byte at a time: it streams */
        ck_assert(msgpack_unpacker_reserve_buffer(&unpacker, 1));
        *msgpack_unpacker_buffer(&unpacker) = journal.bytes.ptr[at];
        msgpack_unpacker_buffer_consumed(&unpacker, 1);
        if (msgpack_unpacker_next(&unpacker, &result) != MSGPACK_UNPACK_SUCCESS)
            continue;
        ck_assert_int_eq(result.data.type, MSGPACK_OBJECT_ARRAY);
        const msgpack_object *values = result.data.via.array.ptr;
        ck_assert_uint_eq(result.data.via.array.size, arrays == 0 ? 10 : 9);
        if (arrays > 0) {
            ck_assert_uint_eq(values[1].via.u64, arrays);
            ck_assert_int_eq(values[3].type, MSGPACK_OBJECT_STR);
            ck_assert_mem_eq(values[3].via.str.ptr, "tool.called", 11);
            ck_assert_int_eq(values[6].type, MSGPACK_OBJECT_MAP);
            ck_assert_uint_eq(values[0].via.u64, values[7].via.u64);
        }
        arrays++;
    }
    ck_assert_uint_eq(arrays, 21);
    msgpack_unpacked_destroy(&result);
    msgpack_unpacker_destroy(&unpacker);
    annal__buf_done(&journal.bytes);
}
END_TEST

/* docs/decisions/0009: what its unpacker cannot, ours can. */
START_TEST(msgpack_c_gives_up_at_32_levels_and_we_do_not)
{
    char deep[101];
    struct buf json = {0};
    size_t offset = 0;
    msgpack_unpacked result;
    memset(deep, '\x91', 100);
    deep[100] = 1;
    msgpack_unpacked_init(&result);
    ck_assert_int_ne(msgpack_unpack_next(&result, deep, sizeof deep, &offset),
                     MSGPACK_UNPACK_SUCCESS);
    msgpack_unpacked_destroy(&result);
    ck_ok(annal__data_to_json((annal_slice){deep, sizeof deep}, &json, err));
    annal__buf_done(&json);
}
END_TEST

/* ---- A journal inside an event ---- */

static struct tmpdir dir;

static void open_scan(struct scan *scan, annal_slice bytes)
{
    const char *path = tmpdir_path(&dir, "journal");
    file_write(path, bytes.ptr, bytes.len);
    annal__scan_init(scan, &annal__system_io, open(path, O_RDONLY | O_CLOEXEC), codec);
}

/* Every event that comes is one of the outer journal, at its place; what is lost is told once. */
static size_t walk(struct scan *scan, const struct journal *outer, const size_t *starts,
                   size_t *out_lost)
{
    size_t events = 0;
    annal_event event;
    annal_status status;
    *out_lost = 0;
    while ((status = annal__scan_next(scan, &event, NULL)) != ANNAL_END) {
        ck_assert_int_ge(status, 0);
        if (status == ANNAL_DAMAGE) {
            ck_assert_uint_eq(scan->damage.offset, starts[scan->damage.seq]);
            ++*out_lost;
            continue;
        }
        ck_assert_uint_le(event.seq, outer->seq);
        ck_assert_uint_eq(event.offset, starts[event.seq]);
        events++;
    }
    annal__scan_done(scan);
    return events;
}

START_TEST(a_journal_inside_an_event_is_never_taken_for_events)
{
    struct journal inner, outer;
    struct buf data = {0};
    struct scan scan;
    size_t starts[32], lost;
    put_header(&inner);
    for (int i = 0; i < 3000; i++)
        put_event(&inner, draft.data);
    put_header(&outer);
    for (int i = 1; i <= 6; i++) {
        /* The inner journal, and a copy of the outer one as it is now. */
        annal__buf_clear(&data);
        ck_assert_int_eq(annal__pack_array(&data, 2), ANNAL_OK);
        ck_assert_int_eq(annal__pack_bin(&data, annal__buf_slice(&inner.bytes)), ANNAL_OK);
        ck_assert_int_eq(
            annal__pack_bin(&data, (annal_slice){outer.bytes.ptr, starts[1] * (i > 1)}), ANNAL_OK);
        starts[i] = outer.bytes.len;
        put_event(&outer, annal__buf_slice(&data));
    }
    starts[7] = outer.bytes.len;

    /* Half an event at the end. */
    for (size_t cut = starts[6]; cut < starts[7]; cut += 5003) {
        open_scan(&scan, (annal_slice){outer.bytes.ptr, cut});
        ck_assert_uint_eq(walk(&scan, &outer, starts, &lost), 5);
        ck_assert_uint_eq(lost, 0);
    }
    /* By bisection. */
    for (uint64_t seq = 1; seq <= 7; seq++) {
        open_scan(&scan, annal__buf_slice(&outer.bytes));
        ck_ok(annal__scan_seek(&scan, seq, err));
        ck_assert_uint_eq(scan.offset, seq == 1 ? 0 : starts[seq]);
        ck_assert_uint_eq(walk(&scan, &outer, starts, &lost), 7 - seq);
    }
    /* Behind a damaged head, byte by byte; and with all of it gone. */
    for (size_t at = 0; at < 24; at++) {
        outer.bytes.ptr[starts[3] + at] ^= 1;
        open_scan(&scan, annal__buf_slice(&outer.bytes));
        ck_assert_uint_eq(walk(&scan, &outer, starts, &lost), 5);
        ck_assert_uint_eq(lost, 1);
        outer.bytes.ptr[starts[3] + at] ^= 1;
    }
    memset(outer.bytes.ptr + starts[3], 0, 512);
    open_scan(&scan, annal__buf_slice(&outer.bytes));
    ck_assert_uint_eq(walk(&scan, &outer, starts, &lost), 5);
    ck_assert_uint_eq(lost, 1);
    annal__buf_done(&data);
    annal__buf_done(&inner.bytes);
    annal__buf_done(&outer.bytes);
}
END_TEST

START_TEST(what_is_not_a_frame_of_ours_is_not_parsed)
{
    struct journal journal;
    annal_event event;
    struct frame_header found;
    put_header(&journal);
    size_t start = journal.bytes.len;
    put_event(&journal, draft.data);
    annal_slice first = {journal.bytes.ptr, start};
    annal_slice frame = {journal.bytes.ptr + start, journal.bytes.len - start};
    ck_assert(codec->parse_event(frame, &event));
    ck_assert(codec->parse_header(first, &found));
    /* Cut anywhere, or with another byte in the marks of its head. */
    for (size_t len = 0; len < frame.len; len++)
        ck_assert(!codec->parse_event((annal_slice){frame.ptr, len}, &event));
    for (size_t len = 0; len < first.len; len++)
        ck_assert(!codec->parse_header((annal_slice){first.ptr, len}, &found));
    static const size_t marks[] = {0, 1, 5, 6, 15, 24, 36};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        journal.bytes.ptr[start + marks[i]] ^= 0x40;
        ck_assert_msg(!codec->parse_event(frame, &event), "byte %zu", marks[i]);
        journal.bytes.ptr[start + marks[i]] ^= 0x40;
    }
    for (size_t at = 0; at < 12; at++) {
        journal.bytes.ptr[at] ^= 0x40;
        ck_assert_msg(!codec->parse_header(first, &found), "byte %zu", at);
        journal.bytes.ptr[at] ^= 0x40;
    }
    annal__buf_done(&journal.bytes);
}
END_TEST

static void set_up(void)
{
    TMPDIR_INIT(&dir);
}

static void tear_down(void)
{
    tmpdir_done(&dir);
}

Suite *suite_frame_msgpack(void)
{
    Suite *suite = suite_create("frame_msgpack");
    TCase *tests = tcase_create("frame_msgpack");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, a_frame_says_what_the_draft_said_byte_for_byte);
    tcase_add_test(tests, a_header_says_whose_journal_it_is_and_what_it_replaces);
    tcase_add_test(tests, any_msgpack_library_can_iterate_a_journal);
    tcase_add_test(tests, msgpack_c_gives_up_at_32_levels_and_we_do_not);
    tcase_add_test(tests, a_journal_inside_an_event_is_never_taken_for_events);
    tcase_add_test(tests, what_is_not_a_frame_of_ours_is_not_parsed);
    suite_add_tcase(suite, tests);
    return suite;
}
