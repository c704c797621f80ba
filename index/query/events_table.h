/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual table events(session_id, seq, timestamp, type, id, data), for annal_sql() and for the
 * loadable extension. Six rules in events_table.c describe it.
 */
#ifndef INDEX_QUERY_EVENTS_TABLE_H
#define INDEX_QUERY_EVENTS_TABLE_H

#include "index/db/db.h"

/* A view of the index of a store, which does not change while a cursor uses it. */
struct reading {
    sqlite3 *db; /* connection whose main database is the index */
    annal_store *store;
    bool
        with_rest; /* whether temp.rest has what is not indexed yet, see annal__reader_add_rest() */
};

/* The source of the rows of a table events. */
struct event_source {
    /* Return the view for a cursor that is opened now; end() releases it. */
    annal_status (*begin)(struct event_source *source, const struct reading **out,
                          annal_error *err);
    void (*end)(struct event_source *source, const struct reading *reading);
    /* Free the source: the table that owned it was dropped. */
    void (*release)(struct event_source *source);
};

/* The methods of the table except xCreate and xConnect; those call annal__events_connect(). */
extern const sqlite3_module annal__events_methods;

/* Declare the table and create *out; it takes ownership of the source, even if this fails. */
int annal__events_connect(sqlite3 *db, struct event_source *source, sqlite3_vtab **out);

struct event_source *annal__events_source(sqlite3_vtab *table);

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
 * The decision of xBestIndex. idxStr is " WHERE 1 AND ... ORDER BY ... LIMIT ?n;" with ?1, ?2, ...
 * for the values that are passed to xFilter; after the semicolon the conditions on session_id and
 * seq are repeated. idxNum describes the values:
 */
#define EVENT_VALUES_MAX 14
#define EVENT_IS_LIST(i) (1 << (i)) /* value i, from 0, is a list for IN */
/* value i is compared with a text column */
#define EVENT_IS_TEXT(i) (1 << (EVENT_VALUES_MAX + (i)))
#define EVENT_LIMIT      (1 << 28) /* a limit follows the values of the conditions */
#define EVENT_OFFSET     (1 << 29) /* an offset follows the limit */
#define EVENT_LINES      (1 << 30) /* id or data is used */

int annal__events_plan(sqlite3_vtab *table, sqlite3_index_info *info);

#endif
