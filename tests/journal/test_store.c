/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"
#include "journal/store.h"
#include "journal/sys/inspect.h"

#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(a_missing_store_is_created_only_on_request)
{
    const char *path = tmpdir_path(&dir, "store");
    const annal_store_options asked = {.create = true, .no_keeper = true};
    const annal_store_options reading = {.create = true, .read_only = true};
    annal_store *store = NULL;
    ck_status(ANNAL_ERR_NOTFOUND, annal_store_open(path, NULL, &store, err));
    ck_status(ANNAL_ERR_NOTFOUND, annal_store_open(path, &reading, &store, err));
    ck_status(ANNAL_ERR_INVALID, annal_store_open("", &asked, &store, err));
    ck_status(ANNAL_ERR_INVALID, annal_store_open(NULL, &asked, &store, err));
    ck_assert_ptr_null(store);
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_ok(annal_store_open(path, &asked, &store, err));
    store_close(store);
    ck_ok(annal_store_open(path, NULL, &store, err));
    store_close(store);
}
END_TEST

START_TEST(a_relative_path_stays_the_same_store_when_the_process_moves)
{
    char before[4096];
    annal_store *store = NULL;
    const annal_store_options options = {.create = true, .no_keeper = true};
    const char *path = tmpdir_path(&dir, "store");
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(dir.path), 0);
    annal_status status = annal_store_open("store///", &options, &store, NULL);
    ck_assert_int_eq(chdir(before), 0);
    ck_assert_int_eq(status, ANNAL_OK);
    const char *named = annal_store_path(store);
    ck_assert_int_eq(named[0], '/');
    ck_assert_str_eq(named + strlen(named) - strlen("/store"), "/store");
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    store_close(store);
    ck_ok(annal_store_open(path, NULL, &store, err));
    ck_numbers(store, "s", 3);
    store_close(store);
}
END_TEST

START_TEST(a_store_that_could_not_be_opened_leaves_no_descriptor_and_no_lock)
{
    const char *path = tmpdir_path(&dir, "store");
    struct failing_io disk;
    const annal_store_options options = {.create = true, .no_keeper = true};
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    store_close(store);
    int first_free = dup(0);
    close(first_free);
    failing_io_init(&disk);
    disk.with_errno = EIO;
    const struct seams seams = {&disk.io, &annal__system_clock, NULL};
    annal_status status = ANNAL_ERR_IO;
    for (unsigned at = 1; status < 0 || disk.calls >= at; at++) {
        disk.calls = 0;
        disk.fail_at = at;
        status = annal__store_open(path, &options, &seams, &store, NULL);
        if (status == ANNAL_OK) {
            disk.fail_at = 0;
            store_close(store);
        }
        int now_free = dup(0);
        close(now_free);
        ck_assert_int_eq(now_free, first_free);
        if (status == ANNAL_OK && disk.calls < at)
            break;
        store = store_open(path); /* the failed open left no lock */
        ck_numbers(store, "s", 3);
        store_close(store);
    }
}
END_TEST

START_TEST(a_store_creates_its_directory_and_none_above_it)
{
    const annal_store_options options = {.create = true, .no_keeper = true};
    annal_store *store = NULL;
    annal_error why = {0};
    ck_assert_int_eq(annal_store_open(tmpdir_path(&dir, "typo/store"), &options, &store, &why),
                     ANNAL_ERR_NOTFOUND);
    ck_assert_ptr_nonnull(strstr(why.message, "/typo does not exist; create it first"));
    ck_assert_int_ne(access(tmpdir_path(&dir, "typo"), F_OK), 0);
    ck_ok(annal_store_open(tmpdir_path(&dir, "store"), &options, &store, err));
    store_close(store);
}
END_TEST

START_TEST(a_store_that_is_closed_before_its_writers_reports_their_number)
{
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    annal_writer *writers[2];
    annal_error why = {0};
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    for (size_t i = 0; i < 2; i++)
        ck_ok(annal_writer_open(store, ANNAL_SLICE("s"), NULL, &writers[i], err));
    annal_writer_close(writers[1]);
    ck_assert_int_eq(annal_store_close(store, &why), ANNAL_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(why.message, "1 of its writers is still open"));
    annal__free(writers[0]); /* the test frees it for the leak check; no other code may */
    store = store_open(path);
    ck_numbers(store, "s", 1);
    store_close(store);
}
END_TEST

START_TEST(a_relative_path_from_a_directory_that_is_gone_is_a_failure)
{
    char before[4096];
    annal_store *store = NULL;
    const annal_store_options options = {.create = true, .no_keeper = true};
    const char *gone = tmpdir_path(&dir, "gone");
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(mkdir(gone, 0700), 0);
    ck_assert_int_eq(chdir(gone), 0);
    ck_assert_int_eq(rmdir(gone), 0);
    annal_status status = annal_store_open("store", &options, &store, NULL);
    ck_assert_int_eq(chdir(before), 0);
    ck_assert_int_eq(status, ANNAL_ERR_IO);
}
END_TEST

START_TEST(the_limit_of_descriptors_is_shared_with_the_host)
{
    static const struct {
        rlim_t limit;
        uint32_t journals;
    } cases[] = {{200, 16}, {256, 128}, {1024, 512}};
    const char *path = tmpdir_path(&dir, "store");
    struct rlimit before;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rlimit limit = {cases[i].limit, before.rlim_max};
        if (cases[i].limit > before.rlim_max)
            continue;
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        annal_store *store = store_open(path);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        ck_assert_uint_eq(store->sessions.descriptors_max, cases[i].journals);
        store_close(store);
    }
    const struct rlimit most = {before.rlim_max, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &most), 0);
    annal_store *store = store_open(path);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_uint_le(store->sessions.descriptors_max, 32768);
    store_close(store);
}
END_TEST

START_TEST(an_append_without_a_level_uses_the_level_of_the_store)
{
    const annal_store_options options = {
        .create = true, .no_keeper = true, .level = ANNAL_LEVEL_OS, .region_bytes = 1};
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = NULL;
    ck_ok(annal_store_open(path, &options, &store, err));
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_DEFAULT);
    ck_assert(store->commit.durable == 0 || read_session(store, "s", NULL, NULL) == 2);
    ck_assert_uint_eq(store->commit.region_bytes, LOG_REGION_FIRST);
    store_close(store);
    store = store_open(path);
    ck_numbers(store, "s", 2);
    store_close(store);
}
END_TEST

START_TEST(a_session_is_owned_by_the_process_that_appends_until_it_closes_the_store)
{
    const char *path = tmpdir_path(&dir, "store");
    const annal_store_options options = {.create = true, .no_keeper = true};
    const annal_slice session = ANNAL_SLICE("s1");
    annal_store *writing = NULL, *looking = NULL;
    uint32_t pid = 1;
    uint64_t seq;
    ck_ok(annal_store_open(path, &options, &writing, err));
    ck_ok(annal_store_open(path, &options, &looking, err));
    ck_ok(annal__log_session_owner(looking, session, &pid, err));
    ck_assert_uint_eq(pid, 0);
    ck_ok(append_number(writing, "s1", 1, 0, ANNAL_LEVEL_SYNC, &seq, err));
    ck_ok(annal__log_session_owner(looking, session, &pid, err));
    ck_assert_uint_eq(pid, (uint32_t)getpid());
    ck_ok(annal__log_session_owner(writing, session, &pid, err));
    ck_assert_uint_eq(pid, (uint32_t)getpid());
    ck_ok(annal__log_session_owner(looking, ANNAL_SLICE("s2"), &pid, err));
    ck_assert_uint_eq(pid, 0);
    store_close(writing);
    ck_ok(annal__log_session_owner(looking, session, &pid, err));
    ck_assert_uint_eq(pid, 0);
    ck_status(ANNAL_ERR_INVALID, annal__log_session_owner(looking, ANNAL_SLICE("../s"), &pid, err));
    store_close(looking);
}
END_TEST

START_TEST(a_link_in_the_place_of_a_directory_of_the_store_is_refused)
{
    static const char *const names[] = {"locks",  "commit", "artifacts", "cursors",
                                        "leases", "packs",  "snapshots", "sources"};
    const char *path = tmpdir_path(&dir, "store"), *out = tmpdir_path(&dir, "out");
    const annal_store_options options = {.create = true, .no_keeper = true};
    annal_store *store = store_open(path);
    store_close(store);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char place[400], aside[400];
        snprintf(place, sizeof place, "%s/%s", path, names[i]);
        snprintf(aside, sizeof aside, "%s/aside", path);
        ck_assert_int_eq(mkdir(out, 0700), 0);
        if (i >= 2)
            ck_assert_int_eq(mkdir(place, 0700), 0);
        ck_assert_int_eq(rename(place, aside), 0);
        ck_assert_int_eq(symlink(out, place), 0);
        annal_error failure = {0};
        ck_assert_int_eq(annal_store_open(path, &options, &store, &failure), ANNAL_ERR_IO);
        ck_assert_msg(strstr(failure.message, place) != NULL &&
                          strstr(failure.message, "is a symbolic link") != NULL,
                      "%s", failure.message);
        ck_assert_int_eq(rmdir(out), 0); /* it is empty */
        ck_assert_int_eq(unlink(place), 0);
        ck_assert_int_eq(rename(aside, place), 0);
    }
    store = store_open(path);
    store_close(store);
}
END_TEST

Suite *suite_store(void)
{
    Suite *suite = suite_create("store");
    TCase *tests = suite_case(suite, "store", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(tests, a_missing_store_is_created_only_on_request);
    tcase_add_test(tests, a_store_creates_its_directory_and_none_above_it);
    tcase_add_test(tests, a_store_that_is_closed_before_its_writers_reports_their_number);
    tcase_add_test(tests, a_relative_path_from_a_directory_that_is_gone_is_a_failure);
    tcase_add_test(tests, the_limit_of_descriptors_is_shared_with_the_host);
    tcase_add_test(tests, an_append_without_a_level_uses_the_level_of_the_store);
    tcase_add_test(tests, a_relative_path_stays_the_same_store_when_the_process_moves);
    tcase_add_test(tests, a_store_that_could_not_be_opened_leaves_no_descriptor_and_no_lock);
    tcase_add_test(tests, a_link_in_the_place_of_a_directory_of_the_store_is_refused);
    tcase_add_test(tests, a_session_is_owned_by_the_process_that_appends_until_it_closes_the_store);
    return suite;
}
