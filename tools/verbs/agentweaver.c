/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of the packs agentweaver and memory in C: following a run to its end, cleaning up after a
 * restart, promoting all proposals of a project. */
#include "tools/verbs/agentweaver.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"
#include "tools/cli/verbs.h"
#include "tools/show/event_out.h"

#include <annal/packs/run.h>
#include <annal/tail.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 500 }; /* interval in ms of the checks whether the reader of the output is gone */

/* ---- annal run tail ---- */

/* SELECT of the events that end a run, one in each row: a type, or "run.transition STATUS". They
 * are in tables of the packs. */
static const char TERMINAL[] =
    "SELECT type FROM memory.terminal_event_types UNION ALL SELECT 'stream.closed' UNION ALL "
    "SELECT 'run.transition ' || status FROM agentweaver.run_statuses WHERE terminal";

static int add_terminal(void *arg, const annal_row *row)
{
    must_printf(arg, "%.*s\n", ANNAL_FMT(row->values[0].bytes));
    return 0;
}

static bool is_terminal(struct buf *terminal, const annal_event *event)
{
    static const char transition[] = "run.transition";
    char line[ANNAL_TYPE_BYTES_MAX + 64] = "\n";
    annal_slice to = {0};
    if (annal__slice_is(event->type, transition))
        to = annal__json_member(event->data, "to");
    if (to.len > 40)
        return false;
    if (to.len > 2)
        snprintf(line, sizeof line, "\n%s %.*s\n", transition, (int)to.len - 2, to.ptr + 1);
    else
        snprintf(line, sizeof line, "\n%.*s\n", ANNAL_FMT(event->type));
    return strstr(must_cstr(terminal), line) != NULL;
}

/* Print the events of a run, and follow them until the run ends. An event that ends a run does so
 * only if it is the last one, because a failed merge may be tried again. */
static int follow(annal_tail *tail, annal_slice session, uint64_t from, bool wait,
                  struct buf *terminal)
{
    annal_error err = {0};
    annal_event event;
    bool ended = false;
    int exit_status = EXIT_DONE;
    for (;;) {
        annal_status status = annal_tail_next(tail, 0, &event, &err);
        if (status == ANNAL_END) {
            if (!out_flush() || ended || !wait || out_reader_is_gone())
                return exit_status;
            status = annal_tail_next(tail, LOOK_MS, &event, &err);
        }
        if (status < 0)
            return fail_error(&err);
        if (status == ANNAL_DAMAGE) {
            annal_damage damage = annal_tail_damage(tail);
            event_say_damage(session, &damage);
            exit_status = EXIT_REFUSED;
        } else if (status == ANNAL_OK) {
            ended = is_terminal(terminal, &event);
            if (event.seq >= from)
                event_print(&event, session);
            if (!out_wanted())
                return exit_status;
        }
    }
}

static int run_tail(const struct args *args)
{
    struct verb_call call;
    uint64_t from = 1;
    annal_error err = {0};
    annal_tail *tail = NULL;
    struct buf terminal = {0};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = verb_need_pack(&call, "memory");
    if (exit_status == 0)
        exit_status = args_number(args, "from", &from);
    if (exit_status == 0)
        exit_status = verb_session_id(args, "run_{RUN}", call.session, sizeof call.session);
    if (exit_status != 0)
        goto done;
    /* Begin one event earlier, because that event may have ended the run. */
    uint64_t begin = from > 1 ? from - 1 : 1;
    annal_slice session = annal_slice_of(call.session);
    const annal_tail_options options = {
        .sessions = &session, .session_count = 1, .from_seq = begin};
    must_append_text(&terminal, "\n");
    if (annal_sql(call.index, annal_slice_of(TERMINAL), NULL, add_terminal, &terminal, &err) < 0 ||
        annal_tail_open(call.store, &options, &tail, &err) < 0) {
        exit_status = fail_error(&err);
        goto done;
    }
    exit_status = follow(tail, session, from, !args_has(args, "all"), &terminal);

done:
    annal_tail_close(tail);
    annal__buf_done(&terminal);
    return verb_close(&call, exit_status);
}

/* ---- annal run recover ---- */

static int print_recovered(void *arg, const annal_run_recovered *recovered)
{
    struct verb_call *call = arg;
    if (recovered->refusal != NULL) {
        say("run %.*s: %s", ANNAL_FMT(recovered->run), recovered->refusal);
    } else if (call->args->json) {
        snprintf(call->session, sizeof call->session, "%.*s", ANNAL_FMT(recovered->session));
        call->seq = recovered->seq;
        call->data = recovered->data;
        verb_print(call);
        call->data = (annal_slice){0};
    } else {
        printf("run %.*s was %.*s and awaits review again\n", ANNAL_FMT(recovered->run),
               ANNAL_FMT(recovered->status));
    }
    return 0;
}

static int run_recover(const struct args *args)
{
    struct verb_call call;
    annal_error err = {0};
    int exit_status = verb_open(&call, args);
    const annal_run_recover_options options = {.project = annal_slice_of(args_get(args, "project")),
                                               .id = annal_slice_of(args_get(args, "event-id")),
                                               .cause = annal_slice_of(args_get(args, "cause")),
                                               .wait_ms = call.wait_ms};
    if (exit_status == 0 &&
        annal_run_recover(call.index, &options, print_recovered, &call, &err) < 0)
        exit_status = fail_error(&err);
    return verb_close(&call, exit_status);
}

/* ---- annal decision promote-all ---- */

static const char PENDING[] =
    "SELECT count(*) FROM memory.decision_inbox i JOIN memory.promotion_rules r ON r.type = i.type "
    "WHERE i.project_id = ?1 AND r.by = ?2 AND i.status = 'pending'";

static int take_count(void *arg, const annal_row *row)
{
    *(int64_t *)arg = row->values[0].integer;
    return 0;
}

static int promote_all(const struct args *args)
{
    struct verb_call call;
    int64_t pending = 0;
    annal_error err = {0};
    const annal_value params[] = {
        {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(args_get(args, "PROJECT"))},
        {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(args_get(args, "by"))}};
    const annal_sql_options options = {.params = params, .param_count = 2};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0 &&
        annal_sql(call.index, annal_slice_of(PENDING), &options, take_count, &pending, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0 && pending == 0) {
        if (!args->json)
            printf("no pending proposal may be merged by the %s\n", args_get(args, "by"));
    } else if (exit_status == 0) {
        exit_status = verb_post(&call);
        if (exit_status == 0 && args->json)
            verb_print(&call);
        else if (exit_status == 0)
            printf("merged %" PRId64 " proposals\n", pending);
    }
    return verb_close(&call, exit_status);
}

/* ---- --project of annal run and annal lease ---- */

/*
 * Write the project's session into the event's data, so that its events are applied to the tables
 * before the guards run: after a crash its last event may be missing in the tables, or another host
 * may have claimed the task.
 */
static int name_project(struct verb_call *call)
{
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    if (args_get(call->args, "project") == NULL)
        return 0;
    int exit_status = verb_session_id(call->args, "proj_{project}", session, sizeof session);
    if (exit_status == 0)
        verb_set_text(call, "project_session", annal_slice_of(session));
    return exit_status;
}

const struct verb_code agentweaver_code[] = {{"project", "export", .run = verbs_mirror_export},
                                             {"project", "import", .run = verbs_mirror_import},
                                             {"run", "create", .prepare = name_project},
                                             {"run", "worktree", .prepare = name_project},
                                             {"lease", "claim", .prepare = name_project},
                                             {"run", "recover", .run = run_recover},
                                             {"run", "tail", .run = run_tail},
                                             {"decision", "promote-all", .run = promote_all},
                                             {"memory", "compile", .run = memory_compile},
                                             {.noun = NULL}};
