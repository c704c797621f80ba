/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual table events(session_id, seq, timestamp, type, id, data), for annal_sql() and for the
 * loadable extension. Six rules in events_table.c describe it.
 */
#ifndef INDEX_QUERY_EVENTS_TABLE_H
#define INDEX_QUERY_EVENTS_TABLE_H

#include "index/db/db.h"

/* One view of the index of a store, which stays as it is while a cursor uses it. */
struct reading {
    sqlite3 *db; /* its main database is the index */
    annal_store *store;
    bool with_rest; /* temp.rest has what is not indexed yet, see annal__index_add_rest() */
};

/* Where a table events gets its rows. */
struct event_source {
    /* What a cursor that is opened now reads; end() releases it. */
    annal_status (*begin)(struct event_source *source, const struct reading **out,
                          annal_error *err);
    void (*end)(struct event_source *source, const struct reading *reading);
    /* The table that owns the source is gone. */
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
 * What xBestIndex decides. idxStr is " WHERE 1 AND ... ORDER BY ... LIMIT ?n;" with ?1, ?2, ... for
 * the values that xFilter gets; after the semicolon the conditions on session_id and seq are
 * repeated. idxNum says what the values are:
 */
#define EVENT_VALUES_MAX 14
#define EVENT_IS_LIST(i) (1 << (i))                      /* value i, from 0, is a list for IN */
#define EVENT_IS_TEXT(i) (1 << (EVENT_VALUES_MAX + (i))) /* it is compared with a column of text */
#define EVENT_LIMIT      (1 << 28) /* a limit follows the values of the conditions */
#define EVENT_OFFSET     (1 << 29) /* and an offset follows that */
#define EVENT_LINES      (1 << 30) /* id or data is used */

int annal__events_plan(sqlite3_vtab *table, sqlite3_index_info *info);

#endif
