/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writers are killed with SIGKILL at random moments.
 *
 * A writer process has lanes, one thread each. Lane L appends its units 1, 2, 3, …; a unit is one
 * append of one to three events, in a session that depends on lane and unit. The lane records each
 * attempt before the append and each acknowledgement after it, in memory that survives the process.
 * The parent kills, opens the store again, and proves:
 *
 * (1) every acknowledged event exists at its seq, with its bytes;
 * (2) no event is doubled, no seq is missing, and verify finds no damage;
 * (3) no unit is incomplete. Level os does not promise this: there, the first events of a unit may
 *     be in the journal alone if none of its events was acknowledged;
 * (4) with ids, a lane begins with the unit whose answer is unknown: then each of its units exists
 *     exactly once.
 */
#include "tests/crash/kill.h"

#include "tests/support/journals.h"
#include "tests/support/tmpdir.h"

#include <check.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SESSIONS   3
#define LANES      6 /* the first half is process 0, the others process 1 */
#define UNIT_MOST  3
#define ACKS_MOST  40000
#define SEQS_MOST  (3 * ACKS_MOST)
#define BATCH_SYNC 5
#define UNITS_FAST 20 /* in one life of a lane; then one a millisecond: proving stays quick */

struct ack {
    uint64_t number;
    uint32_t session;
    _Atomic uint64_t seq; /* written last: 0 while the rest is being filled */
};

struct lane {
    _Atomic uint64_t tried;
    _Atomic uint64_t acknowledged;
};

/* Shared with the writers. */
struct board {
    struct lane lanes[LANES];
    _Atomic uint32_t stop;
    _Atomic uint32_t acks;
    struct ack list[ACKS_MOST];
};

struct plan {
    const char *path;
    struct board *board;
    bool with_ids;
    annal_level level;
    annal_format format;
};

static uint64_t number_of(unsigned lane, uint64_t unit, unsigned part)
{
    return (lane + 1) * UINT64_C(1000000000) + unit * 10 + part;
}

static unsigned session_of(unsigned lane, uint64_t unit)
{
    return (unsigned)((lane + unit) % SESSIONS);
}

/* The repetition of an incomplete unit would be refused, so with ids there is none at level os. */
static unsigned parts_of(const struct plan *plan, uint64_t unit)
{
    return plan->with_ids && plan->level == ANNAL_LEVEL_OS ? 1 : 1 + (unsigned)(unit % UNIT_MOST);
}

static void session_name(char out[16], unsigned session)
{
    snprintf(out, 16, "s%u", session);
}

static void sleep_us(uint64_t us)
{
    const struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};
    nanosleep(&time, NULL);
}

/* ---- The writer process: without assertions of Check, which would continue as a second runner
 * ---- */

static void need(annal_status status, const annal_error *err)
{
    if (status == ANNAL_OK)
        return;
    fprintf(stderr, "writer: %s: %s\n", annal_status_name(status), err->message);
    abort();
}

static void acknowledge(const struct plan *plan, unsigned lane, uint64_t unit, uint64_t seq)
{
    struct board *board = plan->board;
    for (unsigned part = 0; part < parts_of(plan, unit); part++) {
        uint32_t at = atomic_load(&board->acks);
        if (at == ACKS_MOST)
            return;
        /* Filled before it counts; lanes take turns by the exchange. */
        while (!atomic_compare_exchange_weak(&board->acks, &at, at + 1))
            if (at >= ACKS_MOST)
                return;
        struct ack *ack = &board->list[at];
        ack->number = number_of(lane, unit, part);
        ack->session = session_of(lane, unit);
        atomic_store(&ack->seq, seq + part);
    }
}

struct worker {
    pthread_t thread;
    const struct plan *plan;
    annal_store *store;
    unsigned lane;
};

static uint64_t append_unit(const struct worker *worker, uint64_t unit)
{
    char data[UNIT_MOST][400], ids[UNIT_MOST][40], name[16];
    annal_draft drafts[UNIT_MOST];
    annal_writer *writer = NULL;
    annal_error err;
    uint64_t seq = 0;
    const annal_writer_options options = {.level = worker->plan->level};
    unsigned parts = parts_of(worker->plan, unit);
    for (unsigned part = 0; part < parts; part++) {
        uint64_t number = number_of(worker->lane, unit, part);
        drafts[part] = (annal_draft){.type = ANNAL_SLICE("test.event")};
        drafts[part].data = event_data(data[part], sizeof data[part], number, number % 300);
        snprintf(ids[part], sizeof ids[part], "id-%" PRIu64, number);
        if (worker->plan->with_ids)
            drafts[part].id = annal_slice_of(ids[part]);
    }
    session_name(name, session_of(worker->lane, unit));
    need(annal_writer_open(worker->store, annal_slice_of(name), &options, &writer, &err), &err);
    need(annal_writer_append(writer, drafts, parts, NULL, &seq, &err), &err);
    annal_writer_close(writer);
    return seq;
}

static void *work(void *arg)
{
    const struct worker *worker = arg;
    struct board *board = worker->plan->board;
    struct lane *lane = &board->lanes[worker->lane];
    uint64_t unit = worker->plan->with_ids ? lane->acknowledged : lane->tried;
    uint64_t seqs[BATCH_SYNC];
    uint64_t slow_from = unit + UNITS_FAST;
    bool batch = worker->plan->level == ANNAL_LEVEL_BATCH;
    while (!atomic_load(&board->stop)) {
        unsigned many = batch ? BATCH_SYNC : 1;
        for (unsigned i = 0; i < many; i++) {
            atomic_store(&lane->tried, unit + 1 + i);
            seqs[i] = append_unit(worker, unit + 1 + i);
        }
        annal_error err;
        if (batch)
            need(annal_store_sync(worker->store, &err), &err);
        if (unit > slow_from)
            sleep_us(1000);
        for (unsigned i = 0; i < many; i++) {
            unit++;
            acknowledge(worker->plan, worker->lane, unit, seqs[i]);
            atomic_store(&lane->acknowledged, unit);
        }
    }
    return NULL;
}

static void be_a_writer(const struct plan *plan, unsigned process)
{
    struct worker workers[LANES / 2];
    annal_store *store = NULL;
    annal_error err;
    /* A small log, so that its regions are reused often. */
    const annal_store_options options = {
        .create = true, .level = plan->level, .format = plan->format, .region_bytes = 1 << 20};
    need(annal_store_open(plan->path, &options, &store, &err), &err);
    for (unsigned i = 0; i < LANES / 2; i++) {
        workers[i] =
            (struct worker){.plan = plan, .store = store, .lane = process * (LANES / 2) + i};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            abort();
    }
    for (unsigned i = 0; i < LANES / 2; i++)
        pthread_join(workers[i].thread, NULL);
    need(annal_store_close(store, &err), &err);
    _exit(0);
}

static pid_t start(const struct plan *plan, unsigned process)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        be_a_writer(plan, process);
    ck_assert_int_gt(pid, 0);
    return pid;
}

/* ---- The parent ---- */

static void kill_it(pid_t pid)
{
    int how;
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &how, 0), pid);
    ck_assert_msg(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL, "a writer ended by itself");
}

static void ck_goes_on(struct board *board, unsigned process)
{
    uint64_t before = 0, now = 0;
    const struct lane *lanes = &board->lanes[process * (LANES / 2)];
    for (unsigned i = 0; i < LANES / 2; i++)
        before += lanes[i].acknowledged;
    for (int tries = 0; tries < 20000 && now < before + 12; tries++) {
        now = 0;
        for (unsigned i = 0; i < LANES / 2; i++)
            now += lanes[i].acknowledged;
        sleep_us(1000);
    }
    ck_assert_msg(now >= before + 12, "the living process does not go on");
}

static void end_in_order(struct board *board, pid_t pid)
{
    int how;
    atomic_store(&board->stop, 1);
    ck_assert_int_eq(waitpid(pid, &how, 0), pid);
    ck_assert_msg(WIFEXITED(how) && WEXITSTATUS(how) == 0, "a writer failed");
    atomic_store(&board->stop, 0);
}

struct proof {
    const struct plan *plan;
    unsigned session;
    const uint64_t *expected; /* by seq; 0: never acknowledged */
    uint64_t last_unit[LANES];
    uint64_t open;     /* the number that must be next; 0: a new unit */
    bool acknowledged; /* an event of the current unit */
};

/* The current unit is complete, or may be incomplete (3). */
static bool may_end(const struct proof *proof)
{
    return proof->open == 0 || (proof->plan->level == ANNAL_LEVEL_OS && !proof->acknowledged);
}

static void check_event(void *arg, const annal_event *event)
{
    struct proof *proof = arg;
    uint64_t number = event_number(event);
    unsigned lane = (unsigned)(number / 1000000000) - 1;
    uint64_t unit = number % 1000000000 / 10;
    unsigned part = (unsigned)(number % 10);
    ck_assert_uint_lt(event->seq, SEQS_MOST);
    ck_assert_uint_lt(lane, LANES);
    if (proof->expected[event->seq] != 0)
        ck_assert_uint_eq(number, proof->expected[event->seq]);
    ck_assert(number == proof->open || (part == 0 && may_end(proof)));
    ck_assert_uint_eq(session_of(lane, unit), proof->session);
    if (part == 0) {
        ck_assert_uint_gt(unit, proof->last_unit[lane]);
        if (proof->plan->with_ids && proof->last_unit[lane] > 0)
            ck_assert_uint_eq(unit, proof->last_unit[lane] + SESSIONS);
        proof->last_unit[lane] = unit;
        proof->acknowledged = false;
    }
    proof->acknowledged |= proof->expected[event->seq] != 0;
    proof->open = part + 1 < parts_of(proof->plan, unit) ? number + 1 : 0;
}

static void prove(const struct plan *plan)
{
    static uint64_t expected[SESSIONS][SEQS_MOST];
    memset(expected, 0, sizeof expected);
    uint64_t highest[SESSIONS] = {0};
    uint32_t acks = atomic_load(&plan->board->acks);
    for (uint32_t i = 0; i < acks; i++) {
        const struct ack *ack = &plan->board->list[i];
        if (ack->seq == 0) /* killed between taking the place and filling it */
            continue;
        ck_assert_uint_lt(ack->seq, SEQS_MOST);
        expected[ack->session][ack->seq] = ack->number;
        if (ack->seq > highest[ack->session])
            highest[ack->session] = ack->seq;
    }
    annal_store *store = store_open(plan->path);
    for (unsigned session = 0; session < SESSIONS; session++) {
        struct proof proof = {.plan = plan, .session = session, .expected = expected[session]};
        char name[16];
        session_name(name, session);
        uint64_t last = read_session(store, name, check_event, &proof);
        ck_assert_uint_ge(last, highest[session]);
        ck_assert_msg(may_end(&proof), "%s ends within a unit", name);
        annal_verify_result result = {0};
        if (last > 0)
            ck_ok(annal_session_verify(store, annal_slice_of(name), NULL, NULL, &result, err));
        ck_assert_uint_eq(result.findings, 0);
        ck_assert_uint_eq(result.events, last);
    }
    store_close(store);
}

static void play_round(const struct plan *plan, struct random *random, struct kill_counts *counts)
{
    uint64_t moment_us = random_below(random, 10000);
    pid_t first = start(plan, 0);
    switch (random_below(random, 4)) {
    case 0: /* two at once, killed one after the other */
    case 1: {
        pid_t second = start(plan, 1);
        sleep_us(moment_us);
        kill_it(first);
        sleep_us(random_below(random, 5000));
        kill_it(second);
        counts->kills++;
        break;
    }
    case 2: { /* one lives on and takes what the other held */
        pid_t second = start(plan, 1);
        sleep_us(moment_us);
        kill_it(first);
        ck_goes_on(plan->board, 1);
        end_in_order(plan->board, second);
        break;
    }
    default:
        sleep_us(moment_us);
        kill_it(first);
    }
}

void kill_play(annal_level level, annal_format format, bool with_ids, int rounds,
               struct random *random, struct kill_counts *counts)
{
    struct tmpdir folder;
    tmpdir_init(&folder);
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(board != MAP_FAILED);
    const struct plan plan = {tmpdir_path(&folder, "store"), board, with_ids, level, format};
    store_close(store_open(plan.path));
    /* On a busy machine no random moment may be late enough to see an acknowledgement; this kill
     * waits for it. */
    pid_t pid = start(&plan, 0);
    ck_goes_on(board, 0);
    kill_it(pid);
    prove(&plan);
    counts->kills++;
    for (int round = 0; round < rounds; round++) {
        play_round(&plan, random, counts);
        counts->kills++;
        counts->rounds++;
        prove(&plan);
    }
    ck_assert_uint_gt(atomic_load(&board->acks), 0);
    counts->stores++;
    counts->acknowledged += atomic_load(&board->acks);
    munmap(board, sizeof *board);
    tmpdir_done(&folder);
}
