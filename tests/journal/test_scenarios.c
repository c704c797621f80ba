/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios of docs/failures.md that belong to no one file. */
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t another_boot[16] = "another boot";

static uint64_t journal_bytes(annal_store *store, const char *session)
{
    annal_session_info info;
    ck_ok(annal_session_info_get(store, annal_slice_of(session), &info, err));
    return info.bytes;
}

/*
 * One process writes a session and releases it, another continues it; then the power fails. The
 * slot of either process may be the lower slot, which is recovered first.
 */
START_TEST(a_session_that_changed_owners_is_redone_in_either_order_of_the_logs)
{
    const char *path = tmpdir_path(&dir, "store");
    annal_store *lower = store_open(path);
    annal_store *upper = store_open(path);
    append_numbers(lower, "l", 1, 1, ANNAL_LEVEL_SYNC);
    append_numbers(upper, "u", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_uint_lt(lower->own_log.number, upper->own_log.number);
    annal_store *first = _i == 0 ? lower : upper, *second = _i == 0 ? upper : lower;

    append_numbers(first, "s", 1, 3, ANNAL_LEVEL_SYNC);
    uint64_t seq;
    annal_writer *writer = NULL;
    const annal_draft draft = {.type = ANNAL_SLICE("a"), .data = ANNAL_SLICE("1")};
    ck_ok(annal_writer_open(second, ANNAL_SLICE("s"), &(annal_writer_options){.wait_ms = 1},
                            &writer, err));
    ck_status(ANNAL_ERR_BUSY, annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    annal_writer_close(writer);
    ck_ok(annal_store_keep(first, err)); /* releases the session, after a sync */
    uint64_t synced = journal_bytes(second, "s");
    append_numbers(second, "s", 4, 6, ANNAL_LEVEL_SYNC);
    store_abandon(lower);
    store_abandon(upper);
    ck_assert_int_eq(truncate(tmpdir_path(&dir, "store/events/s.jsonl"), (off_t)synced), 0);

    const struct seams seams = {
        .io = &annal__system_io, .clock = &annal__system_clock, .boot = another_boot};
    annal_store *store = store_open_seams(path, &seams);
    ck_numbers(store, "s", 6);
    ck_numbers(store, "l", 1);
    ck_numbers(store, "u", 1);
    store_close(store);
}
END_TEST

/* ---- Calls to the disk, and their order ---- */

static struct watch {
    char journal[512];
    unsigned synced;   /* synced descriptors */
    unsigned dropped;  /* caches */
    unsigned too_soon; /* what must not have happened */
    off_t journal_bytes;
} watch;

static int note_drop(void *arg, int fd)
{
    watch.dropped++;
    watch.too_soon += watch.synced == 0;
    return annal__system_io.drop_cache(arg, fd);
}

static int note_sync(void *arg, int fd)
{
    watch.synced++;
    return annal__system_io.fdatasync(arg, fd);
}

/* Recovery reads a whole region with one call: no other read is as large. */
static ssize_t note_read(void *arg, int fd, void *bytes, size_t len, uint64_t offset)
{
    watch.too_soon += len >= (size_t)1 << 20 && watch.dropped == 0;
    return annal__system_io.pread(arg, fd, bytes, len, offset);
}

START_TEST(recovery_reads_a_log_from_the_disk_and_not_from_the_cache)
{
    struct io io = annal__system_io;
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    store_abandon(store);
    watch = (struct watch){0};
    io.drop_cache = note_drop;
    io.fdatasync = note_sync;
    io.pread = io.pread_now = note_read;
    const struct seams seams = {.io = &io, .clock = &annal__system_clock, .boot = another_boot};
    store = store_open_seams(path, &seams);
    ck_assert_uint_eq(watch.dropped, 1);
    ck_assert_uint_eq(watch.too_soon, 0);
    ck_numbers(store, "s", 3);
    store_close(store);
}
END_TEST

static off_t size_of(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 ? file.st_size : 0;
}

/* Neither when the log's sync begins nor when it returns does the journal have new bytes. */
static int look_at_journal(void *arg, int fd)
{
    watch.too_soon += size_of(watch.journal) != watch.journal_bytes;
    int result = annal__system_io.fdatasync(arg, fd);
    watch.too_soon += size_of(watch.journal) != watch.journal_bytes;
    watch.synced++;
    return result;
}

START_TEST(no_event_reaches_a_journal_before_its_group_is_synced)
{
    struct io io = annal__system_io;
    watch = (struct watch){0};
    snprintf(watch.journal, sizeof watch.journal, "%s", tmpdir_path(&dir, "store/events/s.jsonl"));
    io.fdatasync = look_at_journal;
    const struct seams seams = {.io = &io, .clock = &annal__system_clock};
    annal_store *store = store_open_seams(tmpdir_path(&dir, "store"), &seams);
    for (uint64_t number = 1; number <= 5; number++) {
        unsigned synced = watch.synced;
        append_numbers(store, "s", number, number, ANNAL_LEVEL_SYNC);
        ck_assert_uint_gt(watch.synced, synced);
        ck_assert_int_gt(size_of(watch.journal), watch.journal_bytes);
        watch.journal_bytes = size_of(watch.journal);
    }
    ck_assert_uint_eq(watch.too_soon, 0);
    store_close(store);
}
END_TEST

static ssize_t count_read(void *arg, int fd, void *bytes, size_t len, uint64_t offset)
{
    ssize_t got = annal__system_io.pread(arg, fd, bytes, len, offset);
    watch.journal_bytes += got > 0 ? got : 0;
    return got;
}

START_TEST(the_end_of_a_journal_is_found_without_reading_it_in_both_formats)
{
    struct io io = annal__system_io;
    annal_store *store = NULL;
    annal_writer *writer = NULL;
    annal_session_info info;
    uint64_t seq = 0;
    io.pread = io.pread_now = count_read;
    const struct seams seams = {.io = &io, .clock = &annal__system_clock};
    const annal_store_options options = {.create = true,
                                         .no_keeper = true,
                                         .format =
                                             _i == 0 ? ANNAL_FORMAT_JSON : ANNAL_FORMAT_MSGPACK};
    ck_ok(annal__store_open(tmpdir_path(&dir, "store"), &options, &seams, &store, err));
    ck_ok(annal_writer_open(store, ANNAL_SLICE("s"), NULL, &writer, err));
    const annal_draft draft = {.type = ANNAL_SLICE("a"), .data = ANNAL_SLICE("[1,2,3]")};
    for (int i = 0; i < 20000; i++)
        ck_ok(annal_writer_append(writer, &draft, 1,
                                  &(annal_append_options){.level = ANNAL_LEVEL_BATCH}, &seq, err));
    annal_writer_close(writer);
    ck_ok(annal_store_sync(store, err));
    watch = (struct watch){0};
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &info, err));
    ck_assert_uint_eq(info.last_seq, 20000);
    ck_assert_uint_gt(info.bytes, 900000);
    ck_assert_int_le(watch.journal_bytes, 100000);
    store_close(store);
}
END_TEST

Suite *suite_scenarios(void)
{
    Suite *suite = suite_create("scenarios");
    TCase *scenarios = suite_case(suite, "scenarios", tmpdir_setup, tmpdir_teardown);
    tcase_add_loop_test(scenarios,
                        a_session_that_changed_owners_is_redone_in_either_order_of_the_logs, 0, 2);
    tcase_add_test(scenarios, recovery_reads_a_log_from_the_disk_and_not_from_the_cache);
    tcase_add_test(scenarios, no_event_reaches_a_journal_before_its_group_is_synced);
    tcase_add_loop_test(scenarios, the_end_of_a_journal_is_found_without_reading_it_in_both_formats,
                        0, 2);
    return suite;
}
