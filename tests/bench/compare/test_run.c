/* SPDX-License-Identifier: Apache-2.0 */
/* That a run notices what a contender does wrong, and what the figures of a report are. */
#include "tests/bench/compare/report.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct contender contender_jsonl;

static enum { SOUND, LOSES, CHANGES, DOUBLES, REFUSES, DIES } fault;

struct through {
    bench_event_fn fn;
    void *arg;
};

static void pass(void *arg, const struct bench_event *event)
{
    struct through *through = arg;
    struct bench_event copy = *event;
    char *data = malloc(event->data.len);
    memcpy(data, event->data.ptr, event->data.len);
    copy.data.ptr = data;
    if (fault == CHANGES && event->seq == 3)
        data[event->data.len / 2] ^= 1;
    if (fault != LOSES || event->seq != 3)
        through->fn(through->arg, &copy);
    if (fault == DOUBLES && event->seq == 3)
        through->fn(through->arg, &copy);
    free(data);
}

static void faulty_read(void *handle, unsigned session, uint64_t from_seq, uint64_t count,
                        bench_event_fn fn, void *arg)
{
    contender_jsonl.read(handle, session, from_seq, count, pass, &(struct through){fn, arg});
}

static void faulty_append(void *writer, const struct bench_event *events, size_t count)
{
    if (fault == REFUSES && events->seq == 3)
        bench_fail("the disk is full");
    if (fault == DIES && events->seq == 3)
        _exit(7);
    contender_jsonl.append(writer, events, count);
}

static void run_with(unsigned threads, struct run_result *out)
{
    struct contender faulty = contender_jsonl;
    struct workload workload = {.name = "W",
                                .kind = WORKLOAD_APPEND,
                                .processes = 1,
                                .threads = threads,
                                .sessions = 2,
                                .batch = 1,
                                .stretch = 1,
                                .events = 20};
    struct payloads *payloads = payloads_new(1, 300, 2);
    struct tmpdir folder;
    tmpdir_init(&folder);
    faulty.read = faulty_read;
    faulty.append = faulty_append;
    run(&faulty, &workload, payloads, tmpdir_path(&folder, "run"), out);
    ck_assert_int_ne(access(tmpdir_path(&folder, "run"), F_OK), 0);
    payloads_free(payloads);
    tmpdir_done(&folder);
}

static void ck_fails(const char *words)
{
    struct run_result result;
    run_with(1, &result);
    ck_assert_msg(strstr(result.error, words) != NULL, "'%s'", result.error);
}

START_TEST(a_run_counts_its_events_and_bytes)
{
    struct run_result result;
    fault = SOUND;
    run_with(2, &result);
    ck_assert_str_eq(result.error, "");
    ck_assert_uint_eq(result.events, 20);
    ck_assert_uint_eq(result.bytes, 20 * 300);
    ck_assert_uint_eq(result.times.count, 20);
    ck_assert_uint_ne(result.content, 0);
    ck_assert(result.seconds > 0 && result.disk_bytes > 0);
}
END_TEST

START_TEST(an_event_that_is_lost_changed_or_doubled_fails_the_run)
{
    fault = LOSES;
    ck_fails("event 4 comes where 3 belongs");
    fault = CHANGES;
    ck_fails("event 3 is not what was written");
    fault = DOUBLES;
    ck_fails("event 3 comes where 4 belongs");
}
END_TEST

START_TEST(a_writer_that_fails_or_dies_fails_the_run)
{
    fault = REFUSES;
    ck_fails("the disk is full");
    fault = DIES;
    ck_fails("a process ended with status");
}
END_TEST

START_TEST(quantiles_are_approximate_and_medians_are_the_middle_run)
{
    static struct times times, other;
    for (uint64_t i = 1; i <= 1000; i++)
        times_add(i % 2 == 0 ? &times : &other, i * 1000);
    times_merge(&times, &other);
    ck_assert_uint_eq(times.count, 1000);
    ck_assert_uint_eq(times.max_ns, 1000000);
    ck_assert(times_quantile_ns(&times, 0.5) >= 500000 && times_quantile_ns(&times, 0.5) < 510000);
    ck_assert(times_quantile_ns(&times, 0.99) >= 990000 &&
              times_quantile_ns(&times, 0.99) <= 1000000);
    ck_assert_double_eq(median((double[]){9, 1, 5}, 3), 5);
    ck_assert_double_eq(median((double[]){4, 1, 3, 2}, 4), 2.5);
}
END_TEST

static const struct contender *named(const char *name)
{
    const struct contender *const *at = contenders;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at++;
    return *at;
}

static void add(struct report *report, const struct workload *workload, const char *name,
                unsigned number, uint64_t events)
{
    struct report_row row = {workload, named(name), number, {.error = ""}};
    row.result.events = events;
    row.result.bytes = events * 1000;
    row.result.seconds = 1;
    times_add(&row.result.times, 1000);
    ck_assert_ptr_nonnull(row.contender);
    ck_assert(report_add(report, &row));
}

START_TEST(a_report_has_medians_and_ratios_to_raw_and_to_the_best_durable_peer)
{
    static const struct workload workload = {
        .name = "W", .title = "words", .kind = WORKLOAD_APPEND, .batch = 1};
    struct report report = {.command = strdup("annal-bench \"x\"")};
    char *text = NULL;
    size_t len;
    for (unsigned i = 0; i < 3; i++) {
        add(&report, &workload, "raw", i + 1, 800 + 200 * i); /* median 1,000 */
        add(&report, &workload, "annal", i + 1, 500);
        add(&report, &workload, "jsonl", i + 1, 90000); /* not durable */
        add(&report, &workload, "sqlite-full", i + 1, 250);
    }
    FILE *out = open_memstream(&text, &len);
    report_markdown(&report, out);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(text, "| raw | 1,000 | 1.00 | 4.00 |"));
    ck_assert_ptr_nonnull(strstr(text, "| annal | 500 | 0.50 | 2.00 |"));
    ck_assert_ptr_nonnull(strstr(text, "\nVersions: sqlite-full " SQLITE_VERSION ".\n"));
    free(text);
    out = open_memstream(&text, &len);
    report_json(&report, out);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(text, "\"command\":\"annal-bench \\\"x\\\"\""));
    ck_assert_ptr_nonnull(strstr(text, "\"contender\":\"annal\",\"run\":3,"));
    ck_assert_ptr_nonnull(strstr(text, "\"versions\":{\"sqlite-full\":\"" SQLITE_VERSION "\"}"));
    free(text);
    report_done(&report);
}
END_TEST

Suite *suite_run(void)
{
    Suite *suite = suite_create("run");
    TCase *tcase = suite_case(suite, "run", NULL, NULL);
    tcase_add_test(tcase, a_run_counts_its_events_and_bytes);
    tcase_add_test(tcase, an_event_that_is_lost_changed_or_doubled_fails_the_run);
    tcase_add_test(tcase, a_writer_that_fails_or_dies_fails_the_run);
    tcase_add_test(tcase, quantiles_are_approximate_and_medians_are_the_middle_run);
    tcase_add_test(tcase, a_report_has_medians_and_ratios_to_raw_and_to_the_best_durable_peer);
    return suite;
}
