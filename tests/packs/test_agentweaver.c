#include "tests/packs/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Runs ---- */

START_TEST(a_run_that_a_project_reserved_goes_on_in_a_session_of_its_own)
{
    struct memory m;
    memory_init(&m, "run_r1", "agentweaver", NULL);
    memory_apply(&m, "run.worktree_set",
                 "{\"worktree_path\":\"/w\",\"worktree_branch\":\"b\",\"reserved\":{\"project_id\":"
                 "\"p1\",\"task_id\":\"t1\",\"origin\":\"backlog_pickup\",\"reserved_at\":"
                 "\"2026-01-06T07:00:00.000000Z\"}}");
    memory_apply(&m, "run.review_ready", "{\"tree_hash\":\"T1\"}");
    ck_memory(&m,
              "SELECT id, project_id, task_id, origin, status, worktree_path, tree_hash FROM runs",
              "r1|p1|t1|backlog_pickup|awaiting_review|/w|T1\n");
    memory_done(&m);
}
END_TEST

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
            bool shouted = seed / 7 % 5 == 0; /* an override that gives no reason is none */
            snprintf(data, sizeof data, "{\"to\":\"%s\"%s}", to,
                     shouted ? ",\"override\":true" : "");
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

START_TEST(a_terminal_status_is_left_with_an_override_that_says_why)
{
    struct memory m;
    memory_init(&m, "run_r1", "agentweaver", NULL);
    memory_apply(&m, "run.created", "{}");
    memory_apply(&m, "run.transition", "{\"to\":\"failed\",\"result\":\"no disk\"}");
    ck_memory(&m, "SELECT status, result, ended_at IS NULL FROM runs", "failed|no disk|0\n");
    memory_apply(&m, "run.transition",
                 "{\"to\":\"awaiting_review\",\"override\":true,\"reason\":\"it was there\"}");
    ck_memory(&m, "SELECT status, override_reason, ended_at IS NULL FROM runs",
              "awaiting_review|it was there|1\n");
    memory_done(&m);
}
END_TEST

START_TEST(at_a29_usage_counts_where_a_model_is_named_in_either_spelling)
{
    struct memory m;
    memory_init(&m, "run_r1", "agentweaver", NULL);
    memory_apply(&m, "run.created", "{\"project_id\":\"p\",\"workflow_run_id\":\"w\"}");
    memory_apply(&m, "agent.turn.usage",
                 "{\"modelId\":\"m\",\"inputTokens\":3,\"outputTokens\":4,\"totalNanoAiu\":9}");
    memory_apply(
        &m, "agent.turn.usage",
        "{\"model_id\":\"m\",\"input_tokens\":10,\"output_tokens\":1,\"total_tokens\":12}");
    memory_apply(&m, "agent.turn.usage", "{\"inputTokens\":100,\"outputTokens\":100}");
    memory_apply(&m, "agent.turn.usage", "{\"modelId\":\"\",\"inputTokens\":100}");
    ck_memory(&m, "SELECT id, project_id, workflow_run_id, total_tokens FROM token_usage_records",
              "r1:2|p|w|7\nr1:3|p|w|12\n");
    ck_memory(&m, "SELECT * FROM token_usage_by_run", "r1|2|13|5|19|9\n");
    ck_memory(&m,
              "SELECT total_tokens FROM token_usage_by_project UNION ALL SELECT total_tokens "
              "FROM token_usage_by_workflow_run UNION ALL SELECT total_tokens FROM "
              "token_usage_by_app UNION ALL SELECT total_tokens FROM token_usage_by_hour",
              "19\n19\n19\n19\n");
    memory_done(&m);
}
END_TEST

Suite *suite_agentweaver(void);
Suite *suite_agentweaver(void)
{
    Suite *suite = suite_create("agentweaver");
    TCase *tcase = tcase_create("agentweaver");
    tcase_add_test(tcase, a_run_that_a_project_reserved_goes_on_in_a_session_of_its_own);
    tcase_add_test(tcase,
                   no_sequence_of_events_leaves_a_terminal_status_without_an_override_and_a_reason);
    tcase_add_test(tcase, a_terminal_status_is_left_with_an_override_that_says_why);
    tcase_add_test(tcase, at_a29_usage_counts_where_a_model_is_named_in_either_spelling);
    suite_add_tcase(suite, tcase);
    return suite;
}
