/* The state of one session, as the files of this folder share it. */
#ifndef INDEX_STATE_STATE_H
#define INDEX_STATE_STATE_H

#include "index/pack/apply.h"
#include "index/state/state_vfs.h"
#include "journal/base/buf.h"

#include <annal/pack.h>

#include <sqlite3.h>

/*
 * A state is a SQLite database of pages (state_vfs.c) with the tables of the packs and one of ours:
 * _state, one row that says which session and up to which event. Events are applied inside a
 * transaction that ends when somebody reads.
 */
struct annal_state {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct state_pages *pages;
    sqlite3 *db;
    struct applier *applier;
    const annal_pack **packs;
    size_t pack_count;
    annal_pack *core; /* ours, when the caller brought no packs */
    uint64_t seq;
    uint64_t refused;        /* events */
    bool unsettled;          /* what the packs settle was refused when it was asked last */
    unsigned in_transaction; /* events; 0: there is none */
};

/* End the transaction that events are applied in: what is read from here on is all there. */
annal_status annal__state_settle(annal_state *state, annal_error *err);

/* ---- state_json.c ---- */

/* The names of the tables, in order. */
annal_status annal__state_tables(sqlite3 *db, sqlite3_stmt **out_stmt, annal_error *err);

/*
 * The rows of a table, in order: its columns, and behind them *out_keys further ones, by which they
 * are ordered.
 */
annal_status annal__state_rows(sqlite3 *db, annal_slice table, sqlite3_stmt **out_stmt,
                               int *out_keys, annal_error *err);

/* One value as JSON. */
annal_status annal__state_put_value(struct buf *out, const annal_value *value);

/* Bytes on their way to an annal_write_fn: passed on when there are enough. */
struct sink {
    annal_write_fn fn;
    void *arg;
    struct buf buf;
};

#define SINK_BYTES 65536

/* Pass on what is there, unless it is less than so much. Returns what fn does. */
int annal__sink_flush(struct sink *sink, size_t unless_below);

#endif
