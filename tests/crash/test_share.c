/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that write the same sessions, and the states that a store directory can be found in. */
#include "tests/support/journals.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tests/support/stopped.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <annal/query.h>

#define PROCESSES_MOST 8
#define NUMBER_STEP    UINT64_C(1000000)

/* Shared with the writers. */
struct board {
    _Atomic uint32_t ready;
    _Atomic uint32_t go;
    _Atomic uint32_t done[PROCESSES_MOST]; /* appends */
    _Atomic uint32_t asked;                /* appends whose event another process looked for */
};

static void sleep_us(uint64_t us)
{
    const struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};
    nanosleep(&time, NULL);
}

static int64_t now_us(void)
{
    return annal__system_clock.monotonic_us(annal__system_clock.arg);
}

static struct board *board_new(void)
{
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(board != MAP_FAILED);
    return board;
}

/* In a writer process: without assertions of Check, which would continue as a second runner. */
static void need(annal_status status, const annal_error *err)
{
    if (status == ANNAL_OK)
        return;
    fprintf(stderr, "writer %d: %s: %s\n", (int)getpid(), annal_status_name(status), err->message);
    abort();
}

static void append_in_child(annal_store *store, const char *session, uint64_t number)
{
    char data[100];
    uint64_t seq;
    annal_error err;
    need(append_slice(store, session, event_data(data, sizeof data, number, 20), NULL,
                      ANNAL_LEVEL_SYNC, &seq, &err),
         &err);
}

static void be_a_writer(const char *path, struct board *board, unsigned process, unsigned events,
                        unsigned sessions)
{
    annal_store *store = NULL;
    annal_error err;
    need(annal_store_open(path, &(annal_store_options){.create = true}, &store, &err), &err);
    atomic_fetch_add(&board->ready, 1);
    while (atomic_load(&board->go) == 0)
        sleep_us(200);
    for (unsigned i = 1; i <= events; i++) {
        char session[16];
        snprintf(session, sizeof session, "s%u", (process + i) % sessions);
        append_in_child(store, session, (process + 1) * NUMBER_STEP + i);
        atomic_fetch_add(&board->done[process], 1);
    }
    need(annal_store_close(store, &err), &err);
    _exit(0);
}

static void ck_ended_well(pid_t pid)
{
    int how;
    ck_assert_int_eq(waitpid(pid, &how, 0), pid);
    ck_assert_msg(WIFEXITED(how) && WEXITSTATUS(how) == 0, "a writer failed");
}

struct tally {
    uint64_t last[PROCESSES_MOST];
    uint64_t total;
};

static void count_event(void *arg, const annal_event *event)
{
    struct tally *tally = arg;
    uint64_t number = event_number(event);
    uint64_t process = number / NUMBER_STEP - 1;
    ck_assert_uint_lt(process, PROCESSES_MOST);
    ck_assert_uint_gt(number % NUMBER_STEP, tally->last[process]);
    tally->last[process] = number % NUMBER_STEP;
    tally->total++;
}

static void share(unsigned processes, unsigned sessions, unsigned events, int64_t most_us)
{
    const char *path = tmpdir_path(&dir, "store");
    struct board *board = board_new();
    pid_t pids[PROCESSES_MOST];
    fflush(NULL);
    for (unsigned i = 0; i < processes; i++) {
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0)
            be_a_writer(path, board, i, events, sessions);
    }
    for (int tries = 0; atomic_load(&board->ready) < processes && tries < 300000; tries++)
        sleep_us(1000);
    int64_t start_us = now_us();
    atomic_store(&board->go, 1);
    for (unsigned i = 0; i < processes; i++)
        ck_ended_well(pids[i]);
    int64_t took_us = now_us() - start_us;
    ck_assert_msg(took_us < most_us, "it took %d ms", (int)(took_us / 1000));

    annal_store *store = store_open(path);
    uint64_t total = 0;
    for (unsigned i = 0; i < sessions; i++) {
        struct tally tally = {0};
        char session[16];
        snprintf(session, sizeof session, "s%u", i);
        ck_assert_uint_eq(read_session(store, session, count_event, &tally), tally.total);
        total += tally.total;
    }
    ck_assert_uint_eq(total, (uint64_t)processes * events);
    store_close(store);
    munmap(board, sizeof *board);
    tmpdir_renew();
}

START_TEST(two_processes_share_one_session)
{
    share(2, 1, 500, 60000000);
}
END_TEST

START_TEST(eight_processes_share_eight_sessions)
{
    share(8, 8, 125, 60000000);
}
END_TEST

START_TEST(eight_processes_share_one_session)
{
    share(8, 1, 60, 60000000);
}
END_TEST

/* One writer appends without a pause until the other has had its turns. */
START_TEST(a_writer_without_pauses_does_not_starve_another_writer)
{
    const char *path = tmpdir_path(&dir, "store");
    struct board *board = board_new();
    store_close(store_open(path));
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        be_a_writer(path, board, 0, 1000000, 1);
    atomic_store(&board->go, 1);
    for (int tries = 0; atomic_load(&board->done[0]) < 10 && tries < 300000; tries++)
        sleep_us(1000);
    annal_store *store = store_open(path);
    for (uint64_t i = 1; i <= 10; i++) {
        int64_t start_us = now_us();
        uint64_t seq;
        ck_ok(append_number(store, "s0", 2 * NUMBER_STEP + i, 20, ANNAL_LEVEL_SYNC, &seq, err));
        ck_assert_int_lt(now_us() - start_us, scaled_us(1500000));
    }
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    struct tally tally = {0};
    append_numbers(store, "s0", 2 * NUMBER_STEP + 11, 2 * NUMBER_STEP + 11, ANNAL_LEVEL_SYNC);
    store_close(store);
    store = store_open(path);
    read_session(store, "s0", count_event, &tally);
    ck_assert_uint_eq(tally.last[1], 11);
    ck_assert_uint_ge(tally.last[0], atomic_load(&board->done[0]));
    store_close(store);
    munmap(board, sizeof *board);
}
END_TEST

START_TEST(a_stopped_owner_keeps_its_session_and_is_named)
{
    const char *path = tmpdir_path(&dir, "store");
    struct board *board = board_new();
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        be_a_writer(path, board, 0, 1000000, 1);
    atomic_store(&board->go, 1);
    for (int tries = 0; atomic_load(&board->done[0]) < 10 && tries < 300000; tries++)
        sleep_us(1000);
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);

    annal_store *store = NULL;
    annal_error why = {0};
    uint64_t seq;
    char named[32];
    const annal_store_options options = {.wait_ms = 200};
    ck_ok(annal_store_open(path, &options, &store, err));
    ck_assert_int_eq(append_number(store, "s0", 2 * NUMBER_STEP, 20, ANNAL_LEVEL_SYNC, &seq, &why),
                     ANNAL_ERR_BUSY);
    snprintf(named, sizeof named, "process %d", (int)pid);
    ck_assert_msg(strstr(why.message, named) != NULL, "%s", why.message);
    append_numbers(store, "mine", 1, 3, ANNAL_LEVEL_SYNC);

    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    bool got = false;
    for (int tries = 0; tries < 50 && !got; tries++)
        got = append_number(store, "s0", 2 * NUMBER_STEP + 1, 20, ANNAL_LEVEL_SYNC, &seq, &why) ==
              ANNAL_OK;
    ck_assert_msg(got, "%s", why.message);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    store_close(store);
    munmap(board, sizeof *board);
}
END_TEST

START_TEST(a_child_of_fork_is_refused_and_harms_nothing)
{
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        annal_cursor *cursor = NULL;
        annal_session_info info;
        uint64_t seq;
        bool refused =
            append_number(store, "s", 3, 20, ANNAL_LEVEL_SYNC, &seq, NULL) == ANNAL_ERR_CLOSED &&
            annal_store_sync(store, NULL) == ANNAL_ERR_CLOSED &&
            annal_store_checkpoint(store, NULL) == ANNAL_ERR_CLOSED &&
            annal_store_keep(store, NULL) == ANNAL_ERR_CLOSED &&
            annal_cursor_open(store, ANNAL_SLICE("s"), 1, &cursor, NULL) == ANNAL_ERR_CLOSED &&
            annal_session_info_get(store, ANNAL_SLICE("s"), &info, NULL) == ANNAL_ERR_CLOSED &&
            annal_store_close(store, NULL) == ANNAL_OK;
        _exit(refused ? 0 : 1);
    }
    ck_ended_well(pid);
    append_numbers(store, "s", 3, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 4);
    store_close(store);
}
END_TEST

/* ---- Directories as they can be found ---- */

static void run(const char *what, const char *path, const char *name)
{
    char command[700];
    snprintf(command, sizeof command, "%s '%s%s'", what, path, name);
    ck_assert_int_eq(system(command), 0);
}

/* commit/ first, while a process writes; what was acknowledged before the copy began is in it. */
START_TEST(a_copy_of_a_running_store_holds_events_acknowledged_before_it)
{
    const char *path = tmpdir_path(&dir, "store"), *copy = tmpdir_path(&dir, "copy");
    struct random random = random_init(31);
    struct board *board = board_new();
    store_close(store_open(path));
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        be_a_writer(path, board, 0, 1000000, 2);
    atomic_store(&board->go, 1);
    for (int tries = 0; atomic_load(&board->done[0]) < 4 && tries < 300000; tries++)
        sleep_us(1000);
    for (int round = 0; round < 10; round++) {
        sleep_us(random_below(&random, 20000));
        uint32_t acknowledged = atomic_load(&board->done[0]);
        copy_store(path, copy);
        annal_store *store = store_open(copy);
        uint64_t total = 0;
        for (int i = 0; i < 2; i++) {
            struct tally tally = {0};
            read_session(store, i == 0 ? "s0" : "s1", count_event, &tally);
            total += tally.total;
        }
        ck_assert_uint_ge(total, acknowledged);
        append_numbers(store, "s0", 9, 9, ANNAL_LEVEL_SYNC);
        store_close(store);
        run("rm -r", copy, "");
    }
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    munmap(board, sizeof *board);
}
END_TEST

START_TEST(a_store_is_complete_without_locks_and_after_a_close_without_its_log)
{
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    store_abandon(store);
    run("rm -r", path, "/locks");
    ck_assert_int_eq(truncate(tmpdir_path(&dir, "store/events/s.jsonl"), 0), 0);
    ck_ok(annal_store_open(path, NULL, &store, err));
    ck_numbers(store, "s", 3);
    append_numbers(store, "s", 4, 5, ANNAL_LEVEL_SYNC);
    store_close(store);
    run("rm -r", path, "/locks");
    ck_ok(annal_store_open(path, NULL, &store, err));
    append_numbers(store, "s", 6, 6, ANNAL_LEVEL_SYNC);
    store_close(store);
    run("rm -r", path, "/commit");
    ck_ok(annal_store_open(path, NULL, &store, err));
    append_numbers(store, "s", 7, 7, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 7);
    store_close(store);
}
END_TEST

START_TEST(a_read_only_store_needs_no_locks_and_no_log)
{
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    store_close(store);
    run("rm -r", path, "/commit");
    run("rm -r", path, "/locks");
    run("chmod -R a-w", path, "");
    annal_writer *writer = NULL;
    ck_ok(annal_store_open(path, &(annal_store_options){.read_only = true}, &store, err));
    ck_numbers(store, "s", 3);
    ck_status(ANNAL_ERR_READONLY, annal_writer_open(store, ANNAL_SLICE("s"), NULL, &writer, err));
    ck_status(ANNAL_ERR_READONLY, annal_store_sync(store, err));
    ck_ok(annal_store_keep(store, err));
    store_close(store);
    ck_assert_int_eq(access(tmpdir_path(&dir, "store/locks"), F_OK), -1);
    run("chmod -R u+w", path, "");
}
END_TEST

/* A group in the middle of the log is damaged: the journal contains its event, and all other groups
 * are redone. */
START_TEST(a_damaged_group_loses_no_event_that_a_journal_holds)
{
    const char *path = tmpdir_path(&dir, "store");
    const char *log = tmpdir_path(&dir, "store/commit/00.log");
    static const uint8_t boot[16] = "next";
    const struct seams rebooted = {&annal__system_io, &annal__system_clock, boot};
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 4, ANNAL_LEVEL_SYNC);
    append_numbers(store, "t", 1, 4, ANNAL_LEVEL_SYNC);
    store_abandon(store);
    size_t len;
    char *bytes = file_read(log, &len);
    bytes[4096 + 4096 * 1 + 200] ^= 1; /* the second group: number 2 of s */
    file_write(log, bytes, len);
    free(bytes);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/events/t.jsonl")), 0);
    store = store_open_seams(path, &rebooted);
    ck_numbers(store, "s", 4);
    ck_numbers(store, "t", 4);
    append_numbers(store, "s", 5, 5, ANNAL_LEVEL_SYNC);
    append_numbers(store, "t", 5, 5, ANNAL_LEVEL_SYNC);
    store_close(store);
}
END_TEST

/* The events of the group are lost: that session stops, the others work. */
START_TEST(a_gap_stops_only_its_own_session)
{
    const char *path = tmpdir_path(&dir, "store");
    const char *log = tmpdir_path(&dir, "store/commit/00.log");
    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    static const uint8_t boot[16] = "next";
    const struct seams rebooted = {&annal__system_io, &annal__system_clock, boot};
    annal_store *store = store_open(path);
    annal_session_info info;
    uint64_t seq;
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &info, err));
    append_numbers(store, "s", 2, 4, ANNAL_LEVEL_SYNC);
    append_numbers(store, "t", 1, 4, ANNAL_LEVEL_SYNC);
    store_abandon(store);
    size_t len;
    char *bytes = file_read(log, &len);
    bytes[4096 + 4096 * 1 + 200] ^= 1;
    file_write(log, bytes, len);
    free(bytes);
    ck_assert_int_eq(truncate(journal, (off_t)info.bytes), 0);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/events/t.jsonl")), 0);
    for (int times = 0; times < 2; times++) {
        store = store_open_seams(path, &rebooted);
        ck_numbers(store, "s", 1);
        ck_numbers(store, "t", (uint64_t)times + 4);
        ck_status(ANNAL_ERR_CORRUPT, append_number(store, "s", 9, 20, ANNAL_LEVEL_SYNC, &seq, err));
        append_numbers(store, "t", (uint64_t)times + 5, (uint64_t)times + 5, ANNAL_LEVEL_SYNC);
        store_close(store);
    }
}
END_TEST

/* Append again after another process looked for the last event. */
static void answer_and_wait(const char *path, struct board *board, uint32_t events)
{
    annal_store *store = NULL;
    annal_error err;
    uint64_t seq;
    need(annal_store_open(path, &(annal_store_options){.create = true}, &store, &err), &err);
    for (uint32_t n = 1; n <= events; n++) {
        annal_level level = n % 8 == 0 ? ANNAL_LEVEL_OS : ANNAL_LEVEL_SYNC;
        need(append_number(store, "s", n, n % 100 == 0 ? 70000 : 20, level, &seq, &err), &err);
        atomic_store(&board->done[0], n);
        while (atomic_load(&board->asked) < n)
            sched_yield();
    }
    need(annal_store_close(store, &err), &err);
    _exit(0);
}

static void ck_last_seq(annal_store *store, annal_index *index, uint32_t n)
{
    const annal_slice session = ANNAL_SLICE("s");
    annal_session_info info;
    uint64_t count;
    ck_ok(annal_session_info_get(store, session, &info, err));
    ck_assert_uint_eq(info.last_seq, n);
    const annal_filter filter = {.sessions = &session, .session_count = 1};
    ck_ok(annal_query_count(index, &filter, &count, NULL, err));
    ck_assert_uint_eq(count, n);
}

START_TEST(another_process_sees_an_acknowledged_event_at_once)
{
    const uint32_t events = full_or(1000000, 2000);
    const char *path = tmpdir_path(&dir, "store");
    struct board *board = board_new();
    annal_index *index = NULL;
    annal_cursor *cursor = NULL;
    annal_event event;
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        answer_and_wait(path, board, events);
    annal_store *store = store_open(path);
    ck_ok(annal_index_open(store, NULL, &index, err));
    for (uint32_t n = 1; n <= events; n++) {
        while (atomic_load(&board->done[0]) < n)
            sched_yield();
        if (n % 16 == 1) {
            annal_cursor_close(cursor);
            ck_ok(annal_cursor_open(store, ANNAL_SLICE("s"), n, &cursor, err));
        }
        ck_ok(annal_cursor_next(cursor, &event, err));
        ck_assert_uint_eq(event.seq, n);
        if (n % 64 == 0)
            ck_last_seq(store, index, n);
        atomic_store(&board->asked, n);
    }
    ck_ended_well(pid);
    annal_cursor_close(cursor);
    annal_index_close(index);
    store_close(store);
    munmap(board, sizeof *board);
}
END_TEST

Suite *suite_share(void)
{
    Suite *suite = suite_create("share");
    TCase *processes = suite_case(suite, "processes", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(processes, two_processes_share_one_session);
    tcase_add_test(processes, eight_processes_share_eight_sessions);
    tcase_add_test(processes, eight_processes_share_one_session);
    tcase_add_test(processes, a_writer_without_pauses_does_not_starve_another_writer);
    tcase_add_test(processes, a_stopped_owner_keeps_its_session_and_is_named);
    tcase_add_test(processes, another_process_sees_an_acknowledged_event_at_once);
    tcase_add_test(processes, a_child_of_fork_is_refused_and_harms_nothing);
    TCase *found = suite_case(suite, "found", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(found, a_copy_of_a_running_store_holds_events_acknowledged_before_it);
    tcase_add_test(found, a_store_is_complete_without_locks_and_after_a_close_without_its_log);
    tcase_add_test(found, a_read_only_store_needs_no_locks_and_no_log);
    tcase_add_test(found, a_damaged_group_loses_no_event_that_a_journal_holds);
    tcase_add_test(found, a_gap_stops_only_its_own_session);
    return suite;
}
