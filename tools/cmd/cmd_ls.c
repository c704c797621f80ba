/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/json.h"
#include "journal/base/slice.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/rows.h"
#include "tools/cli/store_open.h"
#include "tools/import/changes.h"
#include "tools/show/cost_note.h"
#include "tools/show/session_rows.h"
#include "tools/show/values.h"

#include <limits.h>
#include <string.h>

/* numbers of the columns; health is not a column of the query, because findings are read
 * separately */
enum {
    AT_DEPTH = SESSION_COLUMN_COUNT, /* depth in the tree of --tree, printed as an indent */
    AT_REFUSED,                      /* number of failed requests */
    AT_UNREADABLE,                   /* number of unreadable lines of the log */
    AT_UNKNOWN,                      /* number of logs whose layout the importer does not know */
    AT_PROJECT,
    AT_HOST,
    AT_PATH,
    AT_SOURCE, /* what happened to its log */
    AT_NAME,   /* what people noted on it (pack annotations) */
    AT_STARRED,
    AT_TAGS,
    AT_NOTES,
    LS_COLUMNS = SESSION_COLUMN_COUNT + 12,
    AT_BEFORE = LS_COLUMNS, /* on a terminal: the nearest ids before and after this id */
    AT_AFTER,
    AT_COPY /* whether the store has a copy of its deleted log */
};

/* time_from of a session whose newest event has an implausible time; its activity is taken from
 * other events */
#define IMPLAUSIBLE "implausible"

/* Conditions of the query. ?1 is the status, ?2 the agent, ?3 the model, ?4 and ?7 the times, ?5
 * the limit, ?8 the project, ?9 JSON of changes_look() if only lost sessions are listed, ?10
 * whether the list has no limit, ?11 not NULL if only sessions with a star are listed, ?12 a
 * tag. */
#define ACTIVE     SESSION_ACTIVE("s")
#define SURE       SESSION_SURE("s")
#define OF_AGENT   SESSION_FITS("s.agent_id", "?2")
#define OF_MODEL   SESSION_FITS("s.model", "?3")
#define IN_RANGE   SESSION_ACTIVE_IN("s", "?4", "?7")
#define OF_PROJECT SESSION_OF_PROJECT("s", "?8")
#define GONE       "SELECT value ->> 'session' FROM json_each(?9) WHERE value ->> 'lost'"
#define IF_LOST    " (?9 IS NULL OR s.id IN (" GONE "))"

/*
 * Choose the sessions in the order of the list, with only the columns that this needs; the next
 * query adds the other columns, for one row of this list after the other: a CROSS JOIN, and a list
 * with a limit of its own, so that SQLite keeps its order. A tree sorts again, by the place in the
 * list.
 */
#define FITTING                                                                                    \
    " FROM sessions s %s WHERE (?1 IS NULL OR s.status = ?1)"                                      \
    " AND" OF_AGENT " AND" OF_MODEL " AND" IN_RANGE " AND" OF_PROJECT " AND" IF_LOST               \
    " AND" SESSION_OWN("s") " AND" SESSION_STARRED("s", "?11") " AND" SESSION_TAGGED("s", "?12")

/* Format arguments: the place, the join for the sort key, the sort key, the limit, the end. */
static const char chosen[] =
    "chosen AS (%s"
    "SELECT s.rowid AS at, s.id, " ACTIVE " AS active, 0 AS place" FITTING
    " ORDER BY %s s.time_from IS '" SESSION_GUESSED "', active DESC, s.id LIMIT %s%s)";

/* The same for the usual order, which is read from an index, up to the limit. Format arguments: the
 * place, nothing, the limit, nothing, the limit, the end. */
static const char newest[] =
    "chosen AS (%sSELECT at, id, active, place FROM (SELECT * FROM (SELECT s.rowid AS at, s.id,"
    " s.last_activity_at AS active, 0 AS place, 0 AS guessed" FITTING " AND" SURE
    " ORDER BY s.last_activity_at DESC, s.id LIMIT %s)"
    " UNION ALL SELECT s.rowid, s.id, " ACTIVE ", 0, s.time_from IS '" SESSION_GUESSED "'" FITTING
    " AND s.id IN (SELECT id FROM doubtful)) ORDER BY guessed, active DESC, id LIMIT %s%s)";
#define PLACED "SELECT at, id, active, row_number() OVER () AS place FROM ("

/* The costs are those of usage_by_session. They are summed here, because SQLite computes that view
 * for all sessions before it chooses some. */
#define COSTS                                                                                      \
    "SELECT session_id, round(round(sum(cost_microusd) * 1e6) / 1e6) / 1e6 AS cost_usd,"           \
    " round(round(sum(computed_microusd) * 1e6) / 1e6) / 1e6 AS computed_cost_usd,"                \
    " sum(costed_tokens) AS costed_tokens FROM usage_costs GROUP BY session_id"

/* If all sessions are listed, their costs are those of read_costs() instead, because SQLite would
 * copy them into a table and an index before it lists the first session. */
#define NO_COSTS                                                                                   \
    "SELECT NULL AS session_id, NULL AS cost_usd, NULL AS computed_cost_usd,"                      \
    " NULL AS costed_tokens WHERE 0"

/* Format arguments: the costs, the expression for the project, the columns of the source, FROM, and
 * the joins for both. */
static const char listed[] =
    "costs AS (%s), listed AS (" SESSION_SELECT ","
    " coalesce(f.parent_session_id, s.parent_session_id) AS above, %s AS project,"
    " %s" SESSION_COLUMNS ", %s" SESSION_PARENTS SESSION_MARKED
    " LEFT JOIN costs c ON c.session_id = s.id %s %s WHERE" SESSION_OWN("s") ")";

#define FROM_CHOSEN                                                                                \
    "chosen.active, chosen.place FROM chosen CROSS JOIN sessions s ON s.rowid = chosen.at"

/* All sessions, in the usual order. Without a limit, SQLite sorts faster than it fills the list of
 * the chosen sessions. */
#define FROM_ALL ACTIVE " AS active FROM sessions s"
#define ORDER_OF_ALL                                                                               \
    " ORDER BY listed.time_from IS '" SESSION_GUESSED "', listed.active DESC, session_id"

/* the join for the project j.project, which must be computed for all sessions at once */
#define JOIN_PROJECT "LEFT JOIN session_projects j ON j.session_id = s.id"
#define JOIN_SOURCE  "LEFT JOIN session_latest_sources o ON o.session_id = s.id"

#define SHOWN                                                                                      \
    " SELECT session_id, status, events, total_turns, total_tokens, total_cost_usd,"               \
    " coalesce(nullif(active, ''), last_activity_at) AS last_activity_at, created_at, agent_id,"   \
    " model, parent_session_id, fork_session_id, fork_seq, title,"                                 \
    " iif(active <> last_activity_at, '" IMPLAUSIBLE "', time_from) AS time_from,"                 \
    " computed_cost_usd, costed_tokens, "

/* SQL for a number of events of some types, NULL if there are none. If the list has no limit, it is
 * computed only for those in the list of sessions with such events. */
#define COUNT_OF(condition, number)                                                                \
    ", CASE WHEN ?10 AND session_id NOT IN (SELECT session_id FROM event_index WHERE " condition   \
    ") THEN NULL ELSE " number " END"
#define COUNTED                                                                                    \
    COUNT_OF(REQUEST_FAILED,                                                                       \
             "(SELECT sum(events) FROM event_counts n WHERE n.session_id = listed.session_id"      \
             " AND " REQUEST_FAILED ")")                                                           \
    COUNT_OF("type = 'import.unreadable'", SESSION_UNREADABLE("listed.session_id"))                \
    COUNT_OF("type = 'import.unknown'", SESSION_UNKNOWN("listed.session_id"))                      \
    ", project, source_host, source_path,"                                                         \
    " (SELECT state FROM source_states x WHERE x.session_id = "                                    \
    "listed.session_id), name, starred, tags, notes,"                                              \
    " CASE WHEN ?6 THEN (SELECT max(id) FROM sessions WHERE id < "                                 \
    "session_id) END,"                                                                             \
    " CASE WHEN ?6 THEN (SELECT id FROM sessions WHERE id > session_id "                           \
    "AND"                                                                                          \
    "  substr(id, 1, length(session_id) + 1) <> session_id || '.' ORDER "                          \
    "BY id LIMIT 1) END,"                                                                          \
    " session_id IN (" GONE " AND value ->> 'copy')"

static const char flat[] = SHOWN "0" COUNTED " FROM listed";

/*
 * A session is the root of a tree if its parent is not in the list, or if it is its own parent. The
 * + makes the affinities equal, so that SQLite finds the children of a session by an index that it
 * builds, instead of reading the whole list for each session.
 */
static const char tree[] =
    ", below (id, depth, path) AS ("
    " SELECT session_id, 0, printf('%010d', place) FROM listed"
    " WHERE above IS NULL OR above = session_id OR above NOT IN (SELECT session_id FROM listed)"
    " UNION ALL SELECT l.session_id, b.depth + 1, b.path || printf('/%010d', l.place)"
    " FROM below b JOIN listed l ON l.above = +b.id AND l.session_id <> b.id)" SHOWN
    "coalesce(depth, 0)" COUNTED " FROM listed LEFT JOIN below ON id = session_id"
    " ORDER BY coalesce(path, printf('%010d', place)) LIMIT ?5";

/* The choices of --sort. */
#define SORTS "active|created|events|turns|tokens|cost|title|agent|model|project"
enum { SORT_PROJECT = 9 };

/* For each choice of --sort: the first sort key, and the join that this key needs. */
static const struct {
    const char *key, *join;
} orders[] = {
    {"", ""},
    {"s.time_from IS '" SESSION_GUESSED "', " SESSION_BEGAN("s") " DESC,", ""},
    {"s.events DESC,", ""},
    {"s.total_turns DESC,", ""},
    {"s.total_tokens DESC,", ""},
    {SESSION_COST_OF("s") " DESC,", ""},
    {"coalesce(m.name, s.title, p.title) IS NULL,"
     " coalesce(m.name, s.title, p.title) COLLATE NOCASE,",
     SESSION_PARENTS SESSION_MARKED},
    {"s.agent_id,", ""},
    {"s.model,", ""},
    {"j.project IS NULL, j.project,", JOIN_PROJECT},
};

/* Session ids are cut only on a terminal, and on the left, because ids of the same kind differ at
 * the end. This is the minimum width in columns. */
#define SESSION_LEAST 18

static const struct column columns[LS_COLUMNS] = {
    {.name = "session_id", .title = "SESSION", .least = SESSION_LEAST, .cut_left = true},
    {.name = "status", .title = "STATUS", .spare = 8},
    {.name = "events", .title = "EVENTS", .right = true, .spare = 6},
    {.name = "total_turns", .title = "TURNS", .right = true, .spare = 5},
    {.name = "total_tokens", .title = "TOKENS", .right = true, .spare = 3},
    {.name = "total_cost_usd", .title = "COST", .right = true, .spare = 2},
    {.name = "last_activity_at", .title = "ACTIVE"},
    {.name = "created_at"},
    {.name = "agent_id", .title = "AGENT", .flexible = true, .least = 11, .spare = 1},
    {.name = "model"},
    {.name = "parent_session_id"},
    {.name = "fork_session_id", .title = "FORK OF", .spare = 4},
    {.name = "fork_seq"},
    {.name = "title", .title = "TITLE", .flexible = true, .least = 20},
    {.name = "time_from"},
    {.name = "computed_cost_usd"},
    {.name = "costed_tokens"},
    {.name = "findings", .title = "HEALTH"},
    {.name = "failed_requests"},
    {.name = "unreadable_lines"},
    {.name = "unknown_layouts"},
    {.name = "project", .title = "PROJECT", .flexible = true, .least = 12, .cut_left = true},
    {.name = "source_host", .title = "HOST", .spare = 7},
    {.name = "source_path"},
    {.name = "source_state"},
    {.name = "name"},
    {.name = "starred"},
    {.name = "tags"},
    {.name = "notes"}};

struct ls {
    const struct args *args;
    annal_index *index;
    enum out_format format;
    struct table *table;
    struct column columns[LS_COLUMNS];
    struct cost_signs signs;
    struct buf without_price; /* JSON array of sessions without the closing bracket */
    struct session_findings findings;
    int64_t now_us;
    bool terminal;
    /* if all sessions are listed: their costs, in the order of the ids, which are in cost_ids */
    struct session_cost {
        size_t id, id_len;
        annal_value values[3]; /* SESSION_COST, SESSION_COMPUTED, SESSION_COSTED */
    } * costs;
    size_t cost_count;
    struct buf cost_ids;
    struct buf lost;     /* JSON of changes_look(), with --lost */
    struct buf restored; /* the first session whose log can be restored */
    bool any;            /* whether a session was printed */
};

static void time_cell(struct ls *ls, const annal_value *value, const annal_value *from)
{
    char text[HUMAN_BYTES];
    int64_t time_us;
    rows_cell(ls->table, value);
    if (annal_time_parse(value->bytes, &time_us, NULL) < 0)
        return;
    if (time_us < TIME_LEAST_US)
        table_shown(ls->table, "-");
    else if (from->kind == ANNAL_VALUE_TEXT && annal__slice_is(from->bytes, SESSION_GUESSED))
        table_shown(ls->table, "%.*s (file)", ls->terminal ? INT_MAX : (int)value->bytes.len,
                    ls->terminal ? human_age(text, time_us, ls->now_us) : value->bytes.ptr);
    else if (from->kind == ANNAL_VALUE_TEXT && annal__slice_is(from->bytes, IMPLAUSIBLE))
        table_shown(ls->table, "%s ?", human_age(text, time_us, ls->now_us));
    else if (ls->terminal)
        table_shown(ls->table, "%s", human_age(text, time_us, ls->now_us));
}

/* Return the indent in columns: two for each session above this session, for at most 8 levels. */
static int indent_of(const annal_row *row)
{
    int64_t depth = row->values[AT_DEPTH].integer;
    return 2 * (int)(depth < 8 ? depth : 8);
}

/* Show the cost. If it lacks a price, add the session to the list for the note below the table,
 * which names the models. */
static void show_cost(struct ls *ls, const annal_row *row)
{
    char text[COST_TEXT_BYTES];
    const annal_value *values = row->values;
    const struct cost cost = {&values[SESSION_COST], &values[SESSION_COMPUTED],
                              &values[SESSION_COSTED], values[SESSION_TOKENS].integer};
    table_shown(ls->table, "%s", cost_text(text, &cost, &ls->signs));
    if (!ls->terminal || cost.tokens <= cost.costed_tokens->integer)
        return;
    must_append(&ls->without_price, ls->without_price.len == 0 ? "[" : ",", 1);
    must_quote(&ls->without_price, values[SESSION_ID].bytes);
}

/* Return how many letters distinguish the id from the nearest ids before and after it, at least
 * `least`. */
static size_t letters_needed(const annal_row *row, size_t least)
{
    annal_slice id = row->values[SESSION_ID].bytes;
    for (int at = AT_BEFORE; at <= AT_AFTER; at++) {
        annal_slice other = row->values[at].bytes;
        size_t same = 0;
        while (same < id.len && same < other.len && id.ptr[same] == other.ptr[same])
            same++;
        least = same + 1 > least ? same + 1 : least;
    }
    return least < id.len ? least : id.len;
}

/*
 * On a terminal, print only the first letters of a UUID. The id of a sub-agent begins with the id
 * of the session above it: print "019e44d4….side-f4", or "….side-f4" if it is listed below that
 * session.
 */
static void show_id(struct ls *ls, const annal_row *row)
{
    enum { UUID_BYTES = 36, LETTERS_LEAST = 8 };
    annal_slice id = row->values[SESSION_ID].bytes;
    size_t shown = id.len;
    int indent = indent_of(row);
    bool uuid = ls->terminal && id.len >= UUID_BYTES && id.ptr[8] == '-' && id.ptr[13] == '-';
    if (uuid)
        shown = letters_needed(row, LETTERS_LEAST);
    if (uuid && shown > UUID_BYTES)
        table_shown(ls->table, "%*s%.*s\u2026%.*s", indent, "", indent > 0 ? 0 : LETTERS_LEAST,
                    id.ptr, (int)(shown - UUID_BYTES), id.ptr + UUID_BYTES);
    else if (indent > 0 || shown < id.len)
        table_shown(ls->table, "%*s%.*s", indent, "", (int)shown, id.ptr);
}

/* Show a star, the name or else the title, and the tags. */
static void show_title(struct ls *ls, const annal_row *row)
{
    SCOPED_BUF text = {0};
    annal_slice title = row->values[AT_NAME].bytes, tags = row->values[AT_TAGS].bytes;
    if (title.len == 0)
        title = row->values[SESSION_TITLE].bytes;
    must_append_text(&text, row->values[AT_STARRED].integer != 0 ? "\u2605 " : "");
    must_append_slice(&text, title.len > 0 ? title : ANNAL_SLICE("-"));
    for (size_t at = 0, len; at < tags.len; at += len + 1) {
        const char *end = memchr(tags.ptr + at, ' ', tags.len - at);
        len = end == NULL ? tags.len - at : (size_t)(end - tags.ptr) - at;
        must_printf(&text, " #%.*s", (int)len, tags.ptr + at);
    }
    table_shown(ls->table, "%.*s", ANNAL_FMT(annal__buf_slice(&text)));
}

static const char *shown_count(char text[HUMAN_BYTES * 2], uint64_t count, const char *what)
{
    char number[HUMAN_BYTES];
    snprintf(text, (size_t)HUMAN_BYTES * 2, "%s %s", human_count(number, count), what);
    return text;
}

/* Print the worst of damage, an unknown log layout, unreadable lines and failed requests. */
static void health_cells(struct ls *ls, const annal_row *row, uint64_t findings)
{
    char text[HUMAN_BYTES * 2];
    int64_t refused = row->values[AT_REFUSED].integer;
    int64_t unreadable = row->values[AT_UNREADABLE].integer;
    int64_t unknown = row->values[AT_UNKNOWN].integer;
    table_number(ls->table, findings);
    if (findings > 0)
        table_shown(ls->table, "%s",
                    shown_count(text, findings, findings == 1 ? "finding" : "findings"));
    else if (unknown > 0)
        table_shown(ls->table, "layout unknown");
    else if (unreadable > 0)
        table_shown(ls->table, "%s", shown_count(text, (uint64_t)unreadable, "unreadable"));
    else if (refused > 0)
        table_shown(ls->table, "%s", shown_count(text, (uint64_t)refused, "refused"));
    else if (annal__slice_is(row->values[AT_SOURCE].bytes, "deleted"))
        table_shown(ls->table, "log deleted");
    else
        table_shown(ls->table, "ok");
    table_signed(ls->table, refused);
    table_signed(ls->table, unreadable);
    table_signed(ls->table, unknown);
    for (int i = AT_PROJECT; i <= AT_NOTES; i++)
        rows_cell(ls->table, &row->values[i]);
}

/* ---- Costs ---- */

static int keep_cost(void *arg, const annal_row *row)
{
    struct ls *ls = arg;
    struct session_cost *cost = must_array_add(&ls->costs, &ls->cost_count, sizeof *cost);
    cost->id = ls->cost_ids.len;
    cost->id_len = row->values[0].bytes.len;
    must_append_slice(&ls->cost_ids, row->values[0].bytes);
    memcpy(cost->values, row->values + 1, sizeof cost->values);
    return 0;
}

static annal_status read_costs(struct ls *ls, annal_error *err)
{
    return annal_index_sql(ls->index, ANNAL_SLICE(COSTS " ORDER BY session_id"),
                           &(annal_sql_options){.as_indexed = true}, keep_cost, ls, err);
}

/* Put the costs of its session into a row, if read_costs() has read those of all sessions. */
static void set_cost(const struct ls *ls, annal_value *values)
{
    static const int columns_of[] = {SESSION_COST, SESSION_COMPUTED, SESSION_COSTED};
    annal_slice id = values[SESSION_ID].bytes;
    for (size_t low = 0, high = ls->cost_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        const struct session_cost *cost = &ls->costs[middle];
        size_t len = cost->id_len < id.len ? cost->id_len : id.len;
        int order = memcmp(ls->cost_ids.ptr + cost->id, id.ptr, len);
        if (order == 0)
            order = (cost->id_len > id.len) - (cost->id_len < id.len);
        for (int i = 0; i < 3 && order == 0; i++)
            values[columns_of[i]] = cost->values[i];
        low = order < 0 ? middle + 1 : order == 0 ? high : low;
        high = order > 0 ? middle : high;
    }
}

static int print_row(void *arg, const annal_row *found)
{
    struct ls *ls = arg;
    annal_value values[LS_COLUMNS + 3];
    const annal_row own = {.count = found->count, .names = found->names, .values = values};
    const annal_row *row = &own;
    memcpy(values, found->values, sizeof values);
    set_cost(ls, values);
    ls->any = true;
    uint64_t findings = session_findings_of(&ls->findings, row->values[SESSION_ID].bytes);
    for (int i = 0; i < SESSION_COLUMN_COUNT; i++) {
        const annal_value *value = &row->values[i];
        if (i == SESSION_EVENTS || i == SESSION_TURNS || i == SESSION_TOKENS)
            rows_count_cell(ls->table, value);
        else if (i == SESSION_ACTIVITY)
            time_cell(ls, value, &row->values[SESSION_TIME_FROM]);
        else if (ls->format == OUT_TABLE && (i == SESSION_TITLE || i == SESSION_COST))
            table_null(ls->table); /* shown below */
        else
            rows_cell(ls->table, value);
        if (i == SESSION_ID)
            show_id(ls, row);
        if (i == SESSION_TITLE)
            show_title(ls, row);
        if (i == SESSION_FORK && value->kind == ANNAL_VALUE_TEXT)
            table_shown(ls->table, "%.*s, %lld", ANNAL_FMT(value->bytes),
                        (long long)row->values[SESSION_FORK_SEQ].integer);
        if (i == SESSION_COST)
            show_cost(ls, row);
    }
    health_cells(ls, row, findings);
    if (row->values[AT_COPY].integer > 0 && ls->restored.len == 0)
        must_append_slice(&ls->restored, row->values[SESSION_ID].bytes);
    table_row(ls->table);
    return 0;
}

/* Hide the column of forks from people if the store has no forks, and the column of hosts if all
 * sessions have the same host. */
static int note_columns(void *arg, const annal_row *row)
{
    struct ls *ls = arg;
    if (row->values[0].integer == 0)
        ls->columns[SESSION_FORK].title = NULL;
    if (row->values[1].integer == 0)
        ls->columns[AT_HOST].title = NULL;
    return 0;
}

static annal_status choose_columns(struct ls *ls, annal_error *err)
{
    memcpy(ls->columns, columns, sizeof columns);
    ls->columns[SESSION_ID].flexible = ls->terminal;
    if (fields_choice(ls->args, "sort") != SORT_PROJECT)
        ls->columns[AT_PROJECT].title = NULL;
    return annal_index_sql(
        ls->index,
        ANNAL_SLICE("SELECT EXISTS (SELECT 1 FROM forks),"
                    " (SELECT count(DISTINCT source_host) > 1 FROM session_sources)"),
        &(annal_sql_options){.as_indexed = true}, note_columns, ls, err);
}

static int stop_at_first(void *arg, annal_slice session, uint64_t journal_bytes)
{
    (void)arg;
    (void)session;
    (void)journal_bytes;
    return 1;
}

/* Return whether the store has no sessions. Look at the journals, because the index may lag while
 * another process rebuilds it. */
static bool is_empty(annal_store *store)
{
    return annal_session_each(store, stop_at_first, NULL, NULL) == ANNAL_OK;
}

/* Return whether no option chooses some of the sessions. */
static bool lists_all(const struct args *args)
{
    static const char *const choosing[] = {"status", "agent", "model", "project", "since",
                                           "until",  "lost",  "limit", "starred", "tag"};
    bool all = true;
    for (size_t i = 0; i < sizeof choosing / sizeof *choosing; i++)
        all = all && !args_has(args, choosing[i]);
    return all;
}

static annal_status ask(struct ls *ls, uint64_t limit, annal_error *err)
{
    char since[ANNAL_TIME_BYTES], until[ANNAL_TIME_BYTES], project[PROJECT_BYTES];
    const struct args *args = ls->args;
    struct time_range range;
    int sort = fields_choice(args, "sort") < 0 ? 0 : fields_choice(args, "sort");
    SCOPED_BUF sql = {0};
    fields_range(args, &range);
    const annal_value params[] = {string_value(args_get(args, "status")),
                                  string_value(args_get(args, "agent")),
                                  string_value(args_get(args, "model")),
                                  time_or_null(range.since_us, since),
                                  integer_value((int64_t)limit),
                                  integer_value(ls->terminal),
                                  time_or_null(range.until_us, until),
                                  string_value(session_project(args_get(args, "project"), project)),
                                  text_or_null(annal__buf_slice(&ls->lost)),
                                  integer_value(!args_has(args, "limit")),
                                  string_value(args_has(args, "starred") ? "" : NULL),
                                  string_value(args_get(args, "tag"))};
    bool is_tree = args_has(args, "tree");
    bool has_project = ls->format != OUT_TABLE || ls->columns[AT_PROJECT].title != NULL;
    bool all = lists_all(args), sorts_all = all && !is_tree && sort == 0;
    const char *most = is_tree ? "-1" : "?5";
    bool has_source = ls->format != OUT_TABLE || ls->columns[AT_HOST].title != NULL;
    annal_status status = ANNAL_OK;
    must_printf(&sql, "WITH %s, ", session_marks(ls->index));
    must_append_text(&sql, !sorts_all && sort == 0 ? SESSION_DOUBTFUL ", " : "");
    if (!sorts_all && sort == 0)
        must_printf(&sql, newest, is_tree ? PLACED : "", "", most, "", most, is_tree ? ")" : "");
    else if (!sorts_all)
        must_printf(&sql, chosen, is_tree ? PLACED : "", orders[sort].join, orders[sort].key, most,
                    is_tree ? ")" : "");
    if (!all)
        status = session_costs_put(ls->index, "SELECT id FROM chosen", &sql, err);
    must_append_text(&sql, sorts_all ? "" : ", ");
    must_printf(&sql, listed, all ? NO_COSTS : COSTS, has_project ? "j.project" : "NULL",
                has_source ? "o.source_host, o.source_path"
                           : "NULL AS source_host, NULL AS source_path",
                sorts_all ? FROM_ALL : FROM_CHOSEN, has_project ? JOIN_PROJECT : "",
                has_source ? JOIN_SOURCE : "");
    must_append_text(&sql, is_tree ? tree : flat);
    must_append_text(&sql, sorts_all ? ORDER_OF_ALL : "");
    if (status >= 0)
        status = annal_index_sql(ls->index, annal__buf_slice(&sql),
                                 &(annal_sql_options){.params = params,
                                                      .param_count = sorts_all ? 10 : 12,
                                                      .as_indexed = true},
                                 print_row, ls, err);
    return status;
}

static annal_status print_note(struct ls *ls, annal_error *err)
{
    if (ls->without_price.len > 0)
        must_append_text(&ls->without_price, "]");
    const struct cost_scope scope = {.sessions = annal__buf_slice(&ls->without_price)};
    return cost_note_print(ls->index, &ls->signs, &scope, err);
}

/* Print the next thing to type after a list of lost sessions. */
static void print_restore(struct ls *ls)
{
    if (ls->format == OUT_TABLE && ls->restored.len > 0)
        printf("\nannal source restore %.*s    writes the log of the first of them again\n",
               ANNAL_FMT(annal__buf_slice(&ls->restored)));
    annal__buf_done(&ls->restored);
    annal__buf_done(&ls->lost);
}

static int list(struct ls *ls, annal_store *store, uint64_t limit)
{
    annal_error err = {0};
    ls->terminal = out_columns() > 0;
    if (choose_columns(ls, &err) < 0)
        return fail_error(&err);
    ls->table = table_new(ls->format, ls->columns, LS_COLUMNS);
    ls->now_us = annal__system_clock.wall_us(annal__system_clock.arg);
    annal_status status =
        session_findings_ask(ls->index, (annal_slice){0}, false, &ls->findings, &err);
    if (status == ANNAL_OK && args_has(ls->args, "lost"))
        status = changes_look(store, ls->index, &ls->lost, &err);
    if (status == ANNAL_OK && lists_all(ls->args))
        status = read_costs(ls, &err);
    if (status == ANNAL_OK)
        status = ask(ls, limit, &err);
    bool costs = status == ANNAL_OK && ls->terminal && table_shows(ls->table, SESSION_COST);
    table_free(ls->table);
    if (costs)
        status = print_note(ls, &err);
    annal__buf_done(&ls->without_price);
    annal__buf_done(&ls->cost_ids);
    annal__free(ls->costs);
    print_restore(ls);
    if (status == ANNAL_OK && !ls->any && ls->args->value_count == 0 && is_empty(store))
        say("the store has no sessions yet");
    int exit_status = status < 0 ? fail_error(&err) : (int)status;
    if (status == ANNAL_OK)
        exit_status = session_findings_say(&ls->findings, ls->args->value_count == 0);
    session_findings_done(&ls->findings);
    return exit_status;
}

static int run(const struct args *args)
{
    struct ls ls = {.args = args, .format = OUT_TABLE};
    uint64_t limit = fields_count(args, "limit", INT64_MAX);
    annal_store *store = NULL;
    if (limit > INT64_MAX)
        limit = INT64_MAX;
    int exit_status = fields_format(args, &ls.format);
    if (exit_status == 0)
        exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == 0)
        exit_status = catch_up_open(store, NULL, &ls.index);
    if (exit_status == 0)
        exit_status = list(&ls, store, limit);
    annal_index_close(ls.index);
    return store_close(store, exit_status);
}

static const struct field fields[] = {
    OPTION("status", "S", FIELD_TEXT, NULL,
           "only sessions with this status, such as idle or ended"),
    OPTION("agent", "GLOB", FIELD_TEXT, NULL,
           "part of the agent's name, or pattern with *, ?, [abc]"),
    OPTION("model", "GLOB", FIELD_TEXT, NULL, "model, in the same way"),
    PROJECT_OPTION,
    OPTION("since", "T", FIELD_TIME, NULL, "active at or after this time; ISO 8601, 2h or today"),
    OPTION("until", "T", FIELD_TIME, NULL, "active before this time"),
    OPTION_WITH("sort", "BY", FIELD_CHOICE, NULL, "sort column, largest or newest first (active)",
                .choices = SORTS),
    FLAG("starred", NULL, "only sessions with a star ('annal note star')"),
    OPTION("tag", "TAG", FIELD_TEXT, NULL, "only sessions with this tag, or an event with it"),
    FLAG("lost", NULL, "only sessions whose log was deleted"),
    FLAG("tree", NULL, "sub-agents and forks below their parent session"),
    OPTION_WITH("limit", "N", FIELD_COUNT, NULL, "maximum number of sessions", .least = 1),
    OPTION_WITH("format", "FORMAT", FIELD_CHOICE, NULL, "output format (table)",
                .choices = "jsonl|csv|table"),
    FIELDS_END};

const struct command cmd_ls = {COMMAND("ls", "list the sessions, newest first", ls, fields, run)};
