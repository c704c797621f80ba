/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/packs/fixture.h"
#include "tests/support/runner.h"

#include <annal/packs/run.h>

#include <stdlib.h>
#include <string.h>

/* Another process is faster: it changes a run during the callback for the run before. */
struct told {
    struct packs *packs; /* NULL: without another process */
    struct text text;
};

static int add_run(void *arg, const annal_run_recovered *recovered)
{
    struct told *told = arg;
    text_add(&told->text, recovered->session.ptr, recovered->session.len);
    text_add(&told->text, " ", 1);
    text_add(&told->text, recovered->status.ptr, recovered->status.len);
    text_add(&told->text, recovered->refusal != NULL ? " refused\n" : "\n",
             recovered->refusal != NULL ? 9 : 1);
    ck_assert_int_eq(recovered->refusal == NULL, recovered->seq > 0);
    ck_assert_int_eq(recovered->refusal == NULL, recovered->data.len > 0);
    if (told->packs != NULL)
        ck_append(told->packs, "run_r2", "run.transition",
                  "{\"to\":\"awaiting_review\",\"expected\":\"merging\",\"operation\":\"revert_"
                  "merge\"}");
    told->packs = NULL;
    return 0;
}

static int stop(void *arg, const annal_run_recovered *recovered)
{
    (void)arg;
    (void)recovered;
    return 7;
}

static void begin_merging(const char *session, const char *created)
{
    ck_append(&p, session, "run.created", created);
    ck_append(&p, session, "run.worktree_set",
              "{\"worktree_path\":\"/w\",\"worktree_branch\":\"b\"}");
    ck_append(&p, session, "run.started", "{}");
    ck_append(&p, session, "run.review_ready", "{\"tree_hash\":\"T\"}");
    ck_append(&p, session, "run.approved", "{\"tree_hash\":\"T\"}");
    ck_append(&p, session, "run.transition",
              "{\"to\":\"merging\",\"expected\":[\"awaiting_review\",\"committing\"]}");
}

START_TEST(a_program_recovers_interrupted_runs_and_receives_a_callback_for_each)
{
    struct told told = {.packs = &p};
    const annal_run_recover_options shop = {.project = ANNAL_SLICE("shop")};
    PACKS_ENABLE(&p, "agentweaver");
    ck_append(&p, "proj_shop", "project.created", "{\"name\":\"Shop\"}");
    ck_append(&p, "run_r0", "run.created", "{}");
    begin_merging("run_r1", "{\"project_id\":\"shop\"}");
    begin_merging("run_r2", "{\"project_id\":\"shop\"}");
    begin_merging("run_r3", "{}");
    ck_assert_int_eq(
        annal_run_recover(p.index, &(annal_run_recover_options){.project = ANNAL_SLICE("other")},
                          stop, NULL, NULL),
        ANNAL_OK);
    ck_ok(annal_run_recover(p.index, &shop, add_run, &told, err));
    ck_assert_str_eq(told.text.ptr, "run_r1 merging\nrun_r2 merging refused\n");
    ck_packs(&p, "SELECT id, status FROM runs ORDER BY id",
             "r0|pending\nr1|awaiting_review\nr2|awaiting_review\nr3|merging\n");
    ck_assert_int_eq(annal_run_recover(p.index, NULL, stop, NULL, NULL), 7);
    ck_packs(&p, "SELECT count(*) FROM runs WHERE status = 'awaiting_review'", "3\n");
    ck_ok(annal_run_recover(p.index, NULL, NULL, NULL, err));
    ck_ok(annal_pack_disable(p.store, "agentweaver", err));
    ck_fails(ANNAL_ERR_NOTFOUND, "pack agentweaver is not enabled",
             annal_run_recover(p.index, NULL, NULL, NULL, err));
    free(told.text.ptr);
}
END_TEST

Suite *suite_run(void)
{
    Suite *suite = suite_create("run");
    TCase *tcase = suite_case(suite, "run", packs_setup, packs_teardown);
    tcase_add_test(tcase, a_program_recovers_interrupted_runs_and_receives_a_callback_for_each);
    return suite;
}
