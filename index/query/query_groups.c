/* SPDX-License-Identifier: Apache-2.0 */
/* Counting the events of a filter, in total or in groups. */
#include "index/db/db.h"
#include "index/query/query.h"
#include "journal/base/calendar.h"
#include "journal/base/error.h"

/* ---- In total ---- */

static annal_status step_count(sqlite3_stmt *stmt, uint64_t *out_count, annal_error *err)
{
    int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW)
        return annal__db_fail(err, sqlite3_db_handle(stmt), rc, "cannot count events");
    *out_count = (uint64_t)sqlite3_column_int64(stmt, 0);
    return ANNAL_OK;
}

/* Return whether the query can be answered from the counts that the index keeps for each session
 * and type, without reading events. */
static bool are_counted(const annal_filter *filter, const struct history *history, bool with_rest)
{
    return !history->forked && !with_rest && filter->since_us == 0 && filter->until_us == 0 &&
           filter->from_seq == 0 && filter->to_seq == 0;
}

static annal_status put_count(struct buf *sql, const annal_filter *filter,
                              const struct history *history, bool with_rest)
{
    bool counted = are_counted(filter, history, with_rest);
    annal_status status = annal__buf_printf(
        sql, counted ? "SELECT IFNULL(SUM(n), 0) FROM _counts WHERE 1" : "SELECT COUNT(*)");
    if (status < 0)
        return status;
    return counted ? annal__query_put_names(sql, filter, history)
                   : annal__query_put_from(sql, filter, history, with_rest);
}

static annal_status count_rows(annal_index *index, const annal_filter *filter, uint64_t *out_count,
                               annal_lag *out_lag, annal_error *err)
{
    SCOPED_BUF sql = {0};
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    struct history history = {0};
    bool with_rest = false;
    annal_status status =
        annal__query_connect(index, filter, &history, &db, &with_rest, out_lag, err);
    if (status < 0)
        goto done;
    if (put_count(&sql, filter, &history, with_rest) < 0 || annal__buf_cstr(&sql) == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "count the events of a query: out of memory");
        goto done;
    }
    status = annal__readers_prepare(db, sql.ptr, &stmt, err);
    if (status >= 0)
        status = annal__query_bind(stmt, filter, err);
    if (status >= 0)
        status = step_count(stmt, out_count, err);

done:
    annal__derived_give(&index->derived, db, !history.forked && !with_rest);
    annal__history_done(&history);
    return status;
}

typedef annal_status (*event_fn)(void *arg, annal_slice session, const annal_event *event,
                                 annal_error *err);

/* Call fn for each event of the filter, for a filter with an expression, which needs the complete
 * events. */
static annal_status each_event(annal_index *index, const annal_filter *filter, event_fn fn,
                               void *arg, annal_lag *out_lag, annal_error *err)
{
    annal_query *query = NULL;
    annal_slice session;
    annal_event event;
    annal_status status = annal_query_open(index, filter, &query, err);
    if (status < 0)
        return status;
    *out_lag = annal_query_lag(query);
    while (status >= 0 && status != ANNAL_END) {
        status = annal_query_next(query, &session, &event, err);
        if (status == ANNAL_OK)
            status = fn(arg, session, &event, err);
    }
    annal_query_close(query);
    return status < 0 ? status : ANNAL_OK;
}

static annal_status add_one(void *arg, annal_slice session, const annal_event *event,
                            annal_error *err)
{
    (void)session, (void)event, (void)err;
    ++*(uint64_t *)arg;
    return ANNAL_OK;
}

static const annal_filter everything;

annal_status annal_query_count(annal_index *index, const annal_filter *filter, uint64_t *out_count,
                               annal_lag *out_lag, annal_error *err)
{
    annal_lag lag;
    uint64_t count = 0;
    if (filter == NULL)
        filter = &everything;
    annal_status status = annal__query_check(filter, err);
    if (status >= 0 && filter->where.len > 0) {
        status = each_event(index, filter, add_one, &count, &lag, err);
    } else if (status >= 0) {
        status = count_rows(index, filter, &count, &lag, err);
        if (status == ANNAL_ERR_CORRUPT && annal__query_heal(index, filter))
            status = count_rows(index, filter, &count, &lag, err);
    }
    if (status < 0)
        return status;
    *out_count = filter->limit > 0 && filter->limit < count ? filter->limit : count;
    if (out_lag != NULL)
        *out_lag = lag;
    return ANNAL_OK;
}

/* ---- Groups ---- */

struct groups {
    annal_index *index;
    const annal_filter *filter;
    annal_group_by by;
    annal_group_fn fn;
    void *arg;
    annal_lag lag;
    bool begun; /* whether a row was passed to fn, so that the query cannot be run again */
};

static const char *key_of(annal_group_by by)
{
    switch (by) {
    case ANNAL_GROUP_TYPE:
        return "type";
    case ANNAL_GROUP_SESSION:
        return "session_id";
    case ANNAL_GROUP_HOUR:
        return "annal_period(timestamp, 'hour')";
    case ANNAL_GROUP_WEEK:
        return "annal_period(timestamp, 'week')";
    case ANNAL_GROUP_MONTH:
        return "annal_period(timestamp, 'month')";
    default:
        return "annal_period(timestamp, 'day')";
    }
}

static bool is_of_time(annal_group_by by)
{
    return by == ANNAL_GROUP_DAY || by == ANNAL_GROUP_HOUR || by == ANNAL_GROUP_WEEK ||
           by == ANNAL_GROUP_MONTH;
}

/*
 * Return the end of the SELECT for groups whose key is in another table than the events; NULL if
 * the key is in the events.
 */
static const char *join_of(annal_group_by by)
{
    switch (by) {
    case ANNAL_GROUP_TOOL:
        return "), calls AS MATERIALIZED (SELECT session_id, seq, tool FROM tool_calls UNION "
               "SELECT session_id, result_seq, tool FROM tool_calls WHERE result_seq IS NOT NULL) "
               "SELECT calls.tool, COUNT(*) FROM found JOIN calls USING (session_id, seq)";
    case ANNAL_GROUP_MODEL:
        return ") SELECT sessions.model, COUNT(*) FROM found LEFT JOIN sessions ON id = session_id";
    case ANNAL_GROUP_AGENT:
        return ") SELECT agent_id, COUNT(*) FROM found LEFT JOIN sessions ON id = session_id";
    default:
        return NULL;
    }
}

static annal_status put_group_order(struct buf *sql, const struct groups *groups)
{
    if (!is_of_time(groups->by))
        return annal__buf_printf(sql, " GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?6");
    return annal__buf_printf(sql, " GROUP BY 1 ORDER BY 1%s LIMIT ?6",
                             groups->filter->descending ? " DESC" : "");
}

static annal_status put_groups(struct buf *sql, const struct groups *groups,
                               const struct history *history, bool with_rest)
{
    const char *join = join_of(groups->by);
    bool of_names = groups->by == ANNAL_GROUP_TYPE || groups->by == ANNAL_GROUP_SESSION;
    bool counted = of_names && are_counted(groups->filter, history, with_rest);
    annal_status status =
        join != NULL ? annal__buf_printf(sql, "WITH found AS (SELECT session_id, seq")
        : counted
            ? annal__buf_printf(sql, "SELECT %s, SUM(n) FROM _counts WHERE 1", key_of(groups->by))
            : annal__buf_printf(sql, "SELECT %s, COUNT(*)", key_of(groups->by));
    if (status >= 0)
        status = counted ? annal__query_put_names(sql, groups->filter, history)
                         : annal__query_put_from(sql, groups->filter, history, with_rest);
    if (status >= 0 && join != NULL)
        status = annal__buf_printf(sql, "%s", join);
    return status < 0 ? status : put_group_order(sql, groups);
}

static annal_status hand_out(struct groups *groups, sqlite3_stmt *stmt, annal_error *err)
{
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        groups->begun = true;
        int verdict = groups->fn(groups->arg, annal__db_column(stmt, 0),
                                 (uint64_t)sqlite3_column_int64(stmt, 1));
        if (verdict != 0)
            return (annal_status)verdict;
    }
    return rc == SQLITE_DONE
               ? ANNAL_OK
               : annal__db_fail(err, sqlite3_db_handle(stmt), rc, "cannot count events");
}

static annal_status group_rows(struct groups *groups, annal_error *err)
{
    SCOPED_BUF sql = {0};
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    struct history history = {0};
    bool with_rest = false;
    annal_status status = annal__query_connect(groups->index, groups->filter, &history, &db,
                                               &with_rest, &groups->lag, err);
    if (status >= 0 &&
        (put_groups(&sql, groups, &history, with_rest) < 0 || annal__buf_cstr(&sql) == NULL))
        status = annal__fail(err, ANNAL_ERR_NOMEM, "count the events of a query: out of memory");
    if (status >= 0)
        status = annal__readers_prepare(db, sql.ptr, &stmt, err);
    if (status >= 0)
        status = annal__query_bind(stmt, groups->filter, err);
    if (status >= 0)
        status = hand_out(groups, stmt, err);
    annal__derived_give(&groups->index->derived, db, !history.forked && !with_rest);
    annal__history_done(&history);
    return status;
}

/* The counts of groups for a filter with an expression: each event adds 1 to its group in a
 * temporary database of SQLite. */
struct tally {
    annal_group_by by;
    sqlite3_stmt *add;
};

static annal_status add_to_group(void *arg, annal_slice session, const annal_event *event,
                                 annal_error *err)
{
    struct tally *tally = arg;
    char name[PERIOD_NAME_BYTES];
    annal_slice key = tally->by == ANNAL_GROUP_TYPE ? event->type : session;
    if (is_of_time(tally->by)) {
        annal__calendar_period_name(tally->by == ANNAL_GROUP_HOUR    ? PERIOD_HOUR
                                    : tally->by == ANNAL_GROUP_WEEK  ? PERIOD_WEEK
                                    : tally->by == ANNAL_GROUP_MONTH ? PERIOD_MONTH
                                                                     : PERIOD_DAY,
                                    event->ts_us, name);
        key = annal_slice_of(name);
    }
    annal__db_bind_text(tally->add, 1, key);
    return annal__db_run(tally->add, err);
}

static annal_status group_events(struct groups *groups, annal_error *err)
{
    SCOPED_BUF sql = {0};
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    struct tally tally = {.by = groups->by};
    annal_filter filter = *groups->filter;
    filter.limit = 0;
    /* an unnamed database of SQLite, which is written to a temporary file when it exceeds its
     * cache */
    annal_status status = annal__db_open("", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, err);
    if (status >= 0)
        status = annal__db_exec(
            db, "BEGIN; CREATE TABLE tally (key TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID", err);
    if (status >= 0)
        status = annal__db_prepare(
            db, "INSERT INTO tally VALUES (?1, 1) ON CONFLICT DO UPDATE SET n = n + 1", &tally.add,
            err);
    if (status >= 0)
        status = each_event(groups->index, &filter, add_to_group, &tally, &groups->lag, err);
    if (status >= 0 && (annal__buf_printf(&sql, "SELECT key, SUM(n) FROM tally") < 0 ||
                        put_group_order(&sql, groups) < 0 || annal__buf_cstr(&sql) == NULL))
        status = annal__fail(err, ANNAL_ERR_NOMEM, "count the events of a query: out of memory");
    if (status >= 0)
        status = annal__db_prepare(db, sql.ptr, &stmt, err);
    if (status >= 0) {
        sqlite3_bind_int64(stmt, 6,
                           groups->filter->limit == 0 ? -1 : (sqlite3_int64)groups->filter->limit);
        status = hand_out(groups, stmt, err);
    }
    sqlite3_finalize(stmt);
    sqlite3_finalize(tally.add);
    annal__db_close(db);
    return status;
}

annal_status annal_query_group_each(annal_index *index, const annal_filter *filter,
                                    annal_group_by by, annal_group_fn fn, void *arg,
                                    annal_lag *out_lag, annal_error *err)
{
    struct groups groups = {.index = index,
                            .filter = filter == NULL ? &everything : filter,
                            .by = by,
                            .fn = fn,
                            .arg = arg};
    annal_status status = annal__query_check(groups.filter, err);
    if (status < 0)
        return status;
    if (groups.filter->where.len > 0 && join_of(by) != NULL) {
        status =
            annal__fail(err, ANNAL_ERR_INVALID,
                        "groups by tool, model or agent cannot be combined with an expression");
    } else if (groups.filter->where.len > 0) {
        status = group_events(&groups, err);
    } else {
        status = group_rows(&groups, err);
        if (status == ANNAL_ERR_CORRUPT && !groups.begun && annal__query_heal(index, groups.filter))
            status = group_rows(&groups, err);
    }
    if (status >= 0 && out_lag != NULL)
        *out_lag = groups.lag;
    return status;
}
