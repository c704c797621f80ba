/* SPDX-License-Identifier: Apache-2.0 */
/* Queries: events by session, seq, time and type; and SQL over the tables. */
#ifndef ANNAL_QUERY_H
#define ANNAL_QUERY_H

#include <annal/index.h>
#include <annal/journal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Events ---- */

/* The order of events of several sessions. Events of a single session are always in order of
 * seq. */
typedef enum annal_order {
    ANNAL_ORDER_TIME = 0, /* by ts, then session, then seq */
    /*
     * In the order of commits, as far as the journals show it: the events of a session by seq, even
     * if its clock went back; events of different sessions by the latest ts that each session had
     * reached by then among the selected events, then by session. The complete answer is sorted
     * before the first event is returned.
     */
    ANNAL_ORDER_COMMIT = 1
} annal_order;

/*
 * Limits of what the SQL of a user may cost. 0: no limit. A statement that exceeds a limit is
 * stopped, and fails with ANNAL_ERR_LIMIT and a message that names the limit. Memory and temporary
 * files are counted for SQLite in the whole process; a value may take a quarter of memory_bytes.
 */
typedef struct annal_limits {
    uint32_t run_ms; /* time limit of the statement, without the time that the callback needs */
    uint64_t memory_bytes;
    uint64_t temp_bytes; /* limit of temporary files, which large sorts need */
    /* time in ms to wait for other programs that use a database which is imported as a log */
    uint32_t wait_ms;
    /*
     * NULL, or where to store the time (CLOCK_MONOTONIC, microseconds) at which the step that runs
     * now should have ended; 0 is stored while nothing runs. One call of an SQL function cannot be
     * stopped, however long it takes: a thread that reads this time atomically may end the process
     * instead. Must be valid during the call that takes these limits, and while the handle that
     * this call opened is in use.
     */
    int64_t *due_us;
} annal_limits;

/*
 * Which events to select: an event must fulfil every member that is set. A member of 0 is not set.
 */
typedef struct annal_filter {
    const annal_slice *sessions; /* only events of these sessions */
    size_t session_count;
    /* only events with one of these types; each is a type or a pattern with *, ? and [abc]:
     * "tool.*" */
    const annal_slice *types;
    size_t type_count;
    /*
     * ts >= since_us and ts < until_us: the range is half-open, so neighbours share no event and
     * leave none out. 0 means unbounded, so give -1 for 1970-01-01T00:00:00Z. Wrong times, such as
     * the year 2099, are in every range without an upper bound before them.
     */
    int64_t since_us;
    int64_t until_us;
    uint64_t from_seq; /* smallest seq of the events; 0: no limit */
    uint64_t to_seq;   /* largest seq of the events; 0: no limit */
    uint64_t limit;    /* largest number of events; 0: no limit */
    bool descending;   /* whether the order is reversed: the last event is returned first */
    annal_order order;
    /*
     * An SQL expression that must be true, over the columns session_id, seq, timestamp, type, id,
     * cause and data: "data->>'$.tool' = 'bash'". It needs each event that passes the rest of the
     * filter to be read from its journal. Subqueries may use tables of sessions.db.
     */
    annal_slice where;
    annal_limits where_limits; /* limits for where; run_ms is the limit for each event */
    /* whether to answer from what is indexed now, without catching up first (unless the index was
     * deleted since) */
    bool as_indexed;
    uint32_t timeout_ms; /* time limit of the catch-up; default: the wait_ms of the index */
} annal_filter;

/*
 * The part that is missing in an answer: journal bytes that were durable and are not in the tables
 * yet.
 */
typedef struct annal_lag {
    uint64_t sessions;
    uint64_t bytes;
    char message[256]; /* why these bytes are not indexed, if bytes is not 0 */
} annal_lag;

typedef struct annal_query annal_query;

/*
 * Open a query. It first catches up; if the catch-up is not complete in time, the query reads the
 * other events from the journals, and if these are too many, annal_query_lag() says what is
 * missing. A range of one session with to_seq, and at most from_seq and limit, needs no index: the
 * query reads it from the journal, including events that are appended before ANNAL_END is returned.
 * Events of a session are in order of seq; events of several sessions, or of all, are in
 * filter->order. The filter need not stay valid after the call. Memory does not grow with the
 * answer. One thread at a time.
 *
 * ANNAL_ERR_SQL   filter->where is not an expression
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_query_open(annal_index *index,
                                                         const annal_filter *filter,
                                                         annal_query **out_query, annal_error *err);

/*
 * Return the next event, read from its journal and checked against its hash. Slices are valid until
 * the next call on this query.
 *
 * ANNAL_END      no further event
 * ANNAL_ERR_SQL  filter->where fails for this event, as json_extract() does on a wrong path
 * ANNAL_DAMAGE   the line of the event does not match its hash. *out_session and the event's seq,
 *                ts, type, offset and length are from the index, the rest is empty. Continue with
 *                the next call. Events that were damaged already when they were indexed are
 *                returned last, once each, by session and seq, whatever types and times the filter
 *                has: their type is empty and their time 0, because both are unknown.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_query_next(annal_query *query,
                                                         annal_slice *out_session,
                                                         annal_event *out_event, annal_error *err);

/* Return what was missing from the answer when the query was opened. */
ANNAL_API annal_lag annal_query_lag(const annal_query *query);

/* End the query and free it. */
ANNAL_API void annal_query_close(annal_query *query);

/* Count the events that annal_query_next() would return, without the damaged events at its end, and
 * with filter->where without any damaged event. out_lag may be NULL. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_query_count(annal_index *index,
                                                          const annal_filter *filter,
                                                          uint64_t *out_count, annal_lag *out_lag,
                                                          annal_error *err);

/* ---- Groups ---- */

typedef enum annal_group_by {
    ANNAL_GROUP_TYPE = 1,
    ANNAL_GROUP_SESSION = 2,
    ANNAL_GROUP_DAY = 3, /* day of ts, in the zone of the process (TZ): "2026-03-02" */
    /* hour of ts: "2026-03-02T09"; "2026-10-25T02+01:00" if the clock shows it twice */
    ANNAL_GROUP_HOUR = 4,
    /* name of the tool, for calls and their results; other events are not counted */
    ANNAL_GROUP_TOOL = 5,
    /* model of the session, as in the table sessions; "" if the model is unknown */
    ANNAL_GROUP_MODEL = 6,
    ANNAL_GROUP_AGENT = 7,
    ANNAL_GROUP_WEEK = 8, /* week of ts by ISO 8601: "2026-W10" */
    ANNAL_GROUP_MONTH = 9 /* "2026-03" */
} annal_group_by;

/* A function that is called for each group. It returns 0 to continue; any other value ends the
 * calls, and is returned to the caller. key is valid until it returns. */
typedef int (*annal_group_fn)(void *arg, annal_slice key, uint64_t events);

/*
 * Count the events of annal_query_count() for each type, session, day, …: groups with the most
 * events first, but days and hours in order of time, or the last first if filter->descending.
 * filter->limit is a number of groups. If groups are types or sessions, and only types and sessions
 * are set, the index contains the numbers, and no event is counted. If groups are tools, models or
 * agents, filter->where must be empty, otherwise the result is ANNAL_ERR_INVALID. out_lag may be
 * NULL. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_query_group_each(annal_index *index,
                                                               const annal_filter *filter,
                                                               annal_group_by by, annal_group_fn fn,
                                                               void *arg, annal_lag *out_lag,
                                                               annal_error *err);

/* ---- SQL ---- */

typedef enum annal_value_kind {
    ANNAL_VALUE_NULL = 0,
    ANNAL_VALUE_INTEGER = 1,
    ANNAL_VALUE_REAL = 2,
    ANNAL_VALUE_TEXT = 3,
    ANNAL_VALUE_BLOB = 4
} annal_value_kind;

typedef struct annal_value {
    annal_value_kind kind;
    int64_t integer;
    double real;
    annal_slice bytes; /* bytes of a TEXT or BLOB */
} annal_value;

typedef struct annal_row {
    size_t count;
    const char *const *names; /* names of the columns */
    const annal_value *values;
} annal_row;

/*
 * A function that is called for each row. It returns 0 to continue; any other value ends the calls,
 * and is returned to the caller. The row is valid until it returns.
 */
typedef int (*annal_row_fn)(void *arg, const annal_row *row);

typedef struct annal_sql_options {
    const annal_value *params; /* values of the parameters ?1, ?2, … */
    size_t param_count;
    /* called once before the first row, even if there are no rows, with the names of the columns;
     * values is NULL */
    annal_row_fn columns;
    bool as_indexed; /* whether to answer from what is indexed now, as in annal_filter */
    uint32_t timeout_ms;
    annal_limits limits;
    annal_lag *out_lag; /* receives the lag of the index; may be NULL */
    /* session whose databases (of packs with a file per session) the SELECT may query, too; or
     * empty */
    annal_slice session;
    /* Path of a loadable extension of SQLite, for this statement; NULL: none. Its code runs in this
     * process. */
    const char *extension;
    /* whether to name damaged events in the store's log also if the SELECT reads event_index or
     * event_counts, which have no rows for these events; for the table events this is always
     * done */
    bool damages;
} annal_sql_options;

/*
 * Run one SELECT (or WITH, VALUES, EXPLAIN QUERY PLAN) over sessions.db and the databases of the
 * store's packs (see annal/pack.h), after catching up; fn is called with each row. Besides the
 * tables there is the table events(session_id, seq, timestamp, type, id, cause, data): every event
 * with its payload, and in the hidden column hash the hash of its line, 16 hex digits. These are
 * read from the journal only if id, cause, data or hash is used. If the line of an event is
 * damaged, these are NULL, or the row is missing if the line was damaged already when it was
 * indexed; the store's log names both kinds of events. arg is also passed to options->columns. Any
 * thread.
 *
 * A statement that uses tables of packs waits up to timeout_ms while they are being filled.
 *
 * ANNAL_ERR_SQL   the SQL is wrong, or would write
 * ANNAL_ERR_BUSY  another program keeps sessions.db locked; or, without out_lag, the tables of
 *                 packs could not be filled in time: the message says how far they are
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_sql(annal_index *index, annal_slice sql,
                                                        const annal_sql_options *options,
                                                        annal_row_fn fn, void *arg,
                                                        annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
