/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of sessions, page by page.
 *
 * A cursor is the position after the last row of a page: the value by which the list is sorted and
 * the session's id, as "number:id" or "'text:id". So a page does not change when rows are inserted
 * before it, and every page costs the same. Totals of usage are joined only to the rows of a page.
 *
 * The usual list, newest first and without a filter, is read from the index on last_activity_at up
 * to the end of the page. For any other list the sessions that fit are found and sorted first.
 */
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/slice.h"
#include "tools/cli/rows.h"
#include "tools/serve/serve.h"
#include "tools/show/session_rows.h"
#include "tools/show/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_USUAL 100u
#define LIMIT_MAX   1000u

static const char *const sorts[] = {"activity", "started", "tokens", "cost",
                                    "events",   "turns",   "title",  NULL};
enum { SORT_TITLE = 6 };
static const char *const keys[] = {
    "iif(s.time_from IS '" SESSION_GUESSED "', '', " SESSION_ACTIVE("s") ")",
    "iif(s.time_from IS '" SESSION_GUESSED "', '', " SESSION_BEGAN("s") ")",
    "coalesce(s.total_tokens, 0)",
    "coalesce(" SESSION_COST_OF("s") ", -1.0)",
    "s.events",
    "s.total_turns",
    "coalesce(s.title, p.title, '\U0010FFFF') COLLATE NOCASE"};

/* The filters. ?1 to ?9: status, agent, model, since, until, dir, provider, text to search for,
 * parent. ?10 and ?11: value and id of the row before the page. */
static const char conditions[] =
    " WHERE (?1 IS NULL OR s.status = ?1)"
    " AND (?2 IS NULL OR s.agent_id GLOB ?2 OR instr(s.agent_id, ?2) > 0)"
    " AND (?3 IS NULL OR s.model GLOB ?3 OR instr(s.model, ?3) > 0)"
    " AND" SESSION_ACTIVE_IN(
        "s", "?4",
        "?5") " AND (?6 IS NULL OR s.working_directory = ?6 OR s.working_directory GLOB ?6 || '/*'"
              " OR" SESSION_OF_PROJECT(
                  "s", "?6") ")"
                             " AND (?7 IS NULL OR s.provider = ?7)"
                             " AND (?8 IS NULL OR instr(lower(coalesce(s.title, p.title, '') || "
                             "char(10) || s.id "
                             "|| char(10)"
                             " || coalesce(s.working_directory, '')), lower(?8)) > 0)"
                             " AND (?9 IS NULL OR coalesce(f.parent_session_id, "
                             "s.parent_session_id) = ?9)"
                             " AND" SESSION_OWN("s") " AND" SESSION_STARRED(
                                 "s", "?10") " AND" SESSION_TAGGED("s", "?11");

/* Further conditions: the sub-agents and forks of ?9. */
static const char of_parent[] =
    " AND s.id IN (SELECT session_id FROM forks WHERE parent_session_id = ?9"
    " UNION ALL SELECT id FROM sessions WHERE parent_session_id = ?9)";

static const char own[] = SESSION_OWN("s");

/* Condition for sessions without a parent that exists. */
static const char roots[] = " AND NOT EXISTS (SELECT 1 FROM sessions above WHERE above.id <> s.id"
                            " AND above.id = coalesce(f.parent_session_id, s.parent_session_id))";

static const char failed[] = " AND" SESSION_FAILED("s");

/* SQL that lists, for each session of the page, the session and all its descendants. UNION ends
 * cycles: a session is listed once per root. */
static const char below[] =
    ", down (root, id) AS (SELECT page_id, page_id FROM page"
    " UNION SELECT down.root, f.session_id FROM down JOIN forks f ON f.parent_session_id = down.id"
    " UNION SELECT down.root, s.id FROM down JOIN sessions s ON s.parent_session_id = down.id"
    " WHERE NOT EXISTS (SELECT 1 FROM forks f WHERE f.session_id = s.id))";
static const char alone[] = ", down (root, id) AS (SELECT page_id, page_id FROM page)";

/* SQL of the cost of the sessions in `down`, from the tables of session_costs_put(). */
static const char costs[] =
    ", costs AS MATERIALIZED (SELECT session_id,"
    " round(round(sum(cost_microusd) * 1e6) / 1e6) / 1e6 AS cost_usd,"
    " round(round(sum(computed_microusd) * 1e6) / 1e6) / 1e6 AS computed_cost_usd,"
    " sum(costed_tokens) AS costed_tokens FROM usage_costs GROUP BY session_id)";

/* SQL of the totals of each session of the page that has descendants, over the session and all its
 * descendants, as JSON. */
static const char trees[] =
    ", trees AS MATERIALIZED (SELECT root, json_object('sessions', count(*) - 1,"
    " 'events', sum(s.events), 'total_tokens', sum(s.total_tokens), 'cost_usd', sum(c.cost_usd),"
    " 'computed_cost_usd', sum(c.computed_cost_usd),"
    " 'first_at', min(s.created_at), 'last_at', max(s.last_activity_at)) AS tree"
    " FROM down JOIN sessions s ON s.id = down.id"
    " LEFT JOIN costs c ON c.session_id = s.id GROUP BY root HAVING count(*) > 1)";

/* SQL of the usual list: page, and the number of its sessions, total. Sessions whose time is a
 * guess, or cannot be right, are few, and have other keys. Format arguments: own and the
 * condition for roots; the key of such a session, own, the condition for roots, the key again. The
 * text ends within the SELECT of total. */
static const char newest[] =
    ", " SESSION_DOUBTFUL ","
    " page AS MATERIALIZED (SELECT * FROM ("
    "SELECT * FROM (SELECT s.id AS page_id, s.last_activity_at AS page_key" SESSION_JOINED
    " WHERE%s%s AND" SESSION_SURE(
        "s") " AND s.last_activity_at <= coalesce(?12, 'Z')"
             " AND (?13 IS NULL OR (s.last_activity_at, s.id) < (?12, ?13))"
             " ORDER BY s.last_activity_at DESC, s.id DESC LIMIT ?14)"
             " UNION ALL SELECT s.id, %s" SESSION_JOINED
             " WHERE%s%s AND s.id IN (SELECT id FROM doubtful)"
             " AND (?13 IS NULL OR (%s, s.id) < (?12, ?13))"
             ") ORDER BY page_key DESC, page_id DESC LIMIT ?14),"
             " total (total) AS (SELECT (SELECT count(*) FROM sessions) - (SELECT count(*) FROM "
             "marks"
             " JOIN sessions s ON s.id = 'notes_' || marks.session_id)";

/* SQL of the number of sessions that are not roots, as terms of total. Format arguments: own
 * (twice). */
static const char not_roots[] =
    " - (SELECT count(*) FROM forks f JOIN sessions s ON s.id = f.session_id WHERE%s"
    " AND s.id <> f.parent_session_id AND f.parent_session_id IN (SELECT id FROM sessions))"
    " - (SELECT count(*) FROM sessions s WHERE s.parent_session_id IS NOT NULL AND%s"
    " AND s.id <> s.parent_session_id AND s.parent_session_id IN (SELECT id FROM sessions)"
    " AND s.id NOT IN (SELECT session_id FROM forks))";

/* SQL of any list. Format arguments: the key by which the list is sorted, conditions, how keys
 * compare, the order (twice). */
static const char chosen[] =
    ", chosen AS MATERIALIZED (SELECT s.id AS page_id, %s AS page_key" SESSION_JOINED "%s%s%s%s),"
    " total (total) AS (SELECT count(*) FROM chosen),"
    " page AS MATERIALIZED (SELECT * FROM chosen"
    " WHERE (?13 IS NULL OR (page_key, page_id) %s (?12, ?13))"
    " ORDER BY page_key %s, page_id %s LIMIT ?14)";

enum { PARENT = 8, STARRED, CONDITIONS = 11, LIMIT = CONDITIONS + 2, PARAMS };

struct listing {
    struct serve *serve;
    struct request *request;
    annal_index *index;
    bool as_indexed; /* whether the index is read while it is filled */
    annal_lag lag;   /* what the index lacked when it was read */
    struct session_findings findings;
    const char *marks; /* a value of session_marks() */
    annal_value params[PARAMS];
    char since[ANNAL_TIME_BYTES], until[ANNAL_TIME_BYTES];
    int sort;
    uint64_t limit;
    bool roots, trees;
    bool failed; /* whether only sessions in which something failed are listed */
    uint64_t rows;
    struct buf cursor; /* cursor of the last row of the page */
    int64_t total;
};

static bool read_times(struct listing *listing)
{
    struct time_range range;
    if (!answer_range(listing->request, &range))
        return false;
    listing->params[3] = time_or_null(range.since_us, listing->since);
    listing->params[4] = time_or_null(range.until_us, listing->until);
    return true;
}

/* Read the parameter cursor: "12:id", "1.5:id" or "'text:id". A session id contains no colon. If it
 * is invalid, answers the request and returns false. */
static bool read_cursor(struct listing *listing)
{
    const char *text = http_query(listing->request, "cursor");
    const char *colon = text == NULL ? NULL : strrchr(text, ':');
    char *end = NULL;
    annal_value *key = &listing->params[CONDITIONS];
    if (text == NULL)
        return true;
    bool good = colon != NULL;
    if (good && *text == '\'') {
        *key = (annal_value){.kind = ANNAL_VALUE_TEXT,
                             .bytes = {text + 1, (size_t)(colon - text) - 1}};
    } else if (good) {
        *key = (annal_value){.kind = ANNAL_VALUE_REAL, .real = strtod(text, &end)};
        good = end == colon;
    }
    if (!good) {
        answer_error(listing->request, 400, "invalid",
                     "cursor must be the value of next in an earlier answer");
        return false;
    }
    key[1] = string_value(colon + 1);
    return true;
}

static bool read_listing(struct listing *listing)
{
    static const char *const names[CONDITIONS] = {"status",   "agent", "model",  NULL, NULL, "dir",
                                                  "provider", "q",     "parent", NULL, "tag"};
    for (int i = 0; i < CONDITIONS; i++)
        listing->params[i] =
            string_value(names[i] == NULL ? NULL : http_query(listing->request, names[i]));
    listing->limit = LIMIT_USUAL;
    return read_times(listing) && read_cursor(listing) &&
           answer_limit(listing->request, LIMIT_MAX, &listing->limit) &&
           answer_choice(listing->request, "sort", sorts, &listing->sort);
}

/* ---- Rows ---- */

/* The columns after those that are shown, from the end: the totals of the tree, the value by which
 * the list is sorted, the number of sessions. */
enum { TREE = 1, KEY, TOTAL };

static const annal_value *from_end(const annal_row *row, int column)
{
    return &row->values[row->count - (size_t)column];
}

/* Save the cursor of a row. */
static annal_status note_cursor(struct listing *listing, const annal_row *row)
{
    const annal_value *key = from_end(row, KEY);
    annal_slice id = row->values[SESSION_ID].bytes;
    struct buf *cursor = &listing->cursor;
    annal__buf_clear(cursor);
    if (key->kind == ANNAL_VALUE_TEXT)
        return annal__buf_printf(cursor, "'%.*s:%.*s", ANNAL_FMT(key->bytes), ANNAL_FMT(id));
    annal_status status = rows_value_json(cursor, key);
    return status < 0 ? status : annal__buf_printf(cursor, ":%.*s", ANNAL_FMT(id));
}

static int add_row(void *arg, const annal_row *row)
{
    struct listing *listing = arg;
    listing->total = from_end(row, TOTAL)->integer;
    if (row->values[SESSION_ID].kind == ANNAL_VALUE_NULL) /* the page is empty */
        return 0;
    if (listing->rows++ == listing->limit)
        /* the row after the limit is not printed: its existence means that there is a next page */
        return 0;
    annal_status status =
        listing->rows > 1 ? annal__buf_append(&listing->request->answer, ",\n", 2) : ANNAL_OK;
    if (status >= 0)
        status = session_row_json(&listing->request->answer, row, row->count - TOTAL,
                                  &listing->findings, from_end(row, TREE));
    return status < 0 ? status : note_cursor(listing, row);
}

/* Return whether the list is the usual one: newest first, and without a filter. */
static bool is_usual(const struct listing *listing)
{
    bool usual = listing->sort == 0 && !listing->failed;
    for (int i = 0; usual && i < CONDITIONS; i++)
        usual = listing->params[i].kind == ANNAL_VALUE_NULL;
    return usual;
}

/* Append the tables page, the ids of the page in order, and total. */
static annal_status put_page(const struct listing *listing, struct buf *sql)
{
    const char *root = listing->roots ? roots : "";
    const char *order = listing->sort == SORT_TITLE ? "ASC" : "DESC";
    if (is_usual(listing)) {
        annal_status status =
            annal__buf_printf(sql, newest, own, root, keys[0], own, root, keys[0]);
        if (status >= 0 && listing->roots)
            status = annal__buf_printf(sql, not_roots, own, own);
        return status < 0 ? status : annal__buf_append(sql, ")", 1);
    }
    return annal__buf_printf(sql, chosen, keys[listing->sort], conditions, root,
                             listing->failed ? failed : "",
                             listing->params[PARENT].kind == ANNAL_VALUE_NULL ? "" : of_parent,
                             listing->sort == SORT_TITLE ? ">" : "<", order, order);
}

/* Ask for the rows of the page in order, and the number of all sessions that fit. */
static annal_status ask(struct listing *listing, annal_error *err)
{
    SCOPED_BUF sql = {0};
    const char *order = listing->sort == SORT_TITLE ? "ASC" : "DESC";
    listing->params[LIMIT] =
        (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = (int64_t)listing->limit + 1};
    annal_status status = annal__buf_printf(&sql, "WITH RECURSIVE %s", listing->marks);
    if (status >= 0)
        status = put_page(listing, &sql);
    if (status >= 0)
        status = annal__buf_printf(&sql, "%s", listing->trees ? below : alone);
    if (status >= 0)
        status = session_costs_put(listing->index, "SELECT id FROM down", &sql, err);
    if (status >= 0)
        status = annal__buf_printf(
            &sql,
            "%s%s " SESSION_SELECT SESSION_MORE SESSION_COLUMNS ", total, page_key, %s AS tree"
            " FROM total LEFT JOIN page LEFT JOIN sessions s ON s.id = page_id" SESSION_PARENTS
                SESSION_MARKED " LEFT JOIN costs c ON c.session_id = s.id%s"
            " ORDER BY page_key %s, page_id %s",
            costs, listing->trees ? trees : "", listing->trees ? "tree" : "NULL",
            listing->trees ? " LEFT JOIN trees ON trees.root = s.id" : "", order, order);
    status = status == ANNAL_ERR_NOMEM
                 ? annal__fail(err, status, "list the sessions: out of memory")
             : status < 0 ? status
                          : annal_index_sql(listing->index, annal__buf_slice(&sql),
                                            &(annal_sql_options){.params = listing->params,
                                                                 .param_count = PARAMS,
                                                                 .as_indexed = listing->as_indexed,
                                                                 .out_lag = &listing->lag},
                                            add_row, listing, err);
    return status;
}

static annal_status end_page(struct listing *listing)
{
    struct buf *out = &listing->request->answer;
    bool more = listing->rows > listing->limit;
    annal_status status = annal__json_put(
        out, "],\"next\":!,\"total\":#,\"unread\":",
        more ? annal__buf_slice(&listing->cursor) : (annal_slice){0}, JSON_I64(listing->total));
    if (status >= 0)
        status = filler_json(listing->serve->filler, out);
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}

static void answer_listing(struct listing *listing)
{
    annal_error err = {0};
    listing->index = filler_index(listing->serve->filler, listing->request->id);
    listing->as_indexed = listing->index != listing->serve->index;
    listing->marks = session_marks(listing->index);
    annal_status status = session_findings_read(listing->index, &listing->findings, &err);
    if (status >= 0)
        status = annal__buf_append(&listing->request->answer, "{\"sessions\":[", 13);
    if (status >= 0)
        status = ask(listing, &err);
    if (listing->lag.sessions > 0)
        filler_wake(listing->serve->filler,
                    &(struct filler_left){.sessions = listing->lag.sessions,
                                          .of = (uint64_t)listing->total + listing->lag.sessions,
                                          .bytes = listing->lag.bytes});
    if (status >= 0)
        status = end_page(listing);
    answer_json(listing->request, status, &err);
    session_findings_done(&listing->findings);
    annal__buf_done(&listing->cursor);
}

void serve_sessions_list(struct serve *serve, struct request *request)
{
    static const char *const no_yes[] = {"0", "1", NULL};
    struct listing listing = {.serve = serve, .request = request};
    int tree = 0, only_failed = 0, starred = 0;
    if (!read_listing(&listing) || !answer_choice(request, "tree", no_yes, &tree) ||
        !answer_choice(request, "failed", no_yes, &only_failed) ||
        !answer_choice(request, "starred", no_yes, &starred))
        return;
    listing.params[STARRED] = string_value(starred == 1 ? "1" : NULL);
    listing.failed = only_failed == 1;
    listing.roots = listing.trees = tree == 1;
    answer_listing(&listing);
}

/* Answer with the sub-agents and forks of a session. */
void serve_sessions_children(struct serve *serve, struct request *request)
{
    struct listing listing = {.serve = serve, .request = request, .trees = true};
    if (!read_listing(&listing))
        return;
    listing.params[PARENT] = text_value(request->id);
    answer_listing(&listing);
}

/* ---- A single session ---- */

static int add_one(void *arg, const annal_row *row)
{
    struct listing *listing = arg;
    listing->rows++;
    return session_row_json(&listing->request->answer, row, row->count, &listing->findings, NULL);
}

void serve_sessions_one(struct serve *serve, struct request *request)
{
    struct listing listing = {.serve = serve, .request = request};
    const annal_value id = text_value(request->id);
    SCOPED_BUF sql = {0};
    annal_error err = {0};
    annal_session_info info;
    annal_status status = annal_session_info_get(serve->store, request->id, &info, &err);
    listing.index = filler_index(serve->filler, request->id);
    if (status >= 0)
        status = session_findings_read(listing.index, &listing.findings, &err);
    if (status >= 0)
        status =
            annal__buf_printf(&sql, "WITH %s " SESSION_ONE_MARKED, session_marks(listing.index));
    if (status >= 0)
        status = annal_index_sql(listing.index, annal__buf_slice(&sql),
                                 &(annal_sql_options){.params = &id, .param_count = 1}, add_one,
                                 &listing, &err);
    session_findings_done(&listing.findings);
    if (status >= 0 && listing.rows == 0)
        status = annal__fail(&err, ANNAL_ERR_BUSY, "session '%.*s' is not in the index yet",
                             ANNAL_FMT(request->id));
    answer_json(request, status, &err);
}

/* ---- Values to filter by ---- */

struct facets {
    struct buf *out;
    char name[16];
    uint64_t count;
};

/* Print a value of a filter and its number of sessions; the row has the name of the filter, the
 * value and the number. */
static int put_facet(void *arg, const annal_row *row)
{
    struct facets *facets = arg;
    bool same = facets->count > 0 && annal__slice_is(row->values[0].bytes, facets->name);
    annal_status status = ANNAL_OK;
    if (!same) {
        snprintf(facets->name, sizeof facets->name, "%.*s", ANNAL_FMT(row->values[0].bytes));
        status = annal__buf_printf(facets->out, "%s\"%s\":[", facets->count > 0 ? "],\n" : "{",
                                   facets->name);
    }
    if (status >= 0)
        status = annal__buf_append(facets->out, same ? ",[" : "[", same ? 2 : 1);
    if (status >= 0)
        status = rows_value_json(facets->out, &row->values[1]);
    facets->count++;
    return status < 0 ? status
                      : annal__buf_printf(facets->out, ",%" PRId64 "]", row->values[2].integer);
}

#define FACET(name, column)                                                                        \
    " UNION ALL SELECT * FROM (SELECT '" name "', " column ", count(*) FROM own WHERE " column     \
    " <> '' GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT 200)"

/* Format arguments: session_marks(), own. */
static const char each_facet[] =
    "WITH %s, own AS NOT MATERIALIZED (SELECT * FROM sessions s WHERE%s)"
    " SELECT '', '', 0 WHERE 0" /* clang-format off */
    FACET("status", "status")
    FACET("agent", "agent_id")
    FACET("model", "model")
    FACET("provider", "provider")
    FACET("dir", "working_directory"); /* clang-format on */

void serve_sessions_facets(struct serve *serve, struct request *request)
{
    annal_index *index = filler_index(serve->filler, (annal_slice){0});
    SCOPED_BUF sql = {0};
    struct facets facets = {.out = &request->answer};
    annal_error err = {0};
    annal_status status = annal__buf_printf(&sql, each_facet, session_marks(index), own);
    status = status < 0
                 ? annal__fail(&err, status, "list the values of filters: out of memory")
                 : annal_index_sql(index, annal__buf_slice(&sql), NULL, put_facet, &facets, &err);
    if (status >= 0)
        status = facets.count > 0 ? annal__buf_append(facets.out, "]}", 2)
                                  : annal__buf_append(facets.out, "{}", 2);
    answer_json(request, status, &err);
}
