/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/sessions.h"
#include "tools/cli/store_open.h"
#include "tools/import/changes.h"
#include "tools/report/report.h"
#include "tools/show/session_rows.h"
#include "tools/show/values.h"
#include "tools/source/copies.h"

#include <inttypes.h>

enum { ROWS_USUAL = 10 };

struct report {
    const struct args *args;
    enum report_form form;
    struct report_scope scope;
    char since[ANNAL_TIME_BYTES], until[ANNAL_TIME_BYTES];
    struct buf sessions;
    struct session_list list;
    annal_store *store;
    annal_index *index;
};

static void read_scope(struct report *report)
{
    const struct args *args = report->args;
    struct time_range range;
    int choice = fields_choice(args, "format");
    report->form = args->json ? REPORT_JSONL : choice < 0 ? REPORT_TABLE : (enum report_form)choice;
    report->scope.limit = fields_count(args, "limit", ROWS_USUAL);
    int by = fields_choice(args, "by");
    report->scope.by = by < 0 ? PERIOD_DAY : (enum period)by;
    fields_range(args, &range);
    report->scope.since = time_or_null(range.since_us, report->since).bytes;
    report->scope.until = time_or_null(range.until_us, report->until).bytes;
}

static int collect(struct report *report)
{
    if (report->args->operand_count == 0)
        return 0;
    int exit_status = sessions_collect(report->store, report->args, &report->list);
    return exit_status != 0 ? exit_status : sessions_add_sub_agents(report->store, &report->list);
}

/* Keep only the listed sessions that --agent, --model and --project select. */
static int choose(struct report *report, struct session_match *match)
{
    struct session_list *list = &report->list, chosen = {0};
    struct session_ids ids = {0};
    annal_slice *named = must_realloc_array(NULL, list->count + 1, sizeof *named);
    for (size_t i = 0; i < list->count; i++)
        named[i] = annal_slice_of(list->names[i].id);
    match->sessions = named;
    match->session_count = list->count;
    int exit_status = session_ids_choose(&ids, report->index, match);
    for (size_t i = 0; i < ids.count; i++)
        sessions_add(&chosen, ids.ids[i], 0);
    session_ids_done(&ids);
    annal__free(named);
    sessions_done(list);
    *list = chosen;
    return exit_status;
}

/* Set the sessions of the report: those that the user named, and of these only those that --agent,
 * --model and --project select. */
static int name_sessions(struct report *report)
{
    char project[PROJECT_BYTES];
    struct session_match match;
    int exit_status = 0;
    if (session_match_of(report->args, project, &match))
        exit_status = choose(report, &match);
    else if (report->args->operand_count == 0)
        return 0;
    must_append_text(&report->sessions, "[");
    for (size_t i = 0; exit_status == 0 && i < report->list.count; i++)
        must_json(&report->sessions, "#?", annal_slice_of(i == 0 ? "" : ","),
                  annal_slice_of(report->list.names[i].id));
    must_append_text(&report->sessions, "]");
    report->scope.sessions = annal__buf_slice(&report->sessions);
    return exit_status;
}

/* Print findings, because damaged events are missing in the numbers of a report. Returns an exit
 * status. */
static int say_findings(struct report *report)
{
    struct session_findings findings = {0};
    annal_error err = {0};
    annal_status status =
        session_findings_ask(report->index, (annal_slice){0}, false, &findings, &err);
    for (size_t i = 0; i < report->list.count; i++)
        (void)session_findings_of(&findings, annal_slice_of(report->list.names[i].id));
    int exit_status =
        status < 0 ? fail_error(&err) : session_findings_say(&findings, report->list.count == 0);
    session_findings_done(&findings);
    return exit_status;
}

static int add_copy(void *arg, const struct copy *copy)
{
    struct buf *out = arg;
    if (annal__json_check(copy->info, ANNAL_DATA_DEPTH_MAX, NULL) != JSON_VALID)
        return 0;
    must_printf(
        out, "%s[%.*s,%.*s,%d,%" PRIu64 ",%" PRIu64 "]", out->ptr[out->len - 1] == '[' ? "" : ",",
        ANNAL_FMT(annal__json_member(copy->info, "path")),
        ANNAL_FMT(annal__json_member(copy->info, "kind")), copy->newest, copy->bytes, copy->stored);
    return 0;
}

static int report_sources(struct report *report)
{
    annal_error err = {0};
    struct buf *json = &report->sessions;
    must_append_text(json, "{\"copies\":[");
    annal_status status =
        copies_each(report->store, (annal_slice){0}, true, add_copy, NULL, json, &err);
    must_append_text(json, "],\"looked\":");
    if (status == ANNAL_OK)
        status = changes_look(report->store, report->index, json, &err);
    must_append_text(json, "}");
    report->scope.sessions = annal__buf_slice(json);
    return status < 0 ? fail_error(&err)
                      : report_print(report_source_sections, report->index, &report->scope,
                                     report->form, args_get(report->args, "to"));
}

static int report_what_sessions_did(struct report *report)
{
    int exit_status = name_sessions(report);
    if (exit_status == 0)
        exit_status = report_print(report_sections, report->index, &report->scope, report->form,
                                   args_get(report->args, "to"));
    return exit_status == 0 ? say_findings(report) : exit_status;
}

static int run(const struct args *args)
{
    struct report report = {.args = args};
    read_scope(&report);
    if (args->operand_count > 0 && args_has(args, "sources"))
        return fail_usage("report --sources sums up all logs: omit SESSION");
    int exit_status = store_open(args, OPEN_READ, 0, &report.store);
    if (exit_status == 0)
        exit_status = collect(&report);
    if (exit_status == 0)
        exit_status = catch_up_open(report.store, &report.list, &report.index);
    if (exit_status == 0)
        exit_status =
            args_has(args, "sources") ? report_sources(&report) : report_what_sessions_did(&report);
    annal_index_close(report.index);
    sessions_done(&report.list);
    annal__buf_done(&report.sessions);
    return store_close(report.store, exit_status);
}

static const struct field fields[] = {
    OPERAND_MAYBE("SESSION", FIELD_SESSIONS, NULL, "the sessions (all)"),
    OPTION("agent", "GLOB", FIELD_TEXT, NULL,
           "part of the agent's name, or pattern with *, ?, [abc]"),
    OPTION("model", "GLOB", FIELD_TEXT, NULL, "model, in the same way"),
    PROJECT_OPTION,
    OPTION("since", "T", FIELD_TIME, NULL, "at or after this time; ISO 8601, 7d or today"),
    OPTION("until", "T", FIELD_TIME, NULL, "before this time; a day alone is its first instant"),
    OPTION_WITH("by", "UNIT", FIELD_CHOICE, NULL, "unit of time for tokens and cost (day)",
                .choices = "hour|day|week|month"),
    OPTION_WITH("limit", "N", FIELD_COUNT, NULL, "maximum number of rows of each section (10)",
                .least = 1, .most = 100000),
    OPTION_WITH("format", "FORMAT", FIELD_CHOICE, NULL, "output format (table)",
                .choices = "table|jsonl|markdown|svg", .without = "json"),
    OPTION_WITH("sources", NULL, FIELD_FLAG, NULL, "instead, the logs of sessions and their copies",
                .without = "agent|model|project|since|until|by"),
    OPTION("to", "FILE", FIELD_TEXT, NULL, "output file"),
    FIELDS_END};

const struct command cmd_report = {COMMAND(
    "report", "what sessions did and cost: tools, failures, models, days", report, fields, run)};
