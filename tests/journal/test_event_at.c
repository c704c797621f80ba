/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/delete.h"
#include "journal/sys/event_at.h"
#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS 30

struct place {
    uint64_t offset, length;
};

static struct failing_io disk;
static annal_store *store;
static struct place places[EVENTS + 1];
static annal__event_buffer *buffer;

static void note_place(void *arg, const annal_event *event)
{
    struct place *noted = arg;
    noted[event->seq] = (struct place){event->offset, event->length};
}

static void set_up(void)
{
    tmpdir_setup();
    failing_io_init(&disk);
    disk.only = "open";
    store = store_open_seams(tmpdir_path(&dir, "store"),
                             &(struct seams){&disk.io, &annal__system_clock, NULL});
    append_numbers(store, "s", 1, EVENTS, ANNAL_LEVEL_OS);
    append_numbers(store, "t", 1, EVENTS, ANNAL_LEVEL_OS);
    read_session(store, "s", note_place, places);
    buffer = NULL;
}

static void tear_down(void)
{
    annal__event_buffer_free(buffer);
    store_close(store);
    tmpdir_teardown();
}

static annal_status read_at(const char *session, uint64_t seq, annal_event *event)
{
    return annal__event_read_at(store, annal_slice_of(session), seq, places[seq].offset,
                                places[seq].length, &buffer, event, NULL);
}

static void spoil_event(uint64_t seq)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/events/s.jsonl", annal_store_path(store));
    int fd = annal__system_io.open(NULL, path, O_WRONLY, 0);
    ck_assert_int_eq(annal__io_write_all(&annal__system_io, fd, "!", 1, places[seq].offset + 20),
                     0);
    annal__system_io.close(NULL, fd);
}

START_TEST(events_of_one_session_are_read_through_one_open_journal)
{
    annal_event event;
    ck_assert_int_eq(read_at("s", 1, &event), ANNAL_OK);
    unsigned opened = disk.calls;
    for (uint64_t seq = 1; seq <= EVENTS; seq++) {
        ck_assert_int_eq(read_at("s", seq, &event), ANNAL_OK);
        ck_assert_uint_eq(event_number(&event), seq);
    }
    ck_assert_uint_eq(disk.calls, opened);
    for (uint64_t seq = 1; seq <= EVENTS; seq++) {
        ck_assert_int_eq(read_at(seq % 2 == 0 ? "s" : "t", seq, &event), ANNAL_OK);
        ck_assert_uint_eq(event_number(&event), seq);
    }
}
END_TEST

START_TEST(a_replaced_journal_is_opened_again)
{
    annal_event event;
    ck_assert_int_eq(read_at("s", 7, &event), ANNAL_OK);
    ck_ok(delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    ck_assert_int_eq(read_at("s", 7, &event), ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(read_at("t", 7, &event), ANNAL_OK);
    append_numbers(store, "s", 8, 8, ANNAL_LEVEL_OS);
    ck_assert_int_eq(read_at("s", 7, &event), ANNAL_ERR_CORRUPT);
    read_session(store, "s", note_place, places);
    ck_assert_int_eq(read_at("s", 1, &event), ANNAL_OK);
    ck_assert_uint_eq(event_number(&event), 8);
}
END_TEST

static unsigned open_files(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static size_t read_ahead(const char *session, uint64_t first, size_t count)
{
    annal__event_place asked[EVENTS];
    for (size_t i = 0; i < count; i++)
        asked[i] = (annal__event_place){annal_slice_of(session), places[first + i].offset,
                                        places[first + i].length};
    return annal__event_read_ahead(store, asked, count, &buffer);
}

/* Of one journal, and then of two in turn. */
START_TEST(announced_events_are_read_with_one_call)
{
    annal_event event;
    annal__event_place asked[2 * EVENTS];
    disk.only = "pread";
    unsigned before = disk.calls;
    ck_assert_uint_eq(read_ahead("s", 1, EVENTS), EVENTS);
    unsigned calls = disk.calls - before;
    ck_assert_uint_le(calls, 2);                      /* one, and one that waits */
    for (uint64_t seq = 1; seq <= EVENTS; seq += 2) { /* and some are not wanted after all */
        ck_assert_int_eq(read_at("s", seq, &event), ANNAL_OK);
        ck_assert_uint_eq(event_number(&event), seq);
    }
    ck_assert_uint_eq(disk.calls - before, calls);

    for (size_t i = 0; i < 2 * EVENTS; i++)
        asked[i] =
            (annal__event_place){annal_slice_of(i % 2 == 0 ? "s" : "t"),
                                 places[EVENTS - i / 2].offset, places[EVENTS - i / 2].length};
    ck_assert_uint_eq(annal__event_read_ahead(store, asked, 2 * EVENTS, &buffer), 2 * EVENTS);
    before = disk.calls;
    for (size_t i = 0; i < 2 * EVENTS; i++) {
        uint64_t seq = EVENTS - i / 2;
        ck_assert_int_eq(read_at(i % 2 == 0 ? "s" : "t", seq, &event), ANNAL_OK);
        ck_assert_uint_eq(event_number(&event), seq);
    }
    ck_assert_uint_eq(disk.calls, before);
}
END_TEST

/* Also after an event that was skipped; damage in the piece does not affect the events after it. */
START_TEST(events_that_are_read_in_order_are_read_together)
{
    annal_event event;
    disk.only = "pread";
    unsigned before = disk.calls;
    for (uint64_t seq = 1; seq <= EVENTS; seq += seq == 9 ? 2 : 1) {
        ck_assert_int_eq(read_at("s", seq, &event), ANNAL_OK);
        ck_assert_uint_eq(event_number(&event), seq);
    }
    ck_assert_uint_le(disk.calls - before, 5);
    ck_assert_int_eq(read_at("s", 5, &event), ANNAL_OK);
    ck_assert_uint_eq(event_number(&event), 5);

    annal__event_buffer_free(buffer);
    buffer = NULL;
    spoil_event(7);
    for (uint64_t seq = 1; seq <= EVENTS; seq++)
        ck_assert_int_eq(read_at("s", seq, &event), seq == 7 ? ANNAL_ERR_CORRUPT : ANNAL_OK);
}
END_TEST

START_TEST(a_piece_of_a_journal_that_was_replaced_is_read_again_after_its_end)
{
    annal_event event;
    for (uint64_t seq = 1; seq <= 3; seq++)
        ck_assert_int_eq(read_at("s", seq, &event), ANNAL_OK);
    ck_ok(delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    ck_assert_int_eq(read_at("t", 1, &event), ANNAL_OK);
    ck_assert_int_eq(read_at("s", 4, &event), ANNAL_ERR_NOTFOUND);
}
END_TEST

START_TEST(unannounced_events_are_read_too)
{
    annal_event event;
    ck_assert_uint_eq(read_ahead("s", 1, 10), 10);
    ck_assert_int_eq(read_at("t", 3, &event), ANNAL_OK);
    ck_assert_int_eq(read_at("s", 20, &event), ANNAL_OK);
    ck_assert_uint_eq(event_number(&event), 20);
    ck_assert_int_eq(read_at("s", 4, &event), ANNAL_OK);
    ck_assert_uint_eq(event_number(&event), 4);
    ck_assert_uint_eq(read_ahead("none", 1, 10), 0);
    ck_assert_int_eq(read_at("none", 1, &event), ANNAL_ERR_NOTFOUND);
}
END_TEST

/* A place that is in no journal, one that is not a place of an event, one that is too long. */
START_TEST(wrong_offsets_do_not_affect_the_events_beside_them)
{
    annal_event event;
    const annal_slice s = ANNAL_SLICE("s");
    const annal__event_place asked[] = {{s, places[1].offset, places[1].length},
                                        {s, places[EVENTS].offset, 100000},
                                        {s, places[2].offset + 1, places[2].length},
                                        {s, places[2].offset, places[2].length}};
    const annal__event_place huge = {s, places[1].offset, UINT64_MAX}, first = {s, 0, 10};
    ck_assert_uint_eq(annal__event_read_ahead(store, asked, 4, &buffer), 4);
    ck_assert_int_eq(read_at("s", 1, &event), ANNAL_OK);
    ck_assert_int_eq(annal__event_read_at(store, s, EVENTS, asked[1].offset, asked[1].length,
                                          &buffer, &event, NULL),
                     ANNAL_ERR_CORRUPT);
    ck_assert_int_eq(
        annal__event_read_at(store, s, 2, asked[2].offset, asked[2].length, &buffer, &event, NULL),
        ANNAL_ERR_CORRUPT);
    ck_assert_int_eq(read_at("s", 2, &event), ANNAL_OK);
    ck_assert_uint_eq(event_number(&event), 2);
    ck_assert_uint_eq(annal__event_read_ahead(store, &huge, 1, &buffer), 0);
    ck_assert_uint_eq(annal__event_read_ahead(store, &first, 1, &buffer), 0);
}
END_TEST

START_TEST(read_ahead_finds_damage_and_the_event_after_it)
{
    annal_event event;
    spoil_event(5);
    ck_assert_uint_eq(read_ahead("s", 1, EVENTS), EVENTS);
    for (uint64_t seq = 1; seq <= EVENTS; seq++) {
        ck_assert_int_eq(read_at("s", seq, &event), seq == 5 ? ANNAL_ERR_CORRUPT : ANNAL_OK);
        if (seq != 5)
            ck_assert_uint_eq(event_number(&event), seq);
    }
}
END_TEST

START_TEST(a_replaced_journal_is_read_ahead_again)
{
    annal_event event;
    ck_assert_uint_eq(read_ahead("s", 1, 3), 3);
    ck_ok(delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    ck_assert_uint_eq(read_ahead("s", 1, 3), 0);
    append_numbers(store, "s", 8, 12, ANNAL_LEVEL_OS);
    ck_assert_uint_eq(read_ahead("s", 2, 3), 3);
    ck_assert_int_eq(read_at("s", 7, &event), ANNAL_ERR_CORRUPT);
    read_session(store, "s", note_place, places);
    ck_assert_uint_eq(read_ahead("s", 1, 3), 3);
    ck_assert_int_eq(read_at("s", 1, &event), ANNAL_OK);
    ck_assert_uint_eq(event_number(&event), 8);
}
END_TEST

/* More sessions than a buffer keeps open; each event is from a different session. */
START_TEST(a_buffer_keeps_a_bounded_number_of_journals_open)
{
    enum { MANY = 300 };
    static char names[MANY][16];
    annal__event_place asked[MANY];
    annal_event event;
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "m%zu", i);
        append_numbers(store, names[i], 1, 1, ANNAL_LEVEL_OS);
        asked[i] = (annal__event_place){annal_slice_of(names[i]), 0, 0};
    }
    for (size_t i = 0; i < MANY; i++) {
        struct place noted[2];
        read_session(store, names[i], note_place, noted);
        asked[i].offset = noted[1].offset;
        asked[i].length = noted[1].length;
    }
    unsigned before = open_files(); /* includes the files of writers */
    for (size_t i = 0, taken = 0; i < MANY; i++) {
        if (taken == 0)
            taken = annal__event_read_ahead(store, asked + i, MANY - i, &buffer);
        ck_assert_uint_gt(taken, 0);
        taken--;
        ck_assert_int_eq(annal__event_read_at(store, asked[i].session, 1, asked[i].offset,
                                              asked[i].length, &buffer, &event, NULL),
                         ANNAL_OK);
    }
    ck_assert_uint_le(open_files(), before + 128);
}
END_TEST

/* The journals that are kept open give way where descriptors are short. */
START_TEST(a_shortage_of_descriptors_closes_kept_journals)
{
    annal_event event;
    ck_assert_int_eq(read_at("s", 1, &event), ANNAL_OK);
    disk.only = "open";
    disk.with_errno = EMFILE;
    disk.fail_at = disk.calls + 1;
    ck_assert_int_eq(read_at("t", 1, &event), ANNAL_OK);
    ck_assert_uint_eq(event_number(&event), 1);
}
END_TEST

Suite *suite_event_at(void)
{
    Suite *suite = suite_create("event_at");
    TCase *places_case = suite_case(suite, "places", set_up, tear_down);
    tcase_add_test(places_case, events_of_one_session_are_read_through_one_open_journal);
    tcase_add_test(places_case, a_replaced_journal_is_opened_again);
    tcase_add_test(places_case, announced_events_are_read_with_one_call);
    tcase_add_test(places_case, unannounced_events_are_read_too);
    tcase_add_test(places_case, wrong_offsets_do_not_affect_the_events_beside_them);
    tcase_add_test(places_case, events_that_are_read_in_order_are_read_together);
    tcase_add_test(places_case, a_piece_of_a_journal_that_was_replaced_is_read_again_after_its_end);
    tcase_add_test(places_case, read_ahead_finds_damage_and_the_event_after_it);
    tcase_add_test(places_case, a_replaced_journal_is_read_ahead_again);
    tcase_add_test(places_case, a_buffer_keeps_a_bounded_number_of_journals_open);
    tcase_add_test(places_case, a_shortage_of_descriptors_closes_kept_journals);
    return suite;
}
