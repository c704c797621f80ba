/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/keeper_task.h"
#include "tests/support/failing_libc.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <time.h>

static void sleep_ms(long ms)
{
    const struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

START_TEST(the_keeper_commits_a_batch_soon_without_a_call)
{
    const annal_store_options options = {.create = true, .batch_ms = 5};
    annal_store *store = NULL;
    ck_ok(annal_store_open(tmpdir_path(&dir, "store"), &options, &store, err));
    for (uint64_t number = 1; number <= 20; number++) {
        append_numbers(store, "s", number, number, ANNAL_LEVEL_BATCH);
        uint64_t last = 0;
        for (int tries = 0; tries < 12000 && last < number; tries++) {
            last = read_session(store, "s", NULL, NULL);
            if (last < number)
                sleep_ms(5);
        }
        ck_assert_uint_eq(last, number);
    }
    store_close(store);
}
END_TEST

START_TEST(annal_keep_commits_due_batches_when_no_keeper_runs)
{
    const annal_store_options options = {.create = true, .no_keeper = true, .batch_ms = 50};
    annal_store *store = NULL;
    ck_ok(annal_store_open(tmpdir_path(&dir, "store"), &options, &store, err));
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_BATCH);
    sleep_ms(60);
    ck_ok(annal_store_keep(store, err));
    ck_numbers(store, "s", 3);
    store_close(store);
}
END_TEST

static annal_status count_run(void *arg, annal_error *err)
{
    (void)err;
    ++*(_Atomic int *)arg;
    return ANNAL_OK;
}

START_TEST(a_task_runs_after_appends_and_once_more_when_it_is_removed)
{
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    _Atomic int runs = 0;
    const annal__keeper_task task = {
        .name = "count", .period_ms = 1, .run = count_run, .arg = (void *)&runs};
    ck_ok(annal__keeper_task_add(store, &task, err));
    ck_ok(annal_store_keep(store, err));
    ck_assert_int_eq(runs, 0);
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    sleep_ms(3);
    ck_ok(annal_store_keep(store, err));
    ck_assert_int_eq(runs, 1);
    sleep_ms(3);
    ck_ok(annal_store_keep(store, err));
    ck_assert_int_eq(runs, 1);
    annal__keeper_task_remove(store, (void *)&runs);
    ck_assert_int_eq(runs, 2);
    append_numbers(store, "s", 2, 2, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(runs, 2);
    store_close(store);
}
END_TEST

START_TEST(a_task_waits_for_the_end_of_a_burst_up_to_its_limit)
{
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    _Atomic int runs = 0;
    const annal__keeper_task task = {.name = "count",
                                     .quiet_ms = 3600000,
                                     .latest_ms = 3600000,
                                     .run = count_run,
                                     .arg = (void *)&runs};
    ck_ok(annal__keeper_task_add(store, &task, err));
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_keep(store, err));
    ck_assert_int_eq(runs, 0);

    atomic_fetch_sub(&store->sessions.appended_us, 3600000000); /* an hour passes */
    ck_ok(annal_store_keep(store, err));
    ck_assert_int_eq(runs, 1);

    append_numbers(store, "s", 2, 2, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_keep(store, err));
    ck_assert_int_eq(runs, 1);
    store->keeper.tasks[0].latest_us -= 3600000000; /* a second hour passes, full of appends */
    ck_ok(annal_store_keep(store, err));
    ck_assert_int_eq(runs, 2);
    annal__keeper_task_remove(store, (void *)&runs);
    store_close(store);
}
END_TEST

static annal_status leave_work(void *arg, annal_error *err)
{
    (void)err;
    ++*(_Atomic int *)arg;
    return ANNAL_END;
}

START_TEST(the_rest_of_a_task_does_not_wait_for_the_end_of_a_burst)
{
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    _Atomic int runs = 0;
    const annal__keeper_task task = {.name = "count",
                                     .quiet_ms = 3600000,
                                     .latest_ms = 3600000,
                                     .run = leave_work,
                                     .arg = (void *)&runs};
    ck_ok(annal__keeper_task_add(store, &task, err));
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(runs, 0);
    atomic_fetch_sub(&store->sessions.appended_us, 3600000000); /* an hour passes */
    ck_ok(annal_store_keep(store, err));
    ck_assert_int_eq(runs, 1);
    append_numbers(store, "s", 2, 2, ANNAL_LEVEL_SYNC); /* keeps in passing */
    ck_assert_int_eq(runs, 2);
    annal__keeper_task_remove(store, (void *)&runs);
    store_close(store);
}
END_TEST

/* A task that checks whether the keeper is needed, and can itself make it needed. */
struct asking {
    annal_store *store;
    int runs;
    bool fills; /* a region of the log is full from then on */
    bool needed;
};

static annal_status ask(void *arg, annal_error *err)
{
    struct asking *asking = arg;
    struct commit *commit = &asking->store->commit;
    (void)err;
    asking->runs++;
    if (asking->fills)
        commit->full = commit->released + 1;
    asking->needed = annal__keeper_is_needed(asking->store);
    return asking->needed ? ANNAL_END : ANNAL_OK;
}

START_TEST(a_task_yields_to_a_checkpoint_and_continues_at_once)
{
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    struct asking asking = {.store = store, .fills = true};
    const annal__keeper_task task = {
        .name = "ask", .period_ms = 3600000, .run = ask, .arg = &asking};
    ck_ok(annal__keeper_task_add(store, &task, err));
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC); /* runs it in passing */
    ck_assert_int_eq(asking.runs, 1);
    ck_assert(asking.needed);
    asking.fills = false;
    ck_ok(annal_store_keep(store, err));
    ck_assert_int_eq(asking.runs, 2);
    ck_assert(!asking.needed);
    append_numbers(store, "s", 2, 2, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(asking.runs, 2); /* an hour has not passed */
    asking.fills = true;
    annal__keeper_task_remove(store, &asking);
    ck_assert_int_eq(asking.runs, 3);
    ck_assert(!asking.needed);
    store_close(store);
}
END_TEST

START_TEST(a_keeper_has_at_most_sixteen_tasks_and_removes_only_its_own)
{
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    _Atomic int runs[TASKS_MAX + 1] = {0};
    annal__keeper_task task = {.name = "count", .period_ms = 1, .run = count_run};
    for (int i = 0; i < TASKS_MAX; i++) {
        task.arg = (void *)&runs[i];
        ck_ok(annal__keeper_task_add(store, &task, err));
    }
    task.arg = (void *)&runs[TASKS_MAX];
    ck_status(ANNAL_ERR_LIMIT, annal__keeper_task_add(store, &task, err));
    annal__keeper_task_remove(store, (void *)&runs[TASKS_MAX]);
    ck_assert_int_eq(runs[TASKS_MAX], 0);
    for (int i = 0; i < TASKS_MAX; i++) {
        annal__keeper_task_remove(store, (void *)&runs[i]);
        ck_assert_int_eq(runs[i], 1);
    }
    store_close(store);
}
END_TEST

START_TEST(a_store_whose_keeper_cannot_start_is_not_opened)
{
    const char *path = tmpdir_path(&dir, "store");
    const annal_store_options options = {.create = true};
    annal_store *store = NULL;
    store_close(store_open(path));
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        struct failing_libc plan = {.family = LIBC_SYSTEM, .fail_at = at};
        failing_libc_arm(&plan);
        annal_status status = annal_store_open(path, &options, &store, NULL);
        failing_libc_arm(NULL);
        failed = plan.failed[0] != '\0';
        ck_assert_int_eq(status, failed ? ANNAL_ERR_NOMEM : ANNAL_OK);
    }
    store_close(store);
}
END_TEST

Suite *suite_keeper(void)
{
    Suite *suite = suite_create("keeper");
    TCase *keeper = suite_case(suite, "keeper", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(keeper, the_keeper_commits_a_batch_soon_without_a_call);
    tcase_add_test(keeper, annal_keep_commits_due_batches_when_no_keeper_runs);
    tcase_add_test(keeper, a_task_runs_after_appends_and_once_more_when_it_is_removed);
    tcase_add_test(keeper, a_task_waits_for_the_end_of_a_burst_up_to_its_limit);
    tcase_add_test(keeper, the_rest_of_a_task_does_not_wait_for_the_end_of_a_burst);
    tcase_add_test(keeper, a_task_yields_to_a_checkpoint_and_continues_at_once);
    tcase_add_test(keeper, a_keeper_has_at_most_sixteen_tasks_and_removes_only_its_own);
    tcase_add_test(keeper, a_store_whose_keeper_cannot_start_is_not_opened);
    return suite;
}
