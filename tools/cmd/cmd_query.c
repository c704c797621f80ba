/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/damages.h"
#include "journal/base/alloc.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/overdue.h"
#include "tools/cli/sessions.h"
#include "tools/cli/store_open.h"
#include "tools/export/parquet.h"
#include "tools/show/event_line.h"
#include "tools/show/event_out.h"
#include "tools/show/values.h"

#include <annal/query.h>

#include <inttypes.h>
#include <string.h>

enum { CELL_COLUMNS_MAX = 80 };

enum { BARE_EVENTS = 20 };

struct query {
    const struct args *args;
    enum out_format format;
    struct parquet *parquet; /* Parquet file for the answer; NULL: the answer is printed */
    annal_filter filter;
    annal_group_by group_by; /* 0: do not group */
    annal_slice *types;
    annal_slice *sessions;
    struct session_list list;
    annal_store *store;
    annal_index *index;

    /* totals of the answer */
    annal_query *events;
    uint64_t count;
    bool damaged;
};

/* Read --seq into the filter: A..B, A.., ..B, or A alone. Return the exit status. */
static int read_range(struct query *query)
{
    const char *text = args_get(query->args, "seq");
    char from[24] = "", to[24] = "";
    if (text == NULL)
        return 0;
    const char *dots = strstr(text, "..");
    size_t len = dots != NULL ? (size_t)(dots - text) : strlen(text);
    const char *rest = dots != NULL ? dots + 2 : text;
    bool good = len < sizeof from && strlen(rest) < sizeof to && (len > 0 || rest[0] != '\0');
    if (good) {
        memcpy(from, text, len);
        memcpy(to, rest, strlen(rest));
        good = (from[0] == '\0' || fields_parse_number(from, &query->filter.from_seq)) &&
               (to[0] == '\0' || fields_parse_number(to, &query->filter.to_seq));
    }
    /* For the library, to_seq 0 means no limit. No event has seq 0, so a 0 from the user is
     * refused. */
    if (good && to[0] != '\0' && query->filter.to_seq == 0)
        good = false;
    if (!good)
        return fail_usage("--seq needs a range such as 10..20, 10.. or ..20, not '%s'", text);
    if (query->filter.to_seq != 0 && query->filter.from_seq > query->filter.to_seq)
        return fail_usage("--seq %s: the range ends before it begins", text);
    return 0;
}

static int read_group_by(struct query *query)
{
    const struct args *args = query->args;
    int choice = fields_choice(args, "group-by");
    bool has_format = args_has(args, "format");
    if (choice < 0 && args_has(args, "count") && has_format)
        return fail_usage("--format cannot be used with --count, except with --group-by");
    if (choice >= 0)
        query->group_by = (annal_group_by)(ANNAL_GROUP_TYPE + choice);
    if (choice >= 0 && !has_format && !args->json)
        /* --group-by prints a table unless the user chose another format */
        query->format = OUT_TABLE;
    return 0;
}

static int read_where(struct query *query)
{
    const char *text = args_get(query->args, "where");
    if (text == NULL)
        return 0;
    if (text[strspn(text, " \t\n")] == '\0')
        return fail_usage("--where needs an SQL expression, such as \"data->>'$.tool' = 'bash'\"");
    query->filter.where = annal_slice_of(text);
    query->filter.where_limits = fields_limits(query->args);
    overdue_watch(&query->filter.where_limits);
    return 0;
}

static int read_filter(struct query *query, const char **out_path)
{
    const struct args *args = query->args;
    annal_filter *filter = &query->filter;
    struct time_range range;
    fields_list(args, "type", &query->types, &filter->type_count);
    filter->types = query->types;
    /* catch up for at most 1 ms; events that are not indexed are read from the journals */
    filter->timeout_ms = 1;
    fields_range(args, &range);
    filter->since_us = range.since_us;
    filter->until_us = range.until_us;
    filter->limit = fields_count(args, "limit", 0);
    filter->order = fields_choice(args, "order") == 1 ? ANNAL_ORDER_COMMIT : ANNAL_ORDER_TIME;
    filter->descending = args_has(args, "desc");
    int exit_status = parquet_args(args, &query->format, out_path);
    if (exit_status == 0)
        exit_status = read_group_by(query);
    if (exit_status == 0)
        exit_status = read_where(query);
    return exit_status == 0 ? read_range(query) : exit_status;
}

/* Without operands and options, print only the newest BARE_EVENTS events on a terminal. */
static void limit_bare(struct query *query)
{
    const struct args *args = query->args;
    if (args->operand_count > 0 || args->value_count > 0 || !event_lines_wanted(args))
        return;
    query->filter.limit = BARE_EVENTS;
    query->filter.descending = true;
    say("these are the newest %d events; name a SESSION or an option to see other events",
        BARE_EVENTS);
}

static int name_sessions(struct query *query)
{
    if (query->args->operand_count == 0)
        return 0;
    int exit_status = sessions_collect(query->store, query->args, &query->list);
    if (exit_status != 0)
        return exit_status;
    query->sessions = must_zalloc(query->list.count * sizeof *query->sessions);
    for (size_t i = 0; i < query->list.count; i++)
        query->sessions[i] = annal_slice_of(query->list.names[i].id);
    query->filter.sessions = query->sessions;
    query->filter.session_count = query->list.count;
    return 0;
}

static int fail_query(const struct query *query, const annal_error *err)
{
    return query->filter.where.len > 0 ? fields_fail_limited(err) : fail_error(err);
}

/* Report damaged events, which a count cannot show. Return EXIT_REFUSED if there are any. */
static int say_damages(struct query *query)
{
    annal_error err = {0};
    if (annal__query_say_damages(query->index, &query->filter, &err) < 0)
        return fail_error(&err);
    return EXIT_DONE;
}

static int print_count(struct query *query)
{
    annal_error err = {0};
    annal_lag lag;
    uint64_t count = 0;
    if (annal_query_count(query->index, &query->filter, &count, &lag, &err) < 0)
        return fail_query(query, &err);
    catch_up_say_lag(&lag);
    printf(query->args->json ? "{\"events\":%" PRIu64 "}\n" : "%" PRIu64 "\n", count);
    return say_damages(query);
}

/* ---- Groups ---- */

static const struct {
    const char *name, *title;
} group_names[] = {
    [ANNAL_GROUP_TYPE] = {"type", "TYPE"},       [ANNAL_GROUP_SESSION] = {"session_id", "SESSION"},
    [ANNAL_GROUP_DAY] = {"day", "DAY"},          [ANNAL_GROUP_HOUR] = {"hour", "HOUR"},
    [ANNAL_GROUP_TOOL] = {"tool", "TOOL"},       [ANNAL_GROUP_MODEL] = {"model", "MODEL"},
    [ANNAL_GROUP_AGENT] = {"agent_id", "AGENT"}, [ANNAL_GROUP_WEEK] = {"week", "WEEK"},
    [ANNAL_GROUP_MONTH] = {"month", "MONTH"}};

static int print_group(void *arg, annal_slice key, uint64_t events)
{
    struct table *table = arg;
    table_text(table, key);
    table_count(table, events);
    table_row(table);
    return 0;
}

static int print_groups(struct query *query)
{
    const struct column columns_by[] = {{.name = group_names[query->group_by].name,
                                         .title = group_names[query->group_by].title,
                                         .flexible = true},
                                        {.name = "events", .title = "EVENTS", .right = true}};
    annal_error err = {0};
    annal_lag lag;
    struct table *table = table_new(query->format, columns_by, 2);
    annal_status status = annal_query_group_each(query->index, &query->filter, query->group_by,
                                                 print_group, table, &lag, &err);
    table_free(table);
    if (status < 0)
        return fail_query(query, &err);
    catch_up_say_lag(&lag);
    return say_damages(query);
}

static int collect_group(void *arg, annal_slice key, uint64_t events)
{
    const annal_value values[] = {text_value(key), integer_value((int64_t)events)};
    return parquet_rows_row(arg, &(annal_row){.count = 2, .values = values});
}

static int collect_groups(struct query *query, struct parquet_rows *rows)
{
    const char *const names[] = {group_names[query->group_by].name, "events"};
    annal_error err = {0};
    annal_lag lag;
    const annal_row heading = {.count = 2, .names = names};
    int exit_status = parquet_rows_columns(rows, &heading);
    if (exit_status != 0)
        return exit_status;
    annal_status status = annal_query_group_each(query->index, &query->filter, query->group_by,
                                                 collect_group, rows, &lag, &err);
    if (status < 0)
        return fail_query(query, &err);
    catch_up_say_lag(&lag);
    return (int)status;
}

static int write_groups(struct query *query)
{
    struct parquet_rows *rows = NULL;
    int exit_status = parquet_rows_new(query->parquet, &rows);
    if (exit_status == 0)
        exit_status = collect_groups(query, rows);
    if (exit_status == 0)
        exit_status = parquet_rows_write(rows, query->parquet);
    parquet_rows_free(rows);
    return exit_status;
}

/* ---- Events ---- */

static const struct column columns[] = {
    {.name = "session_id", .title = "SESSION", .flexible = true},
    {.name = "seq", .title = "SEQ", .right = true},
    {.name = "timestamp", .title = "TIME"},
    {.name = "type", .title = "TYPE"},
    {.name = "id"},
    {.name = "cause"},
    {.name = "data", .title = "DATA", .flexible = true}};

static void print_row(struct table *table, annal_slice session, const annal_event *event,
                      struct buf *room)
{
    table_text(table, session);
    table_number(table, event->seq);
    table_time(table, event->ts_us);
    table_text(table, event->type);
    table_text(table, event->id);
    table_text(table, event->cause);
    table_text(table, event_strict(event->data, room));
    table_row(table);
}

/* An answer without an upper bound includes the end of each session: check that no damage follows.
 * Return the exit status. */
static int check_ends(struct query *query)
{
    int waits = 0;
    int exit_status = EXIT_DONE;
    if (query->list.count == 0)
        exit_status = sessions_collect(query->store, query->args, &query->list);
    for (size_t i = 0; exit_status <= EXIT_REFUSED && i < query->list.count; i++) {
        int at_end = event_check_end(query->store, annal_slice_of(query->list.names[i].id),
                                     (annal_position){0}, &waits);
        exit_status = at_end != EXIT_DONE ? at_end : exit_status;
    }
    return exit_status;
}

/* Read the next sound event, and report the damaged events before it. Return 0, ANNAL_END, or a
 * failure. */
static annal_status next_event(struct query *query, annal_slice *session, annal_event *event,
                               annal_error *err)
{
    for (;;) {
        annal_status status = annal_query_next(query->events, session, event, err);
        if (status < 0 || status == ANNAL_END)
            return status;
        query->count++;
        if (status == ANNAL_OK)
            return status;
        say("session '%.*s', event %" PRIu64 " at byte %" PRIu64 " is damaged: see 'annal verify'",
            ANNAL_FMT(*session), event->seq, event->offset);
        query->damaged = true;
    }
}

static int exit_status_of(struct query *query)
{
    const annal_filter *filter = &query->filter;
    bool to_the_end = filter->to_seq == 0 && filter->until_us == 0 && out_wanted() &&
                      (filter->limit == 0 || query->count < filter->limit);
    if (query->damaged)
        return EXIT_REFUSED;
    return to_the_end ? check_ends(query) : EXIT_DONE;
}

static int print_events(struct query *query)
{
    annal_error err = {0};
    annal_slice session;
    annal_event event;
    SCOPED_BUF room = {0};
    struct table *table = NULL;
    annal_status status = ANNAL_OK;
    bool for_people = event_lines_wanted(query->args);
    struct event_lines lines = {.index = query->index, .sessions = query->list.count != 1};
    if (query->format != OUT_JSONL) {
        table = table_new(query->format, columns, sizeof columns / sizeof columns[0]);
        table_limit(table, CELL_COLUMNS_MAX);
    }
    while (out_wanted() && (status = next_event(query, &session, &event, &err)) == ANNAL_OK) {
        if (for_people)
            event_line_print(&lines, session, &event);
        else if (query->format == OUT_JSONL)
            event_print(&event, session);
        else
            print_row(table, session, &event, &room);
    }
    int exit_status = status < 0 ? fail_query(query, &err) : exit_status_of(query);
    table_free(table);
    return exit_status;
}

/* ---- Events as Parquet ---- */

static const struct parquet_column parquet_columns[] = {
    {"session_id", PARQUET_TEXT}, {"seq", PARQUET_INTEGER}, {"timestamp", PARQUET_TIME},
    {"type", PARQUET_TEXT},       {"id", PARQUET_TEXT},     {"cause", PARQUET_TEXT},
    {"data", PARQUET_TEXT}};

enum { PARQUET_COLUMNS = sizeof parquet_columns / sizeof parquet_columns[0] };

struct event_row {
    struct query *query;
    struct buf room;
    annal_value values[PARQUET_COLUMNS];
};

static int next_event_row(void *arg, const annal_value **out_values)
{
    struct event_row *row = arg;
    annal_error err = {0};
    annal_slice session;
    annal_event event;
    annal_status status = next_event(row->query, &session, &event, &err);
    if (status < 0)
        return fail_query(row->query, &err);
    if (status == ANNAL_END)
        return 0;
    const annal_value values[PARQUET_COLUMNS] = {text_value(session),
                                                 integer_value((int64_t)event.seq),
                                                 integer_value(event.ts_us),
                                                 text_value(event.type),
                                                 text_or_null(event.id),
                                                 text_or_null(event.cause),
                                                 text_value(event_strict(event.data, &row->room))};
    memcpy(row->values, values, sizeof values);
    *out_values = row->values;
    return 0;
}

static int write_events(struct query *query)
{
    struct event_row row = {.query = query};
    int exit_status =
        parquet_write(query->parquet, parquet_columns, PARQUET_COLUMNS, next_event_row, &row);
    annal__buf_done(&row.room);
    return exit_status == 0 ? exit_status_of(query) : exit_status;
}

static int answer(struct query *query)
{
    annal_error err = {0};
    if (query->group_by != 0)
        return query->parquet != NULL ? write_groups(query) : print_groups(query);
    if (args_has(query->args, "count"))
        return print_count(query);
    if (annal_query_open(query->index, &query->filter, &query->events, &err) < 0)
        return fail_query(query, &err);
    const annal_lag lag = annal_query_lag(query->events);
    catch_up_say_lag(&lag);
    int exit_status = query->parquet != NULL ? write_events(query) : print_events(query);
    annal_query_close(query->events);
    return exit_status;
}

static int run(const struct args *args)
{
    struct query query = {.args = args, .format = OUT_JSONL};
    const char *path = NULL;
    event_keep_bytes(args_has(args, "raw"));
    int exit_status = read_filter(&query, &path);
    if (exit_status == 0 && path != NULL)
        exit_status = parquet_open(path, &query.parquet);
    if (exit_status == 0)
        exit_status = store_open(args, OPEN_READ, 0, &query.store);
    if (exit_status == 0)
        exit_status = name_sessions(&query);
    if (exit_status == 0)
        exit_status = catch_up_open_for_events(query.store, &query.list, &query.index);
    if (exit_status == 0)
        limit_bare(&query);
    if (exit_status == 0)
        exit_status = answer(&query);
    parquet_close(query.parquet);
    annal_index_close(query.index);
    sessions_done(&query.list);
    annal__free(query.sessions);
    annal__free(query.types);
    return store_close(query.store, exit_status);
}

static const struct field fields[] = {
    OPERAND_MAYBE("SESSION", FIELD_SESSIONS, NULL, "the sessions (all)"),
    OPTION("type", "GLOB", FIELD_LIST, NULL, "type of the events; may contain *, ? and [abc]"),
    OPTION("since", "T", FIELD_TIME, NULL, "at or after this time; ISO 8601, 2h or today"),
    OPTION("until", "T", FIELD_TIME, NULL, "before this time; a day alone is its first instant"),
    OPTION("seq", "A..B", FIELD_TEXT, NULL, "from seq A to seq B; either may be left out"),
    OPTION("where", "EXPR", FIELD_TEXT, NULL,
           "SQL that must be true: \"data->>'$.tool' = 'bash'\""),
    OPTION_WITH("limit", "N", FIELD_COUNT, NULL, "maximum number of events, or groups", .least = 1),
    OPTION_WITH("order", "ORDER", FIELD_CHOICE, NULL, "order of several sessions (time)",
                .choices = "time|commit"),
    FLAG("desc", NULL, "last event first"),
    FLAG("count", NULL, "print only the number of events"),
    OPTION_WITH("group-by", "WHAT", FIELD_CHOICE, NULL, "print the number of events per group",
                .choices = "type|session|day|hour|tool|model|agent|week|month"),
    LIMIT_OPTIONS,
    RAW_OPTION,
    OPTION_WITH("format", "FORMAT", FIELD_CHOICE, NULL,
                "output format (jsonl; a line each on a terminal)", .choices = PARQUET_FORMATS),
    OPTION("to", "FILE", FIELD_TEXT, NULL, "output file of --format parquet"),
    FIELDS_END};

const struct command cmd_query = {
    COMMAND("query", "find events by session, type, time and seq", query, fields, run)};
