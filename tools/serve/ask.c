/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of the whole store: schema, usage, search, the difference of two sessions. */
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/report/report.h"
#include "tools/serve/question.h"
#include "tools/serve/serve.h"
#include "tools/show/rows_json.h"
#include "tools/show/schema_list.h"
#include "tools/show/session_rows.h"
#include "tools/show/values.h"

#include <annal/search.h>

#include <inttypes.h>
#include <string.h>

#define SEARCH_MS      10000u
#define HITS_USUAL     20u
#define HITS_MAX       200u
#define PLACES_MAX     50u
#define WORDS_MAX      32u
#define SEARCH_WAIT_MS 20000u
#define COMPARED_ROWS  200u
#define ZONED_ROWS_MAX 100000u
#define ZONED_MS       30000u

/* ---- The schema ---- */

struct tables {
    struct buf *out;
    uint64_t count;
};

static int put_table(void *arg, const struct schema_table *table)
{
    struct tables *tables = arg;
    return annal__json_put(tables->out, "#{\"table\":?,\"kind\":?,\"columns\":[#]}",
                           annal_slice_of(tables->count++ > 0 ? ",\n" : ""), table->name,
                           table->kind, table->columns_json);
}

void ask_schema(struct serve *serve, struct request *request)
{
    annal_error err = {0};
    struct tables tables = {.out = &request->answer};
    annal_status status = annal__buf_append(&request->answer, "{\"tables\":[", 11);
    if (status >= 0)
        status = schema_list(serve->index, put_table, &tables, &err);
    if (status >= 0)
        status = annal__buf_append(&request->answer, "]}", 2);
    answer_json(request, status, &err);
}

/* ---- Usage ---- */

extern const char annal__sql_tools_used[]; /* tools_used.sql */
extern const char annal__sql_usage[];      /* show/usage.sql */
extern const char annal__sql_panels[];     /* panels.sql */

#define NAMES_MAX 1000u
#define PANEL_MAX 500u
#define PANELS    " all period model agent project session "

/* The values of the parameter by: names of one panel of usage.sql, or of all panels. */
struct grouping {
    const char *by, *column; /* the column has the names; NULL for all panels */
    const char *panels, *unit;
    const char *order;
    unsigned most;
};
static const struct grouping groupings[] = {
    {"model", "model", " model ", "", "cost_usd DESC, 1", ZONED_ROWS_MAX},
    {"day", "day", " period ", "day", "1", ZONED_ROWS_MAX},
    {"agent", "agent_id", " agent ", "", "cost_usd DESC, 1", ZONED_ROWS_MAX},
    {"session", "session_id", " session ", "", "cost_usd DESC, 1", NAMES_MAX},
    {"dir", "working_directory", " dir ", "", "cost_usd DESC, 1", NAMES_MAX},
    {"tool", NULL, NULL, NULL, NULL, ZONED_ROWS_MAX},
    {"hour", "hour", " period ", "hour", "1", ZONED_ROWS_MAX},
    {"week", "week", " period ", "week", "1", ZONED_ROWS_MAX},
    {"month", "month", " period ", "month", "1", ZONED_ROWS_MAX},
    {"project", "project", " project ", "", "cost_usd DESC, 1", NAMES_MAX},
    {"panels-day", NULL, PANELS, "day", NULL, PANEL_MAX},
    {"panels-week", NULL, PANELS, "week", NULL, PANEL_MAX},
    {"panels-month", NULL, PANELS, "month", NULL, PANEL_MAX}};
enum { GROUPINGS = sizeof groupings / sizeof *groupings };

static annal_status put_usage_sql(struct buf *sql, const struct grouping *by)
{
    if (by->panels == NULL)
        return annal__buf_printf(sql, "%s", annal__sql_tools_used);
    annal_status status = annal__buf_printf(sql, "WITH used AS (%s)\n", annal__sql_usage);
    if (status < 0 || by->column == NULL)
        return annal__buf_printf(sql, "%s", annal__sql_panels);
    return annal__buf_printf(
        sql,
        "SELECT name AS %s, sessions, requests, input_tokens, output_tokens, cached_input_tokens,"
        " cache_write_tokens, cost_microusd / 1e6 AS cost_usd,"
        " computed_microusd / 1e6 AS computed_cost_usd, costed_tokens"
        " FROM used ORDER BY %s LIMIT ?4",
        by->column, by->order);
}

/* Run the query in a process with the time zone that the request names. The process reads since and
 * until in that time zone. */
static void ask_in_zone(struct serve *serve, struct request *request, annal_slice sql,
                        const struct time_range *range, const struct grouping *by)
{
    const char *bounds[] = {http_query(request, "since"), http_query(request, "until")};
    const int64_t times_us[] = {range->since_us, range->until_us};
    char time[ANNAL_TIME_BYTES];
    SCOPED_BUF body = {0};
    annal_status status =
        annal__buf_printf(&body, "{\"limit\":%u,\"params\":[null", (unsigned)ZONED_ROWS_MAX);
    for (int i = 0; status >= 0 && i < 2; i++) {
        annal_time_format(times_us[i], time);
        annal_slice bound = annal_slice_of(bounds[i] != NULL ? bounds[i] : time);
        status = bounds[i] == NULL && times_us[i] == 0 ? annal__buf_append(&body, ",null", 5)
                                                       : annal__json_put(&body, ",?", bound);
    }
    status = annal__buf_printf(&body, ",%u", by->most);
    if (status >= 0 && by->panels != NULL)
        status = annal__buf_printf(&body, ",\"%s\",\"%s\"", by->unit, by->panels);
    status = annal__json_put(&body, "],\"sql\":?}", sql);
    if (status >= 0)
        question_ask(serve, request, annal__buf_slice(&body), ZONED_MS);
    else
        answer_no_memory(request);
}

void ask_usage(struct serve *serve, struct request *request)
{
    const char *choices[GROUPINGS + 1] = {0};
    char since[ANNAL_TIME_BYTES], until[ANNAL_TIME_BYTES];
    struct time_range range;
    int choice = 0;
    annal_error err = {0};
    for (size_t i = 0; i < GROUPINGS; i++)
        choices[i] = groupings[i].by;
    if (!answer_choice(request, "by", choices, &choice) || !answer_range(request, &range))
        return;
    const struct grouping *by = &groupings[choice];
    SCOPED_BUF sql = {0};
    const annal_value params[] = {{.kind = ANNAL_VALUE_NULL},
                                  time_or_null(range.since_us, since),
                                  time_or_null(range.until_us, until),
                                  integer_value(by->most),
                                  string_value(by->unit),
                                  string_value(by->panels)};
    if (put_usage_sql(&sql, by) < 0 || annal__buf_cstr(&sql) == NULL)
        answer_no_memory(request);
    else if (http_query(request, "zone") != NULL)
        ask_in_zone(serve, request, annal__buf_slice(&sql), &range, by);
    else
        answer_json(request,
                    rows_json_ask(serve->index, sql.ptr, params, by->panels == NULL ? 4 : 6,
                                  &request->answer, &err),
                    &err);
}

/* ---- Search ---- */

/* Marks before and after a found word. They are control characters, which no text of an event
 * contains. */
#define MARK_BEGIN "\1"
#define MARK_END   "\2"

struct hits {
    struct buf *out;
    struct buf sessions; /* the members of "sessions" */
    uint64_t count;
};

static annal_status put_part(struct buf *out, annal_slice text, bool marked, bool *begun)
{
    if (text.len == 0)
        return ANNAL_OK;
    annal_status status = annal__json_put(out, "#[?,#]", annal_slice_of(*begun ? "," : ""), text,
                                          annal_slice_of(marked ? "true" : "false"));
    *begun = true;
    return status;
}

/* Print the text as [["the text ",false],["found",true],…]; true marks a found word. So no markup
 * is sent. */
static annal_status put_snippet(struct buf *out, annal_slice text)
{
    bool marked = false, begun = false;
    annal_status status = annal__buf_append(out, "[", 1);
    size_t from = 0;
    for (size_t at = 0; status >= 0 && at <= text.len; at++) {
        if (at < text.len && text.ptr[at] != MARK_BEGIN[0] && text.ptr[at] != MARK_END[0])
            continue;
        status = put_part(out, (annal_slice){text.ptr + from, at - from}, marked, &begun);
        marked = at < text.len && text.ptr[at] == MARK_BEGIN[0];
        from = at + 1;
    }
    return annal__buf_append(out, "]", 1);
}

static int put_hit(void *arg, const annal_search_hit *hit)
{
    struct hits *hits = arg;
    char time[ANNAL_TIME_BYTES];
    annal_time_format(hit->ts_us, time);
    annal__json_put(hits->out,
                    "#{\"session\":\"#\",\"seq\":#,\"time\":\"#\",\"type\":\"#\",\"role\":?,"
                    "\"tool\":?,\"snippet\":",
                    annal_slice_of(hits->count++ > 0 ? ",\n" : ""), hit->session,
                    JSON_U64(hit->seq), annal_slice_of(time), hit->type, hit->role, hit->tool);
    put_snippet(hits->out, hit->snippet);
    return annal__buf_append(hits->out, "}", 1);
}

/* Print the places of a session as hits, and keep what is known of the session for "sessions". */
static int put_session(void *arg, const annal_search_session *found)
{
    struct hits *hits = arg;
    char time[ANNAL_TIME_BYTES];
    annal_status status = ANNAL_OK;
    annal_time_format(found->last_us, time);
    for (size_t i = 0; status >= 0 && i < found->place_count; i++)
        status = (annal_status)put_hit(hits, &found->places[i]);
    if (status >= 0)
        status = annal__buf_printf(&hits->sessions,
                                   "%s{\"session\":\"%.*s\",\"time\":\"%s\",\"events\":%" PRIu64
                                   ",\"score\":%.6g,\"why\":",
                                   hits->sessions.len > 0 ? ",\n" : "", ANNAL_FMT(found->session),
                                   time, found->events, found->score);
    return status < 0 ? status : annal__json_put(&hits->sessions, "?}", found->why);
}

/* Split the text at spaces into words; quotation marks enclose a phrase. Returns the number of
 * words. */
static size_t split_words(const char *text, annal_slice words[WORDS_MAX])
{
    size_t count = 0;
    for (const char *at = text; *at != '\0' && count < WORDS_MAX;) {
        bool quoted = *at == '"';
        at += quoted ? 1 : strspn(at, " ");
        size_t len = strcspn(at, quoted ? "\"" : " \"");
        if (len > 0)
            words[count++] = (annal_slice){at, len};
        at += len + (quoted && at[len] == '"' ? 1 : 0);
    }
    return count;
}

enum { ORDER_BEST, ORDER_NEWEST, ORDER_EVENTS };

static bool read_search(struct request *request, annal_search_options *options, int *order,
                        annal_slice **sessions, annal_slice **types)
{
    static const char *const orders[] = {"best", "newest", "events", NULL};
    struct time_range range;
    uint64_t places = 0;
    const char *role = http_query(request, "role"), *tool = http_query(request, "tool");
    options->limit = HITS_USUAL;
    if (!answer_limit(request, HITS_MAX, &options->limit) || !answer_range(request, &range) ||
        !answer_choice(request, "order", orders, order) ||
        !answer_number(request, "places", PLACES_MAX, &places) ||
        !answer_list(request, "session", 64, sessions, &options->session_count) ||
        !answer_list(request, "type", 64, types, &options->type_count))
        return false;
    options->since_us = range.since_us;
    options->until_us = range.until_us;
    options->sessions = *sessions;
    options->types = *types;
    /* few sessions: more places of each */
    options->places = (uint32_t)(places > 0 || options->session_count == 0 ? places : PLACES_MAX);
    options->order = *order == ORDER_NEWEST ? ANNAL_SEARCH_NEWEST : ANNAL_SEARCH_BEST;
    options->role = annal_slice_of(role);
    options->tool = annal_slice_of(tool);
    return true;
}

/* Restrict the search to the sessions that status, agent, model and dir select. Returns ANNAL_END
 * if they select no session. */
static annal_status choose_sessions(struct serve *serve, struct request *request,
                                    annal_search_options *options, struct session_ids *ids,
                                    annal_error *err)
{
    const struct session_match match = {.status = http_query(request, "status"),
                                        .agent = http_query(request, "agent"),
                                        .model = http_query(request, "model"),
                                        .project = http_query(request, "dir"),
                                        .sessions = options->sessions,
                                        .session_count = options->session_count};
    if (match.status == NULL && match.agent == NULL && match.model == NULL && match.project == NULL)
        return ANNAL_OK;
    annal_index *index = filler_index(serve->filler, (annal_slice){0});
    annal_status status = annal_index_catch_up(index, (annal_slice){0}, options->catch_up, err);
    if (status >= 0 || status == ANNAL_ERR_BUSY) /* not whole yet: as lists of sessions */
        status = session_ids_find(ids, index, &match, err);
    options->sessions = ids->ids;
    options->session_count = ids->count;
    return status >= 0 && ids->count == 0 ? ANNAL_END : status;
}

void ask_search(struct serve *serve, struct request *request)
{
    annal_slice words[WORDS_MAX], *sessions = NULL, *types = NULL;
    annal_error err = {0};
    const char *text = http_query(request, "q");
    const annal_catch_up_options catch_up = {.timeout_ms = SEARCH_WAIT_MS};
    annal_search_options options = {.words = words,
                                    .word_count = split_words(text == NULL ? "" : text, words),
                                    .mark_begin = MARK_BEGIN,
                                    .mark_end = MARK_END,
                                    .catch_up = &catch_up,
                                    .limits = {.run_ms = SEARCH_MS}};
    struct hits hits = {.out = &request->answer};
    struct session_ids ids = {0};
    int order = ORDER_BEST;
    if (read_search(request, &options, &order, &sessions, &types)) {
        annal_lag lag = {0};
        annal_status status = choose_sessions(serve, request, &options, &ids, &err);
        if (status >= 0 && annal__buf_append(&request->answer, "{\"hits\":[", 9) < 0)
            status = ANNAL_ERR_NOMEM;
        if (status == ANNAL_OK)
            status = order == ORDER_BEST
                         ? annal_search_session_each(serve->index, &options, put_session, &hits,
                                                     &lag, &err)
                         : annal_search_each(serve->index, &options, put_hit, &hits, &lag, &err);
        if (status >= 0)
            status = annal__json_put(&request->answer, "],\"sessions\":[#],\"behind_bytes\":#}",
                                     annal__buf_slice(&hits.sessions), JSON_U64(lag.bytes));
        answer_json(request, status, &err);
    }
    annal__buf_done(&hits.sessions);
    session_ids_done(&ids);
    annal__free(sessions);
    annal__free(types);
}

/* ---- Two sessions ---- */

struct section_rows {
    /* must be the first member: rows_json_row() receives the address of this struct */
    struct rows_json rows;
    const struct report_section *section;
};

/* Print the names of the section's columns as the column names of the answer, not those of the
 * SELECT. */
static int section_columns(void *arg, const annal_row *row)
{
    const struct section_rows *of = arg;
    const char *names[COLUMNS_MAX];
    for (size_t i = 0; i < row->count && i < COLUMNS_MAX; i++)
        names[i] = of->section->columns[i].name;
    return rows_json_columns(arg, &(annal_row){.count = row->count, .names = names});
}

/* Print a section of `annal diff A B`, where ids is [A,B], as a member of
 * {"sessions":{"columns":…,"rows":…},"tools":…,"first_difference":…}. */
static annal_status put_section(struct serve *serve, const struct report_section *section,
                                annal_slice ids, struct buf *out, annal_error *err)
{
    struct section_rows of = {.rows.out = out, .section = section};
    SCOPED_BUF sql = {0};
    const annal_value params[] = {text_value(ids),
                                  {.kind = ANNAL_VALUE_NULL},
                                  {.kind = ANNAL_VALUE_NULL},
                                  {.kind = ANNAL_VALUE_INTEGER, .integer = COMPARED_ROWS},
                                  text_value(ANNAL_SLICE("day")),
                                  text_value(annal_slice_of(section->panels))};
    const annal_sql_options options = {.params = params,
                                       .param_count = section->panels == NULL ? 4 : 6,
                                       .columns = section_columns};
    bool first = section == report_compare_sections;
    annal_status status = annal__buf_printf(out, "%s\"%s\":", first ? "{" : ",\n", section->name);
    if (status >= 0)
        status = report_sql(section, serve->index, &sql);
    if (status >= 0)
        status = annal_index_sql(serve->index, annal__buf_slice(&sql), &options, rows_json_row, &of,
                                 err);
    if (status >= 0)
        status = rows_json_end(&of.rows);
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}

void ask_diff(struct serve *serve, struct request *request)
{
    annal_error err = {0};
    SCOPED_BUF ids = {0};
    annal_session_info info;
    const char *names[] = {http_query(request, "a"), http_query(request, "b")};
    annal_status status = ANNAL_OK;
    for (int i = 0; status >= 0 && i < 2; i++)
        status = names[i] == NULL
                     ? annal__fail(&err, ANNAL_ERR_INVALID,
                                   "the parameters a and b must be the names of sessions")
                     : annal_session_info_get(serve->store, annal_slice_of(names[i]), &info, &err);
    if (status >= 0)
        status = annal__buf_printf(&ids, "[\"%s\",\"%s\"]", names[0], names[1]);
    const struct report_section *section = report_compare_sections;
    for (; status >= 0 && section->name != NULL; section++)
        status = put_section(serve, section, annal__buf_slice(&ids), &request->answer, &err);
    if (status >= 0)
        status = annal__buf_append(&request->answer, "}", 1);
    answer_json(request, status, &err);
}
