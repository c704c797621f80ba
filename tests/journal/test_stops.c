/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is stopped while it holds a lock. No other process waits beyond its limit, and no
 * reader waits at all. */
#include "journal/session.h"
#include "journal/slot.h"
#include "journal/sys/delete.h"
#include "journal/sys/inspect.h"
#include "journal/sys/seam.h"

#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/stopped.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT_MS 60

static const char *path;
static struct stopped stopped;
static char log_text[4096];

static void set_up(void)
{
    tmpdir_setup();
    path = tmpdir_path(&dir, "store");
    log_text[0] = '\0';
}

static void tear_down(void)
{
    stopped_end(&stopped);
    tmpdir_teardown();
}

static void keep_message(void *arg, annal_log_level level, const char *message)
{
    (void)arg;
    (void)level;
    size_t used = strlen(log_text);
    snprintf(log_text + used, sizeof log_text - used, "%s\n", message);
}

static annal_store *open_hasty(void)
{
    const annal_store_options options = {
        .create = true, .no_keeper = true, .wait_ms = LIMIT_MS, .log = keep_message};
    annal_store *store = NULL;
    ck_ok(annal_store_open(path, &options, &store, err));
    return store;
}

/* Another process has this lock, and is stopped. */
static void stop_with(const char *lock)
{
    stopped_start_locked(&stopped, (const char *const[]){tmpdir_path(&dir, lock), NULL});
}

/* Check that the call returned BUSY within the limit, with a message that names the lock holder. */
static void ck_named(annal_status status, const annal_error *err, int64_t begun_us)
{
    ck_in_time(begun_us, LIMIT_MS * 1000);
    ck_assert_msg(status == ANNAL_ERR_BUSY, "%s: %s", annal_status_name(status), err->message);
    ck_assert_msg(strstr(err->message, stopped.who) != NULL, "'%s' does not name '%s'",
                  err->message, stopped.who);
}

static annal_status append_to(annal_store *store, const char *session, annal_error *err)
{
    uint64_t seq;
    return append_number(store, session, 1, 20, ANNAL_LEVEL_SYNC, &seq, err);
}

static int count_log(void *arg, const annal__log_info *info)
{
    (void)info;
    ++*(int *)arg;
    return 0;
}

/* ---- locks/claim ---- */

START_TEST(an_append_reports_in_time_which_stopped_process_holds_claim)
{
    annal_error failure = {0};
    annal_store *store = open_hasty();
    append_numbers(store, "a", 1, 1, ANNAL_LEVEL_SYNC);
    stop_with("store/locks/claim");
    append_numbers(store, "a", 2, 2, ANNAL_LEVEL_SYNC); /* it is ours already */
    int64_t begun_us = stopped_now_us();
    ck_named(append_to(store, "b", &failure), &failure, begun_us);
    stopped_end(&stopped);
    ck_ok(append_to(store, "b", err));
    store_close(store);
}
END_TEST

START_TEST(a_stopped_holder_of_claim_does_not_block_opening_reading_or_closing)
{
    uint32_t pid = 0;
    int logs = 0;
    annal_store *writer = store_open(path);
    append_numbers(writer, "a", 1, 3, ANNAL_LEVEL_SYNC);
    stop_with("store/locks/claim");
    int64_t begun_us = stopped_now_us();
    annal_store *reader = store_open(path); /* it would wait for ten seconds */
    ck_numbers(reader, "a", 3);
    ck_ok(annal__log_each(reader, count_log, &logs, err));
    ck_assert_int_eq(logs, 1);
    ck_ok(annal__log_session_owner(reader, ANNAL_SLICE("a"), &pid, err));
    ck_assert_int_eq(pid, getpid());
    store_close(reader);
    store_close(writer);
    ck_in_time(begun_us, 0);
}
END_TEST

/* The leader, who makes all appends of the process wait, must not wait for another process. */
START_TEST(an_append_that_needs_a_larger_log_gets_one_beside_a_stopped_holder_of_claim)
{
    static char large[3 << 20];
    uint64_t seq;
    annal_store *store = open_hasty();
    append_numbers(store, "a", 1, 1, ANNAL_LEVEL_SYNC);
    memset(large, '7', sizeof large);
    stop_with("store/locks/claim");
    const annal_slice data = {large, sizeof large};
    ck_ok(append_slice(store, "a", data, NULL, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_uint_eq(seq, 2);
    ck_assert_uint_gt(atomic_load(&store->own_log.region_bytes), LOG_REGION_FIRST);
    store_close(store);
}
END_TEST

static int64_t tenth_us(void *arg)
{
    (void)arg;
    return annal__clock_monotonic_us() / 10;
}

START_TEST(the_keeper_creates_a_larger_log_beside_a_stopped_holder_of_claim)
{
    const annal_store_options options = {.create = true};
    /* A region that fills up within 250 ms is too small: here, within 2.5 s. */
    const struct clock slow = {.wall_us = annal__system_clock.wall_us, .monotonic_us = tenth_us};
    const struct seams seams = {.io = &annal__system_io, .clock = &slow};
    annal_store *store = NULL;
    uint64_t seq, n = 0;
    ck_ok(annal__store_open(path, &options, &seams, &store, err)); /* would wait for ten seconds */
    append_numbers(store, "a", ++n, 1, ANNAL_LEVEL_SYNC);
    stop_with("store/locks/claim");
    int64_t begun_us = stopped_now_us();
    while (atomic_load(&store->own_log.region_bytes) == LOG_REGION_FIRST &&
           stopped_now_us() - begun_us < 10 * SPARE_US) {
        int64_t one_us = stopped_now_us();
        ck_ok(append_number(store, "a", ++n, 100000, ANNAL_LEVEL_SYNC, &seq, err));
        ck_in_time(one_us, 0);
    }
    ck_assert_uint_gt(atomic_load(&store->own_log.region_bytes), LOG_REGION_FIRST);
    store_close(store);
}
END_TEST

static _Atomic bool fails_once;

static int fail_log_sync_once(void *arg, int fd)
{
    char link[64], file[256] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t got = readlink(link, file, sizeof file - 1);
    if (got > 0 && strstr(file, "/00.log") != NULL && atomic_exchange(&fails_once, false)) {
        errno = EIO;
        return -1;
    }
    return annal__system_io.fdatasync(arg, fd);
}

START_TEST(a_log_whose_sync_failed_is_replaced_beside_a_stopped_holder_of_claim)
{
    struct io io = annal__system_io;
    const struct seams seams = {.io = &io, .clock = &annal__system_clock};
    uint64_t seq;
    io.fdatasync = fail_log_sync_once;
    atomic_store(&fails_once, false);
    annal_store *store = store_open_seams(path, &seams);
    append_numbers(store, "a", 1, 1, ANNAL_LEVEL_SYNC);
    stop_with("store/locks/claim");
    atomic_store(&fails_once, true);
    ck_status(ANNAL_ERR_DISK, append_number(store, "a", 2, 20, ANNAL_LEVEL_SYNC, &seq, err));
    int64_t begun_us = stopped_now_us();
    append_numbers(store, "a", 2, 2, ANNAL_LEVEL_SYNC);
    ck_in_time(begun_us, 0);
    stopped_end(&stopped);
    ck_numbers(store, "a", 2);
    store_close(store);
}
END_TEST

/* ---- locks/recovery, and who recovers ---- */

/* Leave a slot that needs recovery: its log has events that the journal lacks. */
static void leave_dead_owner(void)
{
    annal_store *dead = store_open(path);
    append_numbers(dead, "d", 1, 3, ANNAL_LEVEL_SYNC);
    store_abandon(dead);
    ck_assert_int_eq(truncate(tmpdir_path(&dir, "store/events/d.jsonl"), 0), 0);
}

START_TEST(recovery_in_the_same_boot_needs_no_recovery_lock)
{
    leave_dead_owner();
    stop_with("store/locks/recovery");
    int64_t begun_us = stopped_now_us();
    annal_store *store = store_open(path);
    ck_numbers(store, "d", 3);
    append_numbers(store, "d", 4, 4, ANNAL_LEVEL_SYNC);
    store_close(store);
    ck_in_time(begun_us, 0);
}
END_TEST

START_TEST(appends_wait_until_one_process_has_recovered_the_logs_of_another_boot)
{
    annal_error failure = {0};
    leave_dead_owner();
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/locks/00.held")), 0);
    stop_with("store/locks/recovery");
    int64_t begun_us = stopped_now_us();
    annal_store *store = open_hasty(); /* and everything else works */
    ck_in_time(begun_us, 0);
    begun_us = stopped_now_us();
    ck_named(append_to(store, "e", &failure), &failure, begun_us);
    ck_assert_ptr_nonnull(strstr(failure.message, "locks/recovery"));
    stopped_end(&stopped);
    append_numbers(store, "d", 4, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "d", 4);
    store_close(store);
}
END_TEST

/* Stops itself when it is to sync the first journal. */
static int stop_at_sync(void *arg, int fd)
{
    char link[64], file[256] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t got = readlink(link, file, sizeof file - 1);
    if (got > 0 && strstr(file, "/events/d.jsonl") != NULL)
        raise(SIGSTOP);
    return annal__system_io.fdatasync(arg, fd);
}

static void recover_until_stopped(void *arg)
{
    struct io io = annal__system_io;
    const struct seams seams = {.io = &io, .clock = &annal__system_clock};
    const annal_store_options options = {.no_keeper = true};
    annal_store *store = NULL;
    io.fdatasync = stop_at_sync;
    (void)!annal__store_open(arg, &options, &seams, &store, NULL);
    pause();
}

START_TEST(an_open_beside_a_stopped_recovery_continues_and_names_the_process)
{
    annal_error failure = {0};
    annal_store *store = store_open(path);
    append_numbers(store, "other", 1, 2, ANNAL_LEVEL_SYNC);
    store_close(store);
    leave_dead_owner();
    stopped_start(&stopped, recover_until_stopped, (void *)path);
    /* To other processes, its earlier events seem to be missing. */
    ck_assert_int_eq(truncate(tmpdir_path(&dir, "store/events/d.jsonl"), 0), 0);
    int64_t begun_us = stopped_now_us();
    store = open_hasty();
    ck_in_time(begun_us, LIMIT_MS * 1000);
    ck_assert_msg(strstr(log_text, "3 durable events") != NULL &&
                      strstr(log_text, stopped.who) != NULL,
                  "%s", log_text);
    ck_numbers(store, "other", 2);
    append_numbers(store, "other", 3, 3, ANNAL_LEVEL_SYNC);
    begun_us = stopped_now_us();
    ck_named(append_to(store, "d", &failure), &failure, begun_us);
    stopped_end(&stopped);
    append_numbers(store, "d", 4, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "d", 4);
    store_close(store);
}
END_TEST

START_TEST(a_read_only_open_beside_a_stopped_recovery_names_the_process_too)
{
    const annal_store_options options = {.read_only = true, .log = keep_message};
    annal_store *store = NULL;
    leave_dead_owner();
    stopped_start(&stopped, recover_until_stopped, (void *)path);
    ck_assert_int_eq(truncate(tmpdir_path(&dir, "store/events/d.jsonl"), 0), 0);
    ck_ok(annal_store_open(path, &options, &store, err));
    ck_assert_msg(strstr(log_text, "3 durable events") != NULL &&
                      strstr(log_text, stopped.who) != NULL,
                  "%s", log_text);
    store_close(store);
}
END_TEST

START_TEST(an_owner_whose_held_list_was_removed_is_not_reported_as_recovering)
{
    annal_store *owner = store_open(path);
    append_numbers(owner, "d", 1, 3, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(truncate(tmpdir_path(&dir, "store/events/d.jsonl"), 0), 0);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/locks/00.held")), 0);
    annal_store *store = open_hasty();
    ck_assert_str_eq(log_text, "");
    store_close(store);
    store_abandon(owner);
}
END_TEST

static int first_read_to = -1; /* a byte goes here when the first read of a log begins */

/* Reading takes longer than others wait for a process that makes no progress. */
static ssize_t read_slowly(void *arg, int fd, void *bytes, size_t len, uint64_t offset)
{
    if (len >= 64 << 10) {
        if (first_read_to >= 0)
            (void)!write(first_read_to, "", 1);
        first_read_to = -1;
        usleep(50000);
    }
    return annal__system_io.pread(arg, fd, bytes, len, offset);
}

START_TEST(an_open_waits_for_a_process_that_reads_a_log_slowly)
{
    struct io io = annal__system_io;
    const struct seams seams = {.io = &io, .clock = &annal__system_clock};
    const annal_store_options options = {.no_keeper = true};
    int ends[2];
    char byte;
    io.pread = read_slowly;
    leave_dead_owner();
    ck_assert_int_eq(pipe(ends), 0);
    stopped.pid = fork();
    ck_assert_int_ge(stopped.pid, 0);
    if (stopped.pid == 0) {
        annal_store *store = NULL;
        first_read_to = ends[1];
        (void)!annal__store_open(path, &options, &seams, &store, NULL);
        pause();
        _exit(1);
    }
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    annal_store *store = store_open(path);
    ck_numbers(store, "d", 3);
    store_close(store);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* A log that failed is void, and the disk has no room for another log. */
static int open_no_new_log(void *arg, const char *file, int flags, mode_t mode)
{
    if (strstr(file, "/commit/.new-") == NULL)
        return annal__system_io.open(arg, file, flags, mode);
    errno = ENOSPC;
    return -1;
}

START_TEST(a_voided_log_does_not_block_an_open_beside_a_stopped_holder_of_claim)
{
    struct io io = annal__system_io;
    const struct seams seams = {.io = &io, .clock = &annal__system_clock};
    uint64_t seq;
    io.fdatasync = fail_log_sync_once;
    atomic_store(&fails_once, false);
    annal_store *dead = store_open_seams(path, &seams);
    append_numbers(dead, "d", 1, 3, ANNAL_LEVEL_SYNC);
    io.open = open_no_new_log;
    atomic_store(&fails_once, true);
    ck_status(ANNAL_ERR_DISK, append_number(dead, "d", 4, 20, ANNAL_LEVEL_SYNC, &seq, err));
    store_abandon(dead);
    ck_assert_int_eq(access(tmpdir_path(&dir, "store/commit/00.void"), F_OK), 0);
    stop_with("store/locks/claim");
    int64_t begun_us = stopped_now_us();
    annal_store *store = store_open(path); /* it would wait for ten seconds */
    ck_in_time(begun_us, 0);
    ck_numbers(store, "d", 3);
    stopped_end(&stopped);
    append_numbers(store, "d", 4, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "d", 4);
    store_close(store);
    ck_assert_int_ne(access(tmpdir_path(&dir, "store/commit/00.void"), F_OK), 0);
}
END_TEST

/* ---- locks/structure, and an owner ---- */

START_TEST(a_deletion_reports_in_time_which_stopped_process_holds_structure)
{
    annal_error failure = {0};
    annal_store *store = open_hasty();
    append_numbers(store, "a", 1, 1, ANNAL_LEVEL_SYNC);
    stop_with("store/locks/structure");
    int64_t begun_us = stopped_now_us();
    ck_named(delete_wiped(store, ANNAL_SLICE("a"), NULL, &failure), &failure, begun_us);
    store_close(store);
}
END_TEST

/* The owner never gives it back: it is stopped, and dies in the end. */
static void own_until_stopped(void *session)
{
    append_numbers(store_open(path), session, 1, 1, ANNAL_LEVEL_SYNC);
    raise(SIGSTOP);
}

START_TEST(a_message_says_that_the_owner_of_a_session_is_stopped)
{
    annal_error failure = {0};
    stopped_start(&stopped, own_until_stopped, "a");
    annal_store *store = open_hasty();
    int64_t begun_us = stopped_now_us();
    ck_named(append_to(store, "a", &failure), &failure, begun_us);
    append_numbers(store, "b", 1, 1, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "a", 1);
    store_close(store);
}
END_TEST

/* ---- Between threads ---- */

struct patient {
    pthread_t thread;
    annal_store *store;
    const char *session;
    uint32_t wait_ms;
    annal_status status;
    annal_error err;
};

static annal_status append_within(annal_store *store, const char *session, uint32_t wait_ms,
                                  annal_error *err)
{
    const annal_writer_options options = {.wait_ms = wait_ms};
    const annal_draft draft = {.type = ANNAL_SLICE("t"), .data = ANNAL_SLICE("{}")};
    annal_writer *writer = NULL;
    uint64_t seq = 0;
    annal_status status = annal_writer_open(store, annal_slice_of(session), &options, &writer, err);
    if (status == ANNAL_OK)
        status = annal_writer_append(writer, &draft, 1, NULL, &seq, err);
    annal_writer_close(writer);
    return status;
}

static void *append_patiently(void *arg)
{
    struct patient *patient = arg;
    patient->status =
        append_within(patient->store, patient->session, patient->wait_ms, &patient->err);
    return NULL;
}

static void start_patient(struct patient *patient, annal_store *store, const char *session)
{
    *patient = (struct patient){.store = store, .session = session, .wait_ms = 20000};
    ck_assert_int_eq(pthread_create(&patient->thread, NULL, append_patiently, patient), 0);
}

static void end_patient(struct patient *patient)
{
    ck_assert_int_eq(pthread_join(patient->thread, NULL), 0);
    ck_assert_msg(patient->status == ANNAL_OK, "%s", patient->err.message);
}

static bool is_claiming(annal_store *store)
{
    pthread_mutex_lock(&store->slot.lock);
    bool claiming = store->slot.claiming;
    pthread_mutex_unlock(&store->slot.lock);
    return claiming;
}

static bool is_busy(annal_store *store, const char *id)
{
    struct session *session = annal__session_get(&store->sessions, annal_slice_of(id), NULL);
    ck_assert_ptr_nonnull(session);
    pthread_mutex_lock(&session->lock);
    bool busy = session->state == SESSION_BUSY;
    pthread_mutex_unlock(&session->lock);
    return busy;
}

START_TEST(a_thread_does_not_wait_as_long_as_another_thread_that_claims_a_log)
{
    struct patient patient;
    annal_error failure = {0};
    annal_store *store = open_hasty();
    stop_with("store/locks/claim");
    start_patient(&patient, store, "a");
    while (!is_claiming(store))
        usleep(1000);
    int64_t begun_us = stopped_now_us();
    ck_named(append_within(store, "b", LIMIT_MS, &failure), &failure, begun_us);
    stopped_end(&stopped);
    end_patient(&patient);
    ck_ok(append_within(store, "b", LIMIT_MS, err));
    store_close(store);
}
END_TEST

START_TEST(a_thread_does_not_wait_as_long_as_another_thread_for_the_same_session)
{
    struct patient patient;
    annal_error failure = {0};
    stopped_start(&stopped, own_until_stopped, "a");
    annal_store *store = open_hasty();
    start_patient(&patient, store, "a");
    while (!is_busy(store, "a"))
        usleep(1000);
    int64_t begun_us = stopped_now_us();
    ck_named(append_within(store, "a", LIMIT_MS, &failure), &failure, begun_us);
    begun_us = stopped_now_us();
    ck_named(delete_wiped(store, ANNAL_SLICE("a"), NULL, &failure), &failure, begun_us);
    stopped_end(&stopped);
    end_patient(&patient);
    store_close(store);
}
END_TEST

/* A full disk that reports the failure only when the test says so; until then the creator of a log
 * waits. */
static _Atomic bool makes_log, may_fail;

static int open_on_full_disk(void *arg, const char *file, int flags, mode_t mode)
{
    if (strstr(file, "/commit/.new-") == NULL)
        return annal__system_io.open(arg, file, flags, mode);
    atomic_store(&makes_log, true);
    for (int i = 0; i < 20000 && !atomic_load(&may_fail); i++)
        usleep(1000);
    errno = ENOSPC;
    return -1;
}

START_TEST(the_deleter_of_a_session_on_a_full_disk_waits_for_no_log_creation)
{
    struct io io = annal__system_io;
    struct patient patient;
    const struct seams seams = {.io = &io, .clock = &annal__system_clock};
    io.open = open_on_full_disk;
    atomic_store(&makes_log, false);
    atomic_store(&may_fail, false);
    stopped_start(&stopped, own_until_stopped, "c"); /* there is a log that is not ours */
    annal_store *store = store_open_seams(path, &seams);
    start_patient(&patient, store, "a");
    while (!atomic_load(&makes_log))
        usleep(1000);
    int64_t begun_us = stopped_now_us();
    ck_ok(annal__slot_keep_off(store, ANNAL_SLICE("b"), err));
    ck_in_time(begun_us, 0);
    annal__slot_let_on(store);
    atomic_store(&may_fail, true);
    ck_assert_int_eq(pthread_join(patient.thread, NULL), 0);
    ck_assert_int_eq(patient.status, ANNAL_ERR_FULL);
    store_close(store);
}
END_TEST

/* ---- All waits of a store ---- */

START_TEST(a_limit_for_all_waits_of_a_store_is_not_paid_twice)
{
    annal_error failure = {0};
    annal_store *store = store_open(path); /* would wait for ten seconds */
    append_numbers(store, "a", 1, 1, ANNAL_LEVEL_SYNC);
    stop_with("store/locks/claim");
    annal__store_limit_waits(store, 2 * LIMIT_MS);
    int64_t begun_us = stopped_now_us();
    ck_assert_int_eq(append_to(store, "b", &failure), ANNAL_ERR_BUSY);
    ck_assert_int_eq(append_to(store, "c", &failure), ANNAL_ERR_BUSY);
    ck_assert_int_eq(append_to(store, "d", &failure), ANNAL_ERR_BUSY);
    ck_assert_int_ge(stopped_now_us() - begun_us, 2 * LIMIT_MS * 1000);
    ck_in_time(begun_us, 2 * LIMIT_MS * 1000);
    store_close(store);
}
END_TEST

START_TEST(the_waits_of_two_threads_at_the_same_time_count_once)
{
    struct patient patients[2];
    annal_store *store = store_open(path);
    append_numbers(store, "a", 1, 1, ANNAL_LEVEL_SYNC);
    stop_with("store/locks/claim");
    annal__store_limit_waits(store, 6 * LIMIT_MS);
    int64_t begun_us = stopped_now_us();
    start_patient(&patients[0], store, "b");
    start_patient(&patients[1], store, "c");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_join(patients[i].thread, NULL), 0);
        ck_assert_int_eq(patients[i].status, ANNAL_ERR_BUSY);
    }
    int64_t took_us = stopped_now_us() - begun_us;
    ck_assert_int_ge(took_us, 6 * LIMIT_MS * 1000);
    ck_assert_int_le(annal__store_waited_us(store), took_us);
    store_close(store);
}
END_TEST

START_TEST(recovering_an_own_log_is_work_and_does_not_count_as_waiting)
{
    struct io io = annal__system_io;
    const struct seams seams = {.io = &io, .clock = &annal__system_clock};
    io.pread = read_slowly;
    leave_dead_owner();
    int64_t begun_us = stopped_now_us();
    annal_store *store = store_open_seams(path, &seams);
    ck_assert_int_ge(stopped_now_us() - begun_us, 300000);
    ck_assert_int_lt(annal__store_waited_us(store), 100000);
    store_close(store);
}
END_TEST

Suite *suite_stops(void)
{
    Suite *suite = suite_create("stops");
    TCase *cases = suite_case(suite, "stops", set_up, tear_down);
    tcase_add_test(cases, an_append_reports_in_time_which_stopped_process_holds_claim);
    tcase_add_test(cases, a_stopped_holder_of_claim_does_not_block_opening_reading_or_closing);
    tcase_add_test(cases,
                   an_append_that_needs_a_larger_log_gets_one_beside_a_stopped_holder_of_claim);
    tcase_add_test(cases, the_keeper_creates_a_larger_log_beside_a_stopped_holder_of_claim);
    tcase_add_test(cases, a_log_whose_sync_failed_is_replaced_beside_a_stopped_holder_of_claim);
    tcase_add_test(cases, recovery_in_the_same_boot_needs_no_recovery_lock);
    tcase_add_test(cases, appends_wait_until_one_process_has_recovered_the_logs_of_another_boot);
    tcase_add_test(cases, an_open_beside_a_stopped_recovery_continues_and_names_the_process);
    tcase_add_test(cases, a_read_only_open_beside_a_stopped_recovery_names_the_process_too);
    tcase_add_test(cases, an_owner_whose_held_list_was_removed_is_not_reported_as_recovering);
    tcase_add_test(cases, an_open_waits_for_a_process_that_reads_a_log_slowly);
    tcase_add_test(cases, a_voided_log_does_not_block_an_open_beside_a_stopped_holder_of_claim);
    tcase_add_test(cases, a_deletion_reports_in_time_which_stopped_process_holds_structure);
    tcase_add_test(cases, a_message_says_that_the_owner_of_a_session_is_stopped);
    tcase_add_test(cases, a_thread_does_not_wait_as_long_as_another_thread_that_claims_a_log);
    tcase_add_test(cases, a_thread_does_not_wait_as_long_as_another_thread_for_the_same_session);
    tcase_add_test(cases, the_deleter_of_a_session_on_a_full_disk_waits_for_no_log_creation);
    tcase_add_test(cases, a_limit_for_all_waits_of_a_store_is_not_paid_twice);
    tcase_add_test(cases, the_waits_of_two_threads_at_the_same_time_count_once);
    tcase_add_test(cases, recovering_an_own_log_is_work_and_does_not_count_as_waiting);
    return suite;
}
