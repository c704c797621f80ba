/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/view.h"
#include "index/db/db.h"
#include "index/index.h"
#include "index/query/run_health.h"
#include "index/query/sql_functions.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/sys/say.h"

#include <string.h>

/*
 * A call of annal_index_sql(): the caller's functions; begun: whether one of them was called, so
 * that the query cannot be run again after a failure; stopped: whether one of them returned a value
 * that stops the query.
 */
struct call {
    const annal_sql_options *options;
    const annal__sql_function *functions;
    annal_row_fn fn;
    void *arg;
    bool begun;
    bool stopped;
};

static int hand_on_columns(void *arg, const annal_row *row)
{
    struct call *call = arg;
    call->begun = true;
    int verdict = call->options->columns(call->arg, row);
    call->stopped = verdict != 0;
    return verdict;
}

static int hand_on_row(void *arg, const annal_row *row)
{
    struct call *call = arg;
    call->begun = true;
    int verdict = call->fn(call->arg, row);
    call->stopped = verdict != 0;
    return verdict;
}

/*
 * Return whether the statement needs the packs. Names are looked up in sessions.db first, so a
 * statement that compiles without the packs means the same with them, and a query of core tables
 * need not wait for the tables of packs. Only pragma functions that list databases, tables or
 * columns would list fewer, so a statement that contains "pragma" needs the packs. If this returns
 * false, *out_stmt is the prepared statement.
 */
static bool asks_packs(sqlite3 *db, annal_slice sql, const annal_sql_options *options,
                       struct allowed *allowed, sqlite3_stmt **out_stmt)
{
    static const char lists[] = "pragma";
    const size_t len = sizeof lists - 1;
    bool asks = options->session.len > 0;
    for (size_t at = 0; !asks && at + len <= sql.len; at++)
        asks = sqlite3_strnicmp(sql.ptr + at, lists, (int)len) == 0;
    return asks || annal__db_prepare_select(db, sql, allowed, out_stmt, NULL) < 0;
}

/* Report damaged events that have no rows in event_index to the store's log. */
static annal_status say_damages(annal_index *index, sqlite3 *db, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(
        db, "SELECT session_id, seq, offset FROM main._findings WHERE kind = 'damage' LIMIT 20",
        &stmt, err);
    int rc = SQLITE_DONE;
    while (status >= 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        annal__store_say_damage(index->store, annal__db_column(stmt, 0),
                                (uint64_t)sqlite3_column_int64(stmt, 1),
                                (uint64_t)sqlite3_column_int64(stmt, 2));
    if (rc != SQLITE_DONE)
        status = annal__db_fail(err, db, rc, "cannot read the damaged events that the index lists");
    sqlite3_finalize(stmt);
    return status;
}

/*
 * Begin a transaction, and compare the schema of sessions.db in it: until the transaction ends, no
 * other program can change it.
 */
static annal_status begin_checked(annal_index *index, sqlite3 *db, annal_error *err)
{
    annal_status status = annal__db_begin(db, err);
    return status < 0 ? status : annal__derived_check(&index->derived, db, "main", err);
}

/* Put the line in which SQLite found an error before its message, unless that is the first. */
static void add_line(annal_error *err, annal_status status, sqlite3 *db, annal_slice sql)
{
    unsigned line = 1;
    for (int at = 0, end = sqlite3_error_offset(db); at < end && (size_t)at < sql.len; at++)
        line += sql.ptr[at] == '\n';
    if (status < 0 && line > 1)
        annal__error_context(err, "line %u", line);
}

static annal_status run(annal_index *index, annal_slice sql, struct call *call, annal_error *err)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    struct stamp ignored;
    struct allowed allowed = {0};
    SCOPED_BUF functions = {0};
    annal_sql_options options = *call->options;
    options.columns = options.columns == NULL ? NULL : hand_on_columns;
    annal_status status = annal__reader_read(index, NULL, 0, options.as_indexed, options.timeout_ms,
                                             &db, options.out_lag, err);
    annal_index *used = annal__fallback_or_self(index, &ignored);
    if (status >= 0)
        status = annal__events_table_add(db, index->store, err);
    if (status >= 0 && options.extension != NULL)
        status = annal__db_load(db, options.extension, &functions, err);
    if (status >= 0 && call->functions != NULL)
        status = annal__sql_functions_add(db, call->functions, &functions, err);
    allowed.functions = functions.ptr;
    if (status >= 0)
        status = begin_checked(used, db, err);
    if (status >= 0 && asks_packs(db, sql, &options, &allowed, &stmt)) {
        allowed.refused = false;
        /* end the transaction: annal__packs_attach() may detach databases, which cannot be detached
         * while they are read */
        annal__db_rollback(db);
        status = annal__packs_attach(used, db, options.session, options.as_indexed,
                                     options.timeout_ms, options.out_lag, err);
        if (status >= 0)
            status = annal__run_health_add(db, index->store, err);
        if (status >= 0)
            status = begin_checked(used, db, err);
        if (status >= 0) {
            status = annal__db_prepare_select(db, sql, &allowed, &stmt, err);
            add_line(err, status, db, sql);
        }
    }
    if (status >= 0 && call->functions != NULL &&
        options.param_count > (size_t)sqlite3_bind_parameter_count(stmt))
        options.param_count = (size_t)sqlite3_bind_parameter_count(stmt);
    /* preparing the statement has filled `allowed`; read it before the statement runs */
    bool counts = options.damages && allowed.counts;
    if (status >= 0)
        status = annal__db_select_with(stmt, &options, hand_on_row, call, err);
    if (status >= 0 && counts)
        status = say_damages(index, db, err) < 0 ? ANNAL_ERR_CORRUPT : status;
    annal__db_close(db);
    return status;
}

/* Delete the databases that are corrupt. All are checked, because SQLite does not say which of the
 * attached databases is corrupt. Returns whether one was deleted. */
static bool heal(annal_index *index, annal_slice session)
{
    return annal__packs_heal(index, session) || annal__derived_heal(&index->derived);
}

annal_status annal_index_sql(annal_index *index, annal_slice sql, const annal_sql_options *options,
                             annal_row_fn fn, void *arg, annal_error *err)
{
    return annal__view_select(index, sql, options, NULL, fn, arg, err);
}

annal_status annal__view_select(annal_index *index, annal_slice sql,
                                const annal_sql_options *options,
                                const annal__sql_function *functions, annal_row_fn fn, void *arg,
                                annal_error *err)
{
    static const annal_sql_options defaults;
    struct call call = {.options = options == NULL ? &defaults : options,
                        .functions = functions,
                        .fn = fn,
                        .arg = arg};
    annal_status status = run(index, sql, &call, err);
    if (status == ANNAL_ERR_CORRUPT && !call.stopped && heal(index, call.options->session) &&
        !call.begun)
        status = run(index, sql, &call, err);
    return status;
}

/* ---- Views ---- */

struct annal__view {
    annal_index *index;
    sqlite3 *db; /* connection in a transaction, which the first SELECT in fix() began */
    sqlite3_stmt *get_cursor;
};

static annal_status fix(annal__view *view, annal_error *err)
{
    annal_position unused;
    annal_status status = begin_checked(view->index, view->db, err);
    if (status >= 0)
        status =
            annal__follower_get_cursor(&view->index->follower, view->db, &view->get_cursor, err);
    return status < 0 ? status : annal__view_position(view, (annal_slice){0}, &unused, err);
}

annal_status annal__view_open(annal_index *index, annal__view **out_view, annal_error *err)
{
    annal__view *view = annal__zalloc(sizeof *view);
    if (view == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open a view of '%s': out of memory",
                           index->derived.path);
    view->index = index;
    annal_status status = annal__reader_read(index, NULL, 0, true, 0, &view->db, NULL, err);
    if (status >= 0)
        status = annal__packs_attach(index, view->db, (annal_slice){0}, true, 0, NULL, err);
    if (status >= 0)
        status = annal__run_health_add(view->db, index->store, err);
    if (status >= 0)
        status = fix(view, err);
    if (status < 0) {
        annal__view_close(view);
        return status;
    }
    *out_view = view;
    return ANNAL_OK;
}

annal_status annal__view_sql(annal__view *view, annal_slice sql, const annal_sql_options *options,
                             annal_row_fn fn, void *arg, annal_error *err)
{
    static const annal_sql_options defaults;
    struct call call = {.options = options == NULL ? &defaults : options, .fn = fn, .arg = arg};
    annal_sql_options own = *call.options;
    own.columns = own.columns == NULL ? NULL : hand_on_columns;
    annal_status status = annal__db_select(view->db, sql, &own, hand_on_row, &call, err);
    if (status == ANNAL_ERR_CORRUPT && !call.stopped)
        (void)heal(view->index, (annal_slice){0});
    return status;
}

annal_status annal__view_ask(annal__view *view, const char *sql, const annal_value *params,
                             size_t count, annal_row_fn fn, void *arg, annal_error *err)
{
    const annal_sql_options options = {.params = params, .param_count = count};
    struct call call = {.options = &options, .fn = fn, .arg = arg};
    annal_status status = annal__db_ask(view->db, sql, &options, hand_on_row, &call, err);
    if (status == ANNAL_ERR_CORRUPT && !call.stopped)
        (void)heal(view->index, (annal_slice){0});
    return status;
}

annal_status annal__view_position(annal__view *view, annal_slice session,
                                  annal_position *out_position, annal_error *err)
{
    annal_position from;
    bool known;
    annal_status status = annal__plan_cursor(view->get_cursor, session, &from, &known, err);
    if (status == ANNAL_ERR_CORRUPT)
        (void)annal__derived_heal(&view->index->derived);
    if (status >= 0)
        *out_position = known ? from : (annal_position){.seq = 1};
    return status;
}

void annal__view_close(annal__view *view)
{
    if (view == NULL)
        return;
    if (view->db != NULL)
        annal__db_finalize(view->db);
    annal__db_close(view->db);
    annal__free(view);
}
