/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/snapshot_rows.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include "index/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const annal_slice S = {"s", 1};

static void put(uint64_t seq, const char *state)
{
    ck_ok(annal__snapshot_rows_put(f.index, S, seq, annal_slice_of(state), 1767684240000000, 0,
                                   (annal_slice){0}, 0, err));
}

static int note_row(void *arg, const annal__snapshot_row *row)
{
    char text[300];
    snprintf(text, sizeof text, "%.*s:%llu:%llu:%lld ", ANNAL_FMT(row->session),
             (unsigned long long)row->seq, (unsigned long long)row->bytes,
             (long long)row->created_us);
    text_add(arg, text, strlen(text));
    return 0;
}

START_TEST(the_newest_row_up_to_a_seq_is_found)
{
    uint64_t seq = 0;
    annal_slice state;
    put(10, "ten");
    put(20, "twenty");
    put(20, "twenty again");
    ck_ok(annal__snapshot_rows_newest(f.index, S, 19, &seq, &state, err));
    ck_assert_uint_eq(seq, 10);
    annal_free(state.ptr);
    ck_ok(annal__snapshot_rows_newest(f.index, S, UINT64_MAX, &seq, &state, err));
    ck_assert_uint_eq(seq, 20);
    ck_assert_uint_eq(state.len, 12);
    ck_assert_mem_eq(state.ptr, "twenty again", 12);
    annal_free(state.ptr);
    ck_assert_int_eq(annal__snapshot_rows_newest(f.index, S, 9, &seq, &state, NULL),
                     ANNAL_ERR_NOTFOUND);
}
END_TEST

START_TEST(rows_are_listed_and_deleted)
{
    struct text text = {0};
    put(10, "ten");
    put(5, "");
    put(20, "twenty");
    ck_ok(annal__snapshot_rows_delete(f.index, S, (uint64_t[]){10, 11}, 2, 0, err));
    ck_ok(annal__reader_snapshot_each(f.index, S, note_row, &text, err));
    ck_ok(annal__reader_snapshot_each(f.index, (annal_slice){0}, note_row, &text, err));
    ck_assert_str_eq(text.ptr, "s:5:0:1767684240000000 s:20:6:1767684240000000 "
                               "s:5:0:1767684240000000 s:20:6:1767684240000000 ");
    free(text.ptr);
}
END_TEST

START_TEST(a_task_only_tries_the_lock)
{
    annal_index *other = NULL;
    ck_ok(annal_index_open(f.store, NULL, &other, err));
    ck_ok(annal__derived_begin(&other->derived, 0, err));
    ck_assert_int_eq(
        annal__snapshot_rows_put(f.index, S, 1, ANNAL_SLICE("x"), 0, 0, (annal_slice){0}, 0, NULL),
        ANNAL_ERR_BUSY);
    ck_ok(annal__derived_end(&other->derived, true, err));
    put(1, "x");
    annal_index_close(other);
}
END_TEST

Suite *suite_snapshot_rows(void)
{
    Suite *suite = suite_create("snapshot_rows");
    TCase *all = suite_case(suite, "all", fixture_setup, fixture_teardown);
    tcase_add_test(all, the_newest_row_up_to_a_seq_is_found);
    tcase_add_test(all, rows_are_listed_and_deleted);
    tcase_add_test(all, a_task_only_tries_the_lock);
    return suite;
}
