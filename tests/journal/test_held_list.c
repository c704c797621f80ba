/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/held_list.h"

#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <stdio.h>
#include <sys/stat.h>

static struct held held;
static struct stat log_file = {.st_dev = 3, .st_ino = 77};
static const uint8_t boot[16] = "this boot";

static void set_up(void)
{
    tmpdir_setup();
    ck_ok(annal__held_open(&annal__system_io, tmpdir_path(&dir, "00.held"), true, &held, err));
    annal__held_clear(&held);
}

static void tear_down(void)
{
    annal__held_close(&held);
    tmpdir_teardown();
}

static annal_slice name(char out[24], unsigned number)
{
    return (annal_slice){out, (size_t)snprintf(out, 24, "session-%u", number)};
}

START_TEST(a_list_is_valid_for_one_boot_and_one_log)
{
    static const uint8_t other_boot[16] = "other boot";
    struct stat other = log_file;
    ck_assert(!annal__held_is_for(&held, boot, &log_file)); /* rule (5): not before it is bound */
    annal__held_bind(&held, boot, &log_file);
    ck_assert(annal__held_is_for(&held, boot, &log_file));
    ck_assert(!annal__held_is_for(&held, other_boot, &log_file));
    other.st_ino++;
    ck_assert(!annal__held_is_for(&held, boot, &other));
    other = log_file;
    other.st_dev++;
    ck_assert(!annal__held_is_for(&held, boot, &other));
    annal__held_clear(&held);
    ck_assert(!annal__held_is_for(&held, boot, &log_file));
}
END_TEST

START_TEST(a_list_is_valid_for_both_logs_while_the_log_is_replaced)
{
    struct stat next = log_file;
    next.st_ino++;
    annal__held_bind(&held, boot, &log_file);
    annal__held_bind_next(&held, &next);
    ck_assert(annal__held_is_for(&held, boot, &log_file));
    ck_assert(annal__held_is_for(&held, boot, &next));
    annal__held_bind_done(&held, &next);
    ck_assert(!annal__held_is_for(&held, boot, &log_file));
    ck_assert(annal__held_is_for(&held, boot, &next));
}
END_TEST

START_TEST(a_missing_list_is_empty_and_valid_for_no_log)
{
    struct held none;
    ck_ok(annal__held_open(&annal__system_io, tmpdir_path(&dir, "07.held"), false, &none, err));
    ck_assert_ptr_null(none.header);
    ck_assert(!annal__held_is_for(&none, boot, &log_file));
    ck_assert_int_eq(annal__held_find(&none, ANNAL_SLICE("s")), -1);
    annal__held_close(&none);
}
END_TEST

START_TEST(a_name_is_seen_through_another_map_until_it_is_removed)
{
    struct held other;
    uint32_t index = 99;
    ck_ok(annal__held_open(&annal__system_io, tmpdir_path(&dir, "00.held"), false, &other, err));
    ck_assert_int_eq(annal__held_find(&other, ANNAL_SLICE("s")), -1);
    ck_ok(annal__held_add(&held, ANNAL_SLICE("s"), &index, err));
    ck_assert_int_eq(annal__held_find(&other, ANNAL_SLICE("s")), (int)index);
    ck_assert_int_eq(annal__held_find(&other, ANNAL_SLICE("t")), -1);
    annal_slice id = annal__held_id(annal__held_entry(&other, index));
    ck_assert_uint_eq(id.len, 1);
    ck_assert_int_eq(id.ptr[0], 's');
    annal__held_remove(&held, index);
    ck_assert_int_eq(annal__held_find(&other, ANNAL_SLICE("s")), -1);
    annal__held_close(&other);
}
END_TEST

START_TEST(removing_an_entry_changes_the_futex_word_of_its_waiters)
{
    uint32_t index = 0;
    ck_ok(annal__held_add(&held, ANNAL_SLICE("s"), &index, err));
    struct held_entry *entry = annal__held_entry(&held, index);
    atomic_store(&entry->word, HELD_WANTED);
    annal__held_remove(&held, index);
    ck_assert_uint_ne(atomic_load(&entry->word), HELD_WANTED);
    annal__futex_wait(&entry->word, HELD_WANTED, 1000000000); /* does not sleep */
    ck_ok(annal__held_add(&held, ANNAL_SLICE("t"), &index, err));
    ck_assert_uint_eq(atomic_load(&annal__held_entry(&held, index)->word), HELD_QUIET);
}
END_TEST

START_TEST(a_list_grows_and_keeps_its_entries)
{
    char text[24];
    uint32_t index = 0;
    for (unsigned i = 0; i < 300; i++) {
        ck_ok(annal__held_add(&held, name(text, i), &index, err));
        ck_assert_uint_eq(index, i);
        ck_assert_int_eq(annal__held_find(&held, name(text, i)), (int)i); /* the last one, too */
    }
    ck_assert_uint_ge(annal__held_entries(&held), 300);
    annal__held_remove(&held, 7);
    for (unsigned i = 0; i < 300; i++)
        ck_assert_int_eq(annal__held_find(&held, name(text, i)), i == 7 ? -1 : (int)i);
    /* The search begins after the last entry, or 16,000 sessions would cost the square. */
    uint32_t entries = annal__held_entries(&held);
    for (unsigned i = 300; i < entries; i++) {
        ck_ok(annal__held_add(&held, name(text, i), &index, err));
        ck_assert_uint_eq(index, i);
    }
    ck_ok(annal__held_add(&held, ANNAL_SLICE("again"), &index, err));
    ck_assert_uint_eq(index, 7);
    ck_assert_uint_eq(annal__held_entries(&held), entries);
    annal__held_remove_all(&held);
    for (unsigned i = 0; i < 300; i++)
        ck_assert_int_eq(annal__held_find(&held, name(text, i)), -1);
}
END_TEST

START_TEST(an_impossible_count_or_id_length_is_ignored)
{
    uint32_t index = 0;
    ck_ok(annal__held_add(&held, ANNAL_SLICE("s"), &index, err));
    atomic_store(&held.header->entries, UINT32_MAX);
    ck_assert_uint_eq(annal__held_entries(&held), 64);
    ck_assert_int_eq(annal__held_find(&held, ANNAL_SLICE("t")), -1);
    annal__held_entry(&held, index)->id_bytes = 100000;
    ck_assert_uint_eq(annal__held_id(annal__held_entry(&held, index)).len, 0);
    ck_assert_int_eq(annal__held_find(&held, ANNAL_SLICE("s")), -1);
}
END_TEST

/* An owner that seems to hold nothing loses its sessions to others, or their redo. */
START_TEST(a_list_whose_size_cannot_be_read_does_not_look_empty)
{
    struct tmpdir own;
    struct failing_io disk;
    struct held list = {0};
    uint32_t index = 0;
    tmpdir_init(&own);
    failing_io_init(&disk);
    disk.by_table = true;
    ck_ok(annal__held_open(&disk.io, tmpdir_path(&own, "held"), true, &list, err));
    ck_ok(annal__held_add(&list, ANNAL_SLICE("s"), &index, err));
    disk.fail_at = disk.calls + 1;
    disk.for_good = true;
    ck_assert_uint_eq(annal__held_entries(&list), 64);
    ck_assert_int_eq(annal__held_find(&list, ANNAL_SLICE("s")), 0);
    annal__held_remove_all(&list);
    ck_assert_int_eq(annal__held_find(&list, ANNAL_SLICE("s")), -1);
    annal__held_close(&list);
    tmpdir_done(&own);
}
END_TEST

START_TEST(a_note_survives_the_removal_and_reuse_of_its_entry)
{
    uint32_t index, again = UINT32_MAX;
    char text[24];
    ck_ok(annal__held_add(&held, name(text, 1), &index, err));
    atomic_store(&annal__held_entry(&held, index)->whole, 5);
    annal__held_remove(&held, index);
    for (unsigned i = 2; again != index; i++) {
        ck_assert_uint_le(i, 2 + annal__held_entries(&held));
        ck_ok(annal__held_add(&held, name(text, i), &again, err));
        if (again != index)
            annal__held_remove(&held, again);
    }
    ck_assert(annal__held_has_note(&held, 5));
    ck_assert(!annal__held_has_note(&held, 6));
    ck_assert(!annal__held_has_note(&held, 0)); /* the value of all other entries */
}
END_TEST

Suite *suite_held_list(void)
{
    Suite *suite = suite_create("held_list");
    TCase *tests = suite_case(suite, "held", set_up, tear_down);
    tcase_add_test(tests, a_list_is_valid_for_one_boot_and_one_log);
    tcase_add_test(tests, a_list_is_valid_for_both_logs_while_the_log_is_replaced);
    tcase_add_test(tests, a_note_survives_the_removal_and_reuse_of_its_entry);
    tcase_add_test(tests, a_missing_list_is_empty_and_valid_for_no_log);
    tcase_add_test(tests, a_name_is_seen_through_another_map_until_it_is_removed);
    tcase_add_test(tests, removing_an_entry_changes_the_futex_word_of_its_waiters);
    tcase_add_test(tests, a_list_grows_and_keeps_its_entries);
    tcase_add_test(tests, an_impossible_count_or_id_length_is_ignored);
    tcase_add_test(tests, a_list_whose_size_cannot_be_read_does_not_look_empty);
    return suite;
}
