/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power cuts while artifacts are stored and named: an event that is left names content that is
 * left, whole.
 */
#include "journal/sys/artifact.h"
#include "tests/crash/power_check.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"

#include <annal/artifact.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTCOMES 8 /* most outcomes of one power cut */

static struct sim_disk *disk;
static unsigned events_left, cuts;

static void set_up(void)
{
    disk = sim_disk_new();
    events_left = cuts = 0;
}

static void tear_down(void)
{
    sim_disk_free(disk);
}

static annal_store *open_on(struct sim_disk *of)
{
    const annal_store_options options = {
        .create = true, .no_keeper = true, .wait_ms = 1, .region_bytes = 1 << 20};
    annal_store *store = NULL;
    ck_ok(power_open(sim_process_new(of), &options, &store, err));
    return store;
}

/* An annal_session_fn: check that each artifact that an event names exists. */
static int check_session(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    annal_store *store = arg;
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status;
    ck_ok(annal_cursor_open(store, session, 1, &cursor, err));
    while ((status = annal_cursor_next(cursor, &event, NULL)) == ANNAL_OK) {
        const char *hash = memmem(event.data.ptr, event.data.len, "\"sha256\":\"", 10);
        ck_assert_ptr_nonnull(hash);
        ck_ok(annal_artifact_read(store, session, (annal_slice){hash + 10, 64}, NULL, NULL, NULL,
                                  err));
        events_left++;
    }
    ck_assert_int_eq(status, ANNAL_END);
    annal_cursor_close(cursor);
    return 0;
}

static void check_left(struct sim_disk *left)
{
    annal_store *store = open_on(left);
    annal_artifact_verify_result result;
    ck_ok(annal_session_each(store, check_session, store, err));
    ck_ok(annal_artifact_verify(store, NULL, NULL, &result, err));
    ck_assert_uint_eq(result.damaged, 0);
    ck_ok(annal_store_close(store, err));
    sim_disk_free(left);
    cuts++;
}

static void cut_power(void)
{
    struct sim_choices choices;
    sim_choices_init(&choices, disk, disk->ops + 1, OUTCOMES);
    while (sim_choices_next(&choices))
        check_left(sim_disk_crash(disk, &choices));
}

static int cut_at_each(void *arg, struct sim_disk *of, const struct sim_op *op)
{
    (void)arg;
    (void)of;
    (void)op;
    cut_power();
    return 0;
}

/* As annal_pack_append() does it. */
static void append_large(annal_store *store, const char *session, char fill)
{
    annal__artifact_hold *hold = NULL;
    annal_writer *writer = NULL;
    annal_slice data = {0};
    uint64_t seq;
    char text[1300];
    int length = snprintf(text, sizeof text, "{\"output\":\"");
    for (size_t i = (size_t)length; i < 1200; i++)
        text[i] = (char)(fill + (char)(i * i % 7)); /* some sectors long, also when compressed */
    snprintf(text + 1200, sizeof text - 1200, "\"}");
    ck_ok(annal__artifact_hold_new(store, &hold, err));
    ck_ok(annal__artifact_externalize(store, annal_slice_of(session), "output", 100,
                                      annal_slice_of(text), &data, err));
    const annal_draft draft = {.type = ANNAL_SLICE("tool.returned"), .data = data};
    ck_ok(annal_writer_open(store, annal_slice_of(session), NULL, &writer, err));
    ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    annal_writer_close(writer);
    annal__artifact_hold_free(hold);
    annal_free(data.ptr);
}

START_TEST(no_power_cut_leaves_an_event_whose_artifact_is_missing_or_damaged)
{
    annal_store *store = open_on(disk);
    disk->hook = cut_at_each;
    append_large(store, "s", 'a');
    append_large(store, "s", 'a'); /* exists already */
    append_large(store, "t", 'a');
    append_large(store, "s", 'b');
    ck_ok(annal_store_checkpoint(store, err));
    disk->hook = NULL;
    cut_power();
    ck_ok(annal_store_close(store, err));
    ck_assert_uint_gt(cuts, 100);
    ck_assert_uint_gt(events_left, 100);
}
END_TEST

/* A sweep in between removes only what nothing names, whatever of it the disk has done. */
START_TEST(no_power_cut_during_a_sweep_loses_a_named_artifact)
{
    annal_store *store = open_on(disk);
    annal_artifact_info info;
    annal_artifact_sweep_result result;
    append_large(store, "s", 'a');
    ck_ok(annal_artifact_put(store, ANNAL_SLICE("s"), ANNAL_SLICE("nobody's"), &info, err));
    append_large(store, "s", 'b');
    disk->hook = cut_at_each;
    disk->now_us += 10 * 1000000;
    ck_ok(annal_artifact_sweep(store, &(annal_artifact_sweep_options){.older_than_us = -1}, &result,
                               err));
    ck_assert_uint_eq(result.removed, 1);
    append_large(store, "s", 'c');
    disk->hook = NULL;
    ck_ok(annal_store_close(store, err));
    ck_assert_uint_gt(cuts, 20);
}
END_TEST

Suite *suite_power_artifacts(void)
{
    Suite *suite = suite_create("power_artifacts");
    TCase *tests = suite_case(suite, "power_artifacts", set_up, tear_down);
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, no_power_cut_leaves_an_event_whose_artifact_is_missing_or_damaged);
    tcase_add_test(tests, no_power_cut_during_a_sweep_loses_a_named_artifact);
    return suite;
}
