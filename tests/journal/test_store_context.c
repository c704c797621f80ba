/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/store.h"
#include "journal/sys/delete.h"
#include "journal/sys/event_at.h"
#include "journal/sys/inspect.h"
#include "journal/sys/keeper_task.h"

#include "tests/support/failing_libc.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *path;
static annal_store *store;

static void set_up(void)
{
    tmpdir_setup();
    path = tmpdir_path(&dir, "store");
    store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
}

static void tear_down(void)
{
    store_close(store);
    tmpdir_teardown();
}

static int no_session(void *arg, annal_slice session, uint64_t journal_bytes)
{
    (void)arg;
    (void)session;
    (void)journal_bytes;
    ck_abort_msg("a session is listed");
    return 0;
}

static int no_log(void *arg, const annal__log_info *info)
{
    (void)arg;
    (void)info;
    ck_abort_msg("a log is listed");
    return 0;
}

static annal_status run_never(void *arg, annal_error *err)
{
    (void)arg;
    (void)err;
    ck_abort_msg("a task is run");
    return ANNAL_OK;
}

static void ck_reads_are(annal_status expected)
{
    annal_cursor *cursor = NULL;
    annal_session_info info;
    annal_event event;
    annal_verify_result result;
    annal_repair_result repaired;
    annal__event_buffer *buffer = NULL;
    const annal_slice s = ANNAL_SLICE("s");
    ck_status(expected, annal_cursor_open(store, s, 1, &cursor, err));
    ck_status(expected, annal_cursor_open_at(store, s, 1, 0, 0, &cursor, err));
    ck_status(expected, annal__event_read_at(store, s, 1, 0, 100, &buffer, &event, err));
    ck_status(expected, annal_session_info_get(store, s, &info, err));
    ck_status(expected, annal_session_each(store, no_session, NULL, err));
    ck_status(expected, annal__log_each(store, no_log, NULL, err));
    ck_status(expected, annal_session_verify(store, s, NULL, NULL, &result, err));
    ck_status(expected,
              annal_session_repair(store, s, (annal_slice){0}, NULL, NULL, NULL, &repaired, err));
    annal__event_buffer_free(buffer);
}

static void ck_writes_are(annal_status expected)
{
    annal_writer *writer = NULL;
    annal_repair_result repaired;
    const annal_slice s = ANNAL_SLICE("s");
    ck_status(expected, annal_writer_open(store, s, NULL, &writer, err));
    ck_status(expected, annal_store_sync(store, err));
    ck_status(expected, annal_store_checkpoint(store, err));
    ck_status(expected, delete_wiped(store, s, NULL, err));
    ck_status(expected,
              annal_session_repair(store, s, ANNAL_SLICE("to"), NULL, NULL, NULL, &repaired, err));
}

/* F13. The child has the parent's memory; what it would write would be the parent's to know. */
START_TEST(a_child_of_fork_cannot_use_the_store_of_its_parent)
{
    annal_writer *writer = NULL;
    uint64_t seq;
    const annal__keeper_task task = {.name = "never", .run = run_never};
    const annal_draft draft = {.type = ANNAL_SLICE("t"), .data = ANNAL_SLICE("1")};
    ck_ok(annal_writer_open(store, ANNAL_SLICE("s"), NULL, &writer, err));
    store->context.pid++; /* what a child sees */
    if (store->context.same_process != NULL)
        *store->context.same_process = 0;
    ck_reads_are(ANNAL_ERR_CLOSED);
    ck_writes_are(ANNAL_ERR_CLOSED);
    ck_status(ANNAL_ERR_CLOSED, annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    ck_status(ANNAL_ERR_CLOSED, annal_store_keep(store, err));
    ck_status(ANNAL_ERR_CLOSED, annal__keeper_task_add(store, &task, err));
    annal__keeper_task_remove(store, NULL);
    store->context.pid--;
    if (store->context.same_process != NULL)
        *store->context.same_process = 1;
    annal_writer_close(writer);
    ck_numbers(store, "s", 3);
}
END_TEST

/* Under an emulator that cannot wipe memory it is found out by its id. */
START_TEST(a_child_of_fork_is_detected_without_a_system_call)
{
    pid_t child = fork();
    if (child == 0)
        _exit((store->context.same_process == NULL || *store->context.same_process == 0) &&
                      annal__context_check(&store->context, NULL) == ANNAL_ERR_CLOSED
                  ? 0
                  : 1);
    int outcome;
    ck_assert_int_eq(waitpid(child, &outcome, 0), child);
    ck_assert(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
    ck_ok(annal__context_check(&store->context, err));
}
END_TEST

START_TEST(a_child_of_fork_is_detected_when_the_kernel_does_not_wipe_memory)
{
    static const int ignored[] = {-1, MADV_WIPEONFORK};
    for (size_t i = 0; i < 2; i++) {
        store_close(store);
        failing_libc_ignore_advice(ignored[i]);
        store = store_open(path);
        failing_libc_ignore_advice(0);
        ck_assert_ptr_null(store->context.same_process);
        pid_t child = fork();
        if (child == 0)
            _exit(annal__context_check(&store->context, NULL) == ANNAL_ERR_CLOSED ? 0 : 1);
        int outcome;
        ck_assert_int_eq(waitpid(child, &outcome, 0), child);
        ck_assert(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
        ck_ok(annal__context_check(&store->context, err));
    }
}
END_TEST

START_TEST(a_child_of_fork_may_close_the_store_of_its_parent_and_writes_nothing)
{
    pid_t child = fork();
    if (child == 0)
        _exit(annal_store_close(store, NULL) == ANNAL_OK ? 0 : 1);
    int outcome;
    ck_assert_int_eq(waitpid(child, &outcome, 0), child);
    ck_assert(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
    append_numbers(store, "s", 4, 5, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 5);
}
END_TEST

/* Whatever its parent's keeper does at that moment. */
START_TEST(a_child_of_fork_may_open_the_store_again_and_append)
{
    for (uint64_t round = 1; round <= 20; round++) {
        append_numbers(store, "s", 3 + round, 3 + round, ANNAL_LEVEL_BATCH);
        pid_t child = fork();
        if (child == 0) {
            alarm(300);
            annal_store *own = store_open(path);
            append_numbers(own, "t", round, round, ANNAL_LEVEL_SYNC);
            _exit(annal_store_close(own, NULL) == ANNAL_OK ? 0 : 1);
        }
        int outcome;
        ck_assert_int_eq(waitpid(child, &outcome, 0), child);
        ck_assert(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
    }
    ck_ok(annal_store_sync(store, err));
    ck_numbers(store, "t", 20);
    ck_numbers(store, "s", 23);
}
END_TEST

START_TEST(a_read_only_store_refuses_every_write)
{
    const annal_store_options reading = {.read_only = true};
    store_close(store);
    ck_ok(annal_store_open(path, &reading, &store, err));
    ck_writes_are(ANNAL_ERR_READONLY);
    ck_numbers(store, "s", 3);
}
END_TEST

START_TEST(every_reading_function_refuses_an_invalid_session_id)
{
    annal_cursor *cursor = NULL;
    annal_session_info info;
    annal_event event;
    annal__event_buffer *buffer = NULL;
    static const annal_slice bad[] = {ANNAL_SLICE(""), ANNAL_SLICE("../s"), ANNAL_SLICE(".s")};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_status(ANNAL_ERR_INVALID, annal_cursor_open(store, bad[i], 1, &cursor, err));
        ck_status(ANNAL_ERR_INVALID, annal_cursor_open_at(store, bad[i], 1, 0, 0, &cursor, err));
        ck_status(ANNAL_ERR_INVALID,
                  annal__event_read_at(store, bad[i], 1, 0, 100, &buffer, &event, err));
        ck_status(ANNAL_ERR_INVALID, annal_session_info_get(store, bad[i], &info, err));
        ck_status(ANNAL_ERR_INVALID, delete_wiped(store, bad[i], NULL, err));
    }
    annal__event_buffer_free(buffer);
}
END_TEST

Suite *suite_store_context(void)
{
    Suite *suite = suite_create("store_context");
    TCase *tests = suite_case(suite, "context", set_up, tear_down);
    tcase_add_test(tests, a_child_of_fork_cannot_use_the_store_of_its_parent);
    tcase_add_test(tests, a_child_of_fork_is_detected_without_a_system_call);
    tcase_add_test(tests, a_child_of_fork_is_detected_when_the_kernel_does_not_wipe_memory);
    tcase_add_test(tests, a_child_of_fork_may_close_the_store_of_its_parent_and_writes_nothing);
    tcase_add_test(tests, a_child_of_fork_may_open_the_store_again_and_append);
    tcase_add_test(tests, a_read_only_store_refuses_every_write);
    tcase_add_test(tests, every_reading_function_refuses_an_invalid_session_id);
    return suite;
}
