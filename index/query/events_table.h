/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual table events(session_id, seq, timestamp, type, id, cause, data, hash), for
 * annal_index_sql() and for the loadable extension. The rules are in events_table.c.
 */
#pragma once

#include "index/db/db.h"

/* A view of the index of a store, which does not change while a cursor uses it. */
struct reading {
    sqlite3 *db; /* connection whose database main is the index */
    annal_store *store;
    /* whether temp.rest contains the events that are not indexed yet: annal__reader_add_rest() */
    bool with_rest;
};

/* The source of the rows of a table events: which index its cursors read. */
struct event_source {
    /* Return the view for a cursor that is being opened; end() releases it. */
    annal_status (*begin)(struct event_source *source, const struct reading **out,
                          annal_error *err);
    void (*end)(struct event_source *source, const struct reading *reading);
    /* Free the source. Called after the table that owned the source was dropped. */
    void (*release)(struct event_source *source);
};

/* Methods of the table except xCreate and xConnect, which call annal__events_connect(). */
extern const sqlite3_module annal__events_methods;

/* Declare the table and create *out, which owns the source. The source is owned even if this
 * fails. */
int annal__events_connect(sqlite3 *db, struct event_source *source, sqlite3_vtab **out);

struct event_source *annal__events_source(sqlite3_vtab *table);

/* ---- events_table_plan.c ---- */

enum event_column {
    EVENT_SESSION_ID,
    EVENT_SEQ,
    EVENT_TIMESTAMP,
    EVENT_TYPE,
    EVENT_ID,
    EVENT_CAUSE,
    EVENT_DATA,
    EVENT_HASH
};

/*
 * The plan that xBestIndex makes for xFilter. idxStr is " WHERE 1 AND ... ORDER BY ... LIMIT ?n;"
 * with ?1, ?2, ... for the values that are passed to xFilter; after the semicolon the conditions on
 * session_id and seq are repeated. idxNum is a combination of these bits, which describe the
 * values:
 */
#define EVENT_VALUES_MAX 14         /* maximum number of values of conditions */
#define EVENT_IS_LIST(i) (1 << (i)) /* bit: value i, counted from 0, is a list for IN */
/* bit: value i, counted from 0, is compared with a text column */
#define EVENT_IS_TEXT(i) (1 << (EVENT_VALUES_MAX + (i)))
/* bit: the values of the conditions are followed by a value for LIMIT */
#define EVENT_LIMIT  (1 << 28)
#define EVENT_OFFSET (1 << 29) /* bit: the value for LIMIT is followed by a value for OFFSET */
#define EVENT_LINES  (1 << 30) /* bit: the query uses the column id, cause, data or hash */

int annal__events_plan(sqlite3_vtab *table, sqlite3_index_info *info);
