/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/metrics.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

START_TEST(bounds_increase_and_every_value_is_below_its_bound)
{
    ck_assert_uint_eq(annal__metrics_histogram_bound(0), 0);
    ck_assert_uint_eq(annal__metrics_histogram_bound(1), 1);
    ck_assert_uint_eq(annal__metrics_histogram_bound(6), 50);
    ck_assert_uint_eq(annal__metrics_histogram_bound(30), UINT64_C(5000000000));
    ck_assert_uint_eq(annal__metrics_histogram_bound(31), UINT64_MAX);
    ck_assert_uint_eq(annal__metrics_histogram_bound(ANNAL_HISTOGRAM_BUCKETS), UINT64_MAX);
    for (size_t i = 1; i < ANNAL_HISTOGRAM_BUCKETS; i++)
        ck_assert_uint_gt(annal__metrics_histogram_bound(i), annal__metrics_histogram_bound(i - 1));
}
END_TEST

START_TEST(a_quantile_is_in_the_bucket_of_its_rank_and_at_most_the_largest_value)
{
    annal_histogram histogram = {0};
    ck_assert_uint_eq(annal__metrics_histogram_quantile(&histogram, 0.5), 0);
    histogram = (annal_histogram){.count = 100, .max = 130};
    histogram.buckets[7] = 90; /* 51 to 100 */
    histogram.buckets[8] = 10; /* 101 to 200 */
    ck_assert_uint_eq(annal__metrics_histogram_quantile(&histogram, 0), 50);
    uint64_t median = annal__metrics_histogram_quantile(&histogram, 0.5);
    ck_assert(median > 50 && median <= 100);
    uint64_t p99 = annal__metrics_histogram_quantile(&histogram, 0.99);
    ck_assert(p99 > 100 && p99 <= 130);
    ck_assert_uint_eq(annal__metrics_histogram_quantile(&histogram, 1), 130);
    histogram = (annal_histogram){.count = 1, .max = UINT64_MAX};
    histogram.buckets[31] = 1;
    ck_assert_uint_ge(annal__metrics_histogram_quantile(&histogram, 0.5), UINT64_C(5000000000));
}
END_TEST

static annal_metrics metrics_of(annal_store *store, annal_metrics_of of)
{
    annal_metrics metrics;
    annal_store_metrics_get(store, of, &metrics);
    return metrics;
}

START_TEST(appends_are_counted_for_the_object_and_for_the_whole_store)
{
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "a", 1, 7, ANNAL_LEVEL_SYNC);
    append_numbers(store, "a", 8, 10, ANNAL_LEVEL_OS);
    annal_metrics own = metrics_of(store, ANNAL_METRICS_OF_OBJECT);
    ck_assert_uint_eq(own.events, 10);
    ck_assert_uint_eq(own.groups, 7);
    ck_assert_uint_eq(own.group_events.count, 7);
    ck_assert_uint_eq(own.group_events.sum, 7);
    ck_assert_uint_ge(own.sync_us.count, 7);
    ck_assert_uint_gt(own.payload_bytes, 0);
    ck_assert_uint_gt(own.journal_bytes, own.payload_bytes);
    ck_assert_uint_gt(own.log_bytes, own.journal_bytes);
    ck_assert_uint_eq(own.opens, 1);
    store_close(store);

    store = store_open(path);
    append_numbers(store, "b", 1, 5, ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(metrics_of(store, ANNAL_METRICS_OF_OBJECT).events, 5);
    annal_metrics all = metrics_of(store, ANNAL_METRICS_OF_STORE);
    ck_assert_uint_eq(all.events, 15);
    ck_assert_uint_eq(all.groups, 13); /* closing synced the events of level os */
    ck_assert_uint_eq(all.opens, 2);
    ck_assert_uint_ge(all.checkpoints, 1);
    ck_assert_uint_eq(all.checkpoint_us.count, all.checkpoints);
    ck_assert_uint_eq(all.checkpoint_lag_us.count, all.checkpoints);
    ck_assert_int_gt(all.since_us, 0);
    store_close(store);
}
END_TEST

START_TEST(a_read_only_store_shows_the_counts)
{
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "a", 1, 4, ANNAL_LEVEL_SYNC);
    store_close(store);
    const annal_store_options options = {.read_only = true};
    ck_ok(annal_store_open(path, &options, &store, err));
    ck_assert_uint_eq(metrics_of(store, ANNAL_METRICS_OF_STORE).events, 4);
    ck_assert_uint_eq(metrics_of(store, ANNAL_METRICS_OF_STORE).opens, 1);
    store_close(store);
}
END_TEST

START_TEST(counting_starts_again_after_the_file_was_deleted)
{
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "a", 1, 3, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/locks/metrics")), 0);
    append_numbers(store, "a", 4, 5, ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(metrics_of(store, ANNAL_METRICS_OF_STORE).events, 5);
    store_close(store);
    store = store_open(path);
    ck_assert_uint_eq(metrics_of(store, ANNAL_METRICS_OF_STORE).events, 0);
    store_close(store);
}
END_TEST

START_TEST(a_file_of_another_version_is_not_changed_and_the_object_counts_alone)
{
    const char *path = tmpdir_path(&dir, "store");
    const char *file = tmpdir_path(&dir, "store/locks/metrics");
    char other[sizeof(struct metrics_block)];
    memset(other, 'x', sizeof other);
    store_close(store_open(path));
    file_write(file, other, sizeof other);
    annal_store *store = store_open(path);
    append_numbers(store, "a", 1, 3, ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(metrics_of(store, ANNAL_METRICS_OF_STORE).events, 3);
    store_close(store);
    size_t len;
    char *bytes = file_read(file, &len);
    ck_assert_uint_eq(len, sizeof other);
    ck_assert_mem_eq(bytes, other, len);
    free(bytes);
}
END_TEST

/* ---- A slow disk ---- */

struct slow_disk {
    struct io io;
    struct clock clock;
    int64_t now_us;
    int64_t sync_us;
    char warning[512];
};

static int64_t slow_now(void *arg)
{
    return ((struct slow_disk *)arg)->now_us;
}

static int slow_fdatasync(void *arg, int fd)
{
    struct slow_disk *disk = arg;
    disk->now_us += disk->sync_us;
    return annal__system_io.fdatasync(NULL, fd);
}

static void take_warning(void *arg, annal_log_level level, const char *message)
{
    struct slow_disk *disk = arg;
    if (level == ANNAL_LOG_WARNING)
        snprintf(disk->warning, sizeof disk->warning, "%s", message);
}

START_TEST(a_sync_slower_than_a_second_is_counted_and_gives_a_warning)
{
    struct slow_disk disk = {.io = annal__system_io, .sync_us = 900000, .now_us = 1000000};
    disk.io.arg = &disk;
    disk.io.fdatasync = slow_fdatasync;
    disk.clock = (struct clock){
        .wall_us = annal__system_clock.wall_us, .monotonic_us = slow_now, .arg = &disk};
    const struct seams seams = {.io = &disk.io, .clock = &disk.clock};
    const annal_store_options options = {
        .create = true, .no_keeper = true, .log = take_warning, .log_arg = &disk};
    annal_store *store = NULL;
    ck_ok(annal__store_open(tmpdir_path(&dir, "store"), &options, &seams, &store, err));
    append_numbers(store, "a", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(metrics_of(store, ANNAL_METRICS_OF_STORE).slow_syncs, 0);
    ck_assert_str_eq(disk.warning, "");
    disk.sync_us = 2500000;
    append_numbers(store, "a", 2, 2, ANNAL_LEVEL_SYNC);
    annal_metrics metrics = metrics_of(store, ANNAL_METRICS_OF_STORE);
    ck_assert_uint_eq(metrics.slow_syncs, 1);
    ck_assert_uint_eq(metrics.sync_us.max, 2500000);
    ck_assert_ptr_nonnull(strstr(disk.warning, "commit log took 2500 ms"));
    store_close(store);
}
END_TEST

START_TEST(refused_appends_and_unavailable_sessions_are_counted)
{
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path), *other = store_open(path);
    uint64_t seq;
    ck_status(ANNAL_ERR_INVALID,
              append_slice(store, "a", ANNAL_SLICE("no JSON"), NULL, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_uint_eq(metrics_of(store, ANNAL_METRICS_OF_OBJECT).refused, 1);
    append_numbers(store, "a", 1, 1, ANNAL_LEVEL_SYNC);
    annal_writer *writer = NULL;
    const annal_writer_options options = {.wait_ms = 1};
    const annal_draft draft = {.type = ANNAL_SLICE("t"), .data = ANNAL_SLICE("1")};
    ck_ok(annal_writer_open(other, ANNAL_SLICE("a"), &options, &writer, err));
    ck_status(ANNAL_ERR_BUSY, annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    annal_writer_close(writer);
    annal_metrics metrics = metrics_of(other, ANNAL_METRICS_OF_OBJECT);
    ck_assert_uint_eq(metrics.refused, 1);
    ck_assert_uint_eq(metrics.refused_opens, 1);
    ck_assert_uint_eq(metrics.session_wait_us.count, 1);
    store_close(other);
    store_close(store);
}
END_TEST

Suite *suite_metrics(void)
{
    Suite *suite = suite_create("metrics");
    TCase *histograms = suite_case(suite, "histograms", NULL, NULL);
    tcase_add_test(histograms, bounds_increase_and_every_value_is_below_its_bound);
    tcase_add_test(histograms,
                   a_quantile_is_in_the_bucket_of_its_rank_and_at_most_the_largest_value);

    TCase *counters = suite_case(suite, "counters", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(counters, appends_are_counted_for_the_object_and_for_the_whole_store);
    tcase_add_test(counters, a_read_only_store_shows_the_counts);
    tcase_add_test(counters, counting_starts_again_after_the_file_was_deleted);
    tcase_add_test(counters, a_file_of_another_version_is_not_changed_and_the_object_counts_alone);
    tcase_add_test(counters, a_sync_slower_than_a_second_is_counted_and_gives_a_warning);
    tcase_add_test(counters, refused_appends_and_unavailable_sessions_are_counted);
    return suite;
}
