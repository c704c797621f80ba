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
 * A state is a SQLite database of pages (state_vfs.c) with the tables of the packs and one of ours:
 * _state, one row that says which session and up to which event. Events are applied inside a
 * transaction that ends when the state is read.
 */
struct annal_state {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct state_pages *pages;
    sqlite3 *db;
    struct applier *applier;
    const annal_pack **packs;
    size_t pack_count;
    annal_pack *core; /* ours, if the caller passed no packs */
    uint64_t seq;
    uint64_t refused;        /* events */
    bool unsettled;          /* the last attempt to settle was refused */
    unsigned in_transaction; /* events; 0: no transaction */
    uint64_t roots;          /* hash of where its tables begin, after annal__state_rest() */
};

/* End the transaction in which events are applied: what is read from here on is complete. */
annal_status annal__state_settle(annal_state *state, annal_error *err);

/* ---- state_json.c ---- */

/* The names of the tables, in order. */
annal_status annal__state_tables(sqlite3 *db, sqlite3_stmt **out_stmt, annal_error *err);

/*
 * The rows of a table, in order: its columns, and after them *out_keys further ones, by which they
 * are ordered.
 */
annal_status annal__state_rows(sqlite3 *db, annal_slice table, sqlite3_stmt **out_stmt,
                               int *out_keys, annal_error *err);

/* One value as JSON. */
annal_status annal__state_put_value(struct buf *out, const annal_value *value);

/* Bytes on their way to an annal_write_fn: passed on once there are enough. */
struct sink {
    annal_write_fn fn;
    void *arg;
    struct buf buf;
};

#define SINK_BYTES 65536

/* Pass on what there is, unless it is less than unless_below. Returns what fn returns. */
int annal__sink_flush(struct sink *sink, size_t unless_below);

#endif
