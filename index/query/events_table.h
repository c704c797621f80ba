/*
 * The virtual table events(session_id, seq, timestamp, type, id, data), for annal_sql() and for the
 * loadable extension; in six rules at the head of virtual.c.
 */
#ifndef INDEX_QUERY_EVENTS_TABLE_H
#define INDEX_QUERY_EVENTS_TABLE_H

#include "index/db/database.h"

/* One look at the index of a store, which stays as it is while somebody has it. */
struct reading {
    sqlite3 *db; /* its main database is the index */
    annal_store *store;
    bool with_rest; /* temp.rest has what the index lags behind, see annal__index_add_rest() */
};

/* Where a table events gets its rows. */
struct event_source {
    /* What a cursor that is opened now reads; end() gives it back. */
    annal_status (*begin)(struct event_source *source, const struct reading **out,
                          annal_error *err);
    void (*end)(struct event_source *source, const struct reading *reading);
    /* The table that took the source is gone. */
    void (*release)(struct event_source *source);
};

/* The methods of the table but for xCreate and xConnect; those call annal__events_connect(). */
extern const sqlite3_module annal__events_methods;

/* Declare the table and make *out; it takes the source, also when this fails. */
int annal__events_connect(sqlite3 *db, struct event_source *source, sqlite3_vtab **out);

struct event_source *annal__events_source(sqlite3_vtab *table);

/*
 * The view history in temp, over main.lineage and the table events of this connection; the store
 * must outlive it.
 */
annal_status annal__db_add_history(sqlite3 *db, annal_store *store, annal_error *err);

/* ---- events_table_plan.c ---- */

enum event_column {
    EVENT_SESSION_ID,
    EVENT_SEQ,
    EVENT_TIMESTAMP,
    EVENT_TYPE,
    EVENT_ID,
    EVENT_DATA
};

/*
 * What xBestIndex decides. idxStr is " WHERE 1 AND ... ORDER BY ... LIMIT ?n;" with ?1, ?2, ... for
 * the values that xFilter gets; behind the semicolon stand the conditions of session_id and seq
 * once more. idxNum says what the values are:
 */
#define EVENT_VALUES_MAX 14
#define EVENT_IS_LIST(i) (1 << (i))                      /* value i, from 0, is a list for IN */
#define EVENT_IS_TEXT(i) (1 << (EVENT_VALUES_MAX + (i))) /* it is compared with a column of text */
#define EVENT_LIMIT      (1 << 28) /* a limit stands behind the values of the conditions */
#define EVENT_OFFSET     (1 << 29) /* and an offset behind that */
#define EVENT_LINES      (1 << 30) /* id or data is asked for */

int annal__events_plan(sqlite3_vtab *table, sqlite3_index_info *info);

#endif
