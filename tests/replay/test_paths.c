/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A state has the same bytes, whichever path leads to it.
 *
 * Random histories of sessions and forks: processes append, close, open again and die; snapshots
 * are taken, dropped and damaged; the index is deleted. The test keeps each event in plain arrays
 * and applies them to a new state one by one. Every other path must give the same state.
 */
#include "index/sys/snapshot_rows.h"
#include "index/sys/state.h"
#include "snapshot/sys/snapshot.h"
#include "tests/index/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <annal/replay.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SESSIONS_MAX = 6, EVENTS_MAX = 400, DATA_BYTES = 120, BURST_MAX = 40 };

#define T0 INT64_C(1767684240000000)

struct said {
    const char *type;
    char data[DATA_BYTES];
};

struct history {
    char id[8];
    const char *root; /* of its lineage */
    struct said events[EVENTS_MAX];
    uint64_t count;
    uint64_t shared; /* with its ancestors */
};

struct world {
    struct fixture f;
    struct random random;
    struct history sessions[SESSIONS_MAX];
    unsigned session_count;
};

static struct world world;

static uint64_t below(uint64_t limit)
{
    return random_below(&world.random, limit);
}

static struct history *some_session(void)
{
    return &world.sessions[below(world.session_count)];
}

static annal_moment at_seq(uint64_t seq)
{
    return (annal_moment){.kind = ANNAL_AT_SEQ, .seq = seq};
}

/* ---- What happens ---- */

static int64_t time_of(uint64_t seq)
{
    return T0 + (int64_t)seq * 1000000;
}

static void make_event(struct said *said)
{
    static const char *const types[] = {
        "turn.started",  "turn.completed",  "tool.called",
        "tool.returned", "session.updated", "agent.turn.usage",
        "a.one",         "turn.failed",     "session.status_changed"};
    said->type = types[below(sizeof types / sizeof *types)];
    switch (below(12)) {
    case 0: /* what no handler expects */
        snprintf(said->data, DATA_BYTES, "[%" PRIu64 "]", below(9));
        break;
    case 1:
        snprintf(said->data, DATA_BYTES, "{\"turn_id\":null,\"input_tokens\":\"many\"}");
        break;
    default:
        snprintf(said->data, DATA_BYTES,
                 "{\"turn_id\":\"t%" PRIu64 "\",\"call_id\":\"c%" PRIu64 "\",\"tool\":\"x\","
                 "\"input_tokens\":%" PRIu64 ",\"cost_usd\":0.0%" PRIu64 ",\"to\":\"busy\"}",
                 below(30), below(30), below(1000), below(1000));
    }
}

static annal_draft draft_of(const struct history *history, uint64_t seq)
{
    const struct said *said = &history->events[seq - 1];
    return (annal_draft){.type = annal_slice_of(said->type),
                         .data = annal_slice_of(said->data),
                         .ts_us = time_of(seq)};
}

static uint64_t make_burst(struct history *history)
{
    uint64_t count = 1 + below(BURST_MAX);
    if (history->count + count > EVENTS_MAX)
        count = EVENTS_MAX - history->count;
    for (uint64_t i = 0; i < count; i++)
        make_event(&history->events[history->count + i]);
    return count;
}

static void append_burst(annal_store *store, const struct history *history, uint64_t count)
{
    annal_writer *writer = NULL;
    uint64_t seq;
    ck_ok(annal_writer_open(store, annal_slice_of(history->id), NULL, &writer, err));
    for (uint64_t i = 1; i <= count; i++) {
        const annal_draft draft = draft_of(history, history->count + i);
        const annal_append_options options = {.level = below(4) == 0 ? ANNAL_LEVEL_SYNC
                                                                     : ANNAL_LEVEL_OS};
        ck_ok(annal_writer_append(writer, &draft, 1, &options, &seq, err));
        ck_assert_uint_eq(seq, history->count + i);
    }
    ck_ok(annal_store_sync(store, err));
    annal_writer_close(writer);
}

static void append_some(void)
{
    struct history *history = some_session();
    uint64_t count = make_burst(history);
    append_burst(world.f.store, history, count);
    history->count += count;
}

static void close_store(void)
{
    annal_index_close(world.f.index);
    ck_ok(annal_store_close(world.f.store, err));
}

static void open_store(void)
{
    const annal_store_options options = {.no_keeper = true};
    ck_ok(annal_store_open(world.f.path, &options, &world.f.store, err));
    ck_ok(annal_index_open(world.f.store, NULL, &world.f.index, err));
}

/* A process appends, and dies without closing anything. */
static void append_and_die(void)
{
    struct history *history = some_session();
    uint64_t count = make_burst(history);
    int status = 0;
    close_store(); /* it gives the sessions back */
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        open_store();
        append_burst(world.f.store, history, count);
        raise(SIGKILL);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    open_store();
    history->count += count;
}

static void fork_some(void)
{
    const struct history *parent = some_session();
    if (world.session_count == SESSIONS_MAX || parent->count == 0)
        return;
    struct history *child = &world.sessions[world.session_count];
    uint64_t at = 1 + below(parent->count);
    snprintf(child->id, sizeof child->id, "f%u", world.session_count);
    ck_ok(annal_session_fork(world.f.store, annal_slice_of(parent->id), at,
                             annal_slice_of(child->id), NULL, NULL, err));
    child->root = parent->root;
    child->count = child->shared = at;
    memcpy(child->events, parent->events, at * sizeof *child->events);
    world.session_count++;
}

static void take_snapshots(void)
{
    const struct history *history = some_session();
    annal_slice session = annal_slice_of(history->id);
    const annal_snapshot_policy policy = {.every_events = 3 + below(40)};
    annal_snapshot_info info;
    if (below(2) == 0 || history->count == history->shared)
        ck_ok(annal__snapshot_catch_up(world.f.index, session, &policy, NULL, err));
    else
        ck_ok(annal_snapshot_take(world.f.index, session, &policy, &info, err));
}

/* Flip one bit of a snapshot. */
static void damage_snapshot(void)
{
    annal_slice session = annal_slice_of(some_session()->id), row = {0};
    uint64_t seq = 0;
    if (annal__snapshot_rows_newest(world.f.index, session, below(EVENTS_MAX), &seq, &row, NULL) <
        0)
        return;
    char *bytes = malloc(row.len);
    memcpy(bytes, row.ptr, row.len);
    bytes[below(row.len)] ^= (char)(1 << below(8));
    ck_ok(annal__snapshot_rows_put(world.f.index, session, seq, (annal_slice){bytes, row.len}, 0, 0,
                                   (annal_slice){0}, 1000, err));
    free(bytes);
    annal_free(row.ptr);
}

static void delete_index(void)
{
    static const char *const names[] = {"sessions.db", "sessions.db-wal", "sessions.db-shm"};
    annal_index_close(world.f.index);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", world.f.path, names[i]);
        (void)unlink(path);
    }
    ck_ok(annal_index_open(world.f.store, NULL, &world.f.index, err));
}

static void happen(void)
{
    switch (below(16)) {
    case 0:
    case 1:
        fork_some();
        break;
    case 2:
        close_store();
        open_store();
        break;
    case 3:
        delete_index();
        break;
    case 4:
        append_and_die();
        break;
    case 5:
        damage_snapshot();
        break;
    case 6:
        ck_ok(annal_snapshot_drop(world.f.index, annal_slice_of(some_session()->id), err));
        break;
    case 7:
    case 8:
    case 9:
        take_snapshots();
        break;
    default:
        append_some();
    }
}

/* ---- What must be ---- */

struct sight {
    char *json;
    uint8_t hash[ANNAL_STATE_HASH_BYTES];
};

static struct sight look(annal_state *state)
{
    struct text text = {0};
    struct sight sight;
    ck_ok(annal_state_json(state, text_write, &text, err));
    ck_ok(annal_state_hash(state, sight.hash, err));
    sight.json = text.ptr;
    return sight;
}

static void ck_sight(annal_state *state, const struct sight *expected)
{
    struct sight got = look(state);
    ck_assert_str_eq(got.json, expected->json);
    ck_assert_mem_eq(got.hash, expected->hash, sizeof got.hash);
    free(got.json);
}

/* From the arrays, without any journal. */
static struct sight history_sight(const struct history *history, uint64_t seq)
{
    annal_state *state = NULL;
    ck_ok(annal__state_new(annal_slice_of(history->root), NULL, 0, &state, err));
    for (uint64_t i = 1; i <= seq; i++) {
        const struct said *said = &history->events[i - 1];
        const annal_event event = {.seq = i,
                                   .ts_us = time_of(i),
                                   .type = annal_slice_of(said->type),
                                   .data = annal_slice_of(said->data)};
        ck_ok(annal_state_apply(state, &event, err));
    }
    struct sight sight = look(state);
    annal_state_free(state);
    return sight;
}

static void ck_replayed(const struct history *history, uint64_t seq, bool no_snapshots,
                        const struct sight *expected)
{
    annal_state *state = NULL;
    annal_replay_info info;
    const annal_replay_options options = {.no_snapshots = no_snapshots};
    ck_ok(annal_replay_open(world.f.index, annal_slice_of(history->id), at_seq(seq), &options,
                            &state, &info, err));
    ck_assert_uint_eq(info.seq, seq);
    ck_assert_uint_eq(info.snapshot_seq + info.folded, seq);
    ck_sight(state, expected);
    annal_state_free(state);
}

/* There by a walk of seeks and steps. */
static void ck_walked(const struct history *history, uint64_t seq, const struct sight *expected)
{
    annal_travel *travel = NULL;
    ck_ok(annal_travel_open(world.f.index, annal_slice_of(history->id),
                            at_seq(below(history->count + 1)), NULL, &travel, err));
    for (int i = 0; i < 3; i++)
        ck_ok(annal_travel_seek(travel, at_seq(below(history->count + 1)), err));
    int64_t step = below(2) == 0 ? 1 : -1;
    uint64_t here = 0;
    while (annal_travel_state(travel, &here) == NULL || here != seq) {
        annal_status status = annal_travel_step(travel, step, NULL);
        ck_assert_int_ge(status, 0);
        if (status == ANNAL_END) /* the other way */
            step = -step;
        if (below(8) == 0)
            ck_ok(annal_travel_seek(travel, at_seq(seq), err));
    }
    ck_sight(annal_travel_state(travel, NULL), expected);
    annal_travel_close(travel);
}

static void check_some(void)
{
    const struct history *history = some_session();
    if (history->count == 0)
        return;
    uint64_t seq = below(3) == 0 ? history->count : below(history->count + 1);
    struct sight expected = history_sight(history, seq);
    ck_replayed(history, seq, true, &expected);
    ck_replayed(history, seq, false, &expected);
    ck_walked(history, seq, &expected);
    free(expected.json);
}

/* Whatever was damaged: without snapshots, and with new ones, each session proves itself. */
static void check_all(void)
{
    for (unsigned i = 0; i < world.session_count; i++) {
        annal_slice session = annal_slice_of(world.sessions[i].id);
        const annal_snapshot_policy policy = {.every_events = 20};
        annal_replay_verify_result result;
        if (world.sessions[i].count == 0)
            continue;
        ck_ok(annal_snapshot_drop(world.f.index, session, err));
        ck_ok(annal__snapshot_catch_up(world.f.index, session, &policy, NULL, err));
        ck_ok(annal_replay_verify(world.f.index, session, NULL, &result, err));
        ck_assert_uint_eq(result.findings, 0);
        ck_assert_uint_eq(result.events, world.sessions[i].count);
        struct sight expected = history_sight(&world.sessions[i], world.sessions[i].count);
        ck_assert_mem_eq(result.hash, expected.hash, sizeof result.hash);
        free(expected.json);
    }
}

/* ---- Histories ---- */

static void setup(void)
{
    world = (struct world){.session_count = 2};
    for (unsigned i = 0; i < 2; i++) {
        snprintf(world.sessions[i].id, sizeof world.sessions[i].id, "s%u", i);
        world.sessions[i].root = world.sessions[i].id;
    }
    fixture_init(&world.f);
}

static void teardown(void)
{
    fixture_done(&world.f);
}

START_TEST(every_path_to_a_state_gives_the_same_bytes)
{
    world.random = random_init(1000 + (uint64_t)_i);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t count = make_burst(&world.sessions[i]);
        append_burst(world.f.store, &world.sessions[i], count);
        world.sessions[i].count = count;
    }
    for (unsigned step = 0; step < full_or(40, 15); step++) {
        happen();
        check_some();
    }
    check_all();
}
END_TEST

Suite *suite_paths(void)
{
    Suite *suite = suite_create("paths");
    TCase *tc = suite_case(suite, "paths", setup, teardown);
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, every_path_to_a_state_gives_the_same_bytes, 0, 3);
    return suite;
}
