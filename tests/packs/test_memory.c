/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/packs/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tests/support/stopped.h"

#include <annal/tail.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void setup(void)
{
    packs_setup();
    PACKS_ENABLE(&p, "memory");
}

/* ---- In a store, with guards ---- */

/* Propose in a process of its own. */
static int propose(const char *path, int gate, const char *data)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_writer *writer = NULL;
    annal_error err = {0};
    char byte;
    const annal_draft draft = {.type = ANNAL_SLICE("decision.proposed"),
                               .data = annal_slice_of(data)};
    const annal_writer_options options = {.wait_ms = 30000};
    annal_status status = annal_store_open(path, NULL, &store, &err);
    if (status == ANNAL_OK)
        status = annal_index_open(store, NULL, &index, &err);
    if (status == ANNAL_OK && read(gate, &byte, 1) == 0)
        status = annal_writer_open(store, ANNAL_SLICE("proj_p1"), &options, &writer, &err);
    if (status == ANNAL_OK)
        status = annal_pack_append(index, writer, &draft, 1, NULL, NULL, &err);
    annal_writer_close(writer);
    annal_index_close(index);
    (void)annal_store_close(store, NULL);
    if (status < 0 && status != ANNAL_ERR_REFUSED)
        fprintf(stderr, "proposer: %s\n", err.message);
    return status == ANNAL_OK ? 0 : status == ANNAL_ERR_REFUSED ? 1 : 2;
}

/* Let four agents, WHO0 to WHO3, propose at the same time; counts exit statuses 0, 1 and 2. */
static void race(const char *who, const char *slug_field, int count[3])
{
    int gate[2], status = 0;
    pid_t pids[4];
    packs_reopen(&p);
    ck_assert_int_eq(pipe(gate), 0);
    for (int i = 0; i < 4; i++) {
        char data[200];
        snprintf(data, sizeof data,
                 "{\"agent_name\":\"%s%d\",\"type\":\"scope\",\"title\":\"T\",\"content\":"
                 "\"c\",\"%s\":\"s\"}",
                 who, i, slug_field);
        pids[i] = fork();
        if (pids[i] == 0) {
            close(gate[1]);
            _exit(propose(p.path, gate[0], data));
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert(WIFEXITED(status));
        count[WEXITSTATUS(status)]++;
    }
}

START_TEST(one_of_several_agents_gets_an_exact_slug_and_requested_slugs_become_unique)
{
    int exact[3] = {0}, wished[3] = {0};
    race("a", "slug", exact);
    ck_assert_int_eq(exact[0], 1);
    ck_assert_int_eq(exact[1], 3);
    race("b", "requested_slug", wished);
    ck_assert_int_eq(wished[0], 4);
    ck_packs(&p, "SELECT slug FROM decision_inbox ORDER BY slug",
             "s\ns--b0\ns--b1\ns--b2\ns--b3\n");
    packs_ck_rebuild(&p, "memory.db", 2);
}
END_TEST

/* Promote pending proposals one after the other, until a kill. */
static int promote_for_ever(const char *path)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_writer *writer = NULL;
    annal_error err = {0};
    annal_status status = annal_store_open(path, NULL, &store, &err);
    if (status == ANNAL_OK)
        status = annal_index_open(store, NULL, &index, &err);
    if (status == ANNAL_OK)
        status = annal_writer_open(store, ANNAL_SLICE("proj_p1"), NULL, &writer, &err);
    for (int i = 1; status == ANNAL_OK || status == ANNAL_ERR_REFUSED; i++) {
        char data[60];
        snprintf(data, sizeof data, "{\"entry_id\":\"i%d\"}", i);
        const annal_draft draft = {.type = ANNAL_SLICE("decision.promoted"),
                                   .data = annal_slice_of(data)};
        status = annal_pack_append(index, writer, &draft, 1, NULL, NULL, &err);
    }
    fprintf(stderr, "promoter: %s\n", err.message);
    return 1;
}

START_TEST(a_kill_leaves_both_a_promotion_and_its_decision_or_neither)
{
    struct random random = random_init(20260120);
    for (int i = 0; i < 60; i++) {
        char data[120];
        snprintf(data, sizeof data,
                 "{\"agent_name\":\"a\",\"type\":\"scope\",\"title\":\"%d\",\"content\":\"c\"}", i);
        ck_append(&p, "proj_p1", "decision.proposed", data);
    }
    for (int round = 0; round < 4; round++) {
        int status = 0;
        packs_reopen(&p);
        pid_t pid = fork();
        if (pid == 0)
            _exit(promote_for_ever(p.path));
        usleep(20000 + (useconds_t)random_below(&random, 100000));
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status));
        packs_reopen(&p); /* recovers its commit log */
        ck_packs(&p,
                 "SELECT count(*) FROM decision_inbox i LEFT JOIN decisions d ON "
                 "d.inbox_entry_id = i.id WHERE (i.status = 'merged') <> (d.id IS NOT NULL) "
                 "OR i.decision_id IS NOT d.id",
                 "0\n");
        packs_ck_rebuild(&p, "memory.db", random_next(&random));
    }
}
END_TEST

/* ---- Events of runs ---- */

static uint64_t tail_count(annal_store *store, uint64_t from, uint64_t up_to)
{
    annal_tail *tail = NULL;
    annal_event event;
    uint64_t next = from;
    ck_ok(annal_tail_open(store,
                          &(annal_tail_options){.sessions = &ANNAL_SLICE("run_r1"),
                                                .session_count = 1,
                                                .from_seq = from},
                          &tail, err));
    while (next <= up_to) {
        ck_ok(annal_tail_next(tail, 120000, &event, err));
        ck_assert_uint_eq(event.seq, next);
        next++;
    }
    annal_tail_close(tail);
    return next - from;
}

START_TEST(events_are_replayed_from_a_cursor_and_followed_without_gap_or_repeat)
{
    annal_tail *tail = NULL;
    annal_event event;
    for (int i = 0; i < 3; i++)
        ck_append(&p, "run_r1", "agent.message", "{\"text\":\"t\"}");
    packs_reopen(&p);
    ck_packs(&p, "SELECT Sequence FROM RunEvents WHERE RunId = 'r1' AND Sequence > 0 ORDER BY 1",
             "1\n2\n3\n");
    ck_packs(&p, "SELECT Sequence FROM RunEvents WHERE RunId = 'r1' AND Sequence > 1 ORDER BY 1",
             "2\n3\n");
    ck_assert_uint_eq(tail_count(p.store, 2, 3), 2);
    ck_ok(annal_tail_open(p.store,
                          &(annal_tail_options){.sessions = &ANNAL_SLICE("run_r1"),
                                                .session_count = 1,
                                                .from_seq = 1},
                          &tail, err));
    for (uint64_t seq = 1; seq <= 4; seq++) {
        if (seq == 4)
            ck_append(&p, "run_r1", "agent.message", "{}");
        ck_ok(annal_tail_next(tail, 120000, &event, err));
        ck_assert_uint_eq(event.seq, seq);
    }
    ck_assert_int_eq(annal_tail_next(tail, 0, &event, NULL), ANNAL_END);
    annal_tail_close(tail);
    ck_packs(&p, "SELECT count(*), count(DISTINCT Sequence) FROM RunEvents", "4|4\n");
    packs_ck_rebuild(&p, "memory.db", 5);
}
END_TEST

/* Append the rest in a process of its own. */
static int append_events(const char *path, int from, int to)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_writer *writer = NULL;
    annal_error err = {0};
    const annal_draft draft = {.type = ANNAL_SLICE("agent.message"), .data = ANNAL_SLICE("{}")};
    const annal_writer_options options = {.wait_ms = 30000};
    annal_status status = annal_store_open(path, NULL, &store, &err);
    if (status == ANNAL_OK)
        status = annal_index_open(store, NULL, &index, &err);
    if (status == ANNAL_OK)
        status = annal_writer_open(store, ANNAL_SLICE("run_r1"), &options, &writer, &err);
    for (int i = from; status == ANNAL_OK && i <= to; i++)
        status = annal_pack_append(index, writer, &draft, 1, NULL, NULL, &err);
    annal_writer_close(writer);
    annal_index_close(index);
    (void)annal_store_close(store, NULL);
    if (status < 0)
        fprintf(stderr, "appender: %s\n", err.message);
    return status == ANNAL_OK ? 0 : 1;
}

START_TEST(two_readers_receive_every_event_of_another_process_once)
{
    enum { EVENTS = 60 };
    int status = 0;
    for (int i = 0; i < 3; i++)
        ck_append(&p, "run_r1", "agent.message", "{}");
    packs_reopen(&p);
    pid_t reader = fork();
    if (reader == 0) {
        annal_store *store = NULL;
        if (annal_store_open(p.path, NULL, &store, NULL) < 0)
            _exit(1);
        bool all = tail_count(store, 1, EVENTS) == EVENTS;
        _exit(annal_store_close(store, NULL) == ANNAL_OK && all ? 0 : 1);
    }
    pid_t writer = fork();
    if (writer == 0)
        _exit(append_events(p.path, 4, EVENTS));
    ck_assert_uint_eq(tail_count(p.store, 1, EVENTS), EVENTS);
    ck_assert_int_eq(waitpid(writer, &status, 0), writer);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(waitpid(reader, &status, 0), reader);
    ck_assert_int_eq(status, 0);
    ck_packs(&p, "SELECT min(Sequence), max(Sequence), count(*) FROM RunEvents", "1|60|60\n");
}
END_TEST

/* On a busy machine the best of ten counts. */
START_TEST(a_waiting_reader_receives_an_event_within_200_ms)
{
    enum { EVENTS = 10 };
    annal_tail *tail = NULL;
    annal_event event;
    int64_t best_us = INT64_MAX;
    int status = 0;
    packs_append_past(&p, "run_r1", "agent.message", "{}");
    packs_reopen(&p);
    ck_ok(annal_tail_open(p.store,
                          &(annal_tail_options){.sessions = &ANNAL_SLICE("run_r1"),
                                                .session_count = 1,
                                                .from_seq = 2},
                          &tail, err));
    pid_t writer = fork();
    for (int i = 0; writer == 0 && i < EVENTS; i++) {
        usleep(20000);
        if (append_events(p.path, 1, 1) != 0)
            _exit(1);
    }
    if (writer == 0)
        _exit(0);
    for (int i = 0; i < EVENTS; i++) {
        struct timespec now;
        ck_ok(annal_tail_next(tail, 120000, &event, err));
        clock_gettime(CLOCK_REALTIME, &now);
        int64_t late_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - event.ts_us;
        best_us = late_us < best_us ? late_us : best_us;
    }
    ck_assert_int_eq(waitpid(writer, &status, 0), writer);
    ck_assert_int_eq(status, 0);
    ck_assert_int_lt(best_us, scaled_us(many_or(200000, 5000000)));
    annal_tail_close(tail);
}
END_TEST

START_TEST(a_slow_reader_misses_no_event)
{
    enum { EVENTS = 300 };
    annal_tail *tail = NULL;
    annal_event event;
    packs_append_past(&p, "run_r1", "agent.message", "{}");
    ck_ok(annal_tail_open(p.store,
                          &(annal_tail_options){.sessions = &ANNAL_SLICE("run_r1"),
                                                .session_count = 1,
                                                .from_seq = 1},
                          &tail, err));
    ck_ok(annal_tail_next(tail, 120000, &event, err));
    for (int i = 1; i < EVENTS; i++)
        packs_append_past(&p, "run_r1", i % 10 == 9 ? "run.failed" : "agent.message", "{}");
    for (uint64_t seq = 2; seq <= EVENTS; seq++) {
        ck_ok(annal_tail_next(tail, 120000, &event, err));
        ck_assert_uint_eq(event.seq, seq);
    }
    annal_tail_close(tail);
    ck_packs(&p, "SELECT min(Sequence), max(Sequence), count(*) FROM RunEvents", "1|300|300\n");
}
END_TEST

Suite *suite_memory(void)
{
    Suite *suite = suite_create("memory");
    TCase *stores = suite_case(suite, "stores", setup, packs_teardown);
    tcase_add_test(stores,
                   one_of_several_agents_gets_an_exact_slug_and_requested_slugs_become_unique);
    tcase_add_test(stores, a_kill_leaves_both_a_promotion_and_its_decision_or_neither);
    tcase_add_test(stores, events_are_replayed_from_a_cursor_and_followed_without_gap_or_repeat);
    tcase_add_test(stores, two_readers_receive_every_event_of_another_process_once);
    tcase_add_test(stores, a_waiting_reader_receives_an_event_within_200_ms);
    tcase_add_test(stores, a_slow_reader_misses_no_event);
    return suite;
}
