/* SPDX-License-Identifier: Apache-2.0 */
/* Failure modes that have a number, each by itself. The loops of test_faults.c find them too. */
#include "tests/crash/failing_sqlite.h"
#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <annal/annal.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- A sync that fails ---- */

struct watched {
    struct failing_io disk; /* first: what its functions take */
    int failed;             /* the descriptor of which a sync failed, while it is open; else -1 */
    unsigned again;         /* syncs of it after that */
    unsigned failures;
};

static int watched_fdatasync(void *arg, int fd)
{
    struct watched *watched = arg;
    watched->again += fd == watched->failed;
    if (watched->disk.fail_at == 0)
        return annal__system_io.fdatasync(NULL, fd);
    watched->disk.fail_at = 0;
    watched->failed = fd;
    watched->failures++;
    errno = EIO;
    return -1;
}

/* The next file may get the same descriptor number. */
static int watched_close(void *arg, int fd)
{
    struct watched *watched = arg;
    if (fd == watched->failed)
        watched->failed = -1;
    return annal__system_io.close(NULL, fd);
}

static void watched_init(struct watched *watched)
{
    failing_io_init(&watched->disk);
    watched->disk.io.fdatasync = watched_fdatasync;
    watched->disk.io.close = watched_close;
    watched->failed = -1;
    watched->again = watched->failures = 0;
}

static void count_event(void *arg, const annal_event *event)
{
    uint64_t number = event_number(event);
    ck_assert_uint_lt(number, 16);
    ((unsigned *)arg)[number]++;
}

/*
 * The kernel may have dropped the pages, and a second sync would succeed without them. Whether the
 * store continues with another log or stops, its answers are true.
 */
START_TEST(a_log_whose_sync_failed_is_never_synced_again)
{
    struct watched watched;
    uint64_t seq = 0;
    watched_init(&watched);
    const char *path = tmpdir_path(&dir, "store");
    const struct seams seams = {&watched.disk.io, &annal__system_clock, NULL};
    annal_store *store = store_open_seams(path, &seams);
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    watched.disk.fail_at = 1; /* the next sync */
    annal_error why = {0};
    annal_status third = append_number(store, "s", 3, 40, ANNAL_LEVEL_SYNC, &seq, &why);
    ck_assert_uint_eq(watched.failures, 1);
    ck_assert_int_lt(third, 0);
    annal_status fourth = append_number(store, "s", 4, 40, ANNAL_LEVEL_SYNC, &seq, &why);
    (void)annal_store_close(store, NULL);
    ck_assert_uint_eq(watched.again, 0);
    unsigned there[16] = {0};
    store = store_open(path);
    read_session(store, "s", count_event, there);
    ck_assert(there[1] == 1 && there[2] == 1 && there[3] <= 1 && there[4] <= 1);
    ck_assert(third == ANNAL_ERR_UNKNOWN || there[3] == 0);
    ck_assert_uint_eq(there[4], fourth == ANNAL_OK ? 1 : 0);
    store_close(store);
}
END_TEST

/* ---- A disk that is full ---- */

START_TEST(an_append_that_a_full_disk_cut_is_refused_or_unknown_and_never_read_in_part)
{
    for (unsigned at = 1; at < 40; at++) {
        struct failing_io disk;
        uint64_t seq = 0;
        annal_error why = {0};
        unsigned there[16] = {0};
        failing_io_init(&disk);
        const char *path = tmpdir_path(&dir, "store");
        const struct seams seams = {&disk.io, &annal__system_clock, NULL};
        annal_store *store = store_open_seams(path, &seams);
        append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
        disk.lazy = disk.by_table = disk.for_good = true;
        disk.way = 2; /* of a write: half of it, and then no space */
        disk.calls = 0;
        disk.fail_at = at;
        annal_status third = append_number(store, "s", 3, 40, ANNAL_LEVEL_SYNC, &seq, &why);
        disk.fail_at = 0;
        disk.full = false;
        (void)annal_store_close(store, NULL);
        store = store_open(path);
        read_session(store, "s", count_event, there);
        ck_assert(there[1] == 1 && there[2] == 1);
        ck_assert(third != ANNAL_OK || there[3] == 1);
        ck_assert(third == ANNAL_OK || third == ANNAL_ERR_UNKNOWN || there[3] == 0);
        append_numbers(store, "s", 5, 5, ANNAL_LEVEL_SYNC);
        store_close(store);
        tmpdir_renew();
    }
}
END_TEST

START_TEST(a_full_disk_under_the_index_fails_no_append_and_the_index_catches_up)
{
    struct failing_sqlite full = {.fail_at = 1, .for_good = true, .way = 1 /* SQLITE_FULL */};
    annal_index *index = NULL;
    uint64_t count = 0;
    const annal_filter all = {0};
    const annal_index_options options = {.wait_ms = 200};
    failing_sqlite_install();
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    append_numbers(store, "s", 1, 10, ANNAL_LEVEL_SYNC);
    ck_ok(annal_index_open(store, &options, &index, err));
    ck_ok(annal_index_catch_up(index, (annal_slice){0}, NULL, err));
    failing_sqlite_arm(&full);
    for (uint64_t number = 11; number <= 20; number++) {
        uint64_t seq;
        ck_ok(append_number(store, "s", number, 40, ANNAL_LEVEL_SYNC, &seq, err));
        ck_assert_uint_eq(seq, number);
    }
    /* Readers are answered all the same: from memory, or from what is indexed and the rest of the
     * journal. */
    annal_lag lag = {0};
    annal_error why = {0};
    annal_status status = annal_query_count(index, &all, &count, &lag, &why);
    ck_assert_msg(status == ANNAL_OK, "%s", why.message);
    ck_assert(count == 20 || lag.bytes > 0);
    failing_sqlite_arm(NULL);
    annal_index_close(index);
    ck_ok(annal_index_open(store, &options, &index, err));
    ck_ok(annal_index_catch_up(index, (annal_slice){0}, NULL, err));
    ck_ok(annal_query_count(index, &all, &count, NULL, err));
    ck_assert_uint_eq(count, 20);
    annal_index_close(index);
    store_close(store);
}
END_TEST

Suite *suite_failures(void)
{
    Suite *suite = suite_create("failures");
    TCase *tests = suite_case(suite, "failures", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(tests, a_log_whose_sync_failed_is_never_synced_again);
    tcase_add_test(tests,
                   an_append_that_a_full_disk_cut_is_refused_or_unknown_and_never_read_in_part);
    tcase_add_test(tests, a_full_disk_under_the_index_fails_no_append_and_the_index_catches_up);
    return suite;
}
