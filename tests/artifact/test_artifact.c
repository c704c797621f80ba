/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/store.h"
#include "tests/artifact/fixture.h"
#include "tests/support/failing_io.h"
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static annal_status get(const char *session, const char *sha256, const char *expected)
{
    annal_slice content = {0};
    annal_status status = annal_artifact_get(f.store, annal_slice_of(session),
                                             annal_slice_of(sha256), 1000, &content, NULL);
    if (status == ANNAL_OK) {
        ck_assert_uint_eq(content.len, strlen(expected));
        ck_assert_mem_eq(content.ptr, expected, content.len);
        annal_free(content.ptr);
    }
    return status;
}

START_TEST(a_stored_artifact_is_read_by_its_hash)
{
    annal_artifact_info info = *fixture_put(&f, "s", "abc");
    ck_assert_str_eq(info.sha256,
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_str_eq(info.session, "s");
    ck_assert_uint_eq(info.bytes, 3);
    ck_assert_int_eq(get("s", info.sha256, "abc"), ANNAL_OK);
    ck_assert_int_eq(get("other", info.sha256, "abc"), ANNAL_ERR_NOTFOUND);
    info = *fixture_put(&f, "s", "");
    ck_assert_int_eq(get("s", info.sha256, ""), ANNAL_OK);
    ck_assert_int_eq(get("s", "../../x", ""), ANNAL_ERR_INVALID);
    ck_assert_int_eq(get("../s", info.sha256, ""), ANNAL_ERR_INVALID);
}
END_TEST

START_TEST(the_same_content_is_stored_once_in_a_session)
{
    struct stat before, after;
    annal_artifact_info info = *fixture_put(&f, "s", "the same");
    char *path = fixture_file(&f, &info);
    ck_assert_int_eq(stat(path, &before), 0);
    ck_assert_int_eq((int)(before.st_mode & 0777), 0600);
    fixture_put(&f, "s", "the same");
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    fixture_put(&f, "t", "the same");
    ck_assert_uint_eq(fixture_count(&f, "s"), 1);
    ck_assert_uint_eq(fixture_count(&f, ""), 2);
    free(path);
}
END_TEST

START_TEST(a_damaged_artifact_is_found_on_read_and_repaired_by_the_next_put)
{
    annal_artifact_info info = *fixture_put(&f, "s", "what was said");
    char *path = fixture_file(&f, &info);
    size_t len;
    char *bytes = file_read(path, &len);
    bytes[len - 6] ^= 1;
    file_write(path, bytes, len);
    ck_assert_int_eq(get("s", info.sha256, "what was said"), ANNAL_ERR_CORRUPT);
    fixture_put(&f, "s", "what was said");
    ck_assert_int_eq(get("s", info.sha256, "what was said"), ANNAL_OK);
    free(bytes);
    free(path);
}
END_TEST

START_TEST(another_artifact_under_the_same_name_is_damage)
{
    annal_artifact_info one = *fixture_put(&f, "s", "one");
    annal_artifact_info two = *fixture_put(&f, "s", "two");
    char *from = fixture_file(&f, &one), *to = fixture_file(&f, &two);
    ck_assert_int_eq(rename(from, to), 0);
    ck_assert_int_eq(get("s", two.sha256, "two"), ANNAL_ERR_CORRUPT);
    free(from);
    free(to);
}
END_TEST

START_TEST(storing_an_old_artifact_again_renews_its_time)
{
    annal_artifact_info old = *fixture_put(&f, "s", "said before");
    fixture_age(&f, &old, 100000);
    annal_artifact_info again = *fixture_put(&f, "s", "said before");
    ck_assert_int_gt(again.stored_us, old.stored_us - 60 * 1000000);
    ck_assert_uint_eq(fixture_count(&f, ""), 1);
}
END_TEST

static int64_t fail_in_the_middle(void *arg, char *bytes, size_t room, annal_error *err)
{
    int *calls = arg;
    memset(bytes, 'x', room);
    (void)err;
    return ++*calls > 3 ? ANNAL_ERR_IO : (int64_t)room;
}

START_TEST(a_failed_stream_leaves_nothing)
{
    int calls = 0;
    annal_artifact_info info;
    ck_assert_int_eq(annal_artifact_put_stream(f.store, ANNAL_SLICE("s"), fail_in_the_middle,
                                               &calls, &info, NULL),
                     ANNAL_ERR_IO);
    ck_assert_uint_eq(fixture_count(&f, ""), 0);
    ck_assert_int_eq(rmdir(tmpdir_path(&f.dir, "store/artifacts/s")), 0);
}
END_TEST

START_TEST(content_above_the_requested_size_is_refused)
{
    annal_slice content;
    annal_artifact_info info = *fixture_put(&f, "s", "0123456789");
    ck_assert_int_eq(annal_artifact_get(f.store, ANNAL_SLICE("s"), annal_slice_of(info.sha256), 9,
                                        &content, NULL),
                     ANNAL_ERR_LIMIT);
}
END_TEST

START_TEST(a_file_that_is_not_an_artifact_is_not_listed)
{
    fixture_put(&f, "s", "x");
    file_write(tmpdir_path(&f.dir, "store/artifacts/s/notes.txt"), "x", 1);
    file_write(tmpdir_path(&f.dir, "store/artifacts/s/.new-0000000000000000"), "x", 1);
    file_write(tmpdir_path(&f.dir, "store/artifacts/stray"), "x", 1);
    ck_assert_uint_eq(fixture_count(&f, ""), 1);
}
END_TEST

/* Once and for good, each call that storing makes: what it says holds, and the next one
 * succeeds. */
START_TEST(a_put_on_a_failing_disk_is_done_or_refused)
{
    bool failed = true;
    unsigned at = 1;
    annal_artifact_info there = *fixture_put(&f, "s", "there before");
    for (; failed; at++) {
        struct failing_io disk;
        annal_store *store = NULL;
        annal_artifact_info info;
        char text[64];
        failing_io_init(&disk);
        disk.lazy = disk.by_table = true;
        disk.for_good = _i == 1;
        const struct seams seams = {.io = &disk.io, .clock = &annal__system_clock};
        const annal_store_options options = {.no_keeper = true, .wait_ms = 1};
        ck_ok(annal__store_open(f.path, &options, &seams, &store, err));
        snprintf(text, sizeof text, "content %d %u", _i, at);
        disk.calls = 0;
        disk.fail_at = at;
        annal_status status =
            annal_artifact_put(store, ANNAL_SLICE("s"), annal_slice_of(text), &info, NULL);
        failed = disk.failed[0] != '\0';
        ck_assert_msg(status == ANNAL_OK || failed, "call %u", at);
        disk.fail_at = 0;
        (void)!annal_store_close(store, NULL);
        if (status == ANNAL_OK)
            ck_assert_int_eq(get("s", info.sha256, text), ANNAL_OK);
        info = *fixture_put(&f, "s", text);
        ck_assert_int_eq(get("s", info.sha256, text), ANNAL_OK);
    }
    ck_assert_uint_gt(at, 20);
    ck_assert_int_eq(get("s", there.sha256, "there before"), ANNAL_OK);
}
END_TEST

Suite *suite_artifact(void)
{
    Suite *suite = suite_create("artifact");
    TCase *tcase = suite_case(suite, "artifact", fixture_setup, fixture_teardown);
    tcase_add_test(tcase, a_stored_artifact_is_read_by_its_hash);
    tcase_add_test(tcase, the_same_content_is_stored_once_in_a_session);
    tcase_add_test(tcase, a_damaged_artifact_is_found_on_read_and_repaired_by_the_next_put);
    tcase_add_test(tcase, another_artifact_under_the_same_name_is_damage);
    tcase_add_test(tcase, storing_an_old_artifact_again_renews_its_time);
    tcase_add_test(tcase, a_failed_stream_leaves_nothing);
    tcase_add_test(tcase, content_above_the_requested_size_is_refused);
    tcase_add_test(tcase, a_file_that_is_not_an_artifact_is_not_listed);
    tcase_add_loop_test(tcase, a_put_on_a_failing_disk_is_done_or_refused, 0, 2);
    return suite;
}
