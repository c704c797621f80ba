/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/cursor.h"
#include "journal/sys/event_at.h"
#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static annal_store *store;

static void setup(void)
{
    tmpdir_setup();
    store = store_open(tmpdir_path(&dir, "store"));
    append_numbers(store, "s", 1, 50, ANNAL_LEVEL_BATCH);
    ck_ok(annal_store_checkpoint(store, err));
}

static void teardown(void)
{
    store_close(store);
    tmpdir_teardown();
}

START_TEST(a_cursor_starts_at_any_event_and_continues_after_appends)
{
    for (uint64_t from = 0; from <= 51; from++) {
        annal_cursor *cursor = NULL;
        annal_event event;
        ck_ok(annal_cursor_open(store, ANNAL_SLICE("s"), from, &cursor, err));
        for (uint64_t seq = from == 0 ? 1 : from; seq <= 50; seq++) {
            ck_ok(annal_cursor_next(cursor, &event, err));
            ck_assert_uint_eq(event.seq, seq);
            ck_assert_uint_eq(event_number(&event), seq);
        }
        ck_assert_int_eq(annal_cursor_next(cursor, &event, NULL), ANNAL_END);
        annal_cursor_close(cursor);
    }
    annal_cursor *cursor = NULL;
    annal_event event;
    ck_ok(annal_cursor_open(store, ANNAL_SLICE("s"), 52, &cursor, err));
    for (uint64_t number = 51; number <= 53; number++) {
        append_numbers(store, "s", number, number, ANNAL_LEVEL_SYNC);
        annal_status status = annal_cursor_next(cursor, &event, NULL);
        ck_assert_int_eq(status, number < 52 ? ANNAL_END : ANNAL_OK);
        ck_assert(status == ANNAL_END || event.seq == number);
    }
    annal_cursor_close(cursor);
}
END_TEST

START_TEST(a_rested_cursor_continues_at_its_event)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    ck_ok(annal_cursor_open(store, ANNAL_SLICE("s"), 3, &cursor, err));
    for (uint64_t seq = 3; seq <= 50; seq++) {
        annal__cursor_rest(cursor);
        ck_ok(annal_cursor_next(cursor, &event, err));
        ck_assert_uint_eq(event.seq, seq);
    }
    annal__cursor_rest(cursor);
    ck_assert_int_eq(annal_cursor_next(cursor, &event, NULL), ANNAL_END);
    annal__cursor_rest(cursor);
    append_numbers(store, "s", 51, 51, ANNAL_LEVEL_SYNC);
    ck_ok(annal_cursor_next(cursor, &event, err));
    ck_assert_uint_eq(event.seq, 51);
    annal_cursor_close(cursor);
}
END_TEST

START_TEST(an_open_cursor_seeks_any_event_and_the_last_events)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    ck_ok(annal_cursor_open(store, ANNAL_SLICE("s"), 20, &cursor, err));
    for (uint64_t seq = 50; seq > 0; seq--) {
        ck_ok(annal_cursor_seek(cursor, seq, err));
        ck_ok(annal_cursor_next(cursor, &event, err));
        ck_assert_uint_eq(event.seq, seq);
    }
    for (uint64_t count = 1; count <= 52; count++) {
        uint64_t first = count < 50 ? 51 - count : 1;
        ck_ok(annal_cursor_last(cursor, count, err));
        for (uint64_t seq = first; seq <= 50; seq++) {
            ck_ok(annal_cursor_next(cursor, &event, err));
            ck_assert_uint_eq(event.seq, seq);
        }
        ck_assert_int_eq(annal_cursor_next(cursor, &event, NULL), ANNAL_END);
    }
    ck_ok(annal_cursor_seek(cursor, 0, err));
    ck_ok(annal_cursor_next(cursor, &event, err));
    ck_assert_uint_eq(event.seq, 1);
    ck_ok(annal_cursor_last(cursor, 0, err));
    ck_assert_int_eq(annal_cursor_next(cursor, &event, NULL), ANNAL_END);
    append_numbers(store, "s", 51, 51, ANNAL_LEVEL_SYNC);
    ck_ok(annal_cursor_next(cursor, &event, err));
    ck_assert_uint_eq(event.seq, 51);
    annal_cursor_close(cursor);
}
END_TEST

START_TEST(a_cursor_opens_at_a_saved_position_and_detects_a_stale_position)
{
    annal_cursor *cursor = NULL, *again = NULL;
    annal_event event;
    ck_ok(annal_cursor_open(store, ANNAL_SLICE("s"), 1, &cursor, err));
    for (uint64_t seq = 1; seq <= 50; seq++) {
        annal_position here = annal_cursor_position(cursor);
        if (seq > 1) {
            ck_ok(annal_cursor_open_at(store, ANNAL_SLICE("s"), here.seq, here.offset,
                                       here.h_before, &again, err));
            ck_ok(annal_cursor_next(again, &event, err));
            ck_assert_uint_eq(event.seq, seq);
            annal_cursor_close(again);
            ck_status(ANNAL_ERR_CONFLICT,
                      annal_cursor_open_at(store, ANNAL_SLICE("s"), here.seq, here.offset,
                                           here.h_before ^ 1, &again, err));
            ck_status(ANNAL_ERR_CONFLICT,
                      annal_cursor_open_at(store, ANNAL_SLICE("s"), here.seq, here.offset + 1,
                                           here.h_before, &again, err));
        }
        ck_ok(annal_cursor_next(cursor, &event, err));
    }
    annal_cursor_close(cursor);
    ck_status(ANNAL_ERR_NOTFOUND, annal_cursor_open(store, ANNAL_SLICE("none"), 1, &cursor, err));
}
END_TEST

struct place {
    uint64_t offset, length;
};

static void note_place(void *arg, const annal_event *event)
{
    struct place *places = arg;
    places[event->seq] = (struct place){event->offset, event->length};
}

/* The line before event 20 is damaged, so event 20 cannot be proven by it alone. */
START_TEST(an_event_is_read_at_its_offset_even_after_damage_and_never_a_wrong_event)
{
    struct place places[51];
    annal__event_buffer *bytes = NULL;
    annal_event event;
    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    read_session(store, "s", note_place, places);
    size_t len;
    char *all = file_read(journal, &len);
    all[places[20].offset - 10] = '#'; /* in the hash of event 19 */
    all[places[30].offset + 60] ^= 1;
    file_write(journal, all, len);
    free(all);
    for (uint64_t seq = 1; seq <= 50; seq++) {
        annal_status expected = seq == 30 ? ANNAL_ERR_CORRUPT : ANNAL_OK;
        annal_status status = annal__event_read_at(store, ANNAL_SLICE("s"), seq, places[seq].offset,
                                                   places[seq].length, &bytes, &event, NULL);
        ck_assert_msg(status == expected || (seq == 19 && status == ANNAL_ERR_CORRUPT),
                      "event %d: %s", (int)seq, annal_status_name(status));
        if (status == ANNAL_OK)
            ck_assert_uint_eq(event_number(&event), seq);
        ck_status(ANNAL_ERR_CORRUPT,
                  annal__event_read_at(store, ANNAL_SLICE("s"), seq + 1, places[seq].offset,
                                       places[seq].length, &bytes, &event, err));
        ck_status(ANNAL_ERR_CORRUPT,
                  annal__event_read_at(store, ANNAL_SLICE("s"), seq, places[seq].offset + 1,
                                       places[seq].length, &bytes, &event, err));
    }
    annal__event_buffer_free(bytes);
}
END_TEST

START_TEST(an_unreadable_position_is_not_reported_as_stale)
{
    struct failing_io disk;
    annal_store *failing = NULL;
    annal_cursor *cursor = NULL;
    annal_event event;
    failing_io_init(&disk);
    disk.with_errno = EIO;
    const struct seams seams = {&disk.io, &annal__system_clock, NULL};
    const annal_store_options options = {.read_only = true};
    ck_ok(annal__store_open(tmpdir_path(&dir, "store"), &options, &seams, &failing, err));
    ck_ok(annal_cursor_open(failing, ANNAL_SLICE("s"), 1, &cursor, err));
    ck_ok(annal_cursor_next(cursor, &event, err));
    annal_position here = annal_cursor_position(cursor);
    annal_cursor_close(cursor);
    disk.fail_at = disk.calls + 2; /* open, then the read */
    ck_status(ANNAL_ERR_DISK, annal_cursor_open_at(failing, ANNAL_SLICE("s"), here.seq, here.offset,
                                                   here.h_before, &cursor, err));
    ck_ok(annal_cursor_open_at(failing, ANNAL_SLICE("s"), here.seq, here.offset, here.h_before,
                               &cursor, err));
    annal_cursor_close(cursor);
    store_close(failing);
}
END_TEST

Suite *suite_cursor(void)
{
    Suite *suite = suite_create("cursor");
    TCase *cursors = suite_case(suite, "cursor", setup, teardown);
    tcase_add_test(cursors, a_cursor_starts_at_any_event_and_continues_after_appends);
    tcase_add_test(cursors, a_rested_cursor_continues_at_its_event);
    tcase_add_test(cursors, an_open_cursor_seeks_any_event_and_the_last_events);
    tcase_add_test(cursors, a_cursor_opens_at_a_saved_position_and_detects_a_stale_position);
    tcase_add_test(cursors, an_unreadable_position_is_not_reported_as_stale);
    tcase_add_test(cursors,
                   an_event_is_read_at_its_offset_even_after_damage_and_never_a_wrong_event);
    return suite;
}
