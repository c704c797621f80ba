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

/* The order of events of several sessions; events of a single session are always in order of
 * seq. */
typedef enum annal_order {
    ANNAL_ORDER_TIME = 0, /* by ts, then session, then seq */
    /*
     * As they were committed, as far as journals show: each session by seq, even if its clock went
     * back, and sessions among each other by the latest ts that each had reached among the events
     * asked for, then session. The whole answer is sorted before the first event is returned.
     */
    ANNAL_ORDER_COMMIT = 1
} annal_order;

/*
 * Limits of what the SQL of a user may cost. 0: no limit. What exceeds a limit is stopped, and
 * fails with ANNAL_ERR_LIMIT and a sentence that says which. Memory and temporary files are counted
 * for SQLite in the whole process; a value may take a quarter of memory_bytes.
 */
typedef struct annal_limits {
    uint32_t run_ms; /* time limit of the statement, without the time of the callback */
    uint64_t memory_bytes;
    uint64_t temp_bytes; /* limit of temporary files, which large sorts need */
    uint32_t wait_ms;    /* for other programs, where a log that is a database is imported */
    /*
     * One call of an SQL function cannot be stopped, however long it takes. NULL, or a place for
     * the time (CLOCK_MONOTONIC, microseconds) at which what runs now should have ended, 0 while
     * nothing runs: a thread that reads it, atomically, may end the process. Must be valid during
     * the call that takes these limits, and while the handle that it opened is in use.
     */
    int64_t *due_us;
} annal_limits;

/* Which events. Everything that is set must hold; zero sets nothing. */
typedef struct annal_filter {
    const annal_slice *sessions; /* any of these */
    size_t session_count;
    const annal_slice
        *types; /* any of these, each a type or a pattern with *, ? and [abc]: "tool.*" */
    size_t type_count;
    /*
     * ts >= since_us and ts < until_us: the range is half-open, so neighbours share no event and
     * leave none out. 0 means unbounded, so give -1 for 1970-01-01T00:00:00Z. Times that cannot be
     * right, such as the year 2099, are in a range that has no bound before them.
     */
    int64_t since_us;
    int64_t until_us;
    uint64_t from_seq; /* seq >= from_seq */
    uint64_t to_seq;   /* seq <= to_seq */
    uint64_t limit;    /* at most this many events */
    bool descending;   /* last first */
    annal_order order;
    /*
     * An SQL expression that must be true, over the columns session_id, seq, timestamp, type, id,
     * cause and data: "data->>'$.tool' = 'bash'". It needs each event that passes the rest of the
     * filter to be read from its journal. Subqueries may use tables of sessions.db.
     */
    annal_slice where;
    annal_limits where_limits; /* run_ms is for each event */
    /* do not catch up first: answer from what is indexed now (unless that was deleted since) */
    bool as_indexed;
    uint32_t timeout_ms; /* for the catch-up; default: the wait_ms of the index */
} annal_filter;

/*
 * How much is missing in an answer: journal bytes that were durable and are not in the tables yet.
 */
typedef struct annal_lag {
    uint64_t sessions;
    uint64_t bytes;
    char message[256]; /* why, if bytes is not 0 */
} annal_lag;

typedef struct annal_query annal_query;

/*
 * Open a query. It first catches up; if that cannot be done in time, it reads the rest from the
 * journals, and if that is too much as well, annal_query_lag() says what is missing. A range of a
 * session (to_seq, and nothing else but from_seq and limit) needs no index: it is read from the
 * journal, including events that are appended until the end is returned. Events of a session are in
 * order of seq; of several (or all) in filter->order. The filter is used before return, never kept.
 * Memory does not grow with the answer. One thread at a time.
 *
 * ANNAL_ERR_SQL   filter->where is not an expression
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_query_open(annal_index *index,
                                                         const annal_filter *filter,
                                                         annal_query **out_query, annal_error *err);

/*
 * The next event, read from its journal and checked against its hash. Slices are valid until the
 * next call on this query.
 *
 * ANNAL_END      no further event
 * ANNAL_ERR_SQL  filter->where fails for this event, as json_extract() does on a wrong path
 * ANNAL_DAMAGE   its line does not prove itself now. *out_session and the event's seq, ts, type,
 *                offset and length are from the index, the rest is empty. Continue with the next
 *                call. Events that were damaged already when they were indexed are last, once each,
 *                by session and seq, whatever types and times the filter has: their type and time
 *                are unknown and empty.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_query_next(annal_query *query,
                                                         annal_slice *out_session,
                                                         annal_event *out_event, annal_error *err);

/* What was missing from the answer when the query was opened. */
ANNAL_API annal_lag annal_query_lag(const annal_query *query);

/* End the query and free it. */
ANNAL_API void annal_query_close(annal_query *query);

/* How many events annal_query_next() would return, without damage at the end; with filter->where,
 * without any damage. *out_lag may be NULL. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_query_count(annal_index *index,
                                                          const annal_filter *filter,
                                                          uint64_t *out_count, annal_lag *out_lag,
                                                          annal_error *err);

/* ---- Groups ---- */

typedef enum annal_group_by {
    ANNAL_GROUP_TYPE = 1,
    ANNAL_GROUP_SESSION = 2,
    ANNAL_GROUP_DAY = 3,  /* day of ts, in the zone of the process (TZ): "2026-03-02" */
    ANNAL_GROUP_HOUR = 4, /* "2026-03-02T09"; "2026-10-25T02+01:00" if the clock shows it twice */
    ANNAL_GROUP_TOOL = 5, /* tool of calls and their results; no other events are counted */
    /* model of the session, as in the table sessions; "" if it is not known */
    ANNAL_GROUP_MODEL = 6,
    ANNAL_GROUP_AGENT = 7,
    ANNAL_GROUP_WEEK = 8, /* week of ISO 8601: "2026-W10" */
    ANNAL_GROUP_MONTH = 9 /* "2026-03" */
} annal_group_by;

/* Return 0 to continue; any other value stops, and is returned. key is valid until it returns. */
typedef int (*annal_group_fn)(void *arg, annal_slice key, uint64_t events);

/*
 * annal_query_count() for each type, session, day, …: those with the most events first, days and
 * hours in order, or last first if filter->descending. filter->limit is a number of groups. By type
 * or session, with nothing set but types and sessions, the index has the numbers, and nothing is
 * counted. By tool, model or agent, filter->where must be empty: ANNAL_ERR_INVALID. *out_lag may be
 * NULL. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_query_groups(annal_index *index,
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
    annal_slice bytes; /* value of TEXT and BLOB */
} annal_value;

typedef struct annal_row {
    size_t count;
    const char *const *names; /* names of the columns */
    const annal_value *values;
} annal_row;

/*
 * Return 0 to continue; any other value stops, and is returned. The row is valid until it returns.
 */
typedef int (*annal_row_fn)(void *arg, const annal_row *row);

typedef struct annal_sql_options {
    const annal_value *params; /* for ?1, ?2, … */
    size_t param_count;
    annal_row_fn
        columns;     /* called once before the first row, even if the answer is empty; values is
                      * NULL */
    bool as_indexed; /* as in annal_filter */
    uint32_t timeout_ms;
    annal_limits limits;
    annal_lag *out_lag;  /* may be NULL */
    annal_slice session; /* also the databases that packs keep for this session alone */
    /* Path of a loadable extension of SQLite, for this statement; NULL: none. Its code runs in this
     * process. */
    const char *extension;
    /* Also name damaged events in the store's log if the SELECT reads event_index or event_counts,
     * which have no rows for them; for the table events that is always done. */
    bool damages;
} annal_sql_options;

/*
 * Run one SELECT (or WITH, VALUES, EXPLAIN QUERY PLAN) over sessions.db and the databases of the
 * store's packs (see annal/pack.h), after catching up; fn gets each row. Besides the tables there
 * is events(session_id, seq, timestamp, type, id, data): every event with its payload, which is
 * read from the journal only if id or data is used. If the line of an event is damaged these are
 * NULL, or the row is missing if it was damaged already when it was indexed; the store's log names
 * both. arg is also passed to options->columns. Any thread.
 *
 * A statement that uses no table of a pack waits for none. One that does waits up to timeout_ms for
 * tables that are being filled.
 *
 * ANNAL_ERR_SQL   the SQL is wrong, or would write
 * ANNAL_ERR_BUSY  another program keeps sessions.db locked; or, without out_lag, tables of packs
 *                 are not filled in time: the message says how far they are
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_sql(annal_index *index, annal_slice sql,
                                                  const annal_sql_options *options, annal_row_fn fn,
                                                  void *arg, annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
