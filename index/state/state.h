/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one session, for the files of this folder. */
#ifndef INDEX_STATE_STATE_H
#define INDEX_STATE_STATE_H

#include "index/pack/applier.h"
#include "index/state/state_vfs.h"
#include "journal/base/buf.h"

#include <annal/pack.h>

#include <sqlite3.h>

/*
 * A state is a SQLite database of pages (state_vfs.c) with the tables of the packs and a table of
 * ours: _state, whose row names the session and the last event. Events are applied inside a
 * transaction that ends when the state is read.
 */
struct annal_state {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct state_pages *pages;
    sqlite3 *db;
    struct applier *applier;
    const annal_pack **packs;
    size_t pack_count;
    annal_pack *core; /* owned by the state, if the caller passed no packs */
    uint64_t seq;
    uint64_t refused;        /* number of events */
    bool unsettled;          /* whether the last attempt to settle was refused */
    unsigned in_transaction; /* number of events; 0: no transaction */
    uint64_t roots;          /* hash of the first pages of its tables, after annal__state_rest() */
};

/* End the transaction in which events are applied, so that the state can be read completely. */
annal_status annal__state_settle(annal_state *state, annal_error *err);

/* ---- state_json.c ---- */

/* Select the names of the tables, in order. */
annal_status annal__state_tables(sqlite3 *db, sqlite3_stmt **out_stmt, annal_error *err);

/*
 * Select the rows of a table, in order: its columns, followed by *out_keys further columns, which
 * define the order.
 */
annal_status annal__state_rows(sqlite3 *db, annal_slice table, sqlite3_stmt **out_stmt,
                               int *out_keys, annal_error *err);

/* Append one value as JSON. */
annal_status annal__state_put_value(struct buf *out, const annal_value *value);

/* A buffer in front of an annal_write_fn: it is flushed once there are enough bytes. */
struct sink {
    annal_write_fn fn;
    void *arg;
    struct buf buf;
};

#define SINK_BYTES 65536

/* Pass on the buffered bytes, unless they are fewer than unless_below. Returns the result of fn. */
int annal__state_sink_flush(struct sink *sink, size_t unless_below);

#endif
