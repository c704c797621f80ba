/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of the packs agentweaver and memory in C: following a run to its end, and naming the
 * project of an event. */
#include "tools/verbs/agentweaver.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"
#include "tools/cli/verbs.h"
#include "tools/show/event_out.h"

#include <annal/tail.h>

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
    SCOPED_BUF terminal = {0};
    int exit_status = verb_open(&call, args);
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
    if (annal_index_sql(call.index, annal_slice_of(TERMINAL), NULL, add_terminal, &terminal, &err) <
            0 ||
        annal_tail_open(call.store, &options, &tail, &err) < 0) {
        exit_status = fail_error(&err);
        goto done;
    }
    exit_status = follow(tail, session, from, !args_has(args, "all"), &terminal);

done:
    annal_tail_close(tail);
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

const struct verb_code agentweaver_code[] = {{"project", "import", .run = mirror_import},
                                             {"run", "create", .prepare = name_project},
                                             {"run", "worktree", .prepare = name_project},
                                             {"lease", "claim", .prepare = name_project},
                                             {"run", "tail", .run = run_tail},
                                             {.noun = NULL}};
