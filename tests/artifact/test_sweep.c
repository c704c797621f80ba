/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/store.h"
#include "journal/sys/artifact.h"
#include "journal/sys/delete.h"
#include "journal/sys/verify.h"
#include "tests/artifact/fixture.h"
#include "tests/support/failing_io.h"
#include "tests/support/runner.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void name_it(const char *session, const annal_artifact_info *info)
{
    char data[400];
    snprintf(data, sizeof data,
             "{\"output_ref\":{\"sha256\":\"%s\",\"bytes\":%llu,\"path\":\"artifacts/%s/%s.zst\"}}",
             info->sha256, (unsigned long long)info->bytes, info->session, info->sha256);
    fixture_append(&f, session, data);
}

static annal_artifact_sweep_result sweep(bool dry_run)
{
    annal_artifact_sweep_result result;
    const annal_artifact_sweep_options options = {.older_than_us = -1, .dry_run = dry_run};
    ck_ok(annal_artifact_sweep(f.store, &options, &result, err));
    return result;
}

START_TEST(a_sweep_removes_only_artifacts_that_no_event_names)
{
    annal_artifact_info named = *fixture_put(&f, "s", "named");
    name_it("s", &named);
    annal_artifact_info elsewhere = *fixture_put(&f, "s", "named by another session");
    name_it("t", &elsewhere);
    fixture_put(&f, "s", "named by nobody");
    fixture_put(&f, "u", "of a session that never was");
    ck_assert_uint_eq(sweep(true).removed, 2);
    ck_assert_uint_eq(fixture_count(&f, ""), 4);
    annal_artifact_sweep_result result = sweep(false);
    ck_assert_uint_eq(result.artifacts, 4);
    ck_assert_uint_eq(result.removed, 2);
    ck_assert_uint_eq(fixture_count(&f, ""), 2);
    ck_assert_uint_eq(sweep(false).removed, 0);
}
END_TEST

START_TEST(any_mention_of_the_hash_keeps_an_artifact_but_not_a_longer_number)
{
    char data[256];
    annal_artifact_info said = *fixture_put(&f, "s", "said");
    annal_artifact_info longer = *fixture_put(&f, "s", "longer");
    snprintf(data, sizeof data, "[\"see (%s)\",\"%s0\"]", said.sha256, longer.sha256);
    fixture_append(&f, "s", data);
    ck_assert_uint_eq(sweep(false).removed, 1);
    ck_assert_int_eq(annal_artifact_read(f.store, ANNAL_SLICE("s"), annal_slice_of(said.sha256),
                                         NULL, NULL, NULL, NULL),
                     ANNAL_OK);
}
END_TEST

START_TEST(a_recently_stored_artifact_is_kept)
{
    annal_artifact_sweep_result result;
    annal_artifact_info old = *fixture_put(&f, "s", "old");
    fixture_put(&f, "s", "young");
    fixture_age(&f, &old, 86400 + 60);
    ck_ok(annal_artifact_sweep(f.store, NULL, &result, err));
    ck_assert_uint_eq(result.removed, 1);
    ck_assert_uint_eq(fixture_count(&f, ""), 1);
}
END_TEST

START_TEST(a_damaged_journal_stops_the_sweep)
{
    annal_artifact_sweep_result result;
    annal_error why = {0};
    fixture_put(&f, "s", "perhaps named by the lost event");
    fixture_append(&f, "t", "{\"n\":1}");
    fixture_append(&f, "t", "{\"n\":2}");
    fixture_append(&f, "t", "{\"n\":3}");
    ck_ok(annal_store_checkpoint(f.store, err));
    const char *path = tmpdir_path(&f.dir, "store/events/t.jsonl");
    size_t len;
    char *bytes = file_read(path, &len);
    strstr(bytes, "\"n\":2")[4] = '7';
    file_write(path, bytes, len);
    free(bytes);
    ck_assert_int_eq(annal_artifact_sweep(f.store,
                                          &(annal_artifact_sweep_options){.older_than_us = -1},
                                          &result, &why),
                     ANNAL_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(why.message, "session 't' is damaged"));
    ck_assert_uint_eq(fixture_count(&f, ""), 1);
}
END_TEST

/* A journal that was renamed; the second one of a session; one under another session's name. */
START_TEST(a_renamed_or_second_journal_keeps_its_artifacts)
{
    static const char *const names[] = {"s (old).jsonl", "t.mpk", "u.jsonl"};
    char to[300];
    annal_artifact_info info = *fixture_put(&f, "s", "named by a stray");
    name_it("s", &info);
    fixture_append(&f, "t", "1");
    ck_ok(annal_store_checkpoint(f.store, err));
    ck_assert_int_eq(mkdir(tmpdir_path(&f.dir, "store/events/a directory.jsonl"), 0700), 0);
    snprintf(to, sizeof to, "store/events/%s", names[_i]);
    ck_assert_int_eq(rename(tmpdir_path(&f.dir, "store/events/s.jsonl"), tmpdir_path(&f.dir, to)),
                     0);
    ck_assert_uint_eq(sweep(false).removed, 0);
    ck_assert_uint_eq(fixture_count(&f, "s"), 1);
    ck_assert_int_eq(unlink(tmpdir_path(&f.dir, to)), 0);
    ck_assert_uint_eq(sweep(false).removed, 1);
}
END_TEST

START_TEST(an_unfinished_put_is_swept_after_an_hour)
{
    const char *path = tmpdir_path(&f.dir, "store/artifacts/s/.new-0123456789abcdef");
    fixture_put(&f, "s", "x");
    file_write(path, "half", 4);
    sweep(false);
    ck_assert_int_eq(access(path, F_OK), 0);
    const struct timespec then = {.tv_sec = time(NULL) - 7200};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, (struct timespec[]){then, then}, 0), 0);
    sweep(false);
    ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

START_TEST(a_sweep_removes_artifacts_of_deleted_sessions_only)
{
    annal_artifact_info info = *fixture_put(&f, "s", "large");
    name_it("s", &info);
    ck_ok(annal__artifact_drop(f.store, ANNAL_SLICE("s"), err));
    ck_assert_uint_eq(fixture_count(&f, "s"), 1);
    ck_ok(annal__replace_delete(f.store, ANNAL_SLICE("s"), NULL, err));
    ck_ok(annal__artifact_drop(f.store, ANNAL_SLICE("s"), err));
    ck_assert_uint_eq(fixture_count(&f, "s"), 0);
}
END_TEST

/* Each call of a sweep fails in turn: what an event names stays, whatever the sweep could not
 * see. */
START_TEST(a_sweep_on_a_failing_disk_removes_no_named_artifact)
{
    bool failed = true;
    unsigned at = 1;
    annal_artifact_info named = *fixture_put(&f, "s", "named");
    name_it("s", &named);
    name_it("t", &named);
    ck_ok(annal_store_checkpoint(f.store, err));
    for (; failed; at++) {
        struct failing_io disk;
        annal_store *store = NULL;
        annal_artifact_sweep_result result;
        fixture_put(&f, "s", "not named");
        failing_io_init(&disk);
        disk.lazy = disk.by_table = true;
        disk.for_good = _i == 1;
        const struct seams seams = {.io = &disk.io, .clock = &annal__system_clock};
        const annal_store_options options = {.no_keeper = true, .wait_ms = 1};
        ck_ok(annal__store_open(f.path, &options, &seams, &store, err));
        disk.calls = 0;
        disk.fail_at = at;
        annal_status status = annal_artifact_sweep(
            store, &(annal_artifact_sweep_options){.older_than_us = -1}, &result, NULL);
        failed = disk.failed[0] != '\0';
        ck_assert_msg(status == ANNAL_OK || failed, "call %u", at);
        disk.fail_at = 0;
        (void)!annal_store_close(store, NULL);
        ck_assert_msg(annal_artifact_read(f.store, ANNAL_SLICE("s"), annal_slice_of(named.sha256),
                                          NULL, NULL, NULL, NULL) == ANNAL_OK,
                      "call %u, %s", at, disk.failed);
    }
    ck_assert_uint_gt(at, 20);
}
END_TEST

static int64_t stand_still(void *arg)
{
    (void)arg;
    return 0;
}

/* With this clock no wait for a lock reaches its limit, however busy the machine is. */
static struct clock patient_clock(void)
{
    struct clock clock = annal__system_clock;
    clock.monotonic_us = stand_still;
    return clock;
}

/* Another process stores artifacts and names them while a sweep removes every unnamed artifact.
 * Between two of them it has no lock for longer than the sweep sleeps between two tries. */
_Noreturn static void store_and_name(const char *path, int ready)
{
    annal_store *store = NULL;
    annal_writer *writer = NULL;
    const struct clock clock = patient_clock();
    const struct seams seams = {.io = &annal__system_io, .clock = &clock};
    if (annal__store_open(path, &(annal_store_options){.no_keeper = true}, &seams, &store, NULL) <
            0 ||
        annal_writer_open(store, ANNAL_SLICE("s"), NULL, &writer, NULL) < 0)
        _exit(1);
    for (unsigned n = 0;; n++) {
        annal__artifact_hold *hold = NULL;
        annal_slice data = {0};
        char text[64];
        uint64_t seq;
        snprintf(text, sizeof text, "{\"output\":\"%u is a number\"}", n);
        if (annal__artifact_hold_new(store, &hold, NULL) < 0 ||
            annal__artifact_externalize(store, ANNAL_SLICE("s"), "output", 1, annal_slice_of(text),
                                        &data, NULL) < 0)
            _exit(2);
        const annal_draft draft = {.type = ANNAL_SLICE("tool.returned"), .data = data};
        if (annal_writer_append(writer, &draft, 1, NULL, &seq, NULL) < 0)
            _exit(3);
        annal_free(data.ptr);
        annal__artifact_hold_free(hold);
        usleep(3000);
        if (n == 3)
            (void)!write(ready, "x", 1);
    }
}

static int missing(void *arg, annal_slice path)
{
    (void)arg;
    ck_abort_msg("%.*s was swept", ANNAL_FMT(path));
    return 0;
}

static void check_event(void *arg, const annal_event *event, bool after_damage)
{
    (void)after_damage;
    ck_ok(annal__artifact_check_data(arg, event->data, missing, NULL, err));
}

START_TEST(a_sweep_never_removes_an_artifact_of_a_running_append)
{
    int ready[2], ended = 0;
    char byte;
    annal_verify_result proved;
    const struct clock *clock = f.store->context.clock, patient = patient_clock();
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0)
        store_and_name(f.path, ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    f.store->context.clock = &patient;
    for (int i = 0; i < 4; i++)
        sweep(false);
    f.store->context.clock = clock;
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &ended, 0), pid);
    ck_assert_msg(WIFSIGNALED(ended), "it ended by itself: %d", WEXITSTATUS(ended));
    annal_store *store = NULL; /* what it left in its commit log counts too */
    ck_ok(annal_store_open(f.path, &(annal_store_options){.no_keeper = true}, &store, err));
    ck_ok(annal__verify_events(store, ANNAL_SLICE("s"), NULL, NULL, check_event, store, &proved,
                               err));
    ck_assert_uint_gt(proved.events, 3);
    ck_ok(annal_store_close(store, err));
    close(ready[0]);
    close(ready[1]);
}
END_TEST

/* A second passes with each look. */
static int64_t hurry(void *arg)
{
    int64_t *now_us = arg;
    return *now_us += 1000000;
}

START_TEST(a_hold_on_artifacts_stops_the_sweep)
{
    int64_t now_us = 0;
    annal_artifact_sweep_result result;
    annal__artifact_hold *hold = NULL;
    annal_error err = {0};
    const annal_artifact_sweep_options options = {.older_than_us = -1};
    const struct clock *clock = f.store->context.clock;
    struct clock hurried = *clock;
    hurried.monotonic_us = hurry;
    hurried.arg = &now_us;
    fixture_put(&f, "s", "not named yet");
    ck_assert_int_eq(annal__artifact_hold_new(f.store, &hold, &err), ANNAL_OK);
    f.store->context.clock = &hurried;
    ck_assert_int_eq(annal_artifact_sweep(f.store, &options, &result, &err), ANNAL_ERR_BUSY);
    f.store->context.clock = clock;
    ck_assert_ptr_nonnull(strstr(err.message, "is storing artifacts"));
    ck_assert_uint_eq(fixture_count(&f, "s"), 1);
    annal__artifact_hold_free(hold);
    ck_assert_uint_eq(sweep(false).removed, 1);
}
END_TEST

Suite *suite_sweep(void)
{
    Suite *suite = suite_create("sweep");
    TCase *tcase = suite_case(suite, "sweep", fixture_setup, fixture_teardown);
    tcase_add_test(tcase, a_sweep_removes_only_artifacts_that_no_event_names);
    tcase_add_test(tcase, any_mention_of_the_hash_keeps_an_artifact_but_not_a_longer_number);
    tcase_add_test(tcase, a_recently_stored_artifact_is_kept);
    tcase_add_test(tcase, a_damaged_journal_stops_the_sweep);
    tcase_add_test(tcase, an_unfinished_put_is_swept_after_an_hour);
    tcase_add_loop_test(tcase, a_renamed_or_second_journal_keeps_its_artifacts, 0, 3);
    tcase_add_test(tcase, a_sweep_removes_artifacts_of_deleted_sessions_only);
    tcase_add_loop_test(tcase, a_sweep_on_a_failing_disk_removes_no_named_artifact, 0, 2);
    tcase_add_test(tcase, a_sweep_never_removes_an_artifact_of_a_running_append);
    tcase_add_test(tcase, a_hold_on_artifacts_stops_the_sweep);
    return suite;
}
