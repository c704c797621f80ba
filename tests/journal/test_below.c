/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/below.h"
#include "tests/support/failing_libc.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT ANNAL_SLICE("new bytes\n")

static const struct below_mode MODE = {.file = 0600, .folder = 0700, .sync = true};

static struct below below;

/* in/ is the directory that was given; out/ holds what links lead to. */
static void set_up(void)
{
    tmpdir_setup();
    ck_assert_int_eq(mkdir(tmpdir_path(&dir, "in"), 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&dir, "out"), 0700), 0);
    file_write(tmpdir_path(&dir, "out/f"), "old", 3);
    ck_ok(annal__below_open(tmpdir_path(&dir, "in"), &below, err));
}

static void tear_down(void)
{
    annal__below_close(&below);
    tmpdir_teardown();
}

static annal_error failure;

#define ck_fails(expected, text, call)                                                             \
    do {                                                                                           \
        ck_assert_int_eq(call, expected);                                                          \
        ck_assert_msg(strstr(failure.message, text) != NULL, "%s", failure.message);               \
    } while (0)

static void ck_file(const char *name, const char *text)
{
    size_t len;
    ck_text(file_read(tmpdir_path(&dir, name), &len), text);
}

static void ck_missing(const char *name)
{
    ck_assert_int_ne(access(tmpdir_path(&dir, name), F_OK), 0);
}

static void put_link(const char *to, const char *name)
{
    ck_assert_int_eq(symlink(tmpdir_path(&dir, to), tmpdir_path(&dir, name)), 0);
}

START_TEST(a_file_is_written_read_and_deleted_below_the_directory)
{
    struct buf bytes = {0};
    bool deleted = false;
    ck_ok(annal__below_replace(&below, "a/b/f", TEXT, &MODE, err));
    ck_ok(annal__below_replace(&below, "f", TEXT, &MODE, err));
    ck_file("in/a/b/f", "new bytes\n");
    ck_ok(annal__below_read(&below, "a/b/f", &bytes, err));
    ck_assert_uint_eq(bytes.len, TEXT.len);
    annal__buf_done(&bytes);
    ck_status(ANNAL_ERR_NOTFOUND, annal__below_read(&below, "a/c/f", &bytes, err));
    ck_status(ANNAL_ERR_NOTFOUND, annal__below_read(&below, "a/b/g", &bytes, err));
    ck_status(ANNAL_ERR_IO, annal__below_read(&below, "a/b", &bytes, err));
    bytes.limit = TEXT.len - 1;
    ck_status(ANNAL_ERR_LIMIT, annal__below_read(&below, "f", &bytes, err));
    annal__buf_done(&bytes);
    ck_ok(annal__below_delete(&below, "a/b/f", &deleted, err));
    ck_assert(deleted);
    ck_ok(annal__below_delete(&below, "a/b/f", &deleted, err));
    ck_assert(!deleted);
    ck_ok(annal__below_delete(&below, "c/b/f", &deleted, err));
    ck_assert(!deleted);
    ck_missing("in/a/b/f");
}
END_TEST

START_TEST(each_directory_of_the_path_is_synced_even_if_another_process_created_it)
{
    enum { SYNCS = 4 }; /* in/, a/, the file, b/ */
    struct failing_libc plan = {.family = LIBC_SYNC};
    for (plan.fail_at = 1; plan.fail_at <= SYNCS; plan.fail_at++) {
        atomic_store(&plan.calls, 0);
        failing_libc_arm(&plan);
        annal_status status = annal__below_replace(&below, "a/b/f", TEXT, &MODE, NULL);
        failing_libc_arm(NULL);
        ck_assert_int_eq(status, ANNAL_ERR_DISK);
        ck_assert_uint_eq(plan.calls, plan.fail_at);
    }
    for (int i = 0; i < 2; i++) {
        atomic_store(&plan.calls, 0);
        failing_libc_arm(&plan);
        ck_ok(annal__below_replace(&below, "a/b/f", TEXT, &MODE, err));
        failing_libc_arm(NULL);
        ck_assert_uint_eq(plan.calls, SYNCS);
    }
}
END_TEST

START_TEST(a_link_in_the_path_is_an_error_that_names_the_link)
{
    struct buf bytes = {0};
    bool deleted = false;
    ck_assert_int_eq(mkdir(tmpdir_path(&dir, "in/a"), 0700), 0);
    put_link("out", "in/a/b");
    ck_fails(ANNAL_ERR_IO, "in/a/b' is a symbolic link",
             annal__below_replace(&below, "a/b/f", TEXT, &MODE, &failure));
    ck_fails(ANNAL_ERR_IO, "in/a/b' is a symbolic link",
             annal__below_replace(&below, "a/b/c/g", TEXT, &MODE, &failure));
    ck_fails(ANNAL_ERR_IO, "in/a/b' is a symbolic link",
             annal__below_read(&below, "a/b/f", &bytes, &failure));
    ck_fails(ANNAL_ERR_IO, "in/a/b' is a symbolic link",
             annal__below_delete(&below, "a/b/f", &deleted, &failure));
    ck_file("out/f", "old");
    ck_missing("out/c");
}
END_TEST

/* Also one whose target has the rest of the path. */
START_TEST(a_link_between_two_directories_is_not_followed_to_read)
{
    struct buf bytes = {0};
    bool deleted = false;
    ck_assert_int_eq(mkdir(tmpdir_path(&dir, "in/a"), 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&dir, "out/c"), 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&dir, "in/c"), 0700), 0);
    file_write(tmpdir_path(&dir, "out/c/g"), "old", 3);
    file_write(tmpdir_path(&dir, "in/c/g"), "old", 3);
    put_link("out", "in/a/b");
    put_link("in/c", "in/a/d");
    ck_fails(ANNAL_ERR_IO, "in/a/b' is a symbolic link",
             annal__below_read(&below, "a/b/c/g", &bytes, &failure));
    ck_fails(ANNAL_ERR_IO, "in/a/d' is a symbolic link",
             annal__below_read(&below, "a/d/g", &bytes, &failure));
    ck_fails(ANNAL_ERR_IO, "in/a/b' is a symbolic link",
             annal__below_delete(&below, "a/b/c/g", &deleted, &failure));
    ck_file("out/c/g", "old");
}
END_TEST

START_TEST(a_path_with_dots_or_an_empty_name_is_refused)
{
    static const char *const paths[] = {
        "..", "../out/f", "a/../../out/f", ".",  "./f",  "a/./f",      "",
        "/",  "//f",      "a//f",          "a/", "a/..", "/etc/passwd"};
    struct buf bytes = {0};
    bool deleted = false;
    int fd = -1;
    ck_assert_int_eq(mkdir(tmpdir_path(&dir, "in/a"), 0700), 0);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        ck_assert_int_eq(annal__below_read(&below, paths[i], &bytes, NULL), ANNAL_ERR_INVALID);
        ck_assert_int_eq(annal__below_replace(&below, paths[i], TEXT, &MODE, NULL),
                         ANNAL_ERR_INVALID);
        ck_assert_int_eq(annal__below_delete(&below, paths[i], &deleted, NULL), ANNAL_ERR_INVALID);
        ck_assert_int_eq(annal__below_rename(&below, paths[i], "x", NULL), ANNAL_ERR_INVALID);
        ck_assert_int_eq(annal__below_link(&below, paths[i], "x", NULL), ANNAL_ERR_INVALID);
        ck_assert_int_eq(annal__below_open_file(&below, paths[i], O_RDONLY, NULL, &fd, NULL),
                         ANNAL_ERR_INVALID);
    }
    ck_file("out/f", "old");
}
END_TEST

START_TEST(a_link_in_the_place_of_a_file_can_only_be_deleted)
{
    struct buf bytes = {0};
    char name[60];
    bool deleted = false;
    put_link("out/f", "in/f");
    put_link("out/new", "in/g");
    ck_fails(ANNAL_ERR_IO, "in/f' is a symbolic link",
             annal__below_replace(&below, "f", TEXT, &MODE, &failure));
    ck_fails(ANNAL_ERR_IO, "in/g' is a symbolic link",
             annal__below_replace(&below, "g", TEXT, &MODE, &failure));
    ck_fails(ANNAL_ERR_IO, "in/f' is a symbolic link",
             annal__below_read(&below, "f", &bytes, &failure));
    ck_ok(annal__below_delete(&below, "f", &deleted, err));
    ck_assert(deleted);
    /* Where the new bytes are written first. */
    snprintf(name, sizeof name, "in/.new-%ld", (long)getpid());
    put_link("out/f", name);
    ck_ok(annal__below_replace(&below, "f", TEXT, &MODE, err));
    ck_file("in/f", "new bytes\n");
    ck_file("out/f", "old");
    ck_missing("out/new");
}
END_TEST

START_TEST(a_fifo_does_not_block_the_caller)
{
    struct buf bytes = {0};
    ck_assert_int_eq(mkfifo(tmpdir_path(&dir, "in/f"), 0600), 0);
    ck_status(ANNAL_ERR_IO, annal__below_read(&below, "f", &bytes, err));
    ck_ok(annal__below_replace(&below, "f", TEXT, &MODE, err));
    ck_file("in/f", "new bytes\n");
}
END_TEST

START_TEST(the_directory_itself_may_be_a_link_and_must_exist)
{
    struct below other = {0};
    put_link("out", "link");
    ck_ok(annal__below_open(tmpdir_path(&dir, "link"), &other, err));
    ck_ok(annal__below_replace(&other, "f", TEXT, &MODE, err));
    annal__below_close(&other);
    ck_file("out/f", "new bytes\n");
    ck_status(ANNAL_ERR_NOTFOUND, annal__below_open(tmpdir_path(&dir, "no"), &other, err));
    ck_status(ANNAL_ERR_IO, annal__below_open(tmpdir_path(&dir, "out/f"), &other, err));
}
END_TEST

static atomic_bool stop;

/* A thread that repeatedly puts a link in the place of a directory and removes it. */
static void *swap(void *arg)
{
    char folder[300], aside[300], out[300];
    (void)arg;
    snprintf(folder, sizeof folder, "%s/in/a/b", dir.path);
    snprintf(aside, sizeof aside, "%s/in/a/c", dir.path);
    snprintf(out, sizeof out, "%s/out", dir.path);
    while (!atomic_load(&stop)) {
        (void)rename(folder, aside);
        (void)symlink(out, folder);
        (void)unlink(folder);
        (void)rename(aside, folder);
    }
    return NULL;
}

START_TEST(links_that_appear_during_a_call_are_not_followed)
{
    static const struct below_mode quick = {.file = 0600, .folder = 0700};
    unsigned rounds = 0, written = 0, refused = 0;
    pthread_t thread;
    ck_ok(annal__below_replace(&below, "a/b/f", TEXT, &quick, err));
    ck_assert_int_eq(pthread_create(&thread, NULL, swap, NULL), 0);
    /* The other thread may be suspended while the link exists. */
    for (; rounds < 2000 || (written == 0 && rounds < 1000000); rounds++) {
        bool deleted = false;
        annal_status status = annal__below_replace(&below, "a/b/f", TEXT, &quick, NULL);
        written += status == ANNAL_OK;
        refused += status < 0;
        (void)annal__below_delete(&below, "a/b/f", &deleted, NULL);
    }
    atomic_store(&stop, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_file("out/f", "old");
    ck_assert_uint_gt(written, 0);
    ck_assert_uint_eq(written + refused, rounds);
}
END_TEST

Suite *suite_below(void)
{
    Suite *suite = suite_create("below");
    TCase *tests = suite_case(suite, "below", set_up, tear_down);
    tcase_add_test(tests, a_file_is_written_read_and_deleted_below_the_directory);
    tcase_add_test(tests, each_directory_of_the_path_is_synced_even_if_another_process_created_it);
    tcase_add_test(tests, a_link_in_the_path_is_an_error_that_names_the_link);
    tcase_add_test(tests, a_link_between_two_directories_is_not_followed_to_read);
    tcase_add_test(tests, a_path_with_dots_or_an_empty_name_is_refused);
    tcase_add_test(tests, a_link_in_the_place_of_a_file_can_only_be_deleted);
    tcase_add_test(tests, a_fifo_does_not_block_the_caller);
    tcase_add_test(tests, the_directory_itself_may_be_a_link_and_must_exist);
    tcase_add_test(tests, links_that_appear_during_a_call_are_not_followed);
    return suite;
}
