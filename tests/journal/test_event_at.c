#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/tmpdir.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS 30

struct place {
    uint64_t offset, length;
};

static struct tmpdir dir;
static struct failing_io disk;
static annal_store *store;
static struct place places[EVENTS + 1];
static annal_event_buffer *buffer;

static void note_place(void *arg, const annal_event *event)
{
    struct place *noted = arg;
    noted[event->seq] = (struct place){event->offset, event->length};
}

static void set_up(void)
{
    TMPDIR_INIT(&dir);
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
    annal_event_buffer_free(buffer);
    store_close(store);
    tmpdir_done(&dir);
}

static annal_status read_at(const char *session, uint64_t seq, annal_event *event)
{
    return annal_event_read_at(store, annal_slice_of(session), seq, places[seq].offset,
                               places[seq].length, &buffer, event, NULL);
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

START_TEST(a_journal_that_is_another_one_now_is_opened_anew)
{
    annal_event event;
    ck_assert_int_eq(read_at("s", 7, &event), ANNAL_OK);
    ck_ok(annal_session_delete(store, ANNAL_SLICE("s"), NULL, err));
    ck_assert_int_eq(read_at("s", 7, &event), ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(read_at("t", 7, &event), ANNAL_OK);
    append_numbers(store, "s", 8, 8, ANNAL_LEVEL_OS);
    ck_assert_int_eq(read_at("s", 7, &event), ANNAL_ERR_CORRUPT);
    read_session(store, "s", note_place, places);
    ck_assert_int_eq(read_at("s", 1, &event), ANNAL_OK);
    ck_assert_uint_eq(event_number(&event), 8);
}
END_TEST

Suite *suite_event_at(void)
{
    Suite *suite = suite_create("event_at");
    TCase *places_case = tcase_create("places");
    tcase_add_checked_fixture(places_case, set_up, tear_down);
    tcase_add_test(places_case, events_of_one_session_are_read_through_one_open_journal);
    tcase_add_test(places_case, a_journal_that_is_another_one_now_is_opened_anew);
    suite_add_tcase(suite, places_case);
    return suite;
}
