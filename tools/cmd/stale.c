/* SPDX-License-Identifier: Apache-2.0 */
/* annal doctor --transition-stale: the options and the messages. */
#include "tools/cmd/stale.h"

#include "index/sys/pack.h"
#include "tools/cli/store_open.h"
#include "tools/cli/verbs.h"

#include <annal/packs/lifecycle.h>

#include <stdlib.h>
#include <string.h>

struct stale {
    const struct args *args;
    bool dry_run;
    uint64_t ended;
    int exit_status; /* highest exit status of a failure */
};

/* Check that the packs lionagi and teams are enabled. ANNAL_ERR_NOTFOUND: at least one is not. */
static annal_status check_packs(annal_index *index, annal_error *err)
{
    annal_status status = annal__packs_have(index, "lionagi", err);
    return status == ANNAL_OK ? annal__packs_have(index, "teams", err) : status;
}

static int keep_counts(void *arg, const annal_row *row)
{
    struct run_counts *counts = arg;
    uint64_t *const to[] = {&counts->running, &counts->unresponsive, &counts->stale,
                            &counts->orphaned};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++)
        *to[i] = (uint64_t)row->values[i].integer;
    return 0;
}

annal_status stale_count(annal_index *index, struct run_counts *out, annal_error *err)
{
    /* Count only running sessions: checking the health of a session reads directories. */
    static const char sql[] = "SELECT count(*),"
                              " count(*) FILTER (WHERE effective_health = 'unresponsive'),"
                              " count(*) FILTER (WHERE effective_health = 'stale'),"
                              " count(*) FILTER (WHERE effective_health = 'orphaned')"
                              " FROM run_list WHERE status = 'running'";
    annal_status status = check_packs(index, err);
    *out = (struct run_counts){0};
    return status < 0 ? status
                      : annal_index_sql(index, annal_slice_of(sql), NULL, keep_counts, out, err);
}

static void print(const struct stale *stale, const annal_stale *told)
{
    const char *result = told->result == ANNAL_STALE_LEFT ? "left alone"
                         : stale->dry_run                 ? "would be failed"
                                                          : "failed";
    if (!stale->args->json) {
        printf("%-14s %.*s: ", result, ANNAL_FMT(told->session));
        out_plain(annal_slice_of(told->reason));
        printf("\n");
        return;
    }
    out_json("{\"session_id\":\"#\",\"result\":\"#\",\"reason\":?,\"invocation_kind\":!",
             told->session, annal_slice_of(result), annal_slice_of(told->reason),
             told->kind.len == 0 ? (annal_slice){0} : told->kind);
    printf(",\"last_activity\":%.17g,\"threshold_seconds\":%.17g}\n", told->last_activity,
           told->threshold);
}

static int print_stale(void *arg, const annal_stale *told)
{
    struct stale *stale = arg;
    if (told->result == ANNAL_STALE_ERROR) {
        annal_error error = {.status = told->status};
        snprintf(error.message, sizeof error.message, "%s", told->reason);
        int exit_status = fail_error(&error);
        stale->exit_status = exit_status > stale->exit_status ? exit_status : stale->exit_status;
        return 0;
    }
    stale->ended += told->result == ANNAL_STALE_ENDED;
    print(stale, told);
    return 0;
}

static int transition(const struct args *args, struct verb_call *call)
{
    struct stale stale = {.args = args, .dry_run = args_has(args, "dry-run")};
    annal_error err = {0};
    const annal_stale_options options = {
        .silence_s = fields_amount(args, "stale-hours", 6.0) * 3600,
        .dry_run = stale.dry_run,
        .actor = ANNAL_SLICE("annal doctor"),
        /* a session that a process is writing is not dead: wait at most 1 s for it */
        .wait_ms = 1000,
    };
    annal_status status = check_packs(call->index, &err);
    if (status == ANNAL_ERR_NOTFOUND)
        return fail_storage("cannot tell which sessions run: this needs the packs lionagi and "
                            "teams; run 'annal pack enable lionagi' and 'annal pack enable teams'");
    if (status == ANNAL_OK)
        status = annal_transition_stale(call->index, &options, print_stale, &stale, &err);
    if (stale.exit_status != 0)
        return stale.exit_status;
    if (status < 0)
        return fail_error(&err);
    if (!args->json && stale.ended == 0)
        printf("no stale session has a process that is proven dead\n");
    return stale.ended == 0 ? EXIT_REFUSED : 0;
}

int stale_transition(const struct args *args)
{
    struct verb_call call = {.args = args};
    annal_error err = {0};
    int exit_status =
        store_open(args, args_has(args, "dry-run") ? OPEN_READ : OPEN_WRITE, 0, &call.store);
    if (exit_status == 0 && annal_index_open(call.store, NULL, &call.index, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0)
        exit_status = transition(args, &call);
    return verb_close(&call, exit_status);
}
