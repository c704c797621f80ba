/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many processes compete for a claim that only one can win. `make contend` runs 1,000 rounds; a run
 * of all tests runs some.
 */
#include "tests/packs/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES  8
#define ROUNDS_MAX 1000

static const char SENTENCE[] = "the task is not ready, or another run has claimed it";

static const char TASKS[] =
    "-- pack tasks   version 1   database tasks.db\n"
    "CREATE TABLE tasks (id TEXT PRIMARY KEY NOT NULL, state TEXT NOT NULL, run INTEGER);\n"
    "CREATE TABLE claims (run INTEGER, id TEXT REFERENCES tasks(id));\n"
    "-- on task.added   guarded \"there is a task of this id already\"\n"
    "INSERT INTO tasks VALUES ($id, 'ready', NULL);\n"
    "-- on task.claimed   guarded \"the task is not ready, or another run has claimed it\"\n"
    "UPDATE tasks SET state = 'claimed', run = $run WHERE id = $id AND state = 'ready';\n"
    "INSERT INTO claims VALUES ($run, $id);\n";

enum answer { NOTHING, WON, REFUSED, FAILED };

/* Memory shared by all processes. */
struct shared {
    _Atomic unsigned arrived[ROUNDS_MAX];
    _Atomic unsigned char answers[ROUNDS_MAX][PROCESSES];
    char failure[600];
};

static struct shared *shared_new(void)
{
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    return shared;
}

/* In a process: claim each task from a round on. It may be killed, so it does not call Check. */
static _Noreturn void claim_all(const char *path, struct shared *shared, unsigned process,
                                unsigned rounds, bool together)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_writer *writer = NULL;
    annal_error err = {0};
    /* Half of the processes have a keeper; the others do its work as they append. */
    const annal_store_options options = {.no_keeper = process % 2 == 0};
    if (annal_store_open(path, &options, &store, &err) < 0 ||
        annal_index_open(store, &(annal_index_options){.wait_ms = 600000}, &index, &err) < 0 ||
        annal_writer_open(store, ANNAL_SLICE("proj"), &(annal_writer_options){.wait_ms = 600000},
                          &writer, &err) < 0)
        _exit(3);
    for (unsigned round = 0; round < rounds; round++) {
        char data[80];
        int len = snprintf(data, sizeof data, "{\"id\":\"t%u\",\"run\":%u}", round, process);
        const annal_draft draft = {.type = ANNAL_SLICE("task.claimed"),
                                   .data = {data, (size_t)len}};
        if (atomic_load(&shared->answers[round][process]) != NOTHING)
            continue;
        atomic_fetch_add(&shared->arrived[round], 1);
        while (together && atomic_load(&shared->arrived[round]) < PROCESSES)
            usleep(50);
        annal_status status = annal_pack_append(index, writer, &draft, 1, NULL, NULL, &err);
        enum answer answer = status == ANNAL_OK                   ? WON
                             : status != ANNAL_ERR_REFUSED        ? FAILED
                             : strcmp(err.message, SENTENCE) == 0 ? REFUSED
                                                                  : FAILED;
        if (answer == FAILED)
            snprintf(shared->failure, sizeof shared->failure, "%s", err.message);
        atomic_store(&shared->answers[round][process], (unsigned char)answer);
    }
    annal_writer_close(writer);
    annal_index_close(index);
    _exit(annal_store_close(store, &err) < 0 ? 3 : 0);
}

static pid_t start(struct shared *shared, unsigned process, unsigned rounds, bool together)
{
    (void)fflush(stdout); /* otherwise every child prints it again */
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        claim_all(p.path, shared, process, rounds, together);
    return pid;
}

static void add_tasks(unsigned rounds)
{
    packs_add(&p, "tasks", TASKS);
    for (unsigned round = 0; round < rounds; round++) {
        char data[40];
        snprintf(data, sizeof data, "{\"id\":\"t%u\"}", round);
        ck_append(&p, "proj", "task.added", data);
    }
    packs_close(&p); /* the children must not inherit the store */
}

static void ck_one_claim_each(struct shared *shared, unsigned rounds)
{
    ck_assert_msg(shared->failure[0] == '\0', "%s", shared->failure);
    ck_packs(&p,
             "SELECT data ->> '$.id', COUNT(*) FROM events WHERE type = 'task.claimed' GROUP BY 1 "
             "HAVING COUNT(*) <> 1",
             "");
    ck_packs(&p, "SELECT COUNT(*) FROM tasks JOIN claims USING (id) WHERE tasks.run <> claims.run",
             "0\n");
    ck_packs(&p,
             "SELECT COUNT(*) FROM tasks WHERE (state = 'claimed') <> (run IS NOT NULL) OR "
             "(run IS NOT NULL) <> (id IN (SELECT id FROM claims))",
             "0\n");
    for (unsigned round = 0; round < rounds; round++) {
        char select[100], rows[20];
        for (unsigned process = 0; process < PROCESSES; process++) {
            if (atomic_load(&shared->answers[round][process]) != WON)
                continue;
            snprintf(select, sizeof select, "SELECT run FROM tasks WHERE id = 't%u'", round);
            snprintf(rows, sizeof rows, "%u\n", process);
            ck_packs(&p, select, rows);
        }
    }
    packs_ck_rebuild(&p, "tasks.db", rounds);
}

START_TEST(one_of_eight_processes_claims_a_task_and_seven_are_refused_by_the_pack)
{
    unsigned rounds = full_or(ROUNDS_MAX, 20);
    struct shared *shared = shared_new();
    pid_t pids[PROCESSES];
    add_tasks(rounds);
    for (unsigned i = 0; i < PROCESSES; i++)
        pids[i] = start(shared, i, rounds, true);
    for (unsigned i = 0; i < PROCESSES; i++) {
        int ended = 0;
        ck_assert_int_eq(waitpid(pids[i], &ended, 0), pids[i]);
        ck_assert_int_eq(ended, 0);
    }
    packs_reopen(&p);
    for (unsigned round = 0; round < rounds; round++) {
        unsigned counts[4] = {0};
        for (unsigned i = 0; i < PROCESSES; i++)
            counts[atomic_load(&shared->answers[round][i])]++;
        ck_assert_msg(counts[WON] == 1 && counts[REFUSED] == PROCESSES - 1,
                      "round %u: %u won, %u were refused: %s", round, counts[WON], counts[REFUSED],
                      shared->failure);
    }
    ck_one_claim_each(shared, rounds);
    munmap(shared, sizeof *shared);
}
END_TEST

START_TEST(processes_killed_while_they_claim_leave_no_partial_claim)
{
    unsigned rounds = full_or(ROUNDS_MAX, 60), kills = full_or(200, 12);
    struct shared *shared = shared_new();
    struct random random = random_init(4711);
    pid_t pids[PROCESSES];
    add_tasks(rounds);
    for (unsigned i = 0; i < PROCESSES; i++)
        pids[i] = start(shared, i, rounds, false);
    for (unsigned kill_number = 0; kill_number < kills; kill_number++) {
        unsigned i = (unsigned)random_below(&random, PROCESSES);
        usleep((useconds_t)random_below(&random, 20000));
        kill(pids[i], SIGKILL);
        ck_assert_int_eq(waitpid(pids[i], NULL, 0), pids[i]);
        pids[i] = start(shared, i, rounds, false);
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        int ended = 0;
        ck_assert_int_eq(waitpid(pids[i], &ended, 0), pids[i]);
        ck_assert_int_eq(ended, 0);
    }
    packs_reopen(&p);
    ck_one_claim_each(shared, rounds);
    munmap(shared, sizeof *shared);
}
END_TEST

/* ---- Threads of a process ---- */

#define THREADS 4

struct claimer {
    pthread_t thread;
    struct packs *p;
    unsigned number, rounds;
    unsigned won, refused;
    char failure[600];
};

static void *claim_in_thread(void *arg)
{
    struct claimer *claimer = arg;
    annal_writer *writer = NULL;
    annal_error err = {0};
    annal_status status =
        annal_writer_open(claimer->p->store, ANNAL_SLICE("proj"), NULL, &writer, &err);
    for (unsigned round = 0; round < claimer->rounds && status != ANNAL_ERR_NOMEM; round++) {
        char data[80];
        int len =
            snprintf(data, sizeof data, "{\"id\":\"t%u\",\"run\":%u}", round, claimer->number);
        const annal_draft draft = {.type = ANNAL_SLICE("task.claimed"),
                                   .data = {data, (size_t)len}};
        status = annal_pack_append(claimer->p->index, writer, &draft, 1, NULL, NULL, &err);
        claimer->won += status == ANNAL_OK;
        claimer->refused += status == ANNAL_ERR_REFUSED;
        if (status < 0 && status != ANNAL_ERR_REFUSED)
            snprintf(claimer->failure, sizeof claimer->failure, "%s", err.message);
    }
    annal_writer_close(writer);
    return NULL;
}

START_TEST(one_of_several_threads_claims_a_task)
{
    unsigned rounds = 40, won = 0, refused = 0;
    struct claimer claimers[THREADS] = {0};
    add_tasks(rounds);
    packs_reopen(&p);
    for (unsigned i = 0; i < THREADS; i++) {
        claimers[i].p = &p;
        claimers[i].number = i;
        claimers[i].rounds = rounds;
        ck_assert_int_eq(pthread_create(&claimers[i].thread, NULL, claim_in_thread, &claimers[i]),
                         0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(claimers[i].thread, NULL);
        ck_assert_msg(claimers[i].failure[0] == '\0', "%s", claimers[i].failure);
        won += claimers[i].won;
        refused += claimers[i].refused;
    }
    ck_assert_uint_eq(won, rounds);
    ck_assert_uint_eq(refused, rounds * (THREADS - 1));
    ck_packs(&p, "SELECT COUNT(*), COUNT(DISTINCT id) FROM claims", "40|40\n");
    packs_ck_rebuild(&p, "tasks.db", 1);
}
END_TEST

Suite *suite_contend(void)
{
    Suite *suite = suite_create("contend");
    TCase *all = suite_case(suite, "all", packs_setup, packs_teardown);
    tcase_set_timeout(all, 900);
    tcase_add_test(all, one_of_eight_processes_claims_a_task_and_seven_are_refused_by_the_pack);
    tcase_add_test(all, processes_killed_while_they_claim_leave_no_partial_claim);
    tcase_add_test(all, one_of_several_threads_claims_a_task);
    return suite;
}
