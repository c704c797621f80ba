/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/seam.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct remarks {
    unsigned count;
    char last[600];
};

static void note_remark(void *arg, annal_log_level level, const char *message)
{
    struct remarks *remarks = arg;
    if (level != ANNAL_LOG_WARNING)
        return;
    remarks->count++;
    snprintf(remarks->last, sizeof remarks->last, "%s", message);
}

static annal_store *open_to_read(const char *path, struct remarks *remarks)
{
    annal_store *store = NULL;
    *remarks = (struct remarks){0};
    ck_ok(annal_store_open(
        path, &(annal_store_options){.read_only = true, .log = note_remark, .log_arg = remarks},
        &store, err));
    return store;
}

/* Of s the last two events are not in the journal, of t nothing is, of u all is. */
static void leave_behind(const char *path)
{
    annal_session_info info;
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &info, err));
    append_numbers(store, "s", 4, 5, ANNAL_LEVEL_SYNC);
    append_numbers(store, "t", 1, 2, ANNAL_LEVEL_SYNC);
    append_numbers(store, "u", 1, 2, ANNAL_LEVEL_SYNC);
    store_abandon(store);
    ck_assert_int_eq(truncate(tmpdir_path(&dir, "store/events/s.jsonl"), (off_t)info.end_offset),
                     0);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/events/t.jsonl")), 0);
}

START_TEST(a_read_only_open_reports_how_many_durable_events_it_cannot_show)
{
    struct remarks remarks;
    const char *path = tmpdir_path(&dir, "store");
    leave_behind(path);
    annal_store *store = open_to_read(path, &remarks);
    ck_assert_uint_eq(remarks.count, 1);
    ck_assert_ptr_nonnull(strstr(remarks.last, "4 durable events of 2 sessions are still only"));
    ck_assert_ptr_nonnull(strstr(remarks.last, "s from 4 to 5"));
    ck_assert_ptr_nonnull(strstr(remarks.last, "t from 1 to 2"));
    ck_numbers(store, "s", 3);
    ck_numbers(store, "u", 2);
    store_close(store);

    store_close(store_open(path)); /* redoes them */
    store = open_to_read(path, &remarks);
    ck_assert_msg(remarks.count == 0, "%s", remarks.last);
    ck_numbers(store, "s", 5);
    ck_numbers(store, "t", 2);
    store_close(store);
}
END_TEST

START_TEST(running_writers_deleted_sessions_and_complete_journals_give_no_warning)
{
    struct remarks remarks;
    annal_session_info info;
    char tombstone[512];
    const char *path = tmpdir_path(&dir, "store");
    annal_store *writer = store_open(path);
    append_numbers(writer, "s", 1, 3, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_info_get(writer, ANNAL_SLICE("s"), &info, err));
    store_close(open_to_read(path, &remarks));
    ck_assert_msg(remarks.count == 0, "%s", remarks.last);
    store_abandon(writer);
    store_close(open_to_read(path, &remarks)); /* both the log and the journal have the event */
    ck_assert_msg(remarks.count == 0, "%s", remarks.last);

    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    ck_assert_int_eq(unlink(journal), 0);
    store_close(open_to_read(path, &remarks));
    ck_assert_uint_eq(remarks.count, 1);
    snprintf(tombstone, sizeof tombstone, "store/events/.gone/%s", info.file);
    ck_ok(annal__io_make_dir(&annal__system_io, tmpdir_path(&dir, "store/events/.gone"), err));
    file_write(tmpdir_path(&dir, tombstone), "", 0);
    store_close(open_to_read(path, &remarks));
    ck_assert_msg(remarks.count == 0, "%s", remarks.last);
}
END_TEST

START_TEST(a_warning_uses_the_singular_for_one_event_and_names_the_first_sessions)
{
    for (unsigned sessions = 1; sessions <= 9; sessions += 8) {
        struct remarks remarks;
        const char *path = tmpdir_path(&dir, "store");
        annal_store *store = store_open(path);
        for (unsigned i = 0; i < sessions; i++) {
            char name[32];
            snprintf(name, sizeof name, "s%u", i);
            append_numbers(store, name, 1, 1, ANNAL_LEVEL_SYNC);
        }
        store_abandon(store);
        for (unsigned i = 0; i < sessions; i++) {
            char name[64];
            snprintf(name, sizeof name, "store/events/s%u.jsonl", i);
            ck_assert_int_eq(unlink(tmpdir_path(&dir, name)), 0);
        }
        store_close(open_to_read(path, &remarks));
        ck_assert_uint_eq(remarks.count, 1);
        ck_assert_msg(strstr(remarks.last, sessions == 1
                                               ? "1 durable event of 1 session is still only"
                                               : "9 durable events of 9 sessions are still only"),
                      "%s", remarks.last);
        ck_assert((strstr(remarks.last, ", …;") != NULL) == (sessions > 1));
        tmpdir_renew();
    }
}
END_TEST

START_TEST(a_store_is_settled_when_every_durable_event_is_in_its_journal)
{
    annal_store *store = NULL;
    annal_error why = {0};
    const char *path = tmpdir_path(&dir, "store");
    leave_behind(path);
    ck_ok(annal_store_open(path, &(annal_store_options){.read_only = true, .wait_ms = 1}, &store,
                           err));
    ck_assert_int_eq(annal__unapplied_settle(store, &why), ANNAL_ERR_BUSY);
    ck_assert_ptr_nonnull(strstr(why.message, "s from 4 to 5"));
    store_close(store);
    store = store_open(path); /* redoes them */
    append_numbers(store, "s", 6, 7, ANNAL_LEVEL_SYNC);
    ck_ok(annal__unapplied_settle(store, err));
    store_close(store);
}
END_TEST

Suite *suite_unapplied(void)
{
    Suite *suite = suite_create("unapplied");
    TCase *unseen = suite_case(suite, "unseen", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(unseen, a_read_only_open_reports_how_many_durable_events_it_cannot_show);
    tcase_add_test(unseen, running_writers_deleted_sessions_and_complete_journals_give_no_warning);
    tcase_add_test(unseen, a_warning_uses_the_singular_for_one_event_and_names_the_first_sessions);
    tcase_add_test(unseen, a_store_is_settled_when_every_durable_event_is_in_its_journal);
    return suite;
}
