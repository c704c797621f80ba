/* SPDX-License-Identifier: Apache-2.0 */
/* What a deleted session leaves in the files of its store: nothing. */
#include "journal/held_list.h"
#include "journal/store.h"
#include "journal/sys/delete.h"

#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/stopped.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct seams after_a_power_cut = {.io = &annal__system_io,
                                               .clock = &annal__system_clock,
                                               .boot = (const uint8_t *)"another boot....."};

#define SECRET "zanzibar"

struct remarks {
    unsigned count;
    char last[400];
};

static void note_remark(void *arg, annal_log_level level, const char *message)
{
    struct remarks *remarks = arg;
    if (level != ANNAL_LOG_WARNING)
        return;
    remarks->count++;
    snprintf(remarks->last, sizeof remarks->last, "%s", message);
}

/* With a keeper, which answers others; or without, so that it looks as if it was stopped. */
static annal_store *open_store(const char *path, bool keeper, struct remarks *remarks)
{
    annal_store *store = NULL;
    const annal_store_options options = {.create = true,
                                         .no_keeper = !keeper,
                                         .wait_ms = keeper ? 10000 : 50,
                                         .log = remarks == NULL ? NULL : note_remark,
                                         .log_arg = remarks};
    ck_ok(annal_store_open(path, &options, &store, err));
    return store;
}

/* count events whose data says the secret every 16 bytes, pad bytes each. */
static void append_secrets(annal_store *store, const char *session, unsigned count, size_t pad)
{
    char *data = malloc(pad + 32);
    size_t at = 1;
    data[0] = '"';
    while (at < pad)
        at += (size_t)sprintf(data + at, SECRET "%08zu", at);
    data[at++] = '"';
    for (unsigned i = 0; i < count; i++) {
        uint64_t seq = 0;
        ck_ok(append_slice(store, session, (annal_slice){data, at}, NULL, ANNAL_LEVEL_SYNC, &seq,
                           err));
    }
    free(data);
}

static void ck_no_secret(const char *store)
{
    char name[300] = "";
    ck_assert_msg(grep_tree(store, SECRET, name, sizeof name) == 0, "it is in %s", name);
}

START_TEST(a_deleted_session_leaves_nothing_in_the_log_of_this_process)
{
    static const struct {
        unsigned count;
        size_t pad;
    } amounts[] = {{3, 200}, {30, 5000}, {12, 300000}}; /* the last: in a log that grows */
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        const char *path = tmpdir_path(&dir, "store");
        annal_store *store = open_store(path, _i == 0, NULL);
        append_numbers(store, "other", 1, 3, ANNAL_LEVEL_SYNC);
        append_secrets(store, "gone", amounts[i].count, amounts[i].pad);
        append_numbers(store, "other", 4, 6, ANNAL_LEVEL_SYNC);
        ck_assert_uint_ge(grep_tree(path, SECRET, NULL, 0), 1);
        ck_ok(delete_wiped(store, ANNAL_SLICE("gone"), NULL, err));
        ck_no_secret(path);
        append_numbers(store, "other", 7, 9, ANNAL_LEVEL_SYNC);
        store_abandon(store);
        store = store_open_seams(path, &after_a_power_cut);
        ck_numbers(store, "other", 9);
        append_numbers(store, "other", 10, 10, ANNAL_LEVEL_SYNC);
        store_close(store);
        ck_no_secret(path);
        tmpdir_renew();
    }
}
END_TEST

START_TEST(another_process_overwrites_its_log_on_request)
{
    struct remarks remarks = {0};
    const char *path = tmpdir_path(&dir, "store");
    annal_store *owner = open_store(path, true, NULL);
    append_secrets(owner, "gone", 10, 900);
    append_numbers(owner, "other", 1, 3, ANNAL_LEVEL_SYNC);
    annal_store *store = open_store(path, true, &remarks);
    ck_ok(delete_wiped(store, ANNAL_SLICE("gone"), NULL, err));
    ck_no_secret(path);
    ck_assert_msg(remarks.count == 0, "%s", remarks.last);
    append_numbers(owner, "other", 4, 5, ANNAL_LEVEL_SYNC);
    store_abandon(owner);
    store_close(store);
    store = store_open_seams(path, &after_a_power_cut);
    ck_numbers(store, "other", 5);
    store_close(store);
}
END_TEST

struct busy {
    annal_store *store;
    _Atomic bool stop;
    uint64_t appended;
};

static void *append_until_stopped(void *arg)
{
    struct busy *busy = arg;
    while (!atomic_load(&busy->stop)) {
        busy->appended++;
        append_numbers(busy->store, "other", busy->appended, busy->appended, ANNAL_LEVEL_SYNC);
    }
    return NULL;
}

START_TEST(a_process_that_appends_without_a_pause_overwrites_its_log_too_and_loses_nothing)
{
    struct remarks remarks = {0};
    pthread_t thread;
    const char *path = tmpdir_path(&dir, "store");
    struct busy busy = {.store = open_store(path, true, NULL)};
    annal_store *store = open_store(path, true, &remarks);
    ck_assert_int_eq(pthread_create(&thread, NULL, append_until_stopped, &busy), 0);
    for (int i = 0; i < 5; i++) {
        append_secrets(busy.store, "gone", 10, 900);
        ck_ok(delete_wiped(store, ANNAL_SLICE("gone"), NULL, err));
        ck_no_secret(path);
    }
    atomic_store(&busy.stop, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_msg(remarks.count == 0, "%s", remarks.last);
    store_abandon(busy.store);
    store_close(store);
    store = store_open_seams(path, &after_a_power_cut);
    ck_numbers(store, "other", busy.appended);
    store_close(store);
}
END_TEST

/* 0: the process continues. 1: it closes the store. 2: it is killed. 3: the power fails. */
START_TEST(content_in_the_log_of_a_stopped_process_is_reported_and_removed_later)
{
    struct remarks remarks = {0};
    const char *path = tmpdir_path(&dir, "store");
    annal_store *owner = open_store(path, false, NULL);
    append_secrets(owner, "gone", 10, 900);
    append_numbers(owner, "other", 1, 3, ANNAL_LEVEL_SYNC);
    annal_store *store = open_store(path, false, &remarks);
    ck_status(ANNAL_ERR_BUSY, delete_wiped(store, ANNAL_SLICE("gone"), NULL, err));
    ck_ok(annal_store_keep(owner, err)); /* gives it back, and is stopped */
    ck_ok(delete_wiped(store, ANNAL_SLICE("gone"), NULL, err));
    ck_assert_uint_eq(remarks.count, 1);
    ck_assert_msg(strstr(remarks.last, "may remain in commit log 00 of process ") != NULL, "%s",
                  remarks.last);
    ck_assert_uint_eq(grep_tree(path, SECRET, NULL, 0), 1);
    if (_i == 0)
        ck_ok(annal_store_keep(owner, err));
    if (_i >= 2)
        store_abandon(owner);
    else
        store_close(owner);
    store_close(store);
    if (_i >= 2)
        store_close(_i == 2 ? open_store(path, false, NULL)
                            : store_open_seams(path, &after_a_power_cut));
    ck_no_secret(path);
    store = open_store(path, false, NULL);
    ck_numbers(store, "other", 3);
    append_numbers(store, "other", 4, 4, ANNAL_LEVEL_SYNC);
    store_close(store);
}
END_TEST

static int64_t now_ms(void)
{
    return annal__system_clock.monotonic_us(NULL) / 1000;
}

struct giver {
    annal_store *owner;
    unsigned after_ms;
};

static void *give_back_late(void *arg)
{
    const struct giver *giver = arg;
    usleep(giver->after_ms * 1000);
    (void)!annal_store_keep(giver->owner, NULL);
    return NULL;
}

/* One process releases the session near the end of the limit; another process is stopped. */
START_TEST(a_deletion_waits_once_for_its_session_and_once_for_all_logs)
{
    pthread_t thread;
    const char *path = tmpdir_path(&dir, "store");
    annal_store *stopped = open_store(path, false, NULL), *store = NULL;
    struct giver giver = {open_store(path, false, NULL), 1000};
    append_secrets(stopped, "other", 1, 100);
    append_secrets(giver.owner, "gone", 1, 100);
    const annal_store_options options = {.no_keeper = true, .wait_ms = 1500};
    ck_ok(annal_store_open(path, &options, &store, err));
    ck_assert_int_eq(pthread_create(&thread, NULL, give_back_late, &giver), 0);
    int64_t begun_ms = now_ms();
    ck_ok(delete_wiped(store, ANNAL_SLICE("gone"), NULL, err));
    int64_t took_ms = now_ms() - begun_ms;
    ck_assert_int_ge(took_ms, 1000);
    ck_assert_msg(took_ms < 3300, "%lld ms", (long long)took_ms);
    pthread_join(thread, NULL);
    store_close(store);
    store_close(giver.owner);
    store_close(stopped);
}
END_TEST

/* Not one after the other: neither for those who answer, nor for those who did not the last
 * time. */
START_TEST(many_stopped_processes_cost_one_limit_together)
{
    enum { STOPPED = 20 };
    struct remarks remarks = {0};
    const char *path = tmpdir_path(&dir, "store");
    annal_store *stopped[STOPPED];
    for (unsigned i = 0; i < STOPPED; i++) {
        stopped[i] = open_store(path, false, NULL);
        append_numbers(stopped[i], "other", 1, 1, ANNAL_LEVEL_SYNC);
        ck_ok(delete_wiped(stopped[i], ANNAL_SLICE("other"), NULL, err));
    }
    annal_store *store = open_store(path, false, &remarks);
    append_numbers(store, "gone", 1, 1, ANNAL_LEVEL_SYNC);
    int64_t begun_ms = now_ms();
    ck_ok(delete_wiped(store, ANNAL_SLICE("gone"), NULL, err));
    int64_t took_ms = now_ms() - begun_ms;
    ck_assert_msg(took_ms < 5000, "%lld ms", (long long)took_ms);
    ck_assert_uint_eq(remarks.count, 1);
    for (unsigned i = 0; i < STOPPED; i++)
        store_close(stopped[i]);
    store_close(store);
}
END_TEST

static void append_and_stop(void *path)
{
    annal_store *store = open_store(path, true, NULL);
    append_secrets(store, "other", 1, 100);
    raise(SIGSTOP);
}

START_TEST(a_stopped_process_is_named_without_waiting_for_it)
{
    struct remarks remarks = {0};
    struct stopped stopped;
    char *path = strdup(tmpdir_path(&dir, "store"));
    stopped_start(&stopped, append_and_stop, path);
    annal_store *store = NULL;
    const annal_store_options options = {
        .no_keeper = true, .wait_ms = 30000, .log = note_remark, .log_arg = &remarks};
    ck_ok(annal_store_open(path, &options, &store, err));
    append_secrets(store, "gone", 1, 100);
    int64_t begun_us = stopped_now_us();
    ck_ok(delete_wiped(store, ANNAL_SLICE("gone"), NULL, err));
    ck_in_time(begun_us, 0);
    ck_assert_uint_eq(remarks.count, 1);
    ck_assert_ptr_nonnull(strstr(remarks.last, stopped.who));
    stopped_end(&stopped);
    store_close(store);
    free(path);
}
END_TEST

static uint32_t asked_of(const char *held_path)
{
    struct held held;
    ck_ok(annal__held_open(&annal__system_io, held_path, false, &held, err));
    uint32_t wanted = atomic_load(&held.header->wipe_wanted);
    annal__held_close(&held);
    return wanted;
}

START_TEST(a_deletion_of_many_sessions_asks_other_processes_once)
{
    const char *path = tmpdir_path(&dir, "store");
    annal_store *owner = open_store(path, false, NULL), *store = open_store(path, false, NULL);
    append_numbers(owner, "other", 1, 3, ANNAL_LEVEL_SYNC);
    append_secrets(store, "a", 3, 900);
    append_secrets(store, "b", 3, 900);
    ck_ok(annal__replace_delete(store, ANNAL_SLICE("a"), NULL, err));
    ck_ok(annal__replace_delete(store, ANNAL_SLICE("b"), NULL, err));
    ck_assert_uint_eq(asked_of(tmpdir_path(&dir, "store/locks/00.held")), 0);
    ck_status(ANNAL_ERR_BUSY, annal__replace_wipe_logs(store, err));
    ck_assert_uint_eq(asked_of(tmpdir_path(&dir, "store/locks/00.held")), 1);
    ck_no_secret(path);
    ck_ok(annal_store_keep(owner, err));
    ck_ok(annal_store_keep(owner, err));
    store_close(owner);
    ck_ok(annal__replace_wipe_logs(store, err));
    store_close(store);
}
END_TEST

/* Closed, or killed; the process that deletes has a log of its own, or not yet. */
START_TEST(unowned_logs_keep_no_deleted_content)
{
    const char *path = tmpdir_path(&dir, "store");
    annal_store *first = open_store(path, false, NULL), *second = open_store(path, false, NULL);
    append_secrets(first, "gone", 10, 900);
    append_secrets(second, "too", 10, 900);
    store_close(second);
    annal_store *store = open_store(path, false, NULL);
    if (_i == 0)
        append_numbers(store, "other", 1, 1, ANNAL_LEVEL_SYNC);
    store_abandon(first);
    ck_ok(delete_wiped(store, ANNAL_SLICE("gone"), NULL, err));
    ck_ok(delete_wiped(store, ANNAL_SLICE("too"), NULL, err));
    ck_no_secret(path);
    append_numbers(store, "other", _i == 0 ? 2 : 1, 3, ANNAL_LEVEL_SYNC);
    store_close(store);
    store = open_store(path, false, NULL);
    ck_numbers(store, "other", 3);
    store_close(store);
}
END_TEST

START_TEST(a_deletion_removes_cut_tails_and_unfinished_copies)
{
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = open_store(path, false, NULL);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    append_numbers(store, "s.1", 1, 3, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(mkdir(tmpdir_path(&dir, "store/events/.torn"), 0700), 0);
    file_write(tmpdir_path(&dir, "store/events/.torn/s.120.1780000000000000"), SECRET, 8);
    file_write(tmpdir_path(&dir, "store/events/.torn/s.7.1780000000000000.tmp"), SECRET, 8);
    file_write(tmpdir_path(&dir, "store/events/.new-0123"), SECRET, 8);
    const char *other = tmpdir_path(&dir, "store/events/.torn/s.1.120.1780000000000000");
    file_write(other, "{", 1);
    ck_ok(delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    ck_no_secret(path);
    ck_assert_int_eq(access(other, F_OK), 0);
    store_close(store);
}
END_TEST

/* A directory stands where such a piece would, so that it cannot be removed. */
START_TEST(a_session_that_cannot_be_deleted_completely_stays_and_can_be_deleted_later)
{
    annal_session_info info = {.last_seq = 77};
    annal_store *store = open_store(tmpdir_path(&dir, "store"), false, NULL);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(mkdir(tmpdir_path(&dir, "store/events/.torn"), 0700), 0);
    const char *piece = tmpdir_path(&dir, "store/events/.torn/s.120.1780000000000000");
    ck_assert_int_eq(mkdir(piece, 0700), 0);
    ck_status(ANNAL_ERR_IO, delete_wiped(store, ANNAL_SLICE("s"), &info, err));
    ck_assert_uint_eq(info.last_seq, 77);
    ck_numbers(store, "s", 3);
    ck_assert_int_eq(rmdir(tmpdir_path(&dir, "store/events/.torn/s.120.1780000000000000")), 0);
    ck_ok(delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    store_close(store);
}
END_TEST

/* ---- A disk that fails ---- */

/* Zeros that are written over a log: the number of failing writes, and of failing syncs after
 * them. */
static struct {
    _Atomic int writes, syncs;
    _Atomic bool written;
} zeros;

static ssize_t write_zeros(void *arg, int fd, const void *bytes, size_t len, uint64_t offset)
{
    const char *first = bytes;
    bool zero = len >= 4096 && first[0] == 0 && memcmp(first, first + 1, len - 1) == 0;
    if (zero && atomic_load(&zeros.writes) > 0) {
        atomic_fetch_sub(&zeros.writes, 1);
        errno = EIO;
        return -1;
    }
    atomic_store(&zeros.written, zero);
    return annal__system_io.pwrite(arg, fd, bytes, len, offset);
}

static int sync_zeros(void *arg, int fd)
{
    if (atomic_load(&zeros.written) && atomic_load(&zeros.syncs) > 0) {
        atomic_fetch_sub(&zeros.syncs, 1);
        errno = EIO;
        return -1;
    }
    return annal__system_io.fdatasync(arg, fd);
}

static annal_store *open_failing(const char *path, bool keeper, struct io *io,
                                 struct remarks *remarks)
{
    annal_store *store = NULL;
    const struct seams seams = {.io = io, .clock = &annal__system_clock};
    const annal_store_options options = {
        .create = true, .no_keeper = !keeper, .log = note_remark, .log_arg = remarks};
    *io = annal__system_io;
    io->pwrite = write_zeros;
    io->fdatasync = sync_zeros;
    ck_ok(annal__store_open(path, &options, &seams, &store, err));
    return store;
}

START_TEST(a_failed_sync_of_the_zeros_is_reported_and_the_log_is_replaced)
{
    struct io io;
    struct remarks remarks = {0};
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = open_failing(path, false, &io, &remarks);
    append_secrets(store, "gone", 3, 900);
    append_numbers(store, "other", 1, 3, ANNAL_LEVEL_SYNC);
    atomic_store(&zeros.syncs, 1);
    ck_ok(delete_wiped(store, ANNAL_SLICE("gone"), NULL, err));
    ck_assert_int_eq(atomic_load(&zeros.syncs), 0);
    ck_assert_uint_eq(remarks.count, 1);
    ck_assert_ptr_nonnull(strstr(remarks.last, "sync commit log"));
    ck_no_secret(path);
    append_numbers(store, "other", 4, 4, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_close(store, err)); /* this is about what fails in it */
}
END_TEST

START_TEST(an_owner_whose_disk_refuses_the_zeros_tries_again_soon)
{
    struct io io;
    struct remarks remarks = {0}, ignored = {0};
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = open_store(path, false, &ignored);
    append_numbers(store, "other", 1, 3, ANNAL_LEVEL_SYNC);
    annal_store *owner = open_failing(path, true, &io, &remarks);
    append_secrets(owner, "gone", 3, 900);
    atomic_store(&zeros.writes, 1);
    annal_status status = ANNAL_ERR_BUSY;
    for (int i = 0; i < 100 && status == ANNAL_ERR_BUSY; i++)
        status = delete_wiped(store, ANNAL_SLICE("gone"), NULL, NULL);
    ck_assert_int_eq(status, ANNAL_OK);
    int64_t begun_ms = now_ms();
    while (grep_tree(path, SECRET, NULL, 0) > 0) {
        ck_assert_int_lt(now_ms() - begun_ms, scaled_us(3500));
        usleep(20000);
    }
    ck_assert_int_eq(atomic_load(&zeros.writes), 0);
    store_close(owner);
    store_close(store);
}
END_TEST

Suite *suite_wipe(void)
{
    Suite *suite = suite_create("wipe");
    TCase *tests = suite_case(suite, "wipe", tmpdir_setup, tmpdir_teardown);
    tcase_add_loop_test(tests, a_deleted_session_leaves_nothing_in_the_log_of_this_process, 0, 2);
    tcase_add_test(tests, another_process_overwrites_its_log_on_request);
    tcase_add_test(tests,
                   a_process_that_appends_without_a_pause_overwrites_its_log_too_and_loses_nothing);
    tcase_add_loop_test(
        tests, content_in_the_log_of_a_stopped_process_is_reported_and_removed_later, 0, 4);
    tcase_add_test(tests, a_deletion_waits_once_for_its_session_and_once_for_all_logs);
    tcase_add_test(tests, many_stopped_processes_cost_one_limit_together);
    tcase_add_test(tests, a_stopped_process_is_named_without_waiting_for_it);
    tcase_add_test(tests, a_deletion_of_many_sessions_asks_other_processes_once);
    tcase_add_loop_test(tests, unowned_logs_keep_no_deleted_content, 0, 2);
    tcase_add_test(tests, a_deletion_removes_cut_tails_and_unfinished_copies);
    tcase_add_test(tests,
                   a_session_that_cannot_be_deleted_completely_stays_and_can_be_deleted_later);
    tcase_add_test(tests, a_failed_sync_of_the_zeros_is_reported_and_the_log_is_replaced);
    tcase_add_test(tests, an_owner_whose_disk_refuses_the_zeros_tries_again_soon);
    return suite;
}
