/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/cursor.h"
#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include "journal/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS     12u
#define LONG_BYTES ((size_t)700 << 10)

static annal_store *store;
static struct buf data; /* of the long events: 1, 4, 5 and 12 */
static const char *journal;

static bool is_long(uint64_t seq)
{
    return seq == 1 || seq == 4 || seq == 5 || seq == EVENTS;
}

static void set_up_format(annal_format format)
{
    struct random random = random_init(20261120);
    annal_writer *writer = NULL;
    uint64_t got;
    tmpdir_setup();
    store = store_open(tmpdir_path(&dir, "store"));
    ck_assert_int_eq(annal__buf_append(&data, "\"", 1), ANNAL_OK);
    while (data.len < LONG_BYTES)
        ck_assert_int_eq(annal__buf_printf(&data, "%016llx, then a word that stands there again ",
                                           (unsigned long long)random_next(&random)),
                         ANNAL_OK);
    ck_assert_int_eq(annal__buf_append(&data, "\"", 1), ANNAL_OK);
    ck_ok(annal_writer_open(store, ANNAL_SLICE("s"),
                            &(annal_writer_options){.level = ANNAL_LEVEL_OS, .format = format},
                            &writer, err));
    for (uint64_t seq = 1; seq <= EVENTS; seq++) {
        annal_draft draft = {.type = ANNAL_SLICE("t"), .id = ANNAL_SLICE("")};
        draft.data = is_long(seq) ? annal__buf_slice(&data) : ANNAL_SLICE("{\"a\":1}");
        ck_ok(annal_writer_append(writer, &draft, 1, NULL, &got, err));
    }
    ck_ok(annal_writer_sync(writer, NULL, err));
    annal_writer_close(writer);
    journal = tmpdir_path(&dir, "store/events/s.jsonl");
}

static void set_up(void)
{
    set_up_format(ANNAL_FORMAT_JSON);
}

static void tear_down(void)
{
    store_close(store);
    annal__buf_done(&data);
    tmpdir_teardown();
}

static void ck_data(annal_cursor *cursor, uint64_t bytes)
{
    struct buf pieces = {0};
    char piece[100003];
    size_t len;
    do {
        ck_ok(annal__cursor_data(cursor, pieces.len, piece, sizeof piece, &len, err));
        ck_assert_int_eq(annal__buf_append(&pieces, piece, len), ANNAL_OK);
    } while (len > 0);
    ck_assert_uint_eq(pieces.len, bytes);
    ck_assert(pieces.len == data.len ? memcmp(pieces.ptr, data.ptr, data.len) == 0
                                     : memcmp(pieces.ptr, "{\"a\":1}", pieces.len) == 0);
    annal__buf_done(&pieces);
}

static void ck_heads(bool held)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    uint64_t bytes = 0;
    ck_ok(annal_cursor_open(store, ANNAL_SLICE("s"), 1, &cursor, err));
    for (uint64_t seq = 1; seq <= EVENTS; seq++) {
        ck_ok(annal__cursor_next_head(cursor, &event, &bytes, err));
        ck_assert_uint_eq(event.seq, seq);
        ck_assert_uint_eq(bytes, is_long(seq) ? data.len : 7);
        ck_assert_uint_eq(event.data.len, held || !is_long(seq) ? bytes : 0);
        ck_data(cursor, bytes);
    }
    ck_assert_int_eq(annal__cursor_next_head(cursor, &event, &bytes, NULL), ANNAL_END);
    annal_cursor_close(cursor);
}

START_TEST(the_data_of_a_long_event_is_read_in_pieces)
{
    ck_heads(false);
}
END_TEST

START_TEST(heads_and_whole_events_may_be_read_in_turn)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    uint64_t bytes = 0;
    ck_ok(annal_cursor_open(store, ANNAL_SLICE("s"), 1, &cursor, err));
    for (unsigned i = 0; i < 3; i++) {
        ck_ok(annal_cursor_seek(cursor, 4, err));
        ck_ok(annal__cursor_next_head(cursor, &event, &bytes, err));
        uint64_t h = event.h, length = event.length;
        ck_ok(annal_cursor_next(cursor, &event, err));
        ck_assert_uint_eq(event.seq, 5);
        ck_assert_uint_eq(event.data.len, data.len);
        ck_data(cursor, data.len);
        ck_ok(annal_cursor_seek(cursor, 4, err));
        ck_ok(annal_cursor_next(cursor, &event, err));
        ck_assert_uint_eq(event.h, h);
        ck_assert_uint_eq(event.length, length);
    }
    annal_cursor_close(cursor);
}
END_TEST

/* ---- Below the cursor ---- */

static void open_scan(struct scan *scan, const struct io *io)
{
    annal__scan_init(scan, io, io->open(io->arg, journal, O_RDONLY, 0), &annal__codec_json);
}

START_TEST(memory_does_not_grow_with_an_event)
{
    struct scan scan;
    annal_event event;
    open_scan(&scan, &annal__system_io);
    while (annal__scan_next_head(&scan, &event, NULL) == ANNAL_OK)
        ck_assert_uint_le(scan.window.cap, 1u << 20);
    ck_assert_uint_eq(scan.next_seq, EVENTS + 1);
    annal__scan_done(&scan);
}
END_TEST

START_TEST(seeking_and_finding_the_end_hold_no_long_event)
{
    struct scan scan;
    struct journal_tail tail;
    open_scan(&scan, &annal__system_io);
    for (unsigned i = 0; i < 3; i++)
        for (uint64_t seq = 1; seq <= EVENTS; seq++) {
            annal_event event;
            ck_ok(annal__seek(&scan, seq, err));
            ck_ok(annal__scan_next_head(&scan, &event, err));
            ck_assert_uint_eq(event.seq, seq);
            ck_assert_uint_le(scan.window.cap, 1u << 20);
        }
    ck_ok(annal__scan_tail(&annal__system_io, scan.fd, scan.codec, &tail, err));
    ck_assert_uint_eq(tail.seq, EVENTS);
    ck_assert_uint_eq(tail.h, scan.h);
    ck_assert_uint_eq(tail.end, tail.size);
    ck_assert_int_eq(tail.state, TAIL_WHOLE);
    annal__scan_done(&scan);
}
END_TEST

/* What a walk gives, in numbers. */
static uint64_t digest(annal_status (*next)(struct scan *, annal_event *, annal_error *))
{
    struct scan scan;
    annal_status status = ANNAL_OK;
    uint64_t sum = 0;
    open_scan(&scan, &annal__system_io);
    while (status != ANNAL_END) {
        annal_event event = {0};
        status = next(&scan, &event, NULL);
        ck_assert_int_ge(status, 0);
        sum = sum * 1000003 + (uint64_t)status;
        if (status == ANNAL_OK)
            sum = sum * 1000003 + event.seq + event.h + event.offset + event.length;
        if (status == ANNAL_DAMAGE)
            sum = sum * 1000003 + scan.damage.seq + scan.damage.offset + scan.damage.length;
    }
    annal__scan_done(&scan);
    return sum;
}

START_TEST(a_scan_without_data_finds_the_same_damage)
{
    struct random random = random_init(7);
    size_t len;
    char *bytes = file_read(journal, &len);
    ck_assert_uint_eq(digest(annal__scan_next), digest(annal__scan_next_head));
    for (unsigned i = 0; i < 16; i++) {
        size_t at = (size_t)random_below(&random, len);
        size_t cut = i % 4 == 3 ? (size_t)random_below(&random, len) : len;
        if (i % 4 == 2) { /* an end of a line */
            const char *newline = memchr(bytes + at, '\n', len - at);
            at = newline == NULL ? at : (size_t)(newline - bytes) - random_below(&random, 26);
        }
        bytes[at] ^= 4;
        file_write(journal, bytes, cut);
        ck_assert_uint_eq(digest(annal__scan_next), digest(annal__scan_next_head));
        bytes[at] ^= 4;
    }
    free(bytes);
}
END_TEST

START_TEST(a_long_event_that_fails_to_load_is_read_by_the_next_call)
{
    struct failing_io disk;
    struct scan scan;
    annal_event event;
    failing_io_init(&disk);
    disk.with_errno = EIO;
    open_scan(&scan, &disk.io);
    ck_ok(annal__seek(&scan, 4, err));
    for (unsigned n = 1;; n++) {
        disk.fail_at = disk.calls + n;
        annal_status status = annal__scan_next_head(&scan, &event, NULL);
        disk.fail_at = 0;
        if (status == ANNAL_OK)
            break;
        ck_assert_int_eq(status, ANNAL_ERR_DISK);
        ck_assert_uint_lt(n, 100);
    }
    ck_assert_uint_eq(event.seq, 4);
    annal__scan_done(&scan);
}
END_TEST

/* ---- msgpack ---- */

static void set_up_msgpack(void)
{
    set_up_format(ANNAL_FORMAT_MSGPACK);
}

START_TEST(an_event_of_msgpack_is_read_whole)
{
    ck_heads(true);
}
END_TEST

Suite *suite_scan_long(void)
{
    Suite *suite = suite_create("scan_long");
    TCase *json = suite_case(suite, "json", set_up, tear_down);
    tcase_add_test(json, the_data_of_a_long_event_is_read_in_pieces);
    tcase_add_test(json, heads_and_whole_events_may_be_read_in_turn);
    tcase_add_test(json, memory_does_not_grow_with_an_event);
    tcase_add_test(json, seeking_and_finding_the_end_hold_no_long_event);
    tcase_add_test(json, a_scan_without_data_finds_the_same_damage);
    tcase_add_test(json, a_long_event_that_fails_to_load_is_read_by_the_next_call);
    TCase *msgpack = suite_case(suite, "msgpack", set_up_msgpack, tear_down);
    tcase_add_test(msgpack, an_event_of_msgpack_is_read_whole);
    return suite;
}
