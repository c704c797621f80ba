/*
 * The virtual table events(session_id, seq, timestamp, type, id, data) over event_index and
 * journals.
 *
 * (1) What is asked of session_id, seq, timestamp and type goes into a SELECT over event_index,
 *     which xBestIndex writes into idxStr and xFilter runs. SQLite checks every row once more, so a
 *     constraint that says too little costs time, never rows.
 * (2) id and data are read from the journal when a row's id or data is asked for, once per row; a
 *     line that does not prove itself gives NULL.
 * (3) The log of the store is told of such a line; and of what had been damaged before it could be
 *     indexed, in the sessions and seqs that are asked for: a second SELECT behind the first.
 */
#include "index/database.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/log.h"

#include <annal/journal.h>

#include <string.h>

#define TOLD_MAX 20 /* damages that one scan names */

enum column { SESSION_ID, SEQ, TIMESTAMP, TYPE, ID, DATA };

static const char *const column_names[] = {"session_id", "seq", "timestamp", "type"};

struct table {
    sqlite3_vtab base;
    sqlite3 *db;
    annal_store *store;
};

struct events {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *stmt;
    sqlite3_stmt *damages; /* the second statement of idxStr, when there is one */
    uint64_t told_at;      /* offset of the damage that was told last */
    unsigned told;
    sqlite3_int64 row;
    bool at_end;
    bool have_line; /* line and event are of this row */
    bool damaged;
    annal_event_buffer *buffer;
    annal_event event;
};

static int connect_table(sqlite3 *db, void *arg, int count, const char *const *words,
                         sqlite3_vtab **out, char **out_message)
{
    (void)count;
    (void)words;
    (void)out_message;
    int rc = sqlite3_declare_vtab(db, "CREATE TABLE events (session_id TEXT, seq INTEGER, "
                                      "timestamp TEXT, type TEXT, id TEXT, data TEXT)");
    if (rc != SQLITE_OK)
        return rc;
    struct table *table = annal__zalloc(sizeof *table);
    if (table == NULL)
        return SQLITE_NOMEM;
    table->db = db;
    table->store = arg;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    *out = &table->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base)
{
    annal__free(base);
    return SQLITE_OK;
}

/* ---- Planning ---- */

static const char *operator_text(unsigned char op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return "=";
    case SQLITE_INDEX_CONSTRAINT_GT:
        return ">";
    case SQLITE_INDEX_CONSTRAINT_GE:
        return ">=";
    case SQLITE_INDEX_CONSTRAINT_LT:
        return "<";
    case SQLITE_INDEX_CONSTRAINT_LE:
        return "<=";
    case SQLITE_INDEX_CONSTRAINT_GLOB:
        return "GLOB";
    default:
        return NULL;
    }
}

/* Which columns have an equality and which a range. */
struct bounds {
    bool equal[4];
    bool range[4];
};

static struct bounds put_constraints(sqlite3_index_info *info, sqlite3_str *sql,
                                     sqlite3_str *damages)
{
    struct bounds bounds = {0};
    int used = 0;
    for (int i = 0; i < info->nConstraint; i++) {
        int column = info->aConstraint[i].iColumn;
        unsigned char op = info->aConstraint[i].op;
        const char *text = operator_text(op);
        if (!info->aConstraint[i].usable || column < SESSION_ID || column > TYPE || text == NULL)
            continue;
        if (sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY") != 0)
            continue;
        sqlite3_str_appendf(sql, " AND %s %s ?%d", column_names[column], text, ++used);
        if (column == SESSION_ID || column == SEQ)
            sqlite3_str_appendf(damages, " AND %s %s ?%d", column_names[column], text, used);
        info->aConstraintUsage[i].argvIndex = used;
        if (op == SQLITE_INDEX_CONSTRAINT_EQ)
            bounds.equal[column] = true;
        else
            bounds.range[column] = true;
    }
    return bounds;
}

/* How many rows such a question gives in a store of ten million, roughly. */
static double estimate_rows(const struct bounds *bounds)
{
    double rows = 1e7;
    if (bounds->equal[SESSION_ID])
        rows /= 1000;
    if (bounds->equal[SEQ])
        rows /= bounds->equal[SESSION_ID] ? 10000 : 100;
    else if (bounds->range[SEQ])
        rows /= 4;
    if (bounds->equal[TYPE])
        rows /= 30;
    if (bounds->range[TIMESTAMP] || bounds->equal[TIMESTAMP])
        rows /= 20;
    return rows < 1 ? 1 : rows;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql, "SELECT session_id, seq, timestamp, type, offset, length "
                             "FROM event_index WHERE 1");
    sqlite3_str *damages = sqlite3_str_new(NULL);
    sqlite3_str_appendf(damages,
                        "SELECT session_id, seq, offset FROM _findings WHERE kind = 'damage'");
    struct bounds bounds = put_constraints(info, sql, damages);
    bool ordered = info->nOrderBy == 1;
    int column = ordered ? info->aOrderBy[0].iColumn : -1;
    if (ordered && column >= SESSION_ID && column <= TYPE) {
        sqlite3_str_appendf(sql, " ORDER BY %s%s", column_names[column],
                            info->aOrderBy[0].desc ? " DESC" : "");
        info->orderByConsumed = 1;
    }
    char *second = sqlite3_str_finish(damages);
    sqlite3_str_appendf(sql, ";");
    if (second != NULL && (info->colUsed & (1u << ID | 1u << DATA)) != 0) /* rule 3 */
        sqlite3_str_appendf(sql, "%s", second);
    sqlite3_free(second);
    info->idxStr = sqlite3_str_finish(sql);
    if (info->idxStr == NULL)
        return SQLITE_NOMEM;
    info->needToFreeIdxStr = 1;
    info->estimatedRows = (sqlite3_int64)estimate_rows(&bounds);
    info->estimatedCost = estimate_rows(&bounds) * 2;
    return SQLITE_OK;
}

/* ---- Running ---- */

static int open_events(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    struct events *events = annal__zalloc(sizeof *events);
    if (events == NULL)
        return SQLITE_NOMEM;
    *out = &events->base;
    return SQLITE_OK;
}

static int close_events(sqlite3_vtab_cursor *base)
{
    struct events *events = (struct events *)base;
    sqlite3_finalize(events->stmt);
    sqlite3_finalize(events->damages);
    annal_event_buffer_free(events->buffer);
    annal__free(events);
    return SQLITE_OK;
}

static int next_event(sqlite3_vtab_cursor *base)
{
    struct events *events = (struct events *)base;
    int rc = sqlite3_step(events->stmt);
    events->row++;
    events->have_line = false;
    events->at_end = rc == SQLITE_DONE;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void tell_damage(struct events *events, annal_slice session, sqlite3_int64 seq,
                        sqlite3_int64 offset)
{
    const struct table *table = (struct table *)events->base.pVtab;
    if (events->told == TOLD_MAX || (events->told > 0 && events->told_at == (uint64_t)offset))
        return;
    events->told++;
    events->told_at = (uint64_t)offset;
    annal__store_log(table->store, ANNAL_LOG_WARNING,
                     "session '%.*s', event %lld at byte %lld: the journal does not prove it",
                     ANNAL_FMT(session), (long long)seq, (long long)offset);
}

static int tell_damages(struct events *events, int count, sqlite3_value **values)
{
    int rc = SQLITE_ROW;
    if (events->damages == NULL)
        return SQLITE_OK;
    for (int i = 0; i < count; i++) /* one that the statement does not name is refused: good */
        sqlite3_bind_value(events->damages, i + 1, values[i]);
    while ((rc = sqlite3_step(events->damages)) == SQLITE_ROW)
        tell_damage(events, annal__db_column(events->damages, 0),
                    sqlite3_column_int64(events->damages, 1),
                    sqlite3_column_int64(events->damages, 2));
    sqlite3_reset(events->damages);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Both statements of idxStr; the inner side of a join asks for the same again and again. */
static int prepare_scan(struct events *events, const char *sql)
{
    sqlite3 *db = ((struct table *)events->base.pVtab)->db;
    const char *second = NULL;
    if (events->stmt != NULL) {
        const char *old = sqlite3_sql(events->stmt);
        if (strncmp(old, sql, strlen(old)) == 0)
            return sqlite3_reset(events->stmt);
    }
    sqlite3_finalize(events->stmt);
    sqlite3_finalize(events->damages);
    events->stmt = NULL;
    events->damages = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &events->stmt, &second);
    return rc == SQLITE_OK ? sqlite3_prepare_v2(db, second, -1, &events->damages, NULL) : rc;
}

static int filter_events(sqlite3_vtab_cursor *base, int number, const char *sql, int count,
                         sqlite3_value **values)
{
    (void)number;
    struct events *events = (struct events *)base;
    events->row = 0;
    int rc = prepare_scan(events, sql);
    if (rc == SQLITE_OK)
        rc = tell_damages(events, count, values);
    for (int i = 0; rc == SQLITE_OK && i < count; i++)
        rc = sqlite3_bind_value(events->stmt, i + 1, values[i]);
    return rc == SQLITE_OK ? next_event(base) : rc;
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
    return ((struct events *)base)->at_end;
}

/* Rule 2. */
static int read_line(struct events *events)
{
    if (events->have_line)
        return SQLITE_OK;
    struct table *table = (struct table *)events->base.pVtab;
    annal_error err;
    annal_status status = annal_event_read_at(table->store, annal__db_column(events->stmt, 0),
                                              (uint64_t)sqlite3_column_int64(events->stmt, 1),
                                              (uint64_t)sqlite3_column_int64(events->stmt, 4),
                                              (uint64_t)sqlite3_column_int64(events->stmt, 5),
                                              &events->buffer, &events->event, &err);
    if (status == ANNAL_ERR_NOMEM)
        return SQLITE_NOMEM;
    events->damaged = status == ANNAL_ERR_CORRUPT || status == ANNAL_ERR_NOTFOUND;
    if (status < 0 && !events->damaged) {
        sqlite3_free(table->base.zErrMsg);
        table->base.zErrMsg = sqlite3_mprintf("%s", err.message);
        return SQLITE_ERROR;
    }
    if (events->damaged)
        tell_damage(events, annal__db_column(events->stmt, 0),
                    sqlite3_column_int64(events->stmt, 1), sqlite3_column_int64(events->stmt, 4));
    events->have_line = true;
    return SQLITE_OK;
}

static int event_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    struct events *events = (struct events *)base;
    if (column <= TYPE) {
        sqlite3_result_value(context, sqlite3_column_value(events->stmt, column));
        return SQLITE_OK;
    }
    int rc = read_line(events);
    if (rc != SQLITE_OK)
        return rc;
    annal_slice text = column == ID ? events->event.id : events->event.data;
    if (!events->damaged && text.len > 0)
        sqlite3_result_text64(context, text.ptr, text.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    return SQLITE_OK;
}

static int event_row(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = ((struct events *)base)->row;
    return SQLITE_OK;
}

/* No xCreate: the table exists wherever the module does, and needs no CREATE VIRTUAL TABLE. */
static const sqlite3_module events_module = {
    .iVersion = 1,
    .xConnect = connect_table,
    .xBestIndex = best_index,
    .xDisconnect = disconnect_table,
    .xOpen = open_events,
    .xClose = close_events,
    .xFilter = filter_events,
    .xNext = next_event,
    .xEof = is_at_end,
    .xColumn = event_column,
    .xRowid = event_row,
};

/* ---- Histories ---- */

/* What annal_history_part() looked at last: it is asked again for each event. */
struct proof {
    annal_store *store;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

/*
 * The second of (session, ancestor), if the session's lineage is what it was made from. Events of
 * an ancestor prove themselves, not that they are of this history.
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
        status = annal_session_lineage_check(proof->store, annal_slice_of(session), &why);
    if (status < 0 && status != ANNAL_ERR_NOTFOUND) { /* one that is gone has no history */
        sqlite3_result_error(context, why.message, -1);
        return;
    }
    if (strcmp(session, ancestor) != 0)
        strcpy(proof->session, session);
    sqlite3_result_value(context, values[1]);
}

/* Histories: what a fork shares with its ancestors is its own here, and origin says whose it is. */
static const char history_view[] =
    "CREATE TEMP VIEW history AS SELECT l.session_id, e.seq, e.timestamp, e.type, e.id, e.data, "
    "l.ancestor_id AS origin FROM main.lineage AS l CROSS JOIN events AS e "
    "ON e.session_id = annal_history_part(l.session_id, l.ancestor_id) "
    "AND e.seq >= l.from_seq AND e.seq <= l.to_seq";

annal_status annal__db_add_events(sqlite3 *db, annal_store *store, annal_error *err)
{
    struct proof *proof = annal__zalloc(sizeof *proof);
    if (proof == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "the table of histories");
    proof->store = store;
    int rc = sqlite3_create_function_v2(db, "annal_history_part", 2, SQLITE_UTF8 | SQLITE_INNOCUOUS,
                                        proof, history_part, NULL, NULL, annal__free);
    if (rc == SQLITE_OK) /* or the proof was freed */
        rc = sqlite3_create_module(db, "events", &events_module, store);
    if (rc != SQLITE_OK)
        return annal__db_fail(err, db, rc, "the virtual table events");
    return annal__db_exec(db, history_view, err);
}
