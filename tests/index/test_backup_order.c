/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/delete.h"

#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include <annal/backup.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *backup, *restored;
static annal_backup_result result;

static void setup(void)
{
    fixture_setup();
    backup = tmpdir_path(&f.dir, "backup");
    restored = tmpdir_path(&f.dir, "restored");
}

static void fork_of(const char *parent, const char *child)
{
    ck_ok(annal_session_fork(f.store, annal_slice_of(parent), ANNAL_FORK_LAST,
                             annal_slice_of(child), NULL, NULL, err));
}

/* Assert that a restored session and its ancestors are sound; adds "id:last_seq " to text. */
static int check_session(void *arg, annal_slice session, uint64_t bytes)
{
    struct text *text = arg;
    annal_verify_result proved;
    char one[300];
    annal_store *store = NULL;
    (void)bytes;
    ck_ok(annal_store_open(restored, &(annal_store_options){.read_only = true}, &store, err));
    ck_ok(annal_session_verify(store, session, NULL, NULL, &proved, err));
    ck_assert_uint_eq(proved.findings, 0);
    snprintf(one, sizeof one, "%.*s:%llu ", ANNAL_FMT(session),
             (unsigned long long)proved.last_seq);
    text_add(text, one, strlen(one));
    ck_ok(annal_store_close(store, err));
    return 0;
}

static void ck_restored(const char *expected)
{
    struct text text = {0};
    annal_store *store = NULL;
    text_add(&text, "", 0);
    ck_ok(annal_backup_restore(backup, restored, NULL, &result, err));
    ck_ok(annal_store_open(restored, &(annal_store_options){.no_keeper = true}, &store, err));
    ck_ok(annal_session_each(store, check_session, &text, err));
    ck_assert_str_eq(text.ptr, expected);
    ck_ok(annal_store_close(store, err));
    free(text.ptr);
}

START_TEST(forks_are_copied_before_their_parents)
{
    fixture_append_many(&f, "a", 3, 1000000);
    fork_of("a", "z");
    fixture_append_many(&f, "z", 2, 2000000);
    fork_of("z", "m");
    fixture_append_many(&f, "b", 9, 1000000);
    ck_ok(annal_backup_create(f.index, backup, NULL, &result, err));
    size_t len;
    char *manifest = file_read(tmpdir_path(&f.dir, "backup/manifest"), &len), *at = manifest;
    static const char *const expected[] = {"events/m.", "events/z.", "events/a.", "events/b."};
    for (size_t i = 0; i < 4; i++) {
        at = strstr(at, expected[i]);
        ck_assert_ptr_nonnull(at);
    }
    free(manifest);
    ck_restored("a:3 b:9 m:5 z:5 ");
}
END_TEST

static unsigned calls;

/* While the first journal is copied, delete b, append to a, and create b again as a fork of a. */
static int make_b_a_fork(void *arg, uint64_t done, uint64_t total)
{
    (void)arg, (void)done, (void)total;
    if (calls++ > 0)
        return 0;
    ck_ok(annal__replace_delete(f.store, ANNAL_SLICE("b"), NULL, err));
    fixture_append_many(&f, "a", 3, 1000000);
    fork_of("a", "b");
    return 0;
}

START_TEST(a_session_that_became_a_fork_during_the_backup_is_left_out)
{
    calls = 0;
    fixture_append_many(&f, "a", 3, 1000000);
    fixture_append_many(&f, "b", 3, 1000000);
    ck_ok(annal_backup_create(f.index, backup, &(annal_backup_options){.progress = make_b_a_fork},
                              &result, err));
    ck_assert_uint_gt(calls, 0);
    ck_restored("a:3 ");
}
END_TEST

static int delete_both(void *arg, uint64_t done, uint64_t total)
{
    (void)arg, (void)done, (void)total;
    if (calls++ != 1) /* the fork is already copied */
        return 0;
    ck_ok(annal__replace_delete(f.store, ANNAL_SLICE("f"), NULL, err));
    ck_ok(annal__replace_delete(f.store, ANNAL_SLICE("p"), NULL, err));
    return 0;
}

START_TEST(a_backup_fails_if_the_parent_of_a_fork_is_deleted_during_it)
{
    calls = 0;
    fixture_append_many(&f, "p", 3, 1000000);
    fork_of("p", "f");
    fixture_append_many(&f, "a", 3, 1000000);
    ck_assert_int_eq(annal_backup_create(f.index, backup,
                                         &(annal_backup_options){.progress = delete_both}, &result,
                                         NULL),
                     ANNAL_ERR_BUSY);
    ck_assert_int_eq(annal_backup_check(backup, NULL, &result, NULL), ANNAL_ERR_NOTFOUND);
}
END_TEST

/* While the first cursor is copied, a consumer reads the first event of a new session. */
static int read_new_session(void *arg, uint64_t done, uint64_t total)
{
    static const char cursor[] = "{\"annal_cursor\":1,\"name\":\"late\"}\n";
    (void)arg, (void)done, (void)total;
    if (calls++ > 0)
        return 0;
    fixture_append_many(&f, "late", 3, 1000000);
    file_write(tmpdir_path(&f.dir, "store/cursors/c1.json"), cursor, strlen(cursor));
    file_write(tmpdir_path(&f.dir, "store/cursors/c2.json"), cursor, strlen(cursor));
    return 0;
}

START_TEST(a_session_that_a_copied_cursor_names_is_in_the_backup)
{
    calls = 0;
    fixture_append_many(&f, "a", 3, 1000000);
    mkdir(tmpdir_path(&f.dir, "store/cursors"), 0700);
    file_write(tmpdir_path(&f.dir, "store/cursors/c1.json"), "{}\n", 3);
    file_write(tmpdir_path(&f.dir, "store/cursors/c2.json"), "{}\n", 3);
    ck_ok(annal_backup_create(f.index, backup,
                              &(annal_backup_options){.progress = read_new_session}, &result, err));
    ck_restored("a:3 late:3 ");
}
END_TEST

Suite *suite_backup_order(void)
{
    Suite *suite = suite_create("backup_order");
    TCase *tcase = suite_case(suite, "order", setup, fixture_teardown);
    tcase_add_test(tcase, forks_are_copied_before_their_parents);
    tcase_add_test(tcase, a_session_that_became_a_fork_during_the_backup_is_left_out);
    tcase_add_test(tcase, a_backup_fails_if_the_parent_of_a_fork_is_deleted_during_it);
    tcase_add_test(tcase, a_session_that_a_copied_cursor_names_is_in_the_backup);
    return suite;
}
