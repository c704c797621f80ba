/* SPDX-License-Identifier: Apache-2.0 */
/* Tails of several sessions, and many tails. */
#include "journal/sys/delete.h"
#include "replay/sys/tail.h"
#include "tests/index/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <annal/tail.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#define SESSIONS_MAX 16

static annal_tail *tail;
static annal_writer *writers[SESSIONS_MAX];

static void setup(void)
{
    tail = NULL;
    fixture_setup();
    memset(writers, 0, sizeof writers);
}

static void teardown(void)
{
    annal_tail_close(tail);
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        annal_writer_close(writers[i]);
    fixture_teardown();
}

static const char *name_of(size_t session)
{
    static const char *const names[SESSIONS_MAX] = {"s00", "s01", "s02", "s03", "s04", "s05",
                                                    "s06", "s07", "s08", "s09", "s10", "s11",
                                                    "s12", "s13", "s14", "s15"};
    return names[session];
}

static uint64_t append_as(size_t session, const char *type, const char *data, annal_level level)
{
    uint64_t seq = 0;
    const annal_draft draft = {.type = annal_slice_of(type), .data = annal_slice_of(data)};
    if (writers[session] == NULL)
        ck_ok(annal_writer_open(f.store, annal_slice_of(name_of(session)), NULL, &writers[session],
                                err));
    ck_ok(annal_writer_append(writers[session], &draft, 1, &(annal_append_options){.level = level},
                              &seq, err));
    return seq;
}

static void append(size_t session)
{
    (void)append_as(session, "a.one", "{}", ANNAL_LEVEL_OS);
}

/* Check that the next event of a tail is this event and arrives in time. */
static void ck_given(annal_tail *of, const char *session, uint64_t seq)
{
    annal_event event = {0};
    ck_ok(annal_tail_next(of, 5000, &event, err));
    annal_slice name = annal_tail_session(of);
    ck_assert_msg(name.len == strlen(session) && memcmp(name.ptr, session, name.len) == 0 &&
                      event.seq == seq,
                  "%.*s:%llu and not %s:%llu", ANNAL_FMT(name), (unsigned long long)event.seq,
                  session, (unsigned long long)seq);
}

static void ck_nothing(annal_tail *of)
{
    annal_event event;
    ck_assert_int_eq(annal_tail_next(of, 0, &event, NULL), ANNAL_END);
}

static void open_tail(const annal_tail_options *options)
{
    ck_ok(annal_tail_open(f.store, options, &tail, err));
}

/* ---- Order ---- */

/* A wakeup page that was never used is not trusted for a while; use it. */
static void use_wakeup_page(const char *session, int64_t ts_us)
{
    open_tail(NULL);
    fixture_append_at(&f, session, "a.one", "{}", ts_us);
    annal_tail_close(tail);
}

START_TEST(a_tail_gives_the_history_by_time_and_then_appends_in_their_order)
{
    use_wakeup_page("b", 3000000);
    fixture_append_at(&f, "b", "a.one", "{}", 1000000); /* an import: back in time */
    fixture_append_at(&f, "b", "a.one", "{}", 5000000);
    fixture_append_at(&f, "a", "a.one", "{}", 2000000);
    fixture_append_at(&f, "a", "a.one", "{}", 5000000);
    open_tail(NULL);
    ck_given(tail, "a", 1);
    ck_given(tail, "b", 1);
    ck_given(tail, "b", 2);
    ck_given(tail, "a", 2);
    ck_given(tail, "b", 3);
    ck_nothing(tail);
    fixture_append_at(&f, "c", "a.one", "{}", 9000000); /* new, and its time does not count */
    fixture_append_at(&f, "a", "a.one", "{}", 8000000);
    fixture_append_at(&f, "c", "a.one", "{}", 9000000);
    ck_given(tail, "c", 1);
    ck_given(tail, "a", 3);
    ck_given(tail, "c", 2);
    ck_nothing(tail);
}
END_TEST

START_TEST(a_rest_does_not_change_the_order)
{
    for (int64_t i = 0; i < 6; i++)
        fixture_append_at(&f, i % 3 == 0 ? "a" : "b", "a.one", "{}", i * 1000000 + 1);
    open_tail(NULL);
    ck_given(tail, "a", 1);
    annal__tail_rest(tail);
    ck_given(tail, "b", 1);
    ck_given(tail, "b", 2);
    annal__tail_rest(tail);
    ck_given(tail, "a", 2);
    ck_given(tail, "b", 3);
    annal__tail_rest(tail);
    ck_given(tail, "b", 4);
    ck_nothing(tail);
}
END_TEST

START_TEST(events_of_several_sessions_follow_the_order_of_the_appends)
{
    static const annal_level levels[] = {ANNAL_LEVEL_OS, ANNAL_LEVEL_SYNC};
    struct random rng;
    rng = random_init(7);
    use_wakeup_page("s00", 0);
    open_tail(NULL);
    ck_given(tail, "s00", 1);
    for (int round = 0; round < 20; round++) {
        size_t order[60];
        uint64_t seqs[60];
        size_t count = 1 + random_below(&rng, 60);
        for (size_t i = 0; i < count; i++) {
            order[i] = random_below(&rng, 8);
            seqs[i] = append_as(order[i], "a.one", "{}", levels[_i]);
        }
        for (size_t i = 0; i < count; i++)
            ck_given(tail, name_of(order[i]), seqs[i]);
        ck_nothing(tail);
    }
}
END_TEST

START_TEST(a_tail_of_named_sessions_gives_only_those_and_waits_for_missing_sessions)
{
    const annal_slice sessions[] = {ANNAL_SLICE("s02"), ANNAL_SLICE("s00"), ANNAL_SLICE("s02")};
    append(0);
    append(1);
    open_tail(&(annal_tail_options){.sessions = sessions, .session_count = 3});
    ck_given(tail, "s00", 1);
    ck_nothing(tail);
    append(1);
    append(2);
    append(0);
    ck_given(tail, "s02", 1);
    ck_given(tail, "s00", 2);
    ck_nothing(tail);
}
END_TEST

START_TEST(a_tail_gives_only_events_of_the_requested_types)
{
    const annal_slice types[] = {ANNAL_SLICE("tool.*"), ANNAL_SLICE("turn.started")};
    (void)append_as(0, "tool.called", "{}", ANNAL_LEVEL_OS);
    (void)append_as(0, "message.added", "{}", ANNAL_LEVEL_OS);
    (void)append_as(1, "tools", "{}", ANNAL_LEVEL_OS);
    (void)append_as(1, "turn.started", "{}", ANNAL_LEVEL_OS);
    open_tail(&(annal_tail_options){.types = types, .type_count = 2});
    ck_given(tail, "s00", 1);
    ck_given(tail, "s01", 2);
    ck_nothing(tail);
    (void)append_as(2, "turn.ended", "{}", ANNAL_LEVEL_OS);
    (void)append_as(0, "tool.returned", "{}", ANNAL_LEVEL_OS);
    ck_given(tail, "s00", 3);
    ck_nothing(tail);
}
END_TEST

/* ---- Where it begins ---- */

START_TEST(a_tail_from_now_gives_only_later_events)
{
    append(0);
    append(1);
    open_tail(&(annal_tail_options){.from_now = true});
    ck_nothing(tail);
    append(1);
    append(2);
    ck_given(tail, "s01", 2);
    ck_given(tail, "s02", 1);
    ck_nothing(tail);
}
END_TEST

START_TEST(a_tail_begins_at_a_time)
{
    for (int i = 1; i <= 100; i++)
        fixture_append_at(&f, "a", "a.one", "{}", i * 1000000);
    fixture_append_at(&f, "b", "a.one", "{}", 200000000);
    fixture_append_at(&f, "b", "a.one", "{}", 97000000);
    fixture_append_at(&f, "b", "a.one", "{}", 98000000);
    fixture_append_at(&f, "c", "a.one", "{}", 97999999);
    open_tail(&(annal_tail_options){.from_us = 98000000});
    ck_given(tail, "a", 98);
    ck_given(tail, "b", 3); /* after the last older event */
    ck_given(tail, "a", 99);
    ck_given(tail, "a", 100);
    ck_nothing(tail);
}
END_TEST

START_TEST(a_tail_begins_with_the_last_events_of_all_sessions_together)
{
    const annal_slice one = ANNAL_SLICE("a.one");
    fixture_append_many(&f, "a", 300, 1000000); /* a.one is every third: 1, 4, … 298 */
    fixture_append_at(&f, "b", "a.one", "{}", 298500000);
    fixture_append_at(&f, "b", "a.two", "{}", 298600000);
    fixture_append_at(&f, "c", "a.one", "{}", 5000000);
    open_tail(&(annal_tail_options){.last = 3});
    ck_given(tail, "b", 2);
    ck_given(tail, "a", 299);
    ck_given(tail, "a", 300);
    annal_tail_close(tail);
    open_tail(&(annal_tail_options){.last = 4, .types = &one, .type_count = 1});
    ck_given(tail, "a", 292);
    ck_given(tail, "a", 295);
    ck_given(tail, "a", 298);
    ck_given(tail, "b", 1);
    ck_nothing(tail);
    annal_tail_close(tail);
    open_tail(&(annal_tail_options){.last = 1000});
    for (uint64_t i = 0; i < 303; i++) {
        annal_event event;
        ck_ok(annal_tail_next(tail, 0, &event, err));
    }
    ck_nothing(tail);
}
END_TEST

START_TEST(two_starting_points_and_invalid_names_are_refused)
{
    const annal_tail_options wrong[] = {
        {.from_us = 1, .from_now = true},
        {.from_seq = 1},
        {.cursor = {"../x", 4}},
        {.types = &(annal_slice){"", 0}, .type_count = 1},
        {.sessions = &(annal_slice){".x", 2}, .session_count = 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(annal_tail_open(f.store, &wrong[i], &tail, NULL), ANNAL_ERR_INVALID);
    ck_assert_int_eq(annal_tail_open(f.store, &(annal_tail_options){.last = 1000001}, &tail, NULL),
                     ANNAL_ERR_LIMIT);
}
END_TEST

/* ---- Sessions that change under it ---- */

START_TEST(a_deleted_and_restarted_session_is_given_from_its_first_event)
{
    append(0);
    append(0);
    append(1);
    open_tail(NULL);
    ck_given(tail, "s00", 1);
    ck_given(tail, "s00", 2);
    ck_given(tail, "s01", 1);
    annal_writer_close(writers[0]);
    writers[0] = NULL;
    ck_ok(annal__replace_delete(f.store, ANNAL_SLICE("s00"), NULL, err));
    ck_nothing(tail);
    append(1);
    append(0);
    append(0);
    append(0);
    append(1);
    for (uint64_t i = 1, other = 2; i <= 3 || other <= 3;) {
        annal_event event;
        ck_ok(annal_tail_next(tail, 5000, &event, err));
        bool first = annal_tail_session(tail).ptr[2] == '0';
        ck_assert_uint_eq(event.seq, first ? i++ : other++);
    }
    ck_nothing(tail);
}
END_TEST

START_TEST(a_tail_continues_after_the_conversion_of_a_session)
{
    const annal_convert_options msgpack = {.format = ANNAL_FORMAT_MSGPACK};
    annal_convert_result result;
    append(0);
    append(0);
    append(1);
    open_tail(NULL);
    ck_given(tail, "s00", 1);
    ck_given(tail, "s00", 2);
    ck_given(tail, "s01", 1);
    ck_nothing(tail);
    ck_ok(annal_session_convert(f.store, ANNAL_SLICE("s00"), &msgpack, &result, err));
    ck_nothing(tail);
    append(0);
    ck_given(tail, "s00", 3);
    ck_nothing(tail);
}
END_TEST

/* ---- Forks ---- */

START_TEST(a_tail_of_all_sessions_gives_only_the_own_events_of_a_fork)
{
    for (int i = 0; i < 3; i++)
        append(0);
    ck_ok(annal_session_fork(f.store, ANNAL_SLICE("s00"), 2, ANNAL_SLICE("s01"), NULL, NULL, err));
    append(1);
    open_tail(NULL);
    for (uint64_t seq = 1; seq <= 3; seq++)
        ck_given(tail, "s00", seq);
    ck_given(tail, "s01", 3);
    ck_nothing(tail);
    /* A fork that is created while the tail runs, and a fork of a fork. */
    ck_ok(annal_session_fork(f.store, ANNAL_SLICE("s01"), 3, ANNAL_SLICE("s02"), NULL, NULL, err));
    ck_nothing(tail);
    append(2);
    append(0);
    append(2);
    uint64_t next[3] = {4, 0, 4};
    for (int i = 0; i < 3; i++) {
        annal_event event;
        ck_ok(annal_tail_next(tail, 5000, &event, err));
        ck_assert_uint_eq(event.seq, next[annal_tail_session(tail).ptr[2] - '0']++);
    }
    ck_assert_uint_eq(next[2], 6);
    ck_nothing(tail);
}
END_TEST

START_TEST(a_tail_of_a_named_fork_gives_its_whole_history)
{
    const annal_slice sessions[] = {ANNAL_SLICE("s02"), ANNAL_SLICE("s03")};
    for (int i = 0; i < 3; i++)
        append(0);
    ck_ok(annal_session_fork(f.store, ANNAL_SLICE("s00"), 2, ANNAL_SLICE("s01"), NULL, NULL, err));
    append(1);
    append(1);
    ck_ok(annal_session_fork(f.store, ANNAL_SLICE("s01"), 3, ANNAL_SLICE("s02"), NULL, NULL, err));
    append(0); /* not of this history */
    open_tail(&(annal_tail_options){.sessions = sessions, .session_count = 1 + (size_t)_i});
    for (uint64_t seq = 1; seq <= 3; seq++)
        ck_given(tail, "s02", seq);
    ck_nothing(tail);
    append(2);
    append(1);
    ck_given(tail, "s02", 4);
    ck_nothing(tail);
    annal_tail_close(tail);
    open_tail(
        &(annal_tail_options){.sessions = sessions, .session_count = 1 + (size_t)_i, .last = 3});
    for (uint64_t seq = 2; seq <= 4; seq++)
        ck_given(tail, "s02", seq);
    ck_nothing(tail);
}
END_TEST

/* More than the hub's log holds: the rest is looked up in its table. */
START_TEST(a_slow_reader_misses_nothing)
{
    enum { SLOW = 4, APPENDS = 10000 };
    uint64_t next[SLOW] = {1, 1, 1, 1};
    annal_tail *other = NULL;
    annal_event event;
    open_tail(NULL);
    ck_ok(annal_tail_open(f.store, NULL, &other, err));
    for (int i = 0; i < APPENDS; i++) {
        append((size_t)i % SLOW);
        if (i % 500 == 0)
            ck_given(other, name_of((size_t)(i / 500) % SLOW), 1 + (uint64_t)(i / 500) / SLOW);
    }
    for (int i = 0; i < APPENDS; i++) {
        ck_ok(annal_tail_next(tail, 0, &event, err));
        size_t session = (size_t)(annal_tail_session(tail).ptr[2] - '0');
        ck_assert_uint_eq(event.seq, next[session]++);
    }
    ck_nothing(tail);
    annal_tail_close(other);
}
END_TEST

/* ---- At the same time ---- */

enum { MODEL_SESSIONS = 8, MODEL_THREADS = 4, MODEL_APPENDS = 400 };

struct appender {
    uint64_t seed;
    size_t first; /* of its sessions */
    pthread_t thread;
};

static void *append_at_random(void *arg)
{
    struct appender *appender = arg;
    struct random rng;
    annal_writer *own[2] = {NULL, NULL};
    const annal_draft drafts[3] = {{.type = ANNAL_SLICE("a.one"), .data = ANNAL_SLICE("{}")},
                                   {.type = ANNAL_SLICE("b.two"), .data = ANNAL_SLICE("[1]")},
                                   {.type = ANNAL_SLICE("a.one"), .data = ANNAL_SLICE("2")}};
    uint64_t seq;
    rng.state = appender->seed;
    for (size_t i = 0; i < 2; i++)
        ck_ok(annal_writer_open(f.store, annal_slice_of(name_of(appender->first + i)), NULL,
                                &own[i], err));
    for (int i = 0; i < MODEL_APPENDS; i++) {
        const annal_append_options options = {.level = 1 + (annal_level)random_below(&rng, 3)};
        ck_ok(annal_writer_append(own[random_below(&rng, 2)], drafts, 1 + random_below(&rng, 3),
                                  &options, &seq, err));
        if (random_below(&rng, 20) == 0)
            usleep((useconds_t)random_below(&rng, 3000));
    }
    for (size_t i = 0; i < 2; i++) {
        ck_ok(annal_writer_sync(own[i], NULL, err));
        annal_writer_close(own[i]);
    }
    return NULL;
}

static _Atomic bool model_done;

/* Read all events: seqs without gap or repeat. */
static void *read_all(void *arg)
{
    struct random rng;
    annal_tail *mine = NULL;
    annal_event event;
    uint64_t next[MODEL_SESSIONS];
    rng.state = *(uint64_t *)arg;
    for (size_t i = 0; i < MODEL_SESSIONS; i++)
        next[i] = 1;
    usleep((useconds_t)random_below(&rng, 20000));
    ck_ok(annal_tail_open(f.store, NULL, &mine, err));
    for (;;) {
        bool done = atomic_load(&model_done);
        annal_status status =
            annal_tail_next(mine, (uint32_t)random_below(&rng, 2) * 20, &event, NULL);
        ck_assert_int_ge(status, 0);
        if (status == ANNAL_END && done)
            break;
        if (status != ANNAL_OK)
            continue;
        size_t session = (size_t)atoi(annal_tail_session(mine).ptr + 1);
        ck_assert_uint_lt(session, MODEL_SESSIONS);
        ck_assert_uint_eq(event.seq, next[session]++);
        if (random_below(&rng, 500) == 0)
            usleep((useconds_t)random_below(&rng, 30000));
    }
    annal_tail_close(mine);
    for (size_t i = 0; i < MODEL_SESSIONS; i++) {
        annal_session_info info = {0};
        ck_ok(annal_session_info_get(f.store, annal_slice_of(name_of(i)), &info, err));
        ck_assert_uint_eq(next[i], info.last_seq + 1);
    }
    return NULL;
}

START_TEST(no_interleaving_makes_a_tail_miss_or_repeat_an_event)
{
    struct appender appenders[MODEL_THREADS];
    enum { READERS = 24 }; /* a crowd */
    pthread_t readers[READERS];
    uint64_t seeds[READERS];
    struct random rng = random_init((uint64_t)getpid());
    uint64_t seed = random_next(&rng);
    atomic_store(&model_done, false);
    for (size_t i = 0; i < MODEL_THREADS; i++) {
        appenders[i] = (struct appender){.seed = seed + i, .first = i * 2};
        pthread_create(&appenders[i].thread, NULL, append_at_random, &appenders[i]);
    }
    for (size_t i = 0; i < READERS; i++) {
        seeds[i] = seed + 100 + i;
        pthread_create(&readers[i], NULL, read_all, &seeds[i]);
    }
    for (size_t i = 0; i < MODEL_THREADS; i++)
        pthread_join(appenders[i].thread, NULL);
    atomic_store(&model_done, true);
    for (size_t i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
}
END_TEST

/* One loop with a descriptor for each tail: half of the tails follow one session, half all
 * sessions. */
START_TEST(an_event_loop_over_many_descriptors_gets_each_event_once)
{
    enum { TAILS = 100, APPENDS = 200, SPREAD = 4 };
    static annal_tail *tails[TAILS];
    static uint64_t next[TAILS][SPREAD], count[TAILS];
    struct epoll_event ready[16];
    int loop = epoll_create1(0);
    memset(next, 0, sizeof next);
    memset(count, 0, sizeof count);
    for (size_t i = 0; i < TAILS; i++) {
        const annal_slice session = annal_slice_of(name_of(i % SPREAD));
        int fd = -1;
        ck_ok(annal_tail_open(
            f.store, i % 2 ? &(annal_tail_options){.sessions = &session, .session_count = 1} : NULL,
            &tails[i], err));
        ck_ok(annal_tail_fd(tails[i], &fd, err));
        struct epoll_event on = {.events = EPOLLIN, .data.u64 = i};
        ck_assert_int_eq(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &on), 0);
    }
    for (size_t i = 0, wanted = 0, got = 0; i < APPENDS || got < wanted; i++) {
        if (i < APPENDS) {
            append(i % SPREAD);
            wanted += (size_t)(TAILS / 2 + (i % 2 == 1 ? TAILS / SPREAD : 0));
        }
        int some = epoll_wait(loop, ready, 16, i < APPENDS ? 0 : 5000);
        ck_assert_int_ge(some, i < APPENDS ? 0 : 1);
        for (int j = 0; j < some; j++) {
            annal_event event;
            size_t which = (size_t)ready[j].data.u64;
            annal_status status;
            while ((status = annal_tail_next(tails[which], 0, &event, NULL)) == ANNAL_OK) {
                size_t session = (size_t)atoi(annal_tail_session(tails[which]).ptr + 1);
                ck_assert_uint_eq(event.seq, ++next[which][session]);
                got++;
            }
            ck_assert_int_eq(status, ANNAL_END);
        }
    }
    for (size_t i = 0; i < TAILS; i++)
        annal_tail_close(tails[i]);
    close(loop);
}
END_TEST

/* The exit status of a process that follows everything until it has seqs 1 to count of a
 * session. */
static int follow_in_a_process(uint64_t count)
{
    annal_store *store = NULL;
    annal_tail *own = NULL;
    annal_event event;
    uint64_t next[2] = {1, 1};
    if (annal_store_open(f.path, &(annal_store_options){.no_keeper = true}, &store, NULL) < 0 ||
        annal_tail_open(store, NULL, &own, NULL) < 0)
        return 1;
    while (next[0] <= count || next[1] <= count) {
        annal_status status = annal_tail_next(own, 20000, &event, NULL);
        size_t session = status == ANNAL_OK ? (size_t)(annal_tail_session(own).ptr[2] - '0') : 2;
        if (session > 1 || event.seq != next[session]++)
            return 2;
    }
    annal_tail_close(own);
    return annal_store_close(store, NULL) == ANNAL_OK ? 0 : 3;
}

START_TEST(every_process_gets_the_appends_of_another_process_once)
{
    enum { PROCESSES_MAX = 40, EACH = 100 };
    const unsigned processes = many_or(PROCESSES_MAX, 3);
    pid_t pids[PROCESSES_MAX];
    for (unsigned i = 0; i < processes; i++) {
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0)
            _exit(follow_in_a_process(EACH));
    }
    for (size_t i = 0; i < 2 * EACH; i++) {
        (void)append_as(i % 2, "a.one", "{}", i % 7 == 0 ? ANNAL_LEVEL_SYNC : ANNAL_LEVEL_OS);
        if (i % 20 == 0)
            usleep(5000);
    }
    for (unsigned i = 0; i < processes; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

Suite *suite_tails(void)
{
    Suite *suite = suite_create("tails");
    TCase *tc = suite_case(suite, "tails", setup, teardown);
    tcase_add_test(tc, a_tail_gives_the_history_by_time_and_then_appends_in_their_order);
    tcase_add_test(tc, a_rest_does_not_change_the_order);
    tcase_add_loop_test(tc, events_of_several_sessions_follow_the_order_of_the_appends, 0, 2);
    tcase_add_test(tc, a_tail_of_named_sessions_gives_only_those_and_waits_for_missing_sessions);
    tcase_add_test(tc, a_tail_gives_only_events_of_the_requested_types);
    tcase_add_test(tc, a_tail_from_now_gives_only_later_events);
    tcase_add_test(tc, a_tail_begins_at_a_time);
    tcase_add_test(tc, a_tail_begins_with_the_last_events_of_all_sessions_together);
    tcase_add_test(tc, two_starting_points_and_invalid_names_are_refused);
    tcase_add_test(tc, a_deleted_and_restarted_session_is_given_from_its_first_event);
    tcase_add_test(tc, a_tail_continues_after_the_conversion_of_a_session);
    tcase_add_test(tc, a_tail_of_all_sessions_gives_only_the_own_events_of_a_fork);
    tcase_add_loop_test(tc, a_tail_of_a_named_fork_gives_its_whole_history, 0, 2);
    tcase_add_test(tc, a_slow_reader_misses_nothing);
    tcase_add_test(tc, no_interleaving_makes_a_tail_miss_or_repeat_an_event);
    tcase_add_test(tc, an_event_loop_over_many_descriptors_gets_each_event_once);
    tcase_add_test(tc, every_process_gets_the_appends_of_another_process_once);
    return suite;
}
