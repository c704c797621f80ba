/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/snapshot_rows.h"
#include "journal/sys/delete.h"
#include "snapshot/storage.h"
#include "tests/snapshot/fold.h"
#include "tests/support/runner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void setup(void)
{
    fixture_setup();
    annal_snapshot_info info;
    append_turns(&f, "s", 1, 210);
    ck_ok(annal_snapshot_take(f.index, S, &(annal_snapshot_policy){.every_events = 100}, &info,
                              err)); /* 100 200 210 */
}

static void put_again(uint64_t seq, bool in_file, uint64_t base_hash, uint64_t *out_hash)
{
    struct storage shelf;
    struct snapshot_header header;
    annal_slice row = row_get(&f, seq);
    ck_ok(annal__storage_init(&shelf, f.index, S, NULL, 0, err));
    ck_assert_ptr_null(annal__container_header_read(row, &header));
    header.in_file = in_file;
    header.base_hash = base_hash == 0 ? header.base_hash : base_hash;
    ck_ok(annal__storage_put(
        &shelf, &header, NULL,
        (annal_slice){row.ptr + SNAPSHOT_HEADER_BYTES, row.len - SNAPSHOT_HEADER_BYTES}, 1000,
        err));
    annal_free(row.ptr);
    *out_hash = header.header_hash;
}

/* Move the body of a snapshot to a file, as if it were a large one. */
static void move_to_file(uint64_t seq)
{
    uint64_t hash;
    put_again(seq, true, 0, &hash);
}

static unsigned files(void)
{
    return count_names(tmpdir_path(&f.dir, "store/snapshots/s"), "");
}

START_TEST(a_large_snapshot_is_in_a_file_that_its_row_names)
{
    uint64_t hash;
    put_again(200, true, 0, &hash); /* the base of 210, which has another hash now */
    ck_newest(&f, S, UINT64_MAX, 200);
    put_again(210, true, hash, &hash);
    annal_slice row = row_get(&f, 210);
    ck_assert_uint_eq(row.len, SNAPSHOT_HEADER_BYTES);
    annal_free(row.ptr);
    ck_assert_uint_eq(files(), 2);
    ck_assert_int_eq(access(tmpdir_path(&f.dir, "store/snapshots/s/210.zst"), R_OK), 0);
    ck_newest(&f, S, UINT64_MAX, 210);
}
END_TEST

/* As a library of another version leaves it. */
START_TEST(a_snapshot_of_another_text_of_the_packs_is_ignored)
{
    struct storage shelf;
    struct snapshot_header header;
    annal_slice row = row_get(&f, 210);
    ck_ok(annal__storage_init(&shelf, f.index, S, NULL, 0, err));
    ck_assert_ptr_null(annal__container_header_read(row, &header));
    header.pack_version ^= 1;
    ck_ok(annal__storage_put(
        &shelf, &header, NULL,
        (annal_slice){row.ptr + SNAPSHOT_HEADER_BYTES, row.len - SNAPSHOT_HEADER_BYTES}, 1000,
        err));
    annal_free(row.ptr);
    ck_newest(&f, S, UINT64_MAX, 200);
}
END_TEST

START_TEST(a_snapshot_with_a_missing_or_damaged_file_is_ignored)
{
    const char *path = tmpdir_path(&f.dir, "store/snapshots/s/210.zst");
    move_to_file(210);
    size_t len;
    char *bytes = file_read(path, &len);
    bytes[len - 1] ^= 1;
    file_write(path, bytes, len);
    ck_newest(&f, S, UINT64_MAX, 200);
    file_write(path, bytes, len / 2);
    ck_newest(&f, S, UINT64_MAX, 200);
    ck_assert_int_eq(unlink(path), 0);
    ck_newest(&f, S, UINT64_MAX, 200);
    free(bytes);
}
END_TEST

/* Killed after the file was renamed into place, before the row was committed. */
START_TEST(a_file_without_a_row_is_ignored_and_removed_by_the_next_snapshot)
{
    move_to_file(210);
    ck_ok(annal__snapshot_rows_delete(f.index, S, &(uint64_t){210}, 1, 1000, err));
    ck_assert_uint_eq(files(), 1);
    ck_newest(&f, S, UINT64_MAX, 200);
    ck_listed(&f, S, "100 200 ");
    move_to_file(100);
    ck_assert_uint_eq(files(), 1);
    ck_assert_int_eq(access(tmpdir_path(&f.dir, "store/snapshots/s/100.zst"), R_OK), 0);
    ck_newest(&f, S, 150, 100);
}
END_TEST

START_TEST(dropping_removes_the_files_too)
{
    move_to_file(210);
    move_to_file(100);
    ck_assert_uint_eq(files(), 2);
    ck_ok(annal_snapshot_drop(f.index, S, err));
    ck_assert_uint_eq(files(), 0);
}
END_TEST

/* The index may have let go of the rows before, or may do so after. */
START_TEST(a_deleted_session_leaves_no_file)
{
    annal_snapshots *snapshots = NULL;
    move_to_file(210);
    move_to_file(100);
    if (_i == 1)
        ck_ok(annal_snapshots_open(f.index, NULL, &snapshots, err));
    ck_ok(annal_index_catch_up(f.index, S, NULL, err));
    ck_ok(annal__replace_delete(f.store, S, NULL, err));
    if (_i == 0) {
        ck_ok(annal_index_catch_up(f.index, S, NULL, err));
        ck_assert_uint_eq(files(), 2);
        ck_ok(annal_snapshot_drop(f.index, S, err));
    } else {
        annal_snapshots_close(snapshots);
    }
    ck_assert_uint_eq(files(), 0);
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    ck_listed(&f, S, "");
}
END_TEST

Suite *suite_storage(void)
{
    Suite *suite = suite_create("storage");
    TCase *tc = suite_case(suite, "shelf", setup, fixture_teardown);
    tcase_add_test(tc, a_large_snapshot_is_in_a_file_that_its_row_names);
    tcase_add_test(tc, a_snapshot_of_another_text_of_the_packs_is_ignored);
    tcase_add_test(tc, a_snapshot_with_a_missing_or_damaged_file_is_ignored);
    tcase_add_test(tc, a_file_without_a_row_is_ignored_and_removed_by_the_next_snapshot);
    tcase_add_test(tc, dropping_removes_the_files_too);
    tcase_add_loop_test(tc, a_deleted_session_leaves_no_file, 0, 2);
    return suite;
}
