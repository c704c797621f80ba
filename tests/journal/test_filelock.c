/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/filelock.h"

#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#define LONG_US  60000000
#define SHORT_US 3000

/* Two store objects act as two processes. */
static annal_store *store, *other;

static void set_up(void)
{
    tmpdir_setup();
    store = store_open(tmpdir_path(&dir, "store"));
    other = store_open(tmpdir_path(&dir, "store"));
}

static void tear_down(void)
{
    store_close(other);
    store_close(store);
    tmpdir_teardown();
}

static annal_status take(annal_store *of, int64_t for_us, annal_error *err)
{
    return annal__filelock_take(&of->context, &of->structure_lock,
                                annal__context_now_us(&of->context) + for_us, 0, err);
}

static void drop(annal_store *of)
{
    annal__filelock_drop(&of->context, &of->structure_lock);
}

static atomic_bool somebody;

static void *take_often(void *arg)
{
    for (int i = 0; i < 200; i++) {
        ck_ok(take(arg, LONG_US, err));
        ck_assert(!atomic_exchange(&somebody, true));
        sched_yield();
        atomic_store(&somebody, false);
        drop(arg);
    }
    return NULL;
}

START_TEST(threads_and_processes_hold_the_lock_one_at_a_time)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_often, i % 2 == 0 ? store : other),
                         0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

static void *take_late(void *arg)
{
    ck_ok(take(arg, LONG_US, err));
    drop(arg);
    return NULL;
}

/* Of a thread that waits for another process, as long as it likes, no other thread waits longer
 * than it said itself. */
START_TEST(each_thread_waits_up_to_its_own_limit)
{
    pthread_t patient;
    annal_error why = {0};
    ck_ok(take(other, 0, err));
    ck_assert_int_eq(pthread_create(&patient, NULL, take_late, store), 0);
    bool waits = false;
    while (!waits) {
        pthread_mutex_lock(&store->structure_lock.mutex);
        waits = store->structure_lock.taken;
        pthread_mutex_unlock(&store->structure_lock.mutex);
    }
    int64_t begun_us = annal__context_now_us(&store->context);
    ck_status(ANNAL_ERR_BUSY, annal__filelock_try(&store->context, &store->structure_lock, err));
    ck_assert_int_eq(take(store, SHORT_US, &why), ANNAL_ERR_BUSY);
    ck_assert_int_ge(annal__context_now_us(&store->context) - begun_us, SHORT_US);
    ck_assert_ptr_nonnull(strstr(why.message, "locks/structure"));
    annal_status status =
        annal__filelock_take(&store->context, &store->structure_lock, 0, SHORT_US, NULL);
    ck_assert_int_eq(status, ANNAL_ERR_BUSY);
    ck_assert_int_ge(annal__context_now_us(&store->context) - begun_us, 2 * SHORT_US);
    drop(other);
    pthread_join(patient, NULL);
    ck_ok(take(store, LONG_US, err));
    drop(store);
}
END_TEST

/* After that, the lock on the removed file excludes no other process. */
START_TEST(a_removed_lock_file_is_created_again)
{
    ck_ok(take(store, 0, err));
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/locks/structure")), 0);
    drop(store);
    ck_ok(take(other, 0, err));
    ck_status(ANNAL_ERR_BUSY, take(store, 0, err));
    drop(other);
    ck_ok(take(store, 0, err));
    drop(store);
}
END_TEST

Suite *suite_filelock(void)
{
    Suite *suite = suite_create("filelock");
    TCase *tests = suite_case(suite, "filelock", set_up, tear_down);
    tcase_add_test(tests, threads_and_processes_hold_the_lock_one_at_a_time);
    tcase_add_test(tests, each_thread_waits_up_to_its_own_limit);
    tcase_add_test(tests, a_removed_lock_file_is_created_again);
    return suite;
}
