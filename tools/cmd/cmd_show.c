/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the facts of a session, from its journal (header, end) and from the index (totals, turns,
 * types, snapshots, findings). As JSON they are one object.
 */
#include "index/sys/databases.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/rows.h"
#include "tools/cli/store_open.h"
#include "tools/show/cost_note.h"
#include "tools/show/recovery_print.h"
#include "tools/show/session_findings.h"
#include "tools/show/session_rows.h"

#include <annal/query.h>

#include <inttypes.h>
#include <string.h>

struct show {
    const struct args *args;
    annal_slice session;
    annal_store *store;
    annal_index *index;
    annal_session_info info;
    struct table *table;
    size_t columns;      /* number of columns of `table` */
    const char *heading; /* heading of the table */
    uint64_t items;      /* number of printed items of the current list */
    struct cost_signs signs;
};

static int sql(struct show *show, const char *query, annal_row_fn fn)
{
    annal_error err = {0};
    annal_value session = {.kind = ANNAL_VALUE_TEXT, .bytes = show->session};
    annal_status status = annal_index_sql(
        show->index, annal_slice_of(query),
        &(annal_sql_options){.params = &session, .param_count = 1, .as_indexed = true}, fn, show,
        &err);
    return status < 0 ? fail_error(&err) : (int)status;
}

static void begin_item(struct show *show)
{
    if (show->items++ > 0)
        fputc(',', stdout);
}

/* ---- As JSON ---- */

static int json_session(void *arg, const annal_row *row)
{
    (void)arg;
    fputc(',', stdout);
    rows_print_members(row);
    return 0;
}

static int json_item(void *arg, const annal_row *row)
{
    begin_item(arg);
    fputc('{', stdout);
    rows_print_members(row);
    fputc('}', stdout);
    return 0;
}

/* Print the beginning of a list, and a query's rows as its items, unless there is no query or
 * exit_status is not 0. Return the exit status. */
static int json_rows(struct show *show, int exit_status, const char *begin, const char *query)
{
    fputs(begin, stdout);
    show->items = 0;
    return exit_status != 0 || query == NULL ? exit_status : sql(show, query, json_item);
}

static int json_type(void *arg, annal_slice type, uint64_t events)
{
    begin_item(arg);
    out_json("?:#", type, JSON_U64(events));
    return 0;
}

static int json_finding(void *arg, const annal_index_finding *finding)
{
    begin_item(arg);
    out_json("{\"seq\":#,\"offset\":#,\"length\":#,\"kind\":?,\"what\":?}", JSON_U64(finding->seq),
             JSON_U64(finding->offset), JSON_U64(finding->length), finding->kind, finding->what);
    return 0;
}

static int json_lag(void *arg, const annal_index_lag *lag)
{
    (void)arg;
    printf(",\"indexed_seq\":%" PRIu64 ",\"indexed_bytes\":%" PRIu64, lag->indexed_seq,
           lag->indexed_bytes);
    return 0;
}

static const char fork_rows[] = "SELECT session_id, forked_at_seq, created_at FROM forks"
                                " WHERE parent_session_id = ?1 ORDER BY forked_at_seq, session_id";

static int json_part(void *arg, const annal_lineage_part *part)
{
    begin_item(arg);
    out_json("{\"session_id\":\"#\",\"from_seq\":#,\"to_seq\":#}", part->session,
             JSON_U64(part->from_seq),
             part->to_seq == UINT64_MAX ? ANNAL_SLICE("null") : JSON_U64(part->to_seq));
    return 0;
}

/* Print the sessions that contain the session's history, and the forks of the session. Return the
 * exit status. */
static int json_lineage(struct show *show)
{
    annal_error err = {0};
    const annal_session_info *info = &show->info;
    fputs(",\"fork\":", stdout);
    if (info->fork_session[0] == '\0')
        fputs("null", stdout);
    else
        printf("{\"session_id\":\"%s\",\"seq\":%" PRIu64 "}", info->fork_session, info->fork_seq);
    fputs(",\"lineage\":[", stdout);
    show->items = 0;
    annal_status status = annal_lineage_each(show->store, show->session, json_part, show, &err);
    int exit_status = json_rows(show, 0, "],\"forks\":[", fork_rows);
    fputc(']', stdout);
    return exit_status == 0 && status < 0 ? fail_error(&err) : exit_status;
}

/* The format argument is session_marks(). */
static const char session_row[] =
    "WITH %s SELECT s.*" SESSION_COLUMNS ", o.source_host, o.source_path, x.state AS source_state,"
    " x.noticed_at AS source_noticed_at, c.cost_usd, c.computed_cost_usd, c.costed_tokens"
    " FROM sessions s" SESSION_MARKED " LEFT JOIN usage_by_session c ON c.session_id = s.id"
    " LEFT JOIN session_latest_sources o ON o.session_id = s.id"
    " LEFT JOIN source_states x ON x.session_id = s.id WHERE id = ?1";
static const char note_rows[] =
    "SELECT note, event_seq, text, by, written_at FROM annotations.notes"
    " WHERE session_id = ?1 ORDER BY event_seq, note";
static const char source_rows[] =
    "SELECT source_host, source_path FROM session_sources WHERE session_id = ?1"
    " AND (SELECT count(*) FROM session_sources WHERE session_id = ?1) > 1 ORDER BY seq";
static const char turn_rows[] = "SELECT * FROM turns WHERE session_id = ?1 ORDER BY sequence";
static const char snapshot_rows[] = "SELECT seq, length(state) AS bytes, created_at"
                                    " FROM snapshots WHERE session_id = ?1 ORDER BY seq";

static int sql_session(struct show *show, annal_row_fn fn)
{
    SCOPED_BUF text = {0};
    must_printf(&text, session_row, session_marks(show->index));
    return sql(show, must_cstr(&text), fn);
}

static int print_json(struct show *show)
{
    annal_error err = {0};
    const annal_session_info *info = &show->info;
    printf("{\"session_id\":\"%s\",\"file\":\"%s\",\"journal_bytes\":%" PRIu64
           ",\"journal_seq\":%" PRIu64,
           info->session, info->file, info->bytes, info->last_seq);
    annal_status status = annal_index_lag_each(show->index, show->session, json_lag, show, &err);
    int exit_status = status < 0 ? fail_error(&err) : sql_session(show, json_session);
    int lineage = exit_status == 0 ? json_lineage(show) : exit_status;
    if (exit_status != 0)
        return exit_status;
    fputs(",\"types\":{", stdout);
    show->items = 0;
    status = annal__reader_counts(show->index, show->session, json_type, show, &err);
    exit_status = status < 0 ? fail_error(&err) : EXIT_DONE;
    exit_status = json_rows(show, exit_status, "},\"turns\":[", turn_rows);
    exit_status = json_rows(show, exit_status, "],\"sources\":[", source_rows);
    exit_status = json_rows(show, exit_status, "],\"session_notes\":[",
                            exit_status == 0 && session_has_marks(show->index) ? note_rows : NULL);
    exit_status = json_rows(show, exit_status, "],\"snapshots\":[", snapshot_rows);
    fputs("],\"findings\":[", stdout);
    show->items = 0;
    status = annal_index_finding_each(show->index, show->session, json_finding, show, &err);
    fputs("]}\n", stdout);
    if (exit_status == 0 && status < 0)
        exit_status = fail_error(&err);
    return exit_status == 0 ? lineage : exit_status;
}

/* ---- For people ---- */

/* Print a member per line. For people, the cost and its source are one line. */
static int print_session(void *arg, const annal_row *row)
{
    static const char *const costs[] = {"total_cost_usd", "cost_microusd", "cost_usd",
                                        "computed_cost_usd", "costed_tokens"};
    struct show *show = arg;
    char text[COST_TEXT_BYTES];
    struct cost cost = {.usd = &row->values[row->count - 3],
                        .computed_usd = &row->values[row->count - 2],
                        .costed_tokens = &row->values[row->count - 1]};
    for (size_t i = 0; i < row->count; i++) {
        bool is_cost = false;
        for (size_t k = 0; k < sizeof costs / sizeof *costs; k++)
            is_cost = is_cost || strcmp(row->names[i], costs[k]) == 0;
        if (strcmp(row->names[i], "total_tokens") == 0)
            cost.tokens = row->values[i].integer;
        annal_row one = {.values = &row->values[i], .names = &row->names[i], .count = 1};
        if (!is_cost)
            rows_print_lines(NULL, &one);
    }
    printf("%-20s %s\n", "cost", cost_text(text, &cost, &show->signs));
    return 0;
}

/* Print the heading before the first item, so that an empty list prints nothing. */
static void heading(struct show *show, const char *text)
{
    if (show->items++ > 0)
        return;
    fputc('\n', stdout);
    out_style("1");
    fputs(text, stdout);
    out_style("0");
    fputc('\n', stdout);
}

static int print_item(void *arg, const annal_row *row)
{
    struct show *show = arg;
    heading(show, show->heading);
    for (size_t i = 0; i < show->columns; i++) {
        rows_count_cell(show->table, &row->values[i]);
        if (row->values[i].kind == ANNAL_VALUE_NULL)
            table_shown(show->table, "-");
    }
    table_row(show->table);
    return 0;
}

static int note_any(void *arg, const annal_row *row)
{
    struct show *show = arg;
    (void)row;
    show->items++;
    return 0;
}

static int print_type(void *arg, annal_slice type, uint64_t events)
{
    char text[HUMAN_BYTES];
    heading(arg, "events by type");
    printf("%12s  %.*s\n", human_count(text, events), ANNAL_FMT(type));
    return 0;
}

static int print_finding(void *arg, const annal_index_finding *finding)
{
    heading(arg, "findings");
    printf("event %" PRIu64 " at byte %" PRIu64 ": ", finding->seq, finding->offset);
    out_plain(finding->what);
    fputc('\n', stdout);
    return 0;
}

static int print_lag(void *arg, const annal_index_lag *lag)
{
    (void)arg;
    if (lag->indexed_bytes < lag->journal_bytes)
        printf("%-20s up to seq %" PRIu64 "\n", "indexed", lag->indexed_seq);
    return 0;
}

static const struct column turn_columns[] = {
    {.name = "sequence", .title = "TURN", .right = true},
    {.name = "status", .title = "STATUS"},
    {.name = "created_at", .title = "BEGUN"},
    {.name = "completed_at", .title = "ENDED"},
    {.name = "input_tokens", .title = "INPUT", .right = true},
    {.name = "output_tokens", .title = "OUTPUT", .right = true},
    {.name = "cost_usd", .title = "COST", .right = true}};
static const struct column fork_columns[] = {
    {.name = "session_id", .title = "FORK"},
    {.name = "forked_at_seq", .title = "AT", .right = true},
    {.name = "created_at", .title = "MADE"}};
static const struct column note_columns[] = {{.name = "note", .title = "NOTE", .right = true},
                                             {.name = "event_seq", .title = "EVENT", .right = true},
                                             {.name = "text", .title = "TEXT"},
                                             {.name = "by", .title = "BY"},
                                             {.name = "written_at", .title = "WRITTEN"}};
static const struct column source_columns[] = {{.name = "source_host", .title = "HOST"},
                                               {.name = "source_path", .title = "IMPORTED FROM"}};
static const struct column snapshot_columns[] = {
    {.name = "seq", .title = "SNAPSHOT AT", .right = true},
    {.name = "bytes", .title = "BYTES", .right = true},
    {.name = "created_at", .title = "TAKEN"}};

static int print_items(struct show *show, const char *name, const char *query,
                       const struct column *columns, int count)
{
    show->heading = name;
    show->items = 0;
    show->columns = (size_t)count;
    show->table = table_new(OUT_TABLE, columns, count);
    int exit_status = sql(show, query, print_item);
    table_free(show->table);
    return exit_status;
}

/* Print an ancestor, the nearest first. The session's own part has no end and is left out. */
static int print_part(void *arg, const annal_lineage_part *part)
{
    char to[HUMAN_BYTES];
    (void)arg;
    if (part->to_seq != UINT64_MAX)
        printf("%-20s %.*s, up to event %s\n", "fork of", ANNAL_FMT(part->session),
               human_count(to, part->to_seq));
    return 0;
}

static int print_lineage(const struct show *show)
{
    annal_error err = {0};
    annal_status status = annal_lineage_each(show->store, show->session, print_part, NULL, &err);
    /* the history is damaged: report that, and let the caller print the other facts of the
     * session */
    if (status == ANNAL_ERR_CORRUPT) {
        say("%s", err.message);
        return EXIT_REFUSED;
    }
    return status < 0 ? fail_error(&err) : EXIT_DONE;
}

static void print_journal(const annal_session_info *info)
{
    char text[HUMAN_BYTES];
    printf("%-20s %s\n", "session", info->session);
    printf("%-20s %s\n", "journal", human_bytes(text, info->bytes));
    printf("%-20s %s\n", "last seq", human_count(text, info->last_seq));
    if (info->file[0] != '\0')
        printf("%-20s %s\n", "file id", info->file);
    if (info->end_offset < info->bytes)
        printf("%-20s %s are damaged (see 'annal verify %s')\n", "end",
               human_bytes(text, info->bytes - info->end_offset), info->session);
}

/* Print the turns. The column of costs is shown only if a turn of the session has a cost. */
static int print_turns(struct show *show)
{
    static const char costs[] =
        "SELECT 1 FROM turns WHERE session_id = ?1 AND cost_usd IS NOT NULL LIMIT 1";
    static const char turns[] = "SELECT sequence, status, created_at, completed_at, input_tokens,"
                                " output_tokens, cost_usd FROM turns WHERE session_id = ?1"
                                " ORDER BY sequence";
    show->items = 0;
    int exit_status = sql(show, costs, note_any);
    return exit_status != 0
               ? exit_status
               : print_items(show, "turns", turns, turn_columns, show->items > 0 ? 7 : 6);
}

static annal_status print_note(struct show *show, annal_error *err)
{
    char session[ANNAL_SESSION_ID_BYTES_MAX + 8];
    snprintf(session, sizeof session, "[\"%s\"]", show->info.session);
    const struct cost_signs *signs = &show->signs;
    if (signs->computed || signs->part || signs->unknown)
        fputc('\n', stdout);
    return cost_note_print(show->index, signs,
                           &(struct cost_scope){.sessions = annal_slice_of(session)}, err);
}

static int print_text(struct show *show)
{
    annal_error err = {0};
    print_journal(&show->info);
    int lineage = print_lineage(show);
    annal_status status = annal_index_lag_each(show->index, show->session, print_lag, show, &err);
    int exit_status = status < 0 ? fail_error(&err) : sql_session(show, print_session);
    if (exit_status != 0)
        return exit_status;
    status = annal__reader_counts(show->index, show->session, print_type, show, &err);
    if (status < 0)
        return fail_error(&err);
    exit_status = print_turns(show);
    if (exit_status == 0 && session_has_marks(show->index))
        exit_status = print_items(show, "notes", note_rows, note_columns, 5);
    if (exit_status == 0)
        exit_status = print_items(show, "forks", fork_rows, fork_columns, 3);
    if (exit_status == 0)
        exit_status = print_items(show, "logs", source_rows, source_columns, 2);
    if (exit_status == 0)
        exit_status = print_items(show, "snapshots", snapshot_rows, snapshot_columns, 3);
    if (exit_status != 0)
        return exit_status;
    show->items = 0;
    status = annal_index_finding_each(show->index, show->session, print_finding, show, &err);
    if (status >= 0)
        status = print_note(show, &err);
    return status < 0 ? fail_error(&err) : lineage;
}

static int say_findings(struct show *show)
{
    struct session_findings findings = {0};
    annal_error err = {0};
    annal_status status = session_findings_ask(show->index, show->session, true, &findings, &err);
    int exit_status = status < 0 ? fail_error(&err) : session_findings_say(&findings, true);
    session_findings_done(&findings);
    return exit_status;
}

static int show_session(struct show *show)
{
    annal_error err = {0};
    struct session_list list = {0};
    int exit_status = sessions_collect(show->store, show->args, &list);
    if (exit_status == 0 &&
        annal_session_info_get(show->store, show->session, &show->info, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0)
        exit_status = catch_up_open(show->store, &list, &show->index);
    if (exit_status == 0 && args_has(show->args, "recovery"))
        exit_status = recovery_print(show->args, show->index, show->session);
    else if (exit_status == 0) {
        /* call say_findings() first: it also adds new events to the tables of packs */
        int findings = say_findings(show);
        exit_status = show->args->json ? print_json(show) : print_text(show);
        if (exit_status == 0)
            exit_status = findings;
    }
    annal_index_close(show->index);
    sessions_done(&list);
    return exit_status;
}

static int run(const struct args *args)
{
    struct show show = {.args = args};
    int exit_status =
        store_open(args, OPEN_READ, args_has(args, "recovery") ? RECOVERY_WAIT_MS : 0, &show.store);
    show.session = fields_text(args, "SESSION");
    if (exit_status == 0)
        exit_status = show_session(&show);
    return store_close(show.store, exit_status);
}

static const struct field fields[] = {
    OPERAND("SESSION", FIELD_SESSION, NULL, "the session"),
    FLAG("recovery", NULL, "print a summary for an agent that continues the session"), FIELDS_END};

const struct command cmd_show = {COMMAND("show", "describe a session", show, fields, run)};
