/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Every system call of a short life fails ---- */

#define SESSIONS 2
#define NUMBERS  24

enum answer { REFUSED, UNKNOWN, ACKNOWLEDGED };

struct life {
    enum answer answers[SESSIONS][NUMBERS + 1]; /* by number, from 1 */
    uint64_t seqs[SESSIONS][NUMBERS + 1];
};

static const annal_level levels[] = {ANNAL_LEVEL_SYNC, ANNAL_LEVEL_OS,   ANNAL_LEVEL_BATCH,
                                     ANNAL_LEVEL_OS,   ANNAL_LEVEL_SYNC, ANNAL_LEVEL_SYNC};

static void session_name(char out[16], int session)
{
    snprintf(out, 16, "s%d", session);
}

static void append_one(annal_store *store, struct life *life, int session, uint64_t number)
{
    char name[16];
    annal_error err = {0};
    annal_level level = levels[number % (sizeof levels / sizeof *levels)];
    session_name(name, session);
    annal_status status =
        append_number(store, name, number, 900, level, &life->seqs[session][number], &err);
    ck_assert(status == ANNAL_OK || err.message[0] != '\0');
    /* What was only batched or cached counts when annal_store_sync() has returned. */
    life->answers[session][number] = status == ANNAL_ERR_UNKNOWN ? UNKNOWN
                                     : status < 0                ? REFUSED
                                     : level == ANNAL_LEVEL_SYNC ? ACKNOWLEDGED
                                                                 : UNKNOWN;
}

static void acknowledge_all(struct life *life, bool tried[SESSIONS][NUMBERS + 1])
{
    for (int session = 0; session < SESSIONS; session++) {
        for (uint64_t number = 1; number <= NUMBERS; number++) {
            if (tried[session][number])
                life->answers[session][number] = ACKNOWLEDGED;
        }
    }
}

/* Open, append, checkpoint in the middle, close. */
static void live(const char *path, const struct seams *seams, struct life *life)
{
    const annal_store_options options = {.create = true, .no_keeper = true, .wait_ms = 100};
    annal_store *store = NULL;
    bool ok[SESSIONS][NUMBERS + 1] = {0};
    if (annal__store_open(path, &options, seams, &store, NULL) < 0)
        return;
    for (uint64_t number = 1; number <= NUMBERS; number++) {
        for (int session = 0; session < SESSIONS; session++) {
            append_one(store, life, session, number);
            ok[session][number] =
                life->answers[session][number] != REFUSED && life->seqs[session][number] != 0;
        }
        if (number == NUMBERS / 2) {
            annal_status status = annal_store_checkpoint(store, NULL);
            if (status < 0) /* tells once of batch events that were refused */
                memset(ok, 0, sizeof ok);
            else
                status = annal_store_keep(store, NULL);
            ck_assert_int_le(status, 0);
        }
    }
    if (annal_store_sync(store, NULL) == ANNAL_OK)
        acknowledge_all(life, ok);
    (void)annal_store_close(store, NULL);
}

struct found {
    struct life *life;
    int session;
    uint64_t last;
    bool there[NUMBERS + 1];
};

static void find_number(void *arg, const annal_event *event)
{
    struct found *found = arg;
    uint64_t number = event_number(event);
    ck_assert_uint_gt(number, found->last); /* in order, none twice */
    found->last = number;
    found->there[number] = true;
    ck_assert_msg(found->life->answers[found->session][number] != REFUSED,
                  "number %d was refused and is there", (int)number);
    if (found->life->answers[found->session][number] == ACKNOWLEDGED)
        ck_assert_uint_eq(event->seq, found->life->seqs[found->session][number]);
}

static void ck_answers_are_true(const char *path, struct life *life)
{
    annal_store *store = store_open(path);
    for (int session = 0; session < SESSIONS; session++) {
        struct found found = {.life = life, .session = session};
        char name[16];
        uint64_t seq;
        session_name(name, session);
        uint64_t last = read_session(store, name, find_number, &found);
        for (int number = 1; number <= NUMBERS; number++)
            ck_assert_msg(found.there[number] || life->answers[session][number] != ACKNOWLEDGED,
                          "number %d was acknowledged and is gone", number);
        ck_ok(append_number(store, name, NUMBERS + 1, 40, ANNAL_LEVEL_SYNC, &seq, err));
        ck_assert_uint_eq(seq, last + 1);
    }
    store_close(store);
}

static void fail_everywhere(int with_errno, bool for_good, size_t short_len, unsigned step)
{
    bool failed = true;
    for (unsigned at = 1; failed; at += many_or(step, 13)) {
        struct failing_io disk;
        struct life life = {0};
        const char *path = tmpdir_path(&dir, "store");
        failing_io_init(&disk);
        disk.fail_at = at;
        disk.with_errno = with_errno;
        disk.for_good = for_good;
        disk.short_len = short_len;
        const struct seams seams = {&disk.io, &annal__system_clock, NULL};
        live(path, &seams, &life);
        failed = disk.calls >= at;
        ck_answers_are_true(path, &life);
        tmpdir_renew();
    }
}

START_TEST(any_call_that_fails_once_leaves_only_true_answers)
{
    fail_everywhere(EIO, false, 0, full_or(1, 4));
}
END_TEST

START_TEST(a_disk_that_fails_for_good_leaves_only_true_answers)
{
    fail_everywhere(ENOSPC, true, 0, full_or(2, 7));
}
END_TEST

START_TEST(short_reads_and_writes_that_then_fail_leave_only_true_answers)
{
    fail_everywhere(EIO, false, 16384, 11);
}
END_TEST

/* ---- The same with threads: the answer to each thread when the disk fails ---- */

#define CROWD         5
#define CROWD_APPENDS 12

struct member {
    pthread_t thread;
    annal_store *store;
    unsigned number;
    enum answer answers[CROWD_APPENDS];
    uint64_t seqs[CROWD_APPENDS];
};

static void *append_until_it_fails(void *arg)
{
    struct member *self = arg;
    for (unsigned i = 0; i < CROWD_APPENDS; i++) {
        char name[16];
        /* All threads share two sessions, so that failures of one thread's group meet the events of
         * another thread. */
        session_name(name, (int)(self->number + i) % SESSIONS);
        annal_status status = append_number(self->store, name, self->number * CROWD_APPENDS + i,
                                            200, ANNAL_LEVEL_SYNC, &self->seqs[i], NULL);
        self->answers[i] = status == ANNAL_OK            ? ACKNOWLEDGED
                           : status == ANNAL_ERR_UNKNOWN ? UNKNOWN
                                                         : REFUSED;
        if (i % 4 == 3 && annal_store_checkpoint(self->store, NULL) < 0)
            continue;
    }
    return NULL;
}

struct crowd_found {
    struct member *members;
    bool there[CROWD * CROWD_APPENDS];
};

static void find_in_crowd(void *arg, const annal_event *event)
{
    struct crowd_found *found = arg;
    uint64_t number = event_number(event);
    ck_assert_uint_lt(number, CROWD * CROWD_APPENDS);
    ck_assert(!found->there[number]);
    found->there[number] = true;
    const struct member *member = &found->members[number / CROWD_APPENDS];
    enum answer answer = member->answers[number % CROWD_APPENDS];
    ck_assert_msg(answer != REFUSED, "number %d was refused and is there", (int)number);
    if (answer == ACKNOWLEDGED)
        ck_assert_uint_eq(event->seq, member->seqs[number % CROWD_APPENDS]);
}

static void fail_under_a_crowd(unsigned at, bool for_good)
{
    struct failing_io disk;
    struct member members[CROWD] = {0};
    struct crowd_found found = {.members = members};
    const char *path = tmpdir_path(&dir, "store");
    failing_io_init(&disk);
    disk.with_errno = EIO;
    disk.for_good = for_good;
    const struct seams seams = {&disk.io, &annal__system_clock, NULL};
    const annal_store_options options = {.create = true};
    annal_store *store = NULL;
    ck_ok(annal__store_open(path, &options, &seams, &store, err));
    append_numbers(store, "warm", 1, 1, ANNAL_LEVEL_SYNC);
    disk.fail_at = disk.calls + at;
    for (unsigned i = 0; i < CROWD; i++) {
        members[i].store = store;
        members[i].number = i;
        ck_assert_int_eq(
            pthread_create(&members[i].thread, NULL, append_until_it_fails, &members[i]), 0);
    }
    for (unsigned i = 0; i < CROWD; i++)
        pthread_join(members[i].thread, NULL);
    (void)annal_store_close(store, NULL);

    store = store_open(path);
    read_session(store, "s0", find_in_crowd, &found);
    read_session(store, "s1", find_in_crowd, &found);
    for (unsigned i = 0; i < CROWD * CROWD_APPENDS; i++)
        ck_assert_msg(found.there[i] ||
                          members[i / CROWD_APPENDS].answers[i % CROWD_APPENDS] != ACKNOWLEDGED,
                      "number %d was acknowledged and is gone", (int)i);
    store_close(store);
    tmpdir_renew();
}

START_TEST(a_disk_that_fails_under_many_threads_leaves_only_true_answers)
{
    for (unsigned at = 1; at <= 80; at += many_or(at < 20 ? full_or(1, 3) : full_or(5, 9), 23))
        fail_under_a_crowd(at, at % 2 == 0);
}
END_TEST

/* ---- A full disk ---- */

struct small_disk {
    struct io io;
    uint64_t free_bytes;
};

static int small_space(void *arg, int fd, struct io_space *out)
{
    struct small_disk *disk = arg;
    int result = annal__system_io.space(NULL, fd, out);
    out->free_bytes = disk->free_bytes;
    return result;
}

struct slow_clock {
    struct clock clock;
    int64_t monotonic_us;
};

static int64_t slow_wall(void *arg)
{
    (void)arg;
    return annal__system_clock.wall_us(annal__system_clock.arg);
}

static int64_t slow_monotonic(void *arg)
{
    return ((struct slow_clock *)arg)->monotonic_us;
}

START_TEST(an_append_is_refused_until_the_disk_has_room)
{
    struct small_disk disk = {.io = annal__system_io, .free_bytes = (uint64_t)1 << 30};
    struct slow_clock time = {.monotonic_us = 1000000};
    uint64_t seq = 0;
    disk.io.arg = &disk;
    disk.io.space = small_space;
    time.clock = (struct clock){slow_wall, slow_monotonic, &time};
    const struct seams seams = {&disk.io, &time.clock, NULL};
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open_seams(path, &seams);
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    annal_metrics before, after;
    annal_store_metrics_get(store, ANNAL_METRICS_OF_OBJECT, &before);

    disk.free_bytes = 16 << 20;
    time.monotonic_us += 200000;
    for (int level = ANNAL_LEVEL_SYNC; level <= ANNAL_LEVEL_OS; level++) {
        annal_error err = {0};
        ck_assert_int_eq(append_number(store, "s", 3, 40, (annal_level)level, &seq, &err),
                         ANNAL_ERR_FULL);
        ck_assert_int_eq(err.os_errno, ENOSPC);
    }
    annal_store_metrics_get(store, ANNAL_METRICS_OF_OBJECT, &after);
    ck_assert_uint_eq(after.journal_bytes, before.journal_bytes);
    ck_assert_uint_eq(after.log_bytes, before.log_bytes);

    disk.free_bytes = 32 << 20;
    time.monotonic_us += 200000;
    append_numbers(store, "s", 3, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 4);
    store_close(store);
}
END_TEST

START_TEST(the_log_does_not_grow_into_the_reserved_disk_space)
{
    struct small_disk disk = {.io = annal__system_io, .free_bytes = 20 << 20};
    disk.io.arg = &disk;
    disk.io.space = small_space;
    const struct seams seams = {&disk.io, &annal__system_clock, NULL};
    const char *path = tmpdir_path(&dir, "store");
    const char *log = tmpdir_path(&dir, "store/commit/00.log");
    struct stat before, after;
    uint64_t seq;
    annal_store *store = store_open_seams(path, &seams);
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(stat(log, &before), 0);
    for (uint64_t number = 2; number <= 60; number++)
        ck_ok(append_number(store, "s", number, 100000, ANNAL_LEVEL_SYNC, &seq, err));
    /* One that needs a larger log is refused, and takes the store nowhere. */
    ck_status(ANNAL_ERR_FULL, append_number(store, "s", 61, 2 << 20, ANNAL_LEVEL_SYNC, &seq, err));
    append_numbers(store, "s", 61, 61, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(stat(log, &after), 0);
    ck_assert_int_eq(after.st_size, before.st_size);
    ck_numbers(store, "s", 61);
    store_close(store);
}
END_TEST

/* ---- Regions of the log ---- */

static const uint8_t next_boot[16] = "the next boot";

/* As after a power cut: no journal byte was synced since the checkpoint that is `kept` bytes
 * old. */
static void cut_power(annal_store *store, const char *journal, off_t kept)
{
    store_abandon(store);
    ck_assert_int_eq(truncate(journal, kept), 0);
}

START_TEST(a_log_of_small_regions_is_reused_repeatedly)
{
    const char *path = tmpdir_path(&dir, "store");
    const struct seams seams = {&annal__system_io, &annal__system_clock, NULL};
    const struct seams rebooted = {&annal__system_io, &annal__system_clock, next_boot};
    const annal_store_options options = {
        .create = true, .no_keeper = true, .region_bytes = 1 << 20};
    annal_store *store = NULL;
    uint64_t seq;
    ck_ok(annal__store_open(path, &options, &seams, &store, err));
    for (uint64_t number = 1; number <= 110; number++)
        ck_ok(append_number(store, "s", number, 50000, ANNAL_LEVEL_SYNC, &seq, err));
    annal_metrics stats;
    annal_store_metrics_get(store, ANNAL_METRICS_OF_OBJECT, &stats);
    ck_assert_uint_ge(stats.checkpoints, 3);
    store_abandon(store);
    store = store_open_seams(path, &rebooted);
    ck_numbers(store, "s", 110);
    store_close(store);
}
END_TEST

/* Several threads write them into the journals. */
START_TEST(a_group_of_many_sessions_reaches_all_their_journals)
{
    const annal_store_options options = {.create = true, .batch_ms = 600000};
    annal_store *store = NULL;
    char name[16];
    annal_metrics stats;
    ck_ok(annal_store_open(tmpdir_path(&dir, "store"), &options, &store, err));
    for (uint64_t number = 1; number <= 3; number++) {
        for (int session = 0; session < 200; session++) {
            session_name(name, session);
            append_numbers(store, name, number, number, ANNAL_LEVEL_BATCH);
        }
    }
    ck_ok(annal_store_sync(store, err));
    annal_store_metrics_get(store, ANNAL_METRICS_OF_OBJECT, &stats);
    ck_assert_uint_eq(stats.groups, 1);
    for (int session = 0; session < 200; session++) {
        session_name(name, session);
        ck_numbers(store, name, 3);
    }
    store_close(store);
}
END_TEST

/* Calls of pwrite() on this disk; the number of the log's own does not depend on the events. */
static unsigned writes_of(int in_turn, int events)
{
    struct tmpdir folder;
    struct failing_io disk;
    uint64_t seq;
    tmpdir_init(&folder);
    failing_io_init(&disk);
    disk.only = "pwrite";
    const struct seams seams = {.io = &disk.io, .clock = &annal__system_clock};
    const annal_store_options options = {.create = true, .no_keeper = true, .batch_ms = 1000000};
    annal_store *store = NULL;
    ck_ok(annal__store_open(tmpdir_path(&folder, "store"), &options, &seams, &store, err));
    for (int number = 1; number <= events; number++)
        for (int i = 0; i < in_turn; i++) {
            char name[16];
            session_name(name, i);
            ck_ok(append_number(store, name, (uint64_t)number, 40, ANNAL_LEVEL_BATCH, &seq, err));
        }
    ck_ok(annal_store_sync(store, err));
    unsigned calls = disk.calls;
    for (int i = 0; i < in_turn; i++) {
        char name[16];
        session_name(name, i);
        ck_numbers(store, name, (uint64_t)events);
    }
    store_close(store);
    tmpdir_done(&folder);
    return calls;
}

START_TEST(sessions_that_append_in_turn_get_one_write_each_for_a_group)
{
    unsigned few = writes_of(5, 1);
    ck_assert_uint_eq(writes_of(5, 20), few);
    ck_assert_uint_eq(writes_of(6, 20), few + 1);
}
END_TEST

START_TEST(an_event_larger_than_a_region_makes_the_log_grow)
{
    const char *path = tmpdir_path(&dir, "store");
    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    const struct seams rebooted = {&annal__system_io, &annal__system_clock, next_boot};
    annal_store *store = store_open(path);
    uint64_t seq;
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    annal_session_info info;
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &info, err));
    ck_ok(append_number(store, "s", 4, 10 << 20, ANNAL_LEVEL_SYNC, &seq, err));
    append_numbers(store, "s", 5, 6, ANNAL_LEVEL_SYNC);
    /* The checkpoint of the growth covered all earlier events. */
    cut_power(store, journal, (off_t)info.bytes);
    store = store_open_seams(path, &rebooted);
    ck_numbers(store, "s", 6);
    append_numbers(store, "s", 7, 8, ANNAL_LEVEL_SYNC);
    store_close(store);
    store = store_open_seams(path, &rebooted);
    append_numbers(store, "s", 9, 9, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 9);
    store_close(store);
}
END_TEST

START_TEST(a_larger_log_that_is_requested_twice_is_created_once)
{
    struct failing_io disk;
    const struct seams seams = {.io = &disk.io, .clock = &annal__system_clock};
    failing_io_init(&disk);
    disk.only = "pwrite";
    annal_store *store = store_open_seams(tmpdir_path(&dir, "store"), &seams);
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    unsigned before = disk.calls;
    store->commit.wish_bytes = 4 * LOG_REGION_FIRST;
    ck_ok(annal__commit_grow(&store->commit, err));
    ck_assert_uint_gt(disk.calls, before);
    ck_assert_uint_eq(atomic_load(&store->own_log.region_bytes), 4 * LOG_REGION_FIRST);
    unsigned once = disk.calls;
    store->commit.wish_bytes = 4 * LOG_REGION_FIRST;
    ck_ok(annal__commit_grow(&store->commit, err));
    ck_assert_uint_eq(disk.calls, once);
    store_close(store);
}
END_TEST

/* Whatever length of the journal reached the disk beyond the checkpoint, the log has the rest. */
START_TEST(recovery_completes_a_journal_of_any_length_after_the_checkpoint)
{
    const char *path = tmpdir_path(&dir, "store");
    const struct seams rebooted = {&annal__system_io, &annal__system_clock, next_boot};
    annal_store *store = store_open(path);
    annal_session_info from, to;
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_checkpoint(store, err));
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &from, err));
    append_numbers(store, "s", 4, 6, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &to, err));
    store_abandon(store);
    const char *copy = tmpdir_path(&dir, "copy");
    const char *journal = tmpdir_path(&dir, "copy/events/s.jsonl");
    for (uint64_t kept = from.bytes; kept <= to.bytes; kept += 13) {
        copy_store(path, copy);
        ck_assert_int_eq(truncate(journal, (off_t)kept), 0);
        store = store_open_seams(copy, &rebooted);
        ck_numbers(store, "s", 6);
        append_numbers(store, "s", 7, 7, ANNAL_LEVEL_SYNC);
        store_close(store);
        char command[600];
        snprintf(command, sizeof command, "rm -r '%s'", copy);
        ck_assert_int_eq(system(command), 0);
    }
}
END_TEST

/* Others may fill it between the look at its size and the append. */
START_TEST(an_append_that_finds_the_group_full_waits_for_the_next)
{
    const annal_store_options options = {.create = true, .no_keeper = true, .batch_ms = 1000000};
    annal_store *store = NULL;
    struct group *group = NULL;
    uint64_t seq = 0;
    ck_ok(annal_store_open(tmpdir_path(&dir, "store"), &options, &store, err));
    char *data = malloc(GROUP_BYTES_SOFT + 100);
    annal_slice large = event_data(data, GROUP_BYTES_SOFT + 100, 1, GROUP_BYTES_SOFT);
    ck_ok(append_slice(store, "s", large, NULL, ANNAL_LEVEL_BATCH, &seq, err));
    free(data);
    uint64_t number = store->commit.current->number;
    struct group_record record = {.session =
                                      annal__session_get(&store->sessions, ANNAL_SLICE("s"), NULL)};
    ck_assert_int_eq(annal__commit_add(&store->commit, &record, ANNAL_SLICE(""), ANNAL_SLICE(""),
                                       ANNAL_SLICE("x\n"), 1, 1, true, &group, NULL),
                     ANNAL_END);
    ck_assert_ptr_null(group);
    ck_assert_uint_eq(store->commit.current->number, number);
    append_numbers(store, "s", 2, 3, ANNAL_LEVEL_BATCH);
    ck_assert_uint_eq(store->commit.current->number, number + 1);
    ck_ok(annal_store_sync(store, err));
    ck_numbers(store, "s", 3);
    store_close(store);
}
END_TEST

#define FILLERS 6

struct filler {
    pthread_t thread;
    annal_store *store;
    char session[16];
    annal_status status;
};

static void *fill_group(void *arg)
{
    struct filler *self = arg;
    size_t room = GROUP_BYTES_SOFT - 1000;
    char *data = malloc(room);
    uint64_t seq;
    for (uint64_t number = 1; number <= 2 && self->status == ANNAL_OK; number++)
        self->status =
            append_slice(self->store, self->session, event_data(data, room, number, room - 100),
                         NULL, ANNAL_LEVEL_BATCH, &seq, NULL);
    free(data);
    return NULL;
}

START_TEST(concurrent_large_appends_all_succeed)
{
    struct filler fillers[FILLERS] = {0};
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    for (int i = 0; i < FILLERS; i++) {
        fillers[i].store = store;
        session_name(fillers[i].session, i / 2);
        ck_assert_int_eq(pthread_create(&fillers[i].thread, NULL, fill_group, &fillers[i]), 0);
    }
    for (int i = 0; i < FILLERS; i++) {
        pthread_join(fillers[i].thread, NULL);
        ck_assert_int_eq(fillers[i].status, ANNAL_OK);
    }
    ck_ok(annal_store_sync(store, err));
    for (int i = 0; i < FILLERS / 2; i++) {
        char name[16];
        session_name(name, i);
        ck_assert_uint_eq(read_session(store, name, NULL, NULL), 4);
    }
    store_close(store);
}
END_TEST

Suite *suite_commit(void)
{
    Suite *suite = suite_create("commit");
    TCase *failing = suite_case(suite, "failing", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(failing, any_call_that_fails_once_leaves_only_true_answers);
    tcase_add_test(failing, a_disk_that_fails_for_good_leaves_only_true_answers);
    tcase_add_test(failing, short_reads_and_writes_that_then_fail_leave_only_true_answers);
    tcase_add_test(failing, an_append_is_refused_until_the_disk_has_room);
    tcase_add_test(failing, a_disk_that_fails_under_many_threads_leaves_only_true_answers);
    tcase_add_test(failing, the_log_does_not_grow_into_the_reserved_disk_space);
    TCase *regions = suite_case(suite, "regions", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(regions, a_log_of_small_regions_is_reused_repeatedly);
    tcase_add_test(regions, a_group_of_many_sessions_reaches_all_their_journals);
    tcase_add_test(regions, sessions_that_append_in_turn_get_one_write_each_for_a_group);
    tcase_add_test(regions, an_event_larger_than_a_region_makes_the_log_grow);
    tcase_add_test(regions, a_larger_log_that_is_requested_twice_is_created_once);
    tcase_add_test(regions, recovery_completes_a_journal_of_any_length_after_the_checkpoint);
    tcase_add_test(regions, an_append_that_finds_the_group_full_waits_for_the_next);
    tcase_add_test(regions, concurrent_large_appends_all_succeed);
    return suite;
}
