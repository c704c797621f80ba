/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include "journal/scan.h"
#include "journal/seek_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS 3000u

static const struct codec *codec;
static struct random seed;
static struct buf journal;
static uint64_t starts[EVENTS + 2], hashes[EVENTS + 1];
static struct failing_io disk;
static struct scan scan;
static struct seek_tables tables;

/* Most events are small and a few are large, so offsets do not grow evenly with seqs. */
static void put_event(uint64_t seq)
{
    static char data[70000];
    size_t len = random_below(&seed, 20) == 0 ? 1000 + random_below(&seed, 60000)
                                              : 20 + random_below(&seed, 300);
    memset(data, 'x', sizeof data);
    annal_draft draft = {.type = {"t", 1}, .data_format = codec->format};
    if (codec == &annal__codec_json) {
        data[0] = data[len - 1] = '"';
    } else {
        data[0] = (char)0xda; /* str 16 */
        data[1] = (char)((len - 3) >> 8);
        data[2] = (char)(len - 3);
    }
    draft.data = (annal_slice){data, len};
    struct frame_place place = {seq, (int64_t)seq, journal.len, hashes[seq - 1]};
    starts[seq] = journal.len;
    ck_assert_int_eq(codec->encode_event(&journal, &draft, &place, &hashes[seq]), ANNAL_OK);
}

static void open_scan(void)
{
    const char *name = tmpdir_path(&dir, "journal");
    file_write(name, journal.ptr, journal.len);
    failing_io_init(&disk);
    annal__scan_init(&scan, &disk.io, disk.io.open(disk.io.arg, name, O_RDONLY, 0), codec);
    scan.tables = &tables;
}

static void set_up(const struct codec *of)
{
    static const struct frame_header header = {.session = {"s", 1}, .created_us = 1};
    codec = of;
    seed = random_init(20261120);
    tmpdir_setup();
    ck_assert_int_eq(codec->encode_header(&journal, &header, &hashes[0]), ANNAL_OK);
    for (uint64_t seq = 1; seq <= EVENTS; seq++)
        put_event(seq);
    starts[EVENTS + 1] = journal.len;
    open_scan();
}

static void set_up_json(void)
{
    set_up(&annal__codec_json);
}

static void set_up_msgpack(void)
{
    set_up(&annal__codec_msgpack);
}

static void tear_down(void)
{
    annal__scan_done(&scan);
    annal__seek_tables_done(&tables);
    annal__buf_done(&journal);
    tmpdir_teardown();
}

static void ck_next_is(uint64_t seq)
{
    annal_event event;
    annal_status status = annal__scan_next(&scan, &event, NULL);
    ck_assert_int_eq(status, seq <= EVENTS ? ANNAL_OK : ANNAL_END);
    if (status == ANNAL_OK) {
        ck_assert_uint_eq(event.seq, seq);
        ck_assert_uint_eq(event.offset, starts[seq]);
        ck_assert_uint_eq(event.h, hashes[seq]);
    }
}

static void seek_about(unsigned times)
{
    while (times-- > 0) {
        uint64_t seq = 1 + random_below(&seed, EVENTS + 3);
        ck_ok(annal__seek(&scan, seq, err));
        for (uint64_t more = random_below(&seed, 60); more > 0 && seq <= EVENTS; more--)
            ck_next_is(seq++);
    }
}

START_TEST(repeated_seeks_of_a_scan_stop_at_the_right_event)
{
    seek_about(2000);
}
END_TEST

static void pass_all(void)
{
    seek_about(400);
    for (uint64_t seq = 1; seq <= EVENTS; seq++) {
        annal_event event;
        ck_ok(annal__seek(&scan, seq, err));
        ck_ok(annal__scan_next(&scan, &event, err));
    }
}

/* Reads for each of 100 seeks, in hundredths. */
static unsigned reads_of_seeks(bool by_new_scans)
{
    unsigned reads = 0;
    for (unsigned i = 0; i < 100; i++) {
        uint64_t seq = 2 + random_below(&seed, EVENTS - 2);
        if (by_new_scans) {
            annal__scan_done(&scan);
            open_scan();
        }
        unsigned before = disk.calls;
        ck_ok(annal__seek(&scan, seq, err));
        ck_next_is(seq);
        reads += disk.calls - before;
    }
    return reads;
}

START_TEST(a_seek_in_a_known_journal_needs_one_read)
{
    pass_all();
    ck_assert_uint_lt(reads_of_seeks(false), 125); /* one more where a large event lies */
}
END_TEST

START_TEST(a_new_scan_uses_the_places_noted_by_earlier_scans)
{
    pass_all();
    ck_assert_uint_lt(reads_of_seeks(true), 125);
}
END_TEST

/* The least recently used one. */
START_TEST(only_the_most_recently_used_tables_are_kept)
{
    struct seek_place low = {0}, high = {0};
    for (ino_t inode = 1; inode <= SEEK_TABLES_KEPT + 1; inode++) {
        struct seek_table *table = annal__seek_table_take(&tables, 1, inode);
        annal__seek_table_note(table, 1, inode);
        annal__seek_table_give(&tables, table);
    }
    for (ino_t inode = 1; inode <= SEEK_TABLES_KEPT + 1; inode++) {
        struct seek_table *table = annal__seek_table_take(&tables, 1, inode);
        low.offset = 0;
        annal__seek_table_near(table, 1, &low, &high);
        ck_assert_uint_eq(low.offset, inode == 1 ? 0 : inode);
        annal__seek_table_give(NULL, table);
    }
}
END_TEST

START_TEST(a_new_scan_finds_the_last_events_with_few_reads)
{
    ck_ok(annal__seek(&scan, EVENTS - 20, err));
    ck_next_is(EVENTS - 20);
    ck_assert_uint_lt(disk.calls, 12);
}
END_TEST

/* Rule (4). */
START_TEST(wrongly_noted_places_are_removed)
{
    struct seek_place low = {0}, high = {0};
    seek_about(20);
    annal__seek_table_note(scan.table, 1001, starts[1000]);
    ck_ok(annal__seek(&scan, 1002, err));
    ck_next_is(1002);
    annal__seek_table_near(scan.table, 1001, &low, &high);
    ck_assert(low.seq != 1001 || low.offset == starts[1001]);
    seek_about(20);
    annal__seek_table_note(scan.table, 1001, starts[1001] + 1);
    ck_ok(annal__seek(&scan, 1001, err));
    ck_next_is(1001);
}
END_TEST

START_TEST(noted_places_become_sparse_for_large_seqs)
{
    struct seek_place low = {0}, high = {0};
    pass_all();
    annal__seek_table_note(scan.table, ((uint64_t)1 << 21) + 1, journal.len);
    annal__seek_table_near(scan.table, 1100, &low, &high);
    ck_assert_uint_eq(low.seq, 1089); /* every 64th stays */
    ck_assert_uint_eq(high.seq, 1153);
    seek_about(200);
}
END_TEST

/* Skip damage: whether the scan reports damage before the event depends on where its seek
 * started. */
static annal_status next_sound(struct scan *from, annal_event *out_event)
{
    annal_status status;
    do
        status = annal__scan_next(from, out_event, NULL);
    while (status == ANNAL_DAMAGE);
    return status;
}

START_TEST(a_seek_after_damage_stops_where_a_new_scan_stops)
{
    for (unsigned i = 0; i < 30; i++)
        journal.ptr[random_below(&seed, journal.len)] ^= 1;
    annal__scan_done(&scan);
    open_scan();
    for (unsigned i = 0; i < 500; i++) {
        struct scan fresh;
        annal_event event, other;
        uint64_t seq = 1 + random_below(&seed, EVENTS);
        annal__scan_init(&fresh, &annal__system_io,
                         open(tmpdir_path(&dir, "journal"), O_RDONLY | O_CLOEXEC), codec);
        ck_ok(annal__seek(&fresh, seq, err));
        ck_ok(annal__seek(&scan, seq, err));
        for (unsigned more = 0; more < 10; more++) {
            annal_status status = next_sound(&fresh, &event);
            ck_assert_int_eq(next_sound(&scan, &other), status);
            ck_assert(status != ANNAL_OK || (event.seq >= seq && event.seq == other.seq &&
                                             event.h == other.h && event.offset == other.offset));
        }
        annal__scan_done(&fresh);
    }
}
END_TEST

START_TEST(a_seek_reports_a_failed_read_and_the_next_seek_succeeds)
{
    seek_about(20);
    for (unsigned n = 1; n < 200; n++) {
        uint64_t seq = 1 + random_below(&seed, EVENTS);
        disk.with_errno = EIO;
        disk.fail_at = disk.calls + n;
        annal_status status = annal__seek(&scan, seq, NULL);
        disk.fail_at = 0;
        if (status == ANNAL_OK)
            break;
        ck_assert_int_eq(status, ANNAL_ERR_DISK);
        ck_ok(annal__seek(&scan, seq, err));
        ck_next_is(seq);
    }
}
END_TEST

Suite *suite_seek(void)
{
    Suite *suite = suite_create("seek");
    static const struct {
        const char *name;
        SFun set_up;
    } formats[] = {{"json", set_up_json}, {"msgpack", set_up_msgpack}};
    for (size_t i = 0; i < 2; i++) {
        TCase *tcase = suite_case(suite, formats[i].name, formats[i].set_up, tear_down);
        tcase_add_test(tcase, repeated_seeks_of_a_scan_stop_at_the_right_event);
        tcase_add_test(tcase, a_seek_in_a_known_journal_needs_one_read);
        tcase_add_test(tcase, a_new_scan_finds_the_last_events_with_few_reads);
        tcase_add_test(tcase, a_new_scan_uses_the_places_noted_by_earlier_scans);
        tcase_add_test(tcase, only_the_most_recently_used_tables_are_kept);
        tcase_add_test(tcase, wrongly_noted_places_are_removed);
        tcase_add_test(tcase, noted_places_become_sparse_for_large_seqs);
        tcase_add_test(tcase, a_seek_after_damage_stops_where_a_new_scan_stops);
        tcase_add_test(tcase, a_seek_reports_a_failed_read_and_the_next_seek_succeeds);
    }
    return suite;
}
