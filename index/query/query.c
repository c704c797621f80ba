/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event queries: one SELECT over event_index, and each event read from its journal. A range of one
 * session needs no SELECT: it is read from its journal only, up to the first event that is damaged
 * or missing.
 */
#include "index/query/query.h"
#include "index/db/bound.h"
#include "index/db/db.h"
#include "index/follow/history.h"
#include "index/index.h"
#include "index/query/event_rows.h"
#include "index/sys/damages.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <annal/journal.h>

#include <stdio.h>
#include <string.h>

#define FILTER_TYPES_MAX 500

/* A query for a range of one session, which is read from its journal without the index. */
struct range {
    /* cursor in the session's journal; NULL: the query is a SELECT, or continues as one */
    annal_cursor *cursor;
    char session[ANNAL_SESSION_ID_BYTES_MAX];
    size_t session_len;
    uint64_t next_seq, to_seq;
    uint32_t timeout_ms;
};

struct annal_query {
    annal_index *index;
    struct range range;
    sqlite3 *db;
    bool clean; /* whether the connection is unchanged, with nothing in temp (readers.h, rule 2) */
    sqlite3_stmt *stmt;
    struct event_rows found; /* rows of the SELECT */
    /* SELECT of the user's expression, which is run for each event that is read; or NULL */
    sqlite3_stmt *where;
    annal_limits limits; /* limits for the evaluation of `where` */
    /* SELECT of events that were damaged already when they were indexed; it runs after the rows */
    sqlite3_stmt *damages;
    bool at_damages, ended;
    bool one_session, descending;
    uint64_t limit, rows, last_seq;
    annal_lag lag;
};

/* ---- The SELECT ---- */

annal_status annal__query_check(const annal_filter *filter, annal_error *err)
{
    for (size_t i = 0; i < filter->session_count; i++) {
        annal_status status = annal_session_id_check(filter->sessions[i], err);
        if (status < 0)
            return status;
    }
    if (filter->type_count > FILTER_TYPES_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT, "a query takes at most %d types",
                           FILTER_TYPES_MAX);
    for (size_t i = 0; i < filter->type_count; i++)
        if (filter->types[i].len == 0 || filter->types[i].len > 200 ||
            memchr(filter->types[i].ptr, '\0', filter->types[i].len) != NULL)
            return annal__fail(err, ANNAL_ERR_INVALID,
                               "a type in a filter must have 1 to 200 bytes, without a NUL byte");
    return ANNAL_OK;
}

static bool is_pattern(annal_slice type)
{
    for (size_t i = 0; i < type.len; i++)
        if (strchr("*?[", type.ptr[i]) != NULL)
            return true;
    return false;
}

static const char event_columns[] = "session_id, seq, type, timestamp, offset, length";

/*
 * Append the table of the rows. If there are forks, it contains the rows of each part of each
 * history; the last columns are the session of the part's journal and its first seq. CROSS JOIN
 * makes the parts the outer loop, so that the rows of one history are ordered by seq and need no
 * sorting.
 */
static annal_status put_source(struct buf *sql, const struct history *history, bool with_rest)
{
    static const char *const tables[] = {"event_index", "temp.rest"};
    if (!history->forked && !with_rest)
        return annal__buf_printf(
            sql, "(SELECT *, session_id AS journal, 0 AS from_seq FROM event_index)");
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < (with_rest ? 2 : 1); i++) {
        status = annal__buf_printf(sql, "%s", i == 0 ? "(" : " UNION ALL ");
        if (status >= 0 && !history->forked)
            status =
                annal__buf_printf(sql, "SELECT %s, session_id AS journal, 0 AS from_seq FROM %s",
                                  event_columns, tables[i]);
        else if (status >= 0)
            status = annal__buf_printf(
                sql,
                "SELECT p.session_id AS session_id, e.seq AS seq, e.type AS type, "
                "e.timestamp AS timestamp, e.offset AS offset, e.length AS length, "
                "p.journal AS journal, p.from_seq AS from_seq FROM temp.parts p CROSS JOIN %s e "
                "ON e.session_id = p.journal AND e.seq BETWEEN p.from_seq AND p.to_seq",
                tables[i]);
    }
    return annal__buf_printf(sql, ")");
}

annal_status annal__query_put_types(struct buf *sql, const char *column, const annal_slice *types,
                                    size_t count)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < count; i++)
        status = annal__buf_printf(sql, "%s %s %s ?%zu", i == 0 ? " AND (" : " OR", column,
                                   is_pattern(types[i]) ? "GLOB" : "=", i + 7);
    return status < 0 || count == 0 ? status : annal__buf_printf(sql, ")");
}

/* Append conditions with ?1, the session or a JSON array of sessions, whose ids need no quoting,
 * and the types from ?7 on. */
annal_status annal__query_put_names(struct buf *sql, const annal_filter *filter,
                                    const struct history *history)
{
    annal_status status = ANNAL_OK;
    if (filter->session_count == 1)
        status = annal__buf_printf(sql, " AND session_id = ?1");
    else if (!history->forked && filter->session_count > 1)
        status = annal__buf_printf(sql, " AND session_id IN (SELECT value FROM json_each(?1))");
    return status < 0 ? status
                      : annal__query_put_types(sql, "type", filter->types, filter->type_count);
}

static annal_status put_bounds(struct buf *sql, const annal_filter *filter)
{
    annal_status status = ANNAL_OK;
    if (filter->from_seq > 0)
        status = annal__buf_printf(sql, " AND seq >= ?2");
    if (status >= 0 && filter->to_seq > 0)
        status = annal__buf_printf(sql, " AND seq <= ?3");
    if (status >= 0 && filter->since_us != 0)
        status = annal__buf_printf(sql, " AND timestamp >= ?4");
    if (status >= 0 && filter->until_us != 0)
        status = annal__buf_printf(sql, " AND timestamp < ?5");
    return status;
}

annal_status annal__query_put_from(struct buf *sql, const annal_filter *filter,
                                   const struct history *history, bool with_rest)
{
    annal__buf_printf(sql, " FROM ");
    put_source(sql, history, with_rest);
    annal_status status = annal__buf_printf(sql, " WHERE 1");
    if (status >= 0)
        status = annal__query_put_names(sql, filter, history);
    return status < 0 ? status : put_bounds(sql, filter);
}

static annal_status put_order(struct buf *sql, const annal_filter *filter,
                              const struct history *history)
{
    const char *down = filter->descending ? " DESC" : "";
    if (filter->session_count != 1 && filter->order == ANNAL_ORDER_COMMIT)
        return annal__buf_printf(sql,
                                 " ORDER BY MAX(timestamp) OVER (PARTITION BY session_id ORDER BY "
                                 "seq)%s, session_id%s, seq%s",
                                 down, down, down);
    if (filter->session_count != 1)
        return annal__buf_printf(sql, " ORDER BY timestamp%s, session_id%s, seq%s", down, down,
                                 down);
    if (history->forked)
        return annal__buf_printf(sql, " ORDER BY from_seq%s, seq%s", down, down);
    return annal__buf_printf(sql, " ORDER BY seq%s", down);
}

static annal_status put_sessions(struct buf *json, const annal_filter *filter)
{
    annal_status status = annal__buf_append(json, "[", 1);
    for (size_t i = 0; status >= 0 && i < filter->session_count; i++)
        status = annal__buf_printf(json, "%s\"%.*s\"", i == 0 ? "" : ",",
                                   ANNAL_FMT(filter->sessions[i]));
    return annal__buf_append(json, "]", 1);
}

static sqlite3_int64 clamp(uint64_t number)
{
    return number > INT64_MAX ? INT64_MAX : (sqlite3_int64)number;
}

annal_status annal__query_bind(sqlite3_stmt *stmt, const annal_filter *filter, annal_error *err)
{
    char since[ANNAL_TIME_BYTES], until[ANNAL_TIME_BYTES];
    SCOPED_BUF json = {0};
    annal_slice sessions = filter->session_count == 1 ? filter->sessions[0] : (annal_slice){0};
    if (filter->session_count > 1) {
        if (put_sessions(&json, filter) < 0)
            return annal__fail(err, ANNAL_ERR_NOMEM, "prepare a query: out of memory");
        sessions = annal__buf_slice(&json);
    }
    annal_time_format(filter->since_us, since);
    annal_time_format(filter->until_us, until);
    /* SQLite copies the values, because the filter need not stay valid. Binding a parameter that
     * the SELECT does not use fails without an effect, which is intended. */
    sqlite3_bind_text64(stmt, 1, sessions.ptr, sessions.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    sqlite3_bind_int64(stmt, 2, clamp(filter->from_seq));
    sqlite3_bind_int64(stmt, 3, clamp(filter->to_seq));
    sqlite3_bind_text(stmt, 4, since, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(stmt, 5, until, -1, SQLITE_TRANSIENT);
    bool limits_rows = filter->limit != 0 && filter->where.len == 0;
    sqlite3_bind_int64(stmt, 6, limits_rows ? clamp(filter->limit) : -1);
    for (size_t i = 0; i < filter->type_count; i++)
        sqlite3_bind_text64(stmt, (int)i + 7, filter->types[i].ptr, filter->types[i].len,
                            SQLITE_TRANSIENT, SQLITE_UTF8);
    return ANNAL_OK;
}

/* Prepare the SQL in *sql, bind the filter, and free *sql. status: result of composing the SQL. */
static annal_status prepare_filtered(sqlite3 *db, annal_status status, struct buf *sql,
                                     const annal_filter *filter, sqlite3_stmt **out,
                                     annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    if (status < 0 || annal__buf_cstr(sql) == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "prepare a query: out of memory");
    else
        status = annal__readers_prepare(db, sql->ptr, &stmt, err);
    if (status >= 0)
        status = annal__query_bind(stmt, filter, err);
    annal__buf_done(sql);
    if (status < 0)
        sqlite3_finalize(stmt);
    else
        *out = stmt;
    return status;
}

#define MERGED_TYPES_MAX 32

/*
 * Prepare a SELECT of the events of all sessions by time that needs no sorting: one SELECT for each
 * type, whose events SQL's index has in this order, joined by UNION ALL, which SQLite merges. *out
 * stays NULL if there are too many types, or fewer than two. Types contain no character that needs
 * quoting (docs/format.md).
 */
static annal_status prepare_merge(sqlite3 *db, const annal_filter *filter,
                                  const struct history *history, sqlite3_stmt **out,
                                  annal_error *err)
{
    SCOPED_BUF sql = {0};
    sqlite3_stmt *types = NULL;
    unsigned count = 0;
    annal_status status = annal__buf_printf(&sql, "SELECT DISTINCT type FROM _counts WHERE 1");
    if (status >= 0)
        status = annal__query_put_names(&sql, filter, history);
    status = prepare_filtered(db, status, &sql, filter, &types, err);
    while (status >= 0 && count <= MERGED_TYPES_MAX && sqlite3_step(types) == SQLITE_ROW) {
        status = annal__buf_printf(
            &sql,
            "%sSELECT " FOUND_COLUMNS ", 0 FROM (SELECT *, session_id AS journal FROM event_index) "
            "WHERE type = '%.*s'",
            count++ == 0 ? "" : " UNION ALL ", ANNAL_FMT(annal__db_column(types, 0)));
        if (status >= 0)
            status = put_bounds(&sql, filter);
    }
    sqlite3_reset(types); /* reset, not finalized, because the connection keeps it */
    if (status >= 0)
        status = put_order(&sql, filter, history);
    if (status >= 0)
        status = annal__buf_printf(&sql, " LIMIT ?6");
    if (count > 1 && count <= MERGED_TYPES_MAX)
        return prepare_filtered(db, status, &sql, filter, out, err);
    return status < 0 ? annal__fail(err, status, "cannot prepare a query over events") : ANNAL_OK;
}

static annal_status prepare_events(sqlite3 *db, const annal_filter *filter,
                                   const struct history *history, bool with_rest,
                                   sqlite3_stmt **out, annal_error *err)
{
    struct buf sql = {0};
    annal_status status = ANNAL_OK;
    if (filter->session_count == 0 && filter->order == ANNAL_ORDER_TIME && !with_rest)
        status = prepare_merge(db, filter, history, out, err);
    if (status < 0 || *out != NULL)
        return status;
    status = annal__buf_printf(&sql, "SELECT " FOUND_COLUMNS ", from_seq");
    if (status >= 0)
        status = annal__query_put_from(&sql, filter, history, with_rest);
    if (status >= 0)
        status = put_order(&sql, filter, history);
    if (status >= 0)
        status = annal__buf_printf(&sql, " LIMIT ?6");
    return prepare_filtered(db, status, &sql, filter, out, err);
}

#define NEXT_ROW                                                                                   \
    "IFNULL((SELECT MIN(n.seq) FROM event_index AS n WHERE n.session_id = f.session_id "           \
    "AND n.seq >= f.seq), 9223372036854775807)"
#define NEXT_DAMAGE                                                                                \
    "IFNULL((SELECT MIN(n.seq) FROM _findings AS n WHERE n.session_id = f.session_id "             \
    "AND n.kind = 'damage' AND n.seq > f.seq), 9223372036854775807)"

/*
 * Prepare a SELECT of the damaged parts of journals that were found when they were indexed. The
 * damaged events have no rows; a part extends to the next event with a row, or to the next damage.
 * Their types and times are unknown. ?2 and ?3 are the bounds of seq, or the seq at which a limit
 * ended the rows.
 */
static annal_status prepare_damages(sqlite3 *db, const annal_filter *filter,
                                    const struct history *history, sqlite3_stmt **out,
                                    annal_error *err)
{
    struct buf sql = {0};
    const char *sessions = filter->session_count == 0   ? ""
                           : filter->session_count == 1 ? "AND session_id = ?1 "
                                                        : "AND session_id IN (SELECT value FROM "
                                                          "json_each(?1)) ";
    annal__buf_printf(
        &sql, "SELECT session_id, seq, '', '', offset, length, session_id FROM _findings AS f "
              "WHERE kind = 'damage' ");
    annal__buf_printf(&sql, "%s",
                      history->forked ? "AND EXISTS (SELECT 1 FROM temp.parts AS p WHERE "
                                        "p.journal = f.session_id AND f.seq <= p.to_seq) "
                                      : sessions);
    annal_status status = annal__buf_printf(
        &sql, "AND (?2 = 0 OR seq >= ?2 OR ?2 < MIN(" NEXT_ROW ", " NEXT_DAMAGE ")) "
              "AND (?3 = 0 OR seq <= ?3) ORDER BY session_id, offset");
    return prepare_filtered(db, status, &sql, filter, out, err);
}

/* ---- The query ---- */

annal_status annal__query_connect(annal_index *index, const annal_filter *filter,
                                  struct history *out_history, sqlite3 **out_db,
                                  bool *out_with_rest, annal_lag *out_lag, annal_error *err)
{
    *out_with_rest = false;
    annal_status status = annal__history_read(index->store, filter->sessions, filter->session_count,
                                              out_history, err);
    if (status >= 0)
        status = annal__reader_borrow(index, out_history->journals, out_history->journal_count,
                                      filter->as_indexed, filter->timeout_ms, out_db, out_lag, err);
    if (status >= 0 && out_history->forked)
        status = annal__history_put(out_history, *out_db, err);
    if (status >= 0 && !filter->as_indexed)
        status = annal__reader_add_rest(index, *out_db, out_history->journals,
                                        out_history->journal_count, out_lag, out_with_rest, err);
    /* an index on temp.rest, because the events of each part of a history are looked up in it */
    if (status >= 0 && out_history->forked && *out_with_rest)
        status =
            annal__db_exec(*out_db, "CREATE INDEX temp.rest_place ON rest (session_id, seq)", err);
    return status;
}

bool annal__query_heal(annal_index *index, const annal_filter *filter)
{
    struct history history = {0};
    bool sound = annal__history_read(index->store, filter->sessions, filter->session_count,
                                     &history, NULL) >= 0;
    annal__history_done(&history);
    return sound && annal__derived_heal(&index->derived);
}

/*
 * Prepare a SELECT that evaluates an expression on one event, whose members are its parameters. The
 * expression is on lines of its own, because it may end with a comment.
 */
static annal_status prepare_question(sqlite3 *db, annal_slice where, const char *open,
                                     const char *close, sqlite3_stmt **out, annal_error *err)
{
    SCOPED_BUF sql = {0};
    struct allowed allowed = {0};
    annal_status status = annal__buf_printf(
        &sql,
        "SELECT 1 FROM (SELECT ?1 AS session_id, ?2 AS seq, ?3 AS timestamp, ?4 AS type, ?5 AS id, "
        "?6 AS cause, ?7 AS data) WHERE %s\n%.*s\n%s",
        open, ANNAL_FMT(where), close);
    if (status < 0)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "prepare a query: out of memory");
    else
        status = annal__db_prepare_select(db, annal__buf_slice(&sql), &allowed, out, err);
    if (status >= 0)
        /* end the restriction to one statement now: the SELECT uses no table, so SQLite does not
         * compile it again */
        annal__db_end_select(db);
    return status;
}

/*
 * Prepare the user's expression. It is valid only if it compiles both in parentheses ("a LIMIT 1"
 * does not) and without them ("0) OR (1" does not).
 */
static annal_status prepare_where(annal_query *query, annal_slice where, annal_error *err)
{
    sqlite3_stmt *bare = NULL;
    if (where.len == 0)
        return ANNAL_OK;
    annal_status status = prepare_question(query->db, where, "", "", &bare, err);
    sqlite3_finalize(bare);
    if (status >= 0)
        status = prepare_question(query->db, where, "(", ")", &query->where, err);
    if (status == ANNAL_ERR_SQL && err != NULL) {
        const annal_error why = *err;
        return annal__fail(err, ANNAL_ERR_SQL, "invalid expression in the filter: %s", why.message);
    }
    return status;
}

/*
 * Prepare the query and run its first step, so that a corrupt index is noticed before any row is
 * returned.
 */
static annal_status start(annal_index *index, const annal_filter *filter, annal_query *query,
                          annal_error *err)
{
    bool with_rest = false;
    struct history history = {0};
    annal_status status =
        annal__query_connect(index, filter, &history, &query->db, &with_rest, &query->lag, err);
    if (status >= 0)
        status = prepare_events(query->db, filter, &history, with_rest, &query->stmt, err);
    if (status >= 0)
        status = prepare_damages(query->db, filter, &history, &query->damages, err);
    if (status >= 0)
        status = prepare_where(query, filter->where, err);
    query->clean = !history.forked && !with_rest;
    annal__history_done(&history);
    if (status < 0)
        return status;
    query->one_session = filter->session_count == 1;
    query->descending = filter->descending;
    query->limit = filter->limit;
    query->limits = filter->where_limits;
    return annal__event_rows_begin(&query->found, index->store, query->stmt, err);
}

annal_status annal__query_say_damages(annal_index *index, const annal_filter *filter,
                                      annal_error *err)
{
    struct history history = {0};
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    annal_filter own = *filter;
    annal_lag lag;
    bool with_rest = false;
    int rc = SQLITE_DONE;
    own.as_indexed = true;
    annal_status status = annal__query_connect(index, &own, &history, &db, &with_rest, &lag, err);
    if (status >= 0)
        status = prepare_damages(db, &own, &history, &stmt, err);
    while (status >= 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        annal__store_say_damage(index->store, annal__db_column(stmt, 0),
                                (uint64_t)sqlite3_column_int64(stmt, 1),
                                (uint64_t)sqlite3_column_int64(stmt, 4));
    if (status >= 0 && rc != SQLITE_DONE)
        status = annal__db_fail(err, db, rc, "cannot read the damaged events that the index lists");
    annal__derived_give(&index->derived, db, !history.forked);
    annal__history_done(&history);
    return status;
}

static void stop(annal_query *query)
{
    annal_cursor_close(query->range.cursor);
    query->range.cursor = NULL;
    annal__event_rows_done(&query->found);
    sqlite3_finalize(query->where);
    annal__derived_give(&query->index->derived, query->db, query->clean);
    query->stmt = NULL;
    query->where = NULL;
    query->damages = NULL;
    query->db = NULL;
}

static annal_status start_healed(annal_index *index, const annal_filter *filter, annal_query *query,
                                 annal_error *err)
{
    annal_status status = start(index, filter, query, err);
    if (status == ANNAL_ERR_CORRUPT && annal__query_heal(index, filter)) {
        stop(query);
        status = start(index, filter, query, err);
    }
    return status;
}

/* ---- A range of one session ---- */

/*
 * Return whether the filter is a range of one session. A range must have a to_seq: without one,
 * events that are appended during the query would belong to the answer.
 */
static bool is_range(const annal_filter *filter)
{
    return filter->session_count == 1 && filter->to_seq != 0 && filter->type_count == 0 &&
           filter->since_us == 0 && filter->until_us == 0 && filter->where.len == 0 &&
           !filter->descending && !filter->as_indexed;
}

/*
 * Start to read a range. Returns false if the journal cannot be read; the caller then runs the
 * SELECT, which reports why.
 */
static bool start_range(annal_query *query, const annal_filter *filter)
{
    struct range *range = &query->range;
    annal_slice session = filter->sessions[0];
    uint64_t from_seq = filter->from_seq != 0 ? filter->from_seq : 1;
    if (annal_cursor_open(query->index->store, session, from_seq, &range->cursor, NULL) < 0)
        return false;
    memcpy(range->session, session.ptr, session.len);
    range->session_len = session.len;
    range->next_seq = from_seq;
    range->to_seq = filter->to_seq;
    range->timeout_ms = filter->timeout_ms;
    query->limit = filter->limit;
    return true;
}

/* Read the next event of the range. Returns false if it is damaged or missing; a SELECT then reads
 * the rest. */
static bool next_of_range(struct range *range, annal_slice *out_session, annal_event *out_event)
{
    if (range->cursor == NULL || annal_cursor_next(range->cursor, out_event, NULL) != ANNAL_OK ||
        out_event->seq != range->next_seq)
        return false;
    *out_session = (annal_slice){range->session, range->session_len};
    range->next_seq++;
    return true;
}

/* Continue a range with a SELECT, which reports events that are damaged or missing. */
static annal_status continue_by_select(annal_query *query, annal_error *err)
{
    const struct range *range = &query->range;
    const annal_slice session = {range->session, range->session_len};
    const annal_filter rest = {.sessions = &session,
                               .session_count = 1,
                               .from_seq = range->next_seq,
                               .to_seq = range->to_seq,
                               .limit = query->limit,
                               .timeout_ms = range->timeout_ms};
    stop(query);
    return start_healed(query->index, &rest, query, err);
}

annal_status annal_query_open(annal_index *index, const annal_filter *filter,
                              annal_query **out_query, annal_error *err)
{
    static const annal_filter everything;
    if (filter == NULL)
        filter = &everything;
    annal_status status = annal__query_check(filter, err);
    if (status < 0)
        return status;
    annal_query *query = annal__zalloc(sizeof *query);
    if (query == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open a query: out of memory");
    query->index = index;
    if (!is_range(filter) || !start_range(query, filter))
        status = start_healed(index, filter, query, err);
    if (status < 0) {
        annal_query_close(query);
        return status;
    }
    *out_query = query;
    return ANNAL_OK;
}

void annal_query_close(annal_query *query)
{
    if (query == NULL)
        return;
    stop(query);
    annal__free(query);
}

annal_lag annal_query_lag(const annal_query *query)
{
    return query->lag;
}

/*
 * Return the next damaged part, after the last row. If a limit ended the rows of a session, damage
 * after the last row is not returned.
 */
static annal_status next_damage(annal_query *query, annal_slice *out_session,
                                annal_event *out_event, annal_error *err)
{
    if (!query->at_damages && query->one_session && query->limit > 0 && query->rows == query->limit)
        sqlite3_bind_int64(query->damages, query->descending ? 2 : 3, clamp(query->last_seq));
    query->at_damages = true;
    int rc = sqlite3_step(query->damages);
    if (rc == SQLITE_DONE) {
        query->ended = true;
        return ANNAL_END;
    }
    if (rc != SQLITE_ROW)
        return annal__db_fail(err, query->db, rc,
                              "cannot query the damaged events that the index lists");
    *out_session = annal__db_column(query->damages, 0);
    *out_event = annal__event_rows_event(query->damages);
    return ANNAL_DAMAGE;
}

static void bind_optional(sqlite3_stmt *stmt, int column, annal_slice text)
{
    if (text.len == 0)
        sqlite3_bind_null(stmt, column);
    else
        annal__db_bind_text(stmt, column, text);
}

static annal_status asks_for(annal_query *query, annal_slice session, const annal_event *event,
                             bool *out, annal_error *err)
{
    sqlite3_stmt *stmt = query->where;
    char ts[ANNAL_TIME_BYTES];
    *out = true;
    if (stmt == NULL)
        return ANNAL_OK;
    annal_time_format(event->ts_us, ts);
    annal__db_bind_text(stmt, 1, session);
    sqlite3_bind_int64(stmt, 2, (sqlite3_int64)event->seq);
    sqlite3_bind_text(stmt, 3, ts, ANNAL_TIME_BYTES - 1, SQLITE_STATIC);
    annal__db_bind_text(stmt, 4, event->type);
    bind_optional(stmt, 5, event->id);
    bind_optional(stmt, 6, event->cause);
    annal__db_bind_text(stmt, 7, event->data);
    struct bound bound;
    annal__bound_begin(&bound, query->db, &query->limits);
    bound.each_row = true;
    int rc = annal__bound_step(&bound, stmt);
    *out = rc == SQLITE_ROW;
    annal_status status = ANNAL_OK;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        char what[ANNAL_SESSION_ID_BYTES_MAX + 100];
        snprintf(what, sizeof what, "the expression, on event %llu of session '%.*s'",
                 (unsigned long long)event->seq, ANNAL_FMT(session));
        status = annal__bound_fail(&bound, rc, what, err);
        if (status == ANNAL_OK)
            status = annal__db_fail(err, query->db, rc, "%s", what);
    }
    annal__bound_end(&bound);
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt); /* the bound bytes of the event may become invalid */
    return status;
}

/* Read the next event: of the range, or of the next row of the index. */
static annal_status read_next(annal_query *query, annal_slice *out_session, annal_event *out_event,
                              annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (query->db == NULL) {
        if (query->range.next_seq > query->range.to_seq) {
            query->ended = true;
            return ANNAL_END;
        }
        if (next_of_range(&query->range, out_session, out_event))
            return ANNAL_OK;
        status = continue_by_select(query, err);
        if (status < 0)
            return status;
    }
    /* skip the events of an unreadable journal; the log of the store reports the journal once */
    do {
        status = annal__event_rows_next(&query->found, out_session, out_event, err);
        if (status != ANNAL_OK)
            return status;
        status = annal__event_rows_read(&query->found, out_event, err);
    } while (!query->one_session && annal__error_is_io(status) &&
             annal__stray_is(query->index->store, *out_session));
    if (status == ANNAL_ERR_CORRUPT || status == ANNAL_ERR_NOTFOUND)
        return ANNAL_DAMAGE;
    return status;
}

annal_status annal_query_next(annal_query *query, annal_slice *out_session, annal_event *out_event,
                              annal_error *err)
{
    bool wanted = false;
    annal_status status = ANNAL_END;
    while (!wanted && (query->limit == 0 || query->rows < query->limit)) {
        status = read_next(query, out_session, out_event, err);
        /* the end, a failure, or damage, on which the expression cannot be evaluated: return it */
        if (status != ANNAL_OK)
            break;
        status = asks_for(query, *out_session, out_event, &wanted, err);
        if (status < 0)
            return status;
    }
    if (wanted || status == ANNAL_DAMAGE) {
        query->rows++;
        query->last_seq = out_event->seq;
        return status;
    }
    if (status < 0)
        return status;
    return query->ended || query->db == NULL ? ANNAL_END
                                             : next_damage(query, out_session, out_event, err);
}
