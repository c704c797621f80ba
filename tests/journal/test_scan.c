/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/scan.h"

#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS 6
#define LINES  (EVENTS + 1) /* the header is line 0 */

static const struct codec *codec;
static struct buf journal;
static size_t starts[LINES + 1];
static uint64_t hashes[LINES];

static annal_draft draft;

static void set_up(const struct codec *of, annal_slice data)
{
    static const struct frame_header header = {.session = {"s", 1}, .created_us = 1};
    codec = of;
    draft = (annal_draft){.type = {"t", 1}, .data = data, .data_format = codec->format};
    tmpdir_setup();
    ck_assert_int_eq(codec->encode_header(&journal, &header, &hashes[0]), ANNAL_OK);
    for (uint64_t seq = 1; seq <= EVENTS; seq++) {
        starts[seq] = journal.len;
        struct frame_place place = {seq, (int64_t)seq, journal.len, hashes[seq - 1]};
        ck_assert_int_eq(codec->encode_event(&journal, &draft, &place, &hashes[seq]), ANNAL_OK);
    }
    starts[LINES] = journal.len;
}

static void set_up_json(void)
{
    set_up(&annal__codec_json, ANNAL_SLICE("{\"text\":\"abcdef\"}"));
}

static void set_up_msgpack(void)
{
    set_up(&annal__codec_msgpack, ANNAL_SLICE("\x81\xa4text\xb0"
                                              "abcdefghijklmnop"));
}

static void tear_down(void)
{
    annal__buf_done(&journal);
    tmpdir_teardown();
}

static int open_bytes(const struct io *io, annal_slice bytes)
{
    const char *path = tmpdir_path(&dir, "journal");
    file_write(path, bytes.len == 0 ? "" : bytes.ptr, bytes.len);
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/*
 * The result of a walk over these bytes: a digit for an event, !n for a lost event, ~n for damage
 * that loses no event, and a dot at the end. A loss is reported at its offset.
 */
static void walk(annal_slice bytes, char out[64])
{
    struct scan scan;
    annal_status status = ANNAL_OK;
    size_t used = 0;
    annal__scan_init(&scan, &annal__system_io, open_bytes(&annal__system_io, bytes), codec);
    while (status != ANNAL_END) {
        annal_event event = {0};
        ck_assert_uint_lt(used, 60);
        status = annal__scan_next(&scan, &event, NULL);
        ck_assert_int_ge(status, 0);
        if (status == ANNAL_OK) {
            used += (size_t)sprintf(out + used, "%d", (int)event.seq);
            ck_assert_uint_eq(event.h, hashes[event.seq]);
            ck_assert_uint_eq(event.data.len, draft.data.len);
        } else if (status == ANNAL_DAMAGE) {
            used += (size_t)sprintf(out + used, "%c%d", scan.damage.event_lost ? '!' : '~',
                                    (int)scan.damage.seq);
            ck_assert_uint_gt(scan.damage.length, 0);
            ck_assert_uint_le(scan.damage.offset + scan.damage.length, bytes.len);
        }
    }
    sprintf(out + used, ".");
    annal__scan_done(&scan);
}

static void put_line(struct buf *out, size_t line)
{
    annal_slice bytes = {journal.ptr + starts[line], starts[line + 1] - starts[line]};
    ck_assert_int_eq(annal__buf_append_slice(out, bytes), ANNAL_OK);
}

/* Line numbers in the order in the file; x: a foreign line. */
static void ck_order(const char *order, const char *expected)
{
    struct buf bytes = {0};
    char trace[64];
    for (const char *at = order; *at != '\0'; at++) {
        if (*at == 'x')
            ck_assert_int_eq(annal__buf_append_slice(&bytes, ANNAL_SLICE("hello\n")), ANNAL_OK);
        else
            put_line(&bytes, (size_t)(*at - '0'));
    }
    walk(annal__buf_slice(&bytes), trace);
    annal__buf_done(&bytes);
    ck_assert_msg(strcmp(trace, expected) == 0, "%s: %s, not %s", order, trace, expected);
}

START_TEST(dropped_doubled_swapped_and_foreign_lines_are_detected)
{
    static const struct {
        const char *order, *expected;
    } cases[] = {
        {"0123456", "123456."},
        {"0", "."},
        {"", "."},
        {"012456", "12!356."},
        {"01233456", "123!4456."},
        {"012435", "12."},
        {"0124356", "12!3!4!56."},
        {"012x3456", "12!3!3456."},
        {"123456", "!123456."},
        {"x0123456", "~0~1123456."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_order(cases[i].order, cases[i].expected);
}
END_TEST

/* From the end of line 3: one byte becomes another. */
START_TEST(a_changed_byte_costs_its_event_but_not_in_the_trailer)
{
    static const struct {
        size_t line, from_end;
        char byte;
        const char *expected;
    } cases[] = {
        {3, 30, 'X', "12!3456."},    /* in the data */
        {3, 10, 'x', "12~33456."},   /* in the hash */
        {3, 10, '\n', "12~33456."},  /* the same, and it splits the line */
        {3, 30, '\n', "12!3!3456."}, /* in the data: two pieces, one event */
        {3, 1, 'x', "12~33456."},    /* the newline */
        {0, 30, 'X', "~0123456."},   /* the header */
        {0, 1, 'x', "~0123456."},    /* its newline */
        {6, 30, 'X', "12345."},      /* the last line: not yet */
        {6, 1, 'x', "12345."},       /* its newline */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char trace[64];
        size_t at = starts[cases[i].line + 1] - cases[i].from_end;
        char before = journal.ptr[at];
        journal.ptr[at] = cases[i].byte;
        walk(annal__buf_slice(&journal), trace);
        journal.ptr[at] = before;
        ck_assert_msg(strcmp(trace, cases[i].expected) == 0, "case %d: %s, not %s", (int)i, trace,
                      cases[i].expected);
    }
}
END_TEST

START_TEST(a_truncated_line_is_read_once_it_is_complete)
{
    for (size_t cut = starts[EVENTS]; cut < starts[LINES]; cut++) {
        struct scan scan;
        annal_event event;
        int fd = open_bytes(&annal__system_io, (annal_slice){journal.ptr, cut});
        annal__scan_init(&scan, &annal__system_io, fd, codec);
        for (uint64_t seq = 1; seq < EVENTS; seq++)
            ck_ok(annal__scan_next(&scan, &event, err));
        ck_assert_int_eq(annal__scan_next(&scan, &event, NULL), ANNAL_END);
        ck_assert_uint_eq(scan.offset, starts[EVENTS]);
        file_write(tmpdir_path(&dir, "journal"), journal.ptr, journal.len);
        ck_ok(annal__scan_next(&scan, &event, err));
        ck_assert_uint_eq(event.seq, EVENTS);
        annal__scan_done(&scan);
    }
}
END_TEST

START_TEST(a_seek_stops_before_the_event_or_at_the_end)
{
    for (uint64_t seq = 0; seq <= EVENTS + 2; seq++) {
        struct scan scan;
        annal_event event;
        annal__scan_init(&scan, &annal__system_io,
                         open_bytes(&annal__system_io, annal__buf_slice(&journal)), codec);
        ck_ok(annal__seek(&scan, seq, err));
        annal_status status = annal__scan_next(&scan, &event, NULL);
        ck_assert_int_eq(status, seq <= EVENTS ? ANNAL_OK : ANNAL_END);
        ck_assert(status == ANNAL_END || event.seq == (seq == 0 ? 1 : seq));
        annal__scan_done(&scan);
    }
}
END_TEST

START_TEST(the_hash_before_an_offset_is_found_missing_or_unreadable)
{
    struct failing_io disk;
    struct scan scan;
    uint64_t h = 0;
    failing_io_init(&disk);
    annal__scan_init(&scan, &disk.io, open_bytes(&disk.io, annal__buf_slice(&journal)), codec);
    for (size_t line = 1; line <= LINES; line++) {
        ck_assert_int_eq(annal__scan_h_before(&scan, starts[line], &h, NULL), ANNAL_OK);
        ck_assert_uint_eq(h, hashes[line - 1]);
    }
    ck_assert_int_eq(annal__scan_h_before(&scan, starts[2] + 1, &h, NULL), ANNAL_END);
    ck_assert_int_eq(annal__scan_h_before(&scan, 0, &h, NULL), ANNAL_END);
    ck_assert_int_eq(annal__scan_h_before(&scan, journal.len + 5, &h, NULL), ANNAL_END);
    disk.with_errno = EIO;
    disk.fail_at = disk.calls + 1;
    ck_status(ANNAL_ERR_DISK, annal__scan_h_before(&scan, starts[2], &h, err));
    annal__scan_done(&scan);
}
END_TEST

/* ---- Frames that prove themselves but are not events ---- */

/* Make a frame prove itself again after a change; its last 8 bytes are h. */
static void seal(size_t line, uint64_t h_before)
{
    annal_slice frame = {journal.ptr + starts[line], starts[line + 1] - starts[line]};
    uint64_t h = codec->hash(frame, starts[line], h_before);
    for (size_t i = 1; i <= 8; i++, h >>= 8)
        journal.ptr[starts[line + 1] - i] = (char)h;
    ck_assert(codec->trailer(frame, &hashes[line]));
}

/* Give the header this version, and event 3 one more value than in our format. */
static void make_newer(char version)
{
    journal.ptr[12] = version;
    journal.ptr[starts[3]] = '\x9a';
    for (size_t line = 0; line < LINES; line++)
        seal(line, line == 0 ? 0 : hashes[line - 1]);
}

static annal_status walk_to_the_third(const struct io *io, struct scan *scan, annal_error *err)
{
    annal_event event;
    annal_status status = ANNAL_OK;
    annal__scan_init(scan, io, open_bytes(&annal__system_io, annal__buf_slice(&journal)), codec);
    for (uint64_t seq = 1; seq <= 3 && status == ANNAL_OK; seq++)
        status = annal__scan_next(scan, &event, err);
    return status;
}

START_TEST(an_event_of_a_newer_version_is_unsupported_and_not_damage)
{
    struct scan scan;
    annal_error failure = {0};
    make_newer(2);
    ck_assert_int_eq(walk_to_the_third(&annal__system_io, &scan, &failure), ANNAL_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(failure.message, "event 3 has format version 2"));
    annal__scan_done(&scan);
    make_newer(1);
    ck_assert_int_eq(walk_to_the_third(&annal__system_io, &scan, &failure), ANNAL_DAMAGE);
    ck_assert_ptr_nonnull(strstr(scan.damage.what, "correct hash, but are not an event"));
    annal_event event;
    ck_ok(annal__scan_next(&scan, &event, err));
    ck_assert_uint_eq(event.seq, 4);
    annal__scan_done(&scan);
}
END_TEST

START_TEST(a_failed_read_of_a_newer_journal_is_reported)
{
    bool failed = true;
    make_newer(2);
    for (unsigned at = 1; failed; at++) {
        struct failing_io disk;
        struct scan scan;
        annal_error err = {0};
        failing_io_init(&disk);
        disk.with_errno = EIO;
        disk.fail_at = at;
        annal_status status = walk_to_the_third(&disk.io, &scan, &err);
        failed = disk.calls >= at;
        ck_assert_int_eq(status, failed ? ANNAL_ERR_DISK : ANNAL_ERR_UNSUPPORTED);
        annal__scan_done(&scan);
    }
}
END_TEST

/* ---- Long journals ---- */

#define LONG_EVENTS 40

/* Now and then an event is longer than the piece that a search looks at. */
static void make_long(void)
{
    size_t room = 200000;
    char *data = malloc(room);
    uint64_t h = hashes[EVENTS];
    ck_assert_ptr_nonnull(data);
    memset(data, ' ', room);
    data[0] = codec->format == ANNAL_FORMAT_JSON ? '1' : '\x01';
    for (uint64_t seq = EVENTS + 1; seq <= LONG_EVENTS; seq++) {
        struct frame_place place = {seq, (int64_t)seq, journal.len, h};
        draft.data = (annal_slice){data, seq % 7 == 0 ? room : 9000};
        ck_assert_int_eq(codec->encode_event(&journal, &draft, &place, &h), ANNAL_OK);
    }
    free(data);
}

static annal_status seek_and_read(const struct io *io, uint64_t seq, uint64_t *out_seq,
                                  annal_error *err)
{
    struct scan scan;
    annal_event event = {0};
    int fd = annal__system_io.open(NULL, tmpdir_path(&dir, "journal"), O_RDONLY, 0);
    annal__scan_init(&scan, io, fd, codec);
    annal_status status = annal__seek(&scan, seq, err);
    if (status == ANNAL_OK)
        status = annal__scan_next(&scan, &event, err);
    *out_seq = event.seq;
    annal__scan_done(&scan);
    return status;
}

START_TEST(every_event_of_a_long_journal_is_found_at_any_length)
{
    make_long();
    annal__system_io.close(NULL, open_bytes(&annal__system_io, annal__buf_slice(&journal)));
    for (uint64_t seq = 1; seq <= LONG_EVENTS; seq++) {
        uint64_t found;
        ck_ok(seek_and_read(&annal__system_io, seq, &found, err));
        ck_assert_uint_eq(found, seq);
    }
}
END_TEST

START_TEST(a_search_reports_every_failed_read)
{
    bool failed = true;
    unsigned at = 1;
    make_long();
    annal__system_io.close(NULL, open_bytes(&annal__system_io, annal__buf_slice(&journal)));
    for (; failed; at++) {
        struct failing_io disk;
        uint64_t found;
        failing_io_init(&disk);
        disk.with_errno = EIO;
        disk.fail_at = at;
        annal_status status = seek_and_read(&disk.io, 30, &found, NULL);
        failed = disk.calls >= at;
        ck_assert_int_eq(status, failed ? ANNAL_ERR_DISK : ANNAL_OK);
        ck_assert(failed || found == 30);
    }
    ck_assert_uint_gt(at, 5);
}
END_TEST

/* ---- Tails ---- */

static struct journal_tail tail_of(annal_slice bytes)
{
    struct journal_tail tail = {0};
    int fd = open_bytes(&annal__system_io, bytes);
    ck_ok(annal__scan_tail(&annal__system_io, fd, codec, &tail, err));
    annal__system_io.close(NULL, fd);
    ck_assert_uint_eq(tail.size, bytes.len);
    return tail;
}

START_TEST(the_tail_gives_the_end_of_the_last_proven_line_and_what_follows)
{
    for (size_t cut = 0; cut <= journal.len; cut++) {
        size_t last = 0; /* lines that are whole */
        while (last < LINES && starts[last + 1] <= cut)
            last++;
        struct journal_tail tail = tail_of((annal_slice){journal.ptr, cut});
        ck_assert_int_eq(tail.has_header, last > 0);
        ck_assert_uint_eq(tail.end, starts[last]);
        ck_assert_uint_eq(tail.seq, last > 0 ? last - 1 : 0);
        ck_assert_int_eq(tail.state, cut == starts[last] ? TAIL_WHOLE : TAIL_TORN);
        if (last > 0) {
            ck_assert_uint_eq(tail.h, hashes[last - 1]);
            ck_assert_uint_eq(tail.offset, starts[last - 1]);
        }
        if (last > 1)
            ck_assert_int_eq(tail.ts_us, (int64_t)last - 1);
    }
}
END_TEST

START_TEST(a_complete_last_line_with_a_wrong_hash_is_damage_and_not_torn)
{
    static const size_t from_end[] = {30, 10};
    for (size_t i = 0; i < 2; i++) {
        char *at = journal.ptr + journal.len - from_end[i];
        *at ^= 1;
        struct journal_tail tail = tail_of(annal__buf_slice(&journal));
        *at ^= 1;
        ck_assert_int_eq(tail.state, TAIL_DAMAGED);
        ck_assert_uint_eq(tail.seq, EVENTS - 1);
        ck_assert_uint_eq(tail.end, starts[EVENTS]);
    }
}
END_TEST

/* A frame of msgpack proves itself only at its offset: after an inserted or removed byte no frame
 * does. */
START_TEST(dropped_doubled_swapped_and_foreign_frames_of_msgpack_are_detected)
{
    static const struct {
        const char *order, *expected;
    } cases[] = {
        {"0123456", "123456."},    {"0", "."},           {"", "."},
        {"012456", "12."},         {"01233456", "123."}, {"012435", "12."},
        {"0124356", "12!3!4!56."}, {"012x3456", "12."},  {"123456", "."},
        {"x0123456", "."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_order(cases[i].order, cases[i].expected);
}
END_TEST

START_TEST(a_changed_byte_of_msgpack_costs_its_event_but_not_in_the_hash)
{
    for (size_t frame = 0; frame < LINES; frame++) {
        for (size_t at = starts[frame]; at < starts[frame + 1]; at++) {
            char trace[64];
            bool in_hash = starts[frame + 1] - at <= 9;
            const char *expected = frame == 0        ? "~0123456."
                                   : frame == EVENTS ? "12345."
                                   : frame != 3      ? NULL
                                   : in_hash         ? "12~33456."
                                                     : "12!3456.";
            for (int bit = 0; bit < 8 && expected != NULL; bit++) {
                journal.ptr[at] ^= (char)(1 << bit);
                walk(annal__buf_slice(&journal), trace);
                journal.ptr[at] ^= (char)(1 << bit);
                ck_assert_msg(strcmp(trace, expected) == 0,
                              "frame %zu, byte %zu, bit %d: %s, not %s", frame, at - starts[frame],
                              bit, trace, expected);
            }
        }
    }
}
END_TEST

static void add_tests_of_all(TCase *tests)
{
    tcase_add_test(tests, a_truncated_line_is_read_once_it_is_complete);
    tcase_add_test(tests, a_seek_stops_before_the_event_or_at_the_end);
    tcase_add_test(tests, the_hash_before_an_offset_is_found_missing_or_unreadable);
    tcase_add_test(tests, every_event_of_a_long_journal_is_found_at_any_length);
    tcase_add_test(tests, a_search_reports_every_failed_read);
    tcase_add_test(tests, the_tail_gives_the_end_of_the_last_proven_line_and_what_follows);
    tcase_add_test(tests, a_complete_last_line_with_a_wrong_hash_is_damage_and_not_torn);
}

Suite *suite_scan(void)
{
    Suite *suite = suite_create("scan");
    TCase *json = suite_case(suite, "scan of JSON lines", set_up_json, tear_down);
    TCase *msgpack = suite_case(suite, "scan of msgpack", set_up_msgpack, tear_down);
    tcase_add_test(json, dropped_doubled_swapped_and_foreign_lines_are_detected);
    tcase_add_test(json, a_changed_byte_costs_its_event_but_not_in_the_trailer);
    add_tests_of_all(json);
    tcase_add_test(msgpack, dropped_doubled_swapped_and_foreign_frames_of_msgpack_are_detected);
    tcase_add_test(msgpack, a_changed_byte_of_msgpack_costs_its_event_but_not_in_the_hash);
    tcase_add_test(msgpack, an_event_of_a_newer_version_is_unsupported_and_not_damage);
    tcase_add_test(msgpack, a_failed_read_of_a_newer_journal_is_reported);
    add_tests_of_all(msgpack);
    return suite;
}
