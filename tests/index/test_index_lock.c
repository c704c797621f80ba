/* SPDX-License-Identifier: Apache-2.0 */
/* Two locks on one file, as in two processes. */
#include "index/db/index_lock.h"
#include "journal/sys/seam.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include <string.h>

#define WAIT_MS 50

struct two {
    struct fixture f;
    struct index_lock one, other;
};

static void set_up(struct two *two)
{
    fixture_init(&two->f);
    const struct io *io = annal__store_io(two->f.store);
    ck_ok(annal__index_lock_init(&two->one, io, "of_test", err));
    ck_ok(annal__index_lock_init(&two->other, io, "of_test", err));
}

static void tear_down(struct two *two)
{
    annal__index_lock_done(&two->one);
    annal__index_lock_done(&two->other);
    fixture_done(&two->f);
}

/* Wait for the lock for wait_ms, in vain; 0: only try it. */
static void ck_busy(struct index_lock *lock, const struct two *two, uint32_t wait_ms)
{
    int64_t deadline_us = wait_ms == 0 ? 0 : annal__deadline_after(wait_ms);
    ck_assert_int_eq(annal__index_lock_take(lock, two->f.path, deadline_us, NULL), ANNAL_ERR_BUSY);
}

START_TEST(the_owner_of_the_lock_sees_that_another_process_wants_it)
{
    struct two two;
    set_up(&two);
    int64_t begun_us = annal__deadline_after(0);
    ck_ok(annal__index_lock_take(&two.one, two.f.path, 0, err));
    ck_assert(!annal__index_lock_is_wanted(&two.one, begun_us));
    ck_busy(&two.other, &two, WAIT_MS);
    ck_assert(annal__index_lock_is_wanted(&two.one, begun_us));
    /* The wish was expressed before the next slice began. */
    ck_assert(!annal__index_lock_is_wanted(&two.one, annal__deadline_after(1)));
    annal__index_lock_give(&two.one);
    tear_down(&two);
}
END_TEST

START_TEST(a_process_that_only_tries_the_lock_does_not_want_it)
{
    struct two two;
    set_up(&two);
    int64_t begun_us = annal__deadline_after(0);
    ck_ok(annal__index_lock_take(&two.one, two.f.path, 0, err));
    ck_busy(&two.other, &two, 0);
    ck_busy(&two.one, &two, 0); /* as another thread */
    ck_assert(!annal__index_lock_is_wanted(&two.one, begun_us));
    ck_busy(&two.one, &two, WAIT_MS);
    ck_assert(annal__index_lock_is_wanted(&two.one, begun_us));
    annal__index_lock_give(&two.one);
    tear_down(&two);
}
END_TEST

START_TEST(a_note_is_read_without_the_lock_until_it_is_wiped)
{
    struct two two;
    struct lock_note note = {.packs = 7}, got;
    set_up(&two);
    ck_assert_int_eq(annal__index_lock_note_peek(&two.other, two.f.path, &got), ANNAL_ERR_NOTFOUND);
    ck_ok(annal__index_lock_take(&two.one, two.f.path, 0, err));
    ck_busy(&two.other, &two, WAIT_MS);
    ck_assert_int_eq(annal__index_lock_note_peek(&two.other, two.f.path, &got), ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(annal__index_lock_note_peek(&two.one, two.f.path, &got), ANNAL_ERR_BUSY);
    ck_assert(annal__index_lock_note_write(&two.one, &note));
    ck_assert_int_eq(annal__index_lock_note_peek(&two.other, two.f.path, &got), ANNAL_OK);
    ck_assert_uint_eq(got.packs, 7);
    annal__index_lock_note_wipe(&two.one);
    ck_assert_int_eq(annal__index_lock_note_peek(&two.other, two.f.path, &got), ANNAL_ERR_NOTFOUND);
    annal__index_lock_give(&two.one);
    tear_down(&two);
}
END_TEST

Suite *suite_index_lock(void)
{
    Suite *suite = suite_create("index_lock");
    TCase *tcase = suite_case(suite, "lock", NULL, NULL);
    tcase_add_test(tcase, the_owner_of_the_lock_sees_that_another_process_wants_it);
    tcase_add_test(tcase, a_process_that_only_tries_the_lock_does_not_want_it);
    tcase_add_test(tcase, a_note_is_read_without_the_lock_until_it_is_wiped);
    return suite;
}
