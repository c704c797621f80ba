/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual table events(session_id, seq, timestamp, type, id, cause, data, hash) over
 * event_index and journals. The column hash, 16 hex digits as in the journal, is hidden: it is
 * named to be read.
 *
 * (1) Conditions on session_id, seq, timestamp and type, the order and the limit go into a SELECT
 *     over event_index: xBestIndex composes its conditions (events_table_plan.c), and xFilter runs
 *     it. SQLite checks every row again, so a condition that is too weak only costs time, but a
 *     condition that is too strong would lose rows.
 * (2) If a number is compared with a text column, any text with the value of this number matches,
 *     and the SELECT cannot express this: it then returns every row, in the requested order.
 * (3) id, cause, data and hash are read from the journal when one of them is used, once per row; if
 *     the line's hash is wrong, they are NULL.
 * (4) A line with a wrong hash is reported in the log of the store. Damage that existed before the
 *     events could be indexed, in the sessions and seqs of the query, is found by a second SELECT
 *     and reported, too. If no line is read (a count), the second SELECT runs once for each cursor.
 * (5) A rowid belongs to the same event in every scan of a statement, because SQLite joins the
 *     scans of an OR by rowid.
 * (6) All cursors of a statement see the same rows, as far as the source can distinguish
 *     statements.
 */
#include "index/query/events_table.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/sys/event_at.h"
#include "journal/sys/lineage.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REPORTED_MAX 20 /* maximum number of damaged events that one scan reports */

struct table {
    sqlite3_vtab base;
    struct event_source *source;
};

struct events {
    sqlite3_vtab_cursor base;
    const struct reading *reading;
    sqlite3_stmt *stmt;
    /* SELECT of damage in the sessions and seqs of the query; NULL until it is used */
    sqlite3_stmt *damages;
    uint64_t reported_at; /* offset in the journal of the damage that was last reported */
    unsigned reported;
    bool looked; /* whether the SELECT of damage has run since the cursor was opened */
    bool at_end;
    bool have_line; /* whether event is the complete event of the current row */
    bool damaged;
    annal__event_buffer *buffer;
    annal_event event;
};

/* Columns of the SELECT over event_index. The first columns have the numbers of the table's columns
 * up to EVENT_TYPE; these follow them. */
enum { OFFSET = EVENT_TYPE + 1, LENGTH, ROW };

int annal__events_connect(sqlite3 *db, struct event_source *source, sqlite3_vtab **out)
{
    struct table *table = NULL;
    int rc = sqlite3_declare_vtab(db, "CREATE TABLE events (session_id TEXT, seq INTEGER, "
                                      "timestamp TEXT, type TEXT, id TEXT, cause TEXT, data TEXT, "
                                      "hash TEXT HIDDEN)");
    if (rc == SQLITE_OK && (table = annal__zalloc(sizeof *table)) == NULL)
        rc = SQLITE_NOMEM;
    if (rc != SQLITE_OK) {
        source->release(source);
        return rc;
    }
    table->source = source;
    *out = &table->base;
    return SQLITE_OK;
}

struct event_source *annal__events_source(sqlite3_vtab *table)
{
    return ((struct table *)table)->source;
}

static int disconnect_table(sqlite3_vtab *base)
{
    struct table *table = (struct table *)base;
    table->source->release(table->source);
    annal__free(table);
    return SQLITE_OK;
}

/* Report a failure of the table to SQLite. The status is never SQLITE_BUSY, because the program
 * would take that for a lock of its own database. */
static int fail_table(sqlite3_vtab *base, annal_status status, const char *message)
{
    if (status == ANNAL_ERR_NOMEM)
        return SQLITE_NOMEM;
    sqlite3_free(base->zErrMsg);
    base->zErrMsg = sqlite3_mprintf("%s", message);
    return status == ANNAL_ERR_CORRUPT ? SQLITE_CORRUPT_VTAB : SQLITE_ERROR;
}

static int fail_stmt(struct events *events, int rc)
{
    sqlite3_vtab *base = events->base.pVtab;
    sqlite3_free(base->zErrMsg);
    base->zErrMsg = sqlite3_mprintf("%s", sqlite3_errmsg(events->reading->db));
    return rc;
}

/* ---- Cursors ---- */

static int open_events(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    struct event_source *source = ((struct table *)base)->source;
    annal_error err = {0};
    struct events *events = annal__zalloc(sizeof *events);
    if (events == NULL)
        return SQLITE_NOMEM;
    annal_status status = source->begin(source, &events->reading, &err);
    if (status < 0) {
        annal__free(events);
        return fail_table(base, status, err.message);
    }
    *out = &events->base;
    return SQLITE_OK;
}

static void finalize(struct events *events)
{
    sqlite3_finalize(events->stmt);
    sqlite3_finalize(events->damages);
    events->stmt = NULL;
    events->damages = NULL;
}

static int close_events(sqlite3_vtab_cursor *base)
{
    struct events *events = (struct events *)base;
    struct event_source *source = ((struct table *)base->pVtab)->source;
    finalize(events);
    annal__event_buffer_free(events->buffer);
    source->end(source, events->reading);
    annal__free(events);
    return SQLITE_OK;
}

static int next_event(sqlite3_vtab_cursor *base)
{
    struct events *events = (struct events *)base;
    int rc = sqlite3_step(events->stmt);
    events->have_line = false;
    events->at_end = rc == SQLITE_DONE;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : fail_stmt(events, rc);
}

/* ---- Damage ---- */

static void report_damage(struct events *events, annal_slice session, sqlite3_int64 seq,
                          sqlite3_int64 offset)
{
    if (events->reported == REPORTED_MAX ||
        (events->reported > 0 && events->reported_at == (uint64_t)offset))
        return;
    events->reported++;
    events->reported_at = (uint64_t)offset;
    annal__store_say_damage(events->reading->store, session, (uint64_t)seq, (uint64_t)offset);
}

static int report_damages(struct events *events)
{
    int rc;
    while ((rc = sqlite3_step(events->damages)) == SQLITE_ROW)
        report_damage(events, annal__db_column(events->damages, 0),
                      sqlite3_column_int64(events->damages, 1),
                      sqlite3_column_int64(events->damages, 2));
    sqlite3_reset(events->damages);
    return rc == SQLITE_DONE ? SQLITE_OK : fail_stmt(events, rc);
}

/* ---- Values ---- */

/* Append the values that equal this text or number to a JSON array; a blob never equals a column of
 * the table. */
static annal_status put_value(struct buf *json, sqlite3_value *value)
{
    annal_slice text;
    annal__buf_append(json, ",", json->len > 1);
    switch (sqlite3_value_type(value)) {
    case SQLITE_TEXT:
        text.ptr = (const char *)sqlite3_value_text(value);
        text.len = (size_t)sqlite3_value_bytes(value);
        return annal__json_quote(json, text);
    case SQLITE_INTEGER:
        return annal__buf_printf(json, "%lld", (long long)sqlite3_value_int64(value));
    case SQLITE_FLOAT: /* a real such as 5.0 equals the integer 5 */
        return annal__buf_printf(json, "%.17g", sqlite3_value_double(value));
    default:
        return annal__buf_printf(json, "null");
    }
}

static bool is_number(sqlite3_value *value)
{
    int type = sqlite3_value_type(value);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static int put_list(sqlite3_value *list, struct buf *json, bool *out_has_number)
{
    sqlite3_value *value = NULL;
    annal_status status = annal__buf_append(json, "[", 1);
    int rc = sqlite3_vtab_in_first(list, &value);
    for (; status >= 0 && rc == SQLITE_OK; rc = sqlite3_vtab_in_next(list, &value)) {
        *out_has_number = *out_has_number || is_number(value);
        status = put_value(json, value);
    }
    status = annal__buf_append(json, "]", 1);
    return status < 0 ? SQLITE_NOMEM : rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The values of the conditions, and the limit of the SELECT. The SELECT of damage uses some of the
 * values. */
struct values {
    int number;
    int count; /* number of values of the conditions */
    sqlite3_value **given;
    struct buf lists[EVENT_VALUES_MAX];
    sqlite3_int64 limit;
    /* whether the SELECT must return every row, because a number is compared with a text column
     * (rule 2) */
    bool all;
};

static void read_limit(struct values *values, sqlite3_value **limit)
{
    sqlite3_int64 rows = sqlite3_value_int64(limit[0]);
    sqlite3_int64 offset = (values->number & EVENT_OFFSET) != 0 ? sqlite3_value_int64(limit[1]) : 0;
    if (rows < 0 || (offset > 0 && rows > INT64_MAX - offset))
        values->limit = -1;
    else
        values->limit = rows + (offset > 0 ? offset : 0);
}

static int read_values(struct values *values, int count, sqlite3_value **given)
{
    int rc = SQLITE_OK;
    values->given = given;
    values->count =
        count - ((values->number & EVENT_LIMIT) != 0) - ((values->number & EVENT_OFFSET) != 0);
    for (int i = 0; rc == SQLITE_OK && i < values->count; i++) {
        bool has_number = is_number(given[i]);
        if ((values->number & EVENT_IS_LIST(i)) != 0)
            rc = put_list(given[i], &values->lists[i], &has_number);
        if (has_number && (values->number & EVENT_IS_TEXT(i)) != 0)
            values->all = true;
    }
    if ((values->number & EVENT_LIMIT) != 0)
        read_limit(values, given + values->count);
    return rc;
}

/* Bind the values. Binding a parameter that the statement does not use fails without an effect,
 * which is intended. */
static void bind_values(sqlite3_stmt *stmt, const struct values *values)
{
    for (int i = 0; i < values->count; i++) {
        const struct buf *list = &values->lists[i];
        if (list->len > 0)
            sqlite3_bind_text64(stmt, i + 1, list->ptr, list->len, SQLITE_TRANSIENT, SQLITE_UTF8);
        else
            sqlite3_bind_value(stmt, i + 1, values->given[i]);
    }
    if ((values->number & EVENT_LIMIT) != 0)
        sqlite3_bind_int64(stmt, values->count + 1, values->limit);
}

static void values_done(struct values *values)
{
    for (int i = 0; i < values->count; i++)
        annal__buf_done(&values->lists[i]);
}

/* ---- The SELECT ---- */

/* SELECT of all existing types; SQL's index leads from each type to the next. */
static const char indexed_types[] =
    "WITH RECURSIVE indexed (type) AS (SELECT MIN(type) FROM main.event_index UNION ALL "
    "SELECT (SELECT MIN(e.type) FROM main.event_index AS e WHERE e.type > indexed.type) "
    "FROM indexed WHERE indexed.type IS NOT NULL), types (type) AS (SELECT type FROM indexed";
static const char rest_types[] = " UNION SELECT type FROM temp.rest";

static const char indexed_rows[] =
    "SELECT * FROM (SELECT session_id, seq, timestamp, type, offset, length, rowid AS row "
    "FROM main.event_index";
static const char rest_rows[] =
    " UNION ALL SELECT session_id, seq, timestamp, type, offset, length, -rowid FROM temp.rest";

/* Compose the SELECT of rows; plan is the idxStr of xBestIndex (events_table.h). */
static annal_status put_select(struct buf *sql, const char *plan, const struct values *values,
                               bool with_rest)
{
    const char *end = strchr(plan, ';');
    const char *from = plan;
    annal_status status = ANNAL_OK;
    if (values->all) { /* read all rows (rule 2): of the plan only ORDER BY is used */
        const char *order = strstr(plan, " ORDER BY ");
        const char *limit = strstr(plan, " LIMIT ?");
        end = limit != NULL ? limit : end;
        from = order != NULL ? order : end;
    } else if (strstr(plan, " FROM types ") != NULL)
        status = annal__buf_printf(sql, "%s%s) ", indexed_types, with_rest ? rest_types : "");
    status = annal__buf_printf(sql, "%s%s)%.*s", indexed_rows, with_rest ? rest_rows : "",
                               (int)(end - from), from);
    return status < 0 || annal__buf_cstr(sql) == NULL ? ANNAL_ERR_NOMEM : ANNAL_OK;
}

static annal_status put_damages(struct buf *sql, const char *plan)
{
    annal_status status = annal__buf_printf(
        sql, "SELECT session_id, seq, offset FROM main._findings WHERE kind = 'damage'%s",
        strchr(plan, ';') + 1);
    return status < 0 || annal__buf_cstr(sql) == NULL ? ANNAL_ERR_NOMEM : ANNAL_OK;
}

/* Prepare a statement, or reuse it if its text is the same: the inner side of a join repeats the
 * same query. */
static int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **stmt)
{
    if (*stmt != NULL && strcmp(sqlite3_sql(*stmt), sql) == 0) {
        sqlite3_reset(*stmt);
        return SQLITE_OK;
    }
    sqlite3_finalize(*stmt);
    *stmt = NULL;
    return sqlite3_prepare_v2(db, sql, -1, stmt, NULL);
}

static int run(struct events *events, const char *plan, const struct values *values)
{
    const struct reading *reading = events->reading;
    SCOPED_BUF sql = {0};
    int rc = put_select(&sql, plan, values, reading->with_rest) < 0
                 ? SQLITE_NOMEM
                 : prepare(reading->db, sql.ptr, &events->stmt);
    annal__buf_clear(&sql);
    bool look = (values->number & EVENT_LINES) != 0 || !events->looked;
    events->looked = true;
    /* find damaged events before the rows are read, so that they are reported (rule 4) */
    if (rc == SQLITE_OK && look) {
        rc = put_damages(&sql, plan) < 0 ? SQLITE_NOMEM
                                         : prepare(reading->db, sql.ptr, &events->damages);
        if (rc == SQLITE_OK)
            bind_values(events->damages, values);
        if (rc == SQLITE_OK)
            rc = report_damages(events);
    }
    if (rc != SQLITE_OK)
        return rc == SQLITE_NOMEM ? rc : fail_stmt(events, rc);
    bind_values(events->stmt, values);
    return next_event(&events->base);
}

static int filter_events(sqlite3_vtab_cursor *base, int number, const char *plan, int count,
                         sqlite3_value **given)
{
    struct values values = {.number = number};
    int rc = read_values(&values, count, given);
    if (rc == SQLITE_OK)
        rc = run((struct events *)base, plan, &values);
    values_done(&values);
    return rc;
}

/* ---- Rows ---- */

static int is_at_end(sqlite3_vtab_cursor *base)
{
    return ((struct events *)base)->at_end;
}

/* Read the event of the current row from its journal, once per row (rule 3). */
static int read_line(struct events *events)
{
    if (events->have_line)
        return SQLITE_OK;
    annal_error err;
    annal_status status = annal__event_read_at(
        events->reading->store, annal__db_column(events->stmt, EVENT_SESSION_ID),
        (uint64_t)sqlite3_column_int64(events->stmt, EVENT_SEQ),
        (uint64_t)sqlite3_column_int64(events->stmt, OFFSET),
        (uint64_t)sqlite3_column_int64(events->stmt, LENGTH), &events->buffer, &events->event,
        &err);
    bool denied =
        annal__error_is_io(status) &&
        annal__stray_is(events->reading->store, annal__db_column(events->stmt, EVENT_SESSION_ID));
    events->damaged = denied || status == ANNAL_ERR_CORRUPT || status == ANNAL_ERR_NOTFOUND;
    if (status < 0 && !events->damaged)
        return fail_table(events->base.pVtab, status, err.message);
    if (events->damaged && !denied)
        report_damage(events, annal__db_column(events->stmt, EVENT_SESSION_ID),
                      sqlite3_column_int64(events->stmt, EVENT_SEQ),
                      sqlite3_column_int64(events->stmt, OFFSET));
    events->have_line = true;
    return SQLITE_OK;
}

static int event_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    struct events *events = (struct events *)base;
    if (column <= EVENT_TYPE) {
        sqlite3_result_value(context, sqlite3_column_value(events->stmt, column));
        return SQLITE_OK;
    }
    int rc = read_line(events);
    if (rc != SQLITE_OK)
        return rc;
    char hash[17] = "";
    annal_slice text = column == EVENT_ID      ? events->event.id
                       : column == EVENT_CAUSE ? events->event.cause
                                               : events->event.data;
    if (column == EVENT_HASH)
        text = (annal_slice){hash,
                             (size_t)snprintf(hash, sizeof hash, "%016" PRIx64, events->event.h)};
    if (!events->damaged && text.len > 0)
        sqlite3_result_text64(context, text.ptr, text.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    return SQLITE_OK;
}

/* Return the rowid of the current event, which is the same in every scan (rule 5). */
static int event_row(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = sqlite3_column_int64(((struct events *)base)->stmt, ROW);
    return SQLITE_OK;
}

const sqlite3_module annal__events_methods = {
    .iVersion = 1,
    .xBestIndex = annal__events_plan,
    .xDisconnect = disconnect_table,
    .xDestroy = disconnect_table,
    .xOpen = open_events,
    .xClose = close_events,
    .xFilter = filter_events,
    .xNext = next_event,
    .xEof = is_at_end,
    .xColumn = event_column,
    .xRowid = event_row,
};

/* ---- Histories ---- */

/* The session whose lineage annal_history_part() checked last, kept because it is called again for
 * each event. */
struct proof {
    annal_store *store;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

/*
 * Return whether the session has no journal, or the file with its name is a copied or renamed
 * journal of another session.
 */
static bool is_missing(annal_store *store, annal_slice session)
{
    annal_session_info info;
    annal_status status = annal_session_info_get(store, session, &info, NULL);
    return status == ANNAL_ERR_NOTFOUND ||
           (annal__may_be_stray(status) && annal__stray_is(store, session));
}

/*
 * The SQL function annal_history_part(session, ancestor): return ancestor if the lineage of session
 * is unchanged. The hashes of an ancestor's events prove their content, but not that they belong to
 * this history. If the journal of the ancestor is missing, the result is NULL, so that the shared
 * events are skipped and the histories of other sessions are still returned; the store's log
 * reports this.
 */
static void history_part(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    struct proof *proof = sqlite3_user_data(context);
    const char *session = (const char *)sqlite3_value_text(values[0]);
    const char *ancestor = (const char *)sqlite3_value_text(values[1]);
    annal_error why = {0};
    annal_status status = ANNAL_OK;
    if (session == NULL || ancestor == NULL || strlen(session) >= sizeof proof->session)
        return;
    if (strcmp(session, ancestor) != 0 && strcmp(session, proof->session) != 0)
        status = annal__lineage_check(proof->store, annal_slice_of(session), NULL, &why);
    if (status == ANNAL_ERR_CORRUPT && is_missing(proof->store, annal_slice_of(ancestor))) {
        annal__say(proof->store, ANNAL_LOG_WARNING, "the history of a fork is left out: %s",
                   why.message);
        return;
    }
    /* ANNAL_ERR_NOTFOUND: the session was deleted, and has no history */
    if (status < 0 && status != ANNAL_ERR_NOTFOUND) {
        sqlite3_result_error(context, why.message, -1);
        return;
    }
    if (strcmp(session, ancestor) != 0)
        strcpy(proof->session, session);
    sqlite3_result_value(context, values[1]);
}

/*
 * The view history: for a fork, it contains the events of its ancestors up to the fork point, too.
 * origin is the session whose journal contains the event.
 */
static const char history_view[] =
    "CREATE TEMP VIEW history AS SELECT l.session_id, e.seq, e.timestamp, e.type, e.id, e.data, "
    "l.ancestor_id AS origin FROM main.lineage AS l CROSS JOIN events AS e "
    "ON e.session_id = annal_history_part(l.session_id, l.ancestor_id) "
    "AND e.seq >= l.from_seq AND e.seq <= l.to_seq";

/*
 * Create the temporary view history over main.lineage and the table events. The store must outlive
 * the connection.
 */
static annal_status add_history(sqlite3 *db, annal_store *store, annal_error *err)
{
    struct proof *proof = annal__zalloc(sizeof *proof);
    if (proof == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "create the table of histories: out of memory");
    proof->store = store;
    int rc = sqlite3_create_function_v2(db, "annal_history_part", 2, SQLITE_UTF8 | SQLITE_INNOCUOUS,
                                        proof, history_part, NULL, NULL, annal__free);
    if (rc != SQLITE_OK) /* the proof was freed */
        return annal__db_fail(err, db, rc, "cannot create the table of the histories of forks");
    return annal__db_exec(db, history_view, err);
}

/* ---- The table events on a connection to the index itself ---- */

struct own_source {
    struct event_source base;
    struct reading reading;
    sqlite3_module module;
};

static annal_status begin_own(struct event_source *source, const struct reading **out,
                              annal_error *err)
{
    (void)err;
    *out = &((struct own_source *)source)->reading;
    return ANNAL_OK;
}

static void end_own(struct event_source *source, const struct reading *reading)
{
    (void)source;
    (void)reading;
}

static void keep_own(struct event_source *source)
{
    (void)source; /* source is freed when the module is freed */
}

static int connect_own(sqlite3 *db, void *arg, int count, const char *const *words,
                       sqlite3_vtab **out, char **out_message)
{
    (void)count;
    (void)words;
    (void)out_message;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    return annal__events_connect(db, arg, out);
}

annal_status annal__events_table_add(sqlite3 *db, annal_store *store, annal_error *err)
{
    struct own_source *own = annal__zalloc(sizeof *own);
    if (own == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "create the virtual table events: out of memory");
    own->base = (struct event_source){begin_own, end_own, keep_own};
    own->reading = (struct reading){.db = db, .store = store};
    own->module = annal__events_methods;
    /* without xCreate, so that the table exists without being created */
    own->module.xConnect = connect_own;
    int rc = sqlite3_create_module_v2(db, "events", &own->module, own, annal__free);
    if (rc != SQLITE_OK) /* own was freed */
        return annal__db_fail(err, db, rc, "cannot create the virtual table events");
    return add_history(db, store, err);
}
