/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/msgpack.h"
#include "journal/json_msgpack.h"
#include "journal/scan.h"

#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

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

START_TEST(a_frame_has_the_fields_of_the_draft_byte_for_byte)
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

START_TEST(a_header_names_its_session_and_the_replaced_journal)
{
    struct frame_header replacement = header, found;
    struct buf out = {0};
    annal_event event;
    uint64_t h;
    ck_assert_int_eq(codec->encode_header(&out, &header, &h), ANNAL_OK);
    ck_assert(annal__codec_first(codec, annal__buf_slice(&out), &found, &h));
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
START_TEST(msgpack_c_fails_at_32_levels_and_our_reader_does_not)
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
    ck_ok(annal__json_msgpack_to_json((annal_slice){deep, sizeof deep}, &json, err));
    annal__buf_done(&json);
}
END_TEST

/* ---- A journal inside an event ---- */

static void open_scan(struct scan *scan, annal_slice bytes)
{
    const char *path = tmpdir_path(&dir, "journal");
    file_write(path, bytes.ptr, bytes.len);
    annal__scan_init(scan, &annal__system_io, open(path, O_RDONLY | O_CLOEXEC), codec);
}

/* Check that each event belongs to the outer journal, at its offset, and that each loss is reported
 * once. */
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
    size_t starts[32] = {0}, lost;
    put_header(&inner);
    for (int i = 0; i < 3000; i++)
        put_event(&inner, draft.data);
    put_header(&outer);
    for (int i = 1; i <= 6; i++) {
        /* The inner journal, and a copy of the outer journal so far. */
        annal__buf_clear(&data);
        ck_assert_int_eq(annal__msgpack_array(&data, 2), ANNAL_OK);
        ck_assert_int_eq(annal__msgpack_bin(&data, annal__buf_slice(&inner.bytes)), ANNAL_OK);
        ck_assert_int_eq(
            annal__msgpack_bin(&data, (annal_slice){outer.bytes.ptr, starts[1] * (i > 1)}),
            ANNAL_OK);
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
        ck_ok(annal__seek(&scan, seq, err));
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

START_TEST(a_foreign_frame_is_not_parsed)
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

/* ---- Frames by hand: what another program, or a newer one, could write ---- */

static const char file_id[FRAME_FILE_ID_BYTES] = "0123456789abcdef";

static void begin_frame(struct buf *out, size_t values)
{
    annal__buf_clear(out);
    ck_assert_int_eq(annal__msgpack_array(out, values), ANNAL_OK);
    ck_assert_int_eq(annal__msgpack_put_uint32(out, 0), ANNAL_OK);
}

/* End the frame with its length at both ends. The value of h does not matter to a parser. */
static annal_slice end_frame(struct buf *out)
{
    size_t length = out->len + 14;
    ck_assert_int_eq(annal__msgpack_put_uint32(out, (uint32_t)length), ANNAL_OK);
    memcpy(out->ptr + 1, out->ptr + out->len - 5, 5);
    ck_assert_int_eq(annal__msgpack_put_uint64(out, 0), ANNAL_OK);
    return annal__buf_slice(out);
}

/* What stands between the version and the trailer, or between ts and it. */
static annal_slice header_of(struct buf *out, uint64_t version, annal_slice rest)
{
    begin_frame(out, 10);
    ck_assert_int_eq(annal__msgpack_str(out, ANNAL_SLICE("annal")), ANNAL_OK);
    ck_assert_int_eq(annal__msgpack_uint(out, version), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append_slice(out, rest), ANNAL_OK);
    return end_frame(out);
}

static annal_slice event_of(struct buf *out, uint64_t seq, annal_slice rest)
{
    begin_frame(out, 9);
    ck_assert_int_eq(annal__msgpack_put_uint64(out, seq), ANNAL_OK);
    ck_assert_int_eq(annal__msgpack_put_int64(out, 5), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append_slice(out, rest), ANNAL_OK);
    return end_frame(out);
}

START_TEST(an_event_has_a_type_an_id_and_a_cause_that_are_text_or_nil_and_data)
{
    static const struct {
        annal_slice rest;
        uint64_t seq;
        bool fits;
    } cases[] = {
        {{"\xa4type\xc0\xc0\x01", 8}, 1, true},  {{"\xa4type\xa2id\xa2id\x01", 12}, 1, true},
        {{"\xa4type\xc0\xc0\x01", 8}, 0, false}, {{"\xa0\xc0\xc0\xa4type", 8}, 1, false},
        {{"\x01\xc0\xc0\xa4type", 8}, 1, false}, {{"\xa4type\xa0\xc0\x01", 8}, 1, false},
        {{"\xa4type\x02\xc0\x01", 8}, 1, false}, {{"\xa4type\xc0\xa0\x01", 8}, 1, false},
        {{"\xa5types\xc0\xc0", 8}, 1, false},    {{"\xa5types\xc0\xc1", 8}, 1, false},
        {{"\xa5types\xc1\xc0", 8}, 1, false},
    };
    struct buf out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        annal_event event;
        annal_slice frame = event_of(&out, cases[i].seq, cases[i].rest);
        ck_assert_msg(codec->parse_event(frame, &event) == cases[i].fits, "case %zu", i);
    }
    annal__buf_done(&out);
}
END_TEST

/* The fields of a header after the version, as text, so that each case is one change. */
static annal_slice header_fields(struct buf *out, annal_slice session, annal_slice file,
                                 annal_slice created, annal_slice fork, annal_slice replaces)
{
    annal__buf_clear(out);
    ck_assert_int_eq(annal__buf_append_slice(out, session), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append_slice(out, file), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append_slice(out, created), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append_slice(out, fork), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append_slice(out, replaces), ANNAL_OK);
    return annal__buf_slice(out);
}

START_TEST(a_header_without_the_fields_of_version_1_is_invalid)
{
    const annal_slice session = ANNAL_SLICE("\xa4sess"), nil = ANNAL_SLICE("\xc0"),
                      none = {NULL, 0}, number = ANNAL_SLICE("\x07"),
                      created = ANNAL_SLICE("\xd3\0\0\0\0\0\0\0\x05"),
                      fork = ANNAL_SLICE("\x93\xa4sire\x03\x09");
    struct buf id = {0}, fields = {0}, out = {0};
    struct frame_header found;
    ck_assert_int_eq(annal__msgpack_bin(&id, (annal_slice){file_id, sizeof file_id}), ANNAL_OK);
    annal_slice file = annal__buf_slice(&id);
    const struct {
        annal_slice session, file, created, fork, replaces;
        bool fits;
    } cases[] = {
        {session, file, created, nil, nil, true},
        {session, file, created, fork, file, true},
        {number, file, created, nil, nil, false},
        {session, nil, created, nil, nil, false},
        {session, number, created, nil, nil, false},
        {session, ANNAL_SLICE("\xc4\x01x"), created, nil, nil, false},
        {session, ANNAL_SLICE("\xc1"), created, nil, nil, false},
        {session, file, none, nil, nil, false},
        {session, file, ANNAL_SLICE("\xcf\0\0\0\0\0\0\0\x05"), nil, nil, false},
        {session, file, created, none, none, false},
        {session, file, created, number, nil, false},
        {session, file, created, ANNAL_SLICE("\x92\xa4sire\x03"), nil, false},
        {session, file, created, ANNAL_SLICE("\x93\x01\x03\x09"), nil, false},
        {session, file, created, ANNAL_SLICE("\x93\xa4sire\xc0\x09"), nil, false},
        {session, file, created, ANNAL_SLICE("\x93\xa4sire\x03\xc0"), nil, false},
        {session, file, created, nil, none, false},
        {session, file, created, nil, number, false},
        {session, file, created, nil, ANNAL_SLICE("\xc0\xc0"), false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        annal_slice rest = header_fields(&fields, cases[i].session, cases[i].file, cases[i].created,
                                         cases[i].fork, cases[i].replaces);
        found = (struct frame_header){0};
        ck_assert_msg(codec->parse_header(header_of(&out, 1, rest), &found) == cases[i].fits,
                      "case %zu", i);
        if (i == 1) {
            ck_assert(found.fork.len == 4 && memcmp(found.fork.ptr, "sire", 4) == 0);
            ck_assert(found.is_replacement);
        }
    }
    annal__buf_done(&id);
    annal__buf_done(&fields);
    annal__buf_done(&out);
}
END_TEST

START_TEST(only_the_version_of_a_newer_header_is_read)
{
    const annal_slice other = ANNAL_SLICE("\x01\x02\x03 something that nobody knows yet");
    struct frame_header found;
    struct buf out = {0};
    ck_assert(codec->parse_header(header_of(&out, 2, other), &found));
    ck_assert_uint_eq(found.version, 2);
    ck_assert_uint_eq(found.session.len, 0);
    ck_assert(!found.is_replacement);
    ck_assert(codec->parse_header(header_of(&out, UINT32_MAX, other), &found));
    ck_assert(!codec->parse_header(header_of(&out, 1, other), &found));
    ck_assert(!codec->parse_header(header_of(&out, 0, other), &found));
    ck_assert(!codec->parse_header(header_of(&out, (uint64_t)UINT32_MAX + 1, other), &found));
    annal__buf_done(&out);
}
END_TEST

START_TEST(bytes_shorter_than_the_smallest_frame_have_no_last_frame)
{
    char bytes[64] = {0};
    size_t start, end;
    ck_assert(!codec->find_last((annal_slice){bytes, sizeof bytes}, &start, &end));
    bytes[20] = '\xcf';
    ck_assert(!codec->find_last((annal_slice){bytes, sizeof bytes}, &start, &end));
    bytes[50] = '\xcf';
    ck_assert(!codec->find_last((annal_slice){bytes, sizeof bytes}, &start, &end));
    ck_assert(!codec->find_last((annal_slice){bytes, 10}, &start, &end));
}
END_TEST

/* A search from the end is not misled by a mark, a length, or a trailer that belongs to no
 * frame. */
START_TEST(the_last_frame_is_found_before_bytes_that_look_like_a_frame)
{
    struct journal journal;
    size_t start = 0, end = 0;
    put_header(&journal);
    size_t first = journal.bytes.len;
    put_event(&journal, draft.data);
    size_t last = journal.bytes.len;
    static const uint32_t lengths[] = {0, 42, 43, 60, 1u << 30};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        journal.bytes.len = last;
        ck_assert_int_eq(annal__buf_append_zeros(&journal.bytes, 46), ANNAL_OK);
        ck_assert_int_eq(annal__msgpack_put_uint32(&journal.bytes, lengths[i]), ANNAL_OK);
        ck_assert_int_eq(annal__msgpack_put_uint64(&journal.bytes, 9), ANNAL_OK);
        ck_assert(codec->find_last(annal__buf_slice(&journal.bytes), &start, &end));
        ck_assert_uint_eq(start, first);
        ck_assert_uint_eq(end, last);
    }
    annal__buf_done(&journal.bytes);
}
END_TEST

START_TEST(an_incomplete_frame_has_no_length_until_its_last_byte)
{
    struct journal journal;
    struct buf torn = {0};
    put_header(&journal);
    size_t start = journal.bytes.len;
    put_event(&journal, draft.data);
    annal_slice frame = {journal.bytes.ptr + start, journal.bytes.len - start};
    for (size_t len = 0; len < frame.len; len++)
        ck_assert_uint_eq(codec->measure((annal_slice){frame.ptr, len}, 0, false), 0);
    /* After damage, the next frame may begin in bytes that are not written yet. */
    ck_assert_int_eq(annal__buf_append(&torn, "damage", 6), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append(&torn, frame.ptr, frame.len - 1), ANNAL_OK);
    ck_assert_uint_eq(codec->measure(annal__buf_slice(&torn), 0, false), 0);
    ck_assert_uint_eq(codec->measure(annal__buf_slice(&torn), 0, true), 0);
    ck_assert_int_eq(annal__buf_append(&torn, frame.ptr + frame.len - 1, 1), ANNAL_OK);
    ck_assert_uint_eq(codec->measure(annal__buf_slice(&torn), 0, false), 6);
    /* Its trailer damaged: only what follows it can say so. */
    torn.ptr[torn.len - 14] ^= 1;
    annal_slice damaged = {torn.ptr + 6, frame.len};
    ck_assert_uint_eq(codec->measure(damaged, 0, false), 0);
    ck_assert_uint_eq(codec->measure(annal__buf_slice(&torn), 0, true), 0);
    annal__buf_done(&torn);
    annal__buf_done(&journal.bytes);
}
END_TEST

START_TEST(a_frame_with_two_of_three_trailer_marks_was_complete)
{
    struct journal journal;
    put_header(&journal);
    size_t start = journal.bytes.len;
    put_event(&journal, draft.data);
    annal_slice frame = {journal.bytes.ptr + start, journal.bytes.len - start};
    char *end = journal.bytes.ptr + journal.bytes.len;
    ck_assert(codec->was_whole(frame));
    static const size_t marks[] = {14, 13, 9};
    for (size_t i = 0; i < 3; i++) {
        end[-(ptrdiff_t)marks[i]] ^= 1;
        ck_assert(codec->was_whole(frame));
        end[-(ptrdiff_t)marks[(i + 1) % 3]] ^= 1;
        ck_assert(!codec->was_whole(frame));
        end[-(ptrdiff_t)marks[i]] ^= 1;
        end[-(ptrdiff_t)marks[(i + 1) % 3]] ^= 1;
    }
    /* The start of the frame is missing or claims too many bytes: its end decides. */
    journal.bytes.ptr[start] = 0;
    ck_assert(codec->was_whole(frame));
    ck_assert(!codec->was_whole((annal_slice){frame.ptr, frame.len - 1}));
    journal.bytes.ptr[start] = '\x99';
    journal.bytes.ptr[start + 4] = 1;
    ck_assert(codec->was_whole(frame));
    annal__buf_done(&journal.bytes);
}
END_TEST

START_TEST(a_frame_without_room_writes_nothing)
{
    struct buf out = {.limit = FRAME_ENVELOPE_BYTES - 1};
    struct frame_place place = {1, 1, 0, 0};
    uint64_t h = 0;
    ck_assert_int_eq(codec->encode_header(&out, &header, &h), ANNAL_ERR_LIMIT);
    ck_assert_int_eq(codec->encode_event(&out, &draft, &place, &h), ANNAL_ERR_LIMIT);
    ck_assert_uint_eq(out.len, 0);
    annal__buf_done(&out);
}
END_TEST

Suite *suite_frame_msgpack(void)
{
    Suite *suite = suite_create("frame_msgpack");
    TCase *tests = suite_case(suite, "frame_msgpack", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(tests, a_frame_has_the_fields_of_the_draft_byte_for_byte);
    tcase_add_test(tests, a_header_names_its_session_and_the_replaced_journal);
    tcase_add_test(tests, any_msgpack_library_can_iterate_a_journal);
    tcase_add_test(tests, msgpack_c_fails_at_32_levels_and_our_reader_does_not);
    tcase_add_test(tests, a_journal_inside_an_event_is_never_taken_for_events);
    tcase_add_test(tests, a_foreign_frame_is_not_parsed);
    tcase_add_test(tests, an_event_has_a_type_an_id_and_a_cause_that_are_text_or_nil_and_data);
    tcase_add_test(tests, a_header_without_the_fields_of_version_1_is_invalid);
    tcase_add_test(tests, only_the_version_of_a_newer_header_is_read);
    tcase_add_test(tests, bytes_shorter_than_the_smallest_frame_have_no_last_frame);
    tcase_add_test(tests, the_last_frame_is_found_before_bytes_that_look_like_a_frame);
    tcase_add_test(tests, an_incomplete_frame_has_no_length_until_its_last_byte);
    tcase_add_test(tests, a_frame_with_two_of_three_trailer_marks_was_complete);
    tcase_add_test(tests, a_frame_without_room_writes_nothing);
    return suite;
}
