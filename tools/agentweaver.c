/* Verbs of packs agentweaver and memory with code of their own: following a run to its end, what a
 * restart must put right, proposals merged together. */
#include "tools/agentweaver.h"
#include "journal/base/json_walk.h"
#include "tools/event_out.h"
#include "tools/verbs.h"

#include <annal/tail.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 500 }; /* how often to notice that nobody reads any more */

/* ---- annal run tail ---- */

/* What ends a run, one a line: a type, or "run.transition STATUS". The packs say so in tables. */
static const char TERMINAL[] =
    "SELECT type FROM memory.terminal_event_types UNION ALL SELECT 'stream.closed' UNION ALL "
    "SELECT 'run.transition ' || status FROM agentweaver.run_statuses WHERE terminal";

static int add_terminal(void *arg, const annal_row *row)
{
    struct buf *terminal = arg;
    return annal__buf_printf(terminal, "%.*s\n", ANNAL_FMT(row->values[0].bytes));
}

static bool is_terminal(struct buf *terminal, const annal_event *event)
{
    static const char transition[] = "run.transition";
    char line[ANNAL_TYPE_BYTES_MAX + 64] = "\n";
    annal_slice to = {0};
    if (event->type.len == sizeof transition - 1 &&
        memcmp(event->type.ptr, transition, event->type.len) == 0)
        to = annal__json_member(event->data, "to");
    if (to.len > 40)
        return false;
    if (to.len > 2)
        snprintf(line, sizeof line, "\n%s %.*s\n", transition, (int)to.len - 2, to.ptr + 1);
    else
        snprintf(line, sizeof line, "\n%.*s\n", ANNAL_FMT(event->type));
    const char *all = annal__buf_cstr(terminal);
    return all != NULL && strstr(all, line) != NULL;
}

/*
 * A terminal event ends it only where nothing stands behind: a merge that failed may be tried again.
 */
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

int run_tail(const struct args *args)
{
    struct verb_call call;
    uint64_t from = 1;
    annal_error err = {0};
    annal_tail *tail = NULL;
    struct buf terminal = {.limit = 1 << 16};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = verb_need_pack(&call, "memory");
    if (exit_status == 0)
        exit_status = args_number(args, "from", &from);
    if (exit_status == 0)
        exit_status = verb_session_id(args, "run_{RUN}", call.session, sizeof call.session);
    if (exit_status != 0)
        goto done;
    /* One event more than asked for: the one before may have ended the run. */
    uint64_t begin = from > 1 ? from - 1 : 1;
    annal_slice session = annal_slice_of(call.session);
    if (annal__buf_append(&terminal, "\n", 1) < 0 ||
        annal_sql(call.index, annal_slice_of(TERMINAL), NULL, add_terminal, &terminal, &err) < 0 ||
        annal_tail_open(call.store, session, begin, &tail, &err) < 0) {
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

static const char TRANSIENT[] =
    "SELECT id, status FROM agentweaver.runs WHERE status IN ('committing', 'merging') AND (?1 IS "
    "NULL OR project_id = ?1) ORDER BY id";

/* Runs and their statuses, each with a NUL behind it. */
static int add_run(void *arg, const annal_row *row)
{
    struct buf *runs = arg;
    for (size_t i = 0; i < 2; i++)
        if (annal__buf_append_slice(runs, row->values[i].bytes) < 0 ||
            annal__buf_append(runs, "", 1) < 0)
            return ANNAL_ERR_NOMEM;
    return 0;
}

/* A run that somebody else has moved on meanwhile is refused, and that is well. */
static int revert(struct verb_call *call, const char *run, const char *status)
{
    bool merging = strcmp(status, "merging") == 0;
    annal_error err = {0};
    int exit_status = verb_set_session(call, "run_%s", run);
    if (exit_status == 0)
        exit_status = verb_set_text(call, "to", ANNAL_SLICE("awaiting_review"));
    if (exit_status == 0)
        exit_status = verb_set_text(call, "expected", annal_slice_of(status));
    if (exit_status == 0)
        exit_status = verb_set_text(call, "operation",
                                    annal_slice_of(merging ? "revert_merge" : "revert_commit"));
    if (exit_status != 0)
        return exit_status;
    if (verb_try(call, &err) < 0) {
        if (err.status != ANNAL_ERR_REFUSED)
            return fail_error(&err);
        say("run %s: %s", run, err.message);
        return 0;
    }
    if (call->args->json)
        verb_print(call);
    else
        printf("run %s was %s and awaits review again\n", run, status);
    return 0;
}

int run_recover(const struct args *args)
{
    struct verb_call call;
    struct buf runs = {0};
    annal_error err = {0};
    const char *project = args_get(args, "project");
    const annal_value param = {.kind = project == NULL ? ANNAL_VALUE_NULL : ANNAL_VALUE_TEXT,
                               .bytes = annal_slice_of(project)};
    const annal_sql_options options = {.params = &param, .param_count = 1};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0 &&
        annal_sql(call.index, annal_slice_of(TRANSIENT), &options, add_run, &runs, &err) < 0)
        exit_status = fail_error(&err);
    for (size_t at = 0; exit_status == 0 && at < runs.len;) {
        const char *run = runs.ptr + at, *status = run + strlen(run) + 1;
        exit_status = revert(&call, run, status);
        at += strlen(run) + strlen(status) + 2;
    }
    annal__buf_done(&runs);
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

int promote_all(const struct args *args)
{
    struct verb_call call;
    int64_t pending = 0;
    annal_error err = {0};
    const annal_value params[] = {
        {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(verb_text(args, "PROJECT"))},
        {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(verb_text(args, "by"))}};
    const annal_sql_options options = {.params = params, .param_count = 2};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0 &&
        annal_sql(call.index, annal_slice_of(PENDING), &options, take_count, &pending, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0 && pending == 0) {
        if (!args->json)
            printf("nothing is pending that the %s may merge\n", verb_text(args, "by"));
    } else if (exit_status == 0) {
        exit_status = verb_post(&call);
        if (exit_status == 0 && args->json)
            verb_print(&call);
        else if (exit_status == 0)
            printf("merged %" PRId64 " proposals\n", pending);
    }
    return verb_close(&call, exit_status);
}
