/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/checkpoint.h"

#include "tests/support/failing_io.h"
#include "tests/support/failing_libc.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <stdio.h>

static struct failing_io disk;
static annal_store *store;

static void set_up(void)
{
    tmpdir_setup();
    failing_io_init(&disk);
    disk.with_errno = EIO;
    const struct seams seams = {&disk.io, &annal__system_clock, NULL};
    store = store_open_seams(tmpdir_path(&dir, "store"), &seams);
}

static uint64_t syncs(void)
{
    return atomic_load(&store->metrics.own.counters[METRIC_SYNCS]);
}

static void append_to_many(unsigned sessions, uint64_t number)
{
    for (unsigned i = 0; i < sessions; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        append_numbers(store, name, number, number, ANNAL_LEVEL_BATCH);
    }
    ck_ok(annal_store_sync(store, err));
}

/* Below eight the caller syncs alone, from there on it has helpers. */
START_TEST(a_checkpoint_syncs_each_dirty_journal_once_and_the_directory_for_new_names)
{
    static const unsigned counts[] = {1, 7, 40};
    uint64_t number = 1;
    for (size_t i = 0; i < 3; i++, number += 2) {
        append_to_many(counts[i], number);
        uint64_t before = syncs(), epoch = store->own_log.log.epoch;
        ck_ok(annal__checkpoint_epoch(&store->commit, epoch, err));
        ck_assert_uint_eq(syncs() - before, counts[i] + 1);
        ck_assert_uint_ge(store->commit.released, epoch);
        before = syncs();
        ck_ok(annal__checkpoint_epoch(&store->commit, epoch, err));
        ck_assert_uint_eq(syncs(), before); /* nothing is dirty */
        append_to_many(counts[i], number + 1);
        before = syncs();
        ck_ok(annal__checkpoint_epoch(&store->commit, epoch, err));
        ck_assert_uint_eq(syncs() - before, counts[i]); /* no name is new */
    }
    store_close(store);
}
END_TEST

START_TEST(the_caller_syncs_every_journal_when_no_thread_starts)
{
    for (unsigned at = 1; at <= 4; at++) {
        struct failing_libc plan = {.family = LIBC_SYSTEM, .fail_at = at, .for_good = true};
        append_to_many(12, at);
        uint64_t before = syncs();
        failing_libc_arm(&plan);
        annal_status status =
            annal__checkpoint_epoch(&store->commit, store->own_log.log.epoch, NULL);
        failing_libc_arm(NULL);
        ck_assert_int_eq(status, ANNAL_OK);
        ck_assert_uint_eq(syncs() - before, 12 + (at == 1)); /* the names are new the first time */
    }
    store_close(store);
}
END_TEST

START_TEST(a_checkpoint_without_memory_for_its_list_releases_nothing)
{
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        struct failing_libc plan = {.family = LIBC_HEAP, .fail_at = at};
        append_to_many(100, at);
        uint64_t before = store->commit.released;
        failing_libc_arm(&plan);
        annal_status status =
            annal__checkpoint_epoch(&store->commit, store->own_log.log.epoch, NULL);
        failing_libc_arm(NULL);
        failed = plan.failed[0] != '\0';
        ck_assert_int_eq(status, failed ? ANNAL_ERR_NOMEM : ANNAL_OK);
        ck_assert(!failed || store->commit.released == before);
    }
    store_close(store);
}
END_TEST

/* Writeback of one journal: the end offset, the size of the largest piece, the number of pieces. */
static uint64_t written_back, largest_piece;
static unsigned pieces;

static int count_pieces(void *arg, int fd, uint64_t offset, size_t len)
{
    pieces++;
    if (pieces > 1)
        ck_assert_uint_eq(offset, written_back);
    ck_assert_uint_eq((offset + len) % 4096, 0);
    written_back = offset + len;
    if (len > largest_piece)
        largest_piece = len;
    return annal__system_io.write_back(arg, fd, offset, len);
}

static void append_large(uint64_t first, annal_level level)
{
    uint64_t seq;
    for (uint64_t number = first; number < first + 20; number++)
        ck_ok(append_number(store, "s", number, 60000, level, &seq, err));
    ck_ok(annal_store_sync(store, err));
}

START_TEST(growing_journals_write_each_byte_back_once)
{
    disk.io.write_back = count_pieces;
    store->keeper.alarm.running =
        true; /* it is the test: no append commits or checkpoints in passing */
    append_large(1, ANNAL_LEVEL_SYNC);
    ck_assert_uint_ge(pieces, 2);
    ck_assert_uint_le(pieces, 3);
    ck_assert_uint_ge(written_back + (512 << 10), 20 * 60000);
    ck_assert_uint_ge(largest_piece, 500 << 10);

    pieces = 0;
    ck_ok(annal_store_checkpoint(store, err)); /* what is written then begins at another offset */
    append_large(21, ANNAL_LEVEL_BATCH);
    ck_assert_uint_ge(pieces, 1);
    /* 64 KiB of it may be left after a group of many, 512 KiB after one event alone */
    ck_assert_uint_ge(written_back + (512 << 10), 40 * 60000);
    ck_numbers(store, "s", 40);
    store->keeper.alarm.running = false;
    store_close(store);
}
END_TEST

START_TEST(the_leader_writes_every_journal_when_no_thread_starts)
{
    store->keeper.alarm.running = true;
    for (unsigned at = 1; at <= 4; at++) {
        struct failing_libc plan = {.family = LIBC_SYSTEM, .fail_at = at, .for_good = true};
        for (unsigned i = 0; i < 150; i++) {
            char name[16];
            snprintf(name, sizeof name, "s%u", i);
            append_numbers(store, name, at, at, ANNAL_LEVEL_BATCH);
        }
        failing_libc_arm(&plan);
        annal_status status = annal_store_sync(store, NULL);
        failing_libc_arm(NULL);
        ck_assert_int_eq(status, ANNAL_OK);
        ck_assert_int_eq(plan.failed[0] != '\0', at <= 3); /* the number of helpers */
    }
    for (unsigned i = 0; i < 150; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        ck_numbers(store, name, 4);
    }
    store->keeper.alarm.running = false;
    store_close(store);
}
END_TEST

START_TEST(the_released_epoch_never_decreases)
{
    append_to_many(1, 1);
    ck_ok(annal__checkpoint_epoch(&store->commit, 5, err));
    ck_ok(annal__checkpoint_epoch(&store->commit, 3, err));
    ck_assert_uint_eq(store->commit.released, 5);
    store_close(store);
}
END_TEST

START_TEST(a_failed_journal_sync_releases_nothing_until_its_bytes_are_rewritten)
{
    append_to_many(2, 1);
    uint64_t released = store->commit.released;
    disk.fail_at = disk.calls + 1;
    ck_status(ANNAL_ERR_DISK,
              annal__checkpoint_epoch(&store->commit, store->own_log.log.epoch, err));
    ck_assert_uint_eq(store->commit.released, released);
    ck_assert_uint_eq(store->sessions.late, 1);
    ck_status(ANNAL_ERR_IO, annal__checkpoint_epoch(&store->commit, store->own_log.log.epoch, err));
    ck_ok(annal_store_checkpoint(store, err));
    ck_assert_uint_eq(store->sessions.late, 0);
    ck_assert_uint_gt(store->commit.released, released);
    append_to_many(2, 2);
    store_close(store);
}
END_TEST

START_TEST(a_failed_directory_sync_stops_the_store_until_the_next_open_repairs_it)
{
    uint64_t seq;
    append_to_many(1, 1);
    uint64_t released = store->commit.released;
    disk.fail_at = disk.calls + 2;
    ck_status(ANNAL_ERR_DISK,
              annal__checkpoint_epoch(&store->commit, store->own_log.log.epoch, err));
    ck_assert_uint_eq(store->commit.released, released);
    ck_status(ANNAL_ERR_CLOSED, append_number(store, "s0", 2, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_int_eq(annal_store_close(store, NULL), ANNAL_ERR_CLOSED);
    store = store_open(tmpdir_path(&dir, "store"));
    ck_numbers(store, "s0", 1);
    store_close(store);
}
END_TEST

Suite *suite_checkpoint(void)
{
    Suite *suite = suite_create("checkpoint");
    TCase *tests = suite_case(suite, "checkpoint", set_up, tmpdir_teardown);
    tcase_add_test(tests, the_caller_syncs_every_journal_when_no_thread_starts);
    tcase_add_test(tests, a_checkpoint_without_memory_for_its_list_releases_nothing);
    tcase_add_test(tests,
                   a_checkpoint_syncs_each_dirty_journal_once_and_the_directory_for_new_names);
    tcase_add_test(tests, growing_journals_write_each_byte_back_once);
    tcase_add_test(tests, the_leader_writes_every_journal_when_no_thread_starts);
    tcase_add_test(tests, the_released_epoch_never_decreases);
    tcase_add_test(tests, a_failed_journal_sync_releases_nothing_until_its_bytes_are_rewritten);
    tcase_add_test(tests, a_failed_directory_sync_stops_the_store_until_the_next_open_repairs_it);
    return suite;
}
