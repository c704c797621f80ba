/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one session, for the files of this folder. */
#pragma once

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
    annal_pack *core; /* core pack that the state owns, if the caller passed no packs; else NULL */
    uint64_t seq;
    uint64_t refused; /* number of events that a handler could not accept */
    bool unsettled;   /* whether a section `-- settle` failed when the state was last read */
    /* number of events applied in the open transaction; 0: no transaction is open */
    unsigned in_transaction;
    bool is_settled;        /* whether the sections `-- settle` ran after the last event */
    bool has_rows;          /* whether the tables have rows that a transaction committed */
    sqlite3_stmt **deletes; /* a DELETE for each table, for annal__state_reset(); NULL at first */
    size_t delete_count;
    /* hash of the numbers of the tables' first pages, for a reuse after annal__state_rest() */
    uint64_t roots;
};

/* Run the sections `-- settle`, and end the transaction in which events are applied, so that the
 * state can be read. */
annal_status annal__state_settle(annal_state *state, annal_error *err);

/* ---- state_json.c ---- */

/* Prepare a SELECT of the names of a state's tables, in the order of annal_state_json(). */
annal_status annal__state_tables(sqlite3 *db, sqlite3_stmt **out_stmt, annal_error *err);

/*
 * Prepare a SELECT of the rows of a table, in order: the columns of the table, followed by
 * *out_keys columns that define the order.
 */
annal_status annal__state_rows(sqlite3 *db, annal_slice table, sqlite3_stmt **out_stmt,
                               int *out_keys, annal_error *err);

/* Append one value as JSON. */
annal_status annal__state_put_value(struct buf *out, const annal_value *value);

/* A buffer in front of an annal_write_fn, which is flushed when it contains SINK_BYTES. */
struct sink {
    annal_write_fn fn;
    void *arg;
    struct buf buf;
};

#define SINK_BYTES 65536

/* Pass the buffered bytes to fn, unless they are fewer than unless_below. Returns the result of
 * fn. */
int annal__state_sink_flush(struct sink *sink, size_t unless_below);
