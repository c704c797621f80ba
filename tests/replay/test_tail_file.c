/* SPDX-License-Identifier: Apache-2.0 */
/* Named cursors. */
#include "journal/sys/delete.h"
#include "tests/index/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <annal/tail.h>

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static annal_tail *tail;

static const annal_tail_options everything = {.cursor = {"bill", 4}};

static void setup(void)
{
    tail = NULL;
    fixture_setup();
}

static void teardown(void)
{
    annal_tail_close(tail);
    fixture_teardown();
}

static void open_tail(const annal_tail_options *options)
{
    annal_tail_close(tail);
    tail = NULL;
    ck_ok(annal_tail_open(f.store, options, &tail, err));
}

static void ck_given(const char *session, uint64_t seq)
{
    annal_event event = {0};
    ck_ok(annal_tail_next(tail, 5000, &event, err));
    annal_slice name = annal_tail_session(tail);
    ck_assert_msg(name.len == strlen(session) && memcmp(name.ptr, session, name.len) == 0 &&
                      event.seq == seq,
                  "%.*s:%llu and not %s:%llu", ANNAL_FMT(name), (unsigned long long)event.seq,
                  session, (unsigned long long)seq);
}

static void ck_nothing(void)
{
    annal_event event;
    ck_assert_int_eq(annal_tail_next(tail, 0, &event, NULL), ANNAL_END);
}

static const char *cursor_path(void)
{
    return tmpdir_path(&f.dir, "store/cursors/bill.json");
}

START_TEST(a_cursor_starts_after_the_committed_events_and_repeats_the_rest)
{
    fixture_append_at(&f, "a", "a.one", "{}", 1000000);
    fixture_append_at(&f, "b", "a.one", "{}", 2000000);
    fixture_append_at(&f, "a", "a.one", "{}", 3000000);
    open_tail(&everything);
    ck_given("a", 1);
    ck_given("b", 1);
    ck_ok(annal_tail_commit(tail, err)); /* b:1 was given, so it is dealt with */
    ck_given("a", 2);
    open_tail(&everything);
    ck_given("a", 2);
    ck_nothing();
    ck_ok(annal_tail_commit(tail, err));
    open_tail(&everything);
    ck_nothing();
    fixture_append(&f, "c", "a.one", "{}"); /* the tail does not know this session */
    fixture_append(&f, "b", "a.one", "{}");
    open_tail(&everything);
    ck_given("c", 1);
    ck_given("b", 2);
    ck_nothing();
}
END_TEST

START_TEST(a_starting_point_applies_only_to_a_new_cursor)
{
    const annal_tail_options from_now = {.cursor = ANNAL_SLICE("bill"), .from_now = true};
    const annal_tail_options last = {.cursor = ANNAL_SLICE("bill"), .last = 5};
    fixture_append(&f, "a", "a.one", "{}");
    open_tail(&from_now);
    ck_nothing();
    ck_ok(annal_tail_commit(tail, err));
    fixture_append(&f, "a", "a.one", "{}");
    open_tail(&last);
    ck_given("a", 2);
    ck_nothing();
}
END_TEST

START_TEST(a_cursor_of_one_session_is_saved_too)
{
    const annal_slice a = ANNAL_SLICE("a");
    const annal_tail_options options = {
        .sessions = &a, .session_count = 1, .cursor = ANNAL_SLICE("bill")};
    for (int i = 0; i < 4; i++)
        fixture_append(&f, "a", "a.one", "{}");
    open_tail(&options);
    ck_given("a", 1);
    ck_given("a", 2);
    ck_ok(annal_tail_commit(tail, err));
    ck_given("a", 3);
    open_tail(&options);
    ck_given("a", 3);
    ck_given("a", 4);
    ck_nothing();
    ck_ok(annal_tail_commit(tail, err));
    ck_ok(annal__replace_delete(f.store, a, NULL, err));
    fixture_append(&f, "a", "a.one", "{\"n\":1}");
    open_tail(&options);
    ck_given("a", 1);
    ck_nothing();
}
END_TEST

START_TEST(a_replaced_session_is_given_from_its_first_event)
{
    fixture_append(&f, "a", "a.one", "{}");
    fixture_append(&f, "a", "a.one", "{}");
    fixture_append(&f, "b", "a.one", "{}");
    open_tail(&everything);
    for (int i = 0; i < 3; i++) {
        annal_event event;
        ck_ok(annal_tail_next(tail, 0, &event, err));
    }
    ck_ok(annal_tail_commit(tail, err));
    annal_tail_close(tail);
    tail = NULL;
    ck_ok(annal__replace_delete(f.store, ANNAL_SLICE("a"), NULL, err));
    for (int i = 0; i < 3; i++)
        fixture_append(&f, "a", "a.two", "{}");
    open_tail(&everything);
    for (uint64_t seq = 1; seq <= 3; seq++)
        ck_given("a", seq);
    ck_nothing();
}
END_TEST

/* The same file, put back from a backup and written on: other events stand at those seqs. */
START_TEST(a_restored_journal_is_detected_by_its_hash)
{
    size_t len;
    fixture_append(&f, "a", "a.one", "{}");
    ck_ok(annal_store_checkpoint(f.store, err));
    char *bytes = file_read(tmpdir_path(&f.dir, "store/events/a.jsonl"), &len);
    fixture_append(&f, "a", "a.one", "{}");
    fixture_append(&f, "a", "a.one", "{}");
    open_tail(&everything);
    for (uint64_t seq = 1; seq <= 3; seq++)
        ck_given("a", seq);
    ck_ok(annal_tail_commit(tail, err));
    annal_tail_close(tail);
    tail = NULL;
    annal_index_close(f.index);
    f.index = NULL;
    ck_ok(annal_store_close(f.store, err));
    ck_assert_int_eq(unlink(tmpdir_path(&f.dir, "store/events/a.jsonl")), 0);
    file_write(tmpdir_path(&f.dir, "store/events/a.jsonl"), bytes, len);
    free(bytes);
    ck_ok(annal_store_open(f.path, NULL, &f.store, err));
    for (int i = 0; i < 1 + _i; i++) /* less than there was, as much, more */
        fixture_append(&f, "a", "b.two", "{}");
    open_tail(&everything);
    for (uint64_t seq = 1; seq <= 2 + (uint64_t)_i; seq++)
        ck_given("a", seq);
    ck_nothing();
}
END_TEST

START_TEST(a_cursor_continues_after_the_conversion_of_its_session)
{
    const annal_convert_options msgpack = {.format = ANNAL_FORMAT_MSGPACK};
    annal_convert_result result;
    fixture_append(&f, "a", "a.one", "{}");
    fixture_append(&f, "b", "a.one", "{}");
    open_tail(&everything);
    ck_given("a", 1);
    ck_given("b", 1);
    ck_ok(annal_tail_commit(tail, err));
    annal_tail_close(tail);
    tail = NULL;
    ck_ok(annal_session_convert(f.store, ANNAL_SLICE("a"), &msgpack, &result, err));
    fixture_append(&f, "a", "a.one", "{}");
    open_tail(&everything);
    ck_given("a", 2);
    ck_nothing();
}
END_TEST

START_TEST(a_cursor_has_one_reader_at_a_time)
{
    annal_tail *other = NULL;
    open_tail(&everything);
    ck_assert_int_eq(annal_tail_open(f.store, &everything, &other, NULL), ANNAL_ERR_BUSY);
    ck_assert_int_eq(annal_tail_cursor_drop(f.store, everything.cursor, NULL), ANNAL_ERR_BUSY);
    annal_tail_close(tail);
    tail = NULL;
    ck_assert_int_eq(annal_tail_cursor_drop(f.store, everything.cursor, NULL), ANNAL_ERR_NOTFOUND);
    open_tail(&everything);
    ck_ok(annal_tail_commit(tail, err));
    annal_tail_close(tail);
    tail = NULL;
    ck_ok(annal_tail_cursor_drop(f.store, everything.cursor, err));
    ck_assert_int_ne(access(cursor_path(), F_OK), 0);
}
END_TEST

START_TEST(a_failed_commit_succeeds_with_the_next_commit)
{
    const char *folder = tmpdir_path(&f.dir, "store/cursors");
    fixture_append(&f, "a", "x", "1");
    fixture_append(&f, "a", "x", "2");
    open_tail(&everything);
    ck_given("a", 1);
    int in_the_way = open(folder, O_RDWR | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(in_the_way, 0);
    close(in_the_way);
    ck_assert_int_lt(annal_tail_commit(tail, NULL), 0);
    ck_assert_int_eq(unlink(folder), 0);
    ck_ok(annal_tail_commit(tail, err));
    open_tail(&everything);
    ck_given("a", 2);
}
END_TEST

START_TEST(a_commit_without_a_cursor_is_refused)
{
    open_tail(NULL);
    ck_assert_int_eq(annal_tail_commit(tail, NULL), ANNAL_ERR_INVALID);
}
END_TEST

static int count_session(void *arg, const annal_tail_position *position)
{
    uint64_t *sum = arg;
    ck_assert_int_gt(position->committed_us, 0);
    *sum += position->session.ptr[0] == 'a' ? position->seq : 100 * position->seq;
    return 0;
}

static int take_cursor(void *arg, const annal_tail_cursor *cursor)
{
    annal_tail_cursor *out = arg;
    *out = *cursor;
    return 0;
}

START_TEST(cursors_are_listed_and_shown)
{
    annal_tail_cursor found = {0};
    uint64_t sum = 0;
    ck_ok(annal_tail_cursor_each(f.store, take_cursor, &found, err));
    ck_assert_ptr_null(found.name.ptr);
    ck_assert_int_eq(
        annal_tail_position_each(f.store, everything.cursor, count_session, &sum, NULL),
        ANNAL_ERR_NOTFOUND);
    fixture_append(&f, "a", "a.one", "{}");
    fixture_append(&f, "a", "a.one", "{}");
    fixture_append(&f, "b", "a.one", "{}");
    open_tail(&everything);
    for (int i = 0; i < 3; i++) {
        annal_event event;
        ck_ok(annal_tail_next(tail, 0, &event, err));
    }
    ck_ok(annal_tail_commit(tail, err));
    ck_ok(annal_tail_cursor_each(f.store, take_cursor, &found, err));
    ck_assert_uint_eq(found.sessions, 2);
    ck_assert(found.taken && !found.damaged);
    ck_ok(annal_tail_position_each(f.store, everything.cursor, count_session, &sum, err));
    ck_assert_uint_eq(sum, 102);
}
END_TEST

/* Any content of the file is either read as it was written or refused. */
START_TEST(a_damaged_cursor_is_never_read_as_another_position)
{
    size_t len;
    uint64_t sum;
    annal_tail_cursor found = {0};
    fixture_append(&f, "a", "a.one", "{}");
    fixture_append(&f, "b", "a.one", "{}");
    open_tail(&everything);
    ck_given("a", 1);
    ck_ok(annal_tail_commit(tail, err));
    annal_tail_close(tail);
    tail = NULL;
    char *bytes = file_read(cursor_path(), &len);
    for (size_t cut = 0; cut < len; cut++) {
        file_write(cursor_path(), bytes, cut);
        sum = 0;
        ck_assert_int_eq(
            annal_tail_position_each(f.store, everything.cursor, count_session, &sum, NULL),
            ANNAL_ERR_CORRUPT);
    }
    for (size_t bit = 0; bit < 8 * len; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        file_write(cursor_path(), bytes, len);
        ck_assert_int_eq(annal_tail_open(f.store, &everything, &tail, NULL), ANNAL_ERR_CORRUPT);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    file_write(cursor_path(), "nothing", 7);
    ck_ok(annal_tail_cursor_each(f.store, take_cursor, &found, err));
    ck_assert(found.damaged);
    ck_assert_int_eq(annal_tail_open(f.store, &everything, &tail, NULL), ANNAL_ERR_CORRUPT);
    ck_ok(annal_tail_cursor_drop(f.store, everything.cursor, err));
    open_tail(&everything);
    free(bytes);
}
END_TEST

/* ---- A reader that is killed repeatedly ---- */

enum { KILL_SESSIONS = 4, KILL_EVENTS = 300 };

/* What the readers wrote down, one after the other: it outlives them. */
struct ledger {
    _Atomic uint64_t next[KILL_SESSIONS];     /* the largest given seq plus one */
    _Atomic uint64_t promised[KILL_SESSIONS]; /* committed up to here: never given again */
    _Atomic uint64_t wrong;
    _Atomic uint64_t again; /* number of repeated events */
};

static void read_and_write_down(struct ledger *ledger, uint64_t seed)
{
    annal_store *store = NULL;
    struct random rng = {seed};
    annal_event event;
    uint64_t mine[KILL_SESSIONS] = {0};
    if (annal_store_open(f.path, NULL, &store, NULL) < 0 ||
        annal_tail_open(store, &everything, &tail, NULL) < 0)
        _exit(1);
    for (;;) {
        if (annal_tail_next(tail, 100, &event, NULL) == ANNAL_OK) {
            size_t i = (size_t)(annal_tail_session(tail).ptr[1] - '0');
            uint64_t next = atomic_load(&ledger->next[i]);
            if (event.seq > next || event.seq <= atomic_load(&ledger->promised[i]) ||
                (mine[i] != 0 && event.seq != mine[i] + 1))
                atomic_fetch_add(&ledger->wrong, 1);
            mine[i] = event.seq;
            atomic_fetch_add(&ledger->again, event.seq < next);
            atomic_store(&ledger->next[i], event.seq < next ? next : event.seq + 1);
        }
        if (random_below(&rng, 10) == 0) {
            if (annal_tail_commit(tail, NULL) < 0)
                _exit(2);
            for (size_t i = 0; i < KILL_SESSIONS; i++)
                if (mine[i] > 0)
                    atomic_store(&ledger->promised[i], mine[i]);
        }
    }
}

static void append_some(struct random *rng, uint64_t *appended)
{
    char session[3] = "s0";
    for (uint64_t i = random_below(rng, 30); i > 0; i--) {
        size_t which = (size_t)random_below(rng, KILL_SESSIONS);
        session[1] = (char)('0' + which);
        fixture_append(&f, session, "a.one", "{}");
        appended[which]++;
    }
}

START_TEST(a_killed_reader_that_restarts_misses_nothing)
{
    struct random rng = random_init((uint64_t)getpid());
    uint64_t appended[KILL_SESSIONS] = {0};
    struct ledger *ledger =
        mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(ledger, MAP_FAILED);
    for (size_t i = 0; i < KILL_SESSIONS; i++)
        atomic_store(&ledger->next[i], 1);
    for (unsigned round = 0; round < many_or(30, 5); round++) {
        pid_t reader = fork();
        if (reader == 0)
            read_and_write_down(ledger, random_next(&rng) + round);
        append_some(&rng, appended);
        usleep((useconds_t)random_below(&rng, 60000));
        append_some(&rng, appended);
        ck_assert_int_eq(kill(reader, SIGKILL), 0);
        int status;
        ck_assert_int_eq(waitpid(reader, &status, 0), reader);
        ck_assert(WIFSIGNALED(status));
    }
    pid_t reader = fork();
    if (reader == 0)
        read_and_write_down(ledger, 1);
    for (size_t i = 0; i < KILL_SESSIONS; i++)
        for (int tries = 0; atomic_load(&ledger->next[i]) <= appended[i] && tries < 30000; tries++)
            usleep(10000);
    kill(reader, SIGKILL);
    waitpid(reader, NULL, 0);
    for (size_t i = 0; i < KILL_SESSIONS; i++)
        ck_assert_uint_eq(atomic_load(&ledger->next[i]), appended[i] + 1);
    ck_assert_uint_eq(atomic_load(&ledger->wrong), 0);
    munmap(ledger, sizeof *ledger);
}
END_TEST

Suite *suite_tail_file(void)
{
    Suite *suite = suite_create("tail_file");
    TCase *tc = suite_case(suite, "tail_file", setup, teardown);
    tcase_add_test(tc, a_cursor_starts_after_the_committed_events_and_repeats_the_rest);
    tcase_add_test(tc, a_starting_point_applies_only_to_a_new_cursor);
    tcase_add_test(tc, a_cursor_of_one_session_is_saved_too);
    tcase_add_test(tc, a_replaced_session_is_given_from_its_first_event);
    tcase_add_loop_test(tc, a_restored_journal_is_detected_by_its_hash, 0, 3);
    tcase_add_test(tc, a_cursor_continues_after_the_conversion_of_its_session);
    tcase_add_test(tc, a_cursor_has_one_reader_at_a_time);
    tcase_add_test(tc, a_commit_without_a_cursor_is_refused);
    tcase_add_test(tc, a_failed_commit_succeeds_with_the_next_commit);
    tcase_add_test(tc, cursors_are_listed_and_shown);
    tcase_add_test(tc, a_damaged_cursor_is_never_read_as_another_position);
    tcase_add_test(tc, a_killed_reader_that_restarts_misses_nothing);
    return suite;
}
