/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of annal prose in C; those that use the folder of a run are in prose_run.c. */
#include "index/sys/pack.h"
#include "tools/verbs/prose_run.h"

#include "tools/cli/command.h"
#include "tools/cli/out.h"

#include <string.h>

static int prepare_branch(struct verb_call *call)
{
    if (args_get(call->args, "failed") != NULL)
        call->type = "parallel.branch_failed";
    return 0;
}

static int prepare_agent(struct verb_call *call)
{
    const char *scope = args_get(call->args, "scope");
    if (scope == NULL || strcmp(scope, "execution") == 0 || strcmp(scope, "custom") == 0)
        return 0;
    const char *pack = strcmp(scope, "user") == 0 ? "prose-user" : "prose-agents";
    annal_error err = {0};
    annal_status status = annal__packs_have(call->index, pack, &err);
    if (status == ANNAL_ERR_NOTFOUND)
        return fail_storage("pack %s is not enabled in this store: run 'annal pack enable %s'",
                            pack, pack);
    return status < 0 ? fail_error(&err) : verb_set_session(call, "pagent_%s", scope);
}

const struct verb_code prose_code[] = {
    {"prose", "init", .prepare = prose_prepare_init, .finish = prose_finish_init},
    {"prose", "bind", .prepare = prose_prepare_bind, .finish = prose_finish_bind},
    {"prose", "sync", .run = prose_sync},
    {"prose", "attachments", .run = prose_attachments},
    {"prose", "branch", .prepare = prepare_branch},
    {"prose", "remember", .prepare = prepare_agent},
    {"prose", "segment", .prepare = prepare_agent},
    {.noun = NULL}};
