/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/packs/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void setup(void)
{
    packs_setup();
    PACKS_ENABLE(&p, "agentweaver");
}

/* ---- Runs ---- */

START_TEST(no_sequence_of_events_leaves_a_terminal_status_without_an_override_and_a_reason)
{
    static const char *const statuses[] = {"pending",      "in_progress",    "awaiting_review",
                                           "committing",   "merging",        "merged",
                                           "declined",     "failed",         "completed",
                                           "merge_failed", "assemble_ready", "cancelled"};
    unsigned seed = 20260106;
    for (int round = 0; round < 4; round++) {
        struct memory m;
        char data[200], *before = NULL;
        memory_init(&m, "run_r1", "agentweaver", NULL);
        memory_apply(&m, "run.created", "{\"worktree_path\":\"/w\",\"worktree_branch\":\"b\"}");
        for (int step = 0; step < 40; step++) {
            seed = seed * 1103515245 + 12345;
            const char *to = statuses[seed / 65536 % 12];
            bool shouted = seed / 7 % 5 == 0; /* an override without a reason has no effect */
            snprintf(data, sizeof data, "{\"to\":\"%s\"%s}", to,
                     shouted ? ",\"override\":true,\"reason\":\" \"" : "");
            before = memory_rows(&m, "SELECT s.status, s.terminal FROM run_rows r JOIN "
                                     "run_statuses s ON s.status = r.status");
            memory_apply(&m, seed / 131 % 9 == 0 ? "run.started" : "run.transition", data);
            if (strstr(before, "|1") != NULL)
                ck_memory(&m,
                          "SELECT s.status, s.terminal FROM run_rows r JOIN run_statuses s ON "
                          "s.status = r.status",
                          before);
            free(before);
        }
        memory_done(&m);
    }
}
END_TEST

/* ---- In a store, with guards ---- */

/* Create a project with tasks t1, t2, …, with the letters of keys as order keys. */
static void init_project(const char *keys)
{
    ck_append(&p, "proj_p1", "project.created", "{\"name\":\"P\"}");
    for (; *keys != '\0'; keys++) {
        char data[80];
        snprintf(data, sizeof data, "{\"title\":\"task %c\",\"order_key\":\"%c\"}", *keys, *keys);
        ck_append(&p, "proj_p1", "backlog.captured", data);
    }
}

#define APPROVED "{\"tree_hash\":\"T1\",\"reviewer\":\"bob\"}"
/* Model of a run in review. Trees are numbers; 0: no tree. */
struct reviewed {
    char session[20];
    unsigned tree;
    unsigned approved;
};

static void begin_reviewed(struct reviewed *run, unsigned number)
{
    *run = (struct reviewed){0};
    snprintf(run->session, sizeof run->session, "run_r%u", number);
    ck_append(&p, run->session, "run.created",
              "{\"worktree_path\":\"/w\",\"worktree_branch\":\"b\"}");
}

/* Append a random event. Returns the new status; NULL if it stays, or the event was refused. */
static const char *review(struct random *random, struct reviewed *run)
{
    static const char *const to[] = {"in_progress", "awaiting_review", "committing",
                                     "merging",     "merging",         "merging",
                                     "merged",      "merged",          "merged"};
    static const char *const types[] = {"run.approved", "run.approved", "run.review_ready"};
    unsigned kind = (unsigned)random_below(random, 9), tree = 1 + (unsigned)random_below(random, 2);
    const char *status = to[random_below(random, 9)];
    char data[100], said[40] = "";
    annal_error why = {0};
    bool moves = kind > 2, says_tree = !moves || random_below(random, 6) == 0;
    if (says_tree)
        snprintf(said, sizeof said, ",\"tree_hash\":\"T%u\"", tree);
    snprintf(data, sizeof data, "{\"to\":\"%s\"%s}", status, said);
    if (packs_append(&p, run->session, moves ? "run.transition" : types[kind], data, &why) < 0)
        return NULL;
    if (kind < 2)
        run->approved = tree;
    else if ((says_tree && tree != run->tree) || (moves && strcmp(status, "in_progress") == 0))
        run->approved = 0;
    if (says_tree)
        run->tree = tree;
    return moves ? status : NULL;
}

START_TEST(no_sequence_of_events_merges_a_tree_that_was_not_approved)
{
    struct random random = random_init(20260108);
    struct reviewed run;
    unsigned merged = 0;
    begin_reviewed(&run, merged);
    for (unsigned step = 0; step < 300; step++) {
        const char *status = review(&random, &run);
        if (status == NULL || strncmp(status, "merg", 4) != 0)
            continue;
        ck_assert_msg(run.tree != 0 && run.approved == run.tree,
                      "step %u: a run is %s with tree %u, and %u is approved", step, status,
                      run.tree, run.approved);
        if (strcmp(status, "merged") == 0)
            begin_reviewed(&run, ++merged);
    }
    ck_assert_uint_gt(merged, 0);
}
END_TEST

START_TEST(every_edge_of_the_matrix_and_no_other_is_accepted)
{
    static const char *const statuses[] = {"pending",      "in_progress",    "awaiting_review",
                                           "committing",   "merging",        "merged",
                                           "declined",     "failed",         "completed",
                                           "merge_failed", "assemble_ready", "cancelled"};
    char session[20], data[200], edges[2000] = "";
    for (int i = 0; i < 144; i++) {
        annal_error why = {0};
        snprintf(session, sizeof session, "run_r%d", i);
        ck_append(&p, session, "run.created",
                  "{\"worktree_path\":\"/w\",\"worktree_branch\":\"b\"}");
        ck_append(&p, session, "run.review_ready", "{\"tree_hash\":\"T1\"}");
        ck_append(&p, session, "run.approved", APPROVED);
        snprintf(data, sizeof data, "{\"to\":\"%s\",\"override\":true,\"reason\":\"test\"}",
                 statuses[i / 12]);
        if (strcmp(statuses[i / 12], "awaiting_review") != 0)
            ck_append(&p, session, "run.transition", data);
        snprintf(data, sizeof data, "{\"to\":\"%s\"}", statuses[i % 12]);
        annal_status status = packs_append(&p, session, "run.transition", data, &why);
        ck_assert_msg(status == ANNAL_OK || status == ANNAL_ERR_REFUSED, "%s", why.message);
        if (status == ANNAL_OK)
            snprintf(edges + strlen(edges), sizeof edges - strlen(edges), "%s|%s\n",
                     statuses[i / 12], statuses[i % 12]);
    }
    char *expected = packs_rows(
        &p, "SELECT DISTINCT from_status, to_status FROM run_edges JOIN (SELECT rowid AS a, status "
            "FROM run_statuses) f ON f.status = from_status JOIN (SELECT rowid AS b, status FROM "
            "run_statuses) t ON t.status = to_status ORDER BY a, b");
    ck_assert_str_eq(edges, expected);
    free(expected);
}
END_TEST

/* ---- Backlog ---- */

/* Claim in a process of its own: exit status 0 won, 1 refused, 2 any other outcome. */
static int contend(const char *path, int number, int gate)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_writer *writer = NULL;
    annal_error err = {0};
    char data[200], byte;
    snprintf(data, sizeof data, "{\"task_id\":\"t1\",\"run\":{\"id\":\"r%d\"}}", number);
    const annal_draft draft = {.type = ANNAL_SLICE("backlog.claimed"),
                               .data = annal_slice_of(data)};
    const annal_writer_options options = {.wait_ms = 30000};
    if (annal_store_open(path, NULL, &store, &err) < 0 ||
        annal_index_open(store, NULL, &index, &err) < 0)
        return 2;
    if (read(gate, &byte, 1) != 0)
        return 2;
    annal_status status = annal_writer_open(store, ANNAL_SLICE("proj_p1"), &options, &writer, &err);
    if (status == ANNAL_OK)
        status = annal_pack_append(index, writer, &draft, 1, NULL, NULL, &err);
    annal_writer_close(writer);
    annal_index_close(index);
    bool closed = annal_store_close(store, NULL) == ANNAL_OK;
    if (status == ANNAL_ERR_REFUSED && strstr(err.message, "another run has claimed it") != NULL)
        return closed ? 1 : 2;
    if (status != ANNAL_OK)
        fprintf(stderr, "contender %d: %s\n", number, err.message);
    return status == ANNAL_OK && closed ? 0 : 2;
}

START_TEST(one_of_eight_processes_claims_the_task_and_seven_append_nothing)
{
    enum { CONTENDERS = 8 };
    int gate[2], count[3] = {0}, winner = -1;
    pid_t pids[CONTENDERS];
    char rows[100];
    init_project("a");
    ck_append(&p, "proj_p1", "backlog.committed", "{\"task_id\":\"t1\"}");
    packs_reopen(&p); /* gives up its sessions */
    ck_assert_int_eq(pipe(gate), 0);
    for (int i = 0; i < CONTENDERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            close(gate[1]);
            _exit(contend(p.path, i, gate[0]));
        }
    }
    close(gate[0]);
    close(gate[1]); /* go */
    for (int i = 0; i < CONTENDERS; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert(WIFEXITED(status));
        count[WEXITSTATUS(status)]++;
        winner = WEXITSTATUS(status) == 0 ? i : winner;
    }
    ck_assert_int_eq(count[0], 1);
    ck_assert_int_eq(count[1], CONTENDERS - 1);
    snprintf(rows, sizeof rows, "claimed|r%d|r%d|in_progress\n", winner, winner);
    ck_packs(&p, "SELECT state, run_id, r.id, r.status FROM backlog_tasks, runs r", rows);
    ck_packs(&p, "SELECT count(*) FROM events WHERE type = 'backlog.claimed'", "1\n");
    ck_refused(&p, "proj_p1", "backlog.claimed", "{\"task_id\":\"t1\",\"run\":{\"id\":\"late\"}}",
               "another run has claimed it");
}
END_TEST

/* ---- Random events ---- */

static const char *pick(struct random *random, const char *const *words)
{
    size_t count = 0;
    while (words[count] != NULL)
        count++;
    return words[random_below(random, count)];
}

/* Types of events of projects, runs and plans; frequent types are repeated. */
static const char *const project_types[] = {"project.created",
                                            "project.created",
                                            "project.configured",
                                            "project.delete_begun",
                                            "project.deleted",
                                            "backlog.captured",
                                            "backlog.captured",
                                            "backlog.captured",
                                            "backlog.captured",
                                            "backlog.committed",
                                            "backlog.committed",
                                            "backlog.bulk_committed",
                                            "backlog.returned",
                                            "backlog.reordered",
                                            "backlog.claimed",
                                            "backlog.claimed",
                                            "backlog.archived",
                                            "backlog.deleted",
                                            "cast.proposed",
                                            "decision.proposed",
                                            "decision.proposed",
                                            "decision.promoted",
                                            "decision.batch_promoted",
                                            "decision.rejected",
                                            "decision.created",
                                            "decision.superseded",
                                            "memory.noted",
                                            "session_context.started",
                                            "session_context.updated",
                                            "session_context.ended",
                                            NULL};
static const char *const run_types[] = {"run.created",
                                        "run.worktree_set",
                                        "run.started",
                                        "run.review_ready",
                                        "run.approved",
                                        "run.transition",
                                        "run.transition",
                                        "run.transition",
                                        "run.archived",
                                        "lease.claimed",
                                        "lease.renewed",
                                        "lease.released",
                                        "tool.call",
                                        "agent.turn.usage",
                                        "revision.recorded",
                                        "stream.closed",
                                        NULL};
static const char *const plan_types[] = {"workflow_run.created",
                                         "workflow_run.worktree_set",
                                         "checkpoint.saved",
                                         "outcome_spec.created",
                                         "work_plan.created",
                                         "work_plan.status_changed",
                                         "work_plan.deleted",
                                         "subtask.created",
                                         "subtask.created",
                                         "subtask.status_changed",
                                         "subtask.deleted",
                                         "subtask_dependency.added",
                                         "subtask_dependency.removed",
                                         "steering.issued",
                                         "steering.applied",
                                         NULL};
static const char *const statuses[] = {"in_progress", "awaiting_review", "merging",   "merged",
                                       "failed",      "committing",      "completed", "dispatching",
                                       "dispatched",  "running",         "odd",       NULL};

/* Write data with a field for each type. */
static void some_data(struct random *random, unsigned n, char *data, size_t size)
{
    unsigned task = (unsigned)random_below(random, 6);
    snprintf(
        data, size,
        "{\"task_id\":\"t%u\",\"title\":\"T\",\"order_key\":\"k%u\",\"task_ids\":[\"t%u\"],"
        "\"items\":[{\"task_id\":\"t%u\",\"order_key\":\"i%u\"}],\"run\":{\"id\":\"p%u-t1\"},"
        "\"entry_id\":\"i%u\",\"slug\":\"s%u\",\"agent_name\":\"ada\",\"type\":\"%s\","
        "\"content\":\"c\",\"by\":\"scribe\",\"decision_id\":\"d%u\",\"superseded_by_id\":\"d%u\","
        "\"entries\":[{\"entry_id\":\"i%u\",\"decision_id\":\"e%u\"}],\"memory_id\":\"m%u\","
        "\"session_id\":\"c%u\",\"to\":\"%s\",\"override\":%s,\"reason\":\"r\","
        "\"worktree_path\":\"/w\",\"worktree_branch\":\"b\",\"tree_hash\":\"T%u\","
        "\"owner_id\":\"o%u\",\"fencing_token\":%u,\"raw_comment\":\"c\",\"revision_number\":%u,"
        "\"modelId\":\"m\",\"inputTokens\":%u,\"checkpoint_id\":\"c%u\",\"spec_id\":\"o1\","
        "\"plan_id\":\"p%u\",\"subtask_id\":\"s%u\",\"depends_on_id\":\"s%u\",\"id\":\"g%u\","
        "\"kind\":\"stop\",\"instruction\":\"i\",\"project_id\":\"p%u\",\"lease_ms\":1,"
        "\"reserved\":%s}",
        task, task, task, task, task, n, task, task,
        random_below(random, 2) == 0 ? "learning" : "scope", task, task + 1, task, task, task, task,
        pick(random, statuses), random_below(random, 5) == 0 ? "true" : "false", task % 2, task % 2,
        task, task, task, task, task % 2, task, task % 3, task, n,
        random_below(random, 4) == 0
            ? "{\"reserved_at\":\"2026-01-06T07:24:00.000000Z\",\"origin\":\"backlog_pickup\"}"
            : "null");
}

static bool some_event(struct random *random, bool guarded)
{
    static const char *const *const kinds[] = {project_types, run_types, plan_types};
    char session[30], data[1500];
    unsigned kind = (unsigned)random_below(random, 3), n = (unsigned)random_below(random, 3);
    const char *type = pick(random, kinds[kind]);
    if (kind == 0)
        snprintf(session, sizeof session, "proj_p%u", n);
    else
        snprintf(session, sizeof session, kind == 1 ? "run_p%u-t1" : "wf_w%u", n);
    some_data(random, n, data, sizeof data);
    if (random_below(random, 30) == 0)
        snprintf(data, sizeof data, "[null]");
    if (!guarded) {
        packs_append_past(&p, session, type, data);
        return true;
    }
    annal_error why = {0};
    annal_status status = packs_append(&p, session, type, data, &why);
    ck_assert_msg(status == ANNAL_OK || status == ANNAL_ERR_REFUSED, "%s", why.message);
    return status == ANNAL_OK;
}

static void compare_random(bool guarded, uint64_t seed)
{
    struct random random = random_init(seed);
    int taken = 0;
    PACKS_ENABLE(&p, "memory");
    for (unsigned n = 0; n < 3; n++) {
        char session[20];
        snprintf(session, sizeof session, "proj_p%u", n);
        packs_append_past(&p, session, "project.created", "{}");
        snprintf(session, sizeof session, "wf_w%u", n);
        packs_append_past(&p, session, "work_plan.created", "{\"plan_id\":\"p1\"}");
    }
    for (int i = 0; i < 240; i++) {
        taken += some_event(&random, guarded);
        if (i % 60 == 59) {
            free(packs_rows(&p, "SELECT count(*) FROM runs"));
            packs_ck_rebuild(&p, "agentweaver.db", random_next(&random));
            packs_ck_rebuild(&p, "memory.db", random_next(&random));
        }
    }
    ck_assert_int_gt(taken, 60);
    ck_text(packs_shell(&p, "agentweaver.db", "PRAGMA foreign_key_check;"), "");
}

START_TEST(tables_equal_a_rebuild_after_random_events_through_the_guards)
{
    compare_random(true, 20260106);
}
END_TEST

START_TEST(tables_equal_a_rebuild_after_random_events_past_the_guards)
{
    compare_random(false, 20260107);
}
END_TEST

Suite *suite_agentweaver(void)
{
    Suite *suite = suite_create("agentweaver");
    TCase *tcase = suite_case(suite, "agentweaver", NULL, NULL);
    tcase_add_test(tcase,
                   no_sequence_of_events_leaves_a_terminal_status_without_an_override_and_a_reason);
    TCase *stores = suite_case(suite, "stores", setup, packs_teardown);
    tcase_add_test(stores, no_sequence_of_events_merges_a_tree_that_was_not_approved);
    tcase_add_test(stores, every_edge_of_the_matrix_and_no_other_is_accepted);
    tcase_add_test(stores, one_of_eight_processes_claims_the_task_and_seven_append_nothing);
    tcase_add_test(stores, tables_equal_a_rebuild_after_random_events_through_the_guards);
    tcase_add_test(stores, tables_equal_a_rebuild_after_random_events_past_the_guards);
    return suite;
}
