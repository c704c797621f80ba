/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/snapshot_rows.h"
#include "tests/snapshot/fold.h"
#include "tests/support/runner.h"

#include <annal/artifact.h>
#include <annal/delete.h>

#include <stdio.h>

struct notes {
    unsigned deleted, refused, remain;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* that was deleted last */
};

static void count(void *arg, const annal_delete_note *note)
{
    struct notes *notes = arg;
    if (note->part != ANNAL_DELETE_SESSION) {
        notes->remain++;
    } else if (note->error != NULL) {
        ck_assert_ptr_null(note->info);
        notes->refused++;
    } else {
        notes->deleted++;
        snprintf(notes->session, sizeof notes->session, "%s", note->info->session);
    }
}

START_TEST(a_deleted_session_leaves_no_snapshot_artifact_or_row)
{
    annal_snapshot_info info;
    annal_artifact_info artifact;
    struct notes notes = {0};
    uint64_t seq;
    annal_slice state;
    append_turns(&f, "s", 1, 30);
    append_turns(&f, "other", 1, 30);
    ck_ok(annal_snapshot_take(f.index, S, NULL, &info, err));
    ck_ok(annal_artifact_put(f.store, S, ANNAL_SLICE("content"), &artifact, err));
    ck_ok(annal_session_delete(f.index, &S, 1, count, &notes, err));
    ck_assert_uint_eq(notes.deleted, 1);
    ck_assert_uint_eq(notes.refused + notes.remain, 0);
    ck_assert_str_eq(notes.session, "s");
    ck_assert_int_eq(ANNAL_ERR_NOTFOUND,
                     annal__snapshot_rows_newest(f.index, S, UINT64_MAX, &seq, &state, NULL));
    ck_assert_int_eq(ANNAL_ERR_NOTFOUND,
                     annal_artifact_read(f.store, S, annal_slice_of(artifact.sha256), NULL, NULL,
                                         &artifact, NULL));
    ck_assert_int_eq(ANNAL_ERR_NOTFOUND,
                     annal_session_info_get(f.store, S, &(annal_session_info){0}, NULL));
    ck_ok(annal_session_info_get(f.store, ANNAL_SLICE("other"), &(annal_session_info){0}, err));
}
END_TEST

START_TEST(a_session_that_cannot_be_deleted_does_not_stop_the_others)
{
    const annal_slice sessions[] = {ANNAL_SLICE("none"), ANNAL_SLICE("s"), ANNAL_SLICE("t")};
    struct notes notes = {0};
    append_turns(&f, "s", 1, 5);
    append_turns(&f, "t", 1, 5);
    ck_assert_int_eq(ANNAL_ERR_NOTFOUND,
                     annal_session_delete(f.index, sessions, 3, count, &notes, NULL));
    ck_assert_uint_eq(notes.refused, 1);
    ck_assert_uint_eq(notes.deleted, 2);
    ck_assert_str_eq(notes.session, "t");
    ck_ok(annal_session_delete(f.index, NULL, 0, NULL, NULL, err));
}
END_TEST

Suite *suite_delete(void)
{
    Suite *suite = suite_create("delete");
    TCase *tcase = suite_case(suite, "delete", fixture_setup, fixture_teardown);
    tcase_add_test(tcase, a_deleted_session_leaves_no_snapshot_artifact_or_row);
    tcase_add_test(tcase, a_session_that_cannot_be_deleted_does_not_stop_the_others);
    return suite;
}
