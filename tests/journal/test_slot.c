/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/slot.h"

#include "journal/base/alloc.h"

#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path;

static void set_up(void)
{
    tmpdir_setup();
    path = tmpdir_path(&dir, "store");
}

/* A store object that does not wait for others. */
static annal_store *open_hasty(const struct seams *seams)
{
    static const struct seams system = {.io = &annal__system_io, .clock = &annal__system_clock};
    const annal_store_options options = {.no_keeper = true, .wait_ms = 60};
    annal_store *store = NULL;
    ck_ok(annal__store_open(path, &options, seams == NULL ? &system : seams, &store, err));
    return store;
}

static bool is_there(const char *name)
{
    return access(tmpdir_path(&dir, name), F_OK) == 0;
}

/* That the append is answered so, with a message that names all of these. */
static void ck_refused(annal_store *store, const char *session, annal_status expected,
                       const char *word, const char *other_word)
{
    annal_error err = {0};
    uint64_t seq;
    annal_status status = append_number(store, session, 9, 20, ANNAL_LEVEL_SYNC, &seq, &err);
    ck_assert_msg(status == expected, "%s: %s", annal_status_name(status), err.message);
    ck_assert_msg(strstr(err.message, word) != NULL && strstr(err.message, other_word) != NULL,
                  "%s", err.message);
}

/* ---- Claiming ---- */

START_TEST(each_writer_has_its_own_slot_and_the_lowest_empty_slot_is_reused)
{
    annal_store *a = store_open(path), *b = store_open(path);
    append_numbers(a, "a", 1, 1, ANNAL_LEVEL_SYNC);
    append_numbers(b, "b", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(a->own_log.number, 0);
    ck_assert_uint_eq(b->own_log.number, 1);
    store_close(a);
    annal_store *c = store_open(path);
    append_numbers(c, "c", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(c->own_log.number, 0);
    store_close(b);
    store_close(c);
    ck_assert(!is_there("store/commit/02.log"));
}
END_TEST

/* The number of the last group in a log without a writer. */
static uint64_t last_group_in(const char *log_path)
{
    struct log log = {.fd = -1};
    struct log_group *groups = NULL;
    size_t count = 0;
    ck_ok(annal__log_open(&annal__system_io, log_path, false, &log, err));
    ck_ok(annal__log_find_groups(&log, &groups, &count, err));
    ck_assert_uint_gt(count, 0);
    uint64_t last = groups[count - 1].group;
    annal__free(groups);
    annal__log_close(&log);
    return last;
}

START_TEST(an_empty_slot_continues_in_a_new_epoch_after_its_last_group)
{
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 4, ANNAL_LEVEL_SYNC);
    uint64_t group = store->own_log.log.group, epoch = store->own_log.log.epoch;
    ck_assert_uint_ge(group, 4);
    store_close(store);
    uint64_t last = last_group_in(tmpdir_path(&dir, "store/commit/00.log"));
    ck_assert_uint_gt(last, group); /* one says that all is released */
    store = store_open(path);
    append_numbers(store, "s", 5, 5, ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(store->own_log.log.group, last + 1);
    ck_assert_uint_gt(store->own_log.log.epoch, epoch);
    store_abandon(store);
    store = store_open(path); /* and what it says is newer than all that stood there */
    ck_numbers(store, "s", 5);
    store_close(store);
}
END_TEST

START_TEST(slots_from_8_on_are_removed_when_they_are_empty)
{
    annal_store *stores[10];
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        stores[i] = store_open(path);
        append_numbers(stores[i], name, 1, 1, ANNAL_LEVEL_SYNC);
    }
    ck_assert(is_there("store/commit/09.log") && is_there("store/locks/09.held"));
    store_abandon(stores[9]); /* recovery removes this slot */
    for (int i = 0; i < 9; i++)
        store_close(stores[i]);
    annal_store *store = store_open(path);
    ck_numbers(store, "s9", 1);
    store_close(store);
    ck_assert(is_there("store/commit/07.log") && is_there("store/locks/07.held"));
    ck_assert(!is_there("store/commit/08.log") && !is_there("store/locks/08.held"));
    ck_assert(!is_there("store/commit/09.log") && !is_there("store/locks/09.held"));
}
END_TEST

START_TEST(the_slot_of_a_dead_process_is_recovered_before_it_is_claimed)
{
    annal_store *dead = store_open(path), *heir = store_open(path);
    append_numbers(dead, "s", 1, 3, ANNAL_LEVEL_SYNC);
    store_abandon(dead);
    ck_assert_int_eq(truncate(tmpdir_path(&dir, "store/events/s.jsonl"), 0), 0);
    append_numbers(heir, "t", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(heir->own_log.number, 0);
    ck_numbers(heir, "s", 3);
    store_close(heir);
}
END_TEST

START_TEST(an_unfinished_log_file_is_removed_after_an_hour)
{
    static const struct timespec long_ago[2] = {{1000000, 0}, {1000000, 0}};
    store_close(store_open(path));
    file_write(tmpdir_path(&dir, "store/commit/.new-1-0xa"), "x", 1);
    file_write(tmpdir_path(&dir, "store/commit/.new-2-0xb"), "x", 1);
    ck_assert_int_eq(utimensat(AT_FDCWD, tmpdir_path(&dir, "store/commit/.new-1-0xa"), long_ago, 0),
                     0);
    store_close(store_open(path));
    ck_assert(!is_there("store/commit/.new-1-0xa"));
    ck_assert(is_there("store/commit/.new-2-0xb")); /* another process may be writing it */
}
END_TEST

/* ---- Taking ---- */

START_TEST(the_session_of_a_dead_owner_is_acquired_by_the_next_writer)
{
    annal_store *dead = store_open(path), *heir = store_open(path);
    append_numbers(dead, "s", 1, 3, ANNAL_LEVEL_SYNC);
    append_numbers(heir, "t", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(heir->own_log.number, 1);
    store_abandon(dead);
    append_numbers(heir, "s", 4, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(heir, "s", 4);
    store_close(heir);
}
END_TEST

static void damage_first_block(const char *log, bool copy_too)
{
    size_t len;
    char *bytes = file_read(log, &len);
    bytes[20] ^= 1;
    bytes[len - 4096 + 20] ^= copy_too;
    file_write(log, bytes, len);
    free(bytes);
}

START_TEST(damage_to_the_first_block_alone_loses_nothing)
{
    const char *log = tmpdir_path(&dir, "store/commit/00.log");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    store_abandon(store);
    ck_assert_int_eq(truncate(tmpdir_path(&dir, "store/events/s.jsonl"), 0), 0);
    for (uint64_t number = 4; number <= 5; number++) {
        damage_first_block(log, false);
        store = open_hasty(NULL);
        append_numbers(store, "s", number, number, ANNAL_LEVEL_SYNC);
        ck_assert_uint_eq(store->own_log.number, 0);
        ck_numbers(store, "s", number);
        store_close(store);
    }
    struct log again;
    ck_ok(annal__log_open(&annal__system_io, log, false, &again, err));
    ck_assert(!again.first_damaged);
    annal__log_close(&again);
}
END_TEST

START_TEST(a_log_with_both_first_blocks_damaged_blocks_only_its_own_sessions)
{
    static const uint8_t boot[16] = "next";
    const struct seams rebooted = {&annal__system_io, &annal__system_clock, boot};
    const char *log = tmpdir_path(&dir, "store/commit/00.log");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    store_abandon(store);
    damage_first_block(log, true);

    /* In this boot its list says what it holds. */
    store = open_hasty(NULL);
    ck_refused(store, "s", ANNAL_ERR_CORRUPT, "commit log 00, move this log out of the store",
               "00.log is damaged");
    append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC);
    store_close(store);

    /* In another boot the log may hold any session. */
    store = open_hasty(&rebooted);
    ck_refused(store, "u", ANNAL_ERR_CORRUPT, "commit log 00, move this log out of the store",
               "00.log is damaged");
    ck_assert_int_eq(rename(log, tmpdir_path(&dir, "aside")), 0);
    append_numbers(store, "s", 4, 4, ANNAL_LEVEL_SYNC);
    append_numbers(store, "u", 1, 1, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 4);
    store_close(store);
}
END_TEST

/* ---- Files that are removed while in use ---- */

START_TEST(an_owner_stops_writing_a_log_that_was_removed)
{
    annal_store *owner = store_open(path);
    append_numbers(owner, "s", 1, 2, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/commit/00.log")), 0);
    ck_refused(owner, "s", ANNAL_ERR_CLOSED, "00.log", "was removed");
    ck_refused(owner, "s", ANNAL_ERR_CLOSED, "00.log", "was removed");
    annal_store *other = open_hasty(NULL);
    append_numbers(other, "s", 3, 3, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(annal_store_close(owner, NULL), ANNAL_ERR_CLOSED);
    ck_numbers(other, "s", 3);
    store_close(other);
}
END_TEST

START_TEST(an_owner_whose_log_was_removed_closes_without_harm_to_others)
{
    annal_store *owner = store_open(path);
    append_numbers(owner, "s", 1, 2, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/commit/00.log")), 0);
    annal_store *other = open_hasty(NULL);
    append_numbers(other, "s", 3, 3, ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(other->own_log.number, 0);
    store_close(owner);
    ck_assert_int_ge(annal__held_find(&other->own_log.held, ANNAL_SLICE("s")), 0);
    ck_assert_uint_eq(atomic_load(&other->own_log.held.header->state), HELD_OWNED);
    annal_store *third = open_hasty(NULL);
    ck_refused(third, "s", ANNAL_ERR_BUSY, "in use by process", "");
    store_close(third);
    append_numbers(other, "s", 4, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(other, "s", 4);
    store_close(other);
}
END_TEST

START_TEST(an_owner_whose_locks_were_removed_keeps_its_sessions_until_it_closes)
{
    char command[600];
    annal_store *owner = store_open(path);
    append_numbers(owner, "s", 1, 2, ANNAL_LEVEL_SYNC);
    snprintf(command, sizeof command, "rm -r '%s/locks'", path);
    ck_assert_int_eq(system(command), 0);
    annal_store *other = open_hasty(NULL);
    for (uint64_t number = 3; number <= 5; number++) {
        append_numbers(owner, "s", number, number, ANNAL_LEVEL_SYNC);
        append_numbers(owner, "new", number - 2, number - 2, ANNAL_LEVEL_SYNC);
        ck_refused(other, "s", ANNAL_ERR_BUSY, "commit log 00", "locks/");
        ck_refused(other, "another", ANNAL_ERR_BUSY, "commit log 00", "locks/");
    }
    store_close(owner);
    append_numbers(other, "s", 6, 6, ANNAL_LEVEL_SYNC);
    append_numbers(other, "new", 4, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(other, "s", 6);
    ck_numbers(other, "new", 4);
    store_close(other);
}
END_TEST

/* In this boot, no list says which sessions such a log holds: an append fails with a message. */
START_TEST(a_damaged_void_of_an_unowned_log_refuses_appends_without_hanging)
{
    annal_error err = {0};
    uint64_t seq;
    const char *damaged = tmpdir_path(&dir, "store/commit/00.void");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    store_abandon(store);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/locks/00.held")), 0);
    file_write(damaged, "", 0);
    store = store_open(path);
    for (int i = 0; i < 2; i++) {
        const char *session = i == 0 ? "s" : "new";
        ck_assert_int_eq(append_number(store, session, 3, 20, ANNAL_LEVEL_SYNC, &seq, &err),
                         ANNAL_ERR_CORRUPT);
        ck_assert_msg(strstr(err.message, "00.void is damaged") != NULL &&
                          strstr(err.message, "may have events in commit log 00") != NULL,
                      "%s", err.message);
    }
    ck_assert_int_eq(unlink(damaged), 0);
    append_numbers(store, "s", 3, 3, ANNAL_LEVEL_SYNC);
    append_numbers(store, "new", 1, 1, ANNAL_LEVEL_SYNC);
    store_close(store);
}
END_TEST

START_TEST(names_that_are_not_slots_are_ignored)
{
    static const char *const names[] = {"store/commit/1000.log", "store/commit/7.old",
                                        "store/commit/x.log",
                                        "store/commit/99999999999999999999.log"};
    store_close(store_open(path));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        file_write(tmpdir_path(&dir, names[i]), "junk", 4);
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    store_close(store);
    store = store_open(path);
    ck_numbers(store, "s", 2);
    store_close(store);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert(is_there(names[i]));
}
END_TEST

START_TEST(a_session_that_only_a_forked_child_keeps_locked_is_reported_as_such)
{
    annal_store *owner = store_open(path);
    append_numbers(owner, "s", 1, 1, ANNAL_LEVEL_SYNC);
    annal_store *other = open_hasty(NULL);
    uint32_t pid = owner->own_log.held.header->pid;
    owner->own_log.held.header->pid = 0x7fffffff; /* no process has such a number */
    ck_refused(other, "s", ANNAL_ERR_BUSY, "which has ended", "forked");
    owner->own_log.held.header->pid = pid;
    ck_refused(other, "s", ANNAL_ERR_BUSY, "in use", "in time");
    store_close(other);
    store_close(owner);
}
END_TEST

START_TEST(slots_are_the_files_with_names_of_logs_in_order)
{
    static const char *const names[] = {"09.log",  "03.log",     "07.log", "05.log",
                                        "04.logs", "x.log",      "06",     "99999.log",
                                        ":1.log",  "08.log.old", "02.log", "-1.log"};
    static const uint32_t numbers[] = {2, 3, 5, 7, 9};
    static struct slot_list list;
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        snprintf(name, sizeof name, "store/commit/%s", names[i]);
        file_write(tmpdir_path(&dir, name), "", 0);
    }
    ck_ok(annal__slots_list(&store->context, &list, err));
    ck_assert_uint_eq(list.count, 5);
    ck_assert_mem_eq(list.numbers, numbers, sizeof numbers);
    store_close(store);
}
END_TEST

/* ---- Looks that fail ---- */

/* Open the store and append to session q while one function fails from its at-th call on. */
static annal_status append_on(struct failing_io *disk, annal_error *err)
{
    const struct seams seams = {.io = &disk->io, .clock = &annal__system_clock};
    const annal_store_options options = {.no_keeper = true, .wait_ms = 60};
    annal_store *store = NULL;
    uint64_t seq;
    annal_status status = annal__store_open(path, &options, &seams, &store, err);
    if (status < 0)
        return status;
    status = append_number(store, "q", 9, 20, ANNAL_LEVEL_SYNC, &seq, err);
    (void)annal_store_close(store, NULL);
    return status;
}

/* Session q, on a disk that works. */
static uint64_t count_q(void)
{
    annal_store *store = store_open(path);
    uint64_t last = read_session(store, "q", NULL, NULL);
    store_close(store);
    return last;
}

static void leave_dead_owner(void)
{
    annal_store *dead = store_open(path);
    uint64_t seq;
    ck_ok(append_number(dead, "s", 4, 20, ANNAL_LEVEL_SYNC, &seq, err));
    store_abandon(dead);
}

/* Append once for each n until an append makes fewer calls. Each append must return, or Check ends
 * the test. */
static void fail_from_each_call_on(const char *function, bool after_death)
{
    struct failing_io disk;
    unsigned refused = 0;
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        annal_error err = {0};
        uint64_t before = count_q();
        if (after_death)
            leave_dead_owner();
        failing_io_init(&disk);
        disk.only = function;
        disk.with_errno = EIO;
        disk.for_good = true;
        disk.lazy = true;
        disk.fail_at = at;
        annal_status status = append_on(&disk, &err);
        failed = disk.calls >= at;
        refused += status < 0;
        ck_assert_msg(status == ANNAL_OK || status == ANNAL_ERR_DISK, "%s from call %u on: %s: %s",
                      function, at, annal_status_name(status), err.message);
        ck_assert_msg(status == ANNAL_OK || strstr(err.message, strerror(EIO)) != NULL,
                      "%s from call %u on: %s", function, at, err.message);
        ck_assert_uint_eq(count_q(), before + (status == ANNAL_OK ? 1 : 0));
    }
    ck_assert_uint_gt(refused, 0);
}

static const char *const looks[] = {"fstat", "stat", "identify", "flock"};

START_TEST(an_append_returns_the_reason_when_checks_of_files_start_to_fail)
{
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    store_close(store);
    fail_from_each_call_on(looks[_i], false);
    fail_from_each_call_on(looks[_i], true);
}
END_TEST

START_TEST(an_append_beside_another_owner_returns_when_checks_of_files_start_to_fail)
{
    annal_store *owner = store_open(path);
    append_numbers(owner, "s", 1, 3, ANNAL_LEVEL_SYNC);
    fail_from_each_call_on(looks[_i], false);
    append_numbers(owner, "s", 4, 4, ANNAL_LEVEL_SYNC);
    store_close(owner);
}
END_TEST

/* An append to what another owner has, for each n: refused, whatever could be seen. */
static void fail_to_take(const char *function, bool for_good)
{
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        struct failing_io disk;
        annal_error err = {0};
        failing_io_init(&disk);
        disk.only = function;
        disk.with_errno = EIO;
        disk.for_good = for_good;
        disk.lazy = true;
        disk.fail_at = at;
        annal_status status = append_on(&disk, &err);
        failed = disk.calls >= at;
        ck_assert_msg(status == ANNAL_ERR_DISK || status == ANNAL_ERR_BUSY, "%s call %u: %s: %s",
                      function, at, annal_status_name(status), err.message);
    }
}

/* A log that cannot be looked at is not one that is gone: what its owner has stays with it. */
START_TEST(a_session_of_another_owner_is_not_acquired_when_checks_of_files_fail)
{
    annal_store *owner = store_open(path);
    append_numbers(owner, "q", 1, 3, ANNAL_LEVEL_SYNC);
    fail_to_take(looks[_i], true);
    fail_to_take(looks[_i], false);
    append_numbers(owner, "q", 4, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(owner, "q", 4);
    store_close(owner);
}
END_TEST

Suite *suite_slot(void)
{
    Suite *suite = suite_create("slot");
    TCase *claim = suite_case(suite, "claim", set_up, tmpdir_teardown);
    tcase_add_test(claim, each_writer_has_its_own_slot_and_the_lowest_empty_slot_is_reused);
    tcase_add_test(claim, an_empty_slot_continues_in_a_new_epoch_after_its_last_group);
    tcase_add_test(claim, slots_from_8_on_are_removed_when_they_are_empty);
    tcase_add_test(claim, the_slot_of_a_dead_process_is_recovered_before_it_is_claimed);
    tcase_add_test(claim, an_unfinished_log_file_is_removed_after_an_hour);
    tcase_add_test(claim, a_damaged_void_of_an_unowned_log_refuses_appends_without_hanging);
    tcase_add_test(claim, names_that_are_not_slots_are_ignored);
    tcase_add_test(claim, a_session_that_only_a_forked_child_keeps_locked_is_reported_as_such);
    tcase_add_test(claim, slots_are_the_files_with_names_of_logs_in_order);
    TCase *take = suite_case(suite, "take", set_up, tmpdir_teardown);
    tcase_add_test(take, the_session_of_a_dead_owner_is_acquired_by_the_next_writer);
    tcase_add_test(take, damage_to_the_first_block_alone_loses_nothing);
    tcase_add_test(take, a_log_with_both_first_blocks_damaged_blocks_only_its_own_sessions);
    tcase_add_test(take, an_owner_stops_writing_a_log_that_was_removed);
    tcase_add_test(take, an_owner_whose_log_was_removed_closes_without_harm_to_others);
    tcase_add_test(take, an_owner_whose_locks_were_removed_keeps_its_sessions_until_it_closes);
    TCase *look = suite_case(suite, "look", set_up, tmpdir_teardown);
    const int each = sizeof looks / sizeof looks[0];
    tcase_add_loop_test(look, an_append_returns_the_reason_when_checks_of_files_start_to_fail, 0,
                        each);
    tcase_add_loop_test(
        look, an_append_beside_another_owner_returns_when_checks_of_files_start_to_fail, 0, each);
    tcase_add_loop_test(look, a_session_of_another_owner_is_not_acquired_when_checks_of_files_fail,
                        0, each);
    return suite;
}
