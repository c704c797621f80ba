/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/failure.h"

#include "journal/base/error.h"
#include "journal/checkpoint.h"
#include "journal/log_void.h"
#include "tests/support/journals.h"
#include "tests/support/picky_io.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG     "commit/00.log"
#define JOURNAL "events/s.jsonl"

static const uint8_t next_boot[16] = "the next boot";

static struct picky_io disk;
static const char *path;
static annal_store *store;
static unsigned warnings;

static void count_warnings(void *arg, annal_log_level level, const char *message)
{
    (void)arg;
    warnings += level == ANNAL_LOG_WARNING && message[0] != '\0';
}

static void set_up(void)
{
    tmpdir_setup();
    path = tmpdir_path(&dir, "store");
    picky_io_init(&disk);
    const struct seams seams = {&disk.io, &annal__system_clock, NULL};
    const annal_store_options options = {
        .create = true, .no_keeper = true, .wait_ms = 60, .log = count_warnings};
    ck_ok(annal__store_open(path, &options, &seams, &store, err));
    warnings = 0;
}

static bool is_there(const char *name)
{
    return access(tmpdir_path(&dir, name), F_OK) == 0;
}

static void reopen(bool rebooted)
{
    const struct seams seams = {&disk.io, &annal__system_clock, rebooted ? next_boot : NULL};
    store = store_open_seams(path, &seams);
}

/* Check that an append is refused and does not change the session. */
static void ck_refused(const char *session, uint64_t number, int os_errno)
{
    annal_error err = {0};
    uint64_t seq = 77;
    annal_status status = append_number(store, session, number, 40, ANNAL_LEVEL_SYNC, &seq, &err);
    ck_assert_msg(annal__error_is_io(status), "%s: %s", annal_status_name(status), err.message);
    ck_assert_int_eq(err.os_errno, os_errno);
    ck_assert_uint_eq(seq, 77);
}

/* ---- Behind: rule 6 ---- */

START_TEST(a_durable_group_stays_acknowledged_when_its_journal_write_fails)
{
    static const int errnos[] = {ENOSPC, EIO};
    for (size_t i = 0; i < 2; i++) {
        annal_error failure;
        uint64_t seq = 0;
        append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
        picky_io_fail(&disk, PICKY_WRITE, JOURNAL, errnos[i], -1);
        ck_ok(append_number(store, "s", 3, 40, ANNAL_LEVEL_SYNC, &seq, err));
        ck_assert_uint_eq(seq, 3);
        ck_assert_uint_eq(warnings, 1);
        ck_numbers(store, "s", 2); /* readers see a prefix */

        ck_assert_int_eq(append_number(store, "s", 4, 40, ANNAL_LEVEL_SYNC, &seq, &failure),
                         ANNAL_ERR_IO);
        ck_assert_ptr_nonnull(strstr(failure.message, "durable in the commit log"));
        ck_assert_int_eq(failure.os_errno, errnos[i]);
        ck_refused("s", 4, errnos[i]);
        ck_assert_uint_eq(warnings, 1); /* said once */
        append_numbers(store, "t", 1, 3, ANNAL_LEVEL_SYNC);
        ck_ok(annal_store_sync(store, err)); /* durable it is */
        uint64_t released = store->commit.released;
        ck_status(ANNAL_ERR_IO, annal_store_checkpoint(store, err));
        ck_assert_uint_eq(store->commit.released, released);

        picky_io_heal(&disk);
        ck_ok(annal_store_keep(store, err));
        ck_numbers(store, "s", 3);
        append_numbers(store, "s", 4, 5, ANNAL_LEVEL_SYNC);
        ck_ok(annal_store_checkpoint(store, err));
        ck_assert_uint_gt(store->commit.released, released);
        ck_numbers(store, "s", 5);
        store_close(store);
        tmpdir_teardown();
        set_up();
    }
    store_close(store);
}
END_TEST

START_TEST(a_journal_that_cannot_be_created_is_created_later)
{
    uint64_t seq;
    picky_io_fail(&disk, PICKY_OPEN, JOURNAL, EMFILE, -1)->after = 1; /* when it is taken */
    ck_ok(append_number(store, "s", 1, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert(!is_there("store/" JOURNAL));
    ck_refused("s", 2, EMFILE);
    picky_io_heal(&disk);
    ck_ok(annal_store_keep(store, err));
    append_numbers(store, "s", 2, 2, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 2);
    store_close(store);
}
END_TEST

/* What is missing at the end of our own log leaves no gap that a record before would show. */
START_TEST(a_lagging_session_keeps_lagging_when_the_log_lost_its_events)
{
    uint64_t seq;
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    picky_io_fail(&disk, PICKY_WRITE, JOURNAL, EIO, -1);
    ck_ok(append_number(store, "s", 3, 40, ANNAL_LEVEL_SYNC, &seq, err));
    const struct log *log = &store->own_log.log;
    uint64_t last = log->regions[log->current].offset + log->end - log->block;
    int fd = open(tmpdir_path(&dir, "store/" LOG), O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "rot", 3, (off_t)last + 80), 3);
    close(fd);
    picky_io_heal(&disk);
    ck_ok(annal_store_keep(store, err));
    ck_assert_int_eq(append_number(store, "s", 4, 40, ANNAL_LEVEL_SYNC, &seq, NULL), ANNAL_ERR_IO);
    ck_status(ANNAL_ERR_CORRUPT, annal_store_checkpoint(store, err));
    append_numbers(store, "t", 1, 2, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 2);
    ck_assert_int_lt(annal_store_close(store, NULL), 0);
}
END_TEST

START_TEST(a_stopped_store_warns_once_and_counts_the_stop)
{
    annal_metrics metrics;
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    picky_io_fail(&disk, PICKY_SYNC, LOG, EIO, 1);
    picky_io_fail(&disk, PICKY_RENAME, "00.void", ENOSPC, -1);
    uint64_t seq;
    ck_status(ANNAL_ERR_UNKNOWN, append_number(store, "s", 2, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_status(ANNAL_ERR_CLOSED, append_number(store, "s", 3, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_uint_eq(warnings, 1);
    annal_store_metrics_get(store, ANNAL_METRICS_OF_OBJECT, &metrics);
    ck_assert_uint_eq(metrics.stopped, 1);
    ck_assert_uint_eq(metrics.groups, 1); /* only the first append */
    ck_assert_int_lt(annal_store_close(store, NULL), 0);
}
END_TEST

/* A session that still lags at close stays held until the next open, in this boot or another. */
START_TEST(the_next_open_redoes_a_session_that_lagged_at_close)
{
    for (int rebooted = 0; rebooted <= 1; rebooted++) {
        uint64_t seq, last = (uint64_t)rebooted * 3;
        append_numbers(store, "s", last + 1, last + 2, ANNAL_LEVEL_SYNC);
        append_numbers(store, "t", last + 1, last + 2, ANNAL_LEVEL_SYNC);
        picky_io_fail(&disk, PICKY_WRITE, JOURNAL, EIO, -1);
        ck_ok(append_number(store, "s", last + 3, 40, ANNAL_LEVEL_SYNC, &seq, err));
        ck_ok(append_number(store, "t", last + 3, 40, ANNAL_LEVEL_SYNC, &seq, err));
        ck_status(ANNAL_ERR_IO, annal_store_close(store, err));
        picky_io_heal(&disk);
        reopen(rebooted == 1);
        ck_numbers(store, "s", last + 3);
        ck_numbers(store, "t", last + 3);
    }
    store_close(store);
}
END_TEST

START_TEST(a_lagging_session_does_not_stop_the_others_until_the_log_is_full)
{
    uint64_t seq, number = 1;
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    picky_io_fail(&disk, PICKY_WRITE, JOURNAL, ENOSPC, -1);
    ck_ok(append_number(store, "s", 2, 40, ANNAL_LEVEL_SYNC, &seq, err));
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK && number < 200)
        status = append_number(store, "t", number++, 50000, ANNAL_LEVEL_SYNC, &seq, NULL);
    ck_assert_int_eq(status, ANNAL_ERR_IO); /* two regions of 1 MiB are full */
    ck_assert_uint_gt(number, 30);
    number--;
    ck_status(ANNAL_ERR_IO, append_number(store, "t", number, 50000, ANNAL_LEVEL_SYNC, &seq, err));
    picky_io_heal(&disk);
    /* The leader catches up itself. */
    ck_ok(append_number(store, "t", number, 50000, ANNAL_LEVEL_SYNC, &seq, err));
    append_numbers(store, "s", 3, 3, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 3);
    ck_numbers(store, "t", number);
    store_close(store);
}
END_TEST

/* ---- A journal sync that fails: rule 7 ---- */

START_TEST(bytes_lost_by_a_failed_sync_are_rewritten_from_the_log)
{
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_checkpoint(store, err));
    append_numbers(store, "s", 3, 9, ANNAL_LEVEL_SYNC);
    append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC);
    picky_io_fail(&disk, PICKY_SYNC, JOURNAL, EIO, 1); /* what was written since reads as zeros */
    ck_ok(annal_store_checkpoint(store, err));
    ck_assert_uint_eq(disk.failed, 1);
    ck_assert_uint_eq(warnings, 1);
    ck_numbers(store, "s", 9);
    append_numbers(store, "s", 10, 10, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 10);
    store_close(store);
}
END_TEST

START_TEST(bytes_lost_by_a_failed_writeback_are_rewritten_from_the_log)
{
    uint64_t seq, number = 3;
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    picky_io_fail(&disk, PICKY_WRITE_BACK, JOURNAL, EIO, 1);
    while (disk.failed == 0)
        ck_ok(append_number(store, "s", number++, 60000, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_uint_eq(warnings, 1);
    ck_ok(annal_store_checkpoint(store, err));
    ck_numbers(store, "s", number - 1);
    store_close(store);
}
END_TEST

static int synced_fd;
static bool synced_closed;
static pthread_t catcher;

static int note_close(void *arg, int fd)
{
    (void)arg;
    synced_closed = synced_closed || fd == synced_fd;
    return annal__system_io.close(NULL, fd);
}

static void *catch_up(void *arg)
{
    (void)arg;
    (void)annal__commit_catch_up(&store->commit, NULL);
    return NULL;
}

static int (*sync_file)(void *arg, int fd);

/* While a checkpoint syncs the journal, a write to the journal fails and a thread catches up. */
static int fail_meanwhile(void *arg, int fd)
{
    uint64_t seq;
    disk.io.fdatasync = sync_file;
    synced_fd = fd;
    picky_io_fail(&disk, PICKY_WRITE, JOURNAL, ENOSPC, 1);
    ck_ok(append_number(store, "s", 15, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_int_eq(pthread_create(&catcher, NULL, catch_up, NULL), 0);
    usleep(50000);
    ck_assert(!synced_closed); /* a closed descriptor number could be reused for another journal */
    synced_fd = -1;
    return sync_file(arg, fd);
}

START_TEST(a_descriptor_stays_open_while_a_checkpoint_uses_it)
{
    uint64_t seq;
    for (uint64_t number = 1; number <= 14; number++)
        ck_ok(append_number(store, "s", number, 50000, ANNAL_LEVEL_SYNC, &seq, err));
    disk.io.close = note_close;
    sync_file = disk.io.fdatasync;
    disk.io.fdatasync = fail_meanwhile;
    store->keeper.alarm.running = true; /* else the append would catch up itself */
    (void)annal__checkpoint_epoch(&store->commit, store->own_log.log.epoch,
                                  NULL); /* it saw a late session */
    store->keeper.alarm.running = false;
    pthread_join(catcher, NULL);
    ck_ok(annal_store_keep(store, err));
    ck_ok(annal_store_checkpoint(store, err));
    ck_numbers(store, "s", 15);
    store_close(store);
}
END_TEST

START_TEST(a_session_refuses_events_and_keeps_its_region_after_two_failed_syncs)
{
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    uint64_t released = store->commit.released;
    picky_io_fail(&disk, PICKY_SYNC, JOURNAL, EIO, 2);
    ck_status(ANNAL_ERR_IO, annal_store_checkpoint(store, err));
    ck_assert_uint_eq(store->commit.released, released);
    ck_assert_uint_ge(warnings, 2);
    picky_io_fail(&disk, PICKY_SYNC, JOURNAL, EIO, -1);
    ck_refused("s", 3, EIO);
    append_numbers(store, "t", 1, 2, ANNAL_LEVEL_SYNC);
    picky_io_heal(&disk);
    ck_ok(annal_store_keep(store, err));
    append_numbers(store, "s", 3, 3, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_checkpoint(store, err));
    ck_numbers(store, "s", 3);
    store_close(store);
}
END_TEST

START_TEST(loose_bytes_lost_by_a_failed_sync_are_rewritten)
{
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_checkpoint(store, err));
    append_numbers(store, "s", 3, 5, ANNAL_LEVEL_OS);
    picky_io_fail(&disk, PICKY_SYNC, JOURNAL, EIO, 1);
    annal_error failure;
    if (annal_store_sync(store, &failure) <
        0) /* fails here, or in a later sync if the bytes go through
                                          * the log */
        ck_assert_int_eq(failure.status, ANNAL_ERR_IO);
    ck_ok(annal_store_keep(store, err));
    ck_ok(annal_store_sync(store, err));
    ck_ok(annal_store_checkpoint(store, err));
    append_numbers(store, "s", 6, 6, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 6);
    store_close(store);
}
END_TEST

START_TEST(a_failed_log_sync_at_close_is_reported_and_loses_nothing)
{
    annal_error failure = {0};
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    picky_io_fail(&disk, PICKY_SYNC, LOG, EIO, 1);
    ck_assert_int_eq(annal_store_close(store, &failure), ANNAL_ERR_IO);
    ck_assert_ptr_nonnull(strstr(failure.message, "sync commit log"));
    ck_assert_ptr_nonnull(strstr(failure.message, "is durable in its journal"));
    ck_assert_int_eq(failure.os_errno, EIO);
    ck_assert_uint_eq(warnings, 1);
    picky_io_heal(&disk);
    reopen(true);
    ck_numbers(store, "s", 3);
    store_close(store);
}
END_TEST

START_TEST(a_descriptor_is_closed_only_after_its_sync)
{
    store->sessions.descriptors_max = 2;
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    append_numbers(store, "a", 1, 1, ANNAL_LEVEL_SYNC);
    picky_io_fail(&disk, PICKY_SYNC, JOURNAL, EIO, 1);
    append_numbers(store, "b", 1, 1, ANNAL_LEVEL_SYNC); /* one of the two has to go */
    append_numbers(store, "c", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(disk.failed, 1);
    ck_ok(annal_store_checkpoint(store, err));
    ck_numbers(store, "s", 2);
    store_close(store);
}
END_TEST

/* ---- A log write that fails: rule 11 ---- */

START_TEST(a_failed_log_write_is_refused_and_the_log_stays_in_use)
{
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    ino_t inode = store->own_log.log.inode;
    uint64_t group = store->own_log.log.group;
    picky_io_fail(&disk, PICKY_WRITE, LOG, ENOSPC, 1);
    ck_refused("s", 3, ENOSPC);
    ck_assert_uint_eq(store->own_log.log.group, group + 1); /* an empty one stands there */
    append_numbers(store, "s", 3, 4, ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(store->own_log.log.inode, inode);
    store_abandon(store);
    ck_assert_int_eq(truncate(tmpdir_path(&dir, "store/" JOURNAL), 0), 0);
    reopen(true);
    ck_numbers(store, "s", 4);
    store_close(store);
}
END_TEST

/* Payload first, header last: between the two nothing that counts stands in the log. */
START_TEST(a_large_group_without_a_header_is_refused_and_the_log_stays_in_use)
{
    enum { COUNT = 3, BYTES = 60000 };
    char *data = malloc(COUNT * BYTES);
    annal_draft drafts[COUNT];
    annal_writer *writer;
    uint64_t seq;
    annal_error failure;
    for (size_t i = 0; i < COUNT; i++)
        drafts[i] = (annal_draft){.type = ANNAL_SLICE("n"),
                                  .data = event_data(data + i * BYTES, BYTES, i + 1, BYTES - 100)};
    ck_ok(annal_writer_open(store, ANNAL_SLICE("s"), NULL, &writer, err));
    append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC);
    ino_t inode = store->own_log.log.inode;
    picky_io_fail(&disk, PICKY_WRITE, LOG, ENOSPC, 1)->after = 1;
    ck_assert_int_eq(annal_writer_append(writer, drafts, COUNT, NULL, &seq, &failure),
                     ANNAL_ERR_FULL);
    ck_assert_uint_eq(disk.failed, 1);
    ck_ok(annal_writer_append(writer, drafts, COUNT, NULL, &seq, err));
    ck_assert_uint_eq(seq, 1);
    ck_assert_uint_eq(store->own_log.log.inode, inode);
    annal_writer_close(writer);
    free(data);
    store_abandon(store);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/" JOURNAL)), 0);
    reopen(true);
    ck_numbers(store, "s", COUNT);
    ck_numbers(store, "t", 1);
    store_close(store);
}
END_TEST

/* A new session, a session with loose bytes, one that has waited: all stand where they stood. */
START_TEST(events_encoded_after_a_failed_group_are_refused_with_it)
{
    uint64_t seq;
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    append_numbers(store, "loose", 1, 2, ANNAL_LEVEL_SYNC);
    append_numbers(store, "loose", 3, 4, ANNAL_LEVEL_OS);
    annal_writer *writer = NULL, *other = NULL;
    ck_ok(annal_writer_open(store, ANNAL_SLICE("s"), NULL, &writer, err));
    ck_ok(annal_writer_open(store, ANNAL_SLICE("s"), NULL, &other, err));
    char data[200];
    const annal_append_options batch = {.level = ANNAL_LEVEL_BATCH};
    store->batch_ms = 1000000;
    for (uint64_t number = 3; number <= 5; number++) {
        annal_draft draft = {.type = ANNAL_SLICE("n"),
                             .id = ANNAL_SLICE("x"),
                             .data = event_data(data, sizeof data, number, 20)};
        draft.id.len = number == 3;
        ck_ok(annal_writer_append(writer, &draft, 1, &batch, &seq, err));
    }
    append_numbers(store, "loose", 5, 5, ANNAL_LEVEL_BATCH);
    append_numbers(store, "new", 1, 2, ANNAL_LEVEL_BATCH);
    picky_io_fail(&disk, PICKY_WRITE, LOG, EIO, 1);
    ck_refused("t", 1, EIO);

    /* The writer that had them reports the loss once, with the first void seq; so does
     * annal_store_sync(). */
    annal_error failure;
    annal_draft draft = {.type = ANNAL_SLICE("n"), .data = event_data(data, sizeof data, 3, 40)};
    ck_assert_int_eq(annal_writer_append(writer, &draft, 1, NULL, &seq, &failure), ANNAL_ERR_IO);
    ck_assert_ptr_nonnull(strstr(failure.message, "from seq 3 on"));
    draft.id = ANNAL_SLICE("x"); /* of an event that never happened: it is free */
    ck_assert_int_eq(annal_writer_append(other, &draft, 1, NULL, &seq, &failure), ANNAL_OK);
    ck_assert_uint_eq(seq, 3);
    draft = (annal_draft){.type = ANNAL_SLICE("n"), .data = event_data(data, sizeof data, 4, 40)};
    ck_assert_int_eq(annal_writer_append(writer, &draft, 1, NULL, &seq, &failure), ANNAL_OK);
    ck_assert_uint_eq(seq, 4);
    ck_assert_int_eq(annal_store_sync(store, &failure), ANNAL_ERR_DISK);
    ck_assert_int_eq(annal_store_sync(store, &failure), ANNAL_OK);
    annal_writer_close(writer);
    annal_writer_close(other);

    append_numbers(store, "loose", 5, 6, ANNAL_LEVEL_SYNC);
    append_numbers(store, "new", 1, 1, ANNAL_LEVEL_SYNC);
    append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 4);
    ck_numbers(store, "loose", 6);
    ck_numbers(store, "new", 1);
    store_abandon(store);
    ck_assert_int_eq(truncate(tmpdir_path(&dir, "store/events/loose.jsonl"), 0), 0);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/events/new.jsonl")), 0);
    reopen(true);
    ck_numbers(store, "s", 4);
    ck_numbers(store, "loose", 6);
    ck_numbers(store, "new", 1);
    ck_numbers(store, "t", 1);
    store_close(store);
}
END_TEST

/* ---- A log sync that fails: rule 11 ---- */

START_TEST(a_failed_log_sync_voids_its_group_and_replaces_the_log)
{
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    ino_t inode = store->own_log.log.inode;
    picky_io_fail(&disk, PICKY_SYNC, LOG, EIO, 1);
    ck_refused("s", 4, EIO);
    ck_assert(!is_there("store/commit/00.void"));
    ck_assert_uint_ne(store->own_log.log.inode, inode);
    annal_session_info info; /* its bytes were synced before the old log went */
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &info, err));
    append_numbers(store, "s", 4, 6, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 6);
    store_abandon(store);
    ck_assert_int_eq(truncate(tmpdir_path(&dir, "store/" JOURNAL), (off_t)info.bytes), 0);
    reopen(true);
    ck_numbers(store, "s", 6);
    store_close(store);
}
END_TEST

START_TEST(a_fresh_log_gets_the_mark_of_level_os)
{
    const char *journal = tmpdir_path(&dir, "store/events/other.jsonl");
    size_t durable, len;
    append_numbers(store, "other", 1, 3, ANNAL_LEVEL_OS); /* marked in the log that goes */
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    picky_io_fail(&disk, PICKY_SYNC, LOG, EIO, 1);
    ck_refused("s", 4, EIO);
    free(file_read(journal, &durable)); /* synced before the old log went */
    append_numbers(store, "other", 4, 9, ANNAL_LEVEL_OS);
    store_abandon(store);
    char *bytes = file_read(journal, &len);
    memset(bytes + durable + 200, 0, len - durable - 250);
    file_write(journal, bytes, len);
    free(bytes);
    reopen(true);
    ck_numbers(store, "other", 4);
    append_numbers(store, "other", 5, 5, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "other", 5);
    store_close(store);
}
END_TEST

/* The process dies with the void durable and the log in place: the voided group stays void. */
START_TEST(a_voided_group_never_reappears)
{
    for (int rebooted = 0; rebooted <= 1; rebooted++) {
        append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
        picky_io_fail(&disk, PICKY_SYNC, LOG, EIO, 1);
        picky_io_fail(&disk, PICKY_RENAME, LOG, EIO, -1); /* no fresh log */
        ck_refused("s", 4, EIO);
        ck_refused("s", 4, EIO); /* no append is accepted while no log exists */
        ck_assert(is_there("store/commit/00.void"));
        /* The group is whole on the disk all the same: picky_io lost it, put it back. */
        struct log *log = &store->own_log.log;
        struct buf toc = {0}, payload = {0};
        log->state = LOG_SOUND;
        ck_ok(annal__log_write_group(log, 0, &toc, &payload, 1000, err));
        store_abandon(store);
        picky_io_heal(&disk);
        reopen(rebooted == 1);
        ck_numbers(store, "s", 3);
        ck_assert(!is_there("store/commit/00.void"));
        ck_assert(!is_there("store/commit/00.log"));
        append_numbers(store, "s", 4, 5, ANNAL_LEVEL_SYNC);
        ck_numbers(store, "s", 5);
        store_close(store);
        tmpdir_teardown();
        set_up();
    }
    store_close(store);
}
END_TEST

START_TEST(a_failed_void_makes_the_answer_unknown_and_stops_the_store)
{
    uint64_t seq;
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    append_numbers(store, "s", 4, 4, ANNAL_LEVEL_BATCH);
    picky_io_fail(&disk, PICKY_SYNC, LOG, EIO, 1);
    picky_io_fail(&disk, PICKY_RENAME, "00.void", ENOSPC, -1);
    ck_status(ANNAL_ERR_UNKNOWN, append_number(store, "s", 5, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_status(ANNAL_ERR_CLOSED, append_number(store, "s", 6, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_status(ANNAL_ERR_CLOSED, append_number(store, "t", 1, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_status(ANNAL_ERR_CLOSED, annal_store_sync(store, err));
    ck_assert_int_lt(annal_store_close(store, NULL), 0);
    picky_io_heal(&disk);
    reopen(false);
    ck_numbers(store, "s", 3);
    append_numbers(store, "s", 4, 4, ANNAL_LEVEL_SYNC);
    store_close(store);
}
END_TEST

/* Write, then the empty group, then its sync fail: on to the void. */
START_TEST(a_void_decides_when_the_empty_group_cannot_be_written)
{
    static const enum picky_call second[] = {PICKY_WRITE, PICKY_SYNC};
    for (size_t i = 0; i < 2; i++) {
        append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
        ino_t inode = store->own_log.log.inode;
        picky_io_fail(&disk, PICKY_WRITE, LOG, EIO, 1);
        picky_io_fail(&disk, second[i], LOG, EIO, 1);
        ck_refused("s", 4, EIO);
        ck_assert_uint_ne(store->own_log.log.inode, inode);
        append_numbers(store, "s", 4, 4, ANNAL_LEVEL_SYNC);
        ck_numbers(store, "s", 4);
        store_close(store);
        tmpdir_teardown();
        set_up();
    }
    store_close(store);
}
END_TEST

/* The sync of an empty group at a checkpoint: the group contains no events. */
START_TEST(a_failed_log_sync_at_a_checkpoint_loses_no_event)
{
    static const enum picky_call calls[] = {PICKY_SYNC, PICKY_WRITE};
    for (size_t i = 0; i < 2; i++) {
        append_numbers(store, "s", i * 2 + 1, i * 2 + 1, ANNAL_LEVEL_SYNC);
        picky_io_fail(&disk, calls[i], LOG, EIO, 1);
        annal_status status = annal_store_checkpoint(store, NULL);
        ck_assert(status == ANNAL_OK || calls[i] == PICKY_WRITE);
        append_numbers(store, "s", i * 2 + 2, i * 2 + 2, ANNAL_LEVEL_SYNC);
    }
    ck_ok(annal_store_checkpoint(store, err));
    ck_numbers(store, "s", 4);
    store_close(store);
}
END_TEST

/* Both fail: the log cannot go while a journal lacks what it has. */
START_TEST(no_event_joins_an_epoch_that_a_failed_checkpoint_has_released)
{
    struct stat journal;
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    picky_io_fail(&disk, PICKY_WRITE, LOG, EIO, 1); /* the group that would say so */
    ck_status(ANNAL_ERR_DISK, annal_store_checkpoint(store, err));
    ck_assert_int_eq(stat(tmpdir_path(&dir, "store/" JOURNAL), &journal), 0);
    append_numbers(store, "s", 3, 3, ANNAL_LEVEL_SYNC);
    store_abandon(store);
    ck_assert_int_eq(truncate(tmpdir_path(&dir, "store/" JOURNAL), journal.st_size), 0);
    reopen(true);
    ck_numbers(store, "s", 3);
    store_close(store);
}
END_TEST

START_TEST(a_log_that_is_replaced_while_it_grows_grows_again)
{
    uint64_t seq;
    store->commit.region_bytes = LOG_REGION_FIRST;   /* no larger than need be */
    for (uint64_t number = 1; number <= 2; number++) /* one in each region */
        ck_ok(append_number(store, "s", number, 1200000, ANNAL_LEVEL_SYNC, &seq, err));
    picky_io_fail(&disk, PICKY_SYNC, LOG, EIO, 1);
    ck_ok(append_number(store, "s", 3, 1200000, ANNAL_LEVEL_SYNC, &seq, err));
    store_abandon(store);
    reopen(true);
    ck_numbers(store, "s", 3);
    store_close(store);
}
END_TEST

START_TEST(a_broken_log_is_kept_until_its_journals_can_be_written)
{
    uint64_t seq;
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    picky_io_fail(&disk, PICKY_WRITE, JOURNAL, EIO, -1);
    ck_ok(append_number(store, "s", 3, 40, ANNAL_LEVEL_SYNC, &seq, err));
    picky_io_fail(&disk, PICKY_SYNC, LOG, EIO, 1);
    ck_refused("t", 1, EIO);
    ck_refused("t", 1, EIO);
    ck_assert(is_there("store/commit/00.void"));
    ck_status(ANNAL_ERR_IO, annal_store_close(store, err));
    picky_io_heal(&disk);
    reopen(false);
    ck_assert(!is_there("store/commit/00.void"));
    ck_numbers(store, "s", 3);
    append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC);
    store_close(store);
}
END_TEST

/* ---- The void file ---- */

START_TEST(a_void_applies_to_its_own_log_only_and_every_flipped_bit_is_found)
{
    const char *name = tmpdir_path(&dir, "store/commit/00.void");
    uint64_t group = 0;
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    struct log log = store->own_log.log;
    ck_ok(annal__log_void_read(&log, &group, err));
    ck_assert_uint_eq(group, VOID_NOTHING);
    ck_ok(annal__log_void_write(&log, 1234567890123, err));
    ck_ok(annal__log_void_read(&log, &group, err));
    ck_assert_uint_eq(group, 1234567890123);
    size_t len;
    char *bytes = file_read(name, &len);
    ck_assert_uint_eq(len, 48);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        file_write(name, bytes, len);
        ck_status(ANNAL_ERR_CORRUPT, annal__log_void_read(&log, &group, err));
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < len; cut++) {
        file_write(name, bytes, cut);
        ck_status(ANNAL_ERR_CORRUPT, annal__log_void_read(&log, &group, err));
    }
    file_write(name, bytes, len);
    free(bytes);
    log.slot_id[3] ^= 1;
    ck_ok(annal__log_void_read(&log, &group, err));
    ck_assert_uint_eq(group, VOID_NOTHING);
    annal__log_void_remove(&log);
    ck_assert(!is_there("store/commit/00.void"));
    store_close(store);
}
END_TEST

/* ---- What became of a writer's events ---- */

static annal_writer *writer_of_s(void)
{
    annal_writer *writer = NULL;
    ck_ok(annal_writer_open(store, ANNAL_SLICE("s"),
                            &(annal_writer_options){.level = ANNAL_LEVEL_BATCH}, &writer, err));
    store->batch_ms = 1000000; /* no commit before a test asks for it */
    return writer;
}

static annal_status append_batch(annal_writer *writer, uint64_t number)
{
    char data[100];
    uint64_t seq = 0;
    const annal_draft draft = {.type = ANNAL_SLICE("n"),
                               .data = event_data(data, sizeof data, number, 40)};
    annal_status status = annal_writer_append(writer, &draft, 1, NULL, &seq, NULL);
    if (status == ANNAL_OK)
        ck_assert_uint_eq(seq, number);
    return status;
}

static void ck_fate(annal_writer *writer, annal_status expected, uint64_t unknown, uint64_t refused)
{
    annal_sync_result result = {77, 77};
    annal_error failure = {0};
    annal_status status = annal_writer_sync(writer, &result, &failure);
    ck_assert_msg(status == expected, "%s: %s", annal_status_name(status), failure.message);
    ck_assert_uint_eq(result.unknown_seq, unknown);
    ck_assert_uint_eq(result.refused_seq, refused);
}

START_TEST(a_writer_learns_which_events_are_durable_and_which_were_refused)
{
    annal_writer *writer = writer_of_s(), *other = writer_of_s();
    append_batch(writer, 1);
    ck_fate(writer, ANNAL_OK, 0, 0);
    append_batch(writer, 2);
    append_batch(other, 3);
    append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC); /* these two with it */
    append_batch(writer, 4);
    append_batch(writer, 5);
    picky_io_fail(&disk, PICKY_SYNC, LOG, EIO, 1);
    ck_fate(writer, ANNAL_ERR_IO, 0, 4);
    ck_fate(writer, ANNAL_OK, 0, 0); /* once */
    ck_fate(other, ANNAL_OK, 0, 0);  /* it lost nothing */
    append_batch(writer, 4);         /* nor does the append report it again */
    ck_fate(writer, ANNAL_OK, 0, 0);
    annal_writer_close(writer);
    annal_writer_close(other);
    ck_numbers(store, "s", 4);
    store_abandon(store);
    reopen(true);
    ck_numbers(store, "s", 4);
    store_close(store);
}
END_TEST

START_TEST(a_writer_reports_lost_seqs_until_its_next_append)
{
    for (int again = 0; again <= 1; again++) {
        annal_writer *writer = writer_of_s();
        append_batch(writer, 1);
        append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC);
        append_batch(writer, 2);
        append_batch(writer, 3);
        picky_io_fail(&disk, PICKY_WRITE, LOG, ENOSPC, 1);
        ck_refused("t", 2, ENOSPC);
        ck_assert_int_eq(append_batch(writer, 4), ANNAL_ERR_IO);
        if (again == 0)
            ck_fate(writer, ANNAL_ERR_IO, 0, 2);
        ck_assert_int_eq(append_batch(writer, 2), ANNAL_OK);
        ck_fate(writer, ANNAL_OK, 0, 0);
        ck_numbers(store, "s", 2);
        annal_writer_close(writer);
        ck_status(ANNAL_ERR_FULL, annal_store_sync(store, err)); /* it tells of the loss too */
        store_close(store);
        tmpdir_teardown();
        set_up();
    }
    store_close(store);
}
END_TEST

/* Appends to the next group while one is being synced. */
static annal_writer *late_writer;
static int (*sync_before)(void *arg, int fd);

static int sync_late(void *arg, int fd)
{
    if (late_writer != NULL && fd == store->own_log.log.fd) {
        annal_writer *writer = late_writer;
        late_writer = NULL;
        ck_assert_int_eq(append_batch(writer, 5), ANNAL_OK);
        ck_assert_int_eq(append_batch(writer, 6), ANNAL_OK);
    }
    return sync_before(arg, fd);
}

START_TEST(without_a_void_only_the_events_of_that_group_are_unknown)
{
    annal_writer *writer = writer_of_s(), *other = writer_of_s();
    append_batch(other, 1);
    append_batch(writer, 2);
    append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC);
    append_batch(writer, 3);
    append_batch(writer, 4);
    picky_io_fail(&disk, PICKY_SYNC, LOG, EIO, 1);
    picky_io_fail(&disk, PICKY_RENAME, "00.void", ENOSPC, -1);
    sync_before = disk.io.fdatasync;
    disk.io.fdatasync = sync_late;
    late_writer = writer;
    ck_fate(writer, ANNAL_ERR_UNKNOWN, 3, 5);
    ck_fate(writer, ANNAL_ERR_UNKNOWN, 3, 5); /* it stays so */
    ck_fate(other, ANNAL_OK, 0, 0);
    ck_assert_int_eq(append_batch(writer, 7), ANNAL_ERR_CLOSED);
    ck_fate(writer, ANNAL_ERR_UNKNOWN, 3, 5);
    annal_writer_close(writer);
    annal_writer_close(other);
    ck_assert_int_lt(annal_store_close(store, NULL), 0);
    picky_io_heal(&disk);
    reopen(false);
    ck_numbers(store, "s", 2);
    store_close(store);
}
END_TEST

START_TEST(a_writer_reports_events_of_a_replaced_journal_as_unknown)
{
    annal_writer *writer = writer_of_s();
    append_batch(writer, 1);
    ck_fate(writer, ANNAL_OK, 0, 0);
    append_batch(writer, 2);
    const char *journal = tmpdir_path(&dir, "store/" JOURNAL);
    const char *copy = tmpdir_path(&dir, "copy");
    size_t len;
    char *bytes = file_read(journal, &len);
    file_write(copy, bytes, len);
    free(bytes);
    ck_assert_int_eq(rename(copy, journal), 0);
    ck_fate(writer, ANNAL_ERR_UNKNOWN, 1, 0);
    annal_writer_close(writer);
    (void)annal_store_close(store, NULL);
}
END_TEST

START_TEST(a_writer_reports_unsyncable_events_of_level_os_as_unknown)
{
    annal_writer *writer = NULL;
    ck_ok(annal_writer_open(store, ANNAL_SLICE("s"),
                            &(annal_writer_options){.level = ANNAL_LEVEL_OS}, &writer, err));
    ck_assert_int_eq(append_batch(writer, 1), ANNAL_OK);
    ck_fate(writer, ANNAL_OK, 0, 0);
    ck_assert_int_eq(append_batch(writer, 2), ANNAL_OK);
    picky_io_fail(&disk, PICKY_SYNC, LOG, EIO, 1);
    ck_fate(writer, ANNAL_ERR_UNKNOWN, 1, 0);
    ck_fate(writer, ANNAL_OK, 0, 0); /* in the fresh log */
    annal_writer_close(writer);
    ck_numbers(store, "s", 2);
    store_close(store);
}
END_TEST

Suite *suite_failure(void)
{
    Suite *suite = suite_create("failure");
    TCase *journals = suite_case(suite, "journals", set_up, tmpdir_teardown);
    tcase_add_test(journals, a_durable_group_stays_acknowledged_when_its_journal_write_fails);
    tcase_add_test(journals, a_journal_that_cannot_be_created_is_created_later);
    tcase_add_test(journals, a_lagging_session_keeps_lagging_when_the_log_lost_its_events);
    tcase_add_test(journals, the_next_open_redoes_a_session_that_lagged_at_close);
    tcase_add_test(journals, a_lagging_session_does_not_stop_the_others_until_the_log_is_full);
    tcase_add_test(journals, bytes_lost_by_a_failed_sync_are_rewritten_from_the_log);
    tcase_add_test(journals, a_descriptor_stays_open_while_a_checkpoint_uses_it);
    tcase_add_test(journals, bytes_lost_by_a_failed_writeback_are_rewritten_from_the_log);
    tcase_add_test(journals, a_session_refuses_events_and_keeps_its_region_after_two_failed_syncs);
    tcase_add_test(journals, loose_bytes_lost_by_a_failed_sync_are_rewritten);
    tcase_add_test(journals, a_failed_log_sync_at_close_is_reported_and_loses_nothing);
    tcase_add_test(journals, a_descriptor_is_closed_only_after_its_sync);
    TCase *log = suite_case(suite, "log", set_up, tmpdir_teardown);
    tcase_add_test(log, a_failed_log_write_is_refused_and_the_log_stays_in_use);
    tcase_add_test(log, a_large_group_without_a_header_is_refused_and_the_log_stays_in_use);
    tcase_add_test(log, events_encoded_after_a_failed_group_are_refused_with_it);
    tcase_add_test(log, a_failed_log_sync_voids_its_group_and_replaces_the_log);
    tcase_add_test(log, a_fresh_log_gets_the_mark_of_level_os);
    tcase_add_test(log, a_voided_group_never_reappears);
    tcase_add_test(log, a_failed_void_makes_the_answer_unknown_and_stops_the_store);
    tcase_add_test(log, a_void_decides_when_the_empty_group_cannot_be_written);
    tcase_add_test(log, a_failed_log_sync_at_a_checkpoint_loses_no_event);
    tcase_add_test(log, a_stopped_store_warns_once_and_counts_the_stop);
    tcase_add_test(log, no_event_joins_an_epoch_that_a_failed_checkpoint_has_released);
    tcase_add_test(log, a_log_that_is_replaced_while_it_grows_grows_again);
    tcase_add_test(log, a_broken_log_is_kept_until_its_journals_can_be_written);
    tcase_add_test(log, a_void_applies_to_its_own_log_only_and_every_flipped_bit_is_found);

    TCase *writers = suite_case(suite, "writers", set_up, tmpdir_teardown);
    tcase_add_test(writers, a_writer_learns_which_events_are_durable_and_which_were_refused);
    tcase_add_test(writers, a_writer_reports_lost_seqs_until_its_next_append);
    tcase_add_test(writers, without_a_void_only_the_events_of_that_group_are_unknown);
    tcase_add_test(writers, a_writer_reports_events_of_a_replaced_journal_as_unknown);
    tcase_add_test(writers, a_writer_reports_unsyncable_events_of_level_os_as_unknown);
    return suite;
}
